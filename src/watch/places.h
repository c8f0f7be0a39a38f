/* SPDX-License-Identifier: MIT */
/*
 * Memory that is live, by the place that allocated it, over the pages of a watch.
 *
 * Live is not leaked: nobody but the program knows whether it will still use what it holds. What
 * can be seen is how old memory is, and whether a place holds more of it every time one looks. So
 * each place has a trend. It is made from the memory older than watch_options.older_ns, which the
 * come and go of short-lived memory does not touch.
 *
 * A place is what made the allocation: process, kind of memory, CUDA function, and what
 * analysis/place.h calls the place of its stack; or, if wanted, the whole stack.
 *
 *   places_take() for each page, then places_list().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/memory_beyond.h"
#include "analysis/place.h"
#include "capture/watch/watch.h"

/* Intervals that a trend is made from. */
#define PLACES_TREND 3

enum trend {
	TREND_NEW,     /* fewer than that many intervals are known */
	TREND_STEADY,  /* the same bytes in all of them */
	TREND_VARYING, /* fewer bytes than before in one of them */
	TREND_GROWING, /* more bytes than before in one of them at least, fewer in none */
	TREND_SUSPECT, /* more bytes in each of them */
	TREND_COUNT,
};

const char *trend_text(enum trend trend);

struct held_place {
	const struct process *process;
	bool ended; /* the process, with this not freed */
	enum api_memory kind;
	const struct function *function; /* of CUDA; NULL: not known */
	const struct stack *stack;       /* that with the most bytes; NULL: none is known */
	const struct stack_frame *frame; /* its place */
	size_t stacks;                   /* that came together here */
	uint64_t count, bytes;           /* live */
	uint64_t older_count, older_bytes;
	uint64_t oldest_ns; /* when it was allocated */
	enum trend trend;
	unsigned grew;       /* intervals, up to the last, in each of which it held more */
	int64_t grown_bytes; /* older_bytes, since the page before */
};

struct held_process {
	const struct watch_process_memory *memory;
	const struct watch_memory_totals *totals; /* its own, by kind */
	size_t n_totals;
	int64_t grown_bytes;         /* live, since the page before */
	uint64_t failed_since;       /* allocations, since the page before */
	struct watch_count unfreed;  /* ended: what it had not freed, all kinds but MEMORY_VMM_VA */
	struct memory_beyond beyond; /* of this page; nothing told: NVML did not */
};

struct places;

struct places *places_new(bool by_stack);
void places_free(struct places *places);

/*
 * Takes in a page, and what NVML tells now (NULL: nothing). What it told before the first page, if
 * that was asked for in time, is taken by places_begin(): those processes are older than the watch.
 */
struct gpus_sample;
void places_begin(struct places *places, const struct gpus_sample *gpus);
void places_take(struct places *places, const struct watch_page *page,
                 const struct gpus_sample *gpus);

/* Forgets those that have ended: they are told of again if a page has them, but not at the last. */
void places_forget_ended(struct places *places);

/*
 * The places of that page, those with the most memory older than asked for first. Then come those
 * of processes whose end this page is the first to tell. The last page tells of all that ended (of
 * 1,024 places). Valid until the next page.
 */
size_t places_list(const struct places *places, const struct held_place **list);

/* The processes of that page in its order; one that has ended is there once more, and at last. */
size_t places_processes(const struct places *places, const struct held_process **list);
