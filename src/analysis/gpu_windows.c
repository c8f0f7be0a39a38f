// SPDX-License-Identifier: MIT
#include "analysis/gpu_windows.h"

#include <stdlib.h>
#include <uthash.h>

#include "analysis/busy.h"
#include "analysis/time_bins.h"
#include "base/xalloc.h"

/* At least half of them are in use, so a window is at least 546 bins. */
#define BINS 32768

/* Two of the bins' categories: what they are called does not matter here. */
#define SUM  CATEGORY_KERNEL
#define USED CATEGORY_OTHER

struct device {
	uint64_t id; /* process and number */
	struct gpu_windows_row row;
	struct busy busy;
	struct time_bins *bins; /* one row */
	UT_hash_handle hh;
};

struct gpu_windows {
	struct device *devices, *last;
	struct gpu_windows_row *rows;
};

struct gpu_windows *gpu_windows_new(void)
{
	return xcalloc(1, sizeof(struct gpu_windows));
}

void gpu_windows_free(struct gpu_windows *windows)
{
	struct device *device, *next;

	if (!windows)
		return;
	HASH_ITER (hh, windows->devices, device, next) {
		HASH_DELETE(hh, windows->devices, device);
		time_bins_free(device->bins);
		busy_free(&device->busy);
		free(device);
	}
	free(windows->rows);
	free(windows);
}

static void add_used(void *data, uint64_t begin_ns, uint64_t end_ns)
{
	struct device *device = data;

	time_bins_add(device->bins, 0, USED, begin_ns, end_ns);
}

static struct device *make_device(const struct event *event, uint64_t id)
{
	struct device *device = xcalloc(1, sizeof(*device));

	device->id = id;
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

static struct device *device_of(struct gpu_windows *windows, const struct event *event)
{
	uint64_t id = (uint64_t)event->process->id << 32 | event->activity->device;
	struct device *device = windows->last;

	if (device && device->id == id)
		return device;
	HASH_FIND(hh, windows->devices, &id, sizeof(id), device);
	if (!device) {
		device = make_device(event, id);
		HASH_ADD(hh, windows->devices, id, sizeof(device->id), device);
	}
	return windows->last = device;
}

void gpu_windows_event(struct gpu_windows *windows, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct device *device;

	if (event->type != EVENT_ACTIVITY || activity->end_ns <= activity->begin_ns)
		return;
	device = device_of(windows, event);
	if (activity->begin_ns < device->row.begin_ns)
		device->row.begin_ns = activity->begin_ns;
	if (activity->end_ns > device->row.end_ns)
		device->row.end_ns = activity->end_ns;
	time_bins_add(device->bins, 0, SUM, activity->begin_ns, activity->end_ns);
	busy_add(&device->busy, activity->begin_ns, activity->end_ns);
}

static void read_windows(struct device *device)
{
	struct gpu_windows_row *row = &device->row;
	double out[GPU_WINDOWS * CATEGORY_COUNT];
	double window_ns = (double)(row->end_ns - row->begin_ns) / GPU_WINDOWS;

	busy_finish(&device->busy);
	time_bins_read(device->bins, 0, row->begin_ns, row->end_ns, GPU_WINDOWS, out);
	for (size_t i = 0; i < GPU_WINDOWS; i++) {
		row->sum[i] = out[i * CATEGORY_COUNT + SUM] / window_ns;
		row->used[i] = out[i * CATEGORY_COUNT + USED] / window_ns;
		if (row->used[i] > 1) /* by a part of a bin */
			row->used[i] = 1;
	}
}

static int by_device(const void *left, const void *right)
{
	const struct gpu_windows_row *a = left, *b = right;

	if (a->process->id != b->process->id)
		return a->process->id < b->process->id ? -1 : 1;
	return (a->device > b->device) - (a->device < b->device);
}

const struct gpu_windows_row *gpu_windows_rows(struct gpu_windows *windows, size_t *n)
{
	struct device *device, *next;

	free(windows->rows);
	windows->rows = xcalloc(HASH_COUNT(windows->devices) + 1, sizeof(*windows->rows));
	*n = 0;
	HASH_ITER (hh, windows->devices, device, next) {
		read_windows(device);
		windows->rows[(*n)++] = device->row;
	}
	qsort(windows->rows, *n, sizeof(*windows->rows), by_device);
	return windows->rows;
}
