// SPDX-License-Identifier: MIT
#include "analysis/gpu_tally.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/order.h"
#include "base/xalloc.h"

/* Of one GPU as one process numbers it. */
struct gpu_tally_device {
	const struct process *process;
	uint32_t number;
	uint64_t begin_ns, end_ns; /* of the first and the last that ran */
	uint64_t not_measured_ns;  /* between them */
	uint64_t pending_ns;       /* not measured since its last work: counts once there is more */
	uint64_t ran[ACTIVITY_COUNT];
	/* Graphs as wholes are computing; kernels: in which any of both ran. */
	struct busy computing, communication, kernels;
};

struct gpu_tally_kernel {
	const struct kernel *kernel; /* NULL: none ran */
	uint64_t count, ns;
};

void gpu_tally_init(struct gpu_tally *tally, struct work *work)
{
	memset(tally, 0, sizeof(*tally));
	tally->ids = gpu_ids_new();
	tally->work = work_share(work);
	for (size_t i = 0; i < GPU_TALLY_BUSY; i++)
		tally->busy[i].most = BUSY_PIECES_OF_GPU;
}

void gpu_tally_free(struct gpu_tally *tally)
{
	for (uint32_t i = 0; i < gpu_ids_count(tally->ids); i++) {
		busy_free(&tally->devices[i]->computing);
		busy_free(&tally->devices[i]->communication);
		busy_free(&tally->devices[i]->kernels);
		free(tally->devices[i]);
	}
	for (size_t i = 0; i < GPU_TALLY_BUSY; i++)
		busy_free(&tally->busy[i]);
	gpu_ids_free(tally->ids);
	sketch_free(&tally->queue);
	work_free(tally->work);
	FREE_ALL(tally->kernels, tally->looked_at.by_id, tally->kernel_rows, tally->lines);
}

/* ---- how long work waited ------------------------------------------------------------------ */

static void count_queued(struct gpu_tally *tally, const struct work_call *call, uint64_t begin_ns)
{
	if (call->end_ns && begin_ns >= call->end_ns)
		sketch_add(&tally->queue, begin_ns - call->end_ns);
	else
		tally->not_queued += call->end_ns > 0;
}

/* Of a graph's nodes only the first waits for the call; the others wait for each other. */
static void count_delay(struct gpu_tally *tally, const struct event *event)
{
	const struct work_now *now = work_now(tally->work);

	if (now->early) { /* its work was unmatched until now */
		tally->unmatched--;
		tally->not_queued += now->call->end_ns > 0;
	}
	if (event->type != EVENT_ACTIVITY)
		return;
	if (!now->call)
		tally->unmatched += !now->waits || now->first;
	else if (now->first)
		count_queued(tally, now->call, event->activity->begin_ns);
}

/* ---- activities ---------------------------------------------------------------------------- */

static void count_copy(struct gpu_copies *copies, const struct activity *activity)
{
	copies->count++;
	copies->bytes += activity->bytes;
	copies->ns += activity_duration_ns(activity);
}

/* NULL: there are too many. */
static struct gpu_tally_device *device_of(struct gpu_tally *tally, const struct event *event)
{
	uint32_t id = gpu_ids_of(tally->ids, event);
	struct gpu_tally_device *device;

	if (id == GPU_ID_NONE)
		return NULL;
	device = tally->devices[id];
	if (device)
		return device;
	device = tally->devices[id] = xcalloc(1, sizeof(*device));
	device->process = event->process;
	device->number = event->activity->device;
	device->begin_ns = UINT64_MAX;
	device->computing.most = device->communication.most = device->kernels.most =
		BUSY_PIECES_OF_GPU;
	return device;
}

/* Its sums, and whether it is one of communication. */
static bool count_kernel(struct gpu_tally *tally, const struct activity *activity)
{
	const struct kernel *kernel = activity->kernel;
	struct gpu_tally_kernel *row = BY_ID(tally->kernels, tally->n_kernels, kernel->id);

	row->kernel = kernel;
	row->count++;
	row->ns += activity_duration_ns(activity);
	return kernel_is_communication(&tally->looked_at, kernel);
}

static void count_on_device(struct gpu_tally_device *device, const struct activity *activity,
                            bool communication)
{
	device->ran[activity->kind]++;
	device->not_measured_ns += device->pending_ns;
	device->pending_ns = 0;
	if (activity->begin_ns < device->begin_ns)
		device->begin_ns = activity->begin_ns;
	if (activity->end_ns > device->end_ns)
		device->end_ns = activity->end_ns;
	if (activity_is_transfer(activity))
		return;
	busy_add(communication ? &device->communication : &device->computing, activity->begin_ns,
	         activity->end_ns);
	busy_add(&device->kernels, activity->begin_ns, activity->end_ns);
}

static void count_activity(struct gpu_tally *tally, const struct event *event)
{
	const struct activity *activity = event->activity;
	bool communication = activity->kernel && count_kernel(tally, activity);
	struct gpu_tally_device *device = device_of(tally, event);

	tally->activities++;
	busy_add(&tally->busy[activity->device % GPU_TALLY_BUSY], activity->begin_ns,
	         activity->end_ns);
	if (device)
		count_on_device(device, activity, communication);
	if (activity_is_transfer(activity))
		count_copy(activity->kind == ACTIVITY_COPY ? &tally->copies[activity->direction]
		                                           : &tally->sets,
		           activity);
}

