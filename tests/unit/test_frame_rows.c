// SPDX-License-Identifier: MIT
/* Rows of whole sections: functions beside, in and over each other, and entries that are wrong. */
#include "cfi_build.h"

#define GROW BYTES(0x44, 0x0e, 16) /* from its 4th byte on, 8 bytes more are on the stack */

/* ---- functions ------------------------------------------------------------------------------- */

static void test_equal_neighbours_are_one_row(void **state)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0, 16, NO_BYTES);
	add_fde(&cfi, 16, 16, BYTES(0x44, 0x0e, 8, 0x44, 0x86, 2, 0x40, 0xc6));
	add_fde(&cfi, 47, 16, NO_BYTES); /* after 15 bytes of padding */
	compile(&cfi);
	assert_int_equal(cfi.rows.n_rows, 2);
	expect_row(&cfi, 40, CFA_SP, 8);
	expect_row(&cfi, 63, CFA_NONE, 0);
	assert_int_equal(cfi.rows.n_rules, 2);
	end_cfi(&cfi);
}

static void test_nothing_is_known_of_what_no_function_has(void **state)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0x20, 16, NO_BYTES);
	add_fde(&cfi, 0x40, 16, NO_BYTES); /* after 16 bytes */
	compile(&cfi);
	expect_row(&cfi, 0x1f, CFA_NONE, 0);
	expect_row(&cfi, 0x2f, CFA_SP, 8);
	expect_row(&cfi, 0x30, CFA_NONE, 0);
	expect_row(&cfi, 0x40, CFA_SP, 8);
	expect_row(&cfi, 0x50, CFA_NONE, 0);
	end_cfi(&cfi);
}

static void test_functions_in_any_order(void **state)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0x200, 16, GROW);
	add_fde(&cfi, 0, 16, GROW);
	add_fde(&cfi, 0x100, 16, GROW);
	compile(&cfi);
	for (uint32_t at = 0; at < 0x300; at += 0x100) {
		expect_row(&cfi, at + 3, CFA_SP, 8);
		expect_row(&cfi, at + 4, CFA_SP, 16);
		expect_row(&cfi, at + 16, CFA_NONE, 0);
	}
	assert_int_equal(cfi.rows.counts.fdes, 3);
	end_cfi(&cfi);
}

static void test_a_function_within_another(void **state)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0, 64, BYTES(0x44, 0x0e, 16, 0x54, 0x0e, 24, 0x4c, 0x0e, 32));
	add_fde(&cfi, 16, 16, BYTES(0x0e, 48));
	compile(&cfi);
	expect_row(&cfi, 15, CFA_SP, 16);
	expect_row(&cfi, 16, CFA_SP, 48);
	expect_row(&cfi, 31, CFA_SP, 48);
	expect_row(&cfi, 32, CFA_SP, 24);
	expect_row(&cfi, 36, CFA_SP, 32);
	expect_row(&cfi, 64, CFA_NONE, 0);
	end_cfi(&cfi);
}

static void test_functions_that_overlap(void **state)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0, 32, BYTES(0x44, 0x0e, 16, 0x5a, 0x0e, 24));
	add_fde(&cfi, 16, 32, BYTES(0x0e, 48));
	compile(&cfi);
	expect_row(&cfi, 15, CFA_SP, 16);
	expect_row(&cfi, 16, CFA_SP, 48);
	expect_row(&cfi, 47, CFA_SP, 48);
	expect_row(&cfi, 48, CFA_NONE, 0);
	end_cfi(&cfi);
}

static void test_of_two_at_one_place_the_first_counts(void **state)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0, 16, BYTES(0x0e, 16));
	add_fde(&cfi, 0, 32, BYTES(0x0e, 24));
	compile(&cfi);
	expect_row(&cfi, 0, CFA_SP, 16);
	expect_row(&cfi, 16, CFA_NONE, 0);
	assert_int_equal(cfi.rows.counts.fdes, 1);
	end_cfi(&cfi);
}

static void test_a_signal_is_one_row_whatever_its_program_says(void **state)
{
	struct cfi cfi = begin_cfi();

	add_cie(&cfi, "zRS", BYTES(PE_UDATA8), X86_ENTRY);
	add_fde(&cfi, 0, 16, BYTES(0x0f, 1, 0x96, 0x44, 0x3f));
	compile(&cfi);
	expect_row(&cfi, 0, CFA_SIGNAL, 0);
	expect_row(&cfi, 15, CFA_SIGNAL, 0);
	assert_int_equal(cfi.rows.n_rows, 2);
	assert_int_equal(cfi.rows.counts.bad_fdes, 0);
	end_cfi(&cfi);
}

