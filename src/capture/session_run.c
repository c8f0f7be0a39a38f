// SPDX-License-Identifier: MIT
/* Of a session: what it tells of the run, while it goes on and at its end. */
#include "capture/session.h"

#include <string.h>

#define GPUS_ONCE_NS     (3600 * 1000000000ull) /* between samples: one is enough */
#define GPUS_PATIENCE_NS 300000000              /* for what a short program's end came before */

/* Targets that hang are no longer read: see probe/helper.h. */
void session_tell_given_up(struct capture *c)
{
	char text[512];
	pid_t pid;

	while (helper_news(&pid, text, sizeof(text))) {
		capture_notice(c, "%s", text);
		modules_lock(c->modules);
		modules_miss(c->modules, MISS_NO_ANSWER, NULL, NULL, (uint32_t)pid, "%s",
		             strchr(text, ':') + 2);
		modules_unlock(c->modules);
	}
}

void session_tell_over_budget(struct capture *c)
{
	uint32_t pid;
	bool all;

	while (budget_news(c->budget, &pid, &all)) {
		modules_lock(c->modules);
		modules_miss(
			c->modules, MISS_OVER_BUDGET, NULL, NULL, pid,
			all ? "the memory for all targets (24 MiB) is used up: further kernels, "
			      "handles and stacks of this process are left out"
			    : "the memory for one target (8 MiB) is used up: further kernels, "
			      "handles and stacks of this process are left out");
		modules_unlock(c->modules);
	}
	modules_lock(c->modules);
	modules_more(c->modules, MISS_OVER_BUDGET, budget_unnamed(c->budget));
	modules_unlock(c->modules);
}

void session_tell_end(struct capture *c, const struct err *failure)
{
	modules_lock(c->modules);
	modules_tell_unseen_hooks(c->modules);
	if (failure)
		modules_miss(c->modules, MISS_FAILED, NULL, NULL, 0, "%s", failure->text);
	modules_unlock(c->modules);
}

static void read_lost(const struct capture *c, uint64_t lost[LOST_COUNT])
{
	memset(lost, 0, LOST_COUNT * sizeof(*lost));
	programs_lost(c->programs, lost);
	lost[LOST_LATE] += order_late(c->order);
	lost[LOST_TEXTS] += pipeline_lost_texts(c->pipeline);
	lost[LOST_OVER_BUDGET] += budget_refused(c->budget) + pipeline_other_processes(c->pipeline);
	lost[LOST_NO_ANSWER] = helper_unanswered() - c->unanswered_before;
	if (c->gpu)
		gpu_fill_lost(c->gpu, lost);
	if (c->inside)
		inside_fill_lost(c->inside, lost);
	if (c->driver_events)
		driver_events_fill_lost(c->driver_events, lost);
}

void capture_state(const struct capture *c, struct capture_state *state)
{
	read_lost(c, state->lost);
	state->overhead_percent = governor_percent(c->governor);
	state->estimate_scale = governor_scale(c->governor, capture_now_ns());
}

struct open_calls {
	const struct capture *capture;
	void (*each)(void *data, const struct capture_open_call *call);
	void *data;
};

static void tell_open_call(void *data, const struct wire_head *record, size_t bytes)
{
	const struct open_calls *open = data;
	const struct wire_call *call = (const struct wire_call *)record;
	struct capture_open_call told = { .pid = record->tgid,
		                          .tid = record->tid,
		                          .begin_ns = call->begin_ns };

	if (record->flags & WIRE_NESTED)
		return;
	told.function = pipeline_function(open->capture->pipeline, record->hook);
	if (told.function)
		open->each(open->data, &told);
}

void capture_open_calls(const struct capture *c,
                        void (*each)(void *data, const struct capture_open_call *call), void *data)
{
	struct open_calls open = { c, each, data };

	programs_open_calls(c->programs, tell_open_call, &open);
}

struct counted_calls {
	const struct capture *capture;
	void (*each)(void *data, uint32_t pid, const struct function *function, uint64_t calls);
	void *data;
};

static void tell_counted(void *data, const struct inside_counted *calls)
{
	const struct counted_calls *counted = data;
	const struct function *function =
		pipeline_function(counted->capture->pipeline, calls->hook);

	if (function)
		counted->each(counted->data, calls->pid, function, calls->calls);
}

void capture_counted_calls(const struct capture *c,
                           void (*each)(void *data, uint32_t pid, const struct function *function,
                                        uint64_t calls),
                           void *data)
{
	struct counted_calls counted = { c, each, data };

	if (c->inside)
		inside_counted(c->inside, tell_counted, &counted);
}

/* A driver may take a second for it, so it is asked while the program runs, on a thread. */
void session_ask_for_gpus(struct capture *c)
{
	if (!atomic_load(&c->cuda_seen))
		return;
	if ((c->gpu || c->metrics) && !c->gpus)
		c->gpus = gpus_new(GPUS_ONCE_NS);
	if (c->metrics)
		metrics_feed_start(c->metrics);
}

int session_turn_metrics(struct capture *c, struct err *err)
{
	const char *why;
	int r;

	if (c->who)
		who_feed_turn(c->who, capture_now_ns());
	if (!c->metrics)
		return 0;
	r = metrics_feed_turn(c->metrics, c->pipeline, err);
	why = c->options.metrics_asked ? metrics_feed_why_none(c->metrics) : NULL;
	if (why)
		capture_notice(c, "no GPU metrics: %s", why);
	why = metrics_feed_why_no_stretches(c->metrics);
	if (why)
		capture_notice(c, "not known when GPUs were busy: %s", why);
	return r;
}

static void describe_gpus(struct capture *c)
{
	struct gpus_sample sample;

	if (gpus_read(c->gpus, GPUS_PATIENCE_NS, &sample))
		host_take_gpus(c->host, &sample);
	host_describe(c->host, &c->run);
}

void session_fill_run(struct capture *c)
{
	struct run_info *run = &c->run;

	describe_gpus(c);
	if (c->metrics)
		metrics_feed_fill_run(c->metrics, run);
	if (c->who)
		who_feed_fill(c->who, run);

	run->end_ns = capture_now_ns();
	session_tell_given_up(c);
	session_tell_over_budget(c);
	read_lost(c, run->lost);
	if (c->hold)
		hold_times(c->hold, &run->holds, &run->longest_hold_ns);
	run->estimate_scale = governor_scale(c->governor, run->end_ns);
	governor_cost(c->governor, &run->overhead_percent, &run->overhead_most_percent);
	capture_fill_stacks(c, &run->stacks);
	if (c->gpu)
		gpu_fill_run(c->gpu, run);
	modules_lock(c->modules);
	if (c->gpu)
		modules_more(c->modules, MISS_GPU_TIMES, gpu_turned_away(c->gpu));
	run->n_misses = modules_misses(c->modules, &run->misses);
	modules_unlock(c->modules);
}
