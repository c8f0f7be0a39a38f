// SPDX-License-Identifier: MIT
/* Children of this process are the targets, and folders that look like cgroups. */
#include "elf_build.h"
#include "unit.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "capture/target.h"

#define NO_PROCESS 5000001 /* beyond the largest pid that Linux gives out */

/* ---- children ------------------------------------------------------------------------------ */

static void filter_system_calls(void)
{
	struct sock_filter allow_all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow_all };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
}

/* A process of that name, which waits to be ended. */
static pid_t start(const char *name, void (*first)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		if (first)
			first();
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	assert_true(pid > 0);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what was found ------------------------------------------------------------------------ */

struct found {
	pid_t pid[4096];
	size_t count;
	size_t stop_at; /* the one at which 7 is returned; 0: never */
};

static struct found found;

static int add(void *data, pid_t pid)
{
	struct found *to = data;

	assert_true(to->count < 4096);
	to->pid[to->count++] = pid;
	return to->count == to->stop_at ? 7 : 0;
}

static bool was_found(pid_t pid)
{
	size_t times = 0;

	for (size_t i = 0; i < found.count; i++)
		times += found.pid[i] == pid;
	assert_true(times <= 1);
	return times;
}

static int find_all(const struct target *target, struct err *err)
{
	memset(err, 0, sizeof(*err));
	found.count = 0;
	return target_each(target, add, &found, err);
}

static int reset(void **state)
{
	memset(&found, 0, sizeof(found));
	return 0;
}

/* ---- by pid -------------------------------------------------------------------------------- */

static void test_given_pids_are_the_targets(void **state)
{
	pid_t one = start("cuscope-one", NULL), two = start("cuscope-two", NULL);
	const pid_t pids[] = { two, one };
	const struct target target = { .kind = TARGET_PIDS, .pids = pids, .n_pids = 2 };
	struct err err;

	assert_int_equal(find_all(&target, &err), 0);
	assert_int_equal(found.count, 2);
	assert_true(was_found(one) && was_found(two));
	end(one);
	end(two);
}

static void test_a_pid_that_does_not_exist_is_an_error(void **state)
{
	const pid_t pids[] = { NO_PROCESS };
	const struct target target = { .kind = TARGET_PIDS, .pids = pids, .n_pids = 1 };
	struct err err;

	assert_int_equal(find_all(&target, &err), -ESRCH);
	assert_string_equal(err.text, "there is no process 5000001");
	assert_int_equal(found.count, 0);
}

static struct {
	unsigned times;
	char text[128];
} passed;

static void pass(const char *why)
{
	passed.times++;
	snprintf(passed.text, sizeof(passed.text), "%s", why);
}

static void test_pids_that_cannot_be_traced_may_be_passed_over(void **state)
{
	pid_t one = start("cuscope-one", NULL), two = start("cuscope-two", NULL), gone = fork();
	const pid_t pids[] = { NO_PROCESS, one, gone, two };
	struct target target = { .kind = TARGET_PIDS, .pids = pids, .n_pids = 4, .pass = pass };
	siginfo_t info;
	struct err err;

	if (!gone)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)gone, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(find_all(&target, &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(found.count, 2);
	assert_true(was_found(one) && was_found(two));
	assert_int_equal(passed.times, 2);
	assert_non_null(strstr(passed.text, "has ended (a zombie)"));
	target.n_pids = 1; /* where none is left it is a failure */
	assert_int_equal(find_all(&target, &err), -ESRCH);
	assert_string_equal(err.text, "there is no process 5000001");
	target.n_pids = 4;
	target.pass = NULL;
	assert_int_equal(find_all(&target, &err), -ESRCH);
	end(gone);
	end(one);
	end(two);
}

/* Has a child, whose pid it tells. */
static pid_t started[2];
static int tell[2];

static void start_below(void)
{
	pid_t pid = start("cuscope-below", NULL);

	assert_int_equal(write(tell[1], &pid, sizeof(pid)), sizeof(pid));
}

static void start_family(void)
{
	pid_t pid = start("cuscope-child", start_below);

	assert_int_equal(write(tell[1], &pid, sizeof(pid)), sizeof(pid));
}

static void test_what_is_below_given_pids_is_found_where_it_is_asked_for(void **state)
{
	pid_t one, other = start("cuscope-other", NULL);
	struct target target = { .kind = TARGET_PIDS, .pids = &one, .n_pids = 1 };
	struct err err;

	assert_int_equal(pipe(tell), 0);
	one = start("cuscope-one", start_family);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(tell[0], &started[i], sizeof(pid_t)), sizeof(pid_t));
	assert_int_equal(find_all(&target, &err), 0);
	assert_int_equal(found.count, 1);
	target.family = true;
	assert_int_equal(find_all(&target, &err), 0);
	assert_int_equal(found.count, 3);
	assert_true(was_found(one) && was_found(started[0]) && was_found(started[1]));
	assert_false(was_found(other));
	end(one); /* with it those below, as start() asks for */
	end(other);
	close(tell[0]);
	close(tell[1]);
}

static void test_this_program_and_what_it_has_started_are_no_family(void **state)
{
	const pid_t above = getppid();
	const struct target target = {
		.kind = TARGET_PIDS, .pids = &above, .n_pids = 1, .family = true
	};
	pid_t below = start("cuscope-below", NULL);
	struct err err;

	assert_int_equal(find_all(&target, &err), 0);
	assert_true(was_found(above));
	assert_false(was_found(getpid()) || was_found(below));
	end(below);
}

/* ---- by name ------------------------------------------------------------------------------- */

static void test_processes_are_found_by_their_name(void **state)
{
	pid_t one = start("cuscope-one", NULL), other = start("other", NULL);
	const struct target target = { .kind = TARGET_NAME, .glob = "cuscope-*" };
	struct err err;

	assert_int_equal(find_all(&target, &err), 0);
	assert_true(was_found(one));
	assert_false(was_found(other));
	end(one);
	end(other);
}

static void test_processes_are_found_by_the_file_of_their_program(void **state)
{
	pid_t pid = start("renamed", NULL);
	const struct target target = { .kind = TARGET_NAME, .glob = "test_targe?" };
	const struct target path = { .kind = TARGET_NAME, .glob = "*unit/test_target" };
	struct err err;

	assert_int_equal(find_all(&target, &err), 0);
	assert_true(was_found(pid));
	assert_int_equal(find_all(&path, &err), 0);
	assert_false(was_found(pid));
	end(pid);
}

/* Longer than the 15 characters that a process's name can have. */
static void test_a_program_that_was_deleted_has_its_name_still(void **state)
{
	const struct target target = { .kind = TARGET_NAME, .glob = "cuscope-deleted-program" };
	const char *path = in_dir("cuscope-deleted-program");
	pid_t pid;

	run("cp /bin/sleep cuscope-deleted-program");
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, "100", NULL);
		_exit(127);
	}
	for (int i = 0; i < 2000 && !target_name_matches(&target, pid); i++)
		usleep(1000);
	unlink(path);
	assert_true(target_name_matches(&target, pid));
	end(pid);
}

