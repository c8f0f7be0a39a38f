/* SPDX-License-Identifier: MIT */
/* Instructions as entry_move.h wants them: what they do to the flow, and what hangs on their place.
 */
#ifndef CUSCOPE_DIVERT_ENTRY_DECODE_H
#define CUSCOPE_DIVERT_ENTRY_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

enum entry_flow {
	FLOW_ON,       /* to the next instruction */
	FLOW_BRANCHES, /* there, or to the target */
	FLOW_JUMPS,    /* to the target */
	FLOW_CALLS,    /* to the target, and then on */
	FLOW_BY_VALUE, /* to where a register or memory says */
	FLOW_ENDS,     /* a return, or a trap that nothing comes back from */
};

struct entry_instruction {
	ZydisDecodedInstruction raw;
	size_t at;
	enum entry_flow flow;
	bool has_target;  /* of a branch */
	bool has_operand; /* in memory, by its distance from the instruction */
	bool unclear;     /* processors differ about where it branches to */
	int64_t target;   /* offset from the entry, of either */
};

void entry_decoder_init(ZydisDecoder *decoder);

/* The instruction at an offset of `code`; false where the bytes are none. */
bool entry_decode(const ZydisDecoder *decoder, const uint8_t *code, size_t bytes, size_t at,
                  struct entry_instruction *instruction);

#endif
