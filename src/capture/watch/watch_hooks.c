// SPDX-License-Identifier: MIT
/* What hooks of one's own saw, read from the maps of the eBPF programs. */
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "probe/fold.h"

/* ---- watch results ------------------------------------------------------------------------- */

/* Calls that failed and waits for the GPU, read from the maps of the eBPF programs. */

#define RESULTS_ROWS_MAX 4096 /* then those of merged processes are one for each function */

_Static_assert(sizeof(struct fold_failure_key) == 24, "the keys begin as those of processes do");

struct watch_results_part {
	struct watcher *watcher;
	struct ledger *ledger;
	struct watch_results page;
	struct watch_result *rows;
};

struct watch_results_part *watch_results_new(struct watcher *watcher)
{
	static const struct ledger_layout layout = {
		.map = "fold_results",
		.key_bytes = sizeof(struct fold_failure_key),
		.words = sizeof(struct fold_result) / 8,
		.tgid_at = offsetof(struct fold_failure_key, tgid),
		.born_at = offsetof(struct fold_failure_key, born_ns),
	};
	struct watch_results_part *part = xcalloc(1, sizeof(*part));

	part->watcher = watcher;
	part->ledger = ledger_new(watcher_options_of(watcher)->programs, &layout);
	return part;
}

void watch_results_free(struct watch_results_part *part)
{
	if (!part)
		return;
	ledger_free(part->ledger);
	free(part->rows);
	free(part);
}

int watch_results_settle(struct watch_results_part *part)
{
	return ledger_settle(part->ledger, watcher_is_settling, part->watcher);
}

void watch_results_merge(struct watch_results_part *part)
{
	const struct ledger_process ended = watched_ended();
	struct ledger_row *row, *next;

	for (row = ledger_first(part->ledger); row; row = next) {
		struct fold_failure_key key = *(const struct fold_failure_key *)row->key;

		next = row->hh.next;
		if (!watcher_process(part->watcher, ledger_process_of(part->ledger, &key))->merged)
			continue;
		key.born_ns = ended.born_ns;
		key.tgid = (uint32_t)ended.tgid;
		if (key.result && ledger_count(part->ledger) > RESULTS_ROWS_MAX)
			key.result = FOLD_RESULT_MOST + 1;
		ledger_merge(part->ledger, row, &key);
	}
}

static void results_fill_row(struct watch_results_part *part, const struct ledger_row *from,
                             struct watch_result *row)
{
	const struct fold_failure_key *key = from->key;
	const struct watched *process =
		watcher_process(part->watcher, ledger_process_of(part->ledger, key));

	row->process = process->process;
	row->ended = process->ended;
	row->function =
		pipeline_function(watcher_options_of(part->watcher)->pipeline, (uint16_t)key->hook);
	row->result = key->result;
	row->count = from->now[0];
	row->before = from->before[0];
	row->ns = from->now[1];
}

int watch_results_page(struct watch_results_part *part, const struct watch_results **page)
{
	size_t count = 0;
	int r = ledger_read(part->ledger);

	free(part->rows);
	part->rows = xcalloc(ledger_count(part->ledger) + 1, sizeof(*part->rows));
	for (struct ledger_row *row = ledger_first(part->ledger); row; row = row->hh.next)
		results_fill_row(part, row, &part->rows[count++]);
	part->page = (struct watch_results){ part->rows, count };
	*page = &part->page;
	return r;
}

void watch_results_turn(struct watch_results_part *part)
{
	ledger_turn(part->ledger);
}

/* ---- watch hooks --------------------------------------------------------------------------- */

/* More, with those of processes that have ended: then the latter are one row for each hook. */
#define ROWS_MAX (2 * FOLD_HOOKS_ROOM)

struct watch_hooks_part {
	struct watcher *watcher;
	struct ledger *ledger;
	struct watch_hooks page;
	struct watch_hook *rows;
};

struct watch_hooks_part *watch_hooks_new(struct watcher *watcher)
{
	static const struct ledger_layout layout = {
		.map = "fold_hooks",
		.key_bytes = sizeof(struct fold_hook_key),
		.words = sizeof(struct fold_hook) / 8,
		.tgid_at = offsetof(struct fold_hook_key, tgid),
		.born_at = offsetof(struct fold_hook_key, born_ns),
		.max_at = offsetof(struct fold_hook, max_ns) / 8,
	};
	struct watch_hooks_part *part = xcalloc(1, sizeof(*part));

	part->watcher = watcher;
	part->ledger = ledger_new(watcher_options_of(watcher)->programs, &layout);
	return part;
}

void watch_hooks_free(struct watch_hooks_part *part)
{
	if (!part)
		return;
	ledger_free(part->ledger);
	free(part->rows);
	free(part);
}

int watch_hooks_settle(struct watch_hooks_part *part)
{
	return ledger_settle(part->ledger, watcher_is_settling, part->watcher);
}

bool watch_hooks_are_many(const struct watch_hooks_part *part)
{
	return ledger_count(part->ledger) > ROWS_MAX;
}

void watch_hooks_merge(struct watch_hooks_part *part, bool all)
{
	const struct ledger_process ended = watched_ended();
	struct ledger_row *row, *next;

	for (row = ledger_first(part->ledger); row; row = next) {
		struct fold_hook_key key = *(const struct fold_hook_key *)row->key;
		const struct watched *process =
			watcher_process(part->watcher, ledger_process_of(part->ledger, &key));

		next = row->hh.next;
		if (!process->key.tgid || !(process->merged || (all && process->ended)))
			continue;
		key.born_ns = ended.born_ns;
		key.tgid = (uint32_t)ended.tgid;
		ledger_merge(part->ledger, row, &key);
	}
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int most_time(const void *left, const void *right)
{
	const struct watch_hook *a = left, *b = right;
	int order = compare(b->ns, a->ns);

	if (!order)
		order = compare(b->calls, a->calls);
	if (!order)
		order = compare(a->process->id, b->process->id);
	return order ? order : compare(a->function->id, b->function->id);
}

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

/* False: nobody has given its hook this number. */
static bool fill_row(struct watch_hooks_part *part, const struct ledger_row *from,
                     struct watch_hook *row)
{
	const struct fold_hook_key *key = from->key;
	const struct fold_hook *now = (const struct fold_hook *)from->now;
	const struct fold_hook *before = (const struct fold_hook *)from->before;
	const struct watched *process =
		watcher_process(part->watcher, ledger_process_of(part->ledger, key));

	row->function = pipeline_hooked_function(watcher_options_of(part->watcher)->pipeline,
	                                         (uint16_t)key->hook);
	if (!row->function)
		return false;
	row->process = process->process;
	row->ended = process->ended;
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

int watch_hooks_page(struct watch_hooks_part *part, const struct watch_hooks **page)
{
	size_t count = 0;
	int r = ledger_read(part->ledger);

	free(part->rows);
	part->rows = xcalloc(ledger_count(part->ledger) + 1, sizeof(*part->rows));
	for (struct ledger_row *row = ledger_first(part->ledger); row; row = row->hh.next)
		count += fill_row(part, row, &part->rows[count]);
	qsort(part->rows, count, sizeof(*part->rows), most_time);
	part->page = (struct watch_hooks){ part->rows, count };
	*page = &part->page;
	return r;
}

void watch_hooks_turn(struct watch_hooks_part *part)
{
	ledger_turn(part->ledger);
}
