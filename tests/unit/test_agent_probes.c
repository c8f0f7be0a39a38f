// SPDX-License-Identifier: MIT
/* What cuscope asks agents of probes, and what it makes of answers, whoever gives them. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agent/agent.h"
#include "agents_scene.h"

#define CODE   (1ull << 46) /* an address in a process */
#define PAGE   4096u
#define THUNKS 0x7f0000001000ull
#define NEWS   600

/* What was told, in its order. */
static struct news {
	struct agent_probes_answer answer;
	char why[512];
} news[NEWS];
static size_t n_news;
static struct scene *asks_again; /* for as long as it is told something */

static void on_news(void *data, uint32_t pid, const struct agent_probes_answer *answer)
{
	struct news *now = &news[n_news];

	assert_int_equal(pid, getpid());
	assert_true(n_news++ < NEWS);
	now->answer = *answer;
	snprintf(now->why, sizeof(now->why), "%s", answer->why ? answer->why : "");
	if (answer->code)
		assert_non_null(answer->why);
	if (asks_again)
		agents_probes_area(asks_again->agents, getpid(), CODE, PAGE);
}

static int new_scene(void **state)
{
	struct scene *scene;

	scene_new(state);
	scene = *state;
	scene->options.kinds = 0;
	scene->options.probes = (struct agents_probes){ .wanted = true,
		                                        .clock = AGENT_CLOCK_TICKS,
		                                        .news = on_news };
	memset(news, 0, sizeof(news));
	n_news = 0;
	asks_again = NULL;
	return 0;
}

static const struct news *last(void)
{
	assert_true(n_news > 0);
	return &news[n_news - 1];
}

static void assert_told(enum agent_probes_news what, int request, int code)
{
	assert_int_equal(last()->answer.news, what);
	assert_int_equal(last()->answer.request, request);
	assert_int_equal(last()->answer.code, code);
}

static void has_slots(struct fake_agent *agent, uint32_t slots)
{
	agent->shared->probe_thunks = THUNKS;
	agent->shared->probe_thunk_bytes = 16;
	agent->shared->probe_slots = slots;
}

/* An agent that is there, with 100 slots. */
static struct scene *begin(void **state, struct fake_agent *agent)
{
	struct scene *scene = *state;

	scene_arrive(scene, agent);
	has_slots(agent, 100);
	fake_agent_say(agent, AGENT_RUNNING);
	scene_turn(scene);
	assert_int_equal(last()->answer.news, AGENT_PROBES_READY);
	return scene;
}

static int ask(struct scene *scene)
{
	return agents_probes_area(scene->agents, getpid(), CODE, PAGE);
}

static void answers(struct fake_agent *agent, uint32_t number, int code, uint64_t area)
{
	agent->shared->answer = (struct agent_answer){ number, code, area };
	fake_agent_say(agent, agent->shared->state);
}

/* ---- beginning ---- */

static void test_hello_says_what_is_wanted(void **state)
{
	struct scene *scene = *state;
	uint32_t reads = agent_may_read(getpid(), false) ? AGENT_PROBES_READS : 0;
	struct fake_agent agent;

	scene->options.probes.begins = true;
	scene_arrive(scene, &agent);
	assert_int_equal(agent.hello.kinds, 0);
	assert_int_equal(agent.hello.probes,
	                 AGENT_PROBES | AGENT_PROBES_TICKS | AGENT_PROBES_BEGINS | reads);
	assert_int_equal(sizeof(agent.hello), 24); /* an older agent can read it, and refuse */
	fake_agent_die(&agent);
}

static void test_without_the_wish_nothing_is_asked_or_told(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene->options.kinds = AGENT_WANT_KERNELS;
	scene->options.probes.wanted = false;
	scene_runs(scene, &agent);
	assert_int_equal(agent.hello.probes, 0);
	has_slots(&agent, 5);
	scene_turn(scene);
	assert_int_equal(n_news, 0);
	assert_int_equal(ask(scene), -ESRCH);
	fake_agent_die(&agent);
}

