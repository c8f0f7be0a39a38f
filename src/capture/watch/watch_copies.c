// SPDX-License-Identifier: MIT
/* The sums of copies and sets, read from the maps of the eBPF programs. */
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "probe/fold.h"

_Static_assert(WATCH_HOST_NONE == (int)FOLD_HOST_NONE &&
                       WATCH_HOST_UNKNOWN == (int)FOLD_HOST_UNKNOWN &&
                       WATCH_HOST_PINNED == (int)FOLD_HOST_PINNED &&
                       WATCH_HOST_MANAGED == (int)FOLD_HOST_MANAGED,
               "the programs' numbers are shown as they are");

struct watch_copies_part {
	struct watcher *watcher;
	struct ledger *ledger;
	struct watch_copies page;
	struct watch_copies_row *rows;
};

struct watch_copies_part *watch_copies_new(struct watcher *watcher)
{
	static const struct ledger_layout layout = {
		.map = "fold_copies",
		.key_bytes = sizeof(struct fold_copies_key),
		.words = sizeof(struct fold_copies) / 8,
		.tgid_at = offsetof(struct fold_copies_key, tgid),
		.born_at = offsetof(struct fold_copies_key, born_ns),
		.max_at = offsetof(struct fold_copies, max_ns) / 8,
		.room = FOLD_COPIES_ROOM,
	};
	struct watch_copies_part *part = xcalloc(1, sizeof(*part));

	part->watcher = watcher;
	part->ledger = ledger_new(watcher_options_of(watcher)->programs, &layout);
	return part;
}

void watch_copies_free(struct watch_copies_part *part)
{
	if (!part)
		return;
	ledger_free(part->ledger);
	free(part->rows);
	free(part);
}

struct ledger *watch_copies_ledger(struct watch_copies_part *part)
{
	return part->ledger;
}

/* Ranges of pinned memory of a process that is gone only take room. */
static void drop_pinned(struct watch_copies_part *part)
{
	struct programs *programs = watcher_options_of(part->watcher)->programs;
	struct fold_table table;

	fold_read(programs, "fold_pinned", sizeof(struct fold_pinned_key),
	          sizeof(struct fold_pinned), &table);
	for (size_t i = 0; i < table.count; i++) {
		const struct fold_pinned_key *key = (const struct fold_pinned_key *)table.keys + i;

		if (watcher_is_settling(part->watcher,
		                        (struct ledger_process){ key->born_ns, key->tgid }))
			fold_delete(programs, "fold_pinned", key);
	}
	fold_table_free(&table);
}

int watch_copies_settle(struct watch_copies_part *part)
{
	drop_pinned(part);
	return ledger_settle(part->ledger, watcher_is_settling, part->watcher);
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int most_bytes(const void *left, const void *right)
{
	const struct watch_copies_row *a = left, *b = right;
	int order = compare(b->bytes, a->bytes);

	if (!order)
		order = compare(b->calls, a->calls);
	return order ? order : compare(a->process->id, b->process->id);
}

static void fill_row(struct watch_copies_row *row, const struct ledger_row *from,
                     const struct watched *process)
{
	const struct fold_copies_key *key = from->key;
	const struct fold_copies *now = (const struct fold_copies *)from->now;
	const struct fold_copies *before = (const struct fold_copies *)from->before;

	row->process = process->process;
	row->ended = process->ended;
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
}

int watch_copies_page(struct watch_copies_part *part, const struct watch_copies **page)
{
	size_t count = 0;
	int r;

	r = ledger_read(part->ledger);
	free(part->rows);
	part->rows = xcalloc(ledger_count(part->ledger) + 1, sizeof(*part->rows));
	for (struct ledger_row *row = ledger_first(part->ledger); row; row = row->hh.next)
		fill_row(&part->rows[count++], row,
		         watcher_process(part->watcher, ledger_process_of(part->ledger, row->key)));
	qsort(part->rows, count, sizeof(*part->rows), most_bytes);
	part->page = (struct watch_copies){ part->rows, count };
	*page = &part->page;
	return r;
}

void watch_copies_merge(struct watch_copies_part *part)
{
	const struct ledger_process ended = watched_ended();
	struct ledger_row *row, *next;

	for (row = ledger_first(part->ledger); row; row = next) {
		struct fold_copies_key key = *(const struct fold_copies_key *)row->key;

		next = row->hh.next;
		if (!watcher_process(part->watcher, ledger_process_of(part->ledger, &key))->merged)
			continue;
		key.born_ns = ended.born_ns;
		key.tgid = (uint32_t)ended.tgid;
		ledger_merge(part->ledger, row, &key);
	}
}

void watch_copies_turn(struct watch_copies_part *part)
{
	ledger_turn(part->ledger);
}
