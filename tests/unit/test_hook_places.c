// SPDX-License-Identifier: MIT
/* Where values of hooks are: arguments of markers, fields of tracepoints, steps of filters. */
#include "unit.h"

#include "base/array.h"
#include "probe/own_kernel.h"

static const char format[] =
	"name: made\nID: 1\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:__data_loc char[] filename;\toffset:28;\tsize:4;\tsigned:0;\n"
	"\tfield:const char * text;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long args[6];\toffset:40;\tsize:48;\tsigned:0;\n"
	"\tfield:bad;\toffset:70000;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"field:int no;\toffset:0;\tsize:4;\tsigned:1;\"\n";

static void test_fields_of_a_format(void **state)
{
	struct own_place fields[OWN_FIELDS_MAX];

	assert_int_equal(own_tracepoint_parse(format, fields), 4);
	assert_string_equal(fields[0].name, "prev_comm");
	assert_true(fields[0].is_text && !fields[0].is_data_loc);
	assert_int_equal(fields[0].chars, 16);
	assert_string_equal(fields[1].name, "prev_pid");
	assert_true(fields[1].is_signed);
	assert_int_equal(fields[1].at, 24);
	assert_true(fields[2].is_text && fields[2].is_data_loc);
	assert_true(fields[3].is_pointer);
	assert_int_equal(own_tracepoint_parse("", fields), 0);
	assert_int_equal(own_tracepoint_parse("field:", fields), 0);
}

static bool is_read(const char *text, size_t *n)
{
	static struct own_place places[4];

	*n = ARRAY_SIZE(places);
	return own_places_of_marker(text, places, n);
}

static void test_arguments_of_markers(void **state)
{
	struct own_place places[3];
	size_t n = ARRAY_SIZE(places);

#ifdef __x86_64__
	assert_true(own_places_of_marker("-4@%edi 8@-16(%rbp) 8@$-5", places, &n));
	assert_int_equal(n, 3);
	assert_true(places[0].is_signed && places[0].bytes == 4);
	assert_true(places[1].in_memory && places[1].offset == -16);
	assert_true(places[2].is_constant && places[2].offset == -5);
	assert_true(is_read("", &n));
	assert_int_equal(n, 0);
	assert_false(is_read("8@%xyz", &n));
	assert_false(is_read("8@foo(%rip)", &n));
	assert_false(is_read("8@8(%rax,%rbx,8)", &n));
	assert_false(is_read("3@%rax", &n));
	assert_false(is_read("16@%rax", &n));
	assert_false(is_read("8%rax", &n));
	assert_false(is_read("8@%", &n));
	assert_false(is_read("1@%al 1@%al 1@%al 1@%al 1@%al", &n));
#endif
}

static void test_steps_of_filters_compare_signed_numbers_as_such(void **state)
{
	struct filter_step from = { .op = FILTER_LT, .with = (uint64_t)-3 };
	struct wire_hook_step step;

	own_plan_step(&from, true, &step);
	assert_true(((uint64_t)-5 ^ step.flip) < step.with);
	assert_false((1 ^ step.flip) < step.with);
	assert_int_equal(step.passes, PASSES_LESS);
	from = (struct filter_step){ .op = FILTER_ANY_BIT, .with = 6 };
	own_plan_step(&from, false, &step);
	assert_int_equal(step.mask, 6);
	assert_int_equal(step.with, 0);
}

static struct wire_hook_plan plan_of(const char *text, const struct own_place *places, size_t n)
{
	struct hook_spec spec;
	struct hook_mistake mistake;
	struct wire_hook_plan plan;

	if (!spec_read(text, NULL, &spec, &mistake) ||
	    !own_plan_make(&spec, places, n, &plan, &mistake))
		fail_msg("%s: %s", text, mistake.says);
	spec_free(&spec);
	return plan;
}

static struct wire_hook_value value_of(const char *text, const struct own_place *places, size_t n)
{
	return plan_of(text, places, n).value[0];
}