static void test_what_is_no_code_of_the_file_is_left_out(void **state)
{
	struct cfi cfi = begin_cfi();

	cfi.code.low = BASE + 0x100;
	add_fde(&cfi, 0, 16, NO_BYTES);
	add_fde(&cfi, CODE - 8, 16, NO_BYTES);
	add_fde(&cfi, 0x200, 0, GROW);
	add_fde(&cfi, (uint64_t)0 - BASE, 16, NO_BYTES); /* at 0, as linkers leave behind */
	compile(&cfi);
	assert_int_equal(cfi.rows.n_rows, 1);
	assert_int_equal(cfi.rows.counts.outside, 4);
	end_cfi(&cfi);
}

static void test_high_addresses_count_from_the_base(void **state)
{
	struct cfi cfi = begin_cfi();

	cfi.code.base = 0xffffffff80000000;
	cfi.code.low = cfi.code.base;
	cfi.code.high = UINT64_MAX;
	add_fde(&cfi, 0x1000, 16, GROW);
	add_fde(&cfi, 0x7ffffff0, 8, GROW);
	add_fde(&cfi, 0x7ffffff8, 8, GROW); /* its end is no number */
	compile(&cfi);
	expect_row(&cfi, 0x1004, CFA_SP, 16);
	expect_row(&cfi, 0x7ffffff4, CFA_SP, 16);
	expect_row(&cfi, 0x7ffffff8, CFA_NONE, 0);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	end_cfi(&cfi);
}

static void test_code_beyond_4_gib_is_left_out(void **state)
{
	struct cfi cfi = begin_cfi();

	cfi.code.high = UINT64_MAX;
	add_fde(&cfi, 0xffffffee, 16, GROW);
	add_fde(&cfi, 0xfffffff0, 16, GROW);
	add_fde(&cfi, 0x100000000, 16, GROW);
	compile(&cfi);
	expect_row(&cfi, 0xfffffff2, CFA_SP, 16);
	expect_row(&cfi, 0xfffffffe, CFA_NONE, 0);
	assert_int_equal(cfi.rows.counts.outside, 2);
	end_cfi(&cfi);
}

/* ---- entries --------------------------------------------------------------------------------- */

static void expect_good(struct cfi *cfi)
{
	compile(cfi);
	expect_row(cfi, 3, CFA_SP, 8);
	expect_row(cfi, 4, CFA_SP, 16);
	expect_row(cfi, 16, CFA_NONE, 0);
	assert_int_equal(cfi->rows.counts.bad_fdes, 0);
	end_cfi(cfi);
}

/* A CIE that makes no sense has no function, and the one after it is none the worse for it. */
static void expect_bad_cie(const char *letters, const uint8_t *data, size_t data_len)
{
	struct cfi cfi = begin_cfi();

	add_cie(&cfi, letters, data, data_len, X86_ENTRY);
	add_fde(&cfi, 32, 16, GROW);
	add_cie(&cfi, "zR", BYTES(PE_UDATA8), X86_ENTRY);
	add_fde(&cfi, 0, 16, GROW);
	compile(&cfi);
	expect_row(&cfi, 4, CFA_SP, 16);
	expect_row(&cfi, 36, CFA_NONE, 0);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	end_cfi(&cfi);
}

static void expect_good_cie(const char *letters, const uint8_t *data, size_t data_len)
{
	struct cfi cfi = begin_cfi();

	add_cie(&cfi, letters, data, data_len, X86_ENTRY);
	add_fde(&cfi, 0, 16, GROW);
	expect_good(&cfi);
}

static void test_letters_of_cies(void **state)
{
	expect_good_cie("zPLR", BYTES(0x9b, 1, 2, 3, 4, 0x1b, PE_UDATA8));
	expect_good_cie("zPR", BYTES(0xff, PE_UDATA8));
	expect_good_cie("zRB", BYTES(PE_UDATA8));
	expect_good_cie("zRG", BYTES(PE_UDATA8));
	expect_good_cie("zR", BYTES(PE_UDATA8, 9, 9)); /* and more that nobody asks for */
	expect_bad_cie("zX", BYTES(PE_UDATA8));
	expect_bad_cie("R", BYTES(PE_UDATA8));
	expect_bad_cie("eh", BYTES(0, 0, 0, 0, 0, 0, 0, 0));
	expect_bad_cie("zR", NO_BYTES);
	expect_bad_cie("zRRRRRRRRRRRRRRR", BYTES(4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4));
}

