// SPDX-License-Identifier: MIT
/* Calls that failed and waits for the GPU, read from the maps of the eBPF programs. */
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define ROWS_MAX 4096 /* then those of merged processes are one for each function */

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
		if (key.result && ledger_count(part->ledger) > ROWS_MAX)
			key.result = FOLD_RESULT_MOST + 1;
		ledger_merge(part->ledger, row, &key);
	}
}

static void fill_row(struct watch_results_part *part, const struct ledger_row *from,
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
		fill_row(part, row, &part->rows[count++]);
	part->page = (struct watch_results){ part->rows, count };
	*page = &part->page;
	return r;
}

void watch_results_turn(struct watch_results_part *part)
{
	ledger_turn(part->ledger);
}
