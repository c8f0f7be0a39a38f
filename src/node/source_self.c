// SPDX-License-Identifier: MIT
/* What the agent is, takes and has lost. */
#include "node/sources.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/own_memory.h"
#include "base/xalloc.h"
#include "node/http.h"
#include "node/metrics.h"

/* ---- source machine ------------------------------------------------------------------------ */

/* What all processes of the machine did together. */

static const struct metric_family machine_live = { "cuscope_live_bytes", METRIC_GAUGE, "bytes",
	                                           "Memory that processes hold, by kind" };
static const struct metric_family machine_peak = {
	"cuscope_peak_bytes", METRIC_GAUGE, "bytes",
	"The most memory that processes held together at any snapshot, by kind"
};
static const struct metric_family machine_running = {
	"cuscope_processes", METRIC_GAUGE, NULL,
	"Processes that have called CUDA since the agent began, and run"
};
static const struct metric_family machine_seen = { "cuscope_processes_seen", METRIC_COUNTER, NULL,
	                                           "Processes that have called CUDA" };

static void add_kinds(const struct metric_family *family, const uint64_t *kinds,
                      struct metrics *metrics)
{
	metrics_family(metrics, family);
	for (size_t kind = MEMORY_DEVICE; kind < MEMORY_COUNT; kind++)
		metrics_add_of(metrics, "kind", count_kind(kind), kinds[kind], 0);
}

static void machine_fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	for (size_t i = 0; i < n_count_families; i++) {
		const struct count_family *family = &count_families[i];

		if (!family->machine.name)
			continue;
		metrics_family(metrics, &family->machine);
		metrics_add_counts(metrics, family, counts_totals(view->counts), 0, true,
		                   view->started_ns);
	}
	add_kinds(&machine_live, counts_memory(view->counts)->live, metrics);
	add_kinds(&machine_peak, counts_peaks(view->counts), metrics);
	metrics_one(metrics, &machine_running, counts_running(view->counts), 0, 0);
	metrics_one(metrics, &machine_seen, counts_seen(view->counts), 0, view->started_ns);
}

const struct node_source source_machine = { .name = "machine", .fill = machine_fill };

/* ---- source self --------------------------------------------------------------------------- */

#define BPF_LOOKS 10 /* snapshots between two looks at what the programs' maps take */

struct source {
	uint64_t bpf_bytes, look_at;
};

static const struct metric_family build = { "cuscope_build", METRIC_INFO, NULL,
	                                    "The version of cuscope" };
static const struct metric_family start = { "cuscope_agent_start_time_seconds", METRIC_GAUGE,
	                                    "seconds", "When the agent began, since 1970" };
static const struct metric_family cpu = { "cuscope_agent_cpu_seconds", METRIC_COUNTER, "seconds",
	                                  "Processor time of the agent" };
static const struct metric_family resident = { "cuscope_agent_resident_bytes", METRIC_GAUGE,
	                                       "bytes", "Memory of the agent" };
static const struct metric_family bpf = { "cuscope_agent_bpf_bytes", METRIC_GAUGE, "bytes",
	                                  "Memory of the agent's maps in the kernel" };
static const struct metric_family files = { "cuscope_agent_open_files", METRIC_GAUGE, NULL,
	                                    "Files that the agent has open" };
static const struct metric_family snapshots = { "cuscope_agent_snapshots", METRIC_COUNTER, NULL,
	                                        "Snapshots made" };
static const struct metric_family cut = {
	"cuscope_agent_turns_cut", METRIC_COUNTER, NULL,
	"Turns of the capture that left work to the next, since they had taken 100 ms"
};
static const struct metric_family requests = { "cuscope_agent_requests", METRIC_COUNTER, NULL,
	                                       "Requests answered, by outcome" };
static const struct metric_family evicted = {
	"cuscope_agent_connections_ended", METRIC_COUNTER, NULL,
	"Connections that were ended because they were too many, or too old"
};
static const struct metric_family lost = { "cuscope_lost_events", METRIC_COUNTER, NULL,
	                                   "What was not counted, by reason" };

/* By enum lost_reason; NULL: the sums have no such loss. */
static const char *const reasons[] = {
	[LOST_RING_FULL] = "ring_full",
	[LOST_THREADS_FULL] = "threads_full",
	[LOST_NO_ENTRY] = "no_entry",
	[LOST_TOO_DEEP] = "too_deep",
	[LOST_UNREADABLE] = "unreadable",
	[LOST_LATE] = "late",
	[LOST_RECORDS] = "records",
	[LOST_TARGETS_FULL] = "targets_full",
	[LOST_TEXTS] = "texts",
	[LOST_NOT_RUN] = "not_run",
	[LOST_SUMS] = "sums",
	[LOST_NO_ANSWER] = "no_answer",
	[LOST_OVER_BUDGET] = "over_budget",
	[LOST_MOMENTS] = "moments",
	[LOST_QUEUE] = "calls_over_budget",
};

static void *begin(const struct node_settings *settings)
{
	return xcalloc(1, sizeof(struct source));
}

