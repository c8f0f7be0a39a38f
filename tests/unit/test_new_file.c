// SPDX-License-Identifier: MIT
/* Files that appear when they are whole. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "unit.h"

static char folder[] = "/tmp/cuscope-file-XXXXXX";
static char path[64];

static int set_up(void **state)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x", folder);
	return 0;
}

static int tear_down(void **state)
{
	unlink(path);
	return rmdir(folder); /* fails where something was left behind */
}

static void write_text(const char *to, const char *text)
{
	FILE *file = fopen(to, "w");

	fputs(text, file);
	fclose(file);
}

static void assert_text(const char *expected)
{
	char text[64] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, file), strlen(expected));
	assert_string_equal(text, expected);
	fclose(file);
}

static void test_a_file_is_there_when_it_is_kept(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(new_file_open(&file, path, true, false, &err), 0);
	fputs("new", file.out);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_text("new");
}

static void test_a_file_that_is_dropped_leaves_the_old_one(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	write_text(path, "old");
	assert_int_equal(new_file_open(&file, path, false, false, &err), 0);
	fputs("new", file.out);
	new_file_drop(&file);
	assert_text("old");
}

static void test_a_fresh_file_is_not_written_over_another(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	write_text(path, "old");
	assert_int_equal(new_file_open(&file, path, true, false, &err), -EEXIST);
	assert_non_null(strstr(err.text, "--force"));
	assert_text("old");
}

static void test_one_that_others_open_takes_its_place_too(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(new_file_open(&file, path, true, true, &err), 0);
	assert_null(file.out);
	write_text(new_file_path(&file), "theirs");
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_text("theirs");
}

static void test_a_pipe_is_written_to_as_it_is(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(new_file_open(&file, "/dev/null", true, false, &err), 0);
	assert_string_equal(new_file_path(&file), "/dev/null");
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_int_equal(access("/dev/null", F_OK), 0);
	assert_int_equal(new_file_open(&file, "/dev/null", true, true, &err), -EINVAL);
}

static void test_places_that_cannot_be_written_are_told(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(new_file_open(&file, folder, true, false, &err), -EISDIR);
	assert_int_equal(new_file_open(&file, "/nowhere/x", true, false, &err), -ENOENT);
	assert_int_equal(new_file_open(&file, "/nowhere/x", true, true, &err), -ENOENT);
	assert_string_equal(err.text, "cannot write /nowhere/x: No such file or directory");
}

static void test_a_pipe_that_was_exchanged_for_a_link_is_not_written(void **state)
{
	char other[64];

	snprintf(other, sizeof(other), "%s/other", folder);
	write_text(other, "of somebody else");
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(file_open_special(path), -EEXIST);
	assert_text("of somebody else");
	unlink(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_a_file_is_there_when_it_is_kept),
		TEST(test_a_file_that_is_dropped_leaves_the_old_one),
		TEST(test_a_fresh_file_is_not_written_over_another),
		TEST(test_one_that_others_open_takes_its_place_too),
		TEST(test_a_pipe_is_written_to_as_it_is),
		TEST(test_places_that_cannot_be_written_are_told),
		TEST(test_a_pipe_that_was_exchanged_for_a_link_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
