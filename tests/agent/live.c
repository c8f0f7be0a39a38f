// SPDX-License-Identifier: MIT
/* cuscope's side of the agents, the agent itself and a process: on the simulated driver
 * and CUPTI. */
#include "agent/agents.h"
#include "target.h"

struct live {
	struct agents *agents;
	struct agents_options options;
	pid_t wanted;
	size_t kernels, calls, others, states;
	uint64_t first_ns, last_ns, now_ns; /* of kernels; of the last turn */
	uint64_t gaps;                      /* between kernels, longer than 100 ms */
	uint32_t told;                      /* bits of states */
	struct agent_status last;
	char why[1024];
	size_t news[3]; /* by enum agent_probes_news */
	struct agent_probes_answer news_last;
};

static void take_record(void *data, uint32_t pid, const struct agent_head *record)
{
	const struct agent_kernel *kernel = (const struct agent_kernel *)record;
	struct live *live = data;

	if (record->type == AGENT_CALL) {
		live->calls++;
	} else if (record->type == AGENT_KERNEL) {
		live->gaps += live->last_ns && kernel->begin_ns > live->last_ns + SECOND / 10;
		live->last_ns = kernel->begin_ns;
		if (!live->kernels++)
			live->first_ns = kernel->begin_ns;
	} else {
		live->others++;
	}
}

static void take_state(void *data, const struct agent_status *status)
{
	struct live *live = data;

	live->last = *status;
	live->states++;
	live->told |= 1u << status->state;
	snprintf(live->why, sizeof(live->why), "%s", status->why ? status->why : "");
}

static void take_news(void *data, uint32_t pid, const struct agent_probes_answer *answer)
{
	struct live *live = data;

	if (answer->why)
		fail_msg("%s", answer->why);
	live->news[answer->news]++;
	live->news_last = *answer;
}

static bool is_wanted(void *data, pid_t pid)
{
	return pid == ((struct live *)data)->wanted;
}

/* A libcupti of the simulated driver's: the agent could find a real one on this machine. */
static const char *libcupti(const char *version)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/simcuda/libcupti.so.%s", build_folder(), version);
	return path;
}

static int open_live(void **state)
{
	struct live *live = calloc(1, sizeof(*live));

	live->options = (struct agents_options){ .kinds = AGENT_WANT_KERNELS,
		                                 .cupti = libcupti("13"),
		                                 .record = take_record,
		                                 .state = take_state,
		                                 .wanted = is_wanted,
		                                 .data = live };
	*state = live;
	return 0;
}

static int close_live(void **state)
{
	struct live *live = *state;

	agents_free(live->agents);
	free(live);
	return 0;
}

static void begin(struct live *live)
{
	struct err err = { 0 };

	if (agents_new(&live->options, &live->agents, &err))
		fail_msg("%s", err.text);
}

static void turn(struct live *live)
{
	struct pollfd ready = { .fd = agents_fd(live->agents), .events = POLLIN };

	poll(&ready, 1, 20);
	live->now_ns = now_ns();
	agents_turn(live->agents, live->now_ns);
}

static void turn_for(struct live *live, uint64_t ns)
{
	for (uint64_t end = now_ns() + ns; now_ns() < end;)
		turn(live);
}

static void turn_until(struct live *live, enum agent_state state)
{
	for (uint64_t end = now_ns() + 20 * SECOND; !(live->told & 1u << state);) {
		if (now_ns() > end)
			fail_msg("state %d does not come; the last is %d '%s'", state,
			         live->last.state, live->why);
		turn(live);
	}
	if (live->last.state != state)
		fail_msg("after state %d: %d '%s'", state, live->last.state, live->why);
}

static void start(struct live *live, struct target *target, const char *program,
                  const char *const *words, const char *more)
{
	char *const *environment;
	struct err err = { 0 };

	if (!live->agents)
		begin(live);
	if (agents_environment(live->agents, &environment, &err))
		fail_msg("%s", err.text);
	target_start(target, program, words, environment, more);
	live->wanted = target->pid;
}

