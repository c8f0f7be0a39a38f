// SPDX-License-Identifier: MIT
/* Functions of the kernel, from text as /proc/kallsyms has it. */
#include "unit.h"

#include <unistd.h>

#include "stack/function_table.h"

static struct kernel_symbols *read_text(const char *text)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct kernel_symbols *symbols = kernel_symbols_read(file);

	fclose(file);
	return symbols;
}

static void expect(const struct kernel_symbols *symbols, uint64_t address, const char *name,
                   const char *module, uint64_t into_bytes)
{
	struct kernel_function function;

	assert_true(kernel_symbols_find(symbols, address, &function));
	assert_string_equal(function.name, name);
	assert_int_equal(function.into_bytes, into_bytes);
	if (module)
		assert_string_equal(function.module, module);
	else
		assert_null(function.module);
}

static void expect_none(const struct kernel_symbols *symbols, uint64_t address)
{
	struct kernel_function function;

	assert_false(kernel_symbols_find(symbols, address, &function));
}

static void test_functions_of_the_kernel_and_its_modules(void **state)
{
	struct kernel_symbols *symbols = read_text("ffffffff81000000 T _text\n"
	                                           "ffffffff81000100 t read_zero\n"
	                                           "ffffffffc0a4e000 t nv_open\t[nvidia]\n"
	                                           "ffffffffc0a4e100 t nv_close\t[nvidia]\n"
	                                           "ffffffffc0b00000 t uvm_open\t[nvidia_uvm]\n"
	                                           "ffffffffc0c00000 t bpf_prog_1_on\t[bpf]\n"
	                                           "ffffffffc0d00000 W weak\n"
	                                           "ffffffffc0d00010 w weaker\n");

	assert_int_equal(kernel_symbols_count(symbols), 8);
	expect_none(symbols, 0);
	expect_none(symbols, 0xffffffff80ffffff);
	expect(symbols, 0xffffffff81000000, "_text", NULL, 0);
	expect(symbols, 0xffffffff810000ff, "_text", NULL, 0xff);
	expect(symbols, 0xffffffff81000101, "read_zero", NULL, 1);
	expect(symbols, 0xffffffffc0a4e001, "nv_open", "nvidia", 1);
	expect(symbols, 0xffffffffc0a4e100, "nv_close", "nvidia", 0);
	expect(symbols, 0xffffffffc0b00004, "uvm_open", "nvidia_uvm", 4);
	expect(symbols, 0xffffffffc0c00004, "bpf_prog_1_on", "bpf", 4);
	expect(symbols, 0xffffffffc0d0000f, "weak", NULL, 15);
	expect(symbols, 0xffffffffc0d00011, "weaker", NULL, 1);
	kernel_symbols_free(symbols);
}

/* The kernel's come first, modules' behind them, in no order of addresses. */
static void test_lines_in_any_order(void **state)
{
	struct kernel_symbols *symbols = read_text("ffffffff81000300 T third\n"
	                                           "ffffffffc0000000 t late\t[module]\n"
	                                           "ffffffff81000100 T first\n"
	                                           "ffffffffa0000000 t early\t[module]\n"
	                                           "ffffffff81000200 T second\n");

	expect(symbols, 0xffffffff81000150, "first", NULL, 0x50);
	expect(symbols, 0xffffffff81000250, "second", NULL, 0x50);
	expect(symbols, 0xffffffff81000350, "third", NULL, 0x50);
	expect(symbols, 0xffffffffa0000005, "early", "module", 5);
	expect(symbols, 0xffffffffc0000005, "late", "module", 5);
	kernel_symbols_free(symbols);
}

static void test_variables_and_absolute_symbols_are_left_out(void **state)
{
	struct kernel_symbols *symbols = read_text("0000000000000000 A __per_cpu_start\n"
	                                           "ffffffff81000000 T function\n"
	                                           "ffffffff81000010 D data\n"
	                                           "ffffffff81000020 b bss\n"
	                                           "ffffffff81000030 r constant\n"
	                                           "ffffffff81000040 V weak_object\n");

	assert_int_equal(kernel_symbols_count(symbols), 1);
	expect(symbols, 0xffffffff81000045, "function", NULL, 0x45);
	kernel_symbols_free(symbols);
}