/* It fills up to a place that 8 divides, so the offset of what follows matters. */
static void test_a_personality_that_is_aligned(void **state)
{
	struct cfi cfi = begin_cfi();
	uint8_t data[32] = { 0x50 };
	/* length, id, version, "zPR", three numbers, the data's length, 0x50 */
	size_t at = 0x800 + cfi.bytes.len + 4 + 4 + 1 + 4 + 3 + 1 + 1, fill = -at & 7;

	data[1 + fill + 8] = PE_UDATA8;
	add_cie(&cfi, "zPR", data, 1 + fill + 8 + 1, X86_ENTRY);
	add_fde(&cfi, 0, 16, GROW);
	expect_good(&cfi);
}

/* A function's address and size in some encoding; the section is at 0x800. */
static struct cfi encoded(uint8_t encoding, uint64_t address, size_t size, bool relative)
{
	struct cfi cfi = begin_cfi();
	size_t begin;

	add_cie(&cfi, "zR", &encoding, 1, X86_ENTRY);
	begin = begin_entry(&cfi);
	add_number(&cfi, begin - cfi.cie, 4);
	add_number(&cfi, address - (relative ? 0x800 + cfi.bytes.len : 0), size);
	add_number(&cfi, 16, size);
	add_number(&cfi, 0, 1);
	add_bytes(&cfi, BYTES(0x44, 0x0e, 16));
	end_entry(&cfi, begin);
	return cfi;
}

static void test_encodings_of_addresses(void **state)
{
	static const struct {
		uint8_t encoding;
		size_t size;
	} forms[] = { { 0, 8 },    { 2, 2 },    { 3, 4 },    { 4, 8 },    { 0x0a, 2 }, { 0x0b, 4 },
		      { 0x0c, 8 }, { 0x10, 8 }, { 0x12, 2 }, { 0x1b, 4 }, { 0x1c, 8 } };
	struct cfi cfi;

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		cfi = encoded(forms[i].encoding, BASE, forms[i].size, forms[i].encoding & 0x10);
		expect_good(&cfi);
	}
	cfi = begin_cfi();
	add_cie(&cfi, "zR", BYTES(1), X86_ENTRY);
	add_bytes(&cfi, BYTES(12, 0, 0, 0, 25, 0, 0, 0, 0x80, 0x20, 16, 0, 0x44, 0x0e, 16, 0));
	memcpy(cfi.bytes.data + cfi.bytes.len - 12, &(uint32_t){ cfi.bytes.len - 12 - cfi.cie }, 4);
	expect_good(&cfi);
}

static void expect_encoding_bad(uint8_t encoding)
{
	struct cfi cfi = encoded(encoding, BASE, 8, false);

	compile(&cfi);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	assert_int_equal(cfi.rows.n_rows, 1);
	end_cfi(&cfi);
}

static void test_encodings_that_no_linker_writes(void **state)
{
	expect_encoding_bad(0x05);
	expect_encoding_bad(0x20);
	expect_encoding_bad(0x3b);
	expect_encoding_bad(0x90);
	expect_encoding_bad(0xff);
}

static void test_versions_of_cies(void **state)
{
	struct cfi cfi = begin_cfi();

	cfi.bytes.data[8] = 3; /* the return address is a LEB128 number then: the same byte */
	add_fde(&cfi, 0, 16, GROW);
	expect_good(&cfi);
	cfi = begin_cfi();
	cfi.bytes.data[8] = 2;
	add_fde(&cfi, 0, 16, GROW);
	compile(&cfi);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	end_cfi(&cfi);
}

/* DWARF 4 adds the size of addresses and of segments; no letters, so addresses are of 8 bytes. */
static void test_a_cie_of_dwarf_4(void **state)
{
	struct cfi cfi = { .machine = EM_X86_64, .debug = true, .budget = 1 << 20 };
	size_t begin;

	cfi.code = (struct frame_code){ cfi_machine_of(EM_X86_64), BASE, BASE, BASE + CODE };
	begin = begin_entry(&cfi);
	add_number(&cfi, UINT32_MAX, 4);
	add_bytes(&cfi, BYTES(4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1));
	end_entry(&cfi, begin);
	add_fde(&cfi, 0, 16, GROW);
	expect_good(&cfi);
}

