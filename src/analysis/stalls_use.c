// SPDX-License-Identifier: MIT
#include "analysis/stalls_use.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "base/number.h"
#include "base/order.h"
#include "base/vec.h"

/* Rows of one file are as many as its reader lets through (trace/rows.c); of a live capture and of
 * several files no more than these. */
#define ROWS_MOST    (1u << 19)
#define TEXTS_MOST   (1u << 16)
#define WINDOWS_MOST (1u << 18)
#define WAITS_AT_ALL 10 /* a part of a kernel\'s samples */

/* A kernel's name, a reason or a file, with a number. */
struct text {
	uint32_t number;
	uint64_t samples; /* of a kernel */
	UT_hash_handle hh;
	char text[];
};

struct texts {
	struct text *all, **by_number;
	size_t n;
};

struct sum {
	struct sum_key {
		uint64_t cubin, offset;
		uint32_t kernel, reason;
	} key;
	uint64_t samples;
	uint32_t file, line; /* file: of its number one more */
	UT_hash_handle hh;
};

struct window {
	struct window_key {
		uint64_t begin_ns, process;
	} key;
	uint64_t cost_ns;
	UT_hash_handle hh;
};

struct stalls_use {
	struct texts kernels, reasons, files;
	struct sum *sums;
	struct stalls_all all;
	struct window *windows; /* that may have more than one event */
};

struct stalls_use *stalls_use_new(void)
{
	return xcalloc(1, sizeof(struct stalls_use));
}

static void texts_free(struct texts *texts)
{
	MAP_FREE(texts->all, free);
	free(texts->by_number);
}

void stalls_use_free(struct stalls_use *use)
{
	if (!use)
		return;
	texts_free(&use->kernels);
	texts_free(&use->reasons);
	texts_free(&use->files);
	MAP_FREE(use->sums, free);
	MAP_FREE(use->windows, free);
	free(use);
}

/* ---- adding -------------------------------------------------------------------------------- */

/* NULL: there is no room. */
static struct text *text_of(struct texts *texts, const char *text)
{
	size_t bytes = strlen(text);
	struct text *known = MAP_FIND_TEXT(texts->all, text);

	if (known || texts->n == TEXTS_MOST)
		return known;
	known = xcalloc(1, sizeof(*known) + bytes + 1);
	memcpy(known->text, text, bytes);
	known->number = (uint32_t)texts->n;
	HASH_ADD_KEYPTR(hh, texts->all, known->text, bytes, known);
	*VEC_ADD(texts->by_number, texts->n) = known;
	return known;
}

static struct sum *sum_of(struct stalls_use *use, const struct stall *stall)
{
	struct text *kernel = text_of(&use->kernels, stall->kernel->name);
	struct text *reason = text_of(&use->reasons, stall->reason);
	struct sum_key key = { .cubin = stall->cubin, .offset = stall->offset };
	struct sum *sum;

	if (!kernel || !reason)
		return NULL;
	key.kernel = kernel->number;
	key.reason = reason->number;
	sum = MAP_FIND(use->sums, &key);
	if (!sum && HASH_COUNT(use->sums) < ROWS_MOST)
		sum = MAP_ADD(use->sums, key, &key);
	if (sum)
		number_add(&kernel->samples, stall->samples);
	return sum;
}

/* The rest of a window may come after another process's next one. */
static void add_window(struct stalls_use *use, const struct event *event)
{
	const struct stall *stall = event->stall;
	struct window_key key = { stall->begin_ns, event->process->id };
	struct window *window = MAP_FIND(use->windows, &key);

	if (!window && HASH_COUNT(use->windows) < WINDOWS_MOST) {
		window = MAP_ADD(use->windows, key, &key);
		use->all.windows++;
		number_add(&use->all.ns,
		           stall->end_ns > stall->begin_ns ? stall->end_ns - stall->begin_ns : 0);
	}
	if (window && stall->cost_ns > window->cost_ns) {
		number_add(&use->all.cost_ns, stall->cost_ns - window->cost_ns);
		window->cost_ns = stall->cost_ns;
	}
	number_add(&use->all.dropped, stall->dropped);
	number_add(&use->all.foreign, stall->foreign);
}

void stalls_use_add(struct stalls_use *use, const struct event *event)
{
	const struct stall *stall = event->stall;
	struct sum *sum;

	if (!stall->kernel) {
		add_window(use, event);
		return;
	}
	number_add(&use->all.samples, stall->samples);
	sum = sum_of(use, stall);
	if (!sum) {
		number_add(&use->all.left_out, stall->samples);
		return;
	}
	number_add(&sum->samples, stall->samples);
	if (stall->file && !sum->file) {
		const struct text *file = text_of(&use->files, stall->file);

		sum->file = file ? file->number + 1 : 0;
		sum->line = stall->line;
	}
}

const struct stalls_all *stalls_use_all(const struct stalls_use *use)
{
	return &use->all;
}

/* ---- rows ---------------------------------------------------------------------------------- */

ORDER_POINTERS_BY(by_kernel_and_place, struct sum, UP(key.kernel), UP(key.cubin), UP(key.offset),
                  DOWN(samples), UP(key.reason));
ORDER_POINTERS_BY(by_kernel_and_reason, struct sum, UP(key.kernel), UP(key.reason));
ORDER_BY(reasons_most_first, struct stall_row, DOWN(of_kernel), BY_TEXT(kernel), DOWN(samples),
         BY_TEXT(reason));
ORDER_BY(places_most_first, struct stall_row, DOWN(samples), BY_TEXT(kernel), UP(offset),
         UP(cubin));

