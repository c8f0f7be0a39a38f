// SPDX-License-Identifier: MIT
#include "analysis/asked.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/gpu_ids.h"
#include "analysis/pairs.h"
#include "analysis/streams.h"
#include "base/xalloc.h"

#define CHAINS (1u << 12)
#define NONE   UINT32_MAX

struct waiting {
	struct asked_activity asked;
	uint32_t next; /* of its chain, or NONE */
	bool used;
};

struct kept_call {
	struct half half; /* first */
	struct asked_call call;
};

struct asked {
	asked_tell tell;
	void *data;
	struct pairs *calls;
	struct waiting *waiting; /* a ring */
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
	asked->calls = pairs_new(sizeof(struct kept_call), NULL, NULL);
	pairs_expect_late(asked->calls, PAIRS_BYTES);
	memset(asked->chains, 0xff, sizeof(asked->chains));
	return asked;
}

void asked_free(struct asked *asked)
{
	if (!asked)
		return;
	gpu_ids_free(asked->gpus);
	pairs_free(asked->calls);
	free(asked->waiting);
	free(asked);
}

/* ---- activities that wait ------------------------------------------------------------------ */

static uint32_t *chain_of(struct asked *asked, const struct process *process, uint64_t correlation)
{
	return &asked->chains[(correlation + process->id * 0x9e3779b1u) % CHAINS];
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

static void tell_waiting(struct asked *asked, struct kept_call *kept)
{
	const struct asked_call *call = &kept->call;
	uint32_t *link = chain_of(asked, call->process, call->correlation);

	while (*link != NONE) {
		struct waiting *entry = &asked->waiting[*link];

		if (entry->asked.process != call->process ||
		    entry->asked.activity.correlation != call->correlation) {
			link = &entry->next;
			continue;
		}
		take_out(asked, link);
		pairs_meet(asked->calls, kept);
		asked->tell(asked->data, &entry->asked, call);
	}
}

/* ---- events -------------------------------------------------------------------------------- */

static void keep_call(struct asked *asked, const struct event *event)
{
	const struct call *call = event->call;
	struct kept_call *kept =
		pairs_add(asked->calls, event->process->id, call->correlation, true);

	kept->call = (struct asked_call){
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
	struct kept_call *call;

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
	call = pairs_find(asked->calls, event->process->id, correlation);
	if (!call) {
		wait_for_call(asked, &activity);
		return;
	}
	pairs_meet(asked->calls, call);
	asked->tell(asked->data, &activity, &call->call);
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
