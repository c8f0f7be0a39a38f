// SPDX-License-Identifier: MIT
/* Names of code that was made at run time, from /tmp/perf-PID.map. */
#include "unit.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/budget.h"
#include "stack/perf_map.h"

static int file_with(const char *text)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void expect(struct perf_map *map, uint64_t address, const char *name, uint64_t into)
{
	uint64_t found = 0;
	bool late;
	const char *text = perf_map_find(map, address, &found, &late);

	if (!name) {
		assert_null(text);
		return;
	}
	assert_non_null(text);
	assert_string_equal(text, name);
	assert_int_equal(found, into);
}

static void test_functions_are_found_by_any_address_in_them(void **state)
{
	struct perf_map *map = perf_map_open_file(file_with("1000 20 py::train:/app/train.py\n"
	                                                    "0x2000 0x10 a name with blanks\n"));

	expect(map, 0x0fff, NULL, 0);
	expect(map, 0x1000, "py::train:/app/train.py", 0);
	expect(map, 0x101f, "py::train:/app/train.py", 0x1f);
	expect(map, 0x1020, NULL, 0);
	expect(map, 0x2004, "a name with blanks", 4);
	perf_map_free(map);
}

/* Each frame of a stack has its name looked up and compared: a file can be one name of 8 MiB. */
static void test_a_long_name_is_cut(void **state)
{
	char text[16384] = "1000 20 ";
	struct perf_map *map;
	uint64_t into;
	bool late;

	memset(text + strlen(text), 'x', 10000);
	strcat(text, "\n2000 10 next\n");
	map = perf_map_open_file(file_with(text));
	expect(map, 0x2001, "next", 1);
	assert_int_equal(strlen(perf_map_find(map, 0x1000, &into, &late)), 4095);
	perf_map_free(map);
}

/* Code is thrown away and its place used again. */
static void test_the_function_written_last_is_meant(void **state)
{
	struct perf_map *map =
		perf_map_open_file(file_with("1000 100 first\n1000 40 second\n1020 8 third\n"));

	expect(map, 0x1010, "second", 0x10);
	expect(map, 0x1022, "third", 2);
	expect(map, 0x1050, "first", 0x50);
	perf_map_free(map);
}

static void test_what_is_written_later_is_found_later(void **state)
{
	int fd = file_with("1000 10 early\n2000 10 la");
	struct perf_map *map = perf_map_open_file(fd);
	struct timespec moment = { .tv_nsec = 50000000 };

	expect(map, 0x2000, NULL, 0);
	assert_int_equal(write(fd, "te\n", 3), 3);
	nanosleep(&moment, NULL);
	expect(map, 0x2000, "late", 0);
	expect(map, 0x1000, "early", 0);
	perf_map_free(map);
}

static void test_what_is_no_line_is_passed_over(void **state)
{
	struct perf_map *map = perf_map_open_file(file_with("\n"
	                                                    "hello\n"
	                                                    "1000\n"
	                                                    "1000 10\n"
	                                                    "1000 10 \n"
	                                                    "1000 0 empty\n"
	                                                    "ffffffffffffffff 10 around\n"
	                                                    "1000 zz nothing\n"
	                                                    "3000 10 good\n"));

	expect(map, 0x1000, NULL, 0);
	expect(map, 0, NULL, 0);
	expect(map, UINT64_MAX, NULL, 0);
	expect(map, 0x3000, "good", 0);
	perf_map_free(map);
}

static void test_empty_file_knows_nothing(void **state)
{
	struct perf_map *map = perf_map_open_file(file_with(""));

	expect(map, 0x1000, NULL, 0);
	perf_map_free(map);
}

/* ---- the file of a process ---------------------------------------------------------------- */

static void own_path(char *path, size_t size)
{
	snprintf(path, size, "/tmp/perf-%d.map", getpid());
	unlink(path);
}

static void test_map_of_a_process_is_found(void **state)
{
	struct perf_map *map;
	char path[64];
	FILE *file;

	own_path(path, sizeof(path));
	assert_null(perf_map_open(getpid(), NULL));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("1000 10 mine\n", file);
	fclose(file);
	map = perf_map_open(getpid(), NULL);
	unlink(path);
	assert_non_null(map);
	expect(map, 0x1001, "mine", 1);
	perf_map_free(map);
}

/* Half a million lines, and the file goes on. */
static void test_a_map_takes_from_the_budget_what_it_keeps(void **state)
{
	struct budget *budget = budget_new(16 << 20, 32 << 20);
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, now;
	struct perf_map *map, *none;
	uint64_t into = 0;
	char path[64];
	bool late;
	FILE *file;

	own_path(path, sizeof(path));
	file = fopen(path, "w");
	for (unsigned i = 0; i < 500000; i++)
		fprintf(file, "%x 10 a_name_that_is_not_short_%u\n", 0x1000 + 16 * i, i);
	fclose(file);
	map = perf_map_open(getpid(), budget);
	expect(map, 0x1001, "a_name_that_is_not_short_0", 1);
	assert_null(perf_map_find(map, 0x1000 + 16 * 499999, &into, &late));
	now = mallinfo2().uordblks + mallinfo2().hblkhd;
	assert_true(now - before < 16 << 20);
	assert_true(budget_used(budget) > 8 << 20 && budget_used(budget) <= 16 << 20);

	/* the same process's again: it has taken what it may */
	none = perf_map_open(getpid(), budget);
	assert_null(perf_map_find(none, 0x1001, &into, &late));
	assert_int_equal(budget_refused(budget), 1);
	perf_map_free(none);
	perf_map_free(map);
	unlink(path);
	assert_int_equal(budget_used(budget), 0);
	budget_free(budget);
}

static void test_map_of_somebody_else_is_refused(void **state)
{
	struct perf_map *map;
	char path[64];

	if (geteuid() != 0)
		SKIP(NEEDS_ROOT);
	own_path(path, sizeof(path));
	close(open(path, O_CREAT | O_WRONLY, 0644));
	assert_int_equal(chown(path, 4242, 4242), 0);
	map = perf_map_open(getpid(), NULL);
	unlink(path);
	assert_null(map);
}

static void test_pipe_is_refused_and_not_waited_for(void **state)
{
	struct perf_map *map;
	char path[64];

	own_path(path, sizeof(path));
	assert_int_equal(mkfifo(path, 0644), 0);
	map = perf_map_open(getpid(), NULL);
	unlink(path);
	assert_null(map);
}

static void test_link_is_not_followed(void **state)
{
	struct perf_map *map;
	char path[64];

	own_path(path, sizeof(path));
	assert_int_equal(symlink("/etc/passwd", path), 0);
	map = perf_map_open(getpid(), NULL);
	unlink(path);
	assert_null(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_are_found_by_any_address_in_them),
		cmocka_unit_test(test_a_long_name_is_cut),
		cmocka_unit_test(test_the_function_written_last_is_meant),
		cmocka_unit_test(test_what_is_written_later_is_found_later),
		cmocka_unit_test(test_what_is_no_line_is_passed_over),
		cmocka_unit_test(test_empty_file_knows_nothing),
		cmocka_unit_test(test_map_of_a_process_is_found),
		cmocka_unit_test(test_map_of_somebody_else_is_refused),
		cmocka_unit_test(test_pipe_is_refused_and_not_waited_for),
		cmocka_unit_test(test_link_is_not_followed),
		cmocka_unit_test(test_a_map_takes_from_the_budget_what_it_keeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
