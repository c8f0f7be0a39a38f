/* SPDX-License-Identifier: MIT */
/* The steps by which the process of inside_scene.h is diverted, and what is asked about its calls.
 */
#ifndef TESTS_UNIT_INSIDE_STEPS_H
#define TESTS_UNIT_INSIDE_STEPS_H

#include "inside_scene.h"

static void take_notice(void *data, const char *text)
{
	size_t length = strlen(notices);

	snprintf(notices + length, sizeof(notices) - length, "%s\n", text);
}

static const char *named;     /* what hooks[1] is; NULL: nobody knows */
static unsigned folded;       /* enum fold_tool */
static uint8_t launch_kernel; /* where hooks[LAUNCH] is given its kernel; PLAN_NO_ARG: a graph's */

static void make_hooks(void)
{
	static const char *const names[HOOKS] = { "cuMemAlloc", "cuMemcpy", "cuMemFree",
		                                  "cudaLaunchKernel" };

	for (size_t i = 0; i < HOOKS; i++)
		hooks[i] = (struct hook){ .id = (uint16_t)(100 + i),
			                  .name = names[i],
			                  .group = i == LAUNCH ? HOOK_RUNTIME_LAUNCH : HOOK_CORE,
			                  .entry = 0x1100 + 0x100 * i,
			                  .address = 0x100 + 0x100 * i,
			                  .size = 64 };
	hooks[1].api = named ? api_find(named) : NULL;
	hooks[LAUNCH].plan.kernel = launch_kernel;
}

static pid_t marked;

static void take_marked(void *data, pid_t pid)
{
	marked = pid;
}

static struct inside *open_inside_with(const struct inside_options *options)
{
	struct inside *inside;
	struct err err = { 0 };

	memset(&programs_memory, 0, sizeof(programs_memory));
	programs_memory.driver_works = 1;
	programs_memory.name_offset = 8;
	notices[0] = missed[0] = '\0';
	flagged = 0;
	mapped = jumps_there = true;
	make_hooks();
	assert_int_equal(inside_new(&inside, &err), 0);
	assert_int_equal(inside_open(inside, options, true, &err), 0);
	inside_begin(inside, START, 0, NULL);
	return inside;
}

static inline struct inside *open_inside(uint32_t stack_kinds)
{
	const struct inside_options options = { .target = TARGET_PIDS,
		                                .stack_kinds = stack_kinds,
		                                .fold = folded,
		                                .marked = take_marked,
		                                .notice = take_notice };

	return open_inside_with(&options);
}

static void news(struct agent_probes_answer answer)
{
	fake.options.probes.news(fake.options.data, PROCESS, &answer);
}

static void agent_comes(struct inside *inside, uint32_t slots)
{
	news((struct agent_probes_answer){
		.news = AGENT_PROBES_READY, .slots = slots, .thunks = THUNKS, .thunk_bytes = 16 });
	inside_turn(inside, START + MS(1));
}

static void answer(int code, uint64_t area)
{
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ANSWER,
	                                   .request = fake.request,
	                                   .code = code,
	                                   .area = area,
	                                   .why = code ? "there is no room" : NULL });
}

static void diverted(int rc, uint64_t since_ns)
{
	uint8_t refusals[HOOKS] = { 0 };
	const struct divert_result result = { .pid = (pid_t)PROCESS,
		                              .plan = PLAN,
		                              .rc = rc,
		                              .why = rc ? "its threads did not stop" : NULL,
		                              .since_ns = since_ns,
		                              .stopped_ns = MS(1),
		                              .count = (uint32_t)changes.count,
		                              .refusals = refusals };

	refusals[changes.count == HOOKS ? REFUSED : 1] = ENTRY_JUMPED_INTO;
	changes.done(changes.data, &result);
}

static inline void taken_back(int rc, uint64_t since_ns)
{
	const struct divert_result result = { .pid = (pid_t)PROCESS,
		                              .rc = rc,
		                              .why = rc ? "it was killed" : NULL,
		                              .since_ns = since_ns };

	changes.done(changes.data, &result);
}

/* All steps: its calls are the agent's from 10 ms on. */
static struct inside *divert_process(struct inside *inside)
{
	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	diverted(0, START + MS(10));
	return inside;
}

static inline struct inside *diverted_process(void)
{
	return divert_process(open_inside(0));
}

/* What the programs tell of a call that began then. */
static inline bool is_left_out(struct inside *inside, size_t hook, uint64_t begin_ns)
{
	struct wire_call call = { .head = { .type = WIRE_CALL,
		                            .hook = hooks[hook].id,
		                            .tgid = PROCESS,
		                            .tid = PROCESS,
		                            .time_ns = begin_ns + 100 },
		                  .begin_ns = begin_ns };

	return inside_leaves_out(inside, &call.head);
}

#endif
