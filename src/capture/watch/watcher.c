// SPDX-License-Identifier: MIT
#include "capture/watch/watcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "capture/watch/watch_parts.h"
#include "probe/fold.h"

#define ENDED_MAX 1024 /* processes that have ended and are told apart */

struct watcher {
	struct watcher_options options;
	struct watched *processes;
	struct watch_memory_part *memory;
	struct watch_launches_part *launches;
	struct watch_copies_part *copies;
	struct watch_calls *calls; /* NULL: all are summed up in the kernel */
	uint64_t pages, begin_ns, before_ns;
	int64_t realtime_offset_ns;
};

static bool tool_wanted(const struct watcher *watcher, enum watch_tool tool)
{
	return watcher->options.watch->tools & tool;
}

static struct watch_calls *new_calls(struct watcher *watcher)
{
	struct watch_ledgers ledgers = { 0 };

	if (watcher->launches)
		ledgers.launches = watch_launches_ledger(watcher->launches);
	if (watcher->copies)
		ledgers.copies = watch_copies_ledger(watcher->copies);
	return watch_calls_new(watcher, &ledgers);
}

struct watcher *watcher_new(const struct watcher_options *options)
{
	struct watcher *watcher = xcalloc(1, sizeof(*watcher));

	watcher->options = *options;
	if (tool_wanted(watcher, WATCH_MEMORY))
		watcher->memory = watch_memory_new(watcher);
	if (tool_wanted(watcher, WATCH_LAUNCHES))
		watcher->launches = watch_launches_new(watcher);
	if (tool_wanted(watcher, WATCH_COPIES))
		watcher->copies = watch_copies_new(watcher);
	if (options->inside)
		watcher->calls = new_calls(watcher);
	return watcher;
}

void watcher_free(struct watcher *watcher)
{
	struct watched *process, *next;

	if (!watcher)
		return;
	watch_calls_free(watcher->calls);
	watch_memory_free(watcher->memory);
	watch_launches_free(watcher->launches);
	watch_copies_free(watcher->copies);
	HASH_ITER (hh, watcher->processes, process, next) {
		HASH_DEL(watcher->processes, process);
		free(process);
	}
	free(watcher);
}

void watcher_begin(struct watcher *watcher, const struct run_info *run)
{
	watcher->begin_ns = watcher->before_ns = run->begin_ns;
	watcher->realtime_offset_ns = run->realtime_offset_ns;
}

const struct watcher_options *watcher_options_of(const struct watcher *watcher)
{
	return &watcher->options;
}

/* ---- processes ----------------------------------------------------------------------------- */

struct watched *watcher_process(struct watcher *watcher, struct ledger_process key)
{
	struct watched *process;

	HASH_FIND(hh, watcher->processes, &key, sizeof(key), process);
	if (process)
		return process;
	process = xcalloc(1, sizeof(*process));
	process->key = key;
	process->process = pipeline_process(watcher->options.pipeline, (uint32_t)key.tgid);
	HASH_ADD(hh, watcher->processes, key, sizeof(process->key), process);
	return process;
}

struct watched *watcher_process_at(struct watcher *watcher, uint32_t pid, uint64_t time_ns)
{
	struct watched *found = NULL;

	for (struct watched *p = watcher->processes; p; p = p->hh.next) {
		if (p->key.tgid == pid && p->key.born_ns <= time_ns &&
		    (!found || p->key.born_ns > found->key.born_ns))
			found = p;
	}
	return found;
}

void watcher_marked(struct watcher *watcher, pid_t pid, uint64_t now_ns)
{
	if (watcher->calls)
		watch_calls_marked(watcher->calls, (uint32_t)pid, now_ns);
}

void watcher_give_back(struct watcher *watcher, struct watched *process)
{
	if (process->retired)
		fold_give_back(watcher->options.programs, process->key.born_ns,
		               (uint32_t)process->key.tgid, FOLD_SHARE_LAUNCHES, process->retired);
	if (process->retired_here)
		watch_calls_give_back(watcher->calls, process, process->retired_here);
	process->retired = process->retired_here = 0;
}

static void ended_process(struct watcher *watcher)
{
	const struct ledger_process key = watched_ended();
	struct watched *process;

	HASH_FIND(hh, watcher->processes, &key, sizeof(key), process);
	if (process)
		return;
	process = xcalloc(1, sizeof(*process));
	process->key = key;
	process->ended = true;
	process->process = pipeline_ended(watcher->options.pipeline);
	HASH_ADD(hh, watcher->processes, key, sizeof(process->key), process);
}

/* Forgets the graph captures that a process left open. */
static void close_captures(struct watcher *watcher, const struct watched *process)
{
	struct programs *programs = watcher->options.programs;
	struct fold_table table;

	if (watcher->launches || watcher->copies) {
		fold_read(programs, "fold_open_captures", 8, sizeof(struct fold_open_capture),
		          &table);
		for (size_t i = 0; i < table.count; i++) {
			const struct fold_open_capture *open =
				(const struct fold_open_capture *)table.values + i;

			if (open->born_ns != process->key.born_ns ||
			    open->tgid != process->key.tgid)
				continue;
			fold_close_capture(programs, ((const uint64_t *)table.keys)[i]);
		}
		fold_table_free(&table);
	}
}

/* Drops a process's own sums where memory is not watched: no page shows them. */
static void forget_process(struct watcher *watcher, const struct watched *process)
{
	const struct fold_process_key key = { .born_ns = process->key.born_ns,
		                              .tgid = process->key.tgid };

	if (!watcher->memory)
		fold_delete(watcher->options.programs, "fold_processes", &key);
}

