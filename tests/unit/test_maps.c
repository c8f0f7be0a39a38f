// SPDX-License-Identifier: MIT
/* Lines of /proc/PID/maps. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/maps.h"

#include "base/array.h"

/* ---- lines ----------------------------------------------------------------------------------- */

static int parse(const char *text, struct mapping *mapping)
{
	static char line[8192];

	snprintf(line, sizeof(line), "%s", text);
	return mapping_parse(line, mapping);
}

static void test_line_of_a_library(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("7f12a4c28000-7f12a4dbd000 r-xp 00028000 fe:01 1835010"
	                       "                    /usr/lib/libc.so.6\n",
	                       &mapping),
	                 0);
	assert_int_equal(mapping.start, 0x7f12a4c28000);
	assert_int_equal(mapping.end, 0x7f12a4dbd000);
	assert_int_equal(mapping.offset, 0x28000);
	assert_int_equal(mapping.dev, makedev(0xfe, 0x01));
	assert_int_equal(mapping.inode, 1835010);
	assert_true(mapping.readable);
	assert_false(mapping.writable);
	assert_true(mapping.executable);
	assert_true(mapping.private);
	assert_false(mapping.deleted);
	assert_string_equal(mapping.path, "/usr/lib/libc.so.6");
}

static void test_line_of_shared_writable_memory(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("1000-2000 -w-s 00000000 00:01 7 /dev/zero (deleted)", &mapping), 0);
	assert_false(mapping.readable);
	assert_true(mapping.writable);
	assert_false(mapping.executable);
	assert_false(mapping.private);
	assert_true(mapping.deleted);
	assert_string_equal(mapping.path, "/dev/zero");
}

static void test_anonymous_memory_has_an_empty_path(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("7ffd8000-7ffda000 rw-p 00000000 00:00 0 \n", &mapping), 0);
	assert_int_equal(mapping.inode, 0);
	assert_string_equal(mapping.path, "");
	assert_int_equal(parse("7ffd8000-7ffda000 rw-p 00000000 00:00 0", &mapping), 0);
	assert_string_equal(mapping.path, "");
}

static void test_special_mappings_keep_their_name(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("1000-2000 r-xp 00000000 00:00 0     [vdso]\n", &mapping), 0);
	assert_string_equal(mapping.path, "[vdso]");
}

static void test_the_highest_page_is_no_overflow(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0"
	                       "                  [vsyscall]\n",
	                       &mapping),
	                 0);
	assert_int_equal(mapping.start, 0xffffffffff600000);
}

static void test_path_with_spaces_is_whole(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("1000-2000 r-xp 0 08:01 12 /opt/my  lib/a b.so \n", &mapping), 0);
	assert_string_equal(mapping.path, "/opt/my  lib/a b.so ");
}

static void test_deleted_is_taken_off_the_path(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("1000-2000 r-xp 0 08:01 12 /tmp/x (deleted)\n", &mapping), 0);
	assert_true(mapping.deleted);
	assert_string_equal(mapping.path, "/tmp/x");
}

static void test_deleted_within_the_path_stays(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("1000-2000 r-xp 0 08:01 12 /tmp/x (deleted)/y\n", &mapping), 0);
	assert_false(mapping.deleted);
	assert_string_equal(mapping.path, "/tmp/x (deleted)/y");
}

static void test_device_and_inode_may_be_large(void **state)
{
	struct mapping mapping;

	assert_int_equal(parse("1000-2000 r-xp 0 103:fffff 18446744073709551615 /x", &mapping), 0);
	assert_int_equal(mapping.dev, makedev(0x103, 0xfffff));
	assert_int_equal(mapping.inode, UINT64_MAX);
}

static void test_what_is_no_maps_line_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		"hello",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 r-xp",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 08:01",
		"1000-2000 r-xp 0 08:01 ",
		"1000-2000 r-xp 0 08:01 12x /x",
		"1000-2000 r-xp 0 0801 12 /x",
		"1000-2000 rqxp 0 08:01 12 /x",
		"1000-2000 r-x 0 08:01 12 /x",
		"-1000-2000 r-xp 0 08:01 12 /x",
		"0x1000-0x2000 r-xp 0 08:01 12 /x",
		"1000-2000 r-xp 0 08:01 -12 /x",
		"2000-1000 r-xp 0 08:01 12 /x",
		"11112222333344445-2000 r-xp 0 08:01 12 /x",
		"1000-2000 r-xp 0 08:01 18446744073709551616 /x",
		"1000-2000 r-xp 0 108000001:01 12 /x",
	};
	struct mapping mapping;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(parse(lines[i], &mapping), -EINVAL);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A file that this process maps executable, under a name of the test's choice. */
