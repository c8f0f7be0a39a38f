// SPDX-License-Identifier: MIT
/* Ranks of NCCL's communicators: who is late, and who waits. */
#include "node/sources.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/at_end.h"
#include "base/xalloc.h"
#include "node/recorder.h"

static const struct metric_family up = { "cuscope_ranks_up", METRIC_GAUGE, NULL,
	                                 "1 while NCCL's calls are recorded" };
static const struct metric_family cpu = {
	"cuscope_ranks_cpu_seconds", METRIC_COUNTER, "seconds",
	"Processor time of the process that records them: the flight recorder's, where there is one"
};
static const struct metric_family collectives = {
	"cuscope_rank_collectives", METRIC_COUNTER, NULL,
	"Collectives of a rank that other ranks of its communicator on this machine called as well"
};
static const struct metric_family last = { "cuscope_rank_last", METRIC_COUNTER, NULL,
	                                   "Those that it called last of the ranks here" };
static const struct metric_family late = {
	"cuscope_rank_late_seconds", METRIC_COUNTER, "seconds",
	"How long at most the other ranks here waited for its calls alone"
};
static const struct metric_family waited = {
	"cuscope_rank_waited_seconds", METRIC_COUNTER, "seconds",
	"How long at most it waited for calls of other ranks here"
};
static const struct metric_family missing = {
	"cuscope_rank_missing_seconds", METRIC_GAUGE, "seconds",
	"For how long now it has not called what all other ranks here have; 0: it is not so"
};
static const struct metric_family unmatched = {
	"cuscope_rank_calls_unmatched", METRIC_COUNTER, NULL,
	"Calls of collectives that are in no other figure, by what is not known of them"
};
static const struct metric_family left_out = {
	"cuscope_ranks_left_out", METRIC_COUNTER, NULL,
	"Times that a rank was to be told of and had no series, for want of room"
};

static metric_labels labels_of(const struct recorder_rank *rank, struct metrics *metrics)
{
	char pid[16], comm[16], number[16] = "";

	snprintf(pid, sizeof(pid), "%u", rank->pid);
	snprintf(comm, sizeof(comm), "%08x", rank->comm);
	if (rank->number >= 0)
		snprintf(number, sizeof(number), "%d", rank->number);
	return metrics_labels(metrics, 0, "pid", pid, "process", rank->process, "communicator",
	                      comm, "rank", number, NULL);
}

static void add_ranks(struct recorder *recorder, struct metrics *metrics)
{
	static const struct {
		const struct metric_family *family;
		size_t offset;
		unsigned decimals;
	} values[] = { { &collectives, offsetof(struct recorder_rank, n), 0 },
		       { &last, offsetof(struct recorder_rank, n_last), 0 },
		       { &late, offsetof(struct recorder_rank, late_ns), 9 },
		       { &waited, offsetof(struct recorder_rank, waited_ns), 9 },
		       { &missing, offsetof(struct recorder_rank, missing_ns), 9 } };
	AT_END(at_end_free)
	struct recorder_rank_series *ranks = xcalloc(RECORDER_RANKS_MOST, sizeof(*ranks));
	AT_END(at_end_free) metric_labels *labels = xcalloc(RECORDER_RANKS_MOST, sizeof(*labels));
	uint64_t without;
	size_t n = recorder_ranks(recorder, ranks, &without);

	for (size_t i = 0; i < n; i++)
		labels[i] = labels_of(&ranks[i].rank, metrics);
	for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
		metrics_family(metrics, values[k].family);
		for (size_t i = 0; i < n; i++)
			metrics_add(metrics, labels[i],
			            *(const uint64_t *)((const char *)&ranks[i].rank +
			                                values[k].offset),
			            values[k].decimals,
			            values[k].family->type == METRIC_COUNTER ? ranks[i].created_ns
			                                                     : 0);
	}
	metrics_one(metrics, &left_out, without, 0, 0);
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	struct recorder_figures figures;

	if (!view->recorder || !view->settings->recorder.ranks)
		return;
	recorder_figures(view->recorder, &figures);
	metrics_one(metrics, &up, figures.up, 0, 0);
	metrics_one(metrics, &cpu, figures.state.cpu_ns, 9, view->started_ns);
	add_ranks(view->recorder, metrics);
	metrics_family(metrics, &unmatched);
	for (int i = 0; i < RECORDER_UNMATCHED_COUNT; i++)
		metrics_add_of(metrics, "why", recorder_unmatched_name((enum recorder_unmatched)i),
		               figures.state.unmatched[i], view->started_ns);
}

const struct node_source source_ranks = { .name = "ranks", .fill = fill };
