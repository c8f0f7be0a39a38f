// SPDX-License-Identifier: MIT
/* Live memory and the depth of the queue, as counters of a process. */
#include "analysis/memory.h"
#include "output/pairs.h"
#include "output/perfetto.h"

static void set_counter(struct perfetto *p, const struct event *event, enum api_memory kind,
                        int64_t value)
{
	struct buf *out = &p->sink.lines.pending;
	uint64_t track = perfetto_counter_track(p->tracks, event->process, kind);
	struct open_event open = event_begin(out, event->time_ns, TYPE_COUNTER, track);

	pb_varint(out, EVENT_COUNTER_VALUE, (uint64_t)value);
	event_end(out, open);
	perfetto_process(p->tracks, event->process)->counters[kind].value = value;
}

static void count_memory(struct perfetto *p, const struct event *event)
{
	memory_event(p->memory, event);
	for (enum api_memory kind = MEMORY_NONE + 1; kind < MEMORY_COUNT; kind++) {
		int64_t live = (int64_t)memory_live_of_kind(p->memory, event->process, kind);

		if (live != perfetto_process(p->tracks, event->process)->counters[kind].value)
			set_counter(p, event, kind, live);
	}
}

static bool changes_memory(const struct event *event)
{
	if (event->type != EVENT_CALL)
		return event->type == EVENT_EXIT || event->type == EVENT_PROCESS;
	return event->call->op == OP_ALLOC || event->call->op == OP_FREE ||
	       event->call->op == OP_CONTEXT_DESTROY;
}

/* No activity came for a call: whatever became of it, it is not in the queue any more. */
static void give_up(void *data, const struct half *half)
{
	struct perfetto *p = data;

	if (half->call)
		perfetto_process_by_id(p->tracks, half->process)->queued--;
}

static void count_call(struct perfetto *p, const struct event *event)
{
	const struct call *call = event->call;
	struct perfetto_process *process;
	struct half *half;

	if (!call_asks_for_work(call))
		return;
	half = pairs_find(p->pairs, event->process->id, call->correlation);
	if (half) { /* done before the call had ended */
		pairs_remove(half);
		return;
	}
	pairs_add(p->pairs, event->process->id, call->correlation, true);
	process = perfetto_process(p->tracks, event->process);
	process->queued++;
	if (process->has_activities)
		set_counter(p, event, MEMORY_NONE, process->queued);
}

static void count_activity(struct perfetto *p, const struct event *event)
{
	struct perfetto_process *process = perfetto_process(p->tracks, event->process);
	uint64_t correlation = event->activity->correlation;
	struct half *half = pairs_find(p->pairs, event->process->id, correlation);

	process->has_activities = p->has_activities = true;
	if (!correlation || (half && !half->call))
		return;
	if (!half) {
		pairs_add(p->pairs, event->process->id, correlation, false);
		return;
	}
	if (half->met) /* another node of a graph */
		return;
	half->met = true;
	process->queued--;
	set_counter(p, event, MEMORY_NONE, process->queued);
}

void perfetto_count(struct perfetto *p, const struct event *event)
{
	if (changes_memory(event))
		count_memory(p, event);
	if (event->type == EVENT_CALL)
		count_call(p, event);
	else if (event->type == EVENT_ACTIVITY)
		count_activity(p, event);
}

struct pairs *perfetto_pairs_new(struct perfetto *p)
{
	return pairs_new(sizeof(struct half), give_up, p);
}