/* .debug_frame of files that are larger than 4 GiB. */
static void test_entries_with_lengths_of_64_bits(void **state)
{
	struct cfi cfi = { .machine = EM_X86_64, .debug = true, .budget = 1 << 20 };

	cfi.code = (struct frame_code){ cfi_machine_of(EM_X86_64), BASE, BASE, BASE + CODE };
	add_number(&cfi, UINT32_MAX, 4);
	add_number(&cfi, 8 + 10, 8);
	add_number(&cfi, UINT64_MAX, 8);
	add_bytes(&cfi, BYTES(1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1));
	add_number(&cfi, UINT32_MAX, 4);
	add_number(&cfi, 8 + 16 + 3, 8);
	add_number(&cfi, 0, 8);
	add_number(&cfi, BASE, 8);
	add_number(&cfi, 16, 8);
	add_bytes(&cfi, BYTES(0x44, 0x0e, 16));
	expect_good(&cfi);
}

static void test_a_return_address_in_another_register(void **state)
{
	struct cfi cfi = begin_cfi();

	cfi.bytes.data[14] = 30; /* of AArch64 */
	add_fde(&cfi, 0, 16, GROW);
	compile(&cfi);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	end_cfi(&cfi);
}

/* The way to its CIE leads to `target`, an offset of the section. */
static void expect_bad_cie_at(int64_t target)
{
	struct cfi cfi = begin_cfi();
	size_t first = cfi.bytes.len;
	uint32_t id;

	add_fde(&cfi, 0, 16, GROW);
	add_fde(&cfi, 32, 16, GROW);
	id = (uint32_t)((int64_t)first + 4 - target);
	memcpy(cfi.bytes.data + first + 4, &id, 4);
	compile(&cfi);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	expect_row(&cfi, 4, CFA_NONE, 0);
	expect_row(&cfi, 36, CFA_SP, 16);
	end_cfi(&cfi);
}

static void test_ways_that_lead_to_no_cie(void **state)
{
	expect_bad_cie_at(24);   /* itself */
	expect_bad_cie_at(4);    /* the middle of a CIE */
	expect_bad_cie_at(50);   /* behind it */
	expect_bad_cie_at(-100); /* before the section */
	expect_bad_cie_at(1 << 20);
}

static void test_no_length_is_no_end_where_the_size_is_known(void **state)
{
	struct cfi cfi = begin_cfi();

	add_number(&cfi, 0, 4);
	add_number(&cfi, 0, 4);
	add_fde(&cfi, 0, 16, GROW);
	add_number(&cfi, 0, 4);
	expect_good(&cfi);
}

static void test_no_length_is_the_end_where_it_is_not(void **state)
{
	struct cfi cfi = begin_cfi();

	cfi.ends_at_zero = true;
	add_fde(&cfi, 0, 16, GROW);
	add_number(&cfi, 0, 4);
	add_number(&cfi, 0x12345678, 4);
	add_fde(&cfi, 32, 16, GROW);
	compile(&cfi);
	expect_row(&cfi, 4, CFA_SP, 16);
	expect_row(&cfi, 36, CFA_NONE, 0);
	assert_int_equal(cfi.rows.counts.bad_fdes, 0);
	end_cfi(&cfi);
}

static void test_a_length_beyond_the_end_is_the_last_one(void **state)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0, 16, GROW);
	add_number(&cfi, 0x7fffffff, 4);
	add_fde(&cfi, 32, 16, GROW);
	compile(&cfi);
	expect_row(&cfi, 4, CFA_SP, 16);
	expect_row(&cfi, 36, CFA_NONE, 0);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	end_cfi(&cfi);
}

