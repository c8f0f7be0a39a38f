/* SPDX-License-Identifier: MIT */
/* The inside of a watcher: its processes, and one part for each tool. */
#ifndef CUSCOPE_CAPTURE_WATCH_WATCH_PARTS_H
#define CUSCOPE_CAPTURE_WATCH_WATCH_PARTS_H

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

/* ---- calls that are sent (watch_calls.c) --------------------------------------------------- */

struct watch_calls;

/* Of the tools that are wanted; else NULL. */
struct watch_ledgers {
	struct ledger *launches, *copies;
};

struct watch_calls *watch_calls_new(struct watcher *watcher, const struct watch_ledgers *ledgers);
void watch_calls_free(struct watch_calls *calls);

/* The programs send the calls of a process from now on. */
void watch_calls_marked(struct watch_calls *calls, uint32_t pid, uint64_t now_ns);

/* False: it is none that is summed up. */
bool watch_calls_add(struct watch_calls *calls, const struct wire_call *call);

void watch_calls_ended(struct watch_calls *calls, const struct watched *process);
void watch_calls_give_back(struct watch_calls *calls, const struct watched *process, uint64_t rows);
uint64_t watch_calls_lost_rows(const struct watch_calls *calls);

/* ---- memory -------------------------------------------------------------------------------- */

struct watch_memory_part;

struct watch_memory_part *watch_memory_new(struct watcher *watcher);
void watch_memory_free(struct watch_memory_part *part);

/* What the programs' number of a stack means in a process; NULL: there was no room for it. */
void watch_memory_stack(struct watch_memory_part *part, const struct process *process, uint64_t id,
                        const struct stack *stack);

/* Rows of merged processes become those of watched_ended(); with the page that was shown
 * last gone. */
void watch_memory_merge(struct watch_memory_part *part);
int watch_memory_settle(struct watch_memory_part *part);

/* Valid until the next call. */
int watch_memory_page(struct watch_memory_part *part, uint64_t now_ns,
                      const struct watch_memory **page);

/* Adds allocations up by place; the places with the most bytes come first. The caller frees them.
 */
struct watch_place *watch_places_of(const struct watch_allocation *allocations, size_t n,
                                    uint64_t older_ns, uint64_t now_ns, size_t *n_places);

/* ---- launches ------------------------------------------------------------------------------ */

struct watch_launches_part;

struct watch_launches_part *watch_launches_new(struct watcher *watcher);
void watch_launches_free(struct watch_launches_part *part);
struct ledger *watch_launches_ledger(struct watch_launches_part *part);
void watch_launches_first(struct watch_launches_part *part, const struct wire_call *record);
void watch_launches_merge(struct watch_launches_part *part);
int watch_launches_settle(struct watch_launches_part *part);
int watch_launches_page(struct watch_launches_part *part, const struct watch_launches **page);
void watch_launches_turn(struct watch_launches_part *part); /* the page was shown */

/* ---- copies -------------------------------------------------------------------------------- */

struct watch_copies_part;

struct watch_copies_part *watch_copies_new(struct watcher *watcher);
void watch_copies_free(struct watch_copies_part *part);
struct ledger *watch_copies_ledger(struct watch_copies_part *part);
void watch_copies_merge(struct watch_copies_part *part);
int watch_copies_settle(struct watch_copies_part *part);
int watch_copies_page(struct watch_copies_part *part, const struct watch_copies **page);
void watch_copies_turn(struct watch_copies_part *part);

/* ---- hooks ------------------------------------------------------------------------------------
 */

struct watch_hooks_part;

struct watch_hooks_part *watch_hooks_new(struct watcher *watcher);
void watch_hooks_free(struct watch_hooks_part *part);
/* Rows of merged processes become those of watched_ended(); with `all`, of all that have ended. */
void watch_hooks_merge(struct watch_hooks_part *part, bool all);
bool watch_hooks_are_many(const struct watch_hooks_part *part); /* they are to be merged */
int watch_hooks_settle(struct watch_hooks_part *part);
int watch_hooks_page(struct watch_hooks_part *part, const struct watch_hooks **page);
void watch_hooks_turn(struct watch_hooks_part *part); /* the page was shown */

/* ---- results ------------------------------------------------------------------------------- */

struct watch_results_part;

struct watch_results_part *watch_results_new(struct watcher *watcher);
void watch_results_free(struct watch_results_part *part);
void watch_results_merge(struct watch_results_part *part);
int watch_results_settle(struct watch_results_part *part);
int watch_results_page(struct watch_results_part *part, const struct watch_results **page);
void watch_results_turn(struct watch_results_part *part); /* the page was shown */

#endif
