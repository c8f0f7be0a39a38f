// SPDX-License-Identifier: MIT
#include "watch/page_plot.h"

#define FAILURES_MAX 1000 /* of one process on one page */

/* What failed most often in a process: pages do not tell which calls failed since the last one. */
static const struct watch_failure *usual_failure(const struct watch_memory *memory,
                                                 const struct process *process)
{
	for (size_t i = 0; i < memory->n_failures; i++)
		if (memory->failures[i].process == process)
			return &memory->failures[i];
	return NULL;
}

static void plot_failures(struct memory_plot *plot, const struct watch_page *page,
                          const struct held_process *process)
{
	const struct process *who = process->memory->process;
	const struct watch_failure *failure = usual_failure(page->memory, who);
	enum api_memory kind = MEMORY_DEVICE;
	uint64_t bytes = 0;

	if (failure && failure->function && failure->function->api)
		kind = api_memory(failure->function->api);
	if (failure && failure->count)
		bytes = failure->bytes / failure->count;
	for (uint64_t i = 0; i < process->failed_since && i < FAILURES_MAX; i++)
		memory_plot_failure(plot, page->time_ns, who, kind, bytes);
}

void page_plot(struct memory_plot *plot, const struct watch_page *page, const struct places *places)
{
	const struct held_process *processes;
	size_t n = places_processes(places, &processes);

	for (size_t i = 0; i < n; i++) {
		const struct held_process *process = &processes[i];

		for (size_t k = 0; k < process->n_totals; k++) {
			const struct watch_memory_totals *totals = &process->totals[k];

			if (totals->kind != MEMORY_VMM_VA)
				memory_plot_sample(plot, page->time_ns, totals->process,
				                   totals->kind, totals->live.bytes);
		}
		plot_failures(plot, page, process);
	}
}
