// SPDX-License-Identifier: MIT
/* The maps of sums that the eBPF programs keep: a row here for each of them. */
#include "base/order.h"
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "probe/fold.h"

#define RESULTS_MAX 4096 /* rows; then those of merged processes are one for each function */
#define HOOKS_MAX   (2 * FOLD_HOOKS_ROOM) /* the same, of processes that have ended */

/* A map, and what becomes of its rows on a page. */
struct sum_kind {
	unsigned tools; /* enum watch_tool: any of them wants it */
	struct ledger_layout layout;
	size_t row_bytes; /* on a page; 0: watch_launches.c makes its rows */
	/* False: there is nothing to show. `row` is zeroed, and has its process. */
	bool (*fill)(struct watcher *watcher, const struct ledger_row *from, void *row);
	int (*order)(const void *left, const void *right); /* NULL: as they came */
	/* What of a key is not told apart any more, beside the process. */
	void (*merge)(const struct ledger *ledger, void *key);
};

/* What the rows of all pages begin with. */
struct sum_row {
	const struct process *process;
	bool ended;
};

static const struct function *function_of(struct watcher *watcher, uint32_t hook)
{
	return pipeline_function(watcher_options_of(watcher)->pipeline, (uint16_t)hook);
}

ORDER_BY(by_process, struct sum_row, UP(process->id));

/* ---- memory -------------------------------------------------------------------------------- */

static bool fill_memory(struct watcher *watcher, const struct ledger_row *from, void *row)
{
	const struct fold_process *now = (const struct fold_process *)from->now;
	struct watch_process_memory *memory = row;

	memory->peak_bytes = now->peak_bytes;
	memory->unknown_frees = now->unknown_frees;
	memory->failed = now->failed;
	return true;
}

static struct watch_count fold_to_watch(struct fold_count count)
{
	return (struct watch_count){ count.count, count.bytes };
}

static bool fill_totals(struct watcher *watcher, const struct ledger_row *from, void *row)
{
	const struct watch_totals *now = (const struct watch_totals *)from->now;
	struct watch_memory_totals *totals = row;

	totals->kind = ((const struct fold_process_key *)from->key)->memory;
	totals->allocated = fold_to_watch(now->map.allocated);
	totals->freed = fold_to_watch(now->map.freed);
	totals->replaced = fold_to_watch(now->map.replaced);
	totals->context = fold_to_watch(now->map.context);
	totals->untracked = fold_to_watch(now->map.untracked);
	totals->exit = fold_to_watch(now->exit);
	return true;
}

int watch_order_of_totals(const void *left, const void *right)
{
	const struct watch_memory_totals *a = left, *b = right;
	int order = by_process(a, b);

	return order ? order : UP(kind);
}

static bool fill_failure(struct watcher *watcher, const struct ledger_row *from, void *row)
{
	const struct fold_failure_key *key = from->key;
	struct watch_failure *failure = row;

	failure->function = function_of(watcher, key->hook);
	failure->result = key->result;
	failure->count = from->now[0];
	failure->bytes = from->now[1];
	return true;
}

ORDER_BY(most_failed, struct watch_failure, DOWN(count), OR_ELSE(by_process));

static void merge_failure(const struct ledger *ledger, void *key)
{
	if (ledger_count(ledger) > RESULTS_MAX)
		((struct fold_failure_key *)key)->result = INT32_MAX; /* no library has so many */
}

/* ---- copies and sets ------------------------------------------------------------------------ */

_Static_assert(WATCH_HOST_NONE == (int)FOLD_HOST_NONE &&
                       WATCH_HOST_UNKNOWN == (int)FOLD_HOST_UNKNOWN &&
                       WATCH_HOST_PINNED == (int)FOLD_HOST_PINNED &&
                       WATCH_HOST_MANAGED == (int)FOLD_HOST_MANAGED,
               "the programs' numbers are shown as they are");

static bool fill_copies(struct watcher *watcher, const struct ledger_row *from, void *into)
{
	const struct fold_copies_key *key = from->key;
	const struct fold_copies *now = (const struct fold_copies *)from->now;
	const struct fold_copies *before = (const struct fold_copies *)from->before;
	struct watch_copies_row *row = into;

	row->set = key->set;
	row->direction = key->direction;
	row->async = key->async;
	row->host = key->host;
	row->calls = now->calls;
	row->calls_before = before->calls;
	row->bytes = now->bytes;
	row->bytes_before = before->bytes;
	row->unsized = now->unsized;
	row->captured = now->captured;
	row->failed = now->failed;
	row->ns = now->ns;
	row->max_ns = now->max_ns;
	memcpy(row->sizes, now->sizes, sizeof(row->sizes));
	return true;
}

ORDER_BY(most_bytes, struct watch_copies_row, DOWN(bytes), DOWN(calls), OR_ELSE(by_process));

