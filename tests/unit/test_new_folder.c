// SPDX-License-Identifier: MIT
/* Folders that appear whole: what is there before, between and afterwards, and what may be in the
 * way. */
#include "base/new_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "support.h"

static char base[] = "/tmp/cuscope-folders-XXXXXX";

static int set_up(void **state)
{
	strcpy(base + sizeof(base) - 7, "XXXXXX");
	return mkdtemp(base) ? chdir(base) : -1;
}

static int tear_down(void **state)
{
	AT_END(buf_free) struct buf command = { 0 };

	buf_printf(&command, "rm -rf %s", base);
	return chdir("/") || system(command.data);
}

static struct new_tree *open_tree(const char *path, bool replace)
{
	const struct new_tree_options options = { .replace = replace, .ending = ".x" };
	struct err err = { 0 };
	struct new_tree *tree = NULL;

	if (new_tree_open(&tree, path, &options, &err))
		fail_msg("%s", err.text);
	return tree;
}

static void add_file(struct new_folder *folder, const char *name, bool again, const char *text)
{
	struct err err = { 0 };
	int fd = new_folder_file(folder, name, again, &err);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int add(struct new_tree *tree, const char *text)
{
	struct new_folder *folder;
	struct err err = { 0 };
	int rc = new_tree_add(tree, "host=a", "rank=0", &folder, &err);

	assert_int_equal(!rc, !*err.text);
	if (!rc)
		add_file(folder, "t.x", false, text);
	return rc;
}

static void assert_file(const char *path, const char *text)
{
	char is[64] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, is, sizeof(is) - 1) >= 0);
	close(fd);
	assert_string_equal(is, text);
}

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void make(struct new_tree *tree, const char *text)
{
	struct err err = { 0 };

	assert_int_equal(add(tree, text), 0);
	assert_int_equal(new_tree_keep(tree, &err), 0);
	new_tree_close(tree);
}

static void test_a_folder_is_there_when_it_is_kept(void **state)
{
	struct new_tree *tree = open_tree("out/", false);
	struct err err = { 0 };

	assert_int_equal(add(tree, "one"), 0);
	assert_false(is_there("out/host=a/rank=0"));
	assert_int_equal(new_tree_keep(tree, &err), 0);
	assert_file("out/host=a/rank=0/t.x", "one");
	new_tree_close(tree);
	assert_file("out/host=a/rank=0/t.x", "one");
	assert_int_equal(mode_of("out/host=a/rank=0/t.x"), 0600);
	assert_int_equal(mode_of("out/host=a/rank=0"), 0700);
	assert_int_equal(mode_of("out"), 0700);
}

static void test_files_are_written_in_pieces(void **state)
{
	struct new_tree *tree = open_tree("out", false);
	struct new_folder *folder;
	struct err err = { 0 };

	assert_int_equal(new_tree_add(tree, "p", "n", &folder, &err), 0);
	add_file(folder, "t.x", false, "one");
	assert_int_equal(new_folder_file(folder, "t.x", false, &err), -EEXIST);
	add_file(folder, "t.x", true, "two");
	assert_int_equal(new_tree_keep(tree, &(struct err){ 0 }), 0);
	new_tree_close(tree);
	assert_file("out/p/n/t.x", "onetwo");
}

static void test_what_is_not_kept_leaves_nothing(void **state)
{
	struct new_tree *tree = open_tree("out", false);

	assert_int_equal(add(tree, "one"), 0);
	new_tree_close(tree);
	assert_false(is_there("out"));
}

static void test_other_folders_are_left_alone(void **state)
{
	struct new_tree *tree;

	assert_int_equal(mkdir("out", 0755), 0);
	assert_int_equal(mkdir("out/host=a", 0755), 0);
	assert_int_equal(mkdir("out/host=a/rank=1", 0755), 0);
	tree = open_tree("out", true);
	assert_int_equal(add(tree, "one"), 0);
	new_tree_drop(tree);
	make(tree, "two");
	assert_true(is_there("out/host=a/rank=1"));
	assert_int_equal(mode_of("out"), 0755);
	assert_file("out/host=a/rank=0/t.x", "two");
}

static void test_what_exists_is_replaced_only_where_asked(void **state)
{
	struct new_tree *tree;

	make(open_tree("out", false), "one");
	tree = open_tree("out", false);
	assert_int_equal(add(tree, "two"), -EEXIST);
	new_tree_close(tree);
	assert_file("out/host=a/rank=0/t.x", "one");
	make(open_tree("out", true), "two");
	assert_file("out/host=a/rank=0/t.x", "two");
	assert_int_equal(system("test \"$(ls -A out/host=a)\" = rank=0"), 0);
}

