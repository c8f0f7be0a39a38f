/* SPDX-License-Identifier: MIT */
/*
 * Whether anything in a function leads into its first bytes, or reads them. The whole body is
 * decoded twice: from one end to the other, and along its branches from the entry on. Where both
 * agree there is one reading; where they differ, the harms of both are taken.
 */
#pragma once

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "divert/entry_move.h"

/*
 * Of the first `taken` bytes, of which the jump will lie at `skip`. A call of the entry, or of what
 * lies behind its endbr64, is recursion and harmless; a jump there is a loop and is not. *at is
 * the offset of the instruction that a refusal is about.
 */
enum entry_refusal entry_body_check(const uint8_t *code, size_t size, uint32_t skip, uint32_t taken,
                                    uint32_t *at);

/* ---- entry decode -------------------------------------------------------------------------- */

/* Instructions as entry_move.h wants them: what they do to the flow, and what hangs on their place.
 */

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

/*
 * Whether a function may be begun again after its first instructions have run: all that they leave
 * behind is then a changed stack pointer, which is put right by one instruction, flags, stack that
 * is the function's own, and registers that it sets before it reads them.
 */

#define ENTRY_UNDONE_MAX (1u << 20) /* bytes of stack */

struct entry_undo {
	uint32_t stack;     /* bytes by which the stack pointer has gone down */
	unsigned read, set; /* registers that hold no argument, a bit for each */
};

/* Adds the instruction that runs next. False: it cannot be undone. */
bool entry_undo_add(struct entry_undo *undo, const ZydisDecoder *decoder, const uint8_t *code,
                    size_t bytes);