static void stop(struct live *live)
{
	agents_stop(live->agents);
	for (uint64_t end = now_ns() + 10 * SECOND; !agents_stopped(live->agents);) {
		if (now_ns() > end)
			fail_msg("agents do not stop; the last state is %d", live->last.state);
		turn(live);
	}
}

static const char *const loop_words[] = { "20", "500", NULL };

/* ---- started --------------------------------------------------------------------------------- */

static void test_every_kernel_of_a_command_is_told(void **state)
{
	struct live *live = *state;
	struct target target;

	start(live, &target, "loop", loop_words, NULL);
	turn_until(live, AGENT_RUNNING);
	turn_for(live, SECOND / 2);
	target_let_end(&target);
	turn_until(live, AGENT_OFF);
	assert_int_equal(target_end(&target), 0);
	assert_int_equal(live->kernels, target_launches(&target));
	assert_int_equal(live->calls, live->kernels);
	assert_true(live->kernels > 100);
}

static void test_a_given_cupti_is_used(void **state)
{
	struct live *live = *state;
	struct target target;

	live->options.cupti = libcupti("12");
	start(live, &target, "loop", loop_words, NULL);
	turn_until(live, AGENT_RUNNING);
	assert_in_range(live->last.cupti_version, 1, 129999);
	stop(live);
	assert_int_equal(target_end(&target), 0);
	unlink(target.counts);
}

static void test_another_profiler_is_told_of(void **state)
{
	struct live *live = *state;
	struct target target;

	start(live, &target, "loop", loop_words, "SIMCUPTI_BUSY=1");
	turn_until(live, AGENT_FAILED);
	assert_int_equal(live->last.failure, AGENT_CUPTI_BUSY);
	assert_non_null(strstr(live->why, "another profiler"));
	assert_int_equal(target_end(&target), 0);
	unlink(target.counts);
}

static void test_a_killed_command_s_last_kernels_are_read(void **state)
{
	struct live *live = *state;
	struct target target;

	start(live, &target, "loop", loop_words, NULL);
	turn_until(live, AGENT_RUNNING);
	turn_for(live, 3 * SECOND / 2);
	kill(target.pid, SIGKILL);
	turn_until(live, AGENT_OFF);
	assert_true(live->kernels > 100);
	assert_true(WIFSIGNALED(target_end(&target)));
	unlink(target.counts);
}

static void test_a_command_that_nobody_listens_to_runs_as_ever(void **state)
{
	struct live *live = *state;
	struct target target;

	start(live, &target, "loop", loop_words, NULL);
	agents_free(live->agents);
	live->agents = NULL;
	target_ready(&target);
	assert_int_equal(target_end(&target), 0);
	unlink(target.counts);
}

/* ---- entered --------------------------------------------------------------------------------- */

static void test_a_running_process_is_entered_and_left(void **state)
{
	struct live *live = *state;
	struct target target;
	size_t kernels;

	target_start(&target, "loop", loop_words, NULL, NULL);
	target_ready(&target);
	begin(live);
	agents_enter(live->agents, target.pid);
	turn_until(live, AGENT_RUNNING);
	assert_in_range(live->last.stopped_ns, 1, SECOND);
	turn_for(live, SECOND / 2);
	stop(live);
	assert_int_equal(live->last.state, AGENT_OFF);
	kernels = live->kernels;
	assert_true(kernels > 50);
	assert_in_range(live->calls, kernels - 2, kernels + 2); /* its ends are within a call */
	assert_int_equal(target_end(&target), 0);
	assert_true(target_launches(&target) > kernels);
}

/* Two thirds of a millisecond where the target has a processor to itself; here it
 * shares them with other tests, so one of ten has to be near that. */
#define MOMENT_NS (SECOND / 20)

