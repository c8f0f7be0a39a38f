/* SPDX-License-Identifier: MIT */
/* The inside of a watcher: its processes, the sums of all tools, and what only one of them has. */
#pragma once

#include <sys/queue.h>

#include "bpf/wire_fold.h"
#include "capture/watch/ledger.h"
#include "capture/watch/watcher.h"

/* A process that made a call that is summed up. */
struct watched {
	struct ledger_process key;
	const struct process *process;
	bool ended;
	bool merged;      /* it is about to be one of those that are not told apart */
	bool settling;    /* it has ended, and its sums are taken in for good */
	bool inside;      /* its calls are summed up here */
	uint64_t retired; /* rows of launches that were deleted, and not yet given back: of the */
	uint64_t retired_here; /* map, and of those that are added to here */
	struct watched *next;  /* with the same bits of its number: watcher.c */
	TAILQ_ENTRY(watched) in_ended;
	UT_hash_handle hh;
};

/* The key of what stands for them in the ledgers. */
static inline struct ledger_process watched_ended(void)
{
	return (struct ledger_process){ 0 };
}

/* Made where it is new: then `process` is what its pid stands for now. */
struct watched *watcher_process(struct watcher *watcher, struct ledger_process key);

/* The one that had the pid at this time, if it was met. */
struct watched *watcher_process_at(struct watcher *watcher, uint32_t pid, uint64_t time_ns);

/* A ledger_is_fn, of a watcher: those whose sums are taken in for good now. */
bool watcher_is_settling(void *watcher, struct ledger_process process);

/* The same of the process with this number. */
bool watcher_settles_number(const struct watcher *watcher, uint32_t number);

/* The first call of a row of launches. */
void watcher_first(struct watcher *watcher, const struct wire_call *call);

/* So many rows of launches of a process that goes on were deleted. */
void watcher_give_back(struct watcher *watcher, struct watched *process);

const struct watcher_options *watcher_options_of(const struct watcher *watcher);

/* ---- sums ---------------------------------------------------------------------------------- */

/* The programs' maps, in the order in which they are read. */
enum watch_sum {
	WATCH_SUM_MEMORY,
	WATCH_SUM_TOTALS,
	WATCH_SUM_FAILURES,
	WATCH_SUM_LAUNCHES,
	WATCH_SUM_COPIES,
	WATCH_SUM_RESULTS,
	WATCH_SUM_HOOKS,
	WATCH_SUMS
};

/* The counters of WATCH_SUM_TOTALS: those of the map, and what a process had at its end. */
struct watch_totals {
	struct fold_totals map;
	struct fold_count exit;
};

struct watch_sums;

struct watch_sums *watch_sums_new(struct watcher *watcher);
void watch_sums_free(struct watch_sums *sums);
struct ledger *watch_sums_ledger(struct watch_sums *sums, enum watch_sum sum); /* NULL: no tool */

int watch_sums_read(struct watch_sums *sums); /* 0 or a negative errno */
/* The rows of a page, of the type that watch.h has for them; until they are asked for again. */
void *watch_sums_rows(struct watch_sums *sums, enum watch_sum sum, size_t *n);
int watch_order_of_totals(const void *left, const void *right);
void watch_sums_page(struct watch_sums *sums, struct watch_page *page); /* copies to hooks */
void watch_sums_turn(struct watch_sums *sums);                          /* the page was shown */
void watch_sums_settle(struct watch_sums *sums);
/* Rows of merged processes become those of watched_ended(), but for launches. */
void watch_sums_merge(struct watch_sums *sums);
bool watch_sums_hooks_are_many(const struct watch_sums *sums);
/* The same for hooks of all processes that have ended. */
void watch_sums_merge_hooks(struct watch_sums *sums);

/* ---- calls that are sent (watch_calls.c) --------------------------------------------------- */

struct watch_calls;

struct watch_calls *watch_calls_new(struct watcher *watcher, struct watch_sums *sums);
void watch_calls_free(struct watch_calls *calls);

/* The programs send the calls of a process from now on. */
void watch_calls_marked(struct watch_calls *calls, uint32_t pid, uint64_t now_ns);

/* False: it is none that is summed up. */
bool watch_calls_add(struct watch_calls *calls, const struct wire_call *call);

void watch_calls_ended(struct watch_calls *calls, const struct watched *process);
void watch_calls_settle(struct watch_calls *calls);
void watch_calls_give_back(struct watch_calls *calls, const struct watched *process, uint64_t rows);
uint64_t watch_calls_lost_rows(const struct watch_calls *calls);

/* ---- memory -------------------------------------------------------------------------------- */

struct watch_memory_part;

struct watch_memory_part *watch_memory_new(struct watcher *watcher, struct watch_sums *sums);
void watch_memory_free(struct watch_memory_part *part);

/* What the programs' number of a stack means in a process; NULL: there was no room for it. */
void watch_memory_stack(struct watch_memory_part *part, const struct process *process, uint64_t id,
                        const struct stack *stack);

void watch_memory_settle(struct watch_memory_part *part); /* after watch_sums_settle() */

/* From now on memory of stacks that no allocation needs is given back, at turns between pages. */
struct sampler;
void watch_memory_renews(struct watch_memory_part *part, struct sampler *sampler);
void watch_memory_turn(struct watch_memory_part *part, uint64_t now_ns);

/* Valid until the next call. */
int watch_memory_page(struct watch_memory_part *part, uint64_t now_ns,
                      const struct watch_memory **page);

/* Adds allocations up by place; the places with the most bytes come first. The caller frees them.
 */
struct watch_place *watch_places_of(const struct watch_allocation *allocations, size_t n,
                                    uint64_t older_ns, uint64_t now_ns, size_t *n_places);

/* ---- launches ------------------------------------------------------------------------------ */

struct watch_launches_part;

struct watch_launches_part *watch_launches_new(struct watcher *watcher, struct watch_sums *sums);
void watch_launches_free(struct watch_launches_part *part);
void watch_launches_first(struct watch_launches_part *part, const struct wire_call *record);
void watch_launches_merge(struct watch_launches_part *part);
void watch_launches_generation(
	struct watch_launches_part *part); /* the sums are about to be read */
const struct watch_launches *watch_launches_page(struct watch_launches_part *part);
void watch_launches_turn(struct watch_launches_part *part); /* after watch_sums_turn() */
