// SPDX-License-Identifier: MIT
/* The end of a capture: agents are told to leave. */
#include "agents_scene.h"
#include "fake_library.h"

static void test_all_are_told_to_stop(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	assert_false(agents_stopped(scene->agents));
	agents_stop(scene->agents);
	assert_int_equal(fake_agent_order(&agent), AGENT_STOP);
	assert_int_equal(fake_agent_order(&agent), 0);
	fake_agent_say(&agent, AGENT_ENDING);
	scene_turn(scene);
	assert_int_equal(scene->last.state, AGENT_ENDING);
	assert_false(agents_stopped(scene->agents));
	fake_agent_kernel(&agent, 1);
	fake_agent_say(&agent, AGENT_OFF);
	scene_turn(scene);
	assert_int_equal(scene->records, 1);
	assert_true(agents_stopped(scene->agents));
	fake_agent_die(&agent);
}

static void test_one_that_found_no_safe_point_is_told_honestly(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	agents_stop(scene->agents);
	fake_agent_say(&agent, AGENT_ENDING);
	scene_turn(scene);
	agents_abandon(scene->agents);
	assert_int_equal(scene->last.state, AGENT_ENDING);
	assert_why(scene, "made no CUDA call since");
	fake_agent_die(&agent);
}

static void test_one_that_does_not_answer_is_told_honestly(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	agents_stop(scene->agents);
	scene_turn(scene);
	agents_abandon(scene->agents);
	assert_why(scene, "still measures and did not answer");
	fake_agent_die(&agent);
}

static void test_nobody_comes_in_after_the_stop(void **state)
{
	struct scene *scene = *state;
	int socket;

	scene_open(scene);
	injection.pending = true;
	socket = scene_connect(scene);
	agents_enter(scene->agents, 4242);
	agents_stop(scene->agents);
	assert_false(agents_stopped(scene->agents)); /* one is on its way in */
	agents_enter(scene->agents, 4243);
	assert_int_equal(injection.begun, 1);
	assert_int_equal(eventfd_write(injection.last->event, 1), 0);
	scene_turn(scene);
	assert_true(agents_stopped(scene->agents));
	assert_int_equal(scene->states, 0);
	close(injection.target);
	close(socket);
}

static void test_freeing_closes_the_sockets(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	agents_free(scene->agents);
	scene->agents = NULL;
	assert_int_equal(fake_agent_order(&agent), -1);
	fake_agent_die(&agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_all_are_told_to_stop),
		SCENE_TEST(test_one_that_found_no_safe_point_is_told_honestly),
		SCENE_TEST(test_one_that_does_not_answer_is_told_honestly),
		SCENE_TEST(test_nobody_comes_in_after_the_stop),
		SCENE_TEST(test_freeing_closes_the_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