struct mapped {
	char dir[32];
	char path[256];
	struct stat st;
	void *memory;
	struct mapping mapping; /* as maps shows it */
	char shown[1024];
	size_t seen;
};

static int note_mapping(const struct mapping *mapping, void *data)
{
	struct mapped *mapped = data;

	assert_true(mapping->executable);
	assert_true(mapping->inode != 0);
	if (mapping->start == (uint64_t)(uintptr_t)mapped->memory) {
		mapped->mapping = *mapping;
		snprintf(mapped->shown, sizeof(mapped->shown), "%s", mapping->path);
		mapped->mapping.path = mapped->shown;
		mapped->seen++;
	}
	return 0;
}

static void find(struct mapped *mapped)
{
	struct err err = { 0 };

	mapped->seen = 0;
	assert_int_equal(maps_each(getpid(), note_mapping, mapped, &err), 0);
	assert_int_equal(mapped->seen, 1);
}

static void map_file(struct mapped *mapped, const char *name)
{
	int fd;

	memset(mapped, 0, sizeof(*mapped));
	strcpy(mapped->dir, "/tmp/test_maps.XXXXXX");
	assert_non_null(mkdtemp(mapped->dir));
	snprintf(mapped->path, sizeof(mapped->path), "%s/%s", mapped->dir, name);
	fd = open(mapped->path, O_RDWR | O_CREAT | O_EXCL, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fstat(fd, &mapped->st), 0);
	mapped->memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(mapped->memory != MAP_FAILED);
	close(fd);
	find(mapped);
}

static void unmap_file(struct mapped *mapped)
{
	munmap(mapped->memory, 4096);
	unlink(mapped->path);
	rmdir(mapped->dir);
}

/* Makes map_files miss, so that the path must do. */
static void forget_address(struct mapped *mapped)
{
	mapped->mapping.start = 0x1000;
	mapped->mapping.end = 0x2000;
}

static void expect_opens(const struct mapped *mapped)
{
	struct err err = { 0 };
	struct stat st;
	int fd = mapping_open(getpid(), &mapped->mapping, &err);

	assert_string_equal(err.text, "");
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, mapped->st.st_ino);
	assert_int_equal(st.st_dev, mapped->st.st_dev);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(fcntl(fd, F_GETFL) & O_PATH, 0);
	close(fd);
}

static void expect_refuses(const struct mapped *mapped)
{
	struct err err = { 0 };

	assert_true(mapping_open(getpid(), &mapped->mapping, &err) < 0);
	assert_non_null(strstr(err.text, mapped->shown));
}

static void needs_map_files(void)
{
	if (geteuid() != 0) {
		SKIP("/proc/PID/map_files needs root");
	}
}

static void test_executable_mappings_are_listed(void **state)
{
	struct mapped mapped;

	map_file(&mapped, "code");
	assert_string_equal(mapped.shown, mapped.path);
	assert_int_equal(mapped.mapping.inode, mapped.st.st_ino);
	assert_int_equal(mapped.mapping.end - mapped.mapping.start, 4096);
	unmap_file(&mapped);
}

static int stop_at_second(const struct mapping *mapping, void *data)
{
	return ++*(int *)data == 2 ? 42 : 0;
}

static void test_listing_stops_when_told(void **state)
{
	struct err err = { 0 };
	int calls = 0;

	assert_int_equal(maps_each(getpid(), stop_at_second, &calls, &err), 42);
	assert_int_equal(calls, 2);
}

static void test_a_list_that_takes_too_long_is_cut(void **state)
{
	struct err err = { 0 };
	int calls = 0;

	assert_int_equal(maps_each_code_within(getpid(), 1, stop_at_second, &calls, &err), -ETIME);
	assert_int_equal(calls, 0);
	assert_int_equal(maps_each_code_within(getpid(), 0, stop_at_second, &calls, &err), 42);
}

static void test_unknown_pid_is_an_error(void **state)
{
	struct err err = { 0 };
	int calls = 0;

	assert_int_equal(maps_each(0x7ffffffe, stop_at_second, &calls, &err), -ESRCH);
	assert_int_equal(calls, 0);
	assert_non_null(strstr(err.text, "2147483646"));
}

static void test_mapped_file_is_opened(void **state)
{
	struct mapped mapped;

	map_file(&mapped, "code");
	expect_opens(&mapped);
	unmap_file(&mapped);
}

