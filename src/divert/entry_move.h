/* SPDX-License-Identifier: MIT */
/*
 * Whether the entry of a function can be diverted, and what to write there.
 *
 * A function is diverted by a jump of five bytes at its entry. The instructions that lie there are
 * moved: a copy of them, put right for its new place, runs and then jumps back behind the written
 * bytes. Whoever calls the copy calls the function as it was.
 *
 * Nothing here touches a process: bytes come in, bytes go out. The bytes are those of a library
 * that may be hostile. What cannot be proven harmless is refused, with the reason.
 *
 * x86-64 only. On AArch64 the entry would be one instruction, and its operand as much as a page
 * wide: none of that is done.
 */
#ifndef CUSCOPE_DIVERT_ENTRY_MOVE_H
#define CUSCOPE_DIVERT_ENTRY_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/api.h"

#define ENTRY_JUMP_BYTES   5   /* jmp rel32 */
#define ENTRY_WRITTEN_MAX  20  /* the jump, and the rest of the last instruction that it cuts */
#define ENTRY_MOVED_MAX    128 /* of code that is moved, with its jump back */
#define ENTRY_PLACES_MAX   24
#define ENTRY_FUNCTION_MAX (256u << 10) /* functions of more bytes are refused unread */

enum entry_refusal {
	ENTRY_MOVABLE,
	ENTRY_OTHER_MACHINE,
	ENTRY_NO_SIZE,
	ENTRY_TOO_LARGE,
	ENTRY_NOT_READ,
	ENTRY_CHANGED,
	ENTRY_TOO_SHORT,
	ENTRY_ENDS_EARLY,
	ENTRY_SHARED,
	ENTRY_JUMPED_INTO,
	ENTRY_TABLE_JUMP,
	ENTRY_READS_ITSELF,
	ENTRY_HAS_CALL,
	ENTRY_CANNOT_MOVE,
	ENTRY_UNDECODABLE,
	ENTRY_OUT_OF_REACH,
	ENTRY_REFUSALS, /* how many there are */
};

/* Half a sentence for users: "a jump leads into its first bytes". Static. */
const char *entry_refusal_text(enum entry_refusal refusal);

/* A function, as its file has it and as it is in memory. */
struct entry_code {
	enum api_abi abi;
	const uint8_t *memory; /* its bytes from the entry on, as they are now */
	const uint8_t *file;   /* the same, as the file has them; the same pointer: not compared */
	size_t bytes;          /* of both; those behind its size are looked at as padding */
	uint64_t size;         /* of the function: the symbol's, or its FDE's */
	uint64_t address;      /* of the entry, where it runs */
	/*
	 * What others know: how far behind the entry the next function begins, by symbols and FDEs
	 * (0: not known), and where branches from elsewhere lead to: bit N for N bytes behind it.
	 */
	uint64_t next_start;
	uint32_t targets;
};

/* Where the new code will lie. Both within 2 GiB of the function. */
struct entry_places {
	uint64_t slot;  /* what the entry jumps to */
	uint64_t moved; /* the moved code */
};

/* An instruction of the moved code, and where the function was, as an offset from its entry. */
struct entry_place {
	uint32_t moved;
	int64_t original;
	bool first; /* of those that stand for one original instruction */
};

struct entry_move {
	enum entry_refusal refusal;
	uint32_t refused_at; /* offset in the function that the refusal is about */
	/* The rest is 0 where it is refused. */
	uint32_t skip;                      /* 4 behind an endbr64, which stays; else 0 */
	uint32_t bytes;                     /* that are written at entry + skip */
	uint8_t written[ENTRY_WRITTEN_MAX]; /* the jump to the slot, and nops to the next border */
	uint8_t moved[ENTRY_MOVED_MAX];     /* to lie at places->moved */
	uint32_t moved_bytes;
	struct entry_place place[ENTRY_PLACES_MAX]; /* by their offset in the moved code */
	uint32_t n_places;
};

/*
 * Decides, and makes both codes. True where the entry can be diverted. Where it cannot, only
 * move->refusal and move->refused_at are set. Takes time in proportion to the function's size.
 */
bool entry_move(const struct entry_code *code, const struct entry_places *places,
                struct entry_move *move);

/*
 * For a thread that stands in the bytes that will be written: the offset in the moved code at which
 * it goes on. False where `offset` is no border of an instruction among them. At the first border
 * (move->skip) a thread may also stay: there it runs into the jump.
 */
bool entry_move_forward(const struct entry_move *move, uint64_t offset, uint32_t *moved);

/*
 * For a thread that stands in the moved code when the entry is put back: the offset from the entry
 * at which it goes on. It may be outside of the function, where a branch is under way. False where
 * `moved` is no border of an instruction.
 */
bool entry_move_backward(const struct entry_move *move, uint32_t moved, int64_t *original);

#endif
