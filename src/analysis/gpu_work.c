// SPDX-License-Identifier: MIT
#include "analysis/gpu_work.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/xalloc.h"

/* ---- gpu ids ------------------------------------------------------------------------------- */

struct gpu_ids {
	uint64_t known[GPU_IDS_MAX]; /* process and number */
	uint32_t n, last;
};

struct gpu_ids *gpu_ids_new(void)
{
	return xcalloc(1, sizeof(struct gpu_ids));
}

void gpu_ids_free(struct gpu_ids *ids)
{
	free(ids);
}

/* There are few of them, and most activities are of the one before. */
uint32_t gpu_ids_of(struct gpu_ids *ids, const struct event *event)
{
	uint64_t gpu = (uint64_t)event->process->id << 32 | event->activity->device;

	if (ids->n && ids->known[ids->last] == gpu)
		return ids->last;
	for (uint32_t i = 0; i < ids->n; i++) {
		if (ids->known[i] == gpu)
			return ids->last = i;
	}
	if (ids->n == GPU_IDS_MAX)
		return GPU_ID_NONE;
	ids->known[ids->n] = gpu;
	return ids->last = ids->n++;
}

uint32_t gpu_ids_count(const struct gpu_ids *ids)
{
	return ids->n;
}

/* ---- gpu work ------------------------------------------------------------------------------ */

struct gpu_work_device {
	struct gpu_work_row row;
	struct busy busy[WORK_ALL + 1];
	uint64_t not_measured_ns; /* since its last work: counts once there is more */
};

enum launch_known { NOT_LOOKED_AT, IS_COMPUTE, IS_COMMUNICATION };

struct gpu_works {
	struct gpu_ids *ids;
	struct gpu_work_device *devices[GPU_IDS_MAX]; /* by id */
	uint8_t *kernels;                             /* enum launch_known, by id */
	size_t n_kernels;
	struct gpu_work_row *rows;
};

struct gpu_works *gpu_works_new(void)
{
	struct gpu_works *works = xcalloc(1, sizeof(*works));

	works->ids = gpu_ids_new();
	return works;
}

void gpu_works_free(struct gpu_works *works)
{
	if (!works)
		return;
	for (uint32_t i = 0; i < gpu_ids_count(works->ids); i++) {
		for (unsigned classes = 1; classes <= WORK_ALL; classes++)
			busy_free(&works->devices[i]->busy[classes]);
		free(works->devices[i]);
	}
	gpu_ids_free(works->ids);
	free(works->kernels);
	free(works->rows);
	free(works);
}

/* ncclKernel_AllReduce_... to NCCL 2.18, ncclDevKernel_... since; "void ncclKernel<...>" and
 * mangled names do not begin with it. */
bool kernel_name_is_communication(const char *name)
{
	return !strncmp(name, "nccl", 4) || strstr(name, "ncclKernel") ||
	       strstr(name, "ncclDevKernel");
}

static bool is_communication(struct gpu_works *works, const struct kernel *kernel)
{
	uint8_t *known;

	if (!kernel->resolved)
		return kernel_name_is_communication(kernel->name);
	works->kernels = by_id_room(works->kernels, &works->n_kernels, 1, kernel->id);
	known = &works->kernels[kernel->id];
	if (*known == NOT_LOOKED_AT)
		*known = kernel_name_is_communication(kernel->name) ? IS_COMMUNICATION : IS_COMPUTE;
	return *known == IS_COMMUNICATION;
}

/* NULL: there are too many. */
static struct gpu_work_device *device_of(struct gpu_works *works, const struct event *event)
{
	uint32_t id = gpu_ids_of(works->ids, event);
	struct gpu_work_device *device;

