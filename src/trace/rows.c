// SPDX-License-Identifier: MIT
/*
 * What reports and exports have a row for beside what a file defines: threads, streams, the sizes
 * of kernels, rows of ranges. An event of six bytes can ask for another one,
 * so a reader passes on events of so many only, of which no user has all.
 */
#include "trace/codec.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/quota.h"
#include "base/xalloc.h"

#define KEY_WORDS 4
#define THREADS   16 /* powers of two, all three */
#define RECENT    64
#define SIZES     256

enum row_kind { ROW_THREAD = 1, ROW_STREAM, ROW_WORK, ROW_SIZES, ROW_RANGES, ROW_STALL };

/* What a row is known by; words that its kind has no use for are 0. */
struct rows_row_key {
	uint64_t words[KEY_WORDS], kind; /* all of a width: no padding for the hash to read */
};

/* Rows that were taken a moment ago: most events ask for one of these. One of zeroes is none, since
 * the number of the process or kernel has one added. */
struct recent_stream {
	uint64_t handle;
	uint32_t process;
};

struct recent_work {
	uint32_t process, device, context, stream;
};

struct recent_sizes {
	uint32_t kernel, grid[3], block[3];
};

struct recent_ranges {
	uint64_t thread, text;
	uint32_t kind, context, stream; /* kind: and one */
};

/*
 * Rows are known by a hash of 64 bits, with a secret (hash.h). So who writes the file cannot make
 * two that have the same; by chance it is one of a million million.
 */
struct kept_rows {
	uint64_t *slots; /* 0: free; at most half of them are taken */
	uint32_t n_slots, most;
	struct quota taken;
	uint64_t refused;          /* events */
	uint64_t threads[THREADS]; /* taken before, by their tid */
	struct recent_stream streams[RECENT];
	struct recent_work works[RECENT];
	struct recent_ranges ranges[RECENT];
	struct recent_sizes sizes[SIZES];
};

struct kept_rows *rows_new(uint32_t most)
{
	struct kept_rows *rows = xcalloc(1, sizeof(*rows));

	rows->most = most;
	rows->n_slots = 1024;
	rows->slots = xcalloc(rows->n_slots, sizeof(*rows->slots));
	return rows;
}

void rows_free(struct kept_rows *rows)
{
	if (!rows)
		return;
	quota_free(&rows->taken);
	free(rows->slots);
	free(rows);
}

uint64_t rows_refused(const struct kept_rows *rows)
{
	return rows->refused;
}

/* ---- the set ------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct rows_row_key *key)
{
	uint64_t hash = hash_long(key, sizeof(*key));

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

static bool take_new(struct kept_rows *rows, const struct event *event,
                     const struct rows_row_key *key)
{
	uint64_t hash = hash_of(key), *slot = slot_of(rows, hash);

	if (*slot)
		return true;
	if (!quota_take_beside(&rows->taken, process_shares_with(event->process), rows->most))
		return false;
	*slot = hash;
	if (2 * rows->taken.taken >= rows->n_slots)
		grow(rows);
	return true;
}

/* ---- what was taken a moment ago ------------------------------------------------------------ */

static inline uint64_t thread_of(const struct event *event)
{
	return (uint64_t)event->process->id << 32 | event->tid;
}

static inline uint64_t text_of(const char *text)
{
	return hash_long(text, text ? strlen(text) : 0);
}

static inline uint32_t recent_stream(const struct event *event)
{
	uint64_t handle = event->call->args.stream;

	return ((uint32_t)(handle >> 4 ^ handle >> 12) + event->process->id) % RECENT;
}

static inline uint32_t recent_work(const struct event *event)
{
	const struct activity *a = event->activity;

	return (event->process->id * 7 + a->context * 5 + a->stream) % RECENT;
}

static inline uint32_t recent_sizes(const struct activity *a)
{
	return (a->kernel->id + a->grid[0] + a->block[0]) % SIZES;
}

static inline uint32_t recent_ranges(const struct event *event)
{
	const struct range *range = event->range;

	return (event->tid + event->process->id + 7 * (range->kind + range->stream)) % RECENT;
}

static inline bool is_size(const uint32_t a[3], const uint32_t b[3])
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* What runs for every event compares fields where they are, without a key: that is half the work.
 */
static inline bool is_recent_call(const struct kept_rows *rows, const struct event *event)
{
	uint64_t handle = event->call->args.stream;
	const struct recent_stream *recent = &rows->streams[recent_stream(event)];

	return !handle || (recent->handle == handle && recent->process == event->process->id + 1);
}

