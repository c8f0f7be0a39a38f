/* SPDX-License-Identifier: MIT */
/*
 * Branches that lead into the first bytes of functions, from anywhere in their file: from the cold
 * parts of functions, which lie elsewhere, and from code that is written by hand.
 *
 * Every byte that could begin call, jmp or jcc with 32 bits of distance is taken for one, so none
 * is missed. Some are found that are none, one in some two thousand functions. Those are known by
 * decoding the function that they are in, where call frame information tells where it begins.
 */
#ifndef CUSCOPE_DIVERT_ENTRY_TARGETS_H
#define CUSCOPE_DIVERT_ENTRY_TARGETS_H

#include "divert/entry_file.h"
#include "probe/elf_image.h"

struct entry_targets;

/* `functions` are sorted by address, and stay the caller's. */
struct entry_targets *entry_targets_new(const struct entry_function *functions, size_t count);
void entry_targets_free(struct entry_targets *targets);

/* Looks through all code of the file, up to 512 MiB. */
void entry_targets_search(struct entry_targets *targets, const struct elf_image *image);

/*
 * For each function of the file, at linked addresses [start, end): forgets what was found there and
 * lies within an instruction that is no branch. Decodes 8 MiB at most.
 */
void entry_targets_confirm(struct entry_targets *targets, const struct elf_image *image,
                           uint64_t start, uint64_t end);

/* For each function: bit N for a branch to N bytes behind its entry, N from 1 to 31. */
void entry_targets_take(const struct entry_targets *targets, uint32_t *bits);

#endif
