// SPDX-License-Identifier: MIT
#include "report/expert/long_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/gpu_ids.h"
#include "base/xalloc.h"
#include "table/longest.h"

/* Gaps that something which ends later, or comes late, may still fill. */
#define OPEN_GAPS 64

struct long_gaps_device {
	uint32_t number;
	const struct process *process;
	uint32_t context;
	uint64_t begin_ns, end_ns; /* of its work: gaps lie between */
	uint64_t busy_until_ns;    /* with what CUPTI did */
	struct long_gap open[OPEN_GAPS];
	size_t n_open;
	uint64_t settled_ns; /* end of the last gap that cannot be filled any more */
};

struct long_gaps {
	struct consumer consumer; /* first: what callers hold */
	uint64_t least_ns;
	struct gpu_ids *ids;
	struct long_gaps_device *devices[GPU_IDS_MAX]; /* by id */
	struct longest longest;                        /* struct long_gap */
	uint64_t late;                                 /* that may have filled a settled gap */
	bool finished;
};

static uint64_t length(const struct long_gap *gap)
{
	return gap->end_ns - gap->begin_ns;
}

static int longer(const void *left, const void *right)
{
	const struct long_gap *a = left, *b = right;

	if (length(a) != length(b))
		return length(a) < length(b) ? 1 : -1;
	return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static void drop(struct long_gaps_device *device, size_t at)
{
	memmove(device->open + at, device->open + at + 1,
	        (--device->n_open - at) * sizeof(*device->open));
}

/* Puts one before those from `at` on; where there is no room, the oldest is settled. */
static void open_gap(struct long_gaps *gaps, struct long_gaps_device *device, size_t at,
                     const struct long_gap *gap)
{
	if (device->n_open == OPEN_GAPS) {
		longest_keep(&gaps->longest, &device->open[0]);
		device->settled_ns = device->open[0].end_ns;
		drop(device, 0);
		at -= at > 0;
	}
	memmove(device->open + at + 1, device->open + at,
	        (device->n_open++ - at) * sizeof(*device->open));
	device->open[at] = *gap;
}

static bool is_long(const struct long_gaps *gaps, const struct long_gap *gap)
{
	return gap->end_ns > gap->begin_ns && length(gap) > gaps->least_ns;
}

/* What it leaves of a gap: the part before it, the part behind it, both or none. */
static void cut(struct long_gaps *gaps, struct long_gaps_device *device, size_t at,
                uint64_t begin_ns, uint64_t end_ns)
{
	struct long_gap before = device->open[at], behind = before;

	before.end_ns = begin_ns;
	behind.begin_ns = end_ns;
	drop(device, at);
	if (is_long(gaps, &behind))
		open_gap(gaps, device, at, &behind);
	if (is_long(gaps, &before))
		open_gap(gaps, device, at, &before);
}

static void fill(struct long_gaps *gaps, struct long_gaps_device *device, uint64_t begin_ns,
                 uint64_t end_ns)
{
	if (end_ns <= begin_ns)
		return;
	gaps->late += begin_ns < device->settled_ns;
	for (size_t i = device->n_open; i && device->open[i - 1].end_ns > begin_ns; i--) {
		if (device->open[i - 1].begin_ns < end_ns)
			cut(gaps, device, i - 1, begin_ns, end_ns);
	}
	if (device->busy_until_ns && begin_ns > device->busy_until_ns) {
		const struct long_gap gap = { .process = device->process,
			                      .device = device->number,
			                      .context = device->context,
			                      .begin_ns = device->busy_until_ns,
			                      .end_ns = begin_ns };

		if (is_long(gaps, &gap))
			open_gap(gaps, device, device->n_open, &gap);
	}
	if (end_ns > device->busy_until_ns)
		device->busy_until_ns = end_ns;
}

static void see_activity(struct long_gaps *gaps, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint32_t id = gpu_ids_of(gaps->ids, event);
	struct long_gaps_device *device;

	if (id == GPU_ID_NONE)
		return;
	if (!gaps->devices[id]) {
		device = gaps->devices[id] = xcalloc(1, sizeof(*device));
		device->number = activity->device;
		device->process = event->process;
		device->begin_ns = UINT64_MAX;
	}
	device = gaps->devices[id];
	fill(gaps, device, activity->begin_ns, activity->end_ns);
	device->context = activity->context;
	if (activity->begin_ns < device->begin_ns)
		device->begin_ns = activity->begin_ns;
	if (activity->end_ns > device->end_ns)
		device->end_ns = activity->end_ns;
}

static int long_gaps_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct long_gaps *gaps = (struct long_gaps *)self;

	if (event->type == EVENT_ACTIVITY && event->activity->end_ns > event->activity->begin_ns)
		see_activity(gaps, event);
	if (event->type != EVENT_RANGE ||
	    (event->range->kind != RANGE_OVERHEAD && event->range->kind != RANGE_NOT_MEASURED))
		return 0;
	for (uint32_t i = 0; i < gpu_ids_count(gaps->ids); i++) {
		if (gaps->devices[i]->process == event->process)
			fill(gaps, gaps->devices[i], event->range->begin_ns, event->range->end_ns);
	}
	return 0;
}

const struct long_gap *long_gaps_rows(struct consumer *self, size_t *n)
{
	struct long_gaps *gaps = (struct long_gaps *)self;

	for (uint32_t id = 0; id < gpu_ids_count(gaps->ids) && !gaps->finished; id++) {
		const struct long_gaps_device *device = gaps->devices[id];

		for (size_t i = 0; i < device->n_open; i++) {
			if (device->open[i].begin_ns < device->end_ns)
				longest_keep(&gaps->longest, &device->open[i]);
		}
	}
	gaps->finished = true;
	return longest_rows(&gaps->longest, n);
}

bool long_gaps_any_work(const struct consumer *self)
{
	return gpu_ids_count(((const struct long_gaps *)self)->ids) > 0;
}

uint64_t long_gaps_left_out(const struct consumer *self)
{
	const struct long_gaps *gaps = (const struct long_gaps *)self;

	return gaps->longest.seen - gaps->longest.n;
}

uint64_t long_gaps_late(const struct consumer *self)
{
	return ((const struct long_gaps *)self)->late;
}

static void long_gaps_free(struct consumer *self)
{
	struct long_gaps *gaps = (struct long_gaps *)self;

	for (uint32_t i = 0; i < gpu_ids_count(gaps->ids); i++)
		free(gaps->devices[i]);
	gpu_ids_free(gaps->ids);
	longest_free(&gaps->longest);
	free(gaps);
}

static const struct consumer_ops long_gaps_ops = { .event = long_gaps_event,
	                                           .free = long_gaps_free };

struct consumer *long_gaps_new(uint64_t least_ns, size_t most)
{
	struct long_gaps *gaps = xcalloc(1, sizeof(*gaps));

	gaps->consumer.ops = &long_gaps_ops;
	gaps->least_ns = least_ns;
	gaps->ids = gpu_ids_new();
	longest_init(&gaps->longest, sizeof(struct long_gap), most, longer);
	return &gaps->consumer;
}
