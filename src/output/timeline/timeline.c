// SPDX-License-Identifier: MIT
#include "output/timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/number.h"
#include "analysis/by_id.h"
#include "analysis/thread_ids.h"
#include "analysis/time_bins.h"
#include "base/order.h"
#include "trace/event.h"

#define BINS_A_COLUMN 4              /* so that cutting to the window leaves two at least */
#define NARROW_TO     180.0          /* calls: fewer than TIMELINE_LIST, since bins are coarse */
#define PAST_NS       10000000000ull /* what ends or is known later is not waited for */

struct gpu_key {
	uint64_t process;
	uint32_t device, stream;
};

struct gpu_lane {
	struct gpu_key key;
	size_t lane;
	UT_hash_handle hh;
};

struct timeline {
	struct consumer consumer; /* first: what callers hold */
	struct timeline_options options;
	struct time_bins *bins; /* a row for each lane, and COUNTS_ROW */
	struct timeline_lane *lanes;
	size_t n_lanes, others; /* others: its lane, 0: there is none yet */
	struct thread_ids *ids;
	struct {
		size_t lane; /* plus 1 */
		char comm[16];
	} * threads; /* by id */
	size_t n_threads;
	struct gpu_lane *gpu;
	uint8_t *category_by_function; /* by id, plus 1 */
	size_t n_functions;
	struct consumer *slowest;
	struct slow_call list[TIMELINE_LIST];
	size_t n_list;
	uint64_t first_ns, last_ns; /* of what touches the window */
	uint64_t newest_ns;
	struct timeline_view view;
	bool viewed;
};

/*
 * Row 0 of the bins is none of a lane: it has how many calls began in a bin, in place of ns, which
 * tells how far to narrow the window.
 */
#define COUNTS_ROW      0
#define COUNTS_CATEGORY CATEGORY_OTHER
#define ROW_OF(lane)    ((lane) + 1)

/* ---- lanes --------------------------------------------------------------------------------- */

static size_t add_lane(struct timeline *timeline, const struct timeline_lane *lane)
{
	timeline->lanes =
		xrealloc(timeline->lanes, (timeline->n_lanes + 1) * sizeof(*timeline->lanes));
	timeline->lanes[timeline->n_lanes] = *lane;
	timeline->lanes[timeline->n_lanes].first_ns = UINT64_MAX;
	time_bins_row(timeline->bins);
	return timeline->n_lanes++;
}

static size_t others_lane(struct timeline *timeline)
{
	static const struct timeline_lane lane = { .kind = LANE_OTHERS };

	if (!timeline->others)
		timeline->others = add_lane(timeline, &lane);
	return timeline->others;
}

static uint32_t thread_of(struct timeline *timeline, const struct event *event)
{
	uint32_t id = thread_ids_of(timeline->ids, event);

	timeline->threads =
		by_id_room(timeline->threads, &timeline->n_threads, sizeof(*timeline->threads), id);
	return id;
}

static size_t thread_lane(struct timeline *timeline, const struct event *event)
{
	uint32_t id = thread_of(timeline, event);
	struct timeline_lane lane = { .kind = LANE_THREAD,
		                      .process = event->process,
		                      .tid = event->tid };

	if (timeline->threads[id].lane)
		return timeline->threads[id].lane - 1;
	memcpy(lane.comm, timeline->threads[id].comm, sizeof(lane.comm));
	timeline->threads[id].lane =
		1 + (timeline->n_lanes < TIMELINE_LANES ? add_lane(timeline, &lane)
	                                                : others_lane(timeline));
	return timeline->threads[id].lane - 1;
}

static size_t gpu_lane(struct timeline *timeline, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct gpu_key key = { event->process->id, activity->device, activity->stream };
	struct timeline_lane lane = { .kind = LANE_GPU,
		                      .process = event->process,
		                      .device = activity->device,
		                      .stream = activity->stream };
	struct gpu_lane *found = MAP_FIND(timeline->gpu, &key);

	if (found)
		return found->lane;
	if (timeline->n_lanes >= TIMELINE_LANES)
		return others_lane(timeline);
	found = MAP_ADD(timeline->gpu, key, &key);
	found->lane = add_lane(timeline, &lane);
	return found->lane;
}

/* The name comes before the first call, which makes the lane; a later name is the better one. */
static void name_thread(struct timeline *timeline, const struct event *event)
{
	uint32_t id = thread_of(timeline, event);
	size_t lane = timeline->threads[id].lane;

	memcpy(timeline->threads[id].comm, event->thread->comm, sizeof(event->thread->comm));
	if (lane && timeline->lanes[lane - 1].kind == LANE_THREAD)
		memcpy(timeline->lanes[lane - 1].comm, event->thread->comm,
		       sizeof(event->thread->comm));
}

/* ---- events -------------------------------------------------------------------------------- */

