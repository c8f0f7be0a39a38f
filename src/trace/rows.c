// SPDX-License-Identifier: MIT
#include "trace/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/xalloc.h"

enum row_kind { ROW_THREAD, ROW_STREAM, ROW_WORK, ROW_SIZES, ROW_RANGES };

/*
 * Rows are known by a hash of 64 bits, with a secret: who writes the file cannot make two that have
 * the same, and by chance it is one of a million million.
 */
struct rows {
	uint64_t *slots; /* 0: free; at most half of them are taken */
	uint32_t n_slots, count, most;
	uint64_t secret, refused;
	uint64_t last_thread;
	bool has_thread;
};

struct rows *rows_new(uint32_t most)
{
	struct rows *rows = xcalloc(1, sizeof(*rows));

	if (getrandom(&rows->secret, sizeof(rows->secret), 0) != sizeof(rows->secret))
		rows->secret = (uintptr_t)rows; /* cannot be: so few bytes are never cut */
	rows->secret |= 1;
	rows->most = most;
	rows->n_slots = 1024;
	rows->slots = xcalloc(rows->n_slots, sizeof(*rows->slots));
	return rows;
}

void rows_free(struct rows *rows)
{
	if (!rows)
		return;
	free(rows->slots);
	free(rows);
}

uint64_t rows_refused(const struct rows *rows)
{
	return rows->refused;
}

/* ---- the set ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(const struct rows *rows, enum row_kind kind, const uint64_t *words,
                        size_t n)
{
	uint64_t hash = rows->secret ^ kind;

	for (size_t i = 0; i < n; i++)
		hash = mix(hash ^ words[i], rows->secret + i * 0x9e3779b97f4a7c15u);
	return hash ? hash : 1;
}

static uint64_t *slot_of(const struct rows *rows, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & (rows->n_slots - 1);

	while (rows->slots[at] && rows->slots[at] != hash)
		at = (at + 1) & (rows->n_slots - 1);
	return &rows->slots[at];
}

static void grow(struct rows *rows)
{
	uint64_t *old = rows->slots;
	uint32_t n_old = rows->n_slots;

	rows->n_slots *= 2;
	rows->slots = xcalloc(rows->n_slots, sizeof(*rows->slots));
	for (uint32_t i = 0; i < n_old; i++) {
		if (old[i])
			*slot_of(rows, old[i]) = old[i];
	}
	free(old);
}

static bool take(struct rows *rows, enum row_kind kind, const uint64_t *words, size_t n)
{
	uint64_t hash = hash_of(rows, kind, words, n), *slot = slot_of(rows, hash);

	if (*slot)
		return true;
	if (rows->count == rows->most)
		return false;
	rows->count++;
	*slot = hash;
	if (2 * rows->count >= rows->n_slots)
		grow(rows);
	return true;
}

/* ---- events -------------------------------------------------------------------------------- */

#define TAKE(rows, kind, ...)                                                                      \
	take(rows, kind, (const uint64_t[]){ __VA_ARGS__ },                                        \
	     sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static uint64_t thread_of(const struct event *event)
{
	return (uint64_t)event->process->id << 32 | event->tid;
}

/* Most events are of the thread of the one before. */
static bool take_thread(struct rows *rows, uint64_t thread)
{
	if (rows->has_thread && rows->last_thread == thread)
		return true;
	rows->has_thread = TAKE(rows, ROW_THREAD, thread);
	rows->last_thread = thread;
	return rows->has_thread;
}

static bool take_call(struct rows *rows, const struct event *event)
{
	uint64_t stream = event->call->args.stream;

	return !stream || TAKE(rows, ROW_STREAM, event->process->id, stream);
}

static bool take_activity(struct rows *rows, const struct event *event)
{
	const struct activity *a = event->activity;

	if (!TAKE(rows, ROW_WORK, event->process->id, a->device,
	          (uint64_t)a->context << 32 | a->stream))
		return false;
	return !a->kernel ||
	       TAKE(rows, ROW_SIZES, a->kernel->id, (uint64_t)a->grid[0] << 32 | a->grid[1],
	            (uint64_t)a->grid[2] << 32 | a->block[0],
	            (uint64_t)a->block[1] << 32 | a->block[2]);
}

static uint64_t text_of(const struct rows *rows, const char *text)
{
	uint64_t hash = rows->secret;

	for (; text && *text; text++)
		hash = mix(hash ^ (uint8_t)*text, rows->secret + 2);
	return hash;
}

static bool take_range(struct rows *rows, const struct event *event)
{
	const struct range *range = event->range;

	return TAKE(rows, ROW_RANGES, thread_of(event), range->kind, text_of(rows, range->domain),
	            (uint64_t)range->context << 32 | range->stream);
}

static bool has_rows(struct rows *rows, const struct event *event)
{
	if (!take_thread(rows, thread_of(event)))
		return false;
	switch (event->type) {
	case EVENT_CALL:
		return take_call(rows, event);
	case EVENT_ACTIVITY:
		return take_activity(rows, event);
	case EVENT_RANGE:
		return take_range(rows, event);
	default:
		return true;
	}
}

bool rows_take(struct rows *rows, const struct event *event)
{
	bool taken = has_rows(rows, event);

	rows->refused += !taken;
	return taken;
}