static void test_one_name_of_a_process_may_match(void **state)
{
	const struct target target = { .kind = TARGET_NAME, .glob = "cuscope-one" };
	pid_t one = start("cuscope-one", NULL), other = start("other", NULL);

	assert_true(target_name_matches(&target, one));
	assert_false(target_name_matches(&target, other));
	assert_false(target_name_matches(&target, NO_PROCESS));
	end(one);
	end(other);
}

/* ---- all ----------------------------------------------------------------------------------- */

static void test_all_are_all_but_this_one(void **state)
{
	pid_t pid = start("cuscope-one", NULL);
	const struct target target = { .kind = TARGET_ALL };
	struct err err;

	assert_int_equal(find_all(&target, &err), 0);
	assert_true(was_found(pid));
	assert_false(was_found(getpid()));
	end(pid);
}

static void test_a_command_is_not_there_yet(void **state)
{
	const struct target target = { .kind = TARGET_COMMAND };
	struct err err;

	assert_int_equal(find_all(&target, &err), 0);
	assert_int_equal(found.count, 0);
}

static void test_what_stops_the_search_is_passed_on(void **state)
{
	const struct target target = { .kind = TARGET_ALL };
	struct err err;

	found.stop_at = 1;
	assert_int_equal(find_all(&target, &err), 7);
	assert_int_equal(found.count, 1);
}

/* ---- by cgroup ----------------------------------------------------------------------------- */

/* Stands in for the C library's: folders of this test are in a cgroup2 file system. */
static bool is_cgroup2;

int fstatfs(int fd, struct statfs *fs)
{
	memset(fs, 0, sizeof(*fs));
	fs->f_type = is_cgroup2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC;
	return 0;
}

static const char *make_cgroups(void)
{
	static char folder[128];

	snprintf(folder, sizeof(folder), "%s", in_dir("group"));
	run("mkdir -p group/inner/deep group/empty");
	write_file(in_dir("group/cgroup.procs"), "11\n12\n");
	write_file(in_dir("group/inner/cgroup.procs"), "21\n");
	write_file(in_dir("group/inner/deep/cgroup.procs"), "31\n0\n");
	write_file(in_dir("group/empty/cgroup.procs"), "");
	is_cgroup2 = true;
	return folder;
}

static void test_a_cgroup_means_those_below_it_too(void **state)
{
	const struct target target = { .kind = TARGET_CGROUP, .cgroup = make_cgroups() };
	struct err err;

	assert_int_equal(find_all(&target, &err), 0);
	assert_int_equal(found.count, 4); /* 0 is a process of another pid namespace */
	assert_true(was_found(11) && was_found(12) && was_found(21) && was_found(31));
}

