// SPDX-License-Identifier: MIT
#include "analysis/gpu_use.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/busy.h"
#include "analysis/by_id.h"

struct gpu_use {
	uint64_t activities;
	struct busy busy[GPU_USE_DEVICES];
	struct {
		const struct kernel *kernel;
		uint64_t count, ns;
	} * kernels; /* by id */
	size_t n_kernels;
	struct gpu_kernel *rows;
};

struct gpu_use *gpu_use_new(void)
{
	struct gpu_use *use = xcalloc(1, sizeof(*use));

	for (size_t i = 0; i < GPU_USE_DEVICES; i++)
		use->busy[i].most = BUSY_PIECES_OF_GPU;
	return use;
}

void gpu_use_event(struct gpu_use *use, const struct event *event)
{
	const struct activity *activity = event->activity;
	const struct kernel *kernel;

	if (event->type != EVENT_ACTIVITY)
		return;
	use->activities++;
	busy_add(&use->busy[activity->device % GPU_USE_DEVICES], activity->begin_ns,
	         activity->end_ns);
	kernel = activity->kernel;
	if (!kernel)
		return;
	use->kernels = by_id_room(use->kernels, &use->n_kernels, sizeof(*use->kernels), kernel->id);
	use->kernels[kernel->id].kernel = kernel;
	use->kernels[kernel->id].count++;
	use->kernels[kernel->id].ns += activity_duration_ns(activity);
}

uint64_t gpu_use_activities(const struct gpu_use *use)
{
	return use->activities;
}

uint64_t gpu_use_busy_ns(const struct gpu_use *use, uint32_t device)
{
	return busy_ns(&use->busy[device]);
}

uint64_t gpu_use_short_ns(const struct gpu_use *use, uint32_t device)
{
	return busy_short_ns(&use->busy[device]);
}

static int by_name(const void *left, const void *right)
{
	return strcmp(((const struct gpu_kernel *)left)->name,
	              ((const struct gpu_kernel *)right)->name);
}

static int by_time(const void *left, const void *right)
{
	const struct gpu_kernel *a = left, *b = right;

	return a->ns != b->ns ? (a->ns < b->ns ? 1 : -1) : by_name(a, b);
}

const struct gpu_kernel *gpu_use_kernels(struct gpu_use *use, size_t *n)
{
	struct gpu_kernel *rows = xcalloc(use->n_kernels + 1, sizeof(*rows));
	size_t all = 0, to = 0;

	for (size_t i = 0; i < use->n_kernels; i++) {
		if (use->kernels[i].kernel)
			rows[all++] =
				(struct gpu_kernel){ use->kernels[i].kernel->name,
				                     use->kernels[i].count, use->kernels[i].ns };
	}
	qsort(rows, all, sizeof(*rows), by_name);
	for (size_t i = 0; i < all; i++) {
		if (to && !by_name(&rows[to - 1], &rows[i])) {
			rows[to - 1].count += rows[i].count;
			rows[to - 1].ns += rows[i].ns;
		} else {
			rows[to++] = rows[i];
		}
	}
	qsort(rows, to, sizeof(*rows), by_time);
	free(use->rows);
	*n = to;
	return use->rows = rows;
}

void gpu_use_free(struct gpu_use *use)
{
	if (!use)
		return;
	for (size_t i = 0; i < GPU_USE_DEVICES; i++)
		busy_free(&use->busy[i]);
	free(use->kernels);
	free(use->rows);
	free(use);
}
