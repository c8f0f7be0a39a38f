// SPDX-License-Identifier: MIT
/* Live memory as counters of a process. */
#include "analysis/memory.h"
#include "output/perfetto/perfetto.h"

void perfetto_set_counter(struct perfetto *p, const struct process *process, uint64_t time_ns,
                          enum api_memory kind, int64_t value)
{
	struct buf *out = &p->sink.lines.pending;
	uint64_t track = perfetto_counter_track(p->tracks, process, kind);
	struct open_event open = event_begin(out, time_ns, TYPE_COUNTER, track);

	pb_varint(out, EVENT_COUNTER_VALUE, (uint64_t)value);
	event_end(out, open);
	perfetto_process(p->tracks, process)->counters[kind].value = value;
}

static void count_memory(struct perfetto *p, const struct event *event)
{
	memory_event(p->memory, event);
	for (enum api_memory kind = MEMORY_NONE + 1; kind < MEMORY_COUNT; kind++) {
		int64_t live = (int64_t)memory_live_of_kind(p->memory, event->process, kind);

		if (live != perfetto_process(p->tracks, event->process)->counters[kind].value)
			perfetto_set_counter(p, event->process, event->time_ns, kind, live);
	}
}

static bool changes_memory(const struct event *event)
{
	if (event->type != EVENT_CALL)
		return event->type == EVENT_EXIT || event->type == EVENT_PROCESS;
	return memory_follows(event->call->op);
}

void perfetto_count(struct perfetto *p, const struct event *event)
{
	if (changes_memory(event))
		count_memory(p, event);
	perfetto_queue_event(p->queue, event);
}