/* More of them in each other than this process may have open. */
static void test_cgroups_far_below_are_found(void **state)
{
	const struct target target = { .kind = TARGET_CGROUP, .cgroup = make_cgroups() };
	struct rlimit before, few;
	char path[512] = "group";
	struct err err;

	for (size_t i = 0; i < 200; i++)
		strcat(path, "/d");
	run("mkdir -p %s group/z", path);
	write_file(in_dir("group/z/cgroup.procs"), "51\n");
	run("echo 41 > %s/cgroup.procs", path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = 64, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(find_all(&target, &err), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(found.count, 6);
	assert_true(was_found(41) && was_found(51) && was_found(31));
}

static void test_the_search_of_a_cgroup_can_be_stopped(void **state)
{
	const struct target target = { .kind = TARGET_CGROUP, .cgroup = make_cgroups() };
	struct err err;

	found.stop_at = 3;
	assert_int_equal(find_all(&target, &err), 7);
	assert_int_equal(found.count, 3);
}

static size_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void test_no_descriptor_is_left_open(void **state)
{
	const struct target target = { .kind = TARGET_CGROUP, .cgroup = make_cgroups() };
	size_t before = open_descriptors();
	struct err err;

	assert_int_equal(find_all(&target, &err), 0);
	assert_int_equal(open_descriptors(), before);
}

static void test_a_folder_that_is_no_cgroup_is_an_error(void **state)
{
	const struct target target = { .kind = TARGET_CGROUP, .cgroup = dir };
	struct err err;

	is_cgroup2 = true;
	assert_int_equal(find_all(&target, &err), -ENOENT);
	assert_non_null(strstr(err.text, "is no cgroup"));
	assert_non_null(strstr(err.text, dir));
}

static void test_a_cgroup_of_version_1_is_none(void **state)
{
	const struct target target = { .kind = TARGET_CGROUP, .cgroup = make_cgroups() };
	struct err err;

	is_cgroup2 = false;
	assert_int_equal(find_all(&target, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cgroup2 only"));
}

/* ---- seccomp ------------------------------------------------------------------------------- */

static void test_a_process_under_a_filter_is_known(void **state)
{
	pid_t pid = start("filtered", filter_system_calls);

	assert_int_equal(target_seccomp_mode(pid), 2);
	end(pid);
}

static void test_a_process_that_is_gone_has_no_filter(void **state)
{
	assert_int_equal(target_seccomp_mode(NO_PROCESS), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

#define LEVELS 200

static int count(void *data, pid_t pid)
{
	assert_true(pid > 0);
	++*(size_t *)data;
	return 0;
}

/* Each the child of the one before; the last says that all are there. */
static void descend(int ready)
{
	int levels = LEVELS;

	while (levels && !fork())
		levels--;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!levels)
		assert_int_equal(write(ready, "", 1), 1);
	for (;;)
		pause();
}

/* A program that wants not to be seen starts one that starts one ... */
static void test_all_levels_below_a_process_are_targets(void **state)
{
	struct target target = { .kind = TARGET_PIDS, .n_pids = 1, .family = true };
	struct err err = { 0 };
	int ready[2];
	size_t seen = 0;
	pid_t first;
	char byte;

	assert_int_equal(pipe(ready), 0);
	first = fork();
	if (!first)
		descend(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	target.pids = &first;
	assert_int_equal(target_each(&target, count, &seen, &err), 0);
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	assert_int_equal(seen, 1 + LEVELS);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_given_pids_are_the_targets),
		TEST(test_a_pid_that_does_not_exist_is_an_error),
		TEST(test_pids_that_cannot_be_traced_may_be_passed_over),
		TEST(test_what_is_below_given_pids_is_found_where_it_is_asked_for),
		TEST(test_all_levels_below_a_process_are_targets),
		TEST(test_this_program_and_what_it_has_started_are_no_family),
		TEST(test_processes_are_found_by_their_name),
		TEST(test_processes_are_found_by_the_file_of_their_program),
		TEST(test_a_program_that_was_deleted_has_its_name_still),
		TEST(test_one_name_of_a_process_may_match),
		TEST(test_all_are_all_but_this_one),
		TEST(test_a_command_is_not_there_yet),
		TEST(test_what_stops_the_search_is_passed_on),
		TEST(test_a_cgroup_means_those_below_it_too),
		TEST(test_cgroups_far_below_are_found),
		TEST(test_the_search_of_a_cgroup_can_be_stopped),
		TEST(test_no_descriptor_is_left_open),
		TEST(test_a_folder_that_is_no_cgroup_is_an_error),
		TEST(test_a_cgroup_of_version_1_is_none),
		TEST(test_a_process_under_a_filter_is_known),
		TEST(test_a_process_that_is_gone_has_no_filter),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