static enum category category_by_id(struct timeline *timeline, const struct function *function)
{
	timeline->category_by_function =
		by_id_room(timeline->category_by_function, &timeline->n_functions,
	                   sizeof(*timeline->category_by_function), function->id);
	if (!timeline->category_by_function[function->id])
		timeline->category_by_function[function->id] = (uint8_t)(1 + category_of(function));
	return timeline->category_by_function[function->id] - 1;
}

/* Cuts an interval to the window; what lasted no time is 1 ns. False where it lies outside. */
static bool clip(const struct timeline *timeline, uint64_t *begin_ns, uint64_t *end_ns)
{
	uint64_t from = timeline->options.from_ns, to = timeline->options.to_ns;

	if (*end_ns <= *begin_ns)
		*end_ns = *begin_ns + 1;
	if (*end_ns <= from || (to && *begin_ns >= to))
		return false;
	if (*begin_ns < from)
		*begin_ns = from;
	if (to && *end_ns > to)
		*end_ns = to;
	return true;
}

static void count(struct timeline_sum *sum, uint64_t ns, uint64_t whole_ns)
{
	sum->calls++;
	sum->ns += ns;
	if (whole_ns > sum->longest_ns)
		sum->longest_ns = whole_ns;
}

/* What both calls and activities are: time on a lane. `length` is 0 where it is not known. */
static void occupy(struct timeline *timeline, size_t at, struct timeline_sum *sums,
                   enum category category, uint64_t begin_ns, uint64_t end_ns, uint64_t length_ns)
{
	struct timeline_lane *lane = &timeline->lanes[at];
	uint64_t ns = length_ns ? end_ns - begin_ns : 0;

	time_bins_add(timeline->bins, ROW_OF(at), category, begin_ns, end_ns);
	lane->calls++;
	lane->busy_ns += ns;
	if (begin_ns < lane->first_ns)
		lane->first_ns = begin_ns;
	if (begin_ns < timeline->first_ns)
		timeline->first_ns = begin_ns;
	if (end_ns > timeline->last_ns)
		timeline->last_ns = end_ns;
	count(&sums[category], ns, length_ns);
}

static void keep(struct timeline *timeline, const struct event *event)
{
	struct slow_call *slot;

	if (timeline->view.all_calls++ >= TIMELINE_LIST)
		return;
	slot = &timeline->list[timeline->n_list++];
	slot->call = *event->call;
	slot->call.text = event->call->text ? xstrdup(event->call->text) : NULL;
	slot->process = event->process;
	slot->tid = event->tid;
}

static void see_call(struct timeline *timeline, const struct event *event)
{
	const struct call *call = event->call;
	uint64_t begin_ns = call->begin_ns, end_ns = call->end_ns;

	if (timeline->options.tid && event->tid != timeline->options.tid)
		return;
	if (!clip(timeline, &begin_ns, &end_ns))
		return;
	keep(timeline, event);
	time_bins_add(timeline->bins, COUNTS_ROW, COUNTS_CATEGORY, begin_ns, begin_ns + 1);
	if (call->flags & CALL_NESTED)
		return;
	timeline->view.unfinished += !!(call->flags & CALL_UNFINISHED);
	consumers_event(&timeline->slowest, 1, event, NULL);
	occupy(timeline, thread_lane(timeline, event), timeline->view.calls,
	       category_by_id(timeline, call->function), begin_ns, end_ns, call_duration_ns(call));
}

static void see_activity(struct timeline *timeline, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint64_t begin_ns = activity->begin_ns, end_ns = activity->end_ns;

	if (timeline->options.tid || !clip(timeline, &begin_ns, &end_ns))
		return;
	occupy(timeline, gpu_lane(timeline, event), timeline->view.gpu,
	       category_of_activity(activity), begin_ns, end_ns, activity_duration_ns(activity));
}

static bool is_past(const struct timeline *timeline)
{
	return timeline->options.to_ns && timeline->newest_ns > timeline->options.to_ns &&
	       timeline->newest_ns - timeline->options.to_ns > PAST_NS;
}

static int timeline_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct timeline *timeline = (struct timeline *)self;

	timeline->newest_ns = event->time_ns;
	if (event->type == EVENT_CALL)
		see_call(timeline, event);
	else if (event->type == EVENT_ACTIVITY)
		see_activity(timeline, event);
	else if (event->type == EVENT_THREAD)
		name_thread(timeline, event);
	return is_past(timeline) ? -ECANCELED : 0;
}

/* ---- the view ------------------------------------------------------------------------------ */

static int by_place(const void *left, const void *right)
{
	const struct timeline_lane *a = left, *b = right;

	if (!a->process || !b->process) /* the others last */
		return !a->process - !b->process;
	if (a->process_first_ns != b->process_first_ns)
		return a->process_first_ns < b->process_first_ns ? -1 : 1;
	if (a->process->id != b->process->id)
		return a->process->id < b->process->id ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->first_ns < b->first_ns ? -1 : a->first_ns > b->first_ns;
}