/* The number that the gate compares with; 0: there is none. */
static uint64_t gate_of(const char *filter)
{
	struct wire_hook_plan plan;
	char text[256];

	snprintf(text, sizeof(text),
	         "uprobe:l:f(a=arg0, b=arg1, m=*arg2, late=*arg3@return, ret) if %s", filter);
	plan = plan_of(text, NULL, 0);
	assert_true(plan.gate <= plan.n_steps);
	return plan.gate ? plan.step[plan.gate - 1].with : 0;
}

static void test_a_gate_is_a_comparison_without_which_the_filter_declines(void **state)
{
	assert_int_equal(gate_of("a > 5"), 5);
	assert_int_equal(gate_of("a > 5 and b < 6"), 5);
	assert_int_equal(gate_of("(a > 5 or b > 6) and b < 7"), 7);
	assert_int_equal(gate_of("(a > 5 and b > 6) or (a > 7 and b > 8)"), 0);
	assert_int_equal(gate_of("a > 5 or b < 6"), 0);
	assert_int_equal(gate_of("not a > 5"), 0);
	assert_int_equal(gate_of("not a > 5 and b < 6"), 6);
	assert_int_equal(gate_of("not (a > 5 and b < 6)"), 0);
	/* memory only where no register will do */
	assert_int_equal(gate_of("m > 5"), 5);
	assert_int_equal(gate_of("m > 5 and b < 6"), 6);
	/* what is known at the return is none */
	assert_int_equal(gate_of("duration > 5us"), 0);
	assert_int_equal(gate_of("ret == 5"), 0);
	assert_int_equal(gate_of("late == 5"), 0);
	assert_int_equal(gate_of("duration > 5us and late == 6 and ret == 7 and a > 8"), 8);
}

static void test_only_values_in_memory_take_long(void **state)
{
	assert_false(plan_of("uprobe:l:f", NULL, 0).flags & PLAN_READS);
	assert_false(plan_of("uprobe:l:f(x=arg0, y=arg1:i32)", NULL, 0).flags & PLAN_READS);
	assert_true(plan_of("uprobe:l:f(x=arg0, y=*arg1)", NULL, 0).flags & PLAN_READS);
	assert_true(plan_of("uprobe:l:f(x=arg0:str)", NULL, 0).flags & PLAN_READS);
}

static uint8_t memory_of(const char *text)
{
	return value_of(text, NULL, 0).kernel;
}

/* An address that a process chose must not be read as one of the kernel's. */
static void test_whose_memory_is_read_is_said(void **state)
{
	assert_int_equal(memory_of("uprobe:l:f(x=arg0+8->8:str)"), 0);
	assert_int_equal(memory_of("kprobe:f(x=arg1:str)"), 0);
	assert_int_equal(memory_of("kprobe:f(x=arg1:char[8])"), 0);
	assert_int_equal(memory_of("kprobe:f(x=arg1:kstr)"), KERNEL_TEXT);
	assert_int_equal(memory_of("kretprobe:f(x=ret:kchar[8])"), KERNEL_TEXT);
	assert_int_equal(memory_of("kprobe:f(x=*arg1)"), KERNEL_LOAD);
	assert_int_equal(memory_of("kprobe:f(x=arg1+8->8)"), KERNEL_LOAD | KERNEL_LOAD << 1);
	assert_int_equal(memory_of("kprobe:f(x=arg1+8:str)"), KERNEL_LOAD);
	assert_int_equal(memory_of("kprobe:f(x=arg1+8:kstr)"), KERNEL_LOAD | KERNEL_TEXT);
	assert_int_equal(memory_of("kprobe:f(x=arg1+8->8:u32@user)"), 0);
	assert_int_equal(memory_of("kprobe:f(x=arg1+8:str@user)"), 0);
#ifdef __x86_64__
	/* the kernel's stack, where an address of the process's lies */
	assert_int_equal(memory_of("kprobe:f(x=arg7:str)"), KERNEL_LOAD);
	assert_int_equal(memory_of("kprobe:f(x=*arg7:u32@user)"), KERNEL_LOAD);
#endif
}

