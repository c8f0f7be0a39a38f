/* SPDX-License-Identifier: MIT */
/*
 * Which functions of an ELF file could be diverted: entry_move.h, asked for the code that the file
 * has. What else of the file speaks of a function's first bytes is found first: symbols, FDEs, and
 * all that looks like a branch with a distance of 32 bits.
 *
 * The file is read as elf_image.h says. Whatever it holds, 8 MiB of functions are decoded at most
 * and 512 MiB of code are searched for branches.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "divert/entry_move.h"

struct entry_function {
	uint64_t address; /* as linked */
	uint64_t offset;  /* in the file; the asker's own */
	uint64_t size;    /* 0: that of its FDE */
	bool probed;      /* as of struct entry_code */
	uint32_t probe;
	bool keep; /* its code is wanted, if it can be moved */
	/* the answer */
	enum entry_refusal refusal;
	uint32_t refused_at;  /* offset from the entry */
	enum entry_jump jump; /* as of struct entry_move */
	uint32_t skip, bytes;
	/* what the file says of it, as of struct entry_code */
	uint64_t known_size; /* the larger one of symbol and FDE; 0: none */
	uint64_t next_start;
	uint32_t targets;
	uint8_t *
		code; /* of known_size, and up to 16 bytes behind it; the asker's; NULL: not kept */
	size_t code_bytes;
};

/*
 * Fills in the answers, for moved code that would lie right behind the file's segments. `functions`
 * are sorted by address. Returns 0 or, with nothing filled in, a negative errno as elf_file_open.
 */
int entry_file_judge(int fd, const char *what, struct entry_function *functions, size_t count,
                     struct err *err);

/* ---- entry module -------------------------------------------------------------------------- */

/* Which of the CUDA functions of a library, or of a program with the runtime, could be diverted. */

/*
 * The functions that elf_file_functions lists, in its order; the caller frees *functions. Returns 0
 * or a negative errno, with *functions NULL. `fd` is not closed.
 */
int entry_module_judge(int fd, const char *what, struct entry_function **functions, size_t *count,
                       struct err *err);
