// SPDX-License-Identifier: MIT
/* What an agent says of the code that earlier sessions left in its process. */
#include "agents_scene.h"

#define CODE   (1ull << 46) /* an address in a process */
#define PAGE   4096u
#define THUNKS 0x7f0000001000ull

static struct agent_probes_answer last;
static struct agent_area area; /* the first of those that were told */
static size_t told;

static void on_news(void *data, uint32_t pid, const struct agent_probes_answer *answer)
{
	told++;
	last = *answer;
	if (answer->n_areas)
		area = answer->areas[0];
}

static int new_scene(void **state)
{
	struct scene *scene;

	scene_new(state);
	scene = *state;
	scene->options.kinds = 0;
	scene->options.probes = (struct agents_probes){ .wanted = true, .news = on_news };
	told = 0;
	return 0;
}

static void left(struct fake_agent *agent, uint32_t used, uint32_t n, struct agent_area code)
{
	agent->shared->probe_used = used;
	agent->shared->probe_areas = n;
	for (uint32_t i = 0; i < n && i < AGENT_AREAS_MOST; i++)
		agent->shared->probe_area[i] = code;
	agent->shared->probe_thunks = THUNKS;
	agent->shared->probe_thunk_bytes = 16;
	agent->shared->probe_slots = 100;
	fake_agent_say(agent, AGENT_RUNNING);
}

static void test_code_of_earlier_sessions_is_told(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	left(&agent, 30, 2, (struct agent_area){ CODE, 2 * PAGE, 10, 20, 0 });
	scene_turn(scene);
	assert_int_equal(told, 1);
	assert_int_equal(last.news, AGENT_PROBES_READY);
	assert_int_equal(last.slots, 100);
	assert_int_equal(last.used, 30);
	assert_int_equal(last.n_areas, 2);
	assert_int_equal(area.address, CODE);
	assert_int_equal(area.bytes, 2 * PAGE);
	assert_int_equal(area.first, 10);
	assert_int_equal(area.n, 20);
	fake_agent_die(&agent);
}

static void test_no_more_code_of_earlier_sessions_is_read_than_there_is(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	left(&agent, 30, UINT32_MAX, (struct agent_area){ CODE, PAGE, 0, 30, 0 });
	scene_turn(scene);
	assert_int_equal(last.n_areas, AGENT_AREAS_MOST);
	fake_agent_die(&agent);
}

static void test_code_of_earlier_sessions_that_makes_no_sense_ends_it(void **state)
{
	static const struct agent_area lies[] = {
		{ CODE + 1, PAGE, 0, 30, 0 },
		{ CODE, PAGE + 8, 0, 30, 0 },
		{ CODE, 0, 0, 30, 0 },
		{ CODE, 2 * AGENT_AREA_MOST, 0, 30, 0 },
		{ CODE, 0u - PAGE, 0, 30, 0 },
		{ 0, PAGE, 0, 30, 0 },
		{ 0xffffffff81000000ull, PAGE, 0, 30, 0 }, /* the kernel */
		{ 0ull - PAGE, 2 * PAGE, 0, 30, 0 },
		{ CODE, PAGE, 0, 0, 0 },
		{ CODE, PAGE, 1, 30, 0 }, /* more than were used */
		{ CODE, PAGE, UINT32_MAX, 2, 0 },
		{ CODE, PAGE, 2, UINT32_MAX, 0 },
	};

	for (size_t i = 0; i <= sizeof(lies) / sizeof(*lies); i++) {
		struct scene *scene = *state;
		struct fake_agent agent;

		scene_arrive(scene, &agent);
		if (i < sizeof(lies) / sizeof(*lies))
			left(&agent, 30, 1, lies[i]);
		else
			left(&agent, 101, 0, lies[0]);
		scene_turn(scene);
		assert_failed(scene, "makes no sense");
		assert_int_equal(told, 0);
		fake_agent_die(&agent);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, new_scene, scene_free)
	const struct CMUnitTest tests[] = {
		TEST(test_code_of_earlier_sessions_is_told),
		TEST(test_no_more_code_of_earlier_sessions_is_read_than_there_is),
		TEST(test_code_of_earlier_sessions_that_makes_no_sense_ends_it),
	};

	return cmocka_run_group_tests_name("agents: earlier sessions", tests, NULL, NULL);
}
