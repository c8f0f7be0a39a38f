// SPDX-License-Identifier: MIT
#include "analysis/gpu_tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* Calls whose end is remembered: activities come seconds later. A power of two; 24 bytes each. */
#define ENDS  (1u << 18)
#define EARLY UINT64_MAX /* the work was known before its call had returned */

struct gpu_ends {
	struct call_end {
		uint64_t correlation; /* 0: free */
		uint64_t end_ns;      /* 0: not known, or counted; EARLY */
		uint32_t process;
	} of[ENDS];
};

void gpu_tally_init(struct gpu_tally *tally)
{
	memset(tally, 0, sizeof(*tally));
	tally->use = gpu_use_new();
	tally->works = gpu_works_new();
}

void gpu_tally_free(struct gpu_tally *tally)
{
	gpu_use_free(tally->use);
	gpu_works_free(tally->works);
	sketch_free(&tally->queue);
	free(tally->ends);
	free(tally->lines);
}

/* ---- how long work waited ------------------------------------------------------------------ */

static struct call_end *end_of(struct gpu_tally *tally, const struct event *event,
                               uint64_t correlation)
{
	uint64_t place = correlation + event->process->id * 0x9e3779b1ull;

	if (!tally->ends)
		tally->ends = xcalloc(1, sizeof(*tally->ends));
	return &tally->ends->of[place % ENDS];
}

static bool is_of(const struct call_end *end, const struct event *event, uint64_t correlation)
{
	return end->correlation == correlation && end->process == event->process->id;
}

static bool asks_for_work(const struct call *call)
{
	return call->correlation && !(call->flags & (CALL_NESTED | CALL_FAILED | CALL_CAPTURED)) &&
	       (call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH || call->op == OP_COPY ||
	        call->op == OP_SET);
}

static void see_call(struct gpu_tally *tally, const struct event *event)
{
	const struct call *call = event->call;
	struct call_end *end;

	if (!asks_for_work(call))
		return;
	end = end_of(tally, event, call->correlation);
	if (is_of(end, event, call->correlation) && end->end_ns == EARLY) {
		tally->unmatched--;
		tally->not_queued += call_has_end(call);
		end->end_ns = 0;
		return;
	}
	*end = (struct call_end){ call->correlation, call_has_end(call) ? call->end_ns : 0,
		                  event->process->id };
}

/* Of a graph's nodes only the first waits for the call; the others wait for each other. */
static void count_delay(struct gpu_tally *tally, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct call_end *end;

	if (!activity->correlation) {
		tally->unmatched++;
		return;
	}
	end = end_of(tally, event, activity->correlation);
	if (!is_of(end, event, activity->correlation)) {
		tally->unmatched++;
		if (end->correlation <
		    activity->correlation) /* else it is of a call that is gone */
			*end = (struct call_end){ activity->correlation, EARLY,
				                  event->process->id };
		return;
	}
	if (end->end_ns == EARLY) /* another node of a graph */
		return;
	if (end->end_ns && activity->begin_ns >= end->end_ns)
		sketch_add(&tally->queue, activity->begin_ns - end->end_ns);
	else
		tally->not_queued += end->end_ns > 0;
	end->end_ns = 0;
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
	if (event->type == EVENT_CALL)
		see_call(tally, event);
	gpu_works_event(tally->works, event);
	if (event->type != EVENT_ACTIVITY)
		return;
	gpu_use_event(tally->use, event);
	count_delay(tally, event);
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
