/* SPDX-License-Identifier: MIT */
/*
 * The rule of one address of an ELF file, where frame_rows.h makes those of all: a few stacks are
 * walked in user space without compiling every file that they pass. The table by which the loader
 * finds a function's entry (PT_GNU_EH_FRAME) finds it here too, so nothing is read twice.
 *
 * Files are those of untrusted programs and are read as elf_image.h says.
 */
#ifndef CUSCOPE_UNWIND_FRAME_FIND_H
#define CUSCOPE_UNWIND_FRAME_FIND_H

#include "bpf/wire_unwind.h"
#include "probe/elf_image.h"
#include "unwind/cfi_entry.h"
#include "unwind/cfi_program.h"

struct frame_find {
	const struct cfi_machine *machine;
	struct cfi_section section;
	const uint8_t *table; /* pairs of 4 bytes: a function's begin, and its entry */
	size_t count;
	uint64_t from; /* both count from here */
	size_t bytes;  /* of memory */
};

/* False where there is no such table, or all of it takes more than `most` bytes. */
bool frame_find_read(const struct elf_image *image, size_t most, struct frame_find *find);
void frame_find_free(struct frame_find *find);

/* Of an address as linked. False where no rule is known. */
bool frame_find_rule(const struct frame_find *find, uint64_t address, struct wire_rule *rule);

#endif
