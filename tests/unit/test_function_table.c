// SPDX-License-Identifier: MIT
/* Places of real files and the functions they belong to. */
#include "elf_build.h"

#include "base/clock.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "stack/function_table.h"

/* A function that can be found in the file without reading its headers. */
static const char program[] = "__asm__(\".text\\n.globl marked\\n.type marked, %function\\n\"\n"
			      "\"marked: .ascii \\\"MARKED BY TEST\\\"\\n\"\n"
			      "\".size marked, 14\\n\"\n"
			      "\".fill 64, 1, 0x90\\n\");\n"
			      "int exported(int n) { return n * 3; }\n"
			      "int start(void) { return exported(2); }\n";

static uint64_t offset_of_mark(int fd)
{
	static char bytes[32 << 20];
	ssize_t len = pread(fd, bytes, sizeof(bytes), 0);
	const char *at = memmem(bytes, (size_t)len, "MARKED BY TEST", 14);

	assert_non_null(at);
	return (uint64_t)(at - bytes);
}

static struct function_table *open_table(int fd)
{
	struct function_table *table = NULL;
	struct err err = { 0 };

	assert_int_equal(function_table_open(fd, "a.out", NULL, &table, &err), 0);
	assert_non_null(table);
	return table;
}

static void expect(struct function_table *table, uint64_t offset, const char *name, uint64_t into)
{
	struct function_found found;

	if (!name) {
		assert_int_equal(function_table_find(table, offset, &found), -ENOENT);
		return;
	}
	assert_int_equal(function_table_find(table, offset, &found), 0);
	assert_string_equal(found.name, name);
	assert_int_equal(found.into_bytes, into);
}

static void expect_mark(const char *flags)
{
	int fd = build(program, flags);
	struct function_table *table = open_table(fd);
	uint64_t mark = offset_of_mark(fd);

	expect(table, mark, "marked", 0);
	expect(table, mark + 13, "marked", 13);
	expect(table, mark + 14, NULL, 0);
	function_table_free(table);
	close(fd);
}

static void test_function_of_a_program_with_fixed_addresses(void **state)
{
	expect_mark("-no-pie -static -nostdlib -Wl,-e,start");
}

static void test_function_of_a_position_independent_program(void **state)
{
	expect_mark("-pie -fPIE -nostdlib -Wl,-e,start");
}

static void test_function_of_a_library(void **state)
{
	expect_mark(LIBRARY);
}

static void test_addresses_need_not_be_offsets(void **state)
{
	expect_mark(LIBRARY " -Wl,-Ttext=0x1234500");
	expect_mark(LIBRARY " -Wl,-z,noseparate-code -Wl,-Ttext-segment=0x7000000");
}

static void test_stripped_library_has_what_it_exports(void **state)
{
	int fd = build(program, LIBRARY " -Wl,-s");
	struct function_table *table = open_table(fd);

	expect(table, offset_of_mark(fd), "marked", 0);
	assert_int_equal(function_table_count(table), 3);
	function_table_free(table);
	close(fd);
}

static void test_stripped_program_has_none(void **state)
{
	int fd = build(program, PROGRAM " -Wl,-s");
	struct function_table *table = open_table(fd);

	expect(table, offset_of_mark(fd), NULL, 0);
	assert_int_equal(function_table_count(table), 0);
	function_table_free(table);
	close(fd);
}

static int open_kept_debug(const uint8_t *id, size_t len)
{
	assert_int_equal(len, 20);
	return open(in_dir("a.debug"), O_RDONLY);
}

static void test_names_that_were_stripped_off_come_from_the_debug_file(void **state)
{
	int fd = build(program, "-pie -fPIE -nostdlib -Wl,-e,start -Wl,--build-id=sha1 -g");
	struct function_table *table = NULL;

	close(fd);
	run("objcopy --only-keep-debug a.out a.debug && strip a.out");
	fd = reopen();
	assert_int_equal(function_table_open(fd, "a.out", open_kept_debug, &table, NULL), 0);
	expect(table, offset_of_mark(fd) + 2, "marked", 2);
	function_table_free(table);
	close(fd);
}

