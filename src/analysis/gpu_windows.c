// SPDX-License-Identifier: MIT
#include "analysis/gpu_windows.h"

#include <stdlib.h>

#include "analysis/busy.h"
#include "analysis/gpu_ids.h"
#include "analysis/time_bins.h"
#include "base/xalloc.h"

/* At least half of them are in use, so a window is at least 136 bins. */
#define BINS 8192

/* Three of the bins' categories: what they are called does not matter here. */
#define SUM          CATEGORY_KERNEL
#define USED         CATEGORY_OTHER
#define NOT_MEASURED CATEGORY_INIT

struct gpu_windows_device {
	struct gpu_windows_row row;
	struct busy busy;
	struct time_bins *bins; /* one row */
};

struct gpu_windows {
	struct consumer consumer; /* first: what callers hold */
	struct gpu_ids *ids;
	struct gpu_windows_device *devices[GPU_IDS_MAX]; /* by id */
	struct gpu_windows_row *rows;
};

static void add_used(void *data, uint64_t begin_ns, uint64_t end_ns)
{
	struct gpu_windows_device *device = data;

	time_bins_add(device->bins, 0, USED, begin_ns, end_ns);
}

static struct gpu_windows_device *make_device(const struct event *event)
{
	struct gpu_windows_device *device = xcalloc(1, sizeof(*device));

	device->row.process = event->process;
	device->row.device = event->activity->device;
	device->row.context = event->activity->context;
	device->row.begin_ns = UINT64_MAX;
	device->busy.most = BUSY_PIECES_OF_GPU;
	device->busy.gone = add_used;
	device->busy.data = device;
	device->bins = time_bins_new(BINS);
	time_bins_row(device->bins);
	return device;
}

static void see_activity(struct gpu_windows *windows, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint32_t id = gpu_ids_of(windows->ids, event);
	struct gpu_windows_device *device;

	if (id == GPU_ID_NONE)
		return;
	if (!windows->devices[id])
		windows->devices[id] = make_device(event);
	device = windows->devices[id];
	if (activity->begin_ns < device->row.begin_ns)
		device->row.begin_ns = activity->begin_ns;
	if (activity->end_ns > device->row.end_ns)
		device->row.end_ns = activity->end_ns;
	time_bins_add(device->bins, 0, SUM, activity->begin_ns, activity->end_ns);
	busy_add(&device->busy, activity->begin_ns, activity->end_ns);
}

static int gpu_windows_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct gpu_windows *windows = (struct gpu_windows *)self;
	const struct range *range = event->range;

	if (event->type == EVENT_ACTIVITY && activity_duration_ns(event->activity))
		see_activity(windows, event);
	if (event->type != EVENT_RANGE || range->kind != RANGE_NOT_MEASURED ||
	    !range_duration_ns(range))
		return 0;
	for (uint32_t i = 0; i < gpu_ids_count(windows->ids); i++) {
		if (windows->devices[i]->row.process == event->process)
			time_bins_add(windows->devices[i]->bins, 0, NOT_MEASURED, range->begin_ns,
			              range->end_ns);
	}
	return 0;
}

static double at_most_one(double share)
{
	return share > 1 ? 1 : share; /* by a part of a bin */
}

static void read_windows(struct gpu_windows_device *device)
{
	struct gpu_windows_row *row = &device->row;
	double out[GPU_WINDOWS * CATEGORY_COUNT];
	double window_ns = (double)(row->end_ns - row->begin_ns) / GPU_WINDOWS;

	busy_finish(&device->busy);
	time_bins_read(device->bins, 0, row->begin_ns, row->end_ns, GPU_WINDOWS, out);
	for (size_t i = 0; i < GPU_WINDOWS; i++) {
		const double *window = out + i * CATEGORY_COUNT;

		row->measured[i] = 1 - at_most_one(window[NOT_MEASURED] / window_ns);
		row->sum[i] = row->used[i] = 0;
		if (row->measured[i] < GPU_WINDOW_MEASURED)
			continue;
		row->sum[i] = window[SUM] / (window_ns * row->measured[i]);
		row->used[i] = at_most_one(window[USED] / (window_ns * row->measured[i]));
	}
}

static int by_device(const void *left, const void *right)
{
	const struct gpu_windows_row *a = left, *b = right;

	if (a->process->id != b->process->id)
		return a->process->id < b->process->id ? -1 : 1;
	return (a->device > b->device) - (a->device < b->device);
}

const struct gpu_windows_row *gpu_windows_rows(struct consumer *self, size_t *n)
{
	struct gpu_windows *windows = (struct gpu_windows *)self;

	free(windows->rows);
	windows->rows = xcalloc(gpu_ids_count(windows->ids) + 1, sizeof(*windows->rows));
	for (*n = 0; *n < gpu_ids_count(windows->ids); (*n)++) {
		read_windows(windows->devices[*n]);
		windows->rows[*n] = windows->devices[*n]->row;
	}
	qsort(windows->rows, *n, sizeof(*windows->rows), by_device);
	return windows->rows;
}

static void gpu_windows_free(struct consumer *self)
{
	struct gpu_windows *windows = (struct gpu_windows *)self;

	for (uint32_t i = 0; i < gpu_ids_count(windows->ids); i++) {
		time_bins_free(windows->devices[i]->bins);
		busy_free(&windows->devices[i]->busy);
		free(windows->devices[i]);
	}
	gpu_ids_free(windows->ids);
	free(windows->rows);
	free(windows);
}

static const struct consumer_ops gpu_windows_ops = { .event = gpu_windows_event,
	                                             .free = gpu_windows_free };

struct consumer *gpu_windows_new(void)
{
	struct gpu_windows *windows = xcalloc(1, sizeof(*windows));

	windows->consumer.ops = &gpu_windows_ops;
	windows->ids = gpu_ids_new();
	return &windows->consumer;
}
