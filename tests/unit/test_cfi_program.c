// SPDX-License-Identifier: MIT
/* Each instruction of call frame information, alone. */
#include "cfi_build.h"

/* A function of 32 bytes at 0 with this program; compiled. */
static struct cfi program(const uint8_t *bytes, size_t len)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0, 32, bytes, len);
	compile(&cfi);
	return cfi;
}

/* What it says of the function's begin, where nothing else comes. */
static void expect_cfa(const uint8_t *bytes, size_t len, enum unwind_cfa kind, int32_t cfa, int add)
{
	struct cfi cfi = program(bytes, len);

	expect_row(&cfi, 0, kind, cfa);
	assert_int_equal(rule_at(&cfi, 0)->add, add);
	assert_int_equal(cfi.rows.counts.bad_fdes, 0);
	assert_int_equal(cfi.rows.counts.unsupported, kind == CFA_OTHER);
	end_cfi(&cfi);
}

static void expect_saved(const uint8_t *bytes, size_t len, enum unwind_fp kind, int32_t fp)
{
	struct cfi cfi = program(bytes, len);

	expect_row(&cfi, 0, CFA_SP, 8);
	expect_fp(&cfi, 0, kind, fp);
	assert_int_equal(cfi.rows.counts.unsupported, 0);
	end_cfi(&cfi);
}

/* From the 4th byte on nothing is known, since the program makes no sense from there on. */
static void expect_bad(const uint8_t *bytes, size_t len)
{
	struct cfi cfi = program(bytes, len);

	expect_row(&cfi, 3, CFA_SP, 8);
	expect_row(&cfi, 4, CFA_OTHER, 0);
	expect_row(&cfi, 31, CFA_OTHER, 0);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	end_cfi(&cfi);
}

static void test_a_function_begins_as_its_cie_says(void **state)
{
	struct cfi cfi = program(NO_BYTES);

	expect_row(&cfi, 0, CFA_SP, 8);
	expect_row(&cfi, 31, CFA_SP, 8);
	expect_fp(&cfi, 0, FP_SAME, 0);
	assert_int_equal(rule_at(&cfi, 0)->ra_kind, RA_CFA);
	assert_int_equal(rule_at(&cfi, 0)->ra, -8);
	expect_row(&cfi, 32, CFA_NONE, 0);
	assert_int_equal(cfi.rows.n_rows, 2);
	assert_int_equal(cfi.rows.counts.fdes, 1);
	end_cfi(&cfi);
}

static void expect_step(const uint8_t *bytes, size_t len, uint32_t to)
{
	struct cfi cfi = program(bytes, len);

	expect_row(&cfi, to - 1, CFA_SP, 8);
	expect_row(&cfi, to, CFA_SP, 16);
	assert_int_equal(cfi.rows.n_rows, 3);
	assert_int_equal(cfi.rows.counts.bad_fdes, 0);
	end_cfi(&cfi);
}

static void test_all_ways_to_advance(void **state)
{
	expect_step(BYTES(0x45, 0x0e, 16), 5);
	expect_step(BYTES(0x02, 6, 0x0e, 16), 6);
	expect_step(BYTES(0x03, 7, 0, 0x0e, 16), 7);
	expect_step(BYTES(0x04, 8, 0, 0, 0, 0x0e, 16), 8);
	expect_step(BYTES(0x1d, 9, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16), 9);
	expect_step(BYTES(0x01, 0x0a, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16), 10);
	expect_step(BYTES(0x44, 0x40, 0x41, 0x0e, 16), 5);
}

static void test_set_loc_does_not_go_back(void **state)
{
	expect_bad(BYTES(0x44, 0x01, 0x02, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16));
}

static void test_advancing_beyond_the_function_ends_it(void **state)
{
	struct cfi cfi = program(BYTES(0x02, 200, 0x0e, 16, 0x41, 0x0e, 24));

	expect_row(&cfi, 31, CFA_SP, 8);
	expect_row(&cfi, 32, CFA_NONE, 0);
	assert_int_equal(cfi.rows.counts.bad_fdes, 0);
	end_cfi(&cfi);
}