static void expect_build_id(const char *flags, const char *expected, size_t len)
{
	int fd = build(program, flags);
	struct function_table *table = open_table(fd);
	uint8_t id[BUILD_ID_MAX];

	assert_int_equal(function_table_build_id(table, id), len);
	assert_memory_equal(id, expected, len);
	function_table_free(table);
	close(fd);
}

static void test_build_id_of_a_file(void **state)
{
	expect_build_id(LIBRARY " -Wl,--build-id=0x01ab02cd", "\x01\xab\x02\xcd", 4);
	expect_build_id(LIBRARY " -Wl,--build-id=none", "", 0);
}

static void test_function_without_a_size_reaches_to_the_next(void **state)
{
	int fd = build("__asm__(\".text\\n.globl marked\\n.type marked, %function\\n\"\n"
	               "\"marked: .ascii \\\"MARKED BY TEST\\\"\\n.fill 18, 1, 0x90\\n\"\n"
	               "\".globl after\\n.type after, %function\\n\"\n"
	               "\"after: .fill 32, 1, 0x90\\n.size after, 32\\n\");\n",
	               LIBRARY);
	struct function_table *table = open_table(fd);
	uint64_t mark = offset_of_mark(fd);

	expect(table, mark + 31, "marked", 31);
	expect(table, mark + 32, "after", 0);
	function_table_free(table);
	close(fd);
}

static void test_what_lies_behind_a_nested_function_is_the_outer_one(void **state)
{
	int fd = build("__asm__(\".text\\n.globl outer\\n.type outer, %function\\n\"\n"
	               "\"outer: .ascii \\\"MARKED BY TEST\\\"\\n.fill 18, 1, 0x90\\n\"\n"
	               "\".globl inner\\n.type inner, %function\\n\"\n"
	               "\"inner: .fill 8, 1, 0x90\\n.size inner, 8\\n\"\n"
	               "\".fill 24, 1, 0x90\\n.size outer, 64\\n\");\n",
	               LIBRARY);
	struct function_table *table = open_table(fd);
	uint64_t mark = offset_of_mark(fd);

	expect(table, mark + 31, "outer", 31);
	expect(table, mark + 34, "inner", 2);
	expect(table, mark + 41, "outer", 41);
	function_table_free(table);
	close(fd);
}

static void test_of_two_names_the_one_that_others_can_use_is_taken(void **state)
{
	int fd = build("__asm__(\".text\\n.globl known\\n.type known, %function\\n\"\n"
	               "\".type a_local, %function\\na_local:\\n\"\n"
	               "\"known: .ascii \\\"MARKED BY TEST\\\"\\n\"\n"
	               "\".size known, 14\\n.size a_local, 14\\n\");\n",
	               LIBRARY);
	struct function_table *table = open_table(fd);

	expect(table, offset_of_mark(fd), "known", 0);
	function_table_free(table);
	close(fd);
}

static void test_name_is_read_whole_however_long(void **state)
{
	struct buf source = { 0 }, name = { 0 };
	struct function_table *table;
	int fd;

	for (int i = 0; i < 1000; i++)
		buf_puts(&name, "abcdefghij");
	buf_printf(&source,
	           "__asm__(\".text\\n.globl %s\\n.type %s, %%function\\n%s: "
	           ".ascii \\\"MARKED BY TEST\\\"\\n.size %s, 14\\n\");\n",
	           name.data, name.data, name.data, name.data);
	fd = build(source.data, LIBRARY);
	table = open_table(fd);
	expect(table, offset_of_mark(fd) + 1, name.data, 1);
	function_table_free(table);
	close(fd);
	buf_free(&source);
	buf_free(&name);
}

struct place {
	uint64_t at, number;
};

ORDER_BY(compare_places, struct place, UP(at));

/* To sort so many by comparing them, as was done once: most of what a table took. */
static uint64_t ns_of_sorting(size_t n)
{
	struct place *places = xcalloc(n, sizeof(*places));
	uint64_t begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);

	for (size_t i = 0; i < n; i++)
		places[i] = (struct place){ i * 0x9e3779b97f4a7c15 % n, i };
	qsort(places, n, sizeof(*places), compare_places);
	free(places);
	return clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
}

