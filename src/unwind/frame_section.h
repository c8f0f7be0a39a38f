/* SPDX-License-Identifier: MIT */
/*
 * Where an ELF file has its call frame information, and the bytes of it.
 *
 * .eh_frame is in memory with the code, for exceptions, and so in all files that compilers make for
 * x86-64 and AArch64, stripped or not. Assembly code may have .debug_frame only.
 */
#ifndef CUSCOPE_UNWIND_FRAME_SECTION_H
#define CUSCOPE_UNWIND_FRAME_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/elf_image.h"
#include "unwind/cfi_entry.h"

struct frame_section {
	uint64_t offset, bytes; /* in the file */
	uint64_t address;       /* as linked */
	bool debug;
	bool ends_at_zero; /* what follows it may be something else */
};

/*
 * .eh_frame by its section header, else by PT_GNU_EH_FRAME, as the loader finds it: then it may
 * reach as far as its segment. False where there is none.
 */
bool frame_section_find(const struct elf_image *image, struct frame_section *found);

/* .debug_frame; false where there is none, or one that is compressed. */
bool frame_section_find_debug(const struct elf_image *image, struct frame_section *found);

/*
 * Reads its first `bytes` for cfi_entry.h; the caller frees section->data. False where the file
 * does not hold them any more.
 */
bool frame_section_read(const struct elf_image *image, const struct frame_section *found,
                        size_t bytes, struct cfi_section *section);

#endif
