// SPDX-License-Identifier: MIT
/*
 * Ranges: what the program says of itself (NVTX), waits for the GPU, and what measuring takes.
 *
 * Those that a thread pushes and pops nest. They are slices of a row beside the thread's calls, one
 * for each domain. In the calls' own row they would have to nest with calls as well, whose times
 * are taken by others. All else may overlap, and has rows as streams have.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/work.h"
#include "base/map.h"
#include "base/text.h"
#include "base/owned.h"
#include "base/xalloc.h"
#include "output/describe.h"
#include "output/perfetto/perfetto.h"

#define DOMAIN_BYTES 64   /* of a domain's name that tell it apart */
#define TRACKS_MOST  4096 /* more are shown in the row of no domain and no stream */

struct range_key {
	uint32_t process;
	uint32_t tid;  /* RANGE_PUSHPOP and RANGE_MARK; else 0 */
	uint32_t kind; /* of marks: RANGE_PUSHPOP */
	uint32_t context, stream;
	char domain[DOMAIN_BYTES];
};

struct range_tracks {
	struct range_key key;
	uint64_t parent;
	uint64_t uuid[ROWS_MAX];
	struct rows rows;
	struct nest nest;
	struct owned owned; /* by the process's id */
	UT_hash_handle hh;
};

struct perfetto_ranges {
	struct perfetto *p;
	struct range_tracks *tracks;
	struct owner *owners;
};

struct perfetto_ranges *perfetto_ranges_new(struct perfetto *p)
{
	struct perfetto_ranges *ranges = xcalloc(1, sizeof(*ranges));

	ranges->p = p;
	return ranges;
}

static void tracks_drop(struct perfetto_ranges *ranges, struct range_tracks *tracks)
{
	owned_remove(&ranges->owners, &tracks->owned);
	nest_flush(&tracks->nest, &ranges->p->sink.lines.pending);
	nest_free(&tracks->nest);
	MAP_DROP(ranges->tracks, tracks);
}

void perfetto_ranges_ended(struct perfetto_ranges *ranges, const struct process *process)
{
	struct owned *owned = owned_first(ranges->owners, process->id), *next;

	for (; owned; owned = next) {
		next = owned_next(owned);
		tracks_drop(ranges, OWNED_ENTRY(owned, struct range_tracks));
	}
}

void perfetto_ranges_flush(struct perfetto_ranges *ranges)
{
	struct range_tracks *tracks, *next;

	HASH_ITER (hh, ranges->tracks, tracks, next)
		tracks_drop(ranges, tracks);
}

