/* SPDX-License-Identifier: MIT */
/*
 * Compiles the call frame information of one ELF file into rows: from this address on, stacks are
 * walked by that rule (bpf/wire_unwind.h). A byte of .eh_frame makes 0.17 rows on average.
 *
 * Files are those of untrusted programs and are read as elf_image.h says. Memory and time are
 * bounded, whatever the file holds. What makes no sense is left out and counted: a wrong row spoils
 * stacks of the process that has mapped the file, and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire_unwind.h"
#include "probe/elf_image.h"
#include "unwind/cfi_program.h"

/* Instructions and entries that are read of one file, some 20 times those of libLLVM:
 * 0.2 to 0.8 s. */
#define FRAME_WORK_MAX (64u << 20)

struct frame_counts {
	uint32_t fdes;        /* functions, and parts of them, that rows were made of */
	uint32_t bad_fdes;    /* make no sense, from some place on: CFA_OTHER there */
	uint32_t outside;     /* are of no code in this file, as what the linker left out */
	uint32_t unsupported; /* rows of code whose frames no rule describes: CFA_OTHER */
	bool cut;             /* budget, work or numbers of rules did not suffice for all */
};

struct frame_rows {
	uint64_t base; /* the file's lowest linked address, which those of rows count from */
	/* Sorted. The first is at 0, and after the last address that is known there is CFA_NONE. */
	struct wire_row *rows;
	struct wire_rule *rules; /* those that rows name, each once */
	uint32_t n_rows, n_rules;
	struct frame_counts counts;
};

/*
 * Reads `fd` (not closed, not needed afterwards). `what` names the file in sentences. `budget` is
 * how many bytes of memory this may take, the rows among them: three times those of .eh_frame are
 * enough for most files, four times and 16 KiB for all that were met. What does not fit is `cut`,
 * the highest addresses first.
 *
 * A file without call frame information has one row, CFA_NONE. Returns 0, or a negative errno with
 * a sentence as elf_file_open does.
 */
int frame_rows_read(int fd, const char *what, size_t budget, struct frame_rows *rows,
                    struct err *err);
void frame_rows_free(struct frame_rows *rows);

/* Where the code is that frames can be of: as linked, [low, high). */
struct frame_code {
	const struct cfi_machine *machine;
	uint64_t base, low, high;
	uint64_t outermost; /* a function that nobody has called: frame_rows.h; 0: none */
};

/* The same for sections that are in memory: of code in [low, high). Of one address that several
 * have, the first has the say. */
void frame_rows_compile(const struct cfi_section *sections, size_t n_sections,
                        const struct frame_code *code, size_t budget, struct frame_rows *rows);

/* ---- start context ------------------------------------------------------------------------- */

/*
 * Where stacks of makecontext() begin. glibc has it "return" to the first byte of __start_context,
 * which nobody has called: its frame is the outermost one. Its unwind table does not say so, and
 * gdb shows two frames more that are none.
 */

/* As linked; 0: not in this file. Of x86-64 alone. */
uint64_t start_context_find(const struct elf_image *image);
