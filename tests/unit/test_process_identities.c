// SPDX-License-Identifier: MIT
/* Who processes are, as it is read and kept: of a made /proc, and of processes of this test. */
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "made_proc.h"
#include "identity/process_identities.h"
#include "identity/process_identity.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct process_identities *identities;
static char users[128];

static struct process_identities *begin_with(const char *proc, unsigned most, unsigned again_ms)
{
	struct process_identities_options options = {
		.reader = { .choice = { .n = 1, .labels = { "env_TEAM" } },
		            .made_proc = proc,
		            .made_users = proc ? users : NULL },
		.most = most,
		.again_ms = again_ms,
	};
	struct err err = { 0 };

	identities = process_identities_new(&options, &err);
	assert_non_null(identities);
	return identities;
}

static int begin(void **state)
{
	const char *proc = made_proc_begin();

	snprintf(users, sizeof(users), "%s/passwd", proc);
	*state = (void *)proc;
	return 0;
}

static int end(void **state)
{
	process_identities_free(identities);
	made_proc_end();
	return 0;
}

/* What is known once all is read; false: nothing. */
static bool ask(pid_t pid, uint64_t incarnation, struct process_identity *identity)
{
	process_identities_get(identities, pid, incarnation, identity);
	assert_true(process_identities_settle(identities, 10000));
	return process_identities_get(identities, pid, incarnation, identity);
}

static void test_all_that_is_known_of_a_process(void **state)
{
	struct process_identity who;

	begin_with(*state, 0, 0);
	made_proc_add(&(struct made_process){
		.pid = 42,
		.start_time = 7,
		.uid = 1000,
		.comm = "python3\n",
		.cgroup = "0::/docker/" ID "\n",
		.environ = "PATH=/bin|RANK=3|LOCAL_RANK=1|WORLD_SIZE=8|TEAM=blue|SLURM_JOB_ID=12|"
			   "SLURM_STEP_ID=0|SLURM_JOB_USER=ann",
		.cmdline = "/usr/bin/python3|/x/train.py|--password|secret",
	});
	assert_true(ask(42, 7, &who));
	assert_int_equal(who.pid, 42);
	assert_int_equal(who.start_time, 7);
	assert_string_equal(who.name, "python3");
	assert_string_equal(who.command, "python3 train.py");
	assert_int_equal(who.uid, 1000);
	assert_string_equal(who.user, "ann");
	assert_string_equal(who.runtime, "docker");
	assert_string_equal(who.container_id, ID);
	assert_int_equal(who.container_by, IDENTITY_CGROUP);
	assert_string_equal(who.slurm_job, "12");
	assert_string_equal(who.slurm_step, "0");
	assert_int_equal(who.slurm_by, IDENTITY_OWN_WORD);
	assert_string_equal(who.rank, "3");
	assert_string_equal(who.local_rank, "1");
	assert_string_equal(who.world_size, "8");
	assert_string_equal(who.slurm_user, "ann");
	assert_string_equal(who.chosen[0], "blue");
	assert_true(who.environment_read);
}

static void test_the_cgroups_job_wins_over_the_environments(void **state)
{
	struct process_identity who;

	begin_with(*state, 0, 0);
	made_proc_add(&(struct made_process){ .pid = 42,
	                                      .start_time = 7,
	                                      .cgroup = "0::/slurm/uid_0/job_5/step_1\n",
	                                      .environ = "SLURM_JOB_ID=12|SLURM_STEP_ID=0|"
	                                                 "SLURM_PROCID=2" });
	assert_true(ask(42, 0, &who));
	assert_string_equal(who.slurm_job, "5");
	assert_string_equal(who.slurm_step, "1");
	assert_int_equal(who.slurm_by, IDENTITY_CGROUP);
	assert_string_equal(who.rank, "2");
}

static void test_users_without_a_name_are_numbers(void **state)
{
	struct process_identity who;

	begin_with(*state, 0, 0);
	made_proc_add(&(struct made_process){ .pid = 42, .start_time = 7, .uid = 4711 });
	assert_true(ask(42, 7, &who));
	assert_string_equal(who.user, "4711");
}

static void test_another_process_by_the_same_number(void **state)
{
	struct process_identity who;

	begin_with(*state, 0, 0);
	made_proc_add(&(struct made_process){ .pid = 42, .start_time = 7, .comm = "first\n" });
	assert_true(ask(42, 1, &who));
	made_proc_add(&(struct made_process){ .pid = 42, .start_time = 9, .comm = "second\n" });
	assert_true(ask(42, 2, &who));
	assert_string_equal(who.name, "second");
	assert_true(process_identities_end(identities, 42, 1, &who));
	assert_string_equal(who.name, "first");
	assert_false(process_identities_end(identities, 42, 3, &who));
}

