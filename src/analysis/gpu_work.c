// SPDX-License-Identifier: MIT
#include "analysis/gpu_work.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "analysis/by_id.h"

struct device {
	uint64_t id; /* process and number */
	struct gpu_work_row row;
	struct busy busy[WORK_ALL + 1];
	UT_hash_handle hh;
};

enum known { NOT_LOOKED_AT, IS_COMPUTE, IS_COMMUNICATION };

struct gpu_works {
	struct device *devices, *last;
	uint8_t *kernels; /* enum known, by id */
	size_t n_kernels;
	struct gpu_work_row *rows;
};

struct gpu_works *gpu_works_new(void)
{
	return xcalloc(1, sizeof(struct gpu_works));
}

void gpu_works_free(struct gpu_works *works)
{
	struct device *device, *next;

	if (!works)
		return;
	HASH_ITER (hh, works->devices, device, next) {
		HASH_DELETE(hh, works->devices, device);
		for (unsigned classes = 1; classes <= WORK_ALL; classes++)
			busy_free(&device->busy[classes]);
		free(device);
	}
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

static struct device *device_of(struct gpu_works *works, const struct event *event)
{
	uint64_t id = (uint64_t)event->process->id << 32 | event->activity->device;
	struct device *device = works->last;

	if (device && device->id == id)
		return device;
	HASH_FIND(hh, works->devices, &id, sizeof(id), device);
	if (!device) {
		device = xcalloc(1, sizeof(*device));
		device->id = id;
		device->row.process = event->process;
		device->row.device = event->activity->device;
		device->row.begin_ns = UINT64_MAX;
		for (unsigned classes = 1; classes <= WORK_ALL; classes++)
			device->busy[classes].most = BUSY_PIECES_OF_GPU;
		HASH_ADD(hh, works->devices, id, sizeof(device->id), device);
	}
	return works->last = device;
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

void gpu_works_event(struct gpu_works *works, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct device *device;
	unsigned class;

	if (event->type != EVENT_ACTIVITY)
		return;
	device = device_of(works, event);
	class = count(works, &device->row, activity);
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
	struct device *device, *next;

	free(works->rows);
	works->rows = xcalloc(HASH_COUNT(works->devices) + 1, sizeof(*works->rows));
	*n = 0;
	HASH_ITER (hh, works->devices, device, next) {
		for (unsigned classes = 1; classes <= WORK_ALL; classes++)
			device->row.union_ns[classes] = busy_ns(&device->busy[classes]);
		works->rows[(*n)++] = device->row;
	}
	qsort(works->rows, *n, sizeof(*works->rows), by_device);
	return works->rows;
}

uint64_t gpu_work_both_ns(const struct gpu_work_row *row, unsigned a, unsigned b)
{
	uint64_t apart = row->union_ns[a] + row->union_ns[b], together = row->union_ns[a | b];

	return apart > together ? apart - together : 0;
}
