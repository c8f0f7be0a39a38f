// SPDX-License-Identifier: MIT
/* The folder of the flight recorder: its bounds, and what somebody else has put there. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "node/spool.h"

#define MIB  (1ull << 20)
#define NOON 1800000000 /* 2027-01-15 08:00:00 UTC */

static const struct spool_limits roomy = { .bytes = 64 * MIB, .files = 100 };

static char folder_path[] = "/tmp/cuscope-spool-XXXXXX";
static int folder = -1;

static int set_up(void **state)
{
	struct err err = { 0 };

	strcpy(folder_path + strlen(folder_path) - 6, "XXXXXX");
	if (!mkdtemp(folder_path))
		return -1;
	folder = spool_open(folder_path, &err);
	return folder < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	char command[128];

	close(folder);
	snprintf(command, sizeof(command), "rm -rf %s", folder_path);
	return system(command);
}

/* One of so many bytes; its name in `name`. */
static int put(const struct spool_limits *limits, uint64_t bytes, char name[SPOOL_NAME_MAX],
               enum spool_why *why)
{
	struct spool_file file;
	struct err err = { 0 };
	int rc = spool_begin(folder, limits, bytes, &file, why, &err);

	if (rc)
		return rc;
	assert_true(file.room >= bytes);
	assert_int_equal(ftruncate(file.fd, (off_t)bytes), 0);
	return spool_keep(&file, "slow_step", NOON, name, &err);
}

static struct spool_use look(void)
{
	struct spool_use use;

	assert_int_equal(spool_look(folder, &use), 0);
	return use;
}

static void make(const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "text", 4), 4);
	close(fd);
}

static bool is_there(const char *name)
{
	struct stat st;

	return !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW);
}

/* ---- names --------------------------------------------------------------------------------- */