void perfetto_ranges_free(struct perfetto_ranges *ranges)
{
	perfetto_ranges_flush(ranges);
	free(ranges);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool is_of_thread(const struct range *range)
{
	return range->kind == RANGE_PUSHPOP || range->kind == RANGE_MARK;
}

static uint64_t parent_of(struct perfetto_ranges *ranges, const struct event *event)
{
	struct perfetto_tracks *tracks = ranges->p->tracks;

	if (is_of_thread(event->range) && event->tid)
		return perfetto_thread(tracks, event->process, event->tid, NULL)->uuid;
	return event->range->kind == RANGE_SYNC ? perfetto_cuda_track(tracks, event->process)
	                                        : perfetto_process(tracks, event->process)->uuid;
}

static struct range_tracks *tracks_of(struct perfetto_ranges *ranges, const struct event *event)
{
	const struct range *range = event->range;
	struct range_key key = { .process = event->process->id, .kind = range->kind };
	struct range_tracks *found;

	if (is_of_thread(range)) {
		key.tid = event->tid;
		key.kind = RANGE_PUSHPOP;
	}
	if (range->kind == RANGE_SYNC) {
		key.context = range->context;
		key.stream = range->stream;
	}
	if (range->domain)
		strncpy(key.domain, range->domain, sizeof(key.domain) - 1);
	found = MAP_FIND(ranges->tracks, &key);
	if (found)
		return found;
	if (HASH_COUNT(ranges->tracks) >= TRACKS_MOST && (range->domain || range->stream)) {
		struct range other = *range;
		struct event event_of_other = *event;

		other.domain = NULL;
		other.stream = other.context = 0;
		event_of_other.range = &other;
		return tracks_of(ranges, &event_of_other);
	}
	found = MAP_ADD(ranges->tracks, key, &key);
	owned_add(&ranges->owners, key.process, &found->owned);
	found->parent = parent_of(ranges, event);
	return found;
}

static void add_row_name(const struct range *range, struct buf *name)
{
	if (range->kind == RANGE_SYNC && range->stream)
		buf_printf(name, "waits for stream %u", range->stream);
	else if (range->kind == RANGE_SYNC)
		buf_puts(name, "waits");
	else if (range->kind == RANGE_OVERHEAD)
		buf_puts(name, "overhead of measuring");
	else if (range->kind == RANGE_NOT_MEASURED)
		buf_puts(name, "GPU times not measured");
	else
		buf_puts(name, range->kind == RANGE_STARTEND ? "NVTX start-end" : "NVTX");
	if (range->domain && *range->domain) {
		buf_puts(name, ": ");
		text_add_safe(name, range->domain);
	}
}

/* The first row is that of what nests. */
static uint64_t row_of(struct perfetto_ranges *ranges, struct range_tracks *tracks,
                       const struct range *range)
{
	unsigned row = is_of_thread(range)
	                       ? 0
	                       : rows_choose_span(&tracks->rows, range->begin_ns, range->end_ns);
	struct buf name = { 0 };

	if (!tracks->uuid[row]) {
		add_row_name(range, &name);
		tracks->uuid[row] =
			perfetto_named_track(ranges->p->tracks, tracks->parent, name.data);
		buf_free(&name);
	}
	return tracks->uuid[row];
}

/* ---- slices --------------------------------------------------------------------------------- */

static void annotate_range(struct perfetto *p, const struct event *event)
{
	const struct range *range = event->range;

	if (range->context)
		annotate_u64(p, "context", range->context);
	if (range->stream)
		annotate_u64(p, "stream", range->stream);
	if (range->correlation)
		annotate_u64(p, "correlation", range->correlation);
	if (!is_of_thread(range) && event->tid)
		annotate_u64(p, "thread", event->tid);
}

/* Some kinds need no name. */
static const char *range_title(const struct range *range)
{
	return *range->name ? range->name : range_words[range->kind].category;
}

void perfetto_add_range(struct perfetto_ranges *ranges, const struct event *event)
{
	const struct range *range = event->range;
	struct perfetto *p = ranges->p;
	struct range_tracks *tracks = tracks_of(ranges, event);
	uint64_t track = row_of(ranges, tracks, range);
	uint32_t name = perfetto_range_name(p->names, range_title(range));
	uint32_t category =
		perfetto_constant(p->names, NAME_CATEGORY, range_words[range->kind].category);
	bool mark = range->kind == RANGE_MARK;
	struct open_event open;
	size_t begin_len;

	buf_reset(&p->packet);
	open = event_begin(&p->packet, range->begin_ns, mark ? TYPE_INSTANT : TYPE_BEGIN, track);
	event_add_name(&p->packet, category, name);
	annotate_range(p, event);
	event_end(&p->packet, open);
	begin_len = p->packet.len;
	if (!mark)
		event_end(&p->packet, event_begin(&p->packet, range->end_ns, TYPE_END, track));
	if (range->kind == RANGE_PUSHPOP)
		nest_add(&tracks->nest, range->begin_ns, range->depth, &p->packet, begin_len,
		         &p->sink.lines.pending);
	else
		buf_add(&p->sink.lines.pending, p->packet.data, p->packet.len);
}

/*
 * How much work a process has asked for that is not done yet, as a counter. It grows at the end of
 * a call and falls at the end of what ran for it.
 *
 * Calls come in order of their ends, activities in order of theirs, but up to seconds later. So
 * calls wait until an activity that ended after them has come: each value is then that of its time.
 */

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
	AT_END(buf_free) struct buf safe = { 0 };

	buf_puts(&safe, "");
	text_add_safe(&safe, text);
	pb_varint(&p->packet, ANNOTATION_NAME, name);
	pb_string(&p->packet, ANNOTATION_STRING, safe.data);
	pb_end(&p->packet, annotation);
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