static inline bool is_recent_activity(const struct kept_rows *rows, const struct event *event)
{
	const struct activity *a = event->activity;
	const struct recent_work *recent = &rows->works[recent_work(event)];
	const struct recent_sizes *sizes;

	if (recent->process != event->process->id + 1 || recent->device != a->device ||
	    recent->context != a->context || recent->stream != a->stream)
		return false;
	if (!a->kernel)
		return true;
	sizes = &rows->sizes[recent_sizes(a)];
	return sizes->kernel == a->kernel->id + 1 && is_size(sizes->grid, a->grid) &&
	       is_size(sizes->block, a->block);
}

static inline bool is_recent_range(const struct kept_rows *rows, const struct event *event)
{
	const struct range *range = event->range;
	const struct recent_ranges *recent = &rows->ranges[recent_ranges(event)];

	return recent->thread == thread_of(event) && recent->kind == range->kind + 1u &&
	       recent->context == range->context && recent->stream == range->stream &&
	       recent->text == text_of(range->domain);
}

static inline bool is_recent(const struct kept_rows *rows, const struct event *event)
{
	uint64_t thread = thread_of(event);

	if (rows->threads[event->tid % THREADS] != thread || !thread)
		return false;
	switch (event->type) {
	case EVENT_CALL:
		return is_recent_call(rows, event);
	case EVENT_ACTIVITY:
		return is_recent_activity(rows, event);
	case EVENT_RANGE:
		return is_recent_range(rows, event);
	case EVENT_STALL:
		return false;
	default:
		return true;
	}
}

/* ---- events -------------------------------------------------------------------------------- */

#define TAKE(rows, event, kind, ...)                                                               \
	take_new(rows, event, &(struct rows_row_key){ { __VA_ARGS__ }, kind })

static bool take_thread(struct kept_rows *rows, const struct event *event)
{
	if (!TAKE(rows, event, ROW_THREAD, thread_of(event)))
		return false;
	rows->threads[event->tid % THREADS] = thread_of(event);
	return true;
}

static bool take_call(struct kept_rows *rows, const struct event *event)
{
	uint64_t handle = event->call->args.stream;
	uint32_t process = event->process->id;

	if (handle && !TAKE(rows, event, ROW_STREAM, process, handle))
		return false;
	rows->streams[recent_stream(event)] = (struct recent_stream){ handle, process + 1 };
	return true;
}

static bool take_sizes(struct kept_rows *rows, const struct event *event)
{
	const struct activity *a = event->activity;
	struct recent_sizes *recent = &rows->sizes[recent_sizes(a)];

	if (!TAKE(rows, event, ROW_SIZES, a->kernel->id, (uint64_t)a->grid[0] << 32 | a->grid[1],
	          (uint64_t)a->grid[2] << 32 | a->block[0],
	          (uint64_t)a->block[1] << 32 | a->block[2]))
		return false;
	recent->kernel = a->kernel->id + 1;
	memcpy(recent->grid, a->grid, sizeof(a->grid));
	memcpy(recent->block, a->block, sizeof(a->block));
	return true;
}

static bool take_activity(struct kept_rows *rows, const struct event *event)
{
	const struct activity *a = event->activity;
	uint32_t process = event->process->id;

	if (!TAKE(rows, event, ROW_WORK, process, a->device,
	          (uint64_t)a->context << 32 | a->stream))
		return false;
	rows->works[recent_work(event)] =
		(struct recent_work){ process + 1, a->device, a->context, a->stream };
	return !a->kernel || take_sizes(rows, event);
}

static bool take_range(struct kept_rows *rows, const struct event *event)
{
	const struct range *range = event->range;
	uint64_t thread = thread_of(event), text = text_of(range->domain);

	if (!TAKE(rows, event, ROW_RANGES, thread, range->kind, text,
	          (uint64_t)range->context << 32 | range->stream))
		return false;
	rows->ranges[recent_ranges(event)] =
		(struct recent_ranges){ thread, text, range->kind + 1, range->context,
		                        range->stream };
	return true;
}

/* Instructions of a kernel, with each of the reasons. */
static bool take_stall(struct kept_rows *rows, const struct event *event)
{
	const struct stall *stall = event->stall;
	uint32_t process = event->process->id;

	return !stall->kernel ||
	       TAKE(rows, event, ROW_STALL, (uint64_t)process << 32 | stall->kernel->id,
	            stall->offset, stall->cubin, text_of(stall->reason));
}

static bool take(struct kept_rows *rows, const struct event *event)
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
	case EVENT_STALL:
		return take_stall(rows, event);
	default:
		return true;
	}
}

static __attribute__((noinline)) bool take_or_count(struct kept_rows *rows,
                                                    const struct event *event)
{
	bool taken = take(rows, event);

	rows->refused += !taken;
	return taken;
}

bool rows_take(struct kept_rows *rows, const struct event *event)
{
	return is_recent(rows, event) || take_or_count(rows, event);
}