static void test_sections_cut_at_any_byte(void **state)
{
	struct cfi cfi = begin_cfi();
	size_t whole, bad = 0;

	add_fde(&cfi, 0, 16, GROW);
	add_fde(&cfi, 32, 16, GROW);
	whole = cfi.bytes.len;
	for (size_t len = 0; len < whole; len++) {
		cfi.bytes.len = len;
		compile(&cfi);
		assert_true(cfi.rows.counts.fdes < 2);
		bad += cfi.rows.counts.bad_fdes;
		frame_rows_free(&cfi.rows);
	}
	assert_true(bad > whole / 2);
	end_cfi(&cfi);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void test_more_rules_than_there_may_be(void **state)
{
	struct cfi cfi = begin_cfi();

	for (uint32_t i = 0; i < UNWIND_RULES_MAX + 100; i++)
		add_fde(&cfi, i * 4, 4,
		        BYTES(0x0e, 0x80 | (i & 0x7f), 0x80 | (i >> 7 & 0x7f), 0x80 | i >> 14, 1));
	cfi.budget = 8 << 20;
	compile(&cfi);
	assert_true(cfi.rows.n_rules <= UNWIND_RULES_MAX);
	assert_true(cfi.rows.n_rules > UNWIND_RULES_MAX * 9 / 10);
	assert_true(cfi.rows.counts.cut);
	assert_int_equal(rule_at(&cfi, (UNWIND_RULES_MAX + 99) * 4)->cfa_kind, CFA_NONE);
	end_cfi(&cfi);
}

static void test_a_budget_that_is_too_small(void **state)
{
	struct cfi cfi = begin_cfi();
	const struct wire_row *last;

	for (uint32_t i = 0; i < 4000; i++)
		add_fde(&cfi, i * 16, 16, GROW);
	cfi.budget = 100000; /* the functions take 98,304, and later half; the rows 64,000 */
	compile(&cfi);
	assert_true(cfi.rows.counts.cut);
	assert_true(cfi.rows.n_rows > 4000 && cfi.rows.n_rows < 8000);
	last = &cfi.rows.rows[cfi.rows.n_rows - 1];
	assert_int_equal(rule_at(&cfi, last->address)->cfa_kind, CFA_NONE);
	expect_row(&cfi, last->address - 1, CFA_SP, last->address % 16 ? 8 : 16);
	frame_rows_free(&cfi.rows);

	cfi.budget = 4000 * 4; /* not even for the functions */
	compile(&cfi);
	assert_true(cfi.rows.counts.cut);
	frame_rows_free(&cfi.rows);

	cfi.budget = 0;
	compile(&cfi);
	assert_true(cfi.rows.counts.cut);
	assert_int_equal(cfi.rows.n_rows, 1);
	end_cfi(&cfi);
}

/* A long program around many functions is gone through anew for each of them. */
static void test_work_without_end(void **state)
{
	static const uint8_t nothing[64 << 10];
	struct cfi cfi = begin_cfi();

	cfi.budget = 64 << 20;
	cfi.code.high = BASE + (1 << 20);
	add_fde(&cfi, 0, 1 << 20, nothing, sizeof(nothing));
	for (uint32_t i = 1; i < 4000; i++)
		add_fde(&cfi, i * 64, 16, BYTES(0x0e, 16));
	compile(&cfi);
	assert_true(cfi.rows.counts.cut);
	assert_true(cfi.rows.counts.fdes > 900 && cfi.rows.counts.fdes < 1100);
	assert_int_equal(cfi.rows.counts.bad_fdes, 0);
	expect_row(&cfi, 800 * 64, CFA_SP, 16);
	expect_row(&cfi, 3000 * 64, CFA_NONE, 0);
	end_cfi(&cfi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_neighbours_are_one_row),
		cmocka_unit_test(test_nothing_is_known_of_what_no_function_has),
		cmocka_unit_test(test_functions_in_any_order),
		cmocka_unit_test(test_a_function_within_another),
		cmocka_unit_test(test_functions_that_overlap),
		cmocka_unit_test(test_of_two_at_one_place_the_first_counts),
		cmocka_unit_test(test_a_signal_is_one_row_whatever_its_program_says),
		cmocka_unit_test(test_what_is_no_code_of_the_file_is_left_out),
		cmocka_unit_test(test_high_addresses_count_from_the_base),
		cmocka_unit_test(test_code_beyond_4_gib_is_left_out),
		cmocka_unit_test(test_letters_of_cies),
		cmocka_unit_test(test_a_personality_that_is_aligned),
		cmocka_unit_test(test_encodings_of_addresses),
		cmocka_unit_test(test_encodings_that_no_linker_writes),
		cmocka_unit_test(test_versions_of_cies),
		cmocka_unit_test(test_a_cie_of_dwarf_4),
		cmocka_unit_test(test_entries_with_lengths_of_64_bits),
		cmocka_unit_test(test_a_return_address_in_another_register),
		cmocka_unit_test(test_ways_that_lead_to_no_cie),
		cmocka_unit_test(test_no_length_is_no_end_where_the_size_is_known),
		cmocka_unit_test(test_no_length_is_the_end_where_it_is_not),
		cmocka_unit_test(test_a_length_beyond_the_end_is_the_last_one),
		cmocka_unit_test(test_sections_cut_at_any_byte),
		cmocka_unit_test(test_more_rules_than_there_may_be),
		cmocka_unit_test(test_a_budget_that_is_too_small),
		cmocka_unit_test(test_work_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
