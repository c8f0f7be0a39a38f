// SPDX-License-Identifier: MIT
/* Users who have many uids are one person all the same. */
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../programs/own_root.h"
#include "probe/person.h"
#include "probe/hook_numbers.h"

static char folder[] = "/tmp/cuscope-person-XXXXXX", ranges[64], users[64];

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int write_ranges(void **state)
{
	write_file(ranges,
	           "ann:100000:65536\n1001:165536:65536\nroot:300000:10\nnobody-known:400000:10\n"
	           "ann:not a number:3\nann\n\n:::\n");
	person_files(ranges, users);
	return 0;
}

static int begin(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(ranges, sizeof(ranges), "%s/subuid", folder);
	snprintf(users, sizeof(users), "%s/passwd", folder);
	write_file(users, "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n");
	return 0;
}

static int end(void **state)
{
	person_files(NULL, NULL);
	unlink(ranges);
	unlink(users);
	return rmdir(folder);
}

static void test_a_range_of_uids_is_its_users(void **state)
{
	assert_int_equal(person_of_uid(0), PERSON_ROOT);
	assert_int_equal(person_of_uid(1000), 1000);
	assert_int_equal(person_of_uid(99999), 99999);
	assert_int_equal(person_of_uid(100000), 1000);
	assert_int_equal(person_of_uid(165535), 1000);
	assert_int_equal(person_of_uid(165536), 1001);
	assert_int_equal(person_of_uid(231072), 231072);
}

/* A container that root has made is not root. */
static void test_ranges_of_root_and_of_nobody_are_persons_of_their_own(void **state)
{
	assert_int_equal(person_of_uid(300003), PERSON_RANGE | 300000);
	assert_int_equal(person_of_uid(400003), PERSON_RANGE | 400000);
}

static void test_ranges_that_change_are_read_again(void **state)
{
	struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	write_file(ranges, "2000:500000:10\n");
	assert_int_equal(utimensat(AT_FDCWD, ranges, times, 0), 0);
	assert_int_equal(person_of_uid(500001), 2000);
	assert_int_equal(person_of_uid(100000), 100000);
}

static void test_one_person_with_many_uids_has_one_share(void **state)
{
	struct shares shares = shares_init();
	unsigned n = 0;

	for (uid_t uid = 100000; uid < 100000 + 2 * SHARE_USER_FILES; uid++)
		n += !shares_take_file(&shares, person_of_file(uid, PERSON_UNKNOWN));
	assert_int_equal(n, SHARE_USER_FILES);
	shares_free(&shares);
}

static void test_a_file_is_of_who_maps_it_unless_root_does_or_owns_it(void **state)
{
	assert_int_equal(person_of_file(0, 1000), PERSON_ROOT);
	assert_int_equal(person_of_file(1000, 1001), 1001);
	assert_int_equal(person_of_file(1000, PERSON_ROOT), 1000);
	assert_int_equal(person_of_file(100007, PERSON_UNKNOWN), 1000);
}

/* ---- processes ----------------------------------------------------------------------------- */

static bool tell_kernel(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return done;
}

/* Without one for groups as well there are no namespaces within. */
static bool map_self(unsigned outside)
{
	char map[64];

	snprintf(map, sizeof(map), "0 %u 1", outside);
	prctl(PR_SET_DUMPABLE, 1);
	return tell_kernel("/proc/self/uid_map", map) &&
	       tell_kernel("/proc/self/setgroups", "deny") &&
	       tell_kernel("/proc/self/gid_map", map);
}

/* A process with this uid in so many namespaces; 0: there are none here. */
static pid_t start(uid_t uid, int namespaces)
{
	int ready[2];
	char ok = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		ok = setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;
		for (int i = 0; i < namespaces && ok; i++)
			ok = unshare(CLONE_NEWUSER) == 0 && map_self(i ? 0 : uid);
		if (write(ready[1], &ok, 1) == 1)
			pause();
		_exit(0);
	}
	if (read(ready[0], &ok, 1) != 1)
		ok = 0;
	close(ready[0]);
	close(ready[1]);
	if (ok)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static uint64_t person_in(uid_t uid, int namespaces)
{
	pid_t pid = start(uid, namespaces);
	uint64_t person;

	if (!pid)
		SKIP("no such process can be made here: root, or namespaces, are missing");
	person = person_of_process(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return person;
}

static void test_a_process_is_of_its_user(void **state)
{
	assert_int_equal(person_in(1000, 0), 1000);
	assert_int_equal(person_in(100001, 0), 1000);
	assert_int_equal(person_in(0, 0), PERSON_ROOT);
}

static void test_namespaces_are_of_who_made_the_outermost(void **state)
{
	assert_int_equal(person_in(1000, 1), 1000);
	assert_int_equal(person_in(1000, 3), 1000);
	assert_int_equal(person_in(100001, 2), 1000);
}

static void test_a_namespace_that_root_made_is_a_person(void **state)
{
	assert_true(person_in(0, 1) & PERSON_NAMESPACE);
}

static void test_a_process_that_is_gone_is_of_nobody(void **state)
{
	pid_t pid = start(1000, 0);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(person_of_process(pid), PERSON_UNKNOWN);
}

#define TEST(name) cmocka_unit_test_setup(name, write_ranges)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_range_of_uids_is_its_users),
		TEST(test_ranges_of_root_and_of_nobody_are_persons_of_their_own),
		TEST(test_ranges_that_change_are_read_again),
		TEST(test_one_person_with_many_uids_has_one_share),
		TEST(test_a_file_is_of_who_maps_it_unless_root_does_or_owns_it),
		TEST(test_a_process_is_of_its_user),
		TEST(test_namespaces_are_of_who_made_the_outermost),
		TEST(test_a_namespace_that_root_made_is_a_person),
		TEST(test_a_process_that_is_gone_is_of_nobody),
	};

	if (geteuid() == 0)
		own_root(); /* in a chroot nobody can make a user namespace */
	return cmocka_run_group_tests(tests, begin, end);
}
