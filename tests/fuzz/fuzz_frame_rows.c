// SPDX-License-Identifier: MIT
/*
 * Rows that stacks are walked by, of any file: sorted, each different from the one before it, with
 * rules that are there, and found again in their tree. What is no ELF file is taken for .eh_frame
 * or .debug_frame itself, of either machine, after a byte of settings.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/frame_rows.h"
#include "unwind/row_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

enum { SETTING_DEBUG = 1, SETTING_ZERO = 2, SETTING_ARM = 4, SETTING_POOR = 8, SETTING_HIGH = 16 };

static void check_rule(const struct wire_rule *rule)
{
	CHECK(rule->cfa_kind <= CFA_OTHER && rule->fp_kind <= FP_GONE && rule->ra_kind <= RA_LR);
	CHECK(rule->cfa_kind != CFA_PLT || (rule->cfa >= 0 && rule->cfa < 16));
}

static void check_rows(const struct frame_rows *rows)
{
	const struct wire_row *row = rows->rows;
	uint32_t n_nodes = row_tree_nodes(row, rows->n_rows);
	struct wire_node *nodes = malloc(n_nodes * sizeof(*nodes));

	CHECK(nodes && n_nodes && rows->n_rows && rows->n_rules && row[0].address == 0);
	row_tree_fill(nodes, row, rows->n_rows, NULL);
	for (uint32_t i = 0; i < rows->n_rules; i++)
		check_rule(&rows->rules[i]);
	for (uint32_t i = 0; i < rows->n_rows; i++) {
		CHECK(row[i].rule < rows->n_rules && row[i].address < UNWIND_UNUSED);
		CHECK(!i ||
		      (row[i - 1].address < row[i].address && row[i - 1].rule != row[i].rule));
		CHECK(row_tree_find(nodes, row[i].address) == row[i].rule);
		CHECK(!i || row_tree_find(nodes, row[i].address - 1) == row[i - 1].rule);
	}
	CHECK(rows->rules[row[rows->n_rows - 1].rule].cfa_kind == CFA_NONE);
	free(nodes);
}

static void use_file(const uint8_t *data, size_t size)
{
	struct frame_rows rows;
	struct err err = { 0 };
	static int fd = -1;
	int rc;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
	rc = frame_rows_read(fd, "input", 1 << 20, &rows, &err);
	CHECK(rc <= 0 && (rc < 0) == (err.text[0] != '\0'));
	if (!rc)
		check_rows(&rows);
	frame_rows_free(&rows);
}

static void use_section(uint8_t settings, const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct cfi_section section = { .data = copy,
		                       .bytes = size,
		                       .address = 0x400000,
		                       .debug = settings & SETTING_DEBUG,
		                       .ends_at_zero = settings & SETTING_ZERO };
	struct frame_code code = { .machine = cfi_machine_of(settings & SETTING_ARM ? EM_AARCH64
		                                                                    : EM_X86_64),
		                   .high = settings & SETTING_HIGH ? UINT64_MAX : 0x800000 };
	struct frame_rows rows;

	CHECK(copy);
	if (size)
		memcpy(copy, data, size);
	frame_rows_compile(&section, 1, &code, settings & SETTING_POOR ? 4096 : 1 << 20, &rows);
	check_rows(&rows);
	frame_rows_free(&rows);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0)
		use_file(data, size);
	else if (size)
		use_section(data[0], data + 1, size - 1);
	return 0;
}
