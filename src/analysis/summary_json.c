// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "analysis/missed.h"
#include "analysis/tally.h"
#include "base/json.h"
#include "base/number.h"
#include "cuda/error.h"

#define FORMAT_VERSION 1

struct writer {
	struct json json;
	const struct tally *tally;
	const struct run_info *run;
};

static uint64_t scaled(const struct writer *w, uint64_t n)
{
	return run_scaled(w->run, n);
}

static void add_u64(struct writer *w, const char *key, uint64_t n)
{
	json_u64(&w->json, key, scaled(w, n));
}

/* Not known where only a part of the calls was seen. */
static void add_exact(struct writer *w, const char *key, uint64_t n)
{
	if (w->run->estimate_scale > 1)
		json_null(&w->json, key);
	else
		json_u64(&w->json, key, n);
}

static void add_pair(struct writer *w, const char *key, const struct memory_count *n)
{
	json_open(&w->json, key, '{');
	add_u64(w, "count", n->count);
	add_u64(w, "bytes", n->bytes);
	json_close(&w->json, '}');
}

/* Bytes of calls none of which says them are not known, which is not 0. */
static void add_transfer_members(struct writer *w, const struct transfer_count *n)
{
	add_u64(w, "count", n->count);
	if (n->count && n->unsized == n->count)
		json_null(&w->json, "bytes");
	else
		add_u64(w, "bytes", n->bytes);
	add_u64(w, "unknown_size", n->unsized);
}

static void add_transfer(struct writer *w, const char *key, const struct transfer_count *n)
{
	json_open(&w->json, key, '{');
	add_transfer_members(w, n);
	json_close(&w->json, '}');
}

static void add_run(struct writer *w)
{
	const struct run_info *run = w->run;

	json_u64(&w->json, "format", FORMAT_VERSION);
	json_fixed(&w->json, "duration_seconds", run->end_ns - run->begin_ns, 9);
	json_s64(&w->json, "begin_realtime_ns", (int64_t)run->begin_ns + run->realtime_offset_ns);
	json_bool(&w->json, "returns", run->returns);
	json_bool(&w->json, "estimated", run->estimate_scale > 1);
	json_u64(&w->json, "processes", w->tally->processes);
	json_u64(&w->json, "holds", run->holds);
	json_u64(&w->json, "longest_hold_ns", run->longest_hold_ns);
	json_fixed(&w->json, "overhead_percent", (uint64_t)(run->overhead_percent * 100 + 0.5), 2);
	json_fixed(&w->json, "overhead_most_percent",
	           (uint64_t)(run->overhead_most_percent * 100 + 0.5), 2);
}

static void add_calls(struct writer *w)
{
	const struct tally *t = w->tally;

	json_open(&w->json, "calls", '{');
	add_u64(w, "total", t->calls);
	add_u64(w, "failed", t->failed);
	add_u64(w, "unfinished", t->unfinished);
	add_u64(w, "entry_only", t->entry_only);
	add_u64(w, "nested", t->nested);
	json_close(&w->json, '}');
	json_open(&w->json, "launches", '{');
	add_u64(w, "kernels", t->launches);
	add_u64(w, "graphs", t->graph_launches);
	add_u64(w, "host_functions", t->host_launches);
	add_u64(w, "captured_kernels", t->captured_launches);
	add_u64(w, "captured_other", t->captured_other);
	json_close(&w->json, '}');
}

static void add_memory_members(struct writer *w, const struct memory_totals *m)
{
	add_pair(w, "allocated", &m->allocated);
	add_pair(w, "freed", &m->freed);
	add_exact(w, "peak_bytes", m->peak_bytes);
	add_exact(w, "live_count", m->live.count);
	add_exact(w, "live_bytes", m->live.bytes);
	add_pair(w, "released_by_exit", &m->exit);
	add_pair(w, "released_with_context", &m->context);
	add_pair(w, "replaced", &m->replaced);
	add_pair(w, "untracked", &m->untracked);
}

static void add_memory(struct writer *w)
{
	const struct memory *memory = w->tally->memory;

	json_open(&w->json, "memory", '{');
	add_memory_members(w, memory_totals(memory, MEMORY_NONE));
	add_u64(w, "unknown_frees", memory_unknown_frees(memory));
	json_open(&w->json, "kinds", '{');
	for (int kind = MEMORY_NONE + 1; kind < MEMORY_COUNT; kind++) {
		if (!memory_totals(memory, kind)->allocated.count)
			continue;
		json_open(&w->json, api_memory_name(kind), '{');
		add_memory_members(w, memory_totals(memory, kind));
		json_close(&w->json, '}');
	}
	json_close(&w->json, '}');
	json_close(&w->json, '}');
}