/*
 * Takes in what a process did, while its kernels still have names. Threads that end at the same
 * time may each tell the end of their process. An earlier one does so before a later one has put
 * back the free that it was in. So each time what came since is taken in.
 */
static void process_ended(struct watcher *watcher, const struct wire_head *record)
{
	for (struct watched *p = watcher->processes; p; p = p->hh.next) {
		if (p->key.tgid != record->tgid || p->key.born_ns > record->time_ns)
			continue;
		p->ended = true;
		if (watcher->launches)
			watch_launches_settle(watcher->launches, p->key);
		if (watcher->copies)
			watch_copies_settle(watcher->copies, p->key);
		if (watcher->memory)
			watch_memory_settle(watcher->memory, p->key);
		if (watcher->calls)
			watch_calls_ended(watcher->calls, p);
		close_captures(watcher, p);
		forget_process(watcher, p);
	}
}

void watcher_first(struct watcher *watcher, const struct wire_call *call)
{
	if (watcher->launches)
		watch_launches_first(watcher->launches, call);
}

/* True: it is in the sums. */
static bool on_call(struct watcher *watcher, const struct wire_call *call)
{
	if (!(call->head.flags & WIRE_FOLDED))
		return watcher->calls && watch_calls_add(watcher->calls, call);
	watcher_first(watcher, call);
	return true;
}

bool watcher_before(struct watcher *watcher, const struct wire_head *record)
{
	switch (record->type) {
	case WIRE_EXIT:
	case WIRE_EXEC:
		process_ended(watcher, record);
		return false;
	case WIRE_CALL:
		return on_call(watcher, (const struct wire_call *)record);
	}
	return false;
}

void watcher_stack(struct watcher *watcher, uint32_t tgid, uint64_t id, const struct stack *stack)
{
	if (watcher->memory)
		watch_memory_stack(watcher->memory,
		                   pipeline_process(watcher->options.pipeline, tgid), id, stack);
}

/*
 * The first hit of a thread: the pipeline knows its process by now. A page may have met it before
 * in a map, when what its pid stood for was still the program before an exec.
 */
void watcher_after(struct watcher *watcher, const struct wire_head *record)
{
	const struct wire_process *thread = (const struct wire_process *)record;
	struct watched *process;

	if (record->type != WIRE_THREAD)
		return;
	process =
		watcher_process(watcher, (struct ledger_process){ thread->born_ns, record->tgid });
	if (!process->ended)
		process->process = pipeline_process(watcher->options.pipeline, record->tgid);
}

/* A watch that runs for months does not grow with what has ended in it. */
static void merge_ended(struct watcher *watcher)
{
	struct watched *process, *next;
	size_t ended = 0;

	for (process = watcher->processes; process; process = process->hh.next)
		ended += process->ended;
	if (ended <= ENDED_MAX)
		return;
	ended_process(watcher);
	HASH_ITER (hh, watcher->processes, process, next) {
		if (!process->ended || !process->key.tgid || ended <= ENDED_MAX / 2)
			continue;
		process->merged = true;
		ended--;
	}
	if (watcher->launches)
		watch_launches_merge(watcher->launches);
	if (watcher->copies)
		watch_copies_merge(watcher->copies);
	if (watcher->memory)
		watch_memory_merge(watcher->memory);
	HASH_ITER (hh, watcher->processes, process, next) {
		if (!process->merged)
			continue;
		HASH_DEL(watcher->processes, process);
		free(process);
	}
}

/* ---- pages --------------------------------------------------------------------------------- */

static int read_sums(struct watcher *watcher, struct watch_page *page)
{
	int r = 0;

	if (watcher->memory)
		r = watch_memory_page(watcher->memory, page->time_ns, &page->memory);
	if (!r && watcher->launches)
		r = watch_launches_page(watcher->launches, &page->launches);
	if (!r && watcher->copies)
		r = watch_copies_page(watcher->copies, &page->copies);
	return r;
}

static int make_page(struct watcher *watcher, uint64_t now_ns, const struct run_info *run,
                     struct err *err)
{
	const struct wire_state *state = programs_state(watcher->options.programs);
	const struct watch_options *watch = watcher->options.watch;
	uint64_t lost[LOST_COUNT] = { 0 };
	struct watch_page page = { .number = ++watcher->pages,
		                   .last = run != NULL,
		                   .time_ns = now_ns,
		                   .begin_ns = watcher->begin_ns,
		                   .before_ns = watcher->before_ns,
		                   .realtime_offset_ns = watcher->realtime_offset_ns,
		                   .lost_rows = state->lost_rows,
		                   .lost = lost };
	int r = read_sums(watcher, &page);

	if (r)
		return err_set(err, r, "reading what the kernel summed up: %s", strerror(-r));
	programs_lost(watcher->options.programs, lost);
	if (watcher->options.lost)
		watcher->options.lost(watcher->options.data, lost);
	if (watcher->calls)
		page.lost_rows += watch_calls_lost_rows(watcher->calls);
	if (run) {
		page.misses = run->misses;
		page.n_misses = run->n_misses;
	}
	watcher->before_ns = now_ns;
	r = watch->page(watch->data, &page, err);
	if (watcher->launches)
		watch_launches_turn(watcher->launches);
	if (watcher->copies)
		watch_copies_turn(watcher->copies);
	if (!page.last)
		merge_ended(watcher);
	return r;
}

int watcher_tick(struct watcher *watcher, uint64_t now_ns, struct err *err)
{
	if (now_ns < watcher->before_ns ||
	    now_ns - watcher->before_ns < watcher->options.watch->interval_ns)
		return 0;
	return make_page(watcher, now_ns, NULL, err);
}

int watcher_end(struct watcher *watcher, const struct run_info *run, struct err *err)
{
	return make_page(watcher, run->end_ns, run, err);
}