/* The capture stands still meanwhile, once for each of a user's files. */
static void test_a_large_table_is_in_order_in_less_time_than_sorting_takes(void **state)
{
	const int n = 300000;
	struct function_table *table;
	uint64_t begin_ns, mark;
	int fd;

	run("awk 'BEGIN { print \".text\\n.ascii \\\"MARKED BY TEST\\\"\";"
	    " for (i = 0; i < %d; i++) printf \".globl f_%%d\\n.type f_%%d,@function\\n"
	    "f_%%d: ret\\n.size f_%%d,1\\n\", i, i, i, i }' >a.s && "
	    "gcc -shared -nostdlib -o a.out a.s && rm a.s",
	    n);
	fd = reopen();
	begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	table = open_table(fd);
#ifndef FUZZING /* where all but qsort() itself is looked after */
	begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	assert_true(begin_ns < ns_of_sorting((size_t)n) * 5 / 4);
#endif
	mark = offset_of_mark(fd);
	for (int i = 0; i < n; i += 997) {
		char name[32];

		snprintf(name, sizeof(name), "f_%d", i);
		expect(table, mark + 14 + (uint64_t)i, name, 0);
	}
	function_table_free(table);
	close(fd);
}

static void test_text_is_no_table(void **state)
{
	struct function_table *table;
	struct err err = { 0 };
	int fd;

	write_file(in_dir("a.out"), "#!/bin/sh\necho this is longer than the header of a file\n");
	fd = reopen();
	assert_int_equal(function_table_open(fd, "a.out", NULL, &table, &err), -ENOEXEC);
	assert_non_null(strstr(err.text, "a.out"));
	close(fd);
}

/* Its owner may do that at any time. */
static void test_file_that_shrinks_gives_no_names(void **state)
{
	int fd = build(program, LIBRARY);
	struct function_table *table = open_table(fd);
	uint64_t mark = offset_of_mark(fd);

	assert_int_equal(ftruncate(fd, 100), 0);
	expect(table, mark, NULL, 0);
	function_table_free(table);
	close(fd);
}

static void test_cut_file_gives_an_answer_at_every_length(void **state)
{
	int fd = build(program, LIBRARY " -Wl,-z,max-page-size=64 -Wl,-z,noseparate-code "
	                                "-Wl,--build-id=sha1");
	uint64_t mark = offset_of_mark(fd);
	struct stat st;

	fstat(fd, &st);
	for (off_t len = st.st_size - 1; len >= 0; len -= len > 4096 ? 17 : 1) {
		struct function_table *table = NULL;
		struct function_found found;

		assert_int_equal(ftruncate(fd, len), 0);
		if (function_table_open(fd, "a.out", open_kept_debug, &table, NULL) == 0)
			function_table_find(table, mark, &found);
		function_table_free(table);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_of_a_program_with_fixed_addresses),
		cmocka_unit_test(test_function_of_a_position_independent_program),
		cmocka_unit_test(test_function_of_a_library),
		cmocka_unit_test(test_addresses_need_not_be_offsets),
		cmocka_unit_test(test_stripped_library_has_what_it_exports),
		cmocka_unit_test(test_stripped_program_has_none),
		cmocka_unit_test(test_names_that_were_stripped_off_come_from_the_debug_file),
		cmocka_unit_test(test_build_id_of_a_file),
		cmocka_unit_test(test_function_without_a_size_reaches_to_the_next),
		cmocka_unit_test(test_what_lies_behind_a_nested_function_is_the_outer_one),
		cmocka_unit_test(test_of_two_names_the_one_that_others_can_use_is_taken),
		cmocka_unit_test(test_name_is_read_whole_however_long),
		cmocka_unit_test(test_a_large_table_is_in_order_in_less_time_than_sorting_takes),
		cmocka_unit_test(test_text_is_no_table),
		cmocka_unit_test(test_file_that_shrinks_gives_no_names),
		cmocka_unit_test(test_cut_file_gives_an_answer_at_every_length),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
