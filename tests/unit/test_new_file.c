// SPDX-License-Identifier: MIT
/* Files that appear when they are whole, or grow, and never through a link. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
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
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
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

#define FRESH   ((struct new_file_options){ 0 })
#define REPLACE ((struct new_file_options){ .replace = true })
#define GROWS   ((struct new_file_options){ .grows = true })

static int open_with(struct new_file *file, struct new_file_options options, struct err *err)
{
	return new_file_open(file, path, &options, err);
}

static void other(char name[64])
{
	snprintf(name, 64, "%s/other", folder);
	write_text(name, "of somebody else");
}

static void assert_other(const char *name)
{
	char text[64] = "";
	FILE *file = fopen(name, "r");

	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	unlink(name);
	assert_string_equal(text, "of somebody else");
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(name, &st), 0);
	return st.st_mode;
}

static void test_a_file_is_there_when_it_is_kept(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(open_with(&file, FRESH, &err), 0);
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
	assert_int_equal(open_with(&file, REPLACE, &err), 0);
	fputs("new", file.out);
	new_file_drop(&file);
	assert_text("old");
}

static void test_a_file_that_is_kept_replaces_the_old_one(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	write_text(path, "old");
	assert_int_equal(open_with(&file, REPLACE, &err), 0);
	fputs("new", file.out);
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_text("new");
}

static void test_a_fresh_file_is_not_written_over_another(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	write_text(path, "old");
	assert_int_equal(open_with(&file, FRESH, &err), -EEXIST);
	assert_non_null(strstr(err.text, "--force"));
	assert_text("old");
}

static void test_one_that_came_meanwhile_is_not_replaced(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(open_with(&file, FRESH, &err), 0);
	write_text(path, "old");
	assert_int_equal(new_file_keep(&file, &err), -EEXIST);
	assert_text("old");
}

static void test_a_file_that_grows_is_there_at_once(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(open_with(&file, GROWS, &err), 0);
	fputs("part", file.out);
	fflush(file.out);
	assert_text("part");
	assert_int_equal(new_file_place(&file, &err), 0);
	new_file_drop(&file);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_a_file_that_grows_replaces_when_it_is_worth_it(void **state)
{
	struct new_file_options options = { .grows = true, .replace = true };
	struct new_file file;
	struct err err = { 0 };

	write_text(path, "old");
	assert_int_equal(open_with(&file, options, &err), 0);
	fputs("part", file.out);
	fflush(file.out);
	assert_text("old");
	assert_int_equal(new_file_place(&file, &err), 0);
	assert_text("part");
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_text("part");
}

static void test_a_drop_leaves_what_somebody_else_put_there(void **state)
{
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(open_with(&file, GROWS, &err), 0);
	unlink(path);
	write_text(path, "theirs");
	new_file_drop(&file);
	assert_text("theirs");
}

static void test_a_link_is_not_followed(void **state)
{
	struct new_file_options ways[] = { { 0 }, { .grows = true }, { .regular = true } };
	struct new_file file;
	struct err err = { 0 };
	char name[64];

	other(name);
	assert_int_equal(symlink(name, path), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		assert_int_equal(open_with(&file, ways[i], &err), -EEXIST);
		assert_non_null(strstr(err.text, "is a symbolic link, which is not followed"));
	}
	assert_other(name);
}

static void test_a_link_is_replaced_and_what_it_leads_to_stays(void **state)
{
	struct new_file_options ways[] = { { .replace = true },
		                           { .replace = true, .grows = true } };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		for (int hard = 0; hard < 2; hard++) {
			struct new_file file;
			struct err err = { 0 };
			char name[64];

			other(name);
			assert_int_equal(hard ? link(name, path) : symlink(name, path), 0);
			assert_int_equal(open_with(&file, ways[i], &err), 0);
			fputs("new", file.out);
			assert_int_equal(new_file_keep(&file, &err), 0);
			assert_text("new");
			assert_true(S_ISREG(mode_of(path)));
			assert_other(name);
			unlink(path);
		}
	}
}

static void test_files_are_for_their_owner_alone(void **state)
{
	struct new_file_options readable = { .mode = 0644 };
	struct new_file file;
	struct err err = { 0 };

	umask(022);
	assert_int_equal(open_with(&file, FRESH, &err), 0);
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_int_equal(mode_of(path) & 07777, 0600);
	unlink(path);
	umask(077);
	assert_int_equal(open_with(&file, readable, &err), 0);
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_int_equal(mode_of(path) & 07777, 0644);
	umask(022);
}

static void test_the_way_to_the_folder_may_have_links_of_our_own(void **state)
{
	struct new_file_options fresh = FRESH;
	char link_name[64], through[80];
	struct new_file file;
	struct err err = { 0 };

	snprintf(link_name, sizeof(link_name), "%s/link", folder);
	snprintf(through, sizeof(through), "%s/../link/./x", link_name);
	assert_int_equal(symlink(".", link_name), 0);
	assert_int_equal(new_file_open(&file, through, &fresh, &err), -ENOENT);
	snprintf(through, sizeof(through), "%s/./link//x", link_name);
	assert_int_equal(new_file_open(&file, through, &fresh, &err), 0);
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_text("");
	unlink(link_name);
	assert_int_equal(symlink("link", link_name), 0);
	assert_int_equal(new_file_open(&file, through, &fresh, &err), -ELOOP);
	unlink(link_name);
}

static void test_a_link_of_somebody_else_on_the_way_is_refused(void **state)
{
	struct new_file_options fresh = FRESH;
	char link_name[64], through[80];
	struct new_file file;
	struct err err = { 0 };

	if (geteuid())
		SKIP(NEEDS_ROOT);
	snprintf(link_name, sizeof(link_name), "%s/link", folder);
	snprintf(through, sizeof(through), "%s/x", link_name);
	assert_int_equal(symlink(folder, link_name), 0);
	assert_int_equal(lchown(link_name, 65534, 65534), 0);
	assert_int_equal(new_file_open(&file, through, &fresh, &err), -EPERM);
	assert_non_null(strstr(err.text, "belongs to user 65534"));
	setenv("SUDO_UID", "65534", 1); /* who called sudo may lead root where he likes */
	setenv("SUDO_GID", "65534", 1);
	assert_int_equal(new_file_open(&file, through, &fresh, &err), 0);
	assert_int_equal(new_file_keep(&file, &err), 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	unlink(link_name);
}

