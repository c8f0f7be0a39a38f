/* SPDX-License-Identifier: MIT */
/* A struct agents, what it told, and a clock that a test moves. */
#ifndef CUSCOPE_TESTS_AGENTS_SCENE_H
#define CUSCOPE_TESTS_AGENTS_SCENE_H

#include "agent/agents.h"
#include "fake_agent.h"

#define SECOND 1000000000ull

struct scene {
	struct agents *agents;
	struct agents_options options;
	struct err err;
	uint64_t now_ns;
	bool unwanted;
	struct fake_agent *writes_on; /* a record for each that is read; NULL: none does */
	pid_t child;                  /* whose agent comes; 0: our own */
	size_t gaps;                  /* that were told as not measured */
	uint64_t gap_from_ns, gap_until_ns;

	size_t records, states;
	struct agent_status last; /* its texts are in why and cupti */
	char why[1024], cupti[1024];
	bool has_why;
	uint32_t told; /* bits of states */
};

static inline void scene_record(void *data, uint32_t pid, const struct agent_head *record)
{
	struct scene *scene = data;

	assert_true(record->bytes >= sizeof(*record));
	scene->records++;
	if (scene->writes_on)
		fake_agent_kernel(scene->writes_on, 1);
}

static inline void scene_state(void *data, const struct agent_status *status)
{
	struct scene *scene = data;

	scene->last = *status;
	scene->has_why = status->why != NULL;
	snprintf(scene->why, sizeof(scene->why), "%s", status->why ? status->why : "");
	snprintf(scene->cupti, sizeof(scene->cupti), "%s", status->cupti ? status->cupti : "");
	scene->told |= 1u << status->state;
	scene->states++;
}

static inline void scene_unmeasured(void *data, uint32_t pid, uint64_t from_ns, uint64_t until_ns)
{
	struct scene *scene = data;

	scene->gaps++;
	scene->gap_from_ns = from_ns;
	scene->gap_until_ns = until_ns;
}

static inline bool scene_wanted(void *data, pid_t pid)
{
	const struct scene *scene = data;

	assert_int_equal(pid, scene->child ? scene->child : getpid());
	return !scene->unwanted;
}

static inline int scene_new(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	memset(&injection, 0, sizeof(injection));
	scene->options = (struct agents_options){
		.kinds = AGENT_WANT_KERNELS | AGENT_WANT_COPIES,
		.ring_bytes = 65536,
		.record = scene_record,
		.state = scene_state,
		.unmeasured = scene_unmeasured,
		.wanted = scene_wanted,
		.data = scene,
	};
	scene->now_ns = 1000 * SECOND;
	*state = scene;
	return 0;
}

static inline int scene_free(void **state)
{
	struct scene *scene = *state;

	agents_free(scene->agents);
	assert_int_equal(injection.open, 0);
	free(scene);
	return 0;
}

static inline void scene_open(struct scene *scene)
{
	assert_int_equal(agents_new(&scene->options, &scene->agents, &scene->err), 0);
}

static inline void scene_turn(struct scene *scene)
{
	agents_turn(scene->agents, scene->now_ns);
}

static inline void scene_pass(struct scene *scene, uint64_t ns)
{
	scene->now_ns += ns;
	scene_turn(scene);
}

/* The value of a variable for commands, NULL: it is not set. */
static inline const char *scene_variable(struct scene *scene, const char *name)
{
	char *const *environment;

	if (agents_environment(scene->agents, &environment, &scene->err))
		fail_msg("%s", scene->err.text);
	for (; *environment; environment++) {
		if (!strncmp(*environment, name, strlen(name)) &&
		    (*environment)[strlen(name)] == '=')
			return *environment + strlen(name) + 1;
	}
	return NULL;
}

static inline int scene_connect(struct scene *scene)
{
	const char *value = scene_variable(scene, AGENT_ENV);
	int socket;

	assert_non_null(value);
	assert_int_equal(atoi(value), AGENT_ABI);
	socket = fake_agent_connect(strchr(value, ':') + 1);
	assert_true(socket >= 0);
	return socket;
}

/* An agent that came by itself and was greeted. */
static inline void scene_arrive(struct scene *scene, struct fake_agent *agent)
{
	int socket;

	if (!scene->agents)
		scene_open(scene);
	socket = scene_connect(scene);
	scene_turn(scene);
	assert_true(fake_agent_begin(agent, socket));
}

static inline void scene_runs(struct scene *scene, struct fake_agent *agent)
{
	scene_arrive(scene, agent);
	agent->shared->active_since_ns = scene->now_ns;
	fake_agent_say(agent, AGENT_RUNNING);
	scene_turn(scene);
	assert_int_equal(scene->last.state, AGENT_RUNNING);
}

static inline void assert_why(const struct scene *scene, const char *part)
{
	assert_true(scene->has_why);
	if (!strstr(scene->why, part))
		fail_msg("'%s' does not say '%s'", scene->why, part);
}

static inline void assert_failed(const struct scene *scene, const char *part)
{
	assert_int_equal(scene->last.state, AGENT_FAILED);
	assert_why(scene, part);
}

#define SCENE_TEST(test) cmocka_unit_test_setup_teardown(test, scene_new, scene_free)

#endif
