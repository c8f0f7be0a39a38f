/* SPDX-License-Identifier: MIT */
/*
 * Whether the entry of a function can be diverted, and what to write there.
 *
 * A function is diverted by a jump of five bytes in its first instructions. These are moved: a copy
 * of them, put right for its new place, runs and then jumps back behind the written bytes. Whoever
 * calls the copy calls the function as it was.
 *
 * A kernel probe sits at one byte of the function. The kernel writes there for every process that
 * maps the file, and goes on behind the file's instruction. So that instruction stays in its place:
 *
 *	JUMP_BEHIND_PROBE  The jump lies at the border behind it. What has run by then is undone in
 *	                   the pad that the jump leads to, and runs again in the moved code.
 *	JUMP_BEFORE_PROBE  Where the probe is five bytes or more behind the entry, the jump lies at
 *	                   the entry. The moved code has the probed instruction too.
 *
 * So both may be in place at once, come and go at any time, and the moved code meets no probe.
 *
 * Nothing here touches a process: bytes come in, bytes go out. The bytes are those of a library
 * that may be hostile. What cannot be proven harmless is refused, with the reason.
 *
 * x86-64 only. On AArch64 the entry would be one instruction, and its operand as much as a page
 * wide: none of that is done.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/api.h"

#define ENTRY_JUMP_BYTES   5   /* jmp rel32 */
#define ENTRY_WRITTEN_MAX  20  /* the jump, and the rest of the last instruction that it cuts */
#define ENTRY_MOVED_MAX    128 /* of code that is moved, with its jump back */
#define ENTRY_PLACES_MAX   32
#define ENTRY_PAD_MAX      24           /* lea n(%rsp), %rsp; jmp *0(%rip); an address */
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
	ENTRY_PROBED,
	ENTRY_TWO_PAGES,
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
	/* Kernel probes may come to the byte at `probe`, struct placement's skip, or be there.
	 * Where not `probed`, no probe may come, and the jump lies at the entry. */
	bool probed;
	uint32_t probe;
	/* Another address of the same code was movable: its body is not decoded again. */
	bool known;
};

/* Where the new code will lie. Pad and moved code are within 2 GiB of the function. */
struct entry_places {
	uint64_t pad;   /* what the jump leads to */
	uint64_t moved; /* the moved code */
	uint64_t thunk; /* what the pad leads to, as if the function had just been called */
};

/* An instruction of the moved code, and where the function was, as an offset from its entry. */
struct entry_place {
	uint32_t moved;
	int64_t original;
	bool first; /* of those that stand for one original instruction */
};

enum entry_jump { JUMP_AT_ENTRY, JUMP_BEFORE_PROBE, JUMP_BEHIND_PROBE };

struct entry_move {
	enum entry_refusal refusal;
	uint32_t refused_at; /* offset in the function that the refusal is about */
	/* The rest is 0 where it is refused. */
	enum entry_jump jump;
	uint32_t probe;
	uint32_t skip;                      /* where the jump lies, behind an endbr64 at least */
	uint32_t bytes;                     /* that are written at entry + skip */
	uint8_t written[ENTRY_WRITTEN_MAX]; /* the jump to the pad, and nops to the next border */
	uint8_t pad[ENTRY_PAD_MAX];         /* to lie at places->pad */
	uint32_t pad_bytes;
	uint8_t moved[ENTRY_MOVED_MAX]; /* to lie at places->moved */
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

/* What a thread in the function's first instructions does when the jump is written. */
enum entry_step {
	ENTRY_STAYS,   /* runs into the jump, or is behind it all */
	ENTRY_AGAIN,   /* goes to the jump: nothing has happened that matters, no probe was met */
	ENTRY_MOVES,   /* goes on in the moved code: its call is begun, and the probe has seen it */
	ENTRY_BETWEEN, /* stands within an instruction that would be written over */
};

/* `offset` from the entry. *moved is an offset in the moved code, for ENTRY_MOVES. */
enum entry_step entry_move_step(const struct entry_move *move, uint64_t offset, uint32_t *moved);

/*
 * The same when the function is put back: whether the thread goes to the pad. Its call was seen by
 * the probe, but is the pad's. All others stay, those in pad and moved code too.
 */
bool entry_move_to_pad(const struct entry_move *move, uint64_t offset);

/*
 * For tests: the offset from the entry that an offset in the moved code stands for. It may be
 * outside of the function, where a branch is under way. False: `moved` is no border of an
 * instruction.
 */
bool entry_move_backward(const struct entry_move *move, uint32_t moved, int64_t *original);
