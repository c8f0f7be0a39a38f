// SPDX-License-Identifier: MIT
/* --gpu-window: measuring a part of the time. */
#include "agents_scene.h"
#include "fake_library.h"

#include <poll.h>
#include <time.h>

static void open_with(struct scene *scene, uint64_t window_ns, uint64_t period_ns)
{
	scene->options.window_ns = window_ns;
	scene->options.period_ns = period_ns;
	scene_open(scene);
}

static void test_without_windows_it_is_never_paused(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	scene_pass(scene, 3600 * SECOND);
	assert_int_equal(fake_agent_order(&agent), 0);
	fake_agent_die(&agent);
}

static void test_a_window_as_long_as_its_period_is_always(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_with(scene, 2 * SECOND, 2 * SECOND);
	scene_runs(scene, &agent);
	scene_pass(scene, 3 * SECOND);
	assert_int_equal(fake_agent_order(&agent), 0);
	fake_agent_say(&agent, AGENT_PAUSED);
	scene_turn(scene);
	assert_int_equal(scene->last.state, AGENT_PAUSED);
	fake_agent_die(&agent);
}

static void test_it_is_paused_and_run_again_in_time(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_with(scene, SECOND, 10 * SECOND);
	scene_runs(scene, &agent);
	for (int i = 0; i < 5; i++) {
		scene_pass(scene, SECOND - 1);
		assert_int_equal(fake_agent_order(&agent), 0);
		scene_pass(scene, 1);
		assert_int_equal(fake_agent_order(&agent), AGENT_PAUSE);
		scene_pass(scene, 9 * SECOND - 1);
		assert_int_equal(fake_agent_order(&agent), 0);
		scene_pass(scene, 1);
		assert_int_equal(fake_agent_order(&agent), AGENT_RUN);
	}
	fake_agent_die(&agent);
}

static void test_the_first_window_is_whole_however_long_starting_took(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_with(scene, SECOND, 10 * SECOND);
	scene_arrive(scene, &agent);
	fake_agent_say(&agent, AGENT_STARTING);
	scene_pass(scene, 5 * SECOND);
	assert_int_equal(fake_agent_order(&agent), 0);
	fake_agent_say(&agent, AGENT_RUNNING);
	scene_turn(scene);
	scene_pass(scene, SECOND - 1);
	assert_int_equal(fake_agent_order(&agent), 0);
	scene_pass(scene, 1);
	assert_int_equal(fake_agent_order(&agent), AGENT_PAUSE);
	fake_agent_die(&agent);
}

static void test_one_that_comes_between_windows_waits_for_the_next(void **state)
{
	struct scene *scene = *state;
	struct fake_agent first, second;

	open_with(scene, SECOND, 10 * SECOND);
	agents_enter(scene->agents, 4242);
	scene_turn(scene);
	assert_true(fake_agent_begin(&first, injection.target));
	fake_agent_say(&first, AGENT_RUNNING);
	scene_turn(scene);
	scene_pass(scene, 5 * SECOND);
	scene_arrive(scene, &second);
	assert_int_equal(fake_agent_order(&second), AGENT_PAUSE);
	scene_pass(scene, 5 * SECOND);
	assert_int_equal(fake_agent_order(&second), AGENT_RUN);
	fake_agent_die(&first);
	fake_agent_die(&second);
}

static void test_windows_are_not_told(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	size_t states;

	open_with(scene, SECOND, 10 * SECOND);
	scene_runs(scene, &agent);
	states = scene->states;
	for (int i = 0; i < 3; i++) {
		fake_agent_say(&agent, AGENT_ENDING);
		scene_pass(scene, SECOND);
		fake_agent_say(&agent, AGENT_PAUSED);
		scene_pass(scene, SECOND);
		fake_agent_say(&agent, AGENT_STARTING);
		scene_turn(scene);
		agent.shared->active_since_ns = scene->now_ns;
		agent.shared->active_until_ns = 0;
		fake_agent_say(&agent, AGENT_RUNNING);
		scene_pass(scene, 8 * SECOND);
	}
	assert_int_equal(scene->states, states);
	fake_agent_die(&agent);
}

static void test_the_end_tells_from_the_first_window_to_the_last(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	uint64_t first = scene->now_ns;

	open_with(scene, SECOND, 10 * SECOND);
	scene_runs(scene, &agent);
	agent.shared->active_since_ns = first + 10 * SECOND;
	agent.shared->active_until_ns = first + 11 * SECOND;
	fake_agent_say(&agent, AGENT_PAUSED);
	scene_pass(scene, 11 * SECOND);
	agents_stop(scene->agents);
	fake_agent_say(&agent, AGENT_OFF);
	scene_turn(scene);
	assert_int_equal(scene->last.state, AGENT_OFF);
	assert_int_equal(scene->last.active_since_ns, first);
	assert_int_equal(scene->last.active_until_ns, first + 11 * SECOND);
	fake_agent_die(&agent);
}