static void test_it_is_ready_when_it_has_slots(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	fake_agent_say(&agent, AGENT_STARTING); /* CUPTI may take its time */
	scene_turn(scene);
	assert_int_equal(n_news, 0);
	assert_int_equal(ask(scene), -ESRCH);
	has_slots(&agent, 7);
	scene_turn(scene);
	assert_int_equal(n_news, 1);
	assert_told(AGENT_PROBES_READY, 0, 0);
	assert_int_equal(last()->answer.slots, 7);
	assert_int_equal(last()->answer.thunks, THUNKS);
	assert_int_equal(last()->answer.thunk_bytes, 16);
	scene_turn(scene);
	assert_int_equal(n_news, 1);
	fake_agent_die(&agent);
}

static void test_one_without_slots_says_why(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	agent.shared->answer.code = -ENOBUFS;
	fake_agent_say(&agent, AGENT_RUNNING);
	scene_turn(scene);
	assert_told(AGENT_PROBES_READY, 0, 0);
	assert_int_equal(last()->answer.slots, 0);
	assert_true(strstr(last()->why, "no room left") != NULL);
	assert_int_equal(ask(scene), -ESRCH);
	fake_agent_die(&agent);
}

static void test_slots_that_make_no_sense_end_it(void **state)
{
	static const struct {
		uint64_t thunks;
		uint32_t bytes, slots;
	} lies[] = {
		{ THUNKS, 16, AGENT_SLOTS_MOST + 1 },
		{ THUNKS, 16, UINT32_MAX },
		{ THUNKS, 0, 1 },
		{ THUNKS, UINT32_MAX, 1 },
		{ 0, 16, 1 },
		{ UINT64_MAX - 16, 16, 2 },
		{ 0xffffffff81000000ull, 16, 1 }, /* the kernel */
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct scene *scene = *state;
		struct fake_agent agent;

		scene_arrive(scene, &agent);
		agent.shared->probe_thunks = lies[i].thunks;
		agent.shared->probe_thunk_bytes = lies[i].bytes;
		agent.shared->probe_slots = lies[i].slots;
		fake_agent_say(&agent, AGENT_RUNNING);
		scene_turn(scene);
		assert_failed(scene, "makes no sense");
		assert_int_equal(n_news, 0); /* it never was ready */
		fake_agent_die(&agent);
	}
}

/* ---- requests ---- */

static void test_requests_go_one_by_one(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);
	struct agent_message message;
	int first = ask(scene),
	    second = agents_probes_turn(scene->agents, getpid(), 3, 97, AGENT_SLOT_CALL);

	assert_true(first > 0 && second > first);
	scene_turn(scene);
	assert_int_equal(fake_agent_receive(agent.socket, &message, NULL), AGENT_PROBES_AREA);
	assert_int_equal(message.area.number, first);
	assert_int_equal(message.area.near, CODE);
	assert_int_equal(message.area.bytes, PAGE);
	assert_int_equal(fake_agent_order(&agent), 0);
	answers(&agent, (uint32_t)first, 0, CODE - 5 * PAGE);
	scene_turn(scene);
	assert_told(AGENT_PROBES_ANSWER, first, 0);
	assert_int_equal(last()->answer.area, CODE - 5 * PAGE);
	assert_null(last()->answer.why);
	assert_int_equal(fake_agent_receive(agent.socket, &message, NULL), AGENT_PROBES_TURN);
	assert_int_equal(message.slots.number, second);
	assert_int_equal(message.slots.first, 3);
	assert_int_equal(message.slots.n, 97);
	assert_int_equal(message.slots.does, AGENT_SLOT_CALL);
	answers(&agent, (uint32_t)second, -EACCES, 0);
	scene_turn(scene);
	assert_told(AGENT_PROBES_ANSWER, second, -EACCES);
	assert_true(strstr(last()->why, "may not map memory for code") != NULL);
	fake_agent_die(&agent);
}

static void test_slots_come_as_a_file_that_nobody_can_change(void **state)
{
	const struct agent_slot slots[2] = {
		{ .slot = 0, .cookie = 5, .original = CODE, .does = AGENT_SLOT_CALL },
		{ .slot = 99, .cookie = 6, .original = CODE + 64 },
	};
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);
	struct agent_message message;
	struct agent_slot got[3];
	int fds[3] = { -1, -1, -1 };

	assert_true(agents_probes_set(scene->agents, getpid(), slots, 2) > 0);
	scene_turn(scene);
	assert_int_equal(fake_agent_receive(agent.socket, &message, fds), AGENT_PROBES_SET);
	assert_int_equal(message.slots.n, 2);
	assert_int_equal(pread(fds[0], got, sizeof(got), 0), sizeof(slots));
	assert_memory_equal(got, slots, sizeof(slots));
	assert_int_equal(pwrite(fds[0], got, 1, 0), -1);
	assert_int_equal(ftruncate(fds[0], 0), -1);
	close(fds[0]);
	fake_agent_die(&agent);
}

