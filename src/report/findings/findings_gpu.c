// SPDX-License-Identifier: MIT
/* Findings about how the GPU was used: overlap of classes of work, and windows of low use. */
#include <stdlib.h>

#include "report/findings/findings_rules.h"
#include "base/number.h"
#include "analysis/gpu_windows.h"
#include "analysis/gpu_work.h"
#include "trace/consumers.h"

static void *make_works(void)
{
	return gpu_works_new();
}

static void free_works(void *state)
{
	gpu_works_free(state);
}

static void works_event(void *state, const struct event *event)
{
	if (event->type == EVENT_ACTIVITY)
		gpu_works_event(state, event);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* What the rules of overlap have in common: work `hidden` that could run below work `below`. */
static struct finding *judge_overlap(const struct finding_verdicts *verdicts,
                                     const struct finding_rule *rule,
                                     const struct gpu_work_row *row, unsigned hidden,
                                     unsigned below, double limit)
{
	uint64_t both_ns = gpu_work_both_ns(row, hidden, below);
	uint64_t hidden_ns = row->union_ns[hidden], below_ns = row->union_ns[below], lost_ns;
	const struct finding_process *process = finding_process(verdicts, row->process->id);
	struct finding *finding;

	lost_ns = lesser(hidden_ns - lesser(both_ns, hidden_ns),
	                 below_ns - lesser(both_ns, below_ns));
	if (!process || share_of(both_ns, hidden_ns) >= limit ||
	    !finding_is_worth(process, lost_ns - lesser(row->short_ns, lost_ns)))
		return NULL;
	finding = findings_add(verdicts, rule, process);
	finding->device = row->device;
	finding->of_device = true;
	finding->lost_ns = lost_ns;
	finding->lost_known = true;
	return finding;
}

static void set_example(struct finding *finding, const struct gpu_work_longest *longest)
{
	finding->has_example = longest->duration_ns > 0;
	finding->example = (struct finding_example){ .kernel = longest->kernel,
		                                     .begin_ns = longest->begin_ns,
		                                     .duration_ns = longest->duration_ns,
		                                     .bytes = longest->bytes };
}

static void say_overlap(struct buf *text, const struct gpu_work_row *row, unsigned hidden,
                        unsigned below)
{
	uint64_t both_ns = gpu_work_both_ns(row, hidden, below);

	buf_duration(text, row->union_ns[hidden]);
	buf_printf(text, ", and during %.1f %% of that ",
	           100 * share_of(both_ns, row->union_ns[hidden]));
}

/* ---- copies and kernels -------------------------------------------------------------------- */

/* Copies and sets within a device take its memory's bandwidth from kernels: nothing is gained. */
static void copies_event(void *state, const struct event *event)
{
	const struct activity *activity = event->activity;

	if (event->type != EVENT_ACTIVITY)
		return;
	if (activity->kind != ACTIVITY_SET &&
	    (activity->kind != ACTIVITY_COPY ||
	     (activity->direction != DIRECTION_D2D && activity->direction != DIRECTION_H2H)))
		gpu_works_event(state, event);
}

static void judge_copies(void *state, const struct finding_rule *rule,
                         const struct finding_verdicts *verdicts)
{
	const struct gpu_work_row *rows;
	size_t n;

	rows = gpu_works_rows(state, &n);
	for (size_t i = 0; i < n; i++) {
		struct finding *finding = judge_overlap(verdicts, rule, &rows[i], WORK_MEMORY,
		                                        WORK_KERNELS, LIMIT_COPY_OVERLAP);
		struct buf text = { 0 };

		if (!finding)
			continue;
		finding->count = rows[i].copies;
		set_example(finding, &rows[i].copy);
		buf_printf(&text, "%llu copies from or to GPU %u ran for ",
		           (unsigned long long)finding->count, rows[i].device);
		say_overlap(&text, &rows[i], WORK_MEMORY, WORK_KERNELS);
		buf_puts(&text, "a kernel ran as well; kernels alone ran for ");
		buf_duration(&text, rows[i].union_ns[WORK_ALL] - rows[i].union_ns[WORK_MEMORY]);
		finding_say(finding, &text);
		finding->estimate = "at best, if everything that can run at the same time does; "
				    "work that depends on other work cannot";
		finding->suggestion = "copy the next piece on a stream of its own, asynchronously "
				      "and from pinned memory, while kernels work on this one";
	}
}

const struct finding_rule rule_copy_overlap = {
	.name = "copy_overlap",
	.title = "copies that run while no kernel does",
	.needs = NEEDS_GPU,
	.create = make_works,
	.event = copies_event,
	.judge = judge_copies,
	.free = free_works,
};

/* ---- communication and computing ----------------------------------------------------------- */

static void judge_communication(void *state, const struct finding_rule *rule,
                                const struct finding_verdicts *verdicts)
{
	const struct gpu_work_row *rows;
	size_t n;

	rows = gpu_works_rows(state, &n);
	for (size_t i = 0; i < n; i++) {
		struct finding *finding =
			judge_overlap(verdicts, rule, &rows[i], WORK_COMMUNICATION, WORK_COMPUTE,
		                      LIMIT_COMMUNICATION_OVERLAP);
		struct buf text = { 0 };

		if (!finding)
			continue;
		finding->count = rows[i].communications;
		set_example(finding, &rows[i].communication);
		finding_count(&text, finding->count, "kernel");
		buf_printf(&text, " of NCCL ran on GPU %u for ", rows[i].device);
		say_overlap(&text, &rows[i], WORK_COMMUNICATION, WORK_COMPUTE);
		buf_puts(&text, "another kernel ran as well");
		finding_say(finding, &text);
		finding->estimate = "at best, if all communication that computing can hide is "
				    "hidden; the time of NCCL's kernels includes waiting for other "
				    "ranks";
		finding->suggestion = "communicate on a stream of its own as soon as a part is "
				      "ready (smaller buckets, asynchronous collectives)";
	}
}

const struct finding_rule rule_communication = {
	.name = "communication",
	.title = "communication that no computing hides",
	.needs = NEEDS_GPU,
	.create = make_works,
	.event = works_event,
	.judge = judge_communication,
	.free = free_works,
};

/* ---- windows of low use -------------------------------------------------------------------- */

static void *make_windows(void)
{
	return gpu_windows_new();
}

static void free_windows(void *state)
{
	consumer_free(state);
}

static void windows_event(void *state, const struct event *event)
{
	struct consumer *windows = state;

	consumers_event(&windows, 1, event, NULL);
}

/*
 * In a program's start, and in its pauses, windows are empty: they say nothing of what it does, and
 * do not count, unless hardly any others are there.
 */
struct low_use {
	double window_ns;
	double idle_ns, empty_ns; /* in windows that count; in empty ones */
	size_t windows, empty;    /* below the limit that count; empty ones */
	size_t worst, typical;    /* of those that count, with the least and the middle use */
	bool empty_count;
};

static int by_use(const void *left, const void *right, void *used)
{
	double a = ((const double *)used)[*(const size_t *)left];
	double b = ((const double *)used)[*(const size_t *)right];

	return (a > b) - (a < b);
}

static bool is_low(const struct gpu_windows_row *row, size_t i)
{
	return row->measured[i] >= GPU_WINDOW_MEASURED && row->used[i] < LIMIT_USE;
}

static bool is_empty(const struct gpu_windows_row *row, size_t i)
{
	return row->measured[i] >= GPU_WINDOW_MEASURED && row->used[i] <= LIMIT_NO_USE;
}

static bool hardly_any_work(const struct gpu_windows_row *row)
{
	size_t measured = 0, empty = 0;

	for (size_t i = 0; i < GPU_WINDOWS; i++) {
		measured += row->measured[i] >= GPU_WINDOW_MEASURED;
		empty += is_empty(row, i);
	}
	return (double)(measured - empty) < LIMIT_WINDOWS_WITH_WORK * (double)measured;
}

static struct low_use low_use_of(const struct gpu_windows_row *row)
{
	struct low_use low = { .window_ns = (double)(row->end_ns - row->begin_ns) / GPU_WINDOWS,
		               .empty_count = hardly_any_work(row) };
	double used[GPU_WINDOWS];
	size_t order[GPU_WINDOWS];

	for (size_t i = 0; i < GPU_WINDOWS; i++) {
		double idle_ns = (1 - row->used[i]) * row->measured[i] * low.window_ns;

		used[i] = row->used[i];
		if (is_empty(row, i)) {
			low.empty++;
			low.empty_ns += idle_ns;
		}
		if (is_low(row, i) && (low.empty_count || !is_empty(row, i))) {
			order[low.windows++] = i;
			low.idle_ns += idle_ns;
		}
	}
	if (!low.windows)
		return low;
	qsort_r(order, low.windows, sizeof(*order), by_use, used);
	low.worst = order[0];
	low.typical = order[low.windows / 2];
	return low;
}

static void say_low_use(struct finding *finding, const struct gpu_windows_row *row,
                        const struct low_use *low)
{
	struct buf text = { 0 };

	buf_printf(&text, "GPU %u was in use less than 50 %% of the time in %zu of %d windows of ",
	           row->device, low->windows, GPU_WINDOWS);
	buf_duration(&text, number_u64(low->window_ns));
	buf_printf(&text,
	           " from its first work to its last; in the worst %.1f %%; in the example, which "
	           "is the middle one, %.1f %%",
	           100 * row->used[low->worst], 100 * row->used[low->typical]);
	if (low->empty) {
		buf_printf(&text, "; next to nothing ran in %zu %s (", low->empty,
		           low->empty_count ? "of them" : "more, which do not count");
		buf_duration(&text, number_rounded(low->empty_ns));
		buf_puts(&text, ")");
	}
	finding_say(finding, &text);
}

static void add_low_use(struct finding *finding, const struct gpu_windows_row *row,
                        const struct low_use *low)
{
	finding->device = row->device;
	finding->of_device = true;
	finding->count = low->windows;
	finding->lost_ns = number_rounded(low->idle_ns);
	finding->lost_known = finding->has_example = true;
	finding->example.begin_ns =
		row->begin_ns + number_u64(low->window_ns * (double)low->typical);
	finding->example.duration_ns = number_u64(low->window_ns);
	say_low_use(finding, row, low);
	finding->estimate = "idle time in these windows; other findings can be its cause, so it "
			    "does not add up with them";
	finding->suggestion = "'cuscope report FILE gaps' says what each gap waited for";
}

static void judge_windows(void *state, const struct finding_rule *rule,
                          const struct finding_verdicts *verdicts)
{
	const struct gpu_windows_row *rows;
	size_t n;

	rows = gpu_windows_rows(state, &n);
	for (size_t i = 0; i < n; i++) {
		const struct finding_process *process =
			finding_process(verdicts, rows[i].process->id);
		struct low_use low = low_use_of(&rows[i]);

		if (process && finding_is_worth(process, number_u64(low.idle_ns)))
			add_low_use(findings_add(verdicts, rule, process), &rows[i], &low);
	}
}

const struct finding_rule rule_low_use = {
	.name = "low_use",
	.title = "windows in which the GPU is mostly idle",
	.needs = NEEDS_GPU,
	.create = make_windows,
	.event = windows_event,
	.judge = judge_windows,
	.free = free_windows,
};