static void test_the_cfa_by_register_and_offset(void **state)
{
	expect_cfa(BYTES(0x0c, 6, 16), CFA_FP, 16, 0);
	expect_cfa(BYTES(0x0c, 7, 0x80, 1), CFA_SP, 128, 0);
	expect_cfa(BYTES(0x12, 6, 0x7e), CFA_FP, 16, 0);
	expect_cfa(BYTES(0x0d, 6), CFA_FP, 8, 0);
	expect_cfa(BYTES(0x0e, 32), CFA_SP, 32, 0);
	expect_cfa(BYTES(0x13, 0x7c), CFA_SP, 32, 0);
	expect_cfa(BYTES(0x0c, 10, 0), CFA_R10, 0, 0);
	expect_cfa(BYTES(0x0c, 0, 16), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x2e, 16), CFA_SP, 8, 0);
	expect_cfa(BYTES(0, 0, 0x2e, 0x80, 0x10, 0x0e, 16), CFA_SP, 16, 0);
}

static void test_the_cfa_by_expression(void **state)
{
	/* breg7 8; breg16 0; lit15; and; lit11 or lit10; ge; lit3; shl; plus */
	expect_cfa(BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22),
	           CFA_PLT, 11, 0);
	expect_cfa(BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22),
	           CFA_PLT, 10, 0);
	expect_cfa(BYTES(0x0f, 3, 0x76, 0x70, 0x06), CFA_AT_FP, -16, 0);
	expect_cfa(BYTES(0x0f, 5, 0x77, 24, 0x06, 0x23, 8), CFA_AT_SP, 24, 8);
	expect_cfa(BYTES(0x0f, 4, 0x92, 6, 0x78, 0x06), CFA_AT_FP, -8, 0);
	expect_cfa(BYTES(0x0f, 5, 0x77, 0, 0x06, 0x38, 0x22), CFA_AT_SP, 0, 8);
	expect_cfa(BYTES(0x0f, 7, 0x77, 0, 0x06, 0x0b, 0xf0, 0xff, 0x22), CFA_AT_SP, 0, -16);
	expect_cfa(BYTES(0x0f, 4, 0x77, 8, 0x23, 8), CFA_SP, 16, 0);
}

static void test_expressions_that_are_not_understood(void **state)
{
	expect_cfa(BYTES(0x0f, 0), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x0f, 1, 0x96), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x0f, 1, 0x77), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x0f, 4, 0x77, 0, 0x06, 0x06), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x0f, 4, 0x77, 0, 0x06, 0x38), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x0f, 3, 0x70, 0, 0x06), CFA_OTHER, 0, 0);
	/* it adds 100,000 to what is read: too large for the rule's field */
	expect_cfa(BYTES(0x0f, 7, 0x77, 0, 0x06, 0x23, 0xa0, 0x8d, 6), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x32, 0x24, 0x22),
	           CFA_OTHER, 0, 0);
}

static void test_a_part_of_the_cfa_is_changed_only_where_there_are_parts(void **state)
{
	expect_bad(BYTES(0x44, 0x0f, 3, 0x76, 0x70, 0x06, 0x0e, 16));
	expect_bad(BYTES(0x44, 0x0f, 3, 0x76, 0x70, 0x06, 0x0d, 6));
	expect_bad(BYTES(0x44, 0x0f, 3, 0x76, 0x70, 0x06, 0x13, 0x7e));
}