static void test_what_cannot_be_asked_is_refused(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);
	struct agents *agents = scene->agents;
	struct agent_slot slot = { .slot = 100 };
	pid_t pid = getpid();

	assert_int_equal(agents_probes_area(agents, pid, CODE, 0), -EINVAL);
	assert_int_equal(agents_probes_area(agents, pid, CODE, AGENT_AREA_MOST + 1), -EINVAL);
	assert_int_equal(agents_probes_area(agents, pid, UINT64_MAX, PAGE), -EINVAL);
	assert_int_equal(agents_probes_area(agents, pid + 1, CODE, PAGE), -ESRCH);
	assert_int_equal(agents_probes_set(agents, pid, &slot, 1), -EINVAL);
	assert_int_equal(agents_probes_set(agents, pid, &slot, 0), -EINVAL);
	assert_int_equal(agents_probes_set(agents, pid, &slot, 101), -EINVAL);
	slot = (struct agent_slot){ .does = AGENT_SLOT_DOES };
	assert_int_equal(agents_probes_set(agents, pid, &slot, 1), -EINVAL);
	assert_int_equal(agents_probes_turn(agents, pid, 0, 0, AGENT_SLOT_CALL), -EINVAL);
	assert_int_equal(agents_probes_turn(agents, pid, 1, 100, AGENT_SLOT_CALL), -EINVAL);
	assert_int_equal(agents_probes_turn(agents, pid, UINT32_MAX, 2, AGENT_SLOT_CALL), -EINVAL);
	assert_int_equal(agents_probes_turn(agents, pid, 0, 1, AGENT_SLOT_DOES), -EINVAL);
	for (int i = 0; i < 256; i++)
		assert_true(ask(scene) > 0);
	assert_int_equal(ask(scene), -ENOBUFS);
	fake_agent_die(&agent);
}

static void test_one_may_ask_while_one_is_told(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);

	asks_again = scene;
	assert_int_equal(ask(scene), 1);
	for (uint32_t number = 1; number < 20; number++) {
		scene_turn(scene);
		assert_int_equal(fake_agent_order(&agent), AGENT_PROBES_AREA);
		answers(&agent, number, 0, CODE);
		scene_turn(scene);
		assert_told(AGENT_PROBES_ANSWER, (int)number, 0);
	}
	fake_agent_die(&agent);
	scene_turn(scene); /* and when it ends as well */
	assert_int_equal(last()->answer.news, AGENT_PROBES_ENDED);
}

/* ---- agents that lie, or say nothing ---- */

static void test_one_that_never_answers_is_given_up(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);
	int first = ask(scene), second = ask(scene), third;

	scene_turn(scene);
	scene_pass(scene, 9 * SECOND);
	assert_int_equal(n_news, 1);
	scene_pass(scene, 2 * SECOND);
	assert_int_equal(n_news, 3);
	assert_int_equal(news[1].answer.request, first);
	assert_told(AGENT_PROBES_ANSWER, second, -ETIMEDOUT);
	assert_true(strstr(last()->why, "does not answer") != NULL);
	assert_int_equal(scene->last.state, AGENT_RUNNING); /* and what it records is still read */
	third = ask(scene);
	scene_turn(scene);
	assert_told(AGENT_PROBES_ANSWER, third, -ETIMEDOUT);
	/* late, as one that was stopped and goes on: from then on it is asked again */
	assert_int_equal(fake_agent_order(&agent), AGENT_PROBES_AREA);
	answers(&agent, (uint32_t)first, 0, CODE);
	scene_turn(scene);
	assert_int_equal(n_news, 4);
	third = ask(scene);
	scene_turn(scene);
	assert_int_equal(fake_agent_order(&agent), AGENT_PROBES_AREA);
	answers(&agent, (uint32_t)third, 0, CODE);
	scene_turn(scene);
	assert_told(AGENT_PROBES_ANSWER, third, 0);
	fake_agent_die(&agent);
}