/* Ranges of pinned memory of a process that is gone only take room. */
static void drop_pinned(struct watcher *watcher)
{
	struct programs *programs = watcher_options_of(watcher)->programs;
	struct fold_table table;

	fold_read(programs, "fold_pinned", sizeof(struct fold_pinned_key),
	          sizeof(struct fold_pinned), &table);
	for (size_t i = 0; i < table.count; i++) {
		const struct fold_pinned_key *key = (const struct fold_pinned_key *)table.keys + i;

		if (watcher_is_settling(watcher,
		                        (struct ledger_process){ key->born_ns, key->tgid }))
			fold_delete(programs, "fold_pinned", key);
	}
	fold_table_free(&table);
}

/* ---- calls that failed, and waits for the GPU ----------------------------------------------- */

_Static_assert(sizeof(struct fold_failure_key) == 24, "the keys begin as those of processes do");

static bool fill_result(struct watcher *watcher, const struct ledger_row *from, void *into)
{
	const struct fold_failure_key *key = from->key;
	struct watch_result *row = into;

	row->function = function_of(watcher, key->hook);
	row->result = key->result;
	row->count = from->now[0];
	row->before = from->before[0];
	row->ns = from->now[1];
	return true;
}

static void merge_result(const struct ledger *ledger, void *key)
{
	struct fold_failure_key *result = key;

	if (result->result && ledger_count(ledger) > RESULTS_MAX)
		result->result = FOLD_RESULT_MOST + 1;
}

/* ---- hooks of one's own --------------------------------------------------------------------- */

static bool is_sized(const struct function *function)
{
	const struct api_arg *args;
	size_t n = function->api ? api_args(function->api, &args) : 0;

	for (size_t i = 0; i < n; i++) {
		if (args[i].type == T_SIZE)
			return true;
	}
	return false;
}

/* Nothing, where nobody has given its hook this number. */
static bool fill_hook(struct watcher *watcher, const struct ledger_row *from, void *into)
{
	const struct fold_hook_key *key = from->key;
	const struct fold_hook *now = (const struct fold_hook *)from->now;
	const struct fold_hook *before = (const struct fold_hook *)from->before;
	struct watch_hook *row = into;

	row->function = pipeline_hooked_function(watcher_options_of(watcher)->pipeline,
	                                         (uint16_t)key->hook);
	if (!row->function)
		return false;
	row->sized = is_sized(row->function);
	row->bytes = now->bytes;
	row->bytes_before = before->bytes;
	row->calls = now->calls;
	row->calls_before = before->calls;
	row->unfinished = now->unfinished;
	row->timed = now->timed;
	row->ns = now->ns;
	row->max_ns = now->max_ns;
	return true;
}

ORDER_BY(most_time, struct watch_hook, DOWN(ns), DOWN(calls), OR_ELSE(by_process),
         UP(function->id));

/* ---- all ------------------------------------------------------------------------------------ */

#define LAYOUT(of, map_key, value)                                                                 \
	.layout.map = (of), .layout.key_bytes = sizeof(map_key),                                   \
	.layout.words = sizeof(value) / 8, .layout.tgid_at = offsetof(map_key, tgid)
#define MAX_AT(value, member) .layout.max_at = offsetof(value, member) / 8
#define ROWS(type)            .row_bytes = sizeof(type)

static const struct sum_kind kinds[WATCH_SUMS] = {
	[WATCH_SUM_MEMORY] = { .tools = WATCH_MEMORY,
	                       LAYOUT("fold_processes", struct fold_process_key,
	                              struct fold_process),
	                       MAX_AT(struct fold_process, peak_bytes),
	                       ROWS(struct watch_process_memory),
	                       .fill = fill_memory,
	                       .order = by_process },
	[WATCH_SUM_TOTALS] = { .tools = WATCH_MEMORY,
	                       LAYOUT("fold_totals", struct fold_process_key, struct watch_totals),
	                       .layout.own = sizeof(struct fold_count) / 8,
	                       ROWS(struct watch_memory_totals),
	                       .fill = fill_totals,
	                       .order = watch_order_of_totals },
	[WATCH_SUM_FAILURES] = { .tools = WATCH_MEMORY,
	                         LAYOUT("fold_failures", struct fold_failure_key,
	                                struct fold_count),
	                         ROWS(struct watch_failure),
	                         .fill = fill_failure,
	                         .order = most_failed,
	                         .merge = merge_failure },
	[WATCH_SUM_LAUNCHES] = { .tools = WATCH_LAUNCHES,
	                         LAYOUT("fold_launches", struct fold_launch_key,
	                                struct fold_launch),
	                         MAX_AT(struct fold_launch, max_ns),
	                         .layout.room = FOLD_LAUNCHES_ROOM },
	[WATCH_SUM_COPIES] = { .tools = WATCH_COPIES,
	                       LAYOUT("fold_copies", struct fold_copies_key, struct fold_copies),
	                       MAX_AT(struct fold_copies, max_ns),
	                       .layout.room = FOLD_COPIES_ROOM,
	                       ROWS(struct watch_copies_row),
	                       .fill = fill_copies,
	                       .order = most_bytes },
	[WATCH_SUM_RESULTS] = { .tools = WATCH_RESULTS,
	                        LAYOUT("fold_results", struct fold_failure_key, struct fold_result),
	                        ROWS(struct watch_result),
	                        .fill = fill_result,
	                        .merge = merge_result },
	[WATCH_SUM_HOOKS] = { .tools = WATCH_HOOKS,
	                      LAYOUT("fold_hooks", struct fold_hook_key, struct fold_hook),
	                      MAX_AT(struct fold_hook, max_ns),
	                      ROWS(struct watch_hook),
	                      .fill = fill_hook,
	                      .order = most_time },
};

