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
	uint64_t retired; /* rows of launches that were deleted, and not yet given back */
	UT_hash_handle hh;
};

/* The key of what stands for them in the ledgers. */
static inline struct ledger_process watched_ended(void)
{
	return (struct ledger_process){ 0 };
}

/* Made where it is new: then `process` is what its pid stands for now. */
struct watched *watcher_process(struct watcher *watcher, struct ledger_process key);

const struct watcher_options *watcher_options_of(const struct watcher *watcher);

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
int watch_memory_settle(struct watch_memory_part *part, struct ledger_process process);

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
void watch_launches_first(struct watch_launches_part *part, const struct wire_call *record);
void watch_launches_merge(struct watch_launches_part *part);
int watch_launches_settle(struct watch_launches_part *part, struct ledger_process process);
int watch_launches_page(struct watch_launches_part *part, const struct watch_launches **page);
void watch_launches_turn(struct watch_launches_part *part); /* the page was shown */

/* ---- copies -------------------------------------------------------------------------------- */

struct watch_copies_part;

struct watch_copies_part *watch_copies_new(struct watcher *watcher);
void watch_copies_free(struct watch_copies_part *part);
void watch_copies_merge(struct watch_copies_part *part);
int watch_copies_settle(struct watch_copies_part *part, struct ledger_process process);
int watch_copies_page(struct watch_copies_part *part, const struct watch_copies **page);
void watch_copies_turn(struct watch_copies_part *part);

#endif