static void test_who_is_entered_is_stopped_for_a_moment_only(void **state)
{
	struct live *live = *state;
	uint64_t least_ns = SECOND;

	for (int i = 0; i < 10 && least_ns > MOMENT_NS; i++) {
		struct target target;

		target_start(&target, "loop", loop_words, NULL, NULL);
		target_ready(&target);
		live->told = 0;
		begin(live);
		agents_enter(live->agents, target.pid);
		turn_until(live, AGENT_RUNNING);
		assert_true(live->last.stopped_ns > 0);
		if (live->last.stopped_ns < least_ns)
			least_ns = live->last.stopped_ns;
		stop(live);
		agents_free(live->agents);
		live->agents = NULL;
		assert_int_equal(target_end(&target), 0);
		unlink(target.counts);
	}
	assert_in_range(least_ns, 1, MOMENT_NS);
}

static void test_it_can_be_entered_again_and_again(void **state)
{
	struct target target;

	target_start(&target, "loop", loop_words, NULL, NULL);
	target_ready(&target);
	for (int i = 0; i < 10; i++) {
		struct live *live = *state;

		live->told = 0;
		live->kernels = 0;
		begin(live);
		agents_enter(live->agents, target.pid);
		turn_until(live, AGENT_RUNNING);
		turn_for(live, SECOND / 20);
		stop(live);
		assert_true(live->kernels > 0);
		agents_free(live->agents);
		live->agents = NULL;
	}
	assert_int_equal(target_end(&target), 0);
	unlink(target.counts);
}

static void test_measuring_a_part_of_the_time_leaves_gaps(void **state)
{
	struct live *live = *state;
	struct target target;
	size_t launches;

	live->options.window_ns = SECOND / 5;
	live->options.period_ns = 3 * SECOND / 5;
	start(live, &target, "loop", loop_words, NULL);
	turn_until(live, AGENT_RUNNING);
	turn_for(live, 2 * SECOND);
	assert_int_equal(live->last.state, AGENT_RUNNING); /* windows are not told */
	stop(live);
	assert_int_equal(live->last.state, AGENT_OFF);
	assert_int_equal(target_end(&target), 0);
	launches = target_launches(&target);
	assert_true(live->kernels > launches / 10);
	assert_true(live->kernels < launches * 2 / 3);
	assert_in_range(live->gaps, 2, 4);
}

/* ---- cuscope dies ---------------------------------------------------------------------------- */

/* As cuscope would: enters, says so, and reads until it is killed. */
static pid_t begin_in_child(struct live *live, pid_t pid)
{
	int says[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe2(says, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		begin(live);
		agents_enter(live->agents, pid);
		turn_until(live, AGENT_RUNNING);
		if (write(says[1], "r", 1) != 1)
			_exit(1);
		turn_for(live, 60 * SECOND);
		_exit(0);
	}
	close(says[1]);
	assert_int_equal(read(says[0], &byte, 1), 1);
	close(says[0]);
	return child;
}

static size_t threads_of(pid_t pid)
{
	char path[64], line[128];
	size_t n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "Threads: %zu", &n);
	if (file)
		fclose(file);
	return n;
}

static void test_agents_leave_when_cuscope_is_killed(void **state)
{
	struct live *live = *state;
	struct target target;
	size_t threads;

	target_start(&target, "loop", loop_words, NULL, NULL);
	target_ready(&target);
	threads = threads_of(target.pid);
	for (int i = 0; i < 5; i++) {
		pid_t cuscope = begin_in_child(live, target.pid);
		uint64_t killed;

		assert_true(threads_of(target.pid) > threads);
		kill(cuscope, SIGKILL);
		waitpid(cuscope, NULL, 0);
		killed = now_ns();
		while (threads_of(target.pid) > threads) {
			assert_true(now_ns() - killed < SECOND);
			usleep(1000);
		}
	}
	assert_int_equal(target_end(&target), 0);
	unlink(target.counts);
}

/* ---- calls that are recorded inside ---------------------------------------------------------- */