static void count_not_measured(struct gpu_tally *tally, const struct event *event)
{
	for (uint32_t i = 0; i < gpu_ids_count(tally->ids); i++) {
		if (tally->devices[i]->process == event->process)
			tally->devices[i]->pending_ns += range_duration_ns(event->range);
	}
}

void gpu_tally_event(struct gpu_tally *tally, const struct event *event)
{
	work_event(tally->work, event);
	count_delay(tally, event);
	if (event->type == EVENT_RANGE && event->range->kind == RANGE_NOT_MEASURED)
		count_not_measured(tally, event);
	else if (event->type == EVENT_ACTIVITY)
		count_activity(tally, event);
}

bool gpu_tally_any(const struct gpu_tally *tally)
{
	return tally->activities > 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

ORDER_BY(by_name, struct gpu_kernel, BY_TEXT(name));

ORDER_BY(by_time, struct gpu_kernel, DOWN(ns), OR_ELSE(by_name));

const struct gpu_kernel *gpu_tally_kernels(struct gpu_tally *tally, size_t *n)
{
	struct gpu_kernel *rows = xcalloc(tally->n_kernels + 1, sizeof(*rows));
	size_t all = 0, to = 0;

	for (size_t i = 0; i < tally->n_kernels; i++) {
		const struct gpu_tally_kernel *of = &tally->kernels[i];

		if (of->kernel)
			rows[all++] = (struct gpu_kernel){ of->kernel->name, of->count, of->ns };
	}
	SORT(rows, all, by_name);
	for (size_t i = 0; i < all; i++) {
		if (to && !by_name(&rows[to - 1], &rows[i])) {
			rows[to - 1].count += rows[i].count;
			rows[to - 1].ns += rows[i].ns;
		} else {
			rows[to++] = rows[i];
		}
	}
	SORT(rows, to, by_time);
	free(tally->kernel_rows);
	*n = to;
	return tally->kernel_rows = rows;
}

static struct gpu_line *line_of(struct gpu_tally *tally, size_t *n, uint32_t device)
{
	for (size_t i = 0; i < *n; i++) {
		if (tally->lines[i].device == device)
			return &tally->lines[i];
	}
	tally->lines[*n] = (struct gpu_line){ .device = device, .begin_ns = UINT64_MAX };
	return &tally->lines[(*n)++];
}

ORDER_BY(by_device, struct gpu_line, UP(device));

/* Windows are the same ones for all processes: the longest list of them holds the others. */
static void widen(struct gpu_line *line, const struct gpu_tally_device *device)
{
	if (device->begin_ns < line->begin_ns)
		line->begin_ns = device->begin_ns;
	if (device->end_ns > line->end_ns)
		line->end_ns = device->end_ns;
	if (device->not_measured_ns > line->not_measured_ns)
		line->not_measured_ns = device->not_measured_ns;
}

const struct gpu_line *gpu_tally_lines(struct gpu_tally *tally, size_t *n)
{
	uint32_t n_devices = gpu_ids_count(tally->ids);

	free(tally->lines);
	tally->lines = xcalloc(n_devices + 1, sizeof(*tally->lines));
	*n = 0;
	for (uint32_t i = 0; i < n_devices; i++) {
		const struct gpu_tally_device *device = tally->devices[i];
		struct gpu_line *line = line_of(tally, n, device->number);
		const struct busy *busy = &tally->busy[device->number % GPU_TALLY_BUSY];
		uint64_t communication_ns = busy_ns(&device->communication);
		uint64_t apart_ns = communication_ns + busy_ns(&device->computing);
		uint64_t together_ns = busy_ns(&device->kernels);

		widen(line, device);
		for (size_t kind = 0; kind < ACTIVITY_COUNT; kind++)
			line->ran[kind] += device->ran[kind];
		line->communication_ns += communication_ns;
		line->beside_ns += apart_ns > together_ns ? apart_ns - together_ns : 0;
		line->busy_ns = busy_ns(busy);
		line->short_ns = busy_short_ns(busy);
	}
	SORT(tally->lines, *n, by_device);
	return tally->lines;
}

uint64_t gpu_line_measured_ns(const struct gpu_line *line)
{
	uint64_t all_ns = line->end_ns - line->begin_ns;

	/* Work that a window cut off can be in both. */
	if (all_ns < line->busy_ns + line->not_measured_ns)
		return line->busy_ns;
	return all_ns - line->not_measured_ns;
}

uint64_t gpu_tally_busy_ns(struct gpu_tally *tally)
{
	uint64_t sum = 0;
	size_t n;
	const struct gpu_line *lines = gpu_tally_lines(tally, &n);

	for (size_t i = 0; i < n; i++)
		sum += lines[i].busy_ns;
	return sum;
}

uint64_t gpu_tally_measured_ns(struct gpu_tally *tally)
{
	uint64_t sum = 0;
	size_t n;
	const struct gpu_line *lines = gpu_tally_lines(tally, &n);

	for (size_t i = 0; i < n; i++)
		sum += gpu_line_measured_ns(&lines[i]);
	return sum;
}

double gpu_copies_rate(const struct gpu_copies *copies)
{
	return copies->ns ? (double)copies->bytes / (double)copies->ns : 0;
}