/* kernel.kptr_restrict */
static void test_hidden_addresses_are_no_functions(void **state)
{
	struct kernel_symbols *symbols =
		read_text("0000000000000000 T _text\n0000000000000000 t nv_open\t[nvidia]\n");

	assert_int_equal(kernel_symbols_count(symbols), 0);
	expect_none(symbols, 0);
	expect_none(symbols, UINT64_MAX);
	kernel_symbols_free(symbols);
}

static void test_far_from_any_function_is_none(void **state)
{
	struct kernel_symbols *symbols = read_text("ffffffff81000000 T last\n");

	expect(symbols, 0xffffffff81100000, "last", NULL, 0x100000);
	expect_none(symbols, 0xffffffff81100001);
	expect_none(symbols, UINT64_MAX);
	kernel_symbols_free(symbols);
}

static void test_lines_that_are_none(void **state)
{
	struct kernel_symbols *symbols = read_text("\n"
	                                           "ffffffff81000000\n"
	                                           "ffffffff81000000 T\n"
	                                           "nothing of this\n"
	                                           "ffffffff81000000 T good\textra words [here]\n"
	                                           "ffffffff81000010 t open\t[never_closed\n"
	                                           "ffffffff81000020 t empty\t[]\n"
	                                           "ffffffff81000030 t without_an_end");

	expect(symbols, 0xffffffff81000001, "good", NULL, 1);
	expect(symbols, 0xffffffff81000011, "open", NULL, 1);
	expect(symbols, 0xffffffff81000021, "empty", "", 1);
	expect(symbols, 0xffffffff81000031, "without_an_end", NULL, 1);
	assert_int_equal(kernel_symbols_count(symbols), 4);
	kernel_symbols_free(symbols);
}

/* Rust's in kernels since 6.1: KSYM_NAME_LEN is 512. A line longer than any is not cut in two. */
static void test_long_names(void **state)
{
	char text[4000] = "ffffffff81000000 t ", name[512];
	struct kernel_symbols *symbols;

	memset(name, 'n', 511);
	name[511] = '\0';
	strcat(strcat(text, name), "\t[module]\nffffffff81000010 T next\n");
	symbols = read_text(text);
	expect(symbols, 0xffffffff81000001, name, "module", 1);
	expect(symbols, 0xffffffff81000011, "next", NULL, 1);
	kernel_symbols_free(symbols);

	strcpy(text, "ffffffff81000000 t ");
	memset(text + strlen(text), 'n', 2000);
	strcpy(text + 2019, "\nffffffff81000010 T next\n");
	symbols = read_text(text);
	expect(symbols, 0xffffffff81000011, "next", NULL, 1);
	kernel_symbols_free(symbols);
}

static void test_nothing_to_read(void **state)
{
	FILE *file = fopen("/dev/null", "r");
	struct kernel_symbols *symbols = kernel_symbols_read(file);

	fclose(file);
	assert_int_equal(kernel_symbols_count(symbols), 0);
	expect_none(symbols, 0xffffffff81000000);
	kernel_symbols_free(symbols);
	kernel_symbols_free(NULL);
}

static void test_of_this_kernel(void **state)
{
	struct kernel_symbols *symbols = kernel_symbols_of_this_kernel();

	if (geteuid() || !kernel_symbols_count(symbols)) {
		kernel_symbols_free(symbols);
		SKIP("addresses of the kernel are hidden here");
	}
	assert_true(kernel_symbols_count(symbols) > 10000);
	kernel_symbols_free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_of_the_kernel_and_its_modules),
		cmocka_unit_test(test_lines_in_any_order),
		cmocka_unit_test(test_variables_and_absolute_symbols_are_left_out),
		cmocka_unit_test(test_hidden_addresses_are_no_functions),
		cmocka_unit_test(test_far_from_any_function_is_none),
		cmocka_unit_test(test_lines_that_are_none),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_nothing_to_read),
		cmocka_unit_test(test_of_this_kernel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