static void test_deleted_file_is_opened(void **state)
{
	struct mapped mapped;

	needs_map_files();
	map_file(&mapped, "code");
	assert_int_equal(unlink(mapped.path), 0);
	find(&mapped);
	assert_true(mapped.mapping.deleted);
	assert_string_equal(mapped.shown, mapped.path);
	expect_opens(&mapped);
	unmap_file(&mapped);
}

static void test_file_of_another_process_is_opened(void **state)
{
	struct mapped mapped;
	struct err err = { 0 };
	pid_t child;
	int fd;

	map_file(&mapped, "code");
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	munmap(mapped.memory, 4096);
	fd = mapping_open(child, &mapped.mapping, &err);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(fd >= 0);
	close(fd);
	unmap_file(&mapped);
}

static void test_without_map_files_the_path_is_opened(void **state)
{
	struct mapped mapped;

	map_file(&mapped, "code");
	forget_address(&mapped);
	expect_opens(&mapped);
	unmap_file(&mapped);
}

static void test_path_with_a_newline_is_opened(void **state)
{
	struct mapped mapped;

	map_file(&mapped, "new\nline");
	assert_non_null(strstr(mapped.shown, "new\\012line"));
	forget_address(&mapped);
	expect_opens(&mapped);
	unmap_file(&mapped);
}

static void test_path_with_a_literal_012_is_opened(void **state)
{
	struct mapped mapped;

	map_file(&mapped, "back\\012slash");
	forget_address(&mapped);
	expect_opens(&mapped);
	unmap_file(&mapped);
}

static void test_file_named_deleted_is_opened(void **state)
{
	struct mapped mapped;

	map_file(&mapped, "code (deleted)");
	assert_true(mapped.mapping.deleted);
	forget_address(&mapped);
	expect_opens(&mapped);
	unmap_file(&mapped);
}

static void test_another_file_at_the_path_is_refused(void **state)
{
	struct mapped mapped;
	char other[300];
	FILE *file;

	map_file(&mapped, "code");
	snprintf(other, sizeof(other), "%s.new", mapped.path);
	file = fopen(other, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(rename(other, mapped.path), 0);
	forget_address(&mapped);
	expect_refuses(&mapped);
	unmap_file(&mapped);
}

static void test_another_mapping_at_the_address_is_refused(void **state)
{
	struct mapped mapped;

	map_file(&mapped, "code");
	unlink(mapped.path);
	mapped.mapping.inode ^= 1;
	expect_refuses(&mapped);
	unmap_file(&mapped);
}

static void test_fifo_at_the_path_does_not_block(void **state)
{
	struct mapped mapped;
	struct stat st;

	map_file(&mapped, "code");
	unlink(mapped.path);
	assert_int_equal(mkfifo(mapped.path, 0600), 0);
	assert_int_equal(stat(mapped.path, &st), 0);
	forget_address(&mapped);
	mapped.mapping.inode = st.st_ino;
	alarm(10);
	expect_refuses(&mapped);
	alarm(0);
	unmap_file(&mapped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_of_a_library),
		cmocka_unit_test(test_line_of_shared_writable_memory),
		cmocka_unit_test(test_anonymous_memory_has_an_empty_path),
		cmocka_unit_test(test_special_mappings_keep_their_name),
		cmocka_unit_test(test_the_highest_page_is_no_overflow),
		cmocka_unit_test(test_path_with_spaces_is_whole),
		cmocka_unit_test(test_deleted_is_taken_off_the_path),
		cmocka_unit_test(test_deleted_within_the_path_stays),
		cmocka_unit_test(test_device_and_inode_may_be_large),
		cmocka_unit_test(test_what_is_no_maps_line_is_refused),
		cmocka_unit_test(test_executable_mappings_are_listed),
		cmocka_unit_test(test_listing_stops_when_told),
		cmocka_unit_test(test_a_list_that_takes_too_long_is_cut),
		cmocka_unit_test(test_unknown_pid_is_an_error),
		cmocka_unit_test(test_mapped_file_is_opened),
		cmocka_unit_test(test_deleted_file_is_opened),
		cmocka_unit_test(test_file_of_another_process_is_opened),
		cmocka_unit_test(test_without_map_files_the_path_is_opened),
		cmocka_unit_test(test_path_with_a_newline_is_opened),
		cmocka_unit_test(test_path_with_a_literal_012_is_opened),
		cmocka_unit_test(test_file_named_deleted_is_opened),
		cmocka_unit_test(test_another_file_at_the_path_is_refused),
		cmocka_unit_test(test_another_mapping_at_the_address_is_refused),
		cmocka_unit_test(test_fifo_at_the_path_does_not_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
