// SPDX-License-Identifier: MIT
#include "report/expert/long_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/gpu_ids.h"
#include "base/xalloc.h"
#include "table/longest.h"

/* Gaps that something which ends later may still fill. */
#define OPEN_GAPS 64

struct long_gaps_device {
	uint32_t number;
	const struct process *process;
	uint32_t context;
	uint64_t begin_ns, end_ns; /* of its work: gaps lie between */
	uint64_t busy_until_ns;    /* with what CUPTI did */
	struct long_gap open[OPEN_GAPS];
	size_t n_open;
};

struct long_gaps {
	struct consumer consumer; /* first: what callers hold */
	uint64_t least_ns;
	struct gpu_ids *ids;
	struct long_gaps_device *devices[GPU_IDS_MAX]; /* by id */
	struct longest longest;                        /* struct long_gap */
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

static void open_gap(struct long_gaps *gaps, struct long_gaps_device *device, uint64_t begin_ns,
                     uint64_t end_ns)
{
	if (end_ns - begin_ns <= gaps->least_ns)
		return;
	if (device->n_open == OPEN_GAPS) {
		longest_keep(&gaps->longest, &device->open[0]);
		memmove(device->open, device->open + 1, --device->n_open * sizeof(*device->open));
	}
	device->open[device->n_open++] = (struct long_gap){ .process = device->process,
		                                            .device = device->number,
		                                            .context = device->context,
		                                            .begin_ns = begin_ns,
		                                            .end_ns = end_ns };
}

/* Of what ends after all that came before. */
static void fill(struct long_gaps *gaps, struct long_gaps_device *device, uint64_t begin_ns,
                 uint64_t end_ns)
{
	while (device->n_open) {
		struct long_gap *last = &device->open[device->n_open - 1];

		if (last->end_ns <= begin_ns)
			break;
		if (last->begin_ns < begin_ns)
			last->end_ns = begin_ns;
		if (last->end_ns > begin_ns || length(last) <= gaps->least_ns)
			device->n_open--;
	}
	if (device->busy_until_ns && begin_ns > device->busy_until_ns)
		open_gap(gaps, device, device->busy_until_ns, begin_ns);
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