static void test_the_time_between_windows_is_told_as_not_measured(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_with(scene, SECOND, 10 * SECOND);
	scene_runs(scene, &agent);
	agent.shared->active_until_ns = scene->now_ns + 3;
	fake_agent_say(&agent, AGENT_ENDING);
	scene_pass(scene, SECOND);
	fake_agent_say(&agent, AGENT_PAUSED);
	scene_pass(scene, SECOND);
	assert_int_equal(scene->gaps, 0); /* its end is not known yet */
	agent.shared->active_since_ns = scene->now_ns + 5;
	agent.shared->active_until_ns = 0;
	fake_agent_say(&agent, AGENT_RUNNING);
	scene_pass(scene, 8 * SECOND);
	scene_turn(scene);
	assert_int_equal(scene->gaps, 1);
	assert_int_equal(scene->gap_from_ns, 1000 * SECOND + 3);
	assert_int_equal(scene->gap_until_ns, 1002 * SECOND + 5);
	fake_agent_die(&agent);
}

static void test_failing_between_windows_is_told(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_with(scene, SECOND, 10 * SECOND);
	scene_runs(scene, &agent);
	scene_pass(scene, SECOND);
	agent.shared->failure = AGENT_CUPTI_BUSY;
	fake_agent_say(&agent, AGENT_FAILED);
	scene_turn(scene);
	assert_failed(scene, "torch.profiler");
	fake_agent_die(&agent);
}

static void test_a_paused_one_is_told_to_stop(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_with(scene, SECOND, 10 * SECOND);
	scene_runs(scene, &agent);
	scene_pass(scene, SECOND);
	assert_int_equal(fake_agent_order(&agent), AGENT_PAUSE);
	agents_stop(scene->agents);
	assert_int_equal(fake_agent_order(&agent), AGENT_STOP);
	scene_pass(scene, 100 * SECOND);
	assert_int_equal(fake_agent_order(&agent), 0);
	fake_agent_die(&agent);
}

/* ---- windows for what records cost ------------------------------------------------------------
 */

struct dear {
	size_t n;
	uint32_t pid;
	double percent;
	uint64_t window_ns, period_ns;
} dear;

static void on_dear(void *data, uint32_t pid, double percent, uint64_t window_ns,
                    uint64_t period_ns)
{
	dear = (struct dear){ dear.n + 1, pid, percent, window_ns, period_ns };
}

static void open_for_cost(struct scene *scene)
{
	memset(&dear, 0, sizeof(dear));
	scene->options.window_ns = SECOND;
	scene->options.window_percent = 2;
	scene->options.dear = on_dear;
	scene_open(scene);
}

/* A quarter of a second, and so many launches in it. One of three is recorded inside, and two
 * calls that are make no work. */
static void launch(struct scene *scene, struct fake_agent *agent, int launches)
{
	struct agent_call record = { .head = { .type = AGENT_CALL } };
	struct agent_probed probed = { .head = { .type = AGENT_PROBED } };

	for (int i = 0; i < launches; i++) {
		probed.correlation = i % 3 == 0;
		assert_true(fake_agent_write(agent, &probed, sizeof(probed)));
		if (i % 3)
			assert_true(fake_agent_write(agent, &record, sizeof(record)));
		if (i % 256 == 255)
			scene_turn(scene);
	}
	scene_turn(scene);
	scene_pass(scene, SECOND / 4);
}

static void test_what_costs_little_is_measured_always(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_for_cost(scene);
	scene_runs(scene, &agent);
	for (int i = 0; i < 20; i++)
		launch(scene, &agent, 1400); /* 1.96 % */
	assert_int_equal(fake_agent_order(&agent), 0);
	assert_int_equal(dear.n, 0);
	fake_agent_die(&agent);
}

/* 10.5 % of a second, and 10 ms: 2 % of 5.75 s. */
static void test_what_costs_more_is_measured_in_windows_that_cost_as_much_as_is_wanted(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_for_cost(scene);
	scene_runs(scene, &agent);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			assert_int_equal(fake_agent_order(&agent), 0);
			launch(scene, &agent, 7500);
		}
		assert_int_equal(fake_agent_order(&agent), AGENT_PAUSE);
		scene_pass(scene, 475 * SECOND / 100 - 1);
		assert_int_equal(fake_agent_order(&agent), 0);
		scene_pass(scene, 1);
		assert_int_equal(fake_agent_order(&agent), AGENT_RUN);
	}
	assert_int_equal(dear.n, 1);
	assert_true(dear.percent > 10.49 && dear.percent < 10.51);
	assert_int_equal(dear.window_ns, SECOND);
	assert_int_equal(dear.period_ns, 575 * SECOND / 100);
	fake_agent_die(&agent);
}