static const struct sum **sorted(const struct stalls_use *use,
                                 int (*order)(const void *, const void *), size_t *n)
{
	const struct sum **all = xcalloc(HASH_COUNT(use->sums) + 1, sizeof(*all));
	struct sum *sum, *next;

	*n = 0;
	HASH_ITER (hh, use->sums, sum, next)
		all[(*n)++] = sum;
	SORT(all, *n, order);
	return all;
}

static bool is_same_reason(const struct sum *a, const struct sum *b)
{
	return a->key.kernel == b->key.kernel && a->key.reason == b->key.reason;
}

static bool is_same_place(const struct sum *a, const struct sum *b)
{
	return a->key.kernel == b->key.kernel && a->key.cubin == b->key.cubin &&
	       a->key.offset == b->key.offset;
}

/* Sums that are the same are one row, which says of the first what it has beside samples. */
static struct stall_row *rows_of(const struct stalls_use *use,
                                 int (*order)(const void *, const void *),
                                 bool (*is_same)(const struct sum *a, const struct sum *b),
                                 size_t *n)
{
	size_t n_sums;
	AT_END(at_end_free) const struct sum **sums = sorted(use, order, &n_sums);
	struct stall_row *rows = xcalloc(n_sums + 1, sizeof(*rows));

	*n = 0;
	for (size_t i = 0; i < n_sums; i++) {
		const struct sum *sum = sums[i];
		const struct text *kernel = use->kernels.by_number[sum->key.kernel];

		if (i && is_same(sums[i - 1], sum)) {
			number_add(&rows[*n - 1].samples, sum->samples);
			continue;
		}
		rows[(*n)++] = (struct stall_row){
			.kernel = kernel->text,
			.reason = use->reasons.by_number[sum->key.reason]->text,
			.samples = sum->samples,
			.of_kernel = kernel->samples,
			.cubin = sum->key.cubin,
			.offset = sum->key.offset,
			.of_reason = sum->samples,
			.file = sum->file ? use->files.by_number[sum->file - 1]->text : NULL,
			.line = sum->line,
		};
	}
	return rows;
}

struct stall_row *stalls_use_reasons(const struct stalls_use *use, size_t *n)
{
	struct stall_row *rows = rows_of(use, by_kernel_and_reason, is_same_reason, n);

	SORT(rows, *n, reasons_most_first);
	return rows;
}

/* Of a place the reason with most samples comes first. */
struct stall_row *stalls_use_places(const struct stalls_use *use, size_t *n)
{
	struct stall_row *rows = rows_of(use, by_kernel_and_place, is_same_place, n);

	SORT(rows, *n, places_most_first);
	return rows;
}

/* ---- one kernel ---------------------------------------------------------------------------- */

static bool reason_waits(const char *name);

static bool find_reason(const struct stalls_use *use, const char *kernel, struct stall_row *longest)
{
	size_t n;
	struct stall_row *rows = stalls_use_reasons(use, &n);

	memset(longest, 0, sizeof(*longest));
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(rows[i].kernel, kernel) && reason_waits(rows[i].reason) &&
		    rows[i].samples > longest->samples)
			*longest = rows[i];
	}
	free(rows);
	return longest->samples && longest->samples >= longest->of_kernel / WAITS_AT_ALL;
}

static void find_place(const struct stalls_use *use, const struct stall_row *row,
                       struct stall_row *place)
{
	size_t n;
	struct stall_row *rows = stalls_use_places(use, &n);

	*place = (struct stall_row){ .offset = STALL_ANYWHERE };
	for (size_t i = 0; i < n; i++) {
		if (rows[i].offset != STALL_ANYWHERE && rows[i].of_reason > place->of_reason &&
		    !strcmp(rows[i].kernel, row->kernel) && !strcmp(rows[i].reason, row->reason))
			*place = rows[i];
	}
	free(rows);
}

bool stalls_use_longest(const struct stalls_use *use, const char *kernel, struct stall_row *row,
                        struct stall_row *place)
{
	if (!find_reason(use, kernel, row))
		return false;
	find_place(use, row, place);
	return true;
}

/* ---- words --------------------------------------------------------------------------------- */

static const struct reason {
	const char *name, *words;
	bool issues; /* it did not wait */
} reasons[] = {
	{ "selected", "is issued", true },
	{ "not_selected", "could be issued, as another is", true },
	{ "barrier", "waits for its block at a barrier" },
	{ "branch_resolving", "waits for a branch" },
	{ "dispatch_stall", "waits for the dispatcher" },
	{ "drain", "waits for its writes before it ends" },
	{ "gmma", "waits for the tensor cores" },
	{ "imc_miss", "waits for constants" },
	{ "lg_throttle", "waits for room for accesses of memory" },
	{ "long_scoreboard", "waits for memory" },
	{ "math_pipe_throttle", "waits for an arithmetic unit" },
	{ "membar", "waits for a memory fence" },
	{ "mio_throttle", "waits for room for accesses of shared memory" },
	{ "misc", "waits" },
	{ "no_instruction", "waits for instructions" },
	{ "no_instructions", "waits for instructions" },
	{ "short_scoreboard", "waits for shared memory" },
	{ "sleeping", "sleeps" },
	{ "tex_throttle", "waits for room for accesses of textures" },
	{ "wait", "waits for its last instruction" },
	{ "warpgroup_arrive", "waits for its warpgroup" },
};

static const struct reason *reason_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (!strcmp(reasons[i].name, name))
			return &reasons[i];
	}
	return NULL;
}

const char *stall_reason_words(const char *name)
{
	const struct reason *reason = reason_find(name);

	return reason ? reason->words : "waits";
}

static bool reason_waits(const char *name)
{
	const struct reason *reason = reason_find(name);

	return !reason || !reason->issues;
}
