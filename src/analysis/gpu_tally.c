// SPDX-License-Identifier: MIT
#include "analysis/gpu_tally.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/busy.h"
#include "analysis/by_id.h"
#include "base/xalloc.h"

/* ---- gpu use ------------------------------------------------------------------------------- */

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

static struct gpu_use *gpu_use_new(void)
{
	struct gpu_use *use = xcalloc(1, sizeof(*use));

	for (size_t i = 0; i < GPU_USE_DEVICES; i++)
		use->busy[i].most = BUSY_PIECES_OF_GPU;
	return use;
}

static void gpu_use_event(struct gpu_use *use, const struct event *event)
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

static uint64_t gpu_use_activities(const struct gpu_use *use)
{
	return use->activities;
}

/* In which at least one activity ran on a device; `device` below GPU_USE_DEVICES. */
static uint64_t gpu_use_busy_ns(const struct gpu_use *use, uint32_t device)
{
	return busy_ns(&use->busy[device]);
}

/* that it lacks at most */
static uint64_t gpu_use_short_ns(const struct gpu_use *use, uint32_t device)
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

static void gpu_use_free(struct gpu_use *use)
{
	if (!use)
		return;
	for (size_t i = 0; i < GPU_USE_DEVICES; i++)
		busy_free(&use->busy[i]);
	free(use->kernels);
	free(use->rows);
	free(use);
}

/* ---- gpu tally ----------------------------------------------------------------------------- */

void gpu_tally_init(struct gpu_tally *tally, struct work *work)
{
	memset(tally, 0, sizeof(*tally));
	tally->use = gpu_use_new();
	tally->works = gpu_works_new();
	tally->work = work_share(work);
}

void gpu_tally_free(struct gpu_tally *tally)
{
	gpu_use_free(tally->use);
	gpu_works_free(tally->works);
	sketch_free(&tally->queue);
	work_free(tally->work);
	free(tally->lines);
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

void gpu_tally_event(struct gpu_tally *tally, const struct event *event)
{
	work_event(tally->work, event);
	count_delay(tally, event);
	if (event->type == EVENT_RANGE)
		gpu_works_event(tally->works, event);
	if (event->type != EVENT_ACTIVITY)
		return;
	gpu_works_event(tally->works, event);
	gpu_use_event(tally->use, event);
	if (event->activity->kind == ACTIVITY_COPY)
		count_copy(&tally->copies[event->activity->direction], event->activity);
	else if (event->activity->kind == ACTIVITY_SET)
		count_copy(&tally->sets, event->activity);
}

bool gpu_tally_any(const struct gpu_tally *tally)
{
	return gpu_use_activities(tally->use) > 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct gpu_line *line_of(struct gpu_tally *tally, size_t *n, uint32_t device)
{
	for (size_t i = 0; i < *n; i++) {
		if (tally->lines[i].device == device)
			return &tally->lines[i];
	}
	tally->lines[*n] = (struct gpu_line){ .device = device, .begin_ns = UINT64_MAX };
	return &tally->lines[(*n)++];
}

static int by_device(const void *left, const void *right)
{
	const struct gpu_line *a = left, *b = right;

	return a->device < b->device ? -1 : a->device > b->device;
}

/* Windows are the same ones for all processes: the longest list of them holds the others. */
static void widen(struct gpu_line *line, const struct gpu_work_row *row)
{
	if (row->begin_ns < line->begin_ns)
		line->begin_ns = row->begin_ns;
	if (row->end_ns > line->end_ns)
		line->end_ns = row->end_ns;
	if (row->not_measured_ns > line->not_measured_ns)
		line->not_measured_ns = row->not_measured_ns;
}

const struct gpu_line *gpu_tally_lines(struct gpu_tally *tally, size_t *n)
{
	const struct gpu_work_row *rows;
	size_t n_rows;

	rows = gpu_works_rows(tally->works, &n_rows);
	free(tally->lines);
	tally->lines = xcalloc(n_rows + 1, sizeof(*tally->lines));
	*n = 0;
	for (size_t i = 0; i < n_rows; i++) {
		uint32_t device = rows[i].device;
		struct gpu_line *line = line_of(tally, n, device);

		widen(line, &rows[i]);
		line->kernels += rows[i].kernels;
		line->copies += rows[i].copies;
		line->sets += rows[i].sets;
		line->graphs += rows[i].graphs;
		line->communication_ns += rows[i].union_ns[WORK_COMMUNICATION];
		line->beside_ns += gpu_work_both_ns(&rows[i], WORK_COMMUNICATION, WORK_COMPUTE);
		line->busy_ns = gpu_use_busy_ns(tally->use, device % GPU_USE_DEVICES);
		line->short_ns = gpu_use_short_ns(tally->use, device % GPU_USE_DEVICES);
	}
	qsort(tally->lines, *n, sizeof(*tally->lines), by_device);
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
	const struct gpu_line *lines;
	uint64_t sum = 0;
	size_t n;

	lines = gpu_tally_lines(tally, &n);
	for (size_t i = 0; i < n; i++)
		sum += lines[i].busy_ns;
	return sum;
}

uint64_t gpu_tally_measured_ns(struct gpu_tally *tally)
{
	const struct gpu_line *lines;
	uint64_t sum = 0;
	size_t n;

	lines = gpu_tally_lines(tally, &n);
	for (size_t i = 0; i < n; i++)
		sum += gpu_line_measured_ns(&lines[i]);
	return sum;
}

double gpu_copies_rate(const struct gpu_copies *copies)
{
	return copies->ns ? (double)copies->bytes / (double)copies->ns : 0;
}
