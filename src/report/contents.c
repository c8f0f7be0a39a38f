// SPDX-License-Identifier: MIT
#include "report/contents.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"

/* Which numbers were met. */
struct met {
	bool *is;
	size_t count;
};

struct counter {
	struct consumer consumer; /* first */
	struct contents contents;
	struct met functions, kernels, stacks;
};

/* True at the first time. */
static bool meet(struct met *met, uint32_t id)
{
	bool *is = BY_ID(met->is, met->count, id), first = !*is;

	*is = true;
	return first;
}

static struct contents_process *process_of(struct contents *contents, const struct process *process)
{
	size_t count = (size_t)process->id + 1;

	if (count > contents->n_processes) {
		contents->processes =
			xrealloc(contents->processes, count * sizeof(*contents->processes));
		memset(contents->processes + contents->n_processes, 0,
		       (count - contents->n_processes) * sizeof(*contents->processes));
		contents->n_processes = count;
	}
	contents->processes[process->id].process = *process;
	return &contents->processes[process->id];
}

static void count_stack(struct counter *counter, const struct stack *stack)
{
	struct contents_stacks *stacks = &counter->contents.stacks;

	stacks->different += meet(&counter->stacks, stack->id);
}

static void count_sample(struct counter *counter, const struct sample *sample)
{
	struct contents_stacks *stacks = &counter->contents.stacks;

	stacks->samples += sample->kind == SAMPLE_CPU;
	if (sample->kind == SAMPLE_OFF_CPU) {
		stacks->off_cpu++;
		stacks->blocked += sample->count ? sample->count : 1;
		stacks->blocked_ns += sample->weight_ns;
	}
	if (sample->stack)
		count_stack(counter, sample->stack);
}

static void count_call(struct counter *counter, const struct call *call)
{
	struct contents *contents = &counter->contents;

	contents->calls++;
	contents->failed += (call->flags & CALL_FAILED) != 0;
	contents->unfinished += (call->flags & CALL_UNFINISHED) != 0;
	contents->nested += (call->flags & CALL_NESTED) != 0;
	contents->captured += (call->flags & CALL_CAPTURED) != 0;
	contents->functions += meet(&counter->functions, call->function->id);
	if (call->kernel)
		contents->kernels += meet(&counter->kernels, call->kernel->id);
	if (call->stack) {
		contents->stacks.calls++;
		count_stack(counter, call->stack);
	}
}

static void count_activity(struct counter *counter, const struct activity *activity)
{
	counter->contents.activities[activity->kind]++;
	if (activity->kernel)
		counter->contents.kernels += meet(&counter->kernels, activity->kernel->id);
}

static int counter_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct counter *counter = (struct counter *)self;
	struct contents_process *process;

	if (event->type == EVENT_METRICS) { /* of no process */
		counter->contents.metrics++;
		return 0;
	}
	process = process_of(&counter->contents, event->process);
	stack_counts_event(&counter->contents.stacks.counts, event);
	switch (event->type) {
	case EVENT_PROCESS:
		process->begin_ns = event->time_ns;
		break;
	case EVENT_CALL:
		process->calls++;
		count_call(counter, event->call);
		break;
	case EVENT_OTHER_CALL:
		counter->contents.others[event->call->function->layer]++;
		break;
	case EVENT_ACTIVITY:
		process->activities++;
		count_activity(counter, event->activity);
		break;
	case EVENT_SAMPLE:
		count_sample(counter, event->sample);
		break;
	case EVENT_RANGE:
		counter->contents.ranges[event->range->kind]++;
		break;
	case EVENT_STALL:
		counter->contents.stalls++;
		break;
	case EVENT_THREAD:
		process->threads++;
		counter->contents.threads++;
		break;
	case EVENT_EXIT:
		process->ended = true;
		break;
	default:
		break;
	}
	return 0;
}

static void counter_free(struct consumer *self)
{
	struct counter *counter = (struct counter *)self;

	FREE_ALL(counter->contents.processes, counter->functions.is, counter->kernels.is,
	         counter->stacks.is, counter);
}

static const struct consumer_ops counter_ops = {
	.metrics = true,
	.stalls = true,
	.event = counter_event,
	.free = counter_free,
};

struct consumer *contents_new(void)
{
	struct counter *counter = xcalloc(1, sizeof(*counter));

	counter->consumer.ops = &counter_ops;
	return &counter->consumer;
}

const struct contents *contents_of(const struct consumer *consumer)
{
	return &((const struct counter *)consumer)->contents;
}