/* The number was given to it between the question and the reading. */
static void test_who_began_later_is_another_process(void **state)
{
	struct process_identity who;

	begin_with(*state, 0, 0);
	made_proc_add(&(struct made_process){ .pid = 42, .start_time = 1ul << 50 });
	assert_false(ask(42, 1, &who));
}

static void test_who_is_gone_is_not_known(void **state)
{
	struct process_identities_counts counts;
	struct process_identity who;

	begin_with(*state, 0, 0);
	assert_false(ask(42, 7, &who));
	process_identities_count(identities, &counts);
	assert_int_equal(counts.gone, counts.reads);
	made_proc_add(&(struct made_process){ .pid = 43, .start_time = 7, .comm = "ended\n" });
	assert_true(ask(43, 7, &who));
	made_proc_remove(43);
	assert_true(process_identities_end(identities, 43, 7, &who));
	assert_true(ask(43, 7, &who)); /* what is known of it stays */
	assert_string_equal(who.name, "ended");
}

static void test_other_variables_become_labels(void **state)
{
	struct process_label_choice choice = { .n = 2, .labels = { "env_A", "env_TEAM" } };
	struct process_identity who;

	begin_with(*state, 0, 0);
	made_proc_add(&(struct made_process){
		.pid = 42, .start_time = 7, .environ = "TEAM=blue|A=first" });
	assert_true(ask(42, 7, &who));
	assert_string_equal(who.chosen[0], "blue");
	process_identities_choose(identities, &choice);
	assert_true(ask(42, 7, &who));
	assert_string_equal(who.chosen[0], "first");
	assert_string_equal(who.chosen[1], "blue");
}

static void test_another_name_is_noticed(void **state)
{
	struct process_identity who;

	begin_with(*state, 0, 20);
	made_proc_add(&(struct made_process){ .pid = 42, .start_time = 7, .environ = "A=1" });
	assert_true(ask(42, 7, &who));
	made_proc_write("42/comm", "gemm\n", 5);
	for (int i = 0; i < 500 && strcmp(who.name, "gemm"); i++) {
		usleep(10000);
		assert_true(ask(42, 7, &who));
	}
	assert_string_equal(who.name, "gemm");
}

static void test_a_cgroup_that_changes_is_noticed(void **state)
{
	struct process_identity who = { 0 };

	begin_with(*state, 0, 20);
	made_proc_add(&(struct made_process){ .pid = 42, .start_time = 7, .environ = "A=1" });
	assert_true(ask(42, 7, &who));
	assert_string_equal(who.container_id, "");
	made_proc_write("42/cgroup", "0::/lxc/web\n", 12);
	for (int i = 0; i < 500 && !who.container_id[0]; i++) {
		usleep(10000);
		assert_true(ask(42, 7, &who));
	}
	assert_string_equal(who.container_id, "web");
}

static void test_places_are_bounded_and_the_ended_give_way(void **state)
{
	struct process_identities_counts counts;
	struct process_identity who;

	begin_with(*state, 2, 0);
	for (int pid = 1; pid <= 3; pid++)
		made_proc_add(&(struct made_process){ .pid = pid, .start_time = 7 });
	assert_true(ask(1, 7, &who));
	assert_true(ask(2, 7, &who));
	assert_false(ask(3, 7, &who)); /* both were just asked for */
	process_identities_count(identities, &counts);
	assert_int_equal(counts.kept, 2);
	assert_int_equal(counts.refused, 2);
	process_identities_end(identities, 2, 7, &who);
	assert_true(ask(3, 7, &who));
	assert_true(ask(1, 7, &who));
	process_identities_count(identities, &counts);
	assert_int_equal(counts.kept, 2);
}