static void add_transfers(struct writer *w)
{
	const struct tally *t = w->tally;

	json_open(&w->json, "transfers", '{');
	add_transfer_members(w, &t->all_copies);
	json_open(&w->json, "directions", '{');
	for (int d = DIRECTION_NONE; d < DIRECTION_COUNT; d++) {
		if (t->copies[d].count)
			add_transfer(w, d == DIRECTION_NONE ? "unknown" : api_direction_name(d),
			             &t->copies[d]);
	}
	json_close(&w->json, '}');
	json_close(&w->json, '}');
	add_transfer(w, "sets", &t->sets);
	json_open(&w->json, "syncs", '{');
	add_u64(w, "count", t->syncs);
	add_u64(w, "blocked_ns", t->sync_ns);
	json_close(&w->json, '}');
}

static void add_errors(struct writer *w)
{
	const struct error_tally **rows;
	size_t n;

	rows = tally_errors(w->tally, &n);
	json_open(&w->json, "errors", '[');
	for (size_t i = 0; i < n; i++) {
		const struct function *function = rows[i]->key.function->function;
		const char *name = cuda_error_name(function->layer, (int)rows[i]->key.code);

		json_open(&w->json, NULL, '{');
		json_string(&w->json, "function", function->name);
		json_s64(&w->json, "code", rows[i]->key.code);
		json_string(&w->json, "error", name ? name : "");
		add_u64(w, "count", rows[i]->count);
		json_close(&w->json, '}');
	}
	json_close(&w->json, ']');
	free(rows);
}

static void add_durations(struct writer *w, const struct sketch *durations)
{
	if (!durations->count)
		return;
	add_u64(w, "total_ns", durations->sum);
	json_u64(&w->json, "average_ns", number_rounded(sketch_average(durations)));
	json_u64(&w->json, "min_ns", durations->min);
	json_u64(&w->json, "p50_ns", sketch_percentile(durations, 0.50));
	json_u64(&w->json, "p95_ns", sketch_percentile(durations, 0.95));
	json_u64(&w->json, "p99_ns", sketch_percentile(durations, 0.99));
	json_u64(&w->json, "max_ns", durations->max);
}

static void add_functions(struct writer *w)
{
	const struct function_tally **rows;
	size_t n;

	json_fixed(&w->json, "percentile_error", (uint64_t)(SKETCH_ERROR * 1e6), 6);
	rows = tally_functions(w->tally, BY_CALLS, &n);
	json_open(&w->json, "functions", '[');
	for (size_t i = 0; i < n; i++) {
		const struct function *function = rows[i]->function;

		json_open(&w->json, NULL, '{');
		json_string(&w->json, "name", function->name);
		json_string(&w->json, "layer",
		            function->layer == LAYER_DRIVER ? "driver" : "runtime");
		json_string(&w->json, "class", api_class_name(function->cls));
		add_u64(w, "calls", rows[i]->calls);
		add_u64(w, "nested", rows[i]->nested);
		add_u64(w, "failed", rows[i]->failed);
		add_u64(w, "unfinished", rows[i]->unfinished);
		json_bool(&w->json, "partial", missed_partly(w->run, function));
		add_durations(w, &rows[i]->durations);
		json_close(&w->json, '}');
	}
	json_close(&w->json, ']');
	free(rows);
}

static void add_kernels(struct writer *w)
{
	const struct kernel_tally **rows;
	size_t n;

	rows = tally_kernels(w->tally, &n);
	json_open(&w->json, "kernels", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(&w->json, NULL, '{');
		json_string(&w->json, "name", rows[i]->name);
		json_bool(&w->json, "resolved", rows[i]->resolved);
		add_u64(w, "launches", rows[i]->launches);
		add_u64(w, "captured", rows[i]->captured);
		json_close(&w->json, '}');
	}
	json_close(&w->json, ']');
	free(rows);
}

static void add_missed(struct writer *w)
{
	struct memory_count unresolved = tally_unresolved(w->tally);

	json_open(&w->json, "missed", '{');
	missed_json(&w->json, w->run);
	json_u64(&w->json, "unresolved_kernels", unresolved.count);
	json_u64(&w->json, "unresolved_launches", unresolved.bytes);
	json_close(&w->json, '}');
}

void summary_json(const struct tally *tally, const struct run_info *run, struct buf *out)
{
	struct writer w = { .json = { .out = out, .lines = 2 }, .tally = tally, .run = run };

	json_open(&w.json, NULL, '{');
	add_run(&w);
	add_calls(&w);
	add_memory(&w);
	add_transfers(&w);
	add_errors(&w);
	add_functions(&w);
	add_kernels(&w);
	summary_gpu_json(tally, run, &w.json);
	add_missed(&w);
	json_close(&w.json, '}');
	buf_putc(out, '\n');
}
