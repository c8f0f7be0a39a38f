// SPDX-License-Identifier: MIT
/*
 * How much work a process has asked for that is not done yet, as a counter: one more at the end of
 * a call, one less at the end of what ran for it.
 *
 * Calls come in order of their ends, activities in order of theirs, but up to seconds later. So
 * calls wait until an activity that ended after them has come: each value is then that of its time.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "analysis/pairs.h"
#include "output/perfetto/perfetto.h"

#define ASKED_MOST (1u << 18) /* calls that wait; the oldest is counted before its turn */

struct asked {
	uint64_t time_ns;
	const struct process *process; /* NULL: done before the call returned, not counted */
};

/* A call by its number, which counts all of them; or an activity that came first. */
struct waiting {
	struct half half; /* first */
	uint64_t number;
	bool flow; /* one begins at the call, and has not ended */
};

struct perfetto_queue {
	struct perfetto *p;
	struct pairs *pairs;
	struct asked *asked;  /* a ring of those from `first` to before `next` */
	uint64_t first, next; /* numbers */
	uint64_t came_first;  /* work that was written before its call came */
};

static struct asked *asked_at(struct perfetto_queue *queue, uint64_t number)
{
	return &queue->asked[number % ASKED_MOST];
}

static void change(struct perfetto_queue *queue, const struct process *process, uint64_t time_ns,
                   int64_t by)
{
	struct perfetto_process *about = perfetto_process(queue->p->tracks, process);

	about->queued += by;
	if (about->has_activities)
		perfetto_set_counter(queue->p, process, time_ns, MEMORY_NONE, about->queued);
}

static void count_first(struct perfetto_queue *queue)
{
	struct asked *asked = asked_at(queue, queue->first++);

	if (asked->process)
		change(queue, asked->process, asked->time_ns, 1);
}

static void count_until(struct perfetto_queue *queue, uint64_t time_ns)
{
	while (queue->first < queue->next && asked_at(queue, queue->first)->time_ns <= time_ns)
		count_first(queue);
}

/* No activity came for a call: whatever became of it, it is not in the queue any more. */
static void give_up(void *data, const struct half *half)
{
	const struct waiting *waiting = (const struct waiting *)half;
	struct perfetto_queue *queue = data;

	if (!half->call)
		return;
	if (waiting->number < queue->first)
		perfetto_process_by_id(queue->p->tracks, half->process)->queued--;
	else
		asked_at(queue, waiting->number)->process = NULL;
}

static void see_call(struct perfetto_queue *queue, const struct event *event)
{
	uint64_t correlation = event->call->correlation;
	struct waiting *waiting;

	if (!call_asks_for_work(event->call))
		return;
	if (queue->p->sink.gpu_times)
		pairs_expect_late(queue->pairs, PAIRS_BYTES_LIVE);
	waiting = pairs_find(queue->pairs, event->process->id, correlation);
	if (waiting && !waiting->half.call) { /* done before the call had ended */
		pairs_remove(queue->pairs, waiting);
		queue->came_first++;
		return;
	}
	waiting = pairs_add(queue->pairs, event->process->id, correlation, true);
	waiting->number = queue->next;
	if (queue->next - queue->first == ASKED_MOST)
		count_first(queue);
	*asked_at(queue, queue->next++) = (struct asked){ event->time_ns, event->process };
}

static void see_activity(struct perfetto_queue *queue, const struct event *event)
{
	uint64_t correlation = event->activity->correlation;
	struct waiting *waiting = pairs_find(queue->pairs, event->process->id, correlation);

	perfetto_process(queue->p->tracks, event->process)->has_activities = true;
	queue->p->has_activities = true;
	pairs_expect_late(queue->pairs, PAIRS_BYTES_LIVE);
	count_until(queue, event->time_ns);
	if (!correlation || (waiting && !waiting->half.call))
		return;
	if (!waiting) {
		pairs_add(queue->pairs, event->process->id, correlation, false);
		return;
	}
	if (waiting->half.met) /* another node of a graph */
		return;
	pairs_meet(queue->pairs, waiting);
	if (waiting->number < queue->first)
		change(queue, event->process, event->time_ns, -1);
	else /* done before the call had ended */
		asked_at(queue, waiting->number)->process = NULL;
}

bool perfetto_queue_flow_begins(struct perfetto_queue *queue, const struct event *event)
{
	struct waiting *waiting =
		pairs_find(queue->pairs, event->process->id, event->call->correlation);

	if (!waiting || !waiting->half.call)
		return false;
	return waiting->flow = true;
}

bool perfetto_queue_flow_ends(struct perfetto_queue *queue, const struct event *event)
{
	struct waiting *waiting =
		pairs_find(queue->pairs, event->process->id, event->activity->correlation);

	if (!waiting || !waiting->flow)
		return false;
	waiting->flow = false;
	return true;
}

uint64_t perfetto_queue_unjoined(const struct perfetto_queue *queue)
{
	if (queue->p->sink.joined)
		return 0;
	return queue->came_first + pairs_unjoined(queue->pairs);
}

void perfetto_queue_event(struct perfetto_queue *queue, const struct event *event)
{
	if (event->type == EVENT_CALL)
		see_call(queue, event);
	else if (event->type == EVENT_ACTIVITY)
		see_activity(queue, event);
}

void perfetto_queue_end(struct perfetto_queue *queue)
{
	count_until(queue, UINT64_MAX);
}

struct perfetto_queue *perfetto_queue_new(struct perfetto *p)
{
	struct perfetto_queue *queue = xcalloc(1, sizeof(*queue));

	queue->p = p;
	queue->pairs = pairs_new(sizeof(struct waiting), give_up, queue);
	queue->asked = xcalloc(ASKED_MOST, sizeof(*queue->asked));
	return queue;
}

void perfetto_queue_free(struct perfetto_queue *queue)
{
	pairs_free(queue->pairs);
	free(queue->asked);
	free(queue);
}
