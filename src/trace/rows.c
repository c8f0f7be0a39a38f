// SPDX-License-Identifier: MIT
#include "trace/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/xalloc.h"

#define KEY_WORDS 4
#define RECENT    256 /* a power of two */
#define THREADS   16

enum row_kind { ROW_THREAD = 1, ROW_STREAM, ROW_WORK, ROW_SIZES, ROW_RANGES };

/* What a row is known by; words that its kind has no use for are 0. */
struct rows_row_key {
	uint64_t words[KEY_WORDS];
	enum row_kind kind;
};

/*
 * Rows are known by a hash of 64 bits, with a secret: who writes the file cannot make two that have
 * the same, and by chance it is one of a million million.
 */
struct kept_rows {
	uint64_t *slots; /* 0: free; at most half of them are taken */
	uint32_t n_slots, count, most;
	uint64_t secret, refused;
	uint64_t threads[THREADS]; /* the same of threads, by their tid */
	struct rows_row_key
		recent[RECENT]; /* taken before: most events ask for what others just had */
};

struct kept_rows *rows_new(uint32_t most)
{
	struct kept_rows *rows = xcalloc(1, sizeof(*rows));

	if (getrandom(&rows->secret, sizeof(rows->secret), 0) != sizeof(rows->secret))
		rows->secret = (uintptr_t)rows; /* cannot be: so few bytes are never cut */
	rows->secret |= 1;
	rows->most = most;
	rows->n_slots = 1024;
	rows->slots = xcalloc(rows->n_slots, sizeof(*rows->slots));
	return rows;
}

void rows_free(struct kept_rows *rows)
{
	if (!rows)
		return;
	free(rows->slots);
	free(rows);
}

uint64_t rows_refused(const struct kept_rows *rows)
{
	return rows->refused;
}

/* ---- the set ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(const struct kept_rows *rows, const struct rows_row_key *key)
{
	uint64_t hash = rows->secret ^ key->kind;

	for (size_t i = 0; i < KEY_WORDS; i++)
		hash = mix(hash ^ key->words[i], rows->secret + i * 0x9e3779b97f4a7c15u);
	return hash ? hash : 1;
}

static uint64_t *slot_of(const struct kept_rows *rows, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & (rows->n_slots - 1);

	while (rows->slots[at] && rows->slots[at] != hash)
		at = (at + 1) & (rows->n_slots - 1);
	return &rows->slots[at];
}

static void grow(struct kept_rows *rows)
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

static bool take_new(struct kept_rows *rows, const struct rows_row_key *key)
{
	uint64_t hash = hash_of(rows, key), *slot = slot_of(rows, hash);

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

/* Both run for every event: written out, since loops took twice as long. */
static inline bool is_key(const struct rows_row_key *a, const struct rows_row_key *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] &&
	       a->words[2] == b->words[2] && a->words[3] == b->words[3] && a->kind == b->kind;
}

/* Where a key is looked for that was taken a moment ago. */
static inline struct rows_row_key *recent_of(struct kept_rows *rows, const struct rows_row_key *key)
{
	uint64_t sum = key->words[0] + key->words[1] + key->words[2] + key->words[3] + key->kind;

	return &rows->recent[(sum ^ sum >> 12 ^ sum >> 32) % RECENT];
}

static inline bool take(struct kept_rows *rows, struct rows_row_key key)
{
	struct rows_row_key *recent = recent_of(rows, &key);

	if (is_key(recent, &key))
		return true;
	if (!take_new(rows, &key))
		return false;
	*recent = key;
	return true;
}

/* ---- events -------------------------------------------------------------------------------- */

#define TAKE(rows, kind, ...) take(rows, (struct rows_row_key){ { __VA_ARGS__ }, kind })

static uint64_t thread_of(const struct event *event)
{
	return (uint64_t)event->process->id << 32 | event->tid;
}

static inline bool take_thread(struct kept_rows *rows, const struct event *event)
{
	uint64_t thread = thread_of(event), *recent = &rows->threads[event->tid % THREADS];

	if (*recent == thread && thread)
		return true;
	if (!TAKE(rows, ROW_THREAD, thread))
		return false;
	*recent = thread;
	return true;
}

static bool take_call(struct kept_rows *rows, const struct event *event)
{
	uint64_t stream = event->call->args.stream;

	return !stream || TAKE(rows, ROW_STREAM, event->process->id, stream);
}

static bool take_activity(struct kept_rows *rows, const struct event *event)
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

static uint64_t text_of(const struct kept_rows *rows, const char *text)
{
	uint64_t hash = rows->secret;

	for (; text && *text; text++)
		hash = mix(hash ^ (uint8_t)*text, rows->secret + 2);
	return hash;
}

static bool take_range(struct kept_rows *rows, const struct event *event)
{
	const struct range *range = event->range;

	return TAKE(rows, ROW_RANGES, thread_of(event), range->kind, text_of(rows, range->domain),
	            (uint64_t)range->context << 32 | range->stream);
}

static bool has_rows(struct kept_rows *rows, const struct event *event)
{
	if (!take_thread(rows, event))
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

bool rows_take(struct kept_rows *rows, const struct event *event)
{
	bool taken = has_rows(rows, event);

	rows->refused += !taken;
	return taken;
}