static void test_answers_to_nothing_are_none(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);
	int first;

	answers(&agent, 1, 0, 7); /* nothing was asked */
	scene_turn(scene);
	answers(&agent, UINT32_MAX, 1, 7);
	scene_turn(scene);
	assert_int_equal(n_news, 1);
	first = ask(scene);
	scene_turn(scene);
	answers(&agent, (uint32_t)first + 1, -ENOSPC, 7); /* to another */
	scene_turn(scene);
	assert_int_equal(n_news, 1);
	for (int i = 0; i < 3; i++) { /* and more than once */
		answers(&agent, (uint32_t)first, 0, CODE);
		scene_turn(scene);
	}
	assert_int_equal(n_news, 2);
	assert_told(AGENT_PROBES_ANSWER, first, 0);
	fake_agent_die(&agent);
}

static void test_answers_that_make_no_sense_end_it(void **state)
{
	static const struct agent_answer lies[] = {
		{ 1, 0, 0 },
		{ 1, 0, CODE + 1 },
		{ 1, 0, CODE + AGENT_REACH },
		{ 1, 0, CODE - AGENT_REACH - PAGE },
		{ 1, 0, 0xffffffff81000000ull },
		{ 1, 0, UINT64_MAX - PAGE + 1 },
		{ 1, 1, CODE },
		{ 1, INT32_MIN, CODE },
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct fake_agent agent;
		struct scene *scene = begin(state, &agent);

		assert_int_equal(ask(scene), 1);
		scene_turn(scene);
		agent.shared->answer = lies[i];
		scene_turn(scene);
		assert_failed(scene, "makes no sense");
		assert_told(AGENT_PROBES_ENDED, 0, 0);
		assert_true(strstr(last()->why, "makes no sense") != NULL);
		assert_told(AGENT_PROBES_ENDED, 0, 0);
		assert_int_equal(news[n_news - 2].answer.code, -ECANCELED);
		assert_int_equal(ask(scene), -ESRCH);
		fake_agent_die(&agent);
	}
}

/* ---- ends ---- */

static size_t ends_told(void)
{
	size_t n = 0;

	for (size_t i = 0; i < n_news; i++)
		n += news[i].answer.news == AGENT_PROBES_ENDED;
	return n;
}

static void test_at_the_end_what_waits_is_answered(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);

	ask(scene);
	scene_turn(scene);
	ask(scene);
	agents_stop(scene->agents);
	assert_int_equal(n_news, 3);
	assert_told(AGENT_PROBES_ANSWER, 2, -ECANCELED);
	assert_int_equal(fake_agent_order(&agent), AGENT_PROBES_AREA);
	assert_int_equal(fake_agent_order(&agent), AGENT_STOP);
	fake_agent_say(&agent, AGENT_OFF);
	scene_turn(scene);
	assert_int_equal(scene->last.state, AGENT_OFF);
	assert_told(AGENT_PROBES_ENDED, 0, 0);
	assert_null(last()->answer.why);
	assert_true(agents_stopped(scene->agents));
	fake_agent_die(&agent);
	assert_int_equal(ends_told(), 1);
}

static void test_a_process_that_ends_is_told_after_its_records(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);
	struct agent_probed call = { .head = { .bytes = sizeof(call), .type = AGENT_PROBED } };

	assert_true(fake_agent_write(&agent, &call, sizeof(call)));
	fake_agent_die(&agent);
	agents_gone(scene->agents, getpid());
	assert_int_equal(scene->records, 1);
	assert_told(AGENT_PROBES_ENDED, 0, 0);
	agents_gone(scene->agents, getpid());
	assert_int_equal(ends_told(), 1);
}

static void test_freeing_tells_nobody(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);

	ask(scene);
	agents_free(scene->agents);
	scene->agents = NULL;
	assert_int_equal(n_news, 1);
	fake_agent_die(&agent);
}

/* ---- beside GPU times ---- */

static void test_without_gpu_times_probes_go_on(void **state)
{
	struct scene *scene = *state;
	struct agent_probed call = { .head = { .bytes = sizeof(call), .type = AGENT_PROBED } };
	struct fake_agent agent;
	size_t states;

	scene->options.kinds = AGENT_WANT_KERNELS;
	begin(state, &agent);
	agent.shared->failure = AGENT_CUPTI_BUSY;
	fake_agent_say(&agent, AGENT_PROBES_ONLY);
	scene_turn(scene);
	assert_failed(scene, "another profiler");
	states = scene->states;
	assert_int_equal(ends_told(), 0);
	assert_int_equal(ask(scene), 1);
	assert_true(fake_agent_write(&agent, &call, sizeof(call)));
	scene_turn(scene);
	assert_int_equal(scene->records, 1);
	agents_stop(scene->agents);
	fake_agent_say(&agent, AGENT_FAILED);
	scene_turn(scene);
	assert_int_equal(scene->states, states); /* of them nothing more is told */
	assert_int_equal(ends_told(), 1);
	assert_true(agents_stopped(scene->agents));
	fake_agent_die(&agent);
}