static void test_a_name_tells_time_rule_and_number(void **state)
{
	char name[SPOOL_NAME_MAX];
	enum spool_why why;
	struct stat st;

	assert_int_equal(put(&roomy, 1000, name, &why), 0);
	assert_string_equal(name, "20270115T080000Z-slow_step-000001.cuscope");
	assert_int_equal(put(&roomy, 1000, name, &why), 0);
	assert_string_equal(name, "20270115T080000Z-slow_step-000002.cuscope");
	assert_int_equal(fstatat(folder, name, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_only_names_of_our_kind_are_ours(void **state)
{
	static const char *const others[] = {
		"",
		"x.cuscope",
		"20270115T080000Z-slow_step-000001.cuscope.gz",
		"20270115T080000Z-slow step-000001.cuscope",
		"20270115T080000Z--000001.cuscope",
		"20270115T080000Z-xid-.cuscope",
		"20270115T080000Z-xid-+00001.cuscope",
		"20270115T080000Z-xid-1234567890123.cuscope",
		"20270115T08000Z-xid-000001.cuscope",
		"20270115T080000-xid-000001.cuscope",
	};
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(spool_name_read(others[i], &number));
	assert_true(spool_name_read("20270115T080000Z-xid-999999999999.cuscope", &number));
	assert_int_equal(number, SPOOL_NUMBER_MAX);
}

static void test_a_clock_that_went_wild_still_makes_a_name(void **state)
{
	char name[SPOOL_NAME_MAX];
	uint64_t number;

	spool_name(name, (time_t)1 << 60, "xid", 7);
	assert_true(spool_name_read(name, &number));
	spool_name(name, -5, "xid", 7);
	assert_true(spool_name_read(name, &number));
	assert_int_equal(number, 7);
}

/* ---- bounds -------------------------------------------------------------------------------- */

/* Of a machine that was restored, say. Its number is the last that there is. */
static void test_after_the_last_number_comes_the_first(void **state)
{
	const struct spool_limits two = { .bytes = 64 * MIB, .files = 2 };
	static const char last[] = "20270115T080000Z-xid-999999999999.cuscope";
	char name[SPOOL_NAME_MAX];
	struct spool_use use;
	enum spool_why why;
	uint64_t number;
	int fd = openat(folder, last, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(put(&two, 1, name, &why), 0);
		assert_true(spool_name_read(name, &number));
		assert_int_equal(number, i);
		assert_int_equal(spool_look(folder, &use), 0);
		assert_int_equal(use.files, 2);
		assert_int_equal(use.others, 0);
		assert_int_equal(faccessat(folder, last, F_OK, 0), i ? -1 : 0);
	}
}

static void test_the_oldest_go_by_their_number_whatever_the_clock_did(void **state)
{
	const struct spool_limits few = { .bytes = 64 * MIB, .files = 2 };
	char name[SPOOL_NAME_MAX];
	enum spool_why why;

	make("20290115T080000Z-xid-000003.cuscope"); /* of a clock that was ahead */
	make("20260115T080000Z-xid-000004.cuscope");
	assert_int_equal(put(&few, 10, name, &why), 0);
	assert_string_equal(name, "20270115T080000Z-slow_step-000005.cuscope");
	assert_false(is_there("20290115T080000Z-xid-000003.cuscope"));
	assert_true(is_there("20260115T080000Z-xid-000004.cuscope"));
	assert_int_equal(look().files, 2);
}

static void test_bytes_are_bounded_and_a_file_is_told_its_room(void **state)
{
	const struct spool_limits small = { .bytes = 10000, .files = 100 };
	struct spool_file file;
	char name[SPOOL_NAME_MAX];
	struct err err = { 0 };
	enum spool_why why;

	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(put(&small, 3000, name, &why), 0);
		assert_true(look().bytes <= 10000);
	}
	assert_int_equal(look().files, 3);
	assert_int_equal(spool_begin(folder, &small, 2000, &file, &why, &err), 0);
	assert_int_equal(file.room, 10000 - 6000); /* one had to go */
	spool_drop(&file);
	assert_int_equal(look().files, 2);
	assert_int_equal(look().others, 0);
}

static void test_a_full_spool_can_keep_the_oldest(void **state)
{
	const struct spool_limits keep = { .bytes = 64 * MIB, .files = 2, .refuse = true };
	char name[SPOOL_NAME_MAX];
	enum spool_why why;

	assert_int_equal(put(&keep, 10, name, &why), 0);
	assert_int_equal(put(&keep, 10, name, &why), 0);
	assert_int_equal(put(&keep, 10, name, &why), -ENOSPC);
	assert_int_equal(why, SPOOL_FULL);
	assert_int_equal(look().files, 2);
}

static void test_what_is_larger_than_the_spool_removes_nothing(void **state)
{
	const struct spool_limits small = { .bytes = 10000, .files = 100 };
	char name[SPOOL_NAME_MAX];
	enum spool_why why;

	assert_int_equal(put(&small, 3000, name, &why), 0);
	assert_int_equal(put(&small, 10001, name, &why), -EFBIG);
	assert_int_equal(why, SPOOL_TOO_LARGE);
	assert_int_equal(look().files, 1);
}

static void test_the_floor_of_the_disk_removes_nothing_either(void **state)
{
	const struct spool_limits floor = { .bytes = 10000,
		                            .files = 100,
		                            .keep_free_bytes = 1ull << 62 };
	char name[SPOOL_NAME_MAX];
	enum spool_why why;

	assert_int_equal(put(&roomy, 3000, name, &why), 0);
	assert_int_equal(put(&floor, 8000, name, &why), -ENOSPC);
	assert_int_equal(why, SPOOL_NO_SPACE);
	assert_int_equal(look().files, 1);
}

static void test_a_disk_that_is_full_is_no_room_and_leaves_nothing(void **state)
{
	static char block[1 << 16];
	struct spool_file file;
	struct err err = { 0 };
	enum spool_why why;
	int outside = folder, rc = 0;

	if (mount("none", folder_path, "tmpfs", 0, "size=1m,mode=700"))
		SKIP("no file system can be mounted here");
	folder = spool_open(folder_path, &err);
	assert_true(folder >= 0);
	assert_int_equal(spool_begin(folder, &roomy, 1000, &file, &why, &err), 0);
	while (!rc)
		rc = write(file.fd, block, sizeof(block)) == sizeof(block) ? 0 : -errno;
	assert_int_equal(spool_why_of(rc), SPOOL_NO_SPACE);
	spool_drop(&file);
	assert_int_equal(look().files + look().others, 0);
	assert_int_equal(spool_begin(folder, &roomy, 2 * MIB, &file, &why, &err), -ENOSPC);
	assert_int_equal(why, SPOOL_NO_SPACE);
	close(folder);
	folder = outside;
	assert_int_equal(umount2(folder_path, MNT_DETACH), 0);
}

/* ---- what is left behind ------------------------------------------------------------------- */

static void write_for_ever(void)
{
	struct spool_file file;
	struct err err = { 0 };
	enum spool_why why;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (spool_begin(folder, &roomy, 1000, &file, &why, &err) || write(file.fd, "half", 4) != 4)
		_exit(1);
	kill(getpid(), SIGSTOP);
	pause();
}

static void test_a_writer_that_is_killed_leaves_nothing_whole_and_is_cleaned_up(void **state)
{
	pid_t writer = fork();
	int status;

	if (!writer)
		write_for_ever();
	assert_int_equal(waitpid(writer, &status, WUNTRACED), writer);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(look().files, 0);
	assert_int_equal(spool_clean(folder), 0); /* it is still being written */
	kill(writer, SIGKILL);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(look().files, 0);
	assert_int_equal(spool_clean(folder), 1);
	assert_int_equal(spool_clean(folder), 0);
}

static void test_a_file_that_exists_is_never_replaced(void **state)
{
	char name[SPOOL_NAME_MAX];
	struct spool_file file;
	struct err err = { 0 };
	enum spool_why why;

	assert_int_equal(spool_begin(folder, &roomy, 10, &file, &why, &err), 0);
	make("20270115T080000Z-slow_step-000001.cuscope"); /* of another daemon, since */
	assert_int_equal(spool_keep(&file, "slow_step", NOON, name, &err), 0);
	assert_string_equal(name, "20270115T080000Z-slow_step-000002.cuscope");
}

/* ---- what others have put there ------------------------------------------------------------ */

static void test_links_pipes_and_files_of_others_are_left_alone(void **state)
{
	const struct spool_limits none = { .bytes = 1000, .files = 1 };
	char name[SPOOL_NAME_MAX];
	struct err err = { 0 };
	enum spool_why why;

	make("victim");
	assert_int_equal(symlinkat("victim", folder, "20270115T080000Z-xid-000001.cuscope"), 0);
	assert_int_equal(mkfifoat(folder, "20270115T080000Z-xid-000002.cuscope", 0600), 0);
	assert_int_equal(mkdirat(folder, "20270115T080000Z-xid-000003.cuscope", 0700), 0);
	assert_int_equal(symlinkat("victim", folder, ".recording-000000000001"), 0);
	assert_int_equal(mkfifoat(folder, ".recording-000000000002", 0600), 0);
	if (!geteuid()) {
		make("20270115T080000Z-xid-000004.cuscope");
		assert_int_equal(fchownat(folder, "20270115T080000Z-xid-000004.cuscope", 1, 1, 0),
		                 0);
	}
	assert_int_equal(look().files, 0);
	assert_int_equal(look().others, geteuid() ? 6 : 7);
	assert_int_equal(spool_clean(folder), 0);
	assert_int_equal(put(&none, 1000, name, &why), 0);
	assert_int_equal(put(&none, 1000, name, &why), 0);
	assert_int_equal(look().files, 1);
	assert_int_equal(look().others, geteuid() ? 6 : 7);
	assert_true(is_there("victim"));
	close(spool_open(folder_path, &err));
}

static void refused(const char *path, const char *why)
{
	struct err err = { 0 };

	assert_true(spool_open(path, &err) < 0);
	if (!strstr(err.text, why))
		fail_msg("'%s' is not in '%s'", why, err.text);
}

static void test_folders_that_others_could_change_are_refused(void **state)
{
	char path[64];

	assert_int_equal(fchmod(folder, 0770), 0);
	refused(folder_path, "others than its owner may write");
	assert_int_equal(fchmod(folder, 0702), 0);
	refused(folder_path, "others than its owner may write");
	assert_int_equal(fchmod(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/link", folder_path);
	assert_int_equal(symlinkat(".", folder, "link"), 0);
	refused(path, "is no folder, or a link");
	snprintf(path, sizeof(path), "%s/file", folder_path);
	make("file");
	refused(path, "is no folder");
	snprintf(path, sizeof(path), "%s/no/such", folder_path);
	refused(path, "No such file");
	if (geteuid())
		return;
	assert_int_equal(fchown(folder, 1, 1), 0);
	refused(folder_path, "belongs to user 1");
}

static void test_a_folder_that_is_missing_is_made_for_its_owner_alone(void **state)
{
	struct err err = { 0 };
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/spool", folder_path);
	fd = spool_open(path, &err);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close(fd);
}

static void test_a_folder_with_too_much_in_it_is_not_gone_through(void **state)
{
	struct spool_use use;
	struct err err = { 0 };
	char name[SPOOL_NAME_MAX];
	enum spool_why why;
	int outside = folder;

	if (mount("none", folder_path, "tmpfs", 0, "size=8m,mode=700,nr_inodes=0"))
		SKIP("no file system can be mounted here");
	folder = spool_open(folder_path, &err);
	make("one");
	for (unsigned i = 0; i < SPOOL_ENTRIES_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(linkat(folder, "one", folder, name, 0), 0);
	}
	assert_int_equal(spool_look(folder, &use), -E2BIG);
	assert_int_equal(put(&roomy, 10, name, &why), -E2BIG);
	assert_int_equal(why, SPOOL_UNWRITABLE);
	close(folder);
	folder = outside;
	assert_int_equal(umount2(folder_path, MNT_DETACH), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_name_tells_time_rule_and_number),
		TEST(test_only_names_of_our_kind_are_ours),
		TEST(test_a_clock_that_went_wild_still_makes_a_name),
		TEST(test_after_the_last_number_comes_the_first),
		TEST(test_the_oldest_go_by_their_number_whatever_the_clock_did),
		TEST(test_bytes_are_bounded_and_a_file_is_told_its_room),
		TEST(test_a_full_spool_can_keep_the_oldest),
		TEST(test_what_is_larger_than_the_spool_removes_nothing),
		TEST(test_the_floor_of_the_disk_removes_nothing_either),
		TEST(test_a_disk_that_is_full_is_no_room_and_leaves_nothing),
		TEST(test_a_writer_that_is_killed_leaves_nothing_whole_and_is_cleaned_up),
		TEST(test_a_file_that_exists_is_never_replaced),
		TEST(test_links_pipes_and_files_of_others_are_left_alone),
		TEST(test_folders_that_others_could_change_are_refused),
		TEST(test_a_folder_that_is_missing_is_made_for_its_owner_alone),
		TEST(test_a_folder_with_too_much_in_it_is_not_gone_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
