/* SPDX-License-Identifier: MIT */
/*
 * Whether a function may be begun again after its first instructions have run: all that they leave
 * behind is then a changed stack pointer, which is put right by one instruction, flags, stack that
 * is the function's own, and registers that it sets before it reads them.
 */
#ifndef CUSCOPE_DIVERT_ENTRY_UNDO_H
#define CUSCOPE_DIVERT_ENTRY_UNDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

#define ENTRY_UNDONE_MAX (1u << 20) /* bytes of stack */

struct entry_undo {
	uint32_t stack;     /* bytes by which the stack pointer has gone down */
	unsigned read, set; /* registers that hold no argument, a bit for each */
};

/* Adds the instruction that runs next. False: it cannot be undone. */
bool entry_undo_add(struct entry_undo *undo, const ZydisDecoder *decoder, const uint8_t *code,
                    size_t bytes);

#endif