	if (id == GPU_ID_NONE)
		return NULL;
	device = works->devices[id];
	if (device)
		return device;
	device = works->devices[id] = xcalloc(1, sizeof(*device));
	device->row.process = event->process;
	device->row.device = event->activity->device;
	device->row.begin_ns = UINT64_MAX;
	for (unsigned classes = 1; classes <= WORK_ALL; classes++)
		device->busy[classes].most = BUSY_PIECES_OF_GPU;
	return device;
}

static void keep_longest(struct gpu_work_longest *longest, const struct activity *activity)
{
	uint64_t ns = activity_duration_ns(activity);

	if (ns > longest->duration_ns)
		*longest = (struct gpu_work_longest){ .begin_ns = activity->begin_ns,
			                              .duration_ns = ns,
			                              .bytes = activity->bytes,
			                              .kernel = activity->kernel };
}

static unsigned count(struct gpu_works *works, struct gpu_work_row *row,
                      const struct activity *activity)
{
	switch (activity->kind) {
	case ACTIVITY_COPY:
		row->copies++;
		keep_longest(&row->copy, activity);
		return WORK_MEMORY;
	case ACTIVITY_SET:
		row->sets++;
		keep_longest(&row->copy, activity);
		return WORK_MEMORY;
	case ACTIVITY_GRAPH_RUN:
		row->graphs++;
		return WORK_COMPUTE;
	default:
		row->kernels++;
		if (!activity->kernel || !is_communication(works, activity->kernel))
			return WORK_COMPUTE;
		row->communications++;
		keep_longest(&row->communication, activity);
		return WORK_COMMUNICATION;
	}
}

static void count_not_measured(struct gpu_works *works, const struct event *event)
{
	for (uint32_t i = 0; i < gpu_ids_count(works->ids); i++) {
		if (works->devices[i]->row.process == event->process)
			works->devices[i]->not_measured_ns += range_duration_ns(event->range);
	}
}

void gpu_works_event(struct gpu_works *works, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct gpu_work_device *device;
	unsigned class;

	if (event->type == EVENT_RANGE && event->range->kind == RANGE_NOT_MEASURED)
		count_not_measured(works, event);
	if (event->type != EVENT_ACTIVITY)
		return;
	device = device_of(works, event);
	if (!device)
		return;
	class = count(works, &device->row, activity);
	device->row.not_measured_ns += device->not_measured_ns;
	device->not_measured_ns = 0;
	if (activity->begin_ns < device->row.begin_ns)
		device->row.begin_ns = activity->begin_ns;
	if (activity->end_ns > device->row.end_ns)
		device->row.end_ns = activity->end_ns;
	for (unsigned classes = class; classes <= WORK_ALL; classes++) {
		if (classes & class)
			busy_add(&device->busy[classes], activity->begin_ns, activity->end_ns);
	}
}

static int by_device(const void *left, const void *right)
{
	const struct gpu_work_row *a = left, *b = right;

	if (a->process->id != b->process->id)
		return a->process->id < b->process->id ? -1 : 1;
	return (a->device > b->device) - (a->device < b->device);
}

const struct gpu_work_row *gpu_works_rows(struct gpu_works *works, size_t *n)
{
	free(works->rows);
	works->rows = xcalloc(gpu_ids_count(works->ids) + 1, sizeof(*works->rows));
	for (*n = 0; *n < gpu_ids_count(works->ids); (*n)++) {
		struct gpu_work_device *device = works->devices[*n];

		for (unsigned classes = 1; classes <= WORK_ALL; classes++)
			device->row.union_ns[classes] = busy_ns(&device->busy[classes]);
		device->row.short_ns = busy_short_ns(&device->busy[WORK_ALL]);
		works->rows[*n] = device->row;
	}
	qsort(works->rows, *n, sizeof(*works->rows), by_device);
	return works->rows;
}

uint64_t gpu_work_both_ns(const struct gpu_work_row *row, unsigned a, unsigned b)
{
	uint64_t apart = row->union_ns[a] + row->union_ns[b], together = row->union_ns[a | b];

	return apart > together ? apart - together : 0;
}
