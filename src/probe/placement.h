/* SPDX-License-Identifier: MIT */
/*
 * Where in a function a probe is cheap. The kernel emulates push, nop, call, jmp and jcc, and
 * single-steps everything else at 2.7 to 13 times the cost. So the probe goes on the first emulated
 * instruction at which nothing has changed since the entry: argument registers, stack pointer,
 * return address and stack arguments. Nothing in the function may jump to that instruction. If
 * there is none, the probe goes on the entry.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/api.h"

/* Which instructions this kernel emulates beyond push reg, one-byte nop, call, jmp, jcc rel. */
struct emulation {
	bool nop5; /* multi-byte nop: emulated since about 6.18 only, see measured figures */
};

struct placement {
	uint32_t skip;        /* bytes after the entry */
	bool emulated;        /* cheap at that place */
	const char *why;      /* "entry is push", "nothing emulated in reach", ...: static */
	uint8_t length;       /* of the instruction there; 0: it does not decode */
	char instruction[32]; /* mnemonic at the chosen place */
};

/*
 * `code` holds `len` bytes from the function's entry; `size` is the function's own length (0:
 * unknown, then jumps are looked for in what is there, up to 4 KiB). On AArch64 it always chooses
 * the entry.
 */
void placement_choose(const uint8_t *code, size_t len, uint64_t size, enum api_abi abi,
                      const struct emulation *emulation, struct placement *placement);
