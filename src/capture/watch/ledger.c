// SPDX-License-Identifier: MIT
#include "capture/watch/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "probe/fold.h"

struct ledger {
	struct programs *programs;
	struct ledger_layout layout;
	struct ledger_row *rows;
};

struct ledger *ledger_new(struct programs *programs, const struct ledger_layout *layout)
{
	struct ledger *ledger = xcalloc(1, sizeof(*ledger));

	ledger->programs = programs;
	ledger->layout = *layout;
	return ledger;
}

static void row_drop(struct ledger *ledger, struct ledger_row *row)
{
	HASH_DEL(ledger->rows, row);
	free((void *)row->key);
	free((void *)row->now);
	free((void *)row->before);
	free(row->data);
	free(row);
}

void ledger_free(struct ledger *ledger)
{
	struct ledger_row *row, *next;

	if (!ledger)
		return;
	HASH_ITER (hh, ledger->rows, row, next)
		row_drop(ledger, row);
	free(ledger);
}

struct ledger_row *ledger_row(struct ledger *ledger, const void *key)
{
	size_t bytes = ledger->layout.key_bytes;
	struct ledger_row *row;
	void *copy;

	HASH_FIND(hh, ledger->rows, key, bytes, row);
	if (row)
		return row;
	row = xcalloc(1, sizeof(*row));
	row->key = copy = xmalloc(bytes);
	memcpy(copy, key, bytes);
	row->now = xcalloc(ledger->layout.words, sizeof(uint64_t));
	row->before = xcalloc(ledger->layout.words, sizeof(uint64_t));
	HASH_ADD_KEYPTR(hh, ledger->rows, row->key, bytes, row);
	return row;
}

struct ledger_process ledger_process_of(const struct ledger *ledger, const void *key)
{
	struct ledger_process process = { 0 };
	uint32_t tgid;

	memcpy(&process.born_ns, (const char *)key + ledger->layout.born_at, 8);
	memcpy(&tgid, (const char *)key + ledger->layout.tgid_at, 4);
	process.tgid = tgid;
	return process;
}

/* Takes in the rows of one process or, without one, of all. */
static int take_in(struct ledger *ledger, const struct ledger_process *only)
{
	size_t bytes = ledger->layout.words * sizeof(uint64_t);
	struct fold_table table;
	int r = fold_read(ledger->programs, ledger->layout.map, ledger->layout.key_bytes, bytes,
	                  &table);

	for (size_t i = 0; i < table.count; i++) {
		const char *key = table.keys + i * table.key_bytes;
		struct ledger_process process = ledger_process_of(ledger, key);
		struct ledger_row *row;

		if (only && (process.born_ns != only->born_ns || process.tgid != only->tgid))
			continue;
		row = ledger_row(ledger, key);
		if (!row->ended)
			memcpy((void *)row->now, table.values + i * bytes, bytes);
		if (!only)
			continue;
		row->ended = true;
		fold_delete(ledger->programs, ledger->layout.map, key);
	}
	fold_table_free(&table);
	return r;
}

int ledger_read(struct ledger *ledger)
{
	return take_in(ledger, NULL);
}

int ledger_settle(struct ledger *ledger, struct ledger_process process)
{
	return take_in(ledger, &process);
}

void ledger_turn(struct ledger *ledger)
{
	for (struct ledger_row *row = ledger->rows; row; row = row->hh.next)
		memcpy((void *)row->before, row->now, ledger->layout.words * sizeof(uint64_t));
}

size_t ledger_count(const struct ledger *ledger)
{
	return HASH_COUNT(ledger->rows);
}

struct ledger_row *ledger_first(struct ledger *ledger)
{
	return ledger->rows;
}

static void add_counters(const struct ledger *ledger, const uint64_t *to, const uint64_t *from)
{
	uint64_t *into = (uint64_t *)to;

	for (size_t i = 0; i < ledger->layout.words; i++) {
		if (!i || i != ledger->layout.max_at)
			into[i] += from[i];
		else if (from[i] > into[i])
			into[i] = from[i];
	}
}

struct ledger_row *ledger_merge(struct ledger *ledger, struct ledger_row *row, const void *key)
{
	struct ledger_row *into = ledger_row(ledger, key);

	into->ended = true; /* not in the map */
	add_counters(ledger, into->now, row->now);
	add_counters(ledger, into->before, row->before);
	fold_delete(ledger->programs, ledger->layout.map, row->key);
	row_drop(ledger, row);
	return into;
}
