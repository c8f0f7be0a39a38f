// SPDX-License-Identifier: MIT
#include "capture/watch/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "probe/fold.h"

struct ledger {
	struct programs *programs;
	struct ledger_layout layout;
	struct ledger_row *rows;
	size_t n_here; /* rows of processes that go on */
};

struct ledger *ledger_new(struct programs *programs, const struct ledger_layout *layout)
{
	struct ledger *ledger = xcalloc(1, sizeof(*ledger));

	ledger->programs = programs;
	ledger->layout = *layout;
	return ledger;
}

static void row_ended(struct ledger *ledger, struct ledger_row *row)
{
	ledger->n_here -= row->here && !row->ended;
	row->ended = true;
}

static void row_drop(struct ledger *ledger, struct ledger_row *row)
{
	row_ended(ledger, row);
	free(row->map);
	MAP_DROP(ledger->rows, row);
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
	size_t bytes = ledger->layout.key_bytes, words = ledger->layout.words;
	struct ledger_row *row;

	row = MAP_FIND_BYTES(ledger->rows, key, bytes);
	if (row)
		return row;
	row = xcalloc(1, sizeof(*row) + 2 * words * sizeof(*row->now) + bytes);
	row->now = (uint64_t *)(row + 1);
	row->before = row->now + words;
	row->key = memcpy(row->before + words, key, bytes);
	HASH_ADD_KEYPTR(hh, ledger->rows, row->key, bytes, row);
	return row;
}

struct ledger_process ledger_process_of(const struct ledger *ledger, const void *key)
{
	struct ledger_process process = { 0 };
	uint32_t tgid;

	memcpy(&process.born_ns, key, 8);
	memcpy(&tgid, (const char *)key + ledger->layout.tgid_at, 4);
	process.tgid = tgid;
	return process;
}

uint64_t *ledger_here(struct ledger *ledger, const void *key)
{
	struct ledger_row *row = MAP_FIND_BYTES(ledger->rows, key, ledger->layout.key_bytes);

	return row && row->here ? row->now : NULL;
}

bool ledger_make_here(struct ledger *ledger, const void *key)
{
	struct ledger_row *row;

	if (ledger->n_here >= ledger->layout.room)
		return false;
	row = ledger_row(ledger, key);
	ledger->n_here += !row->here && !row->ended;
	row->here = true;
	return true;
}

static size_t map_words(const struct ledger *ledger)
{
	return ledger->layout.words - ledger->layout.own;
}

/* What the map says by now: the difference is added, since `now` may have more. */
static void row_read(const struct ledger *ledger, struct ledger_row *row, const uint64_t *value)
{
	size_t words = map_words(ledger), max_at = ledger->layout.max_at;
	uint64_t *now = row->now, *map = row->map;

	if (!map)
		row->map = map = xcalloc(words, sizeof(*map));
	for (size_t i = 0; i < words; i++) {
		if (i && i == max_at)
			now[i] = value[i] > now[i] ? value[i] : now[i];
		else
			now[i] += value[i] - map[i];
		map[i] = value[i];
	}
}

/* Takes in the rows of some processes or, without `only`, of all. */
static int take_in(struct ledger *ledger, ledger_is_fn only, void *data)
{
	size_t bytes = map_words(ledger) * sizeof(uint64_t);
	struct fold_table table;
	int r = fold_read(ledger->programs, ledger->layout.map, ledger->layout.key_bytes, bytes,
	                  &table);

	for (size_t i = 0; i < table.count; i++) {
		const char *key = table.keys + i * table.key_bytes;
		struct ledger_row *row;

		if (only && !only(data, ledger_process_of(ledger, key)))
			continue;
		row = ledger_row(ledger, key);
		if (!row->ended)
			row_read(ledger, row, (const uint64_t *)(table.values + i * bytes));
		if (!only)
			continue;
		row_ended(ledger, row);
		fold_delete(ledger->programs, ledger->layout.map, key);
	}
	fold_table_free(&table);
	for (struct ledger_row *row = ledger->rows; row && only; row = row->hh.next) {
		if (row->here && only(data, ledger_process_of(ledger, row->key)))
			row_ended(ledger, row);
	}
	return r;
}

int ledger_read(struct ledger *ledger)
{
	return take_in(ledger, NULL, NULL);
}

void ledger_settle(struct ledger *ledger, ledger_is_fn is, void *data)
{
	take_in(ledger, is, data);
}

void ledger_turn(struct ledger *ledger)
{
	for (struct ledger_row *row = ledger->rows; row; row = row->hh.next)
		memcpy(row->before, row->now, ledger->layout.words * sizeof(uint64_t));
}

size_t ledger_count(const struct ledger *ledger)
{
	return HASH_COUNT(ledger->rows);
}

struct ledger_row *ledger_first(struct ledger *ledger)
{
	return ledger->rows;
}

static void add_counters(const struct ledger *ledger, uint64_t *into, const uint64_t *from)
{
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
	uint64_t *value = xcalloc(ledger->layout.words, sizeof(*value));

	row_ended(ledger, into); /* not in the map */
	if (row->map && !row->ended &&
	    fold_find(ledger->programs, ledger->layout.map, row->key, value))
		row_read(ledger, row, value); /* what was added since the page was read */
	add_counters(ledger, into->now, row->now);
	free(value);
	add_counters(ledger, into->before, row->before);
	fold_delete(ledger->programs, ledger->layout.map, row->key);
	row_drop(ledger, row);
	return into;
}

void ledger_merge_all(struct ledger *ledger, ledger_is_fn is, void *data, struct ledger_process as,
                      void (*key_of)(const struct ledger *ledger, void *key))
{
	uint32_t tgid = (uint32_t)as.tgid;
	char key[LEDGER_KEY_BYTES];

	for (struct ledger_row *row = ledger->rows, *next; row; row = next) {
		next = row->hh.next;
		if (!is(data, ledger_process_of(ledger, row->key)))
			continue;
		memcpy(key, row->key, ledger->layout.key_bytes);
		memcpy(key, &as.born_ns, 8);
		memcpy(key + ledger->layout.tgid_at, &tgid, 4);
		if (key_of)
			key_of(ledger, key);
		ledger_merge(ledger, row, key);
	}
}