static void test_without_kinds_sentences_are_of_calls_and_there_are_no_windows(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene->options.window_ns = SECOND;
	scene->options.period_ns = 10 * SECOND;
	begin(state, &agent);
	scene_pass(scene, 2 * SECOND);
	assert_int_equal(fake_agent_order(&agent), 0);
	agent.shared->head = 12;
	scene_turn(scene);
	assert_failed(scene, "no more calls recorded inside of process");
	assert_int_equal(ends_told(), 1);
	fake_agent_die(&agent);
}

static void test_losses_and_names(void **state)
{
	struct fake_agent agent;
	struct scene *scene = begin(state, &agent);
	struct agents_lost lost;

	agents_probes_names(scene->agents, 8);
	assert_int_equal(agent.shared->name_offset, 8);
	for (uint32_t i = 0; i < AGENT_PROBE_LOSTS; i++)
		agent.shared->probe_lost[i] = i == 3 ? UINT64_MAX : i + 1;
	agents_lost(scene->agents, &lost);
	assert_int_equal(lost.probes[AGENT_PROBE_STUCK], AGENT_PROBE_STUCK + 1);
	fake_agent_die(&agent);
	scene_turn(scene);
	scene_arrive(scene, &agent);
	assert_int_equal(agent.shared->name_offset, 8);
	for (uint32_t i = 0; i < AGENT_PROBE_LOSTS; i++)
		agent.shared->probe_lost[i] = 1;
	agents_lost(scene->agents, &lost);
	assert_int_equal(lost.probes[0], 2);
	assert_int_equal(lost.probes[3], AGENT_LOST_MOST + 1);
	fake_agent_die(&agent);
}

/* ---- seccomp ---- */

static void take_on_a_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
}

static void *with_one_more(void *unused)
{
	take_on_a_filter();
	pause();
	return NULL;
}

/* A process with a filter, and a second thread with two; once both are there. */
static pid_t start_filtered(bool two_threads)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		pthread_t thread;

		take_on_a_filter();
		if (two_threads)
			pthread_create(&thread, NULL, with_one_more, NULL);
		usleep(two_threads ? 200000 : 0);
		_exit(write(ready[1], "x", 1) == 1 ? pause() : 1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void test_reading_is_left_where_a_filter_may_be_against_it(void **state)
{
	pid_t child = start_filtered(false);

	assert_false(agent_may_read(child, false)); /* nobody has asked its filter */
	assert_true(agent_may_read(child, true));
	end_child(child);
	assert_false(agent_may_read(child, true));
	child = start_filtered(true); /* only one thread's were */
	assert_false(agent_may_read(child, true));
	end_child(child);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, new_scene, scene_free)
	const struct CMUnitTest tests[] = {
		TEST(test_hello_says_what_is_wanted),
		TEST(test_without_the_wish_nothing_is_asked_or_told),
		TEST(test_it_is_ready_when_it_has_slots),
		TEST(test_one_without_slots_says_why),
		TEST(test_slots_that_make_no_sense_end_it),
		TEST(test_requests_go_one_by_one),
		TEST(test_slots_come_as_a_file_that_nobody_can_change),
		TEST(test_what_cannot_be_asked_is_refused),
		TEST(test_one_may_ask_while_one_is_told),
		TEST(test_one_that_never_answers_is_given_up),
		TEST(test_answers_to_nothing_are_none),
		TEST(test_answers_that_make_no_sense_end_it),
		TEST(test_at_the_end_what_waits_is_answered),
		TEST(test_a_process_that_ends_is_told_after_its_records),
		TEST(test_freeing_tells_nobody),
		TEST(test_without_gpu_times_probes_go_on),
		TEST(test_without_kinds_sentences_are_of_calls_and_there_are_no_windows),
		TEST(test_losses_and_names),
		cmocka_unit_test(test_reading_is_left_where_a_filter_may_be_against_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