static void
test_texts_in_records_are_the_kernels_and_those_that_fields_point_at_are_not(void **state)
{
	struct own_place fields[OWN_FIELDS_MAX];
	size_t n = (size_t)own_tracepoint_parse(format, fields);

	assert_int_equal(value_of("tracepoint:g:made(prev_comm)", fields, n).kernel, KERNEL_TEXT);
	assert_int_equal(value_of("tracepoint:g:made(prev_comm)", fields, n).chars, 16);
	assert_int_equal(value_of("tracepoint:g:made(filename:str)", fields, n).kernel,
	                 KERNEL_TEXT);
	assert_int_equal(value_of("tracepoint:g:made(text:str)", fields, n).kernel, 0);
	assert_int_equal(value_of("tracepoint:g:made(text:kstr)", fields, n).kernel, KERNEL_TEXT);
}

/* Of calls that are summed up only what a filter asks for, and the size, is read. */
static void test_of_sums_nothing_else_is_read(void **state)
{
	static const struct spec_table sizes = { .name = "sizes", .number = { 1, 4 }, .n = 2 };
	static const struct {
		const char *text;
		unsigned values, sum, factor;
		unsigned read; /* a bit for each value */
	} rows[] = {
		{ "uprobe:l:f", 0, 0, 0, 0 },
		{ "uprobe:l:f(a=arg0:str, b=arg1, ret)", 0, 0, 0, 0 },
		{ "uprobe:l:f(a=arg0:str, b=arg1:bytes, c=arg2:bytes)", 2, 2, 0, 2 },
		{ "uprobe:l:f(a=*arg0, b=*arg1 , c=arg2) if b > 1", 2, 0, 0, 2 },
		{ "uprobe:l:f(a=arg0:i32) if arg1 > 1 and duration > 2us", 2, 0, 0, 2 },
		{ "uprobe:l:f(n=arg0, b=arg0*sizes(arg1):bytes) if ret == 0", 4, 2, 4, 14 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct wire_hook_plan plan;
		struct wire_hook_table table;
		struct hook_mistake mistake;
		struct hook_spec spec;

		if (!spec_read(rows[i].text, &sizes, &spec, &mistake) ||
		    !own_plan_make(&spec, NULL, 0, &plan, &mistake))
			fail_msg("%s: %s", rows[i].text, mistake.says);
		assert_int_equal(own_plan_sum(&spec, &plan, &table), rows[i].factor > 0);
		assert_int_equal(plan.n_values, rows[i].values);
		assert_int_equal(plan.sum, rows[i].sum);
		assert_int_equal(plan.factor, rows[i].factor);
		for (size_t k = 0; k < spec.n_values; k++)
			assert_int_equal(!(plan.value[k].flags & VALUE_CONSTANT),
			                 rows[i].read >> k & 1);
		assert_int_equal(table.number[1], rows[i].factor ? 4 : 0);
		assert_int_equal(table.number[2], 0);
		spec_free(&spec);
	}
}

static void test_returns_alone_are_moments(void **state)
{
	static const struct {
		const char *text;
		unsigned flags;
	} rows[] = {
		{ "uprobe:l:f", PLAN_RETURNS },
		{ "uentry:l:f", 0 },
		{ "uretprobe:l:f", PLAN_RETURNS | PLAN_MOMENT },
		{ "kretprobe:f", PLAN_RETURNS | PLAN_MOMENT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct wire_hook_plan plan;
		struct hook_mistake mistake;
		struct hook_spec spec;

		assert_true(spec_read(rows[i].text, NULL, &spec, &mistake));
		assert_true(own_plan_make(&spec, NULL, 0, &plan, &mistake));
		assert_int_equal(plan.flags & (PLAN_RETURNS | PLAN_MOMENT), rows[i].flags);
		spec_free(&spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_of_a_format),
		cmocka_unit_test(test_of_sums_nothing_else_is_read),
		cmocka_unit_test(test_returns_alone_are_moments),
		cmocka_unit_test(test_arguments_of_markers),
		cmocka_unit_test(test_steps_of_filters_compare_signed_numbers_as_such),
		cmocka_unit_test(test_a_gate_is_a_comparison_without_which_the_filter_declines),
		cmocka_unit_test(test_only_values_in_memory_take_long),
		cmocka_unit_test(test_whose_memory_is_read_is_said),
		cmocka_unit_test(
			test_texts_in_records_are_the_kernels_and_those_that_fields_point_at_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