static void test_a_pipe_is_written_to_as_it_is(void **state)
{
	struct new_file_options fresh = FRESH, regular = { .regular = true };
	struct new_file file;
	struct err err = { 0 };
	int reader;
	char text[8] = "";

	assert_int_equal(new_file_open(&file, "/dev/null", &fresh, &err), 0);
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_int_equal(access("/dev/null", F_OK), 0);
	assert_int_equal(new_file_open(&file, "/dev/null", &regular, &err), -EINVAL);
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(new_file_open(&file, path, &fresh, &err), 0);
	fputs("piped", file.out);
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_int_equal(read(reader, text, sizeof(text)), 5);
	close(reader);
	assert_true(S_ISFIFO(mode_of(path)));
}

static void test_a_pipe_that_somebody_planted_is_refused(void **state)
{
	struct new_file_options fresh = FRESH;
	struct new_file file;
	struct err err = { 0 };

	if (geteuid())
		SKIP(NEEDS_ROOT);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(chmod(folder, 01777), 0);
	assert_int_equal(new_file_open(&file, path, &fresh, &err), -EACCES);
	assert_non_null(strstr(err.text, "belongs to user 65534"));
}

/* He opens it for reading whenever he likes. */
static void test_a_pipe_in_its_owners_folder_is_refused_as_well(void **state)
{
	struct new_file_options ways[] = { { 0 }, { .replace = true }, { .grows = true } };
	struct new_file file;
	struct err err = { 0 };
	char name[32];
	int reader;

	if (geteuid())
		SKIP(NEEDS_ROOT);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(chown(folder, 65534, 65534), 0);
	reader = open(path, O_RDWR | O_NONBLOCK);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		assert_int_equal(open_with(&file, ways[i], &err), -EACCES);
		assert_non_null(strstr(err.text, "belongs to user 65534"));
		assert_int_equal(file_can_replace(path, ways[i].replace, &err), -EACCES);
	}

	/* what root's shell has opened is meant, and so is what is the user's who called sudo */
	snprintf(name, sizeof(name), "/dev/fd/%d", reader);
	assert_int_equal(new_file_open(&file, name, &ways[0], &err), 0);
	assert_int_equal(new_file_keep(&file, &err), 0);
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	assert_int_equal(open_with(&file, ways[0], &err), 0);
	assert_int_equal(new_file_keep(&file, &err), 0);
	close(reader);
}

