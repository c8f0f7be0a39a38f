/* SPDX-License-Identifier: MIT */
/*
 * Makes call frame information byte by byte, and compiles it.
 *
 *	struct cfi cfi = begin_cfi();             with a CIE as compilers write it
 *	add_fde(&cfi, 0x1000, 16, BYTES(0x41, 0x0e, 16));
 *	compile(&cfi);
 *	expect_row(&cfi, 0, CFA_SP, 8);
 *	end_cfi(&cfi);
 */
#ifndef CUSCOPE_TESTS_CFI_BUILD_H
#define CUSCOPE_TESTS_CFI_BUILD_H

#include <elf.h>

#include "unit.h"

#include "base/buf.h"
#include "unwind/frame_rows.h"

#define BASE       0x1000u /* of the file; code is from here on */
#define CODE       0x100000u
#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define NO_BYTES   NULL, 0

#define PE_UDATA8 4

struct cfi {
	struct buf bytes;
	size_t cie; /* of FDEs that are added */
	uint16_t machine;
	bool debug, ends_at_zero;
	size_t budget;
	struct frame_code code;
	struct frame_rows rows;
};

static inline void add_bytes(struct cfi *cfi, const void *bytes, size_t len)
{
	buf_add(&cfi->bytes, bytes, len);
}

static inline void add_number(struct cfi *cfi, uint64_t number, size_t bytes)
{
	add_bytes(cfi, &number, bytes);
}

/* An entry's length is known when it ends. */
static inline size_t begin_entry(struct cfi *cfi)
{
	add_number(cfi, 0, 4);
	return cfi->bytes.len;
}

static inline void end_entry(struct cfi *cfi, size_t begin)
{
	uint32_t len = (uint32_t)(cfi->bytes.len - begin);

	memcpy(cfi->bytes.data + begin - 4, &len, 4);
}

/* `data` is that of the letters, after "z". FDEs that are added from now on are this one's. */
static inline void add_cie(struct cfi *cfi, const char *letters, const uint8_t *data,
                           size_t data_len, const uint8_t *program, size_t len)
{
	size_t begin;

	cfi->cie = cfi->bytes.len;
	begin = begin_entry(cfi);
	add_number(cfi, cfi->debug ? UINT32_MAX : 0, 4);
	add_number(cfi, 1, 1);
	add_bytes(cfi, letters, strlen(letters) + 1);
	add_number(cfi, cfi->machine == EM_X86_64 ? 1 : 4, 1); /* code factor */
	add_number(cfi, 0x78, 1);                              /* data factor: -8 */
	add_number(cfi, cfi->machine == EM_X86_64 ? 16 : 30, 1);
	if (*letters == 'z')
		add_number(cfi, data_len, 1);
	add_bytes(cfi, data, data_len);
	add_bytes(cfi, program, len);
	end_entry(cfi, begin);
}

/* On a call the return address is all that is on the stack: CFA = rsp + 8, rip at CFA - 8. */
#define X86_ENTRY BYTES(0x0c, 7, 8, 0x90, 1)
#define ARM_ENTRY BYTES(0x0c, 31, 0)

static inline struct cfi begin_cfi_of(uint16_t machine)
{
	struct cfi cfi = { .machine = machine,
		           .budget = 1 << 20,
		           .code = { .machine = cfi_machine_of(machine),
		                     .base = BASE,
		                     .low = BASE,
		                     .high = BASE + CODE } };

	if (machine == EM_X86_64)
		add_cie(&cfi, "zR", BYTES(PE_UDATA8), X86_ENTRY);
	else
		add_cie(&cfi, "zR", BYTES(PE_UDATA8), ARM_ENTRY);
	return cfi;
}

static inline struct cfi begin_cfi(void)
{
	return begin_cfi_of(EM_X86_64);
}

/* The addresses count from the base, and are written as 8 bytes. */
static inline void add_fde(struct cfi *cfi, uint64_t start, uint64_t size, const uint8_t *program,
                           size_t len)
{
	size_t begin = begin_entry(cfi);

	add_number(cfi, cfi->debug ? cfi->cie : begin - cfi->cie, 4);
	add_number(cfi, cfi->code.base + start, 8);
	add_number(cfi, size, 8);
	if (!cfi->debug)
		add_number(cfi, 0, 1); /* no data for exceptions */
	add_bytes(cfi, program, len);
	end_entry(cfi, begin);
}

static inline struct cfi_section section_of(const struct cfi *cfi)
{
	return (struct cfi_section){ .data = (const uint8_t *)cfi->bytes.data,
		                     .bytes = cfi->bytes.len,
		                     .address = 0x800,
		                     .debug = cfi->debug,
		                     .ends_at_zero = cfi->ends_at_zero };
}

static inline void compile(struct cfi *cfi)
{
	/* Behind the last byte there is nothing that could be read, which sanitizers see. */
	uint8_t *copy = malloc(cfi->bytes.len ? cfi->bytes.len : 1);
	struct cfi_section section = section_of(cfi);

	assert_non_null(copy);
	if (cfi->bytes.len)
		memcpy(copy, cfi->bytes.data, cfi->bytes.len);
	section.data = copy;
	frame_rows_compile(&section, 1, &cfi->code, cfi->budget, &cfi->rows);
	free(copy);
	assert_int_equal(cfi->rows.rows[0].address, 0);
	for (uint32_t i = 1; i < cfi->rows.n_rows; i++) {
		assert_true(cfi->rows.rows[i - 1].address < cfi->rows.rows[i].address);
		assert_true(cfi->rows.rows[i - 1].rule != cfi->rows.rows[i].rule);
	}
}

static inline void end_cfi(struct cfi *cfi)
{
	frame_rows_free(&cfi->rows);
	buf_free(&cfi->bytes);
}

/* What holds at an address, as programs would find it. */
static inline const struct wire_rule *rule_at(const struct cfi *cfi, uint32_t address)
{
	uint32_t i = cfi->rows.n_rows - 1;

	while (cfi->rows.rows[i].address > address)
		i--;
	return &cfi->rows.rules[cfi->rows.rows[i].rule];
}

static inline void expect_row(const struct cfi *cfi, uint32_t address, enum unwind_cfa kind,
                              int32_t cfa)
{
	const struct wire_rule *rule = rule_at(cfi, address);

	assert_int_equal(rule->cfa_kind, kind);
	assert_int_equal(rule->cfa, cfa);
}

static inline void expect_fp(const struct cfi *cfi, uint32_t address, enum unwind_fp kind,
                             int32_t fp)
{
	const struct wire_rule *rule = rule_at(cfi, address);

	assert_int_equal(rule->fp_kind, kind);
	assert_int_equal(rule->fp, fp);
}

/* A row begins here, and this is what holds one byte before. */
static inline bool begins_at(const struct cfi *cfi, uint32_t address)
{
	for (uint32_t i = 0; i < cfi->rows.n_rows; i++) {
		if (cfi->rows.rows[i].address == address)
			return true;
	}
	return false;
}

#endif