/* ---- own cost ------------------------------------------------------------------------------ */

static uint64_t cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* Since 5.11 a map says so of itself, in memory or not. */
static uint64_t bpf_bytes_of(const char *number)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	bool map = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%.16s", number);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		map |= !strncmp(line, "map_type:", 9);
		sscanf(line, "memlock: %llu", &bytes);
	}
	if (file)
		fclose(file);
	return map ? bytes : 0;
}

static size_t look_at_files(bool maps, uint64_t *bpf_bytes)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	uint64_t bytes = 0;
	size_t n = 0;

	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		n++;
		bytes += maps ? bpf_bytes_of(entry->d_name) : 0;
	}
	if (folder)
		closedir(folder);
	if (maps)
		*bpf_bytes = bytes;
	return n ? n - 1 : 0; /* that of the folder */
}

static void add_cost(struct source *source, const struct node_view *view, struct metrics *metrics)
{
	bool look = view->snapshots >= source->look_at;
	size_t n = look_at_files(look, &source->bpf_bytes);

	if (look)
		source->look_at = view->snapshots + BPF_LOOKS;
	metrics_one(metrics, &start, view->started_ns / 1000000, 3, 0);
	metrics_one(metrics, &cpu, cpu_ns(), 9, view->started_ns);
	metrics_one(metrics, &resident, own_resident_bytes(), 0, 0);
	metrics_one(metrics, &bpf, source->bpf_bytes + view->page->code_bytes, 0, 0);
	metrics_one(metrics, &files, n, 0, 0);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void add_server(const struct node_view *view, struct metrics *metrics)
{
	const struct http_figures *http = view->http;

	metrics_family(metrics, &requests);
	metrics_add_of(metrics, "outcome", "answered", http->answered, view->started_ns);
	metrics_add(metrics, metrics_labels(metrics, 0, "outcome", "refused", NULL), http->refused,
	            0, view->started_ns);
	metrics_one(metrics, &evicted, http->evicted, 0, view->started_ns);
}

static const struct metric_family unseen = {
	"cuscope_unseen_processes", METRIC_GAUGE, NULL,
	"Processes so far that ended before a CUDA library of theirs could be looked into"
};

static const struct metric_family stacks = {
	"cuscope_agent_stacks_lost", METRIC_COUNTER, NULL,
	"Stacks of allocations that are not known, so that what leaks there has no place: there "
	"was no room for them, or they came too fast to be walked"
};

static void add_stacks(const struct node_view *view, struct metrics *metrics)
{
	const struct watch_memory *memory = view->page->memory;

	metrics_family(metrics, &stacks);
	metrics_add_of(metrics, "why", "no_room", memory ? memory->no_stack : 0, view->started_ns);
	metrics_add_of(metrics, "why", "too_fast", memory ? memory->too_fast : 0, view->started_ns);
}

static void add_lost(const struct node_view *view, struct metrics *metrics)
{
	metrics_one(metrics, &unseen, view->page->unseen, 0, 0);
	metrics_family(metrics, &lost);
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (reasons[i])
			metrics_add_of(metrics, "reason", reasons[i], view->page->lost[i],
			               view->started_ns);
	}
}

static const struct metric_family hooked = {
	"cuscope_agent_hooked_files", METRIC_GAUGE, NULL,
	"CUDA libraries and programs that are hooked, one for each file"
};
static const struct metric_family let_go = {
	"cuscope_agent_unhooked_files", METRIC_COUNTER, NULL,
	"Hooked files that no process had mapped any more, and that were let go"
};
static const struct metric_family refused = {
	"cuscope_agent_refused_files", METRIC_COUNTER, NULL,
	"Times that a CUDA library or program was not hooked, since no hooks were left for it"
};

static const struct metric_family bypassed = {
	"cuscope_agent_bypassed_files", METRIC_COUNTER, NULL,
	"Times that jumps of others were seen before probes of a CUDA library or program in a "
	"process, "
	"as of another cuscope that records inside: calls of those functions are missing"
};

static void add_files(const struct node_view *view, struct metrics *metrics)
{
	const struct watch_page *page = view->page;

	metrics_one(metrics, &hooked, page->hooked_files, 0, 0);
	metrics_one(metrics, &let_go, page->let_go_files, 0, view->started_ns);
	metrics_one(metrics, &refused, page->refused_files, 0, view->started_ns);
	metrics_one(metrics, &bypassed, page->bypassed_files, 0, view->started_ns);
}

static void fill(void *state, const struct node_view *view, struct metrics *metrics)
{
	metrics_family(metrics, &build);
	metrics_add_of(metrics, "version", CUSCOPE_VERSION, 1, 0);
	add_cost(state, view, metrics);
	metrics_one(metrics, &snapshots, view->snapshots, 0, view->started_ns);
	metrics_one(metrics, &cut, view->page->turns_cut, 0, view->started_ns);
	add_server(view, metrics);
	add_lost(view, metrics);
	add_stacks(view, metrics);
	add_files(view, metrics);
}

const struct node_source source_self = {
	.name = "self", .begin = begin, .fill = fill, .end = free
};
