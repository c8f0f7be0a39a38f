// SPDX-License-Identifier: MIT
/*
 * The metrics of gpuprobe-daemon under its names, for who has dashboards of it: all are gauges, and
 * `pid` is the process's, where the daemon's was a thread's.
 */
#include "node/sources.h"

#include <stdio.h>

#include "base/quota.h"
#include "cuda/error.h"

#define ROWS 1000 /* of each, by what is most */

static const struct metric_family leaks = { "cuda_memory_leaks", METRIC_GAUGE, NULL,
	                                    "Cuda memory leak statistics" };
static const struct metric_family launches = { "cuda_kernel_launches", METRIC_GAUGE, NULL,
	                                       "Cuda kernel launch statistics" };
static const struct metric_family errors = {
	"cuda_error_histogram", METRIC_GAUGE, NULL,
	"CUDA errors histogram keyed on process, error type and erroneous call"
};

/* Rows of a metric: at first those in the share of their user, then others. */
struct rows {
	const struct node_view *view;
	struct metrics *metrics;
	struct quota shares;
	size_t n;
	bool in_share;
};

static bool takes(struct rows *rows, const struct process *process)
{
	if (rows->n == ROWS ||
	    !quota_take(&rows->shares, counts_person(rows->view->counts, process), 0, 1) !=
	            rows->in_share)
		return false;
	rows->n++;
	return true;
}

struct number {
	char text[24];
};

static struct number number(unsigned long long value)
{
	struct number number;

	snprintf(number.text, sizeof(number.text), "%llu", value);
	return number;
}

static void add_leaks(struct rows *rows)
{
	const struct watch_memory *memory = rows->view->page->memory;

	for (size_t i = 0; i < memory->n_allocations; i++) {
		const struct watch_allocation *a = &memory->allocations[i];

		if (!takes(rows, a->process))
			continue;
		metrics_add(rows->metrics,
		            metrics_labels(rows->metrics, 0, "pid", number(a->process->pid).text,
		                           "offset", number(a->address).text, NULL),
		            a->bytes, 0, 0);
	}
}

/* Handles of several kernels of a name may be there: rows of one kernel are one already. */
static void add_launches(struct rows *rows)
{
	const struct watch_launches *all = rows->view->page->launches;

	for (size_t i = 0; i < all->n_kernels; i++) {
		const struct watch_kernel *k = &all->kernels[i];

		if (!k->kernel || k->ended || !k->process->pid || !takes(rows, k->process))
			continue;
		metrics_add(
			rows->metrics,
			metrics_labels(rows->metrics, 0, "pid", number(k->process->pid).text,
		                       "kernel_offset", number(k->handle).text, "kernel_symbol",
		                       k->kernel->mangled ? k->kernel->mangled : "unknown kernel",
		                       NULL),
			k->count, 0, 0);
	}
}

static void add_errors(struct rows *rows)
{
	const struct watch_memory *memory = rows->view->page->memory;

	for (size_t i = 0; i < memory->n_failures; i++) {
		const struct watch_failure *f = &memory->failures[i];

		if (!f->process->pid || !f->function || !takes(rows, f->process))
			continue;
		metrics_add(rows->metrics,
		            metrics_labels(rows->metrics, 0, "pid", number(f->process->pid).text,
		                           "call_type", f->function->name, "return_code",
		                           number((unsigned long long)f->result).text, NULL),
		            f->count, 0, 0);
	}
}

static void add_all(const struct node_view *view, struct metrics *metrics,
                    const struct metric_family *family, void (*add)(struct rows *rows))
{
	struct rows rows = {
		.view = view, .metrics = metrics, .shares = quota_of_places(ROWS), .in_share = true
	};

	metrics_family(metrics, family);
	add(&rows);
	quota_free(&rows.shares);
	rows.in_share = false;
	if (rows.n < ROWS)
		add(&rows);
	quota_free(&rows.shares);
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	if (view->settings->names != NODE_NAMES_GPUPROBE)
		return;
	add_all(view, metrics, &leaks, add_leaks);
	add_all(view, metrics, &launches, add_launches);
	add_all(view, metrics, &errors, add_errors);
}

const struct node_source source_gpuprobe = { .name = "gpuprobe", .fill = fill };