static void turn_until_news(struct live *live, enum agent_probes_news news, size_t n)
{
	for (uint64_t end = now_ns() + 20 * SECOND; live->news[news] < n; turn(live)) {
		if (now_ns() > end)
			fail_msg("news %d do not come; the last state is %d '%s'", news,
			         live->last.state, live->why);
	}
}

static bool maps_have(pid_t pid, const char *begin, const char *part)
{
	char path[64], line[4096];
	bool have = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	while (file && !have && fgets(line, sizeof(line), file))
		have = !strncmp(line, begin, strlen(begin)) && strstr(line, part);
	fclose(file);
	return have;
}

/* All requests, as cuscope makes them of a process; but nothing leads to the thunk. */
static void ask_all(struct live *live, pid_t pid)
{
	struct agent_slot slot = { .slot = 1, .does = AGENT_SLOT_PASSES_ON };
	char begin[32];

	turn_until_news(live, AGENT_PROBES_READY, 1);
	assert_true(live->news_last.slots > 1000);
	assert_true(agents_probes_area(live->agents, pid, live->news_last.thunks, 5000) > 0);
	turn_until_news(live, AGENT_PROBES_ANSWER, 1);
	slot.original = live->news_last.area + 64;
	snprintf(begin, sizeof(begin), "%llx-", (unsigned long long)live->news_last.area);
	assert_true(maps_have(pid, begin, "r-xp"));
	assert_true(agents_probes_set(live->agents, pid, &slot, 1) > 0);
	assert_true(agents_probes_turn(live->agents, pid, 1, 1, AGENT_SLOT_CALL) > 0);
	turn_until_news(live, AGENT_PROBES_ANSWER, 3);
	assert_false(maps_have(pid, "", "cupti"));
	assert_int_equal(live->news[AGENT_PROBES_ENDED], 0);
}

static void test_a_running_process_records_calls_without_cupti(void **state)
{
	struct live *live = *state;
	struct target target;

	live->options.kinds = 0;
	live->options.cupti = NULL;
	live->options.probes = (struct agents_probes){ .wanted = true, .news = take_news };
	target_start(&target, "loop", loop_words, NULL, NULL);
	target_ready(&target);
	begin(live);
	agents_enter(live->agents, target.pid);
	ask_all(live, target.pid);
	stop(live);
	assert_int_equal(live->news[AGENT_PROBES_ENDED], 1);
	assert_int_equal(live->last.state, AGENT_OFF);
	assert_int_equal(target_end(&target), 0);
	unlink(target.counts);
}

static void test_a_command_records_calls_without_cupti(void **state)
{
	struct live *live = *state;
	struct target target;

	live->options.kinds = 0;
	live->options.cupti = NULL;
	live->options.probes = (struct agents_probes){ .wanted = true, .news = take_news };
	start(live, &target, "loop", loop_words, NULL);
	ask_all(live, target.pid);
	target_let_end(&target);
	turn_until_news(live, AGENT_PROBES_ENDED, 1);
	assert_int_equal(target_end(&target), 0);
	unlink(target.counts);
}

#define LIVE_TEST(test) cmocka_unit_test_setup_teardown(test, open_live, close_live)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(test_every_kernel_of_a_command_is_told),
		LIVE_TEST(test_a_given_cupti_is_used),
		LIVE_TEST(test_another_profiler_is_told_of),
		LIVE_TEST(test_a_killed_command_s_last_kernels_are_read),
		LIVE_TEST(test_a_command_that_nobody_listens_to_runs_as_ever),
		LIVE_TEST(test_a_running_process_is_entered_and_left),
		LIVE_TEST(test_who_is_entered_is_stopped_for_a_moment_only),
		LIVE_TEST(test_it_can_be_entered_again_and_again),
		LIVE_TEST(test_measuring_a_part_of_the_time_leaves_gaps),
		LIVE_TEST(test_agents_leave_when_cuscope_is_killed),
		LIVE_TEST(test_a_running_process_records_calls_without_cupti),
		LIVE_TEST(test_a_command_records_calls_without_cupti),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