struct watch_sums {
	struct watcher *watcher;
	struct ledger *ledgers[WATCH_SUMS]; /* NULL: no tool wants it */
	void *rows[WATCH_SUMS];             /* of the page */
	struct watch_copies copies;
	struct watch_results results;
	struct watch_hooks hooks;
};

struct watch_sums *watch_sums_new(struct watcher *watcher)
{
	const struct watcher_options *options = watcher_options_of(watcher);
	struct watch_sums *sums = xcalloc(1, sizeof(*sums));

	sums->watcher = watcher;
	for (size_t i = 0; i < WATCH_SUMS; i++) {
		if (options->watch->tools & kinds[i].tools)
			sums->ledgers[i] = ledger_new(options->programs, &kinds[i].layout);
	}
	return sums;
}

void watch_sums_free(struct watch_sums *sums)
{
	if (!sums)
		return;
	for (size_t i = 0; i < WATCH_SUMS; i++) {
		ledger_free(sums->ledgers[i]);
		free(sums->rows[i]);
	}
	free(sums);
}

struct ledger *watch_sums_ledger(struct watch_sums *sums, enum watch_sum sum)
{
	return sums->ledgers[sum];
}

void *watch_sums_rows(struct watch_sums *sums, enum watch_sum sum, size_t *n)
{
	const struct sum_kind *kind = &kinds[sum];
	struct ledger *ledger = sums->ledgers[sum];
	char *rows;

	*n = 0;
	if (!ledger)
		return NULL;
	free(sums->rows[sum]);
	sums->rows[sum] = rows = xcalloc(ledger_count(ledger) + 1, kind->row_bytes);
	for (struct ledger_row *from = ledger_first(ledger); from; from = from->hh.next) {
		struct sum_row *row = (struct sum_row *)(rows + *n * kind->row_bytes);
		const struct watched *process =
			watcher_process(sums->watcher, ledger_process_of(ledger, from->key));

		row->process = process->process;
		row->ended = process->ended;
		*n += kind->fill(sums->watcher, from, row);
	}
	if (kind->order)
		qsort(rows, *n, kind->row_bytes, kind->order);
	return rows;
}

int watch_sums_read(struct watch_sums *sums)
{
	int r = 0;

	for (size_t i = 0; !r && i < WATCH_SUMS; i++)
		r = sums->ledgers[i] ? ledger_read(sums->ledgers[i]) : 0;
	return r;
}

void watch_sums_page(struct watch_sums *sums, struct watch_page *page)
{
	sums->copies.rows = watch_sums_rows(sums, WATCH_SUM_COPIES, &sums->copies.n_rows);
	sums->results.rows = watch_sums_rows(sums, WATCH_SUM_RESULTS, &sums->results.n_rows);
	sums->hooks.rows = watch_sums_rows(sums, WATCH_SUM_HOOKS, &sums->hooks.n_rows);
	page->copies = sums->copies.rows ? &sums->copies : NULL;
	page->results = sums->results.rows ? &sums->results : NULL;
	page->hooks = sums->hooks.rows ? &sums->hooks : NULL;
}

void watch_sums_turn(struct watch_sums *sums)
{
	for (size_t i = 0; i < WATCH_SUMS; i++) {
		if (sums->ledgers[i])
			ledger_turn(sums->ledgers[i]);
	}
}

void watch_sums_settle(struct watch_sums *sums)
{
	for (size_t i = 0; i < WATCH_SUMS; i++) {
		if (sums->ledgers[i])
			ledger_settle(sums->ledgers[i], watcher_is_settling, sums->watcher);
	}
	if (sums->ledgers[WATCH_SUM_COPIES])
		drop_pinned(sums->watcher);
}

/* A ledger_is_fn. */
static bool is_merged(void *data, struct ledger_process key)
{
	return watcher_process(data, key)->merged;
}

static bool is_over(void *data, struct ledger_process key)
{
	return key.tgid && watcher_process(data, key)->ended;
}

void watch_sums_merge(struct watch_sums *sums)
{
	for (size_t i = 0; i < WATCH_SUMS; i++) {
		if (sums->ledgers[i] && kinds[i].row_bytes)
			ledger_merge_all(sums->ledgers[i], is_merged, sums->watcher,
			                 watched_ended(), kinds[i].merge);
	}
}

bool watch_sums_hooks_are_many(const struct watch_sums *sums)
{
	const struct ledger *hooks = sums->ledgers[WATCH_SUM_HOOKS];

	return hooks && ledger_count(hooks) > HOOKS_MAX;
}

void watch_sums_merge_hooks(struct watch_sums *sums)
{
	ledger_merge_all(sums->ledgers[WATCH_SUM_HOOKS], is_over, sums->watcher, watched_ended(),
	                 NULL);
}
