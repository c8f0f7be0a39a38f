// SPDX-License-Identifier: MIT
/* What all processes of the machine did together. */
#include "node/sources.h"

#include "node/metrics.h"

static const struct metric_family live = { "cuscope_live_bytes", METRIC_GAUGE, "bytes",
	                                   "Memory that processes hold, by kind" };
static const struct metric_family peak = {
	"cuscope_peak_bytes", METRIC_GAUGE, "bytes",
	"The most memory that processes held together at any snapshot, by kind"
};
static const struct metric_family running = {
	"cuscope_processes", METRIC_GAUGE, NULL,
	"Processes that have called CUDA since the agent began, and run"
};
static const struct metric_family seen = { "cuscope_processes_seen", METRIC_COUNTER, NULL,
	                                   "Processes that have called CUDA" };

static void add_counts(const struct node_view *view, const struct count_family *family,
                       struct metrics *metrics)
{
	const uint64_t *totals = counts_totals(view->counts) + family->first;

	metrics_family(metrics, &family->machine);
	for (size_t i = 0; i < family->n; i++) {
		metric_labels labels = 0;
		const char *word = family->word ? family->word(i) : "";

		if (!word || (family->word && !i && !totals[i]))
			continue; /* of no kind, or of no direction that is known: if there is */
		if (family->word)
			labels = metrics_labels(metrics, 0, family->label, word, NULL);
		metrics_add(metrics, labels, totals[i], family->decimals, view->started_ns);
	}
}

static void add_kinds(const struct metric_family *family, const uint64_t *kinds,
                      struct metrics *metrics)
{
	metrics_family(metrics, family);
	for (size_t kind = MEMORY_DEVICE; kind < MEMORY_COUNT; kind++)
		metrics_add(metrics, metrics_labels(metrics, 0, "kind", count_kind(kind), NULL),
		            kinds[kind], 0, 0);
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	for (size_t i = 0; i < n_count_families; i++) {
		if (count_families[i].machine.name)
			add_counts(view, &count_families[i], metrics);
	}
	add_kinds(&live, counts_memory(view->counts)->live, metrics);
	add_kinds(&peak, counts_peaks(view->counts), metrics);
	metrics_family(metrics, &running);
	metrics_add(metrics, 0, counts_running(view->counts), 0, 0);
	metrics_family(metrics, &seen);
	metrics_add(metrics, 0, counts_seen(view->counts), 0, view->started_ns);
}

const struct node_source source_machine = { .name = "machine", .fill = fill };
