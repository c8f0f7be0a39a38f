// SPDX-License-Identifier: MIT
#include "capture/cost.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/tick_clock.h"
#include "probe/attach.h"
#include "probe/module.h"
#include "probe/kernel_features.h"

#define SELF_HOOK (WIRE_HOOKS_MAX - 1) /* modules never get this number: see modules.c */
#define CALLS     500
#define ROUNDS    5
#define INSIDE_NS 66 /* of an agent, beside its clock: docs/results/in-process.md */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* The quickest round: what disturbs a measurement only ever makes it slower. */
static double time_calls(void)
{
	double best = 1e12;

	for (int round = 0; round < ROUNDS; round++) {
		double begin = now_ns(), took;

		for (int i = 0; i < CALLS; i++)
			self_target(i, round);
		took = (now_ns() - begin) / CALLS;
		if (took < best)
			best = took;
	}
	return best;
}

/* Of the clock that agents read. */
static double time_clock(void)
{
	bool ticks = tick_clock_is_usable();
	double best = 1e12;

	for (int round = 0; round < ROUNDS; round++) {
		double begin = now_ns(), took;

		for (int i = 0; i < CALLS; i++) {
			if (ticks)
				tick_clock_ticks();
			else
				now_ns();
		}
		took = (now_ns() - begin) / CALLS;
		if (took < best)
			best = took;
	}
	return best;
}

static uint64_t self_cookie(void)
{
	const struct hook hook = { .id = SELF_HOOK,
		                   .plan = { .regs = 4,
		                             .out = { PLAN_NO_ARG, PLAN_NO_ARG },
		                             .blob = PLAN_NO_ARG,
		                             .string = PLAN_NO_ARG,
		                             .kernel = PLAN_NO_ARG,
		                             .name_key = PLAN_NO_ARG } };

	return hook_cookie(&hook);
}

int cost_measure(struct programs *programs, bool returns, struct hit_cost *cost, struct err *err)
{
	struct attach_point point = { .offset = self_target_offset(), .cookie = self_cookie() };
	struct wire_state *state = programs_state(programs);
	struct attachment *attachment = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), r;

	*cost = (struct hit_cost){ .entry_ns = 800,
		                   .call_ns = 1500,
		                   .inside_ns = INSIDE_NS + 2 * time_clock() };
	if (fd < 0)
		return err_set(err, errno, "/proc/self/exe: %s", strerror(errno));
	r = attach(programs, fd, &point, 1, returns, false, &attachment, err);
	close(fd);
	if (r)
		return r;
	programs_target_add(programs, getpid(), 0);
	cost->call_ns = time_calls();
	/* else these calls, which nothing ends, were open ones of this thread at the trace's end */
	state->mode[SELF_HOOK] = HOOK_ENTRY_ONLY;
	if (returns && programs_mechanism(programs) != MECHANISM_SESSION)
		attachment_drop_returns(attachment);
	cost->entry_ns = time_calls();
	programs_target_remove(programs, getpid());
	/* else the entry that just lost its return would be taken for a call under way */
	programs_thread_forget(programs, gettid());
	attachment_free_later(attachment);
	return 0;
}