static void test_where_the_frame_pointer_is(void **state)
{
	expect_saved(BYTES(0x86, 2), FP_CFA, -16);
	expect_saved(BYTES(0x05, 6, 3), FP_CFA, -24);
	expect_saved(BYTES(0x11, 6, 0x7f), FP_CFA, 8);
	expect_saved(BYTES(0x2f, 6, 2), FP_CFA, 16);
	expect_saved(BYTES(0x10, 6, 2, 0x76, 0x70), FP_AT_FP, -16);
	expect_saved(BYTES(0x10, 6, 2, 0x77, 0), FP_GONE, 0);
	expect_saved(BYTES(0x10, 6, 3, 0x76, 0, 0x06), FP_GONE, 0);
	expect_saved(BYTES(0x16, 6, 2, 0x76, 0), FP_GONE, 0);
	expect_saved(BYTES(0x14, 6, 2), FP_GONE, 0);
	expect_saved(BYTES(0x15, 6, 2), FP_GONE, 0);
	expect_saved(BYTES(0x09, 6, 3), FP_GONE, 0);
	expect_saved(BYTES(0x07, 6), FP_GONE, 0);
	expect_saved(BYTES(0x86, 2, 0x08, 6), FP_SAME, 0);
	expect_saved(BYTES(0x86, 2, 0xc6), FP_SAME, 0);
	expect_saved(BYTES(0x86, 2, 0x06, 6), FP_SAME, 0);
	expect_saved(BYTES(0x05, 6, 0xff, 0xff, 0xff, 0xff, 0x0f), FP_GONE, 0);
}

static void test_other_registers_do_not_matter(void **state)
{
	expect_saved(BYTES(0x83, 2, 0x07, 12, 0x0a, 0xc3, 0x0b, 0x16, 3, 1, 0), FP_SAME, 0);
	expect_saved(BYTES(0x14, 7, 0), FP_SAME, 0); /* rsp is the CFA, as it is anyway */
}

static void test_restore_is_to_what_the_cie_said(void **state)
{
	struct cfi cfi = begin_cfi();

	add_cie(&cfi, "zR", BYTES(PE_UDATA8), BYTES(0x0c, 7, 16, 0x90, 1, 0x86, 2));
	add_fde(&cfi, 0, 32, BYTES(0x08, 6, 0x41, 0xc6));
	compile(&cfi);
	expect_fp(&cfi, 0, FP_SAME, 0);
	expect_fp(&cfi, 1, FP_CFA, -16);
	end_cfi(&cfi);
}

static void test_return_addresses(void **state)
{
	expect_cfa(BYTES(0x07, 16), CFA_STOP, 0, 0);
	expect_cfa(BYTES(0x90, 2), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x09, 16, 2), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x08, 16), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x14, 7, 1), CFA_OTHER, 0, 0); /* rsp is not the CFA */
	expect_cfa(BYTES(0x87, 3), CFA_OTHER, 0, 0);
}

static void test_states_are_remembered_within_another(void **state)
{
	struct cfi cfi = program(
		BYTES(0x0a, 0x41, 0x0e, 16, 0x0a, 0x41, 0x0e, 24, 0x86, 2, 0x41, 0x0b, 0x41, 0x0b));

	expect_row(&cfi, 0, CFA_SP, 8);
	expect_row(&cfi, 1, CFA_SP, 16);
	expect_row(&cfi, 2, CFA_SP, 24);
	expect_fp(&cfi, 2, FP_CFA, -16);
	expect_row(&cfi, 3, CFA_SP, 16);
	expect_fp(&cfi, 3, FP_SAME, 0);
	expect_row(&cfi, 4, CFA_SP, 8);
	end_cfi(&cfi);
}

static void test_states_that_were_not_remembered(void **state)
{
	expect_bad(BYTES(0x44, 0x0b));
	expect_bad(BYTES(0x44, 0x0a, 0x0b, 0x0b));
	expect_bad(BYTES(0x44, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10));
}

static void test_instructions_that_nobody_knows(void **state)
{
	expect_bad(BYTES(0x44, 0x3f));
	expect_bad(BYTES(0x44, 0x2d)); /* of AArch64 */
	expect_bad(BYTES(0x44, 0x1c, 0));
}