ORDER_BY(by_begin, struct slow_call, UP(call.begin_ns), UP(call.depth));

static void find_process_begins(struct timeline_lane *lanes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		lanes[i].process_first_ns = lanes[i].first_ns;
		for (size_t j = 0; j < n; j++) {
			if (lanes[j].process == lanes[i].process &&
			    lanes[j].first_ns < lanes[i].process_first_ns)
				lanes[i].process_first_ns = lanes[j].first_ns;
		}
	}
}

/* Fills the lanes' columns and takes those out that nothing is on. */
static void fill_lanes(struct timeline *timeline)
{
	const struct timeline_view *view = &timeline->view;
	size_t to = 0;

	for (size_t i = 0; i < timeline->n_lanes; i++) {
		struct timeline_lane *lane = &timeline->lanes[i];

		if (!lane->calls)
			continue;
		lane->columns = xcalloc(view->columns * CATEGORY_COUNT, sizeof(*lane->columns));
		time_bins_read(timeline->bins, ROW_OF(i), view->from_ns, view->to_ns, view->columns,
		               lane->columns);
		timeline->lanes[to++] = *lane;
	}
	timeline->n_lanes = to;
	find_process_begins(timeline->lanes, to);
	SORT(timeline->lanes, to, by_place);
}

/* The column in which most time was spent, and as much of it as has few enough calls. */
static void find_narrower(struct timeline *timeline)
{
	struct timeline_view *view = &timeline->view;
	double *counts = xcalloc(view->columns * CATEGORY_COUNT, sizeof(*counts));
	double most = -1, column_ns = (double)(view->to_ns - view->from_ns) / (double)view->columns;
	size_t at = 0;

	time_bins_read(timeline->bins, COUNTS_ROW, view->from_ns, view->to_ns, view->columns,
	               counts);
	for (size_t column = 0; column < view->columns; column++) {
		double ns = 0;

		for (size_t i = 0; i < timeline->n_lanes * CATEGORY_COUNT; i++)
			ns += timeline->lanes[i / CATEGORY_COUNT]
			              .columns[column * CATEGORY_COUNT + i % CATEGORY_COUNT];
		if (ns > most) {
			most = ns;
			at = column;
		}
	}
	most = counts[at * CATEGORY_COUNT + COUNTS_CATEGORY];
	view->narrow_from_ns = view->from_ns + number_u64(column_ns * (double)at);
	view->narrow_to_ns = view->narrow_from_ns +
	                     number_u64(column_ns * (most > NARROW_TO ? NARROW_TO / most : 1));
	free(counts);
}

const struct timeline_view *timeline_view(struct consumer *self)
{
	struct timeline *timeline = (struct timeline *)self;
	struct timeline_view *view = &timeline->view;
	bool any = timeline->last_ns > 0;

	if (timeline->viewed)
		return view;
	timeline->viewed = true;
	view->columns = timeline->options.columns;
	view->from_ns = timeline->options.from_ns ? timeline->options.from_ns
	                : any                     ? timeline->first_ns
	                                          : 0;
	view->to_ns = timeline->options.to_ns ? timeline->options.to_ns
	              : any                   ? timeline->last_ns
	                                      : view->from_ns;
	if (any)
		fill_lanes(timeline);
	else
		timeline->n_lanes = 0;
	view->lanes = timeline->lanes;
	view->n_lanes = timeline->n_lanes;
	view->longest = slowest_rows(timeline->slowest, &view->n_longest);
	SORT(timeline->list, timeline->n_list, by_begin);
	view->list = timeline->list;
	view->n_list = view->all_calls > TIMELINE_LIST ? 0 : timeline->n_list;
	if (view->all_calls > TIMELINE_LIST)
		find_narrower(timeline);
	return view;
}

static void timeline_free(struct consumer *self)
{
	struct timeline *timeline = (struct timeline *)self;

	MAP_FREE(timeline->gpu, free);
	for (size_t i = 0; i < timeline->n_lanes; i++)
		free(timeline->lanes[i].columns);
	for (size_t i = 0; i < timeline->n_list; i++)
		free((char *)timeline->list[i].call.text);
	time_bins_free(timeline->bins);
	thread_ids_free(timeline->ids);
	consumer_free(timeline->slowest);
	FREE_ALL(timeline->threads, timeline->category_by_function, timeline->lanes, timeline);
}

static const struct consumer_ops ops = { .event = timeline_event, .free = timeline_free };

struct consumer *timeline_new(const struct timeline_options *options)
{
	struct timeline *timeline = xcalloc(1, sizeof(*timeline));

	timeline->consumer.ops = &ops;
	timeline->options = *options;
	timeline->bins = time_bins_new(BINS_A_COLUMN * options->columns);
	time_bins_row(timeline->bins);
	timeline->ids = thread_ids_new();
	timeline->slowest = slowest_new(options->longest);
	timeline->first_ns = UINT64_MAX;
	return &timeline->consumer;
}