static void test_a_terminal_is_for_its_owner(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct new_file_options fresh = FRESH;
	struct new_file file;
	struct err err = { 0 };
	const char *terminal;

	if (master < 0 || access("/dev/pts/ptmx", F_OK)) /* as in a chroot without devpts */
		SKIP("no /dev/pts here");
	assert_true(grantpt(master) == 0 && unlockpt(master) == 0);
	terminal = ptsname(master);
	assert_int_equal(new_file_open(&file, terminal, &fresh, &err), 0);
	assert_int_equal(new_file_keep(&file, &err), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(terminal, 65534, 65534), 0);
		assert_int_equal(new_file_open(&file, terminal, &fresh, &err), -EACCES);
	}
	close(master);
}

static void test_names_of_open_descriptors_are_those(void **state)
{
	struct new_file_options fresh = FRESH;
	struct new_file file;
	struct err err = { 0 };
	char name[32], text[8] = "";
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
	assert_int_equal(new_file_open(&file, name, &fresh, &err), 0);
	fputs("told", file.out);
	assert_int_equal(new_file_keep(&file, &err), 0);
	assert_int_equal(read(ends[0], text, sizeof(text)), 4);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(new_file_open(&file, name, &fresh, &err), -EBADF);
}

static void test_places_that_cannot_be_written_are_told(void **state)
{
	struct new_file_options fresh = FRESH;
	struct new_file file;
	struct err err = { 0 };

	assert_int_equal(new_file_open(&file, folder, &fresh, &err), -EISDIR);
	assert_int_equal(new_file_open(&file, "/dev/null/x", &fresh, &err), -ENOTDIR);
	assert_int_equal(new_file_open(&file, "", &fresh, &err), -ENOENT);
	assert_int_equal(new_file_open(&file, "/", &fresh, &err), -EISDIR);
	assert_int_equal(new_file_open(&file, "..", &fresh, &err), -EISDIR);
	assert_int_equal(new_file_open(&file, "/nowhere/x", &fresh, &err), -ENOENT);
	assert_string_equal(err.text, "cannot write /nowhere/x: No such file or directory");
}

static void test_a_text_is_written_whole_or_not_at_all(void **state)
{
	struct buf text = { 0 };
	struct err err = { 0 };

	buf_puts(&text, "text");
	assert_int_equal(file_can_replace(path, false, &err), 0);
	assert_int_equal(file_replace(path, 0, &text, &err), 0);
	assert_text("text");
	assert_int_equal(file_can_replace(path, true, &err), 0);
	assert_int_equal(file_can_replace(path, false, &err), -EEXIST);
	assert_int_equal(file_can_replace("/nowhere/x", true, &err), -ENOENT);
	assert_int_equal(file_replace("/dev/full", 0, &text, &err), -ENOSPC);
	buf_free(&text);
}

/* Nothing can be opened: nothing is, and it is told. */
static void test_a_file_without_a_name_that_cannot_be_made_is_told(void **state)
{
	struct rlimit before, none;
	struct new_file file;
	struct err err = { 0 };
	int rc;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	rc = new_file_unnamed(&file, "the recording", &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, -EMFILE);
	assert_non_null(strstr(err.text, "cannot make a temporary file"));
	assert_int_equal(new_file_unnamed(&file, "the recording", &err), 0);
	assert_non_null(file.out);
	new_file_drop(&file);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_a_file_is_there_when_it_is_kept),
		TEST(test_a_file_that_is_dropped_leaves_the_old_one),
		TEST(test_a_file_that_is_kept_replaces_the_old_one),
		TEST(test_a_fresh_file_is_not_written_over_another),
		TEST(test_one_that_came_meanwhile_is_not_replaced),
		TEST(test_a_file_that_grows_is_there_at_once),
		TEST(test_a_file_that_grows_replaces_when_it_is_worth_it),
		TEST(test_a_drop_leaves_what_somebody_else_put_there),
		TEST(test_a_link_is_not_followed),
		TEST(test_a_link_is_replaced_and_what_it_leads_to_stays),
		TEST(test_files_are_for_their_owner_alone),
		TEST(test_the_way_to_the_folder_may_have_links_of_our_own),
		TEST(test_a_link_of_somebody_else_on_the_way_is_refused),
		TEST(test_a_pipe_is_written_to_as_it_is),
		TEST(test_a_pipe_that_somebody_planted_is_refused),
		TEST(test_a_pipe_in_its_owners_folder_is_refused_as_well),
		TEST(test_a_terminal_is_for_its_owner),
		TEST(test_names_of_open_descriptors_are_those),
		TEST(test_places_that_cannot_be_written_are_told),
		TEST(test_a_text_is_written_whole_or_not_at_all),
		TEST(test_a_file_without_a_name_that_cannot_be_made_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
