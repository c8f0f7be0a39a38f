// SPDX-License-Identifier: MIT
/* Series of processes: labels pid and process, which cuscope_process_info joins with all else. */
#include "node/sources.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "node/metrics.h"
#include "node/source_identities.h"

static const struct metric_family info = {
	"cuscope_process", METRIC_INFO, NULL,
	"Who a process is; join it by pid and process with the metrics of processes"
};
static const struct metric_family live = { "cuscope_process_live_bytes", METRIC_GAUGE, "bytes",
	                                   "Memory that a process holds, by kind" };
static const struct metric_family peak = { "cuscope_process_peak_bytes", METRIC_GAUGE, "bytes",
	                                   "The most memory that a process ever held" };

static const struct metric_family over_share = {
	"cuscope_agent_processes_over_share", METRIC_GAUGE, NULL,
	"Processes without series of their own because their user has a share of these"
};

struct series {
	const struct counted_process *process;
	metric_labels labels;
};

static void add_memory(const struct series *series, size_t n, struct metrics *metrics)
{
	metrics_family(metrics, &live);
	for (size_t i = 0; i < n; i++) {
		const uint64_t *kinds = series[i].process->memory.live;

		for (size_t kind = MEMORY_DEVICE; kind < MEMORY_COUNT; kind++) {
			if (!kinds[kind])
				continue;
			metrics_add(metrics,
			            metrics_labels(metrics, series[i].labels, "kind",
			                           count_kind(kind), NULL),
			            kinds[kind], 0, 0);
		}
	}
	metrics_family(metrics, &peak);
	for (size_t i = 0; i < n; i++) {
		if (series[i].process->memory.peak)
			metrics_add(metrics, series[i].labels, series[i].process->memory.peak, 0,
			            0);
	}
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	const struct counted_process *const *shown;
	size_t n = counts_shown(view->counts, &shown);
	struct series *series = xcalloc(n + 1, sizeof(*series));
	char pid[16];

	for (size_t i = 0; i < n; i++) {
		snprintf(pid, sizeof(pid), "%u", shown[i]->process->pid);
		series[i].process = shown[i];
		series[i].labels = metrics_labels(metrics, 0, "pid", pid, "process",
		                                  shown[i]->process->comm, NULL);
	}
	series[n].process = counts_other(view->counts);
	series[n].labels = metrics_labels(metrics, 0, "process", "other", NULL);
	source_identities_look(state, view);
	metrics_family(metrics, &info);
	for (size_t i = 0; i < n; i++)
		metrics_add(metrics,
		            source_identities_labels(state, shown[i], series[i].labels, metrics), 1,
		            0, 0);
	for (size_t i = 0; i < n_count_families; i++) { /* those of 0 would only cost */
		metrics_family(metrics, &count_families[i].process);
		for (size_t j = 0; j <= n; j++)
			metrics_add_counts(metrics, &count_families[i], series[j].process->counts,
			                   series[j].labels, false, series[j].process->created_ns);
	}
	add_memory(series, n + 1, metrics);
	free(series);
	source_identities_count(state, metrics);
	metrics_one(metrics, &over_share, counts_over_share(view->counts), 0, 0);
}

const struct node_source source_processes = { .name = "processes",
	                                      .begin = source_identities_begin,
	                                      .fill = fill,
	                                      .end = source_identities_end };