static void test_programs_that_are_cut_short(void **state)
{
	expect_bad(BYTES(0x44, 0x0e));
	expect_bad(BYTES(0x44, 0x0e, 0x80));
	expect_bad(BYTES(0x44, 0x0c, 7));
	expect_bad(BYTES(0x44, 0x04, 1, 2, 3));
	expect_bad(BYTES(0x44, 0x01, 1));
	expect_bad(BYTES(0x44, 0x86));
	expect_bad(BYTES(0x44, 0x0f, 3, 0x77, 8));
	expect_bad(BYTES(0x44, 0x10, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1));
	expect_bad(BYTES(0x44, 0x16, 6, 9, 0));
}

static void test_numbers_that_are_too_long(void **state)
{
	/* eleven bytes; ten are 64 bits */
	expect_bad(
		BYTES(0x44, 0x2e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0));
	expect_cfa(BYTES(0x2e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), CFA_SP, 8,
	           0);
	/* offsets of more than 32 bits */
	expect_cfa(BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 0x10), CFA_OTHER, 0, 0);
	expect_cfa(BYTES(0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), CFA_SP, -1,
	           0);
}

static void test_a_step_that_overflows(void **state)
{
	struct cfi cfi = begin_cfi();

	add_fde(&cfi, 0, 32,
	        BYTES(0x44, 0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0e, 16));
	compile(&cfi);
	expect_row(&cfi, 3, CFA_SP, 8);
	expect_row(&cfi, 4, CFA_OTHER, 0);
	assert_int_equal(cfi.rows.counts.bad_fdes, 1);
	end_cfi(&cfi);
}

static void test_aarch64(void **state)
{
	struct cfi cfi = begin_cfi_of(EM_AARCH64);

	/* paciasp; stp x29, x30, [sp, -32]!; mov x29, sp; and back */
	add_fde(&cfi, 0, 32,
	        BYTES(0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29, 0x41, 0xde,
	              0xdd, 0x0c, 31, 0, 0x41, 0x2d));
	compile(&cfi);
	expect_row(&cfi, 0, CFA_SP, 0);
	assert_int_equal(rule_at(&cfi, 0)->ra_kind, RA_LR);
	assert_int_equal(rule_at(&cfi, 4)->ra_kind, RA_LR);
	expect_row(&cfi, 8, CFA_SP, 32);
	expect_fp(&cfi, 8, FP_CFA, -32);
	assert_int_equal(rule_at(&cfi, 8)->ra_kind, RA_CFA);
	assert_int_equal(rule_at(&cfi, 8)->ra, -24);
	expect_row(&cfi, 12, CFA_FP, 32);
	expect_row(&cfi, 16, CFA_SP, 0);
	assert_int_equal(rule_at(&cfi, 16)->ra_kind, RA_LR);
	assert_int_equal(cfi.rows.counts.bad_fdes, 0);
	end_cfi(&cfi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_function_begins_as_its_cie_says),
		cmocka_unit_test(test_all_ways_to_advance),
		cmocka_unit_test(test_set_loc_does_not_go_back),
		cmocka_unit_test(test_advancing_beyond_the_function_ends_it),
		cmocka_unit_test(test_the_cfa_by_register_and_offset),
		cmocka_unit_test(test_the_cfa_by_expression),
		cmocka_unit_test(test_expressions_that_are_not_understood),
		cmocka_unit_test(test_a_part_of_the_cfa_is_changed_only_where_there_are_parts),
		cmocka_unit_test(test_where_the_frame_pointer_is),
		cmocka_unit_test(test_other_registers_do_not_matter),
		cmocka_unit_test(test_restore_is_to_what_the_cie_said),
		cmocka_unit_test(test_return_addresses),
		cmocka_unit_test(test_states_are_remembered_within_another),
		cmocka_unit_test(test_states_that_were_not_remembered),
		cmocka_unit_test(test_instructions_that_nobody_knows),
		cmocka_unit_test(test_programs_that_are_cut_short),
		cmocka_unit_test(test_numbers_that_are_too_long),
		cmocka_unit_test(test_a_step_that_overflows),
		cmocka_unit_test(test_aarch64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
