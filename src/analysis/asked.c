// SPDX-License-Identifier: MIT
#include "analysis/asked.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/gpu_ids.h"
#include "analysis/streams.h"
#include "base/xalloc.h"

#define CHAINS (1u << 12)
#define NONE   UINT32_MAX

struct waiting {
	struct asked_activity asked;
	uint32_t next; /* of its chain, or NONE */
	bool used;
};

struct asked {
	asked_tell tell;
	void *data;
	struct asked_call *calls; /* by correlation: one process's numbers meet after ASKED_CALLS */
	struct waiting *waiting;  /* a ring */
	uint32_t chains[CHAINS];
	uint32_t next, n_waiting;
	struct gpu_ids *gpus;
	uint64_t end_ns[GPU_IDS_MAX]; /* of what ran there */
};

struct asked *asked_new(asked_tell tell, void *data)
{
	struct asked *asked = xcalloc(1, sizeof(*asked));

	asked->tell = tell;
	asked->data = data;
	asked->gpus = gpu_ids_new();
	memset(asked->chains, 0xff, sizeof(asked->chains));
	return asked;
}

void asked_free(struct asked *asked)
{
	if (!asked)
		return;
	gpu_ids_free(asked->gpus);
	free(asked->calls);
	free(asked->waiting);
	free(asked);
}

/* Processes whose numbers run side by side shall not push each other out. */
static uint32_t place_of(const struct process *process, uint64_t correlation)
{
	return (uint32_t)(correlation + process->id * 0x9e3779b1u);
}

/* ---- activities that wait ------------------------------------------------------------------ */

static uint32_t *chain_of(struct asked *asked, const struct process *process, uint64_t correlation)
{
	return &asked->chains[place_of(process, correlation) % CHAINS];
}

static void take_out(struct asked *asked, uint32_t *link)
{
	struct waiting *entry = &asked->waiting[*link];

	*link = entry->next;
	entry->used = false;
	asked->n_waiting--;
}

/* The oldest makes room: its call was not recorded. */
static void let_go(struct asked *asked, uint32_t at)
{
	struct waiting *entry = &asked->waiting[at];
	uint32_t *link = chain_of(asked, entry->asked.process, entry->asked.activity.correlation);

	while (*link != at)
		link = &asked->waiting[*link].next;
	take_out(asked, link);
	asked->tell(asked->data, &entry->asked, NULL);
}

static void wait_for_call(struct asked *asked, const struct asked_activity *activity)
{
	uint32_t *chain = chain_of(asked, activity->process, activity->activity.correlation);
	struct waiting *entry;

	if (!asked->waiting)
		asked->waiting = xcalloc(ASKED_WAITING, sizeof(*asked->waiting));
	entry = &asked->waiting[asked->next];
	if (entry->used)
		let_go(asked, asked->next);
	entry->asked = *activity;
	entry->next = *chain;
	entry->used = true;
	*chain = asked->next;
	asked->next = (asked->next + 1) % ASKED_WAITING;
	asked->n_waiting++;
}

static void tell_waiting(struct asked *asked, const struct asked_call *call)
{
	uint32_t *link = chain_of(asked, call->process, call->correlation);

	while (*link != NONE) {
		struct waiting *entry = &asked->waiting[*link];

		if (entry->asked.process != call->process ||
		    entry->asked.activity.correlation != call->correlation) {
			link = &entry->next;
			continue;
		}
		take_out(asked, link);
		asked->tell(asked->data, &entry->asked, call);
	}
}

/* ---- events -------------------------------------------------------------------------------- */

static void keep_call(struct asked *asked, const struct event *event)
{
	const struct call *call = event->call;
	struct asked_call *kept;

	if (!asked->calls)
		asked->calls = xcalloc(ASKED_CALLS, sizeof(*asked->calls));
	kept = &asked->calls[place_of(event->process, call->correlation) % ASKED_CALLS];
	*kept = (struct asked_call){
		.process = event->process,
		.function = call->function,
		.correlation = call->correlation,
		.begin_ns = call->begin_ns,
		.end_ns = call_has_end(call) ? call->end_ns : 0,
		.stream = call_stream(call),
		.tid = event->tid,
		.op = (uint8_t)call->op,
	};
	if (asked->n_waiting)
		tell_waiting(asked, kept);
}

static void see_activity(struct asked *asked, const struct event *event)
{
	uint32_t gpu = gpu_ids_of(asked->gpus, event);
	struct asked_activity activity = { .process = event->process,
		                           .activity = *event->activity };
	uint64_t correlation = event->activity->correlation;
	const struct asked_call *call = NULL;

	if (gpu != GPU_ID_NONE) {
		if (asked->end_ns[gpu] <= activity.activity.begin_ns)
			activity.idle_since_ns = asked->end_ns[gpu];
		if (activity.activity.end_ns > asked->end_ns[gpu])
			asked->end_ns[gpu] = activity.activity.end_ns;
	}
	if (!correlation) {
		asked->tell(asked->data, &activity, NULL);
		return;
	}
	if (asked->calls)
		call = &asked->calls[place_of(event->process, correlation) % ASKED_CALLS];
	if (call && call->correlation == correlation && call->process == event->process)
		asked->tell(asked->data, &activity, call);
	else
		wait_for_call(asked, &activity);
}

void asked_event(struct asked *asked, const struct event *event)
{
	const struct call *call = event->call;

	if (event->type == EVENT_ACTIVITY)
		see_activity(asked, event);
	else if (event->type == EVENT_CALL && call->correlation &&
	         (call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH || call->op == OP_COPY ||
	          call->op == OP_SET || call->function->cls == CLASS_TRANSFER))
		keep_call(asked, event);
}

void asked_finish(struct asked *asked)
{
	for (uint32_t i = 0; asked->n_waiting && i < ASKED_WAITING; i++) {
		uint32_t at = (asked->next + i) % ASKED_WAITING;

		if (asked->waiting[at].used)
			let_go(asked, at);
	}
}