/* 50 % at most: 125 ms within a quarter of a second, which is more than 2 % of five. */
static void test_a_window_that_costs_very_much_is_short(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_for_cost(scene);
	scene_runs(scene, &agent);
	launch(scene, &agent, 50000);
	assert_int_equal(fake_agent_order(&agent), AGENT_PAUSE);
	assert_int_equal(dear.window_ns, SECOND / 4);
	assert_int_equal(dear.period_ns, 675 * SECOND / 100);
	fake_agent_die(&agent);
}

static void test_windows_begin_when_it_begins_to_cost_more(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_for_cost(scene);
	scene_runs(scene, &agent);
	scene_pass(scene, 3600 * SECOND);
	launch(scene, &agent, 0);
	assert_int_equal(fake_agent_order(&agent), 0);
	for (int i = 0; i < 4; i++)
		launch(scene, &agent, 7500);
	assert_int_equal(fake_agent_order(&agent), AGENT_PAUSE);
	fake_agent_die(&agent);
}

static void test_the_time_after_the_last_window_is_told_as_not_measured(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_with(scene, SECOND, 10 * SECOND);
	scene_runs(scene, &agent);
	agent.shared->active_until_ns = scene->now_ns + 3;
	scene_pass(scene, SECOND);
	fake_agent_say(&agent, AGENT_PAUSED);
	scene_pass(scene, SECOND);
	agents_stop(scene->agents);
	assert_int_equal(scene->gaps, 0);
	fake_agent_say(&agent, AGENT_OFF);
	scene_pass(scene, SECOND);
	assert_int_equal(scene->gaps, 1);
	assert_int_equal(scene->gap_from_ns, 1000 * SECOND + 3);
	assert_int_equal(scene->gap_until_ns, 1002 * SECOND); /* when it was told to stop */
	fake_agent_die(&agent);
}

static void test_no_time_without_measuring_is_told_of_one_that_ends_within_a_window(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	open_with(scene, SECOND, 10 * SECOND);
	scene_runs(scene, &agent);
	agents_stop(scene->agents);
	agent.shared->active_until_ns = scene->now_ns;
	fake_agent_say(&agent, AGENT_ENDING);
	scene_pass(scene, SECOND);
	fake_agent_say(&agent, AGENT_OFF);
	scene_pass(scene, SECOND);
	assert_int_equal(scene->gaps, 0);
	fake_agent_die(&agent);
}

/* The one test here by a real clock. */
static void test_the_descriptor_wakes_at_the_end_of_a_window(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	struct timespec now;
	struct pollfd poll_fd = { .events = POLLIN };

	open_with(scene, SECOND / 20, 3600 * SECOND);
	clock_gettime(CLOCK_MONOTONIC, &now);
	scene->now_ns = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
	scene_runs(scene, &agent);
	scene_turn(scene);
	poll_fd.fd = agents_fd(scene->agents);
	assert_int_equal(poll(&poll_fd, 1, 5000), 1);
	scene_pass(scene, SECOND / 20);
	assert_int_equal(fake_agent_order(&agent), AGENT_PAUSE);
	assert_int_equal(poll(&poll_fd, 1, 0), 0);
	fake_agent_die(&agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_without_windows_it_is_never_paused),
		SCENE_TEST(test_a_window_as_long_as_its_period_is_always),
		SCENE_TEST(test_it_is_paused_and_run_again_in_time),
		SCENE_TEST(test_the_first_window_is_whole_however_long_starting_took),
		SCENE_TEST(test_one_that_comes_between_windows_waits_for_the_next),
		SCENE_TEST(test_windows_are_not_told),
		SCENE_TEST(test_the_end_tells_from_the_first_window_to_the_last),
		SCENE_TEST(test_the_time_between_windows_is_told_as_not_measured),
		SCENE_TEST(test_failing_between_windows_is_told),
		SCENE_TEST(test_a_paused_one_is_told_to_stop),
		SCENE_TEST(test_what_costs_little_is_measured_always),
		SCENE_TEST(
			test_what_costs_more_is_measured_in_windows_that_cost_as_much_as_is_wanted),
		SCENE_TEST(test_a_window_that_costs_very_much_is_short),
		SCENE_TEST(test_windows_begin_when_it_begins_to_cost_more),
		SCENE_TEST(test_the_time_after_the_last_window_is_told_as_not_measured),
		SCENE_TEST(test_no_time_without_measuring_is_told_of_one_that_ends_within_a_window),
		SCENE_TEST(test_the_descriptor_wakes_at_the_end_of_a_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