/* 20,000 processes that come and go: reads are bounded in time, and places in number. */
static void test_who_is_expected_has_a_share(void **state)
{
	struct process_identities_counts counts;
	struct process_identity who;

	begin_with(*state, 8, 0);
	for (int pid = 1; pid <= 8; pid++)
		made_proc_add(&(struct made_process){ .pid = pid, .start_time = 7 });
	for (int pid = 1; pid <= 4; pid++)
		assert_int_equal(process_identities_expect(identities, pid, 7, 1000, 2), pid <= 2);
	assert_true(process_identities_expect(identities, 5, 7, 1001, 2));
	assert_true(process_identities_expect(identities, 6, 7, 0, 0)); /* root's have none */
	process_identities_count(identities, &counts);
	assert_int_equal(counts.over_share, 2);
	assert_int_equal(counts.refused, 0);
	assert_int_equal(counts.kept, 4);
	for (int pid = 3; pid <= 8; pid++) /* who is asked for is none of these */
		assert_true(pid == 5 || pid == 6 || ask(pid, 7, &who));
	for (int pid = 1; pid <= 2; pid++)
		process_identities_end(identities, pid, 7, &who);
	assert_true(process_identities_expect(identities, 9, 7, 1001, 2));  /* they give way, */
	assert_true(process_identities_expect(identities, 10, 7, 1000, 2)); /* with their share */
	process_identities_count(identities, &counts);
	assert_int_equal(counts.kept, 8);
	assert_int_equal(counts.over_share, 2);
}

static void test_processes_in_masses(void **state)
{
	struct process_identities_counts counts;
	struct process_identity who;

	begin_with(*state, 64, 0);
	for (int pid = 1; pid <= 20000; pid++) {
		process_identities_get(identities, pid, 7, &who);
		process_identities_end(identities, pid, 7, &who);
	}
	process_identities_count(identities, &counts);
	assert_in_range(counts.kept, 1, 64);
	assert_in_range(counts.waiting, 0, 64);
	assert_in_range(counts.reads, 0, 1000);
}

/* ---- a real one ---------------------------------------------------------------------------- */

static pid_t run_child(char *const environment[])
{
	char *const argv[] = { "/bin/sleep", "60", NULL };
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve(argv[0], argv, environment);
		_exit(1);
	}
	return child;
}

/* In the midst of an exec it has its new name, and no variables yet. */
static bool is_beginning(const struct process_identity *who)
{
	return strcmp(who->name, "sleep") || !who->environment_read;
}

static void test_a_real_process(void **state)
{
	char *const environment[] = { "RANK=5", "TEAM=green", NULL };
	pid_t child = run_child(environment);
	struct process_identity who = { 0 };

	begin_with(NULL, 0, 0);
	for (int i = 0; i < 500 && is_beginning(&who); i++) {
		usleep(10000);
		assert_true(ask(child, (uint64_t)i, &who));
	}
	assert_string_equal(who.name, "sleep");
	assert_int_equal(who.start_time, process_start_time(child));
	assert_string_equal(who.command, "sleep");
	assert_string_equal(who.rank, "5");
	assert_string_equal(who.chosen[0], "green");
	assert_int_equal(who.uid, getuid());
	assert_true(who.environment_read);
	assert_false(who.environment_cut);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_false(ask(child, 1000, &who));
}

/* 2 MiB before what is looked for: the beginning alone is looked at, and that is told. */
static void test_a_huge_environment(void **state)
{
	char *environment[33], *big = malloc(65536);
	struct process_identity who = { 0 };
	pid_t child;

	memset(big, 'A', 65535);
	big[1] = '=';
	big[65535] = '\0';
	for (int i = 1; i < 31; i++)
		environment[i] = big;
	environment[0] = "TEAM=first";
	environment[31] = "RANK=5";
	environment[32] = NULL;
	child = run_child(environment);
	begin_with(NULL, 0, 0);
	for (int i = 0; i < 500 && is_beginning(&who); i++) {
		usleep(10000);
		assert_true(ask(child, (uint64_t)i, &who));
	}
	assert_true(who.environment_cut);
	assert_string_equal(who.chosen[0], "first");
	assert_string_equal(who.rank, "");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	free(big);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_that_is_known_of_a_process),
		TEST(test_the_cgroups_job_wins_over_the_environments),
		TEST(test_users_without_a_name_are_numbers),
		TEST(test_another_process_by_the_same_number),
		TEST(test_who_is_gone_is_not_known),
		TEST(test_who_began_later_is_another_process),
		TEST(test_other_variables_become_labels),
		TEST(test_another_name_is_noticed),
		TEST(test_a_cgroup_that_changes_is_noticed),
		TEST(test_places_are_bounded_and_the_ended_give_way),
		TEST(test_who_is_expected_has_a_share),
		TEST(test_processes_in_masses),
		TEST(test_a_real_process),
		TEST(test_a_huge_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