static void test_a_folder_with_other_files_is_not_replaced(void **state)
{
	struct new_tree *tree;

	make(open_tree("out", false), "one");
	close(open("out/host=a/rank=0/notes", O_CREAT | O_WRONLY, 0600));
	tree = open_tree("out", true);
	assert_int_equal(add(tree, "two"), -ENOTEMPTY);
	new_tree_close(tree);
	assert_file("out/host=a/rank=0/t.x", "one");
	assert_true(is_there("out/host=a/rank=0/notes"));
}

static void test_two_of_one_name_are_a_mistake(void **state)
{
	struct new_tree *tree = open_tree("out", true);
	struct err err = { 0 };

	assert_int_equal(add(tree, "one"), 0);
	assert_int_equal(new_tree_keep(tree, &err), 0);
	assert_int_equal(add(tree, "two"), -EEXIST);
	new_tree_close(tree);
	assert_file("out/host=a/rank=0/t.x", "one");
}

/* Neither where the tree is to be, nor the folders in it. */
static void test_no_link_is_followed(void **state)
{
	const struct new_tree_options options = { .replace = true, .ending = ".x" };
	struct new_tree *tree = NULL;
	struct err err = { 0 };

	assert_int_equal(mkdir("elsewhere", 0700), 0);
	assert_int_equal(symlink("elsewhere", "link"), 0);
	assert_true(new_tree_open(&tree, "link", &options, &err) < 0);
	assert_non_null(strstr(err.text, "link"));
	assert_int_equal(mkdir("out", 0700), 0);
	assert_int_equal(symlink("../elsewhere", "out/host=a"), 0);
	tree = open_tree("out", true);
	assert_true(add(tree, "one") < 0);
	new_tree_close(tree);
	assert_int_equal(unlink("out/host=a"), 0);
	assert_int_equal(mkdir("out/host=a", 0700), 0);
	assert_int_equal(symlink("../../elsewhere", "out/host=a/rank=0"), 0);
	tree = open_tree("out", true);
	assert_true(add(tree, "one") < 0);
	new_tree_close(tree);
	assert_int_equal(system("test -z \"$(ls -A elsewhere)\""), 0);
}

static void test_a_folder_that_is_there_goes_by_dots_too(void **state)
{
	const struct new_tree_options options = { .ending = ".x" };
	struct new_tree *tree = NULL;
	struct err err = { 0 };

	make(open_tree(".", false), "one");
	assert_file("host=a/rank=0/t.x", "one");
	assert_int_equal(mkdir("in", 0700), 0);
	assert_int_equal(chdir("in"), 0);
	tree = open_tree("..", false);
	assert_int_equal(add(tree, "two"), -EEXIST);
	new_tree_close(tree);
	assert_file("../host=a/rank=0/t.x", "one");
	assert_true(new_tree_open(&tree, "", &options, &err) < 0);
	close(open("file", O_CREAT | O_WRONLY, 0600));
	assert_true(new_tree_open(&tree, "file", &options, &err) < 0);
	assert_non_null(strstr(err.text, "no folder"));
}

static void test_who_may_read_the_files_may_list_the_folders(void **state)
{
	const struct new_tree_options options = { .ending = ".x", .mode = 0644 };
	struct new_tree *tree = NULL;
	struct err err = { 0 };

	assert_int_equal(new_tree_open(&tree, "out", &options, &err), 0);
	make(tree, "one");
	assert_int_equal(mode_of("out/host=a/rank=0/t.x"), 0644);
	assert_int_equal(mode_of("out/host=a/rank=0"), 0755);
	assert_int_equal(mode_of("out/host=a"), 0755);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_folder_is_there_when_it_is_kept),
		TEST(test_files_are_written_in_pieces),
		TEST(test_what_is_not_kept_leaves_nothing),
		TEST(test_other_folders_are_left_alone),
		TEST(test_what_exists_is_replaced_only_where_asked),
		TEST(test_a_folder_with_other_files_is_not_replaced),
		TEST(test_two_of_one_name_are_a_mistake),
		TEST(test_no_link_is_followed),
		TEST(test_a_folder_that_is_there_goes_by_dots_too),
		TEST(test_who_may_read_the_files_may_list_the_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
