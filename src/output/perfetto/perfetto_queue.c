// SPDX-License-Identifier: MIT
/*
 * How much work a process has asked for that is not done yet, as a counter. It grows at the end of
 * a call and falls at the end of what ran for it.
 *
 * Calls come in order of their ends, activities in order of theirs, but up to seconds later. So
 * calls wait until an activity that ended after them has come: each value is then that of its time.
 */
#include <stdlib.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "analysis/work.h"
#include "output/perfetto/perfetto.h"

/* ---- perfetto packet ----------------------------------------------------------------------- */

/* The packets of a Perfetto trace, as bytes. */

/* ---- packets -------------------------------------------------------------------------------- */

size_t packet_begin(struct buf *out, unsigned flags)
{
	size_t packet = pb_begin(out, TRACE_PACKET);

	pb_varint(out, PACKET_SEQUENCE_ID, SEQUENCE_ID);
	pb_varint(out, PACKET_SEQUENCE_FLAGS, flags);
	return packet;
}

struct open_event event_begin(struct buf *out, uint64_t time_ns, enum track_event_type type,
                              uint64_t track)
{
	struct open_event open;

	open.packet = packet_begin(out, SEQUENCE_NEEDS);
	pb_varint(out, PACKET_TIMESTAMP, time_ns);
	open.event = pb_begin(out, PACKET_TRACK_EVENT);
	pb_varint(out, EVENT_EVENT_TYPE, type);
	pb_varint(out, EVENT_TRACK_UUID, track);
	return open;
}

void event_end(struct buf *out, struct open_event open)
{
	pb_end(out, open.event);
	pb_end(out, open.packet);
}

void event_add_name(struct buf *out, uint32_t category, uint32_t name)
{
	pb_varint(out, EVENT_CATEGORY_IIDS, category);
	pb_varint(out, EVENT_NAME_IID, name);
}

/* ---- annotations ---------------------------------------------------------------------------- */

void annotate(struct perfetto *p, uint32_t name, enum annotation_field field, uint64_t value)
{
	size_t annotation = pb_begin(&p->packet, EVENT_ANNOTATIONS);

	pb_varint(&p->packet, ANNOTATION_NAME, name);
	pb_varint(&p->packet, field, value);
	pb_end(&p->packet, annotation);
}

void annotate_double(struct perfetto *p, uint32_t name, double value)
{
	size_t annotation = pb_begin(&p->packet, EVENT_ANNOTATIONS);

	pb_varint(&p->packet, ANNOTATION_NAME, name);
	pb_double(&p->packet, ANNOTATION_DOUBLE, value);
	pb_end(&p->packet, annotation);
}

void annotate_text(struct perfetto *p, uint32_t name, const char *text)
{
	size_t annotation = pb_begin(&p->packet, EVENT_ANNOTATIONS);
	struct buf safe = { 0 };

	buf_puts(&safe, "");
	text_add_safe(&safe, text);
	pb_varint(&p->packet, ANNOTATION_NAME, name);
	pb_string(&p->packet, ANNOTATION_STRING, safe.data);
	pb_end(&p->packet, annotation);
	buf_free(&safe);
}

uint32_t annotation(struct perfetto *p, const char *name)
{
	return perfetto_constant(p->names, NAME_ANNOTATION, name);
}

void annotate_u64(struct perfetto *p, const char *name, uint64_t value)
{
	annotate(p, annotation(p, name), ANNOTATION_UINT, value);
}

/* ---- perfetto queue ------------------------------------------------------------------------ */

#define ASKED_MOST (1u << 18) /* calls that wait; the oldest is counted before its turn */

struct asked {
	uint64_t time_ns;
	const struct process *process; /* NULL: done before the call returned, not counted */
};

struct perfetto_queue {
	struct perfetto *p;
	struct asked *asked;  /* a ring of those from `first` to before `next` */
	uint64_t first, next; /* numbers of calls that asked for work */
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

void perfetto_queue_gave_up(struct perfetto_queue *queue, const struct work_call *call)
{
	if (call->number < queue->first)
		perfetto_process(queue->p->tracks, call->process)->queued--;
	else
		asked_at(queue, call->number)->process = NULL;
}

static void see_call(struct perfetto_queue *queue, const struct event *event,
                     const struct work_now *now)
{
	if (!now->call || !now->call->number)
		return;
	if (queue->next - queue->first == ASKED_MOST)
		count_first(queue);
	*asked_at(queue, queue->next++) = (struct asked){
		event->time_ns,
		now->early || !now->call->asks ? NULL
					       : event->process, /* early: done before it ended */
	};
	queue->came_first += now->early;
}

static void see_activity(struct perfetto_queue *queue, const struct event *event,
                         const struct work_now *now)
{
	perfetto_process(queue->p->tracks, event->process)->has_activities = true;
	queue->p->has_activities = true;
	count_until(queue, event->time_ns);
	if (!now->call || !now->first || !now->call->asks) /* not first: another node of a graph */
		return;
	if (now->call->number < queue->first)
		change(queue, event->process, event->time_ns, -1);
	else /* done before the call had ended */
		asked_at(queue, now->call->number)->process = NULL;
}

bool perfetto_queue_flow_begins(struct perfetto_queue *queue, const struct event *event)
{
	const struct work_now *now = work_now(queue->p->sink.work);

	if (!now->call || now->early)
		return false;
	now->call->mark = true;
	return true;
}

bool perfetto_queue_flow_ends(struct perfetto_queue *queue, const struct event *event)
{
	struct work_call *call = work_now(queue->p->sink.work)->call;

	if (!call || !call->mark)
		return false;
	call->mark = false;
	return true;
}

uint64_t perfetto_queue_unjoined(const struct perfetto_queue *queue)
{
	return queue->p->sink.joined ? 0 : queue->came_first;
}

void perfetto_queue_event(struct perfetto_queue *queue, const struct event *event)
{
	if (event->type == EVENT_CALL)
		see_call(queue, event, work_now(queue->p->sink.work));
	else if (event->type == EVENT_ACTIVITY)
		see_activity(queue, event, work_now(queue->p->sink.work));
}

void perfetto_queue_end(struct perfetto_queue *queue)
{
	count_until(queue, UINT64_MAX);
}

struct perfetto_queue *perfetto_queue_new(struct perfetto *p)
{
	struct perfetto_queue *queue = xcalloc(1, sizeof(*queue));

	queue->p = p;
	queue->first = queue->next = 1;
	queue->asked = xcalloc(ASKED_MOST, sizeof(*queue->asked));
	return queue;
}

void perfetto_queue_free(struct perfetto_queue *queue)
{
	free(queue->asked);
	free(queue);
}
