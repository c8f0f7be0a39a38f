// SPDX-License-Identifier: MIT
#include "capture/watch/watcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "capture/watch/watch_parts.h"
#include "probe/fold.h"

#define ENDED_MAX   1024 /* processes that have ended and are told apart */
#define SLOTS       1024 /* a power of two */
#define SETTLE_PART 20   /* of the time, that goes into what processes did that ended: 5 % */

struct watcher {
	struct watcher_options options;
	struct watched *processes;
	struct watched *slots[SLOTS]; /* the same by the number of the process */
	TAILQ_HEAD(, watched) ended;  /* in the order of their ends */
	size_t n_ended;
	uint32_t *settled; /* numbers of those that are `settling`, in order */
	size_t n_settled;
	struct watch_sums *sums;
	struct watch_memory_part *memory;     /* NULL: not watched */
	struct watch_launches_part *launches; /* the same */
	struct watch_calls *calls;            /* NULL: all are summed up in the kernel */
	bool to_settle;                       /* processes are `settling` */
	uint64_t settle_ns;                   /* when to take them in at the earliest */
	uint64_t pages, begin_ns, before_ns;
	int64_t realtime_offset_ns;
};

struct watcher *watcher_new(const struct watcher_options *options)
{
	struct watcher *watcher = xcalloc(1, sizeof(*watcher));
	unsigned tools = options->watch->tools;

	watcher->options = *options;
	TAILQ_INIT(&watcher->ended);
	watcher->sums = watch_sums_new(watcher);
	if (tools & WATCH_MEMORY)
		watcher->memory = watch_memory_new(watcher, watcher->sums);
	if (tools & WATCH_LAUNCHES)
		watcher->launches = watch_launches_new(watcher, watcher->sums);
	if (options->inside)
		watcher->calls = watch_calls_new(watcher, watcher->sums);
	return watcher;
}

void watcher_free(struct watcher *watcher)
{
	if (!watcher)
		return;
	watch_calls_free(watcher->calls);
	watch_memory_free(watcher->memory);
	watch_launches_free(watcher->launches);
	watch_sums_free(watcher->sums);
	MAP_FREE(watcher->processes, free);
	free(watcher->settled);
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

static struct watched **slot_of(struct watcher *watcher, uint32_t pid)
{
	return &watcher->slots[pid & (SLOTS - 1)];
}

static struct watched *add_process(struct watcher *watcher, struct ledger_process key,
                                   const struct process *stands_for)
{
	struct watched **slot = slot_of(watcher, (uint32_t)key.tgid);
	struct watched *process = MAP_ADD(watcher->processes, key, &key);

	process->process = stands_for;
	process->next = *slot;
	*slot = process;
	return process;
}

static void drop_process(struct watcher *watcher, struct watched *process)
{
	struct watched **at = slot_of(watcher, (uint32_t)process->key.tgid);

	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
	MAP_DROP(watcher->processes, process);
}

struct watched *watcher_process(struct watcher *watcher, struct ledger_process key)
{
	struct watched *process = MAP_FIND(watcher->processes, &key);

	if (process)
		return process;
	return add_process(watcher, key,
	                   pipeline_process(watcher->options.pipeline, (uint32_t)key.tgid));
}

struct watched *watcher_process_at(struct watcher *watcher, uint32_t pid, uint64_t time_ns)
{
	struct watched *found = NULL;

	for (struct watched *p = *slot_of(watcher, pid); p; p = p->next) {
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
	struct watched *process = MAP_FIND(watcher->processes, &key);

	if (process)
		return;
	process = add_process(watcher, key, pipeline_ended(watcher->options.pipeline));
	process->ended = true;
}

bool watcher_is_settling(void *data, struct ledger_process key)
{
	struct watcher *watcher = data;
	struct watched *process = MAP_FIND(watcher->processes, &key);

	return process && process->settling;
}

ORDER_BY(by_number, uint32_t, ORDER_OF(*a, *b));

bool watcher_settles_number(const struct watcher *watcher, uint32_t number)
{
	return watcher->n_settled &&
	       bsearch(&number, watcher->settled, watcher->n_settled, sizeof(number), by_number);
}

static void note_settled(struct watcher *watcher)
{
	watcher->n_settled = 0;
	watcher->settled = xrealloc(watcher->settled, (HASH_COUNT(watcher->processes) + 1) *
	                                                      sizeof(*watcher->settled));
	for (const struct watched *p = watcher->processes; p; p = p->hh.next) {
		if (p->settling)
			watcher->settled[watcher->n_settled++] = p->process->id;
	}
	qsort(watcher->settled, watcher->n_settled, sizeof(*watcher->settled), by_number);
}

/* Forgets the graph captures that processes left open. */
static void close_captures(struct watcher *watcher)
{
	struct programs *programs = watcher->options.programs;
	struct fold_table table;

	if (!(watcher->options.watch->tools & (WATCH_LAUNCHES | WATCH_COPIES)))
		return;
	fold_read(programs, "fold_open_captures", 8, sizeof(struct fold_open_capture), &table);
	for (size_t i = 0; i < table.count; i++) {
		const struct fold_open_capture *open =
			(const struct fold_open_capture *)table.values + i;

		if (watcher_is_settling(watcher,
		                        (struct ledger_process){ open->born_ns, open->tgid }))
			fold_close_capture(programs, ((const uint64_t *)table.keys)[i]);
	}
	fold_table_free(&table);
}

/* Drops a process's own sums where memory is not watched: no page shows them. */
static void forget_process(struct watcher *watcher, const struct watched *process)
{
	const struct fold_process_key key = { .born_ns = process->key.born_ns,
		                              .tgid = process->key.tgid };

	if (!watcher->memory)
		fold_delete(watcher->options.programs, "fold_processes", &key);
}

/* Of any number of processes that come and go and have thousands of hooks between two pages. */
static void merge_hooks(struct watcher *watcher)
{
	if (!watch_sums_hooks_are_many(watcher->sums))
		return;
	ended_process(watcher);
	watch_sums_merge_hooks(watcher->sums);
}

/*
 * Takes in what those did that are `settling`: each map is read once for all of them. That takes
 * milliseconds, and thousands of processes may end within a second.
 */
static void settle(struct watcher *watcher)
{
	uint64_t begin_ns = clock_now_ns(), end_ns;

	note_settled(watcher);
	watch_sums_settle(watcher->sums);
	if (watcher->memory)
		watch_memory_settle(watcher->memory);
	merge_hooks(watcher);
	if (watcher->calls)
		watch_calls_settle(watcher->calls);
	close_captures(watcher);
	for (struct watched *p = watcher->processes; p; p = p->hh.next) {
		if (p->settling)
			forget_process(watcher, p);
		p->settling = false;
	}
	watcher->n_settled = 0;
	watcher->to_settle = false;
	end_ns = clock_now_ns();
	watcher->settle_ns = end_ns + SETTLE_PART * (end_ns - begin_ns);
}

/*
 * Threads that end at the same time may each tell the end of their process. An earlier one does so
 * before a later one has put back the free that it was in. So each time what came since is taken
 * in.
 */
static void process_ended(struct watcher *watcher, const struct wire_head *record)
{
	for (struct watched *p = *slot_of(watcher, record->tgid); p; p = p->next) {
		if (p->key.tgid != record->tgid || p->key.born_ns > record->time_ns)
			continue;
		if (!p->ended) {
			TAILQ_INSERT_TAIL(&watcher->ended, p, in_ended);
			watcher->n_ended++;
		}
		p->ended = p->settling = watcher->to_settle = true;
		if (watcher->calls)
			watch_calls_ended(watcher->calls, p);
	}
}

void watcher_each_running(struct watcher *watcher, watcher_running_fn each, void *data)
{
	for (struct watched *p = watcher->processes; p; p = p->hh.next) {
		if (!p->ended)
			each(data, (uint32_t)p->key.tgid);
	}
}

bool watcher_runs_before(struct watcher *watcher, uint32_t pid, uint64_t born_ns)
{
	for (const struct watched *p = *slot_of(watcher, pid); p; p = p->next) {
		if (p->key.tgid == pid && !p->ended && p->key.born_ns < born_ns)
			return true;
	}
	return false;
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

void watcher_renews(struct watcher *watcher, struct sampler *sampler)
{
	if (watcher->memory)
		watch_memory_renews(watcher->memory, sampler);
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

/* By another that had the same number: programs before and after an exec, seen by a page alone. */
static bool is_shared(struct watcher *watcher, uint32_t pid, const struct process *process)
{
	for (const struct watched *p = *slot_of(watcher, pid); p; p = p->next) {
		if (p->process == process)
			return true;
	}
	return false;
}

/* No row is of it any more. */
static void forget_merged(struct watcher *watcher, struct watched *merged)
{
	const struct process *process = merged->process;
	uint32_t pid = (uint32_t)merged->key.tgid;

	TAILQ_REMOVE(&watcher->ended, merged, in_ended);
	watcher->n_ended--;
	drop_process(watcher, merged);
	if (watcher->options.watch->forget && !is_shared(watcher, pid, process))
		pipeline_forget_process(watcher->options.pipeline, process);
}

/* A watch that runs for months does not grow with what has ended in it. */
static void merge_ended(struct watcher *watcher)
{
	struct watched *process = TAILQ_FIRST(&watcher->ended);

	if (watcher->n_ended <= ENDED_MAX)
		return;
	ended_process(watcher);
	for (size_t n = watcher->n_ended; n > ENDED_MAX / 2; n--) {
		process->merged = true;
		process = TAILQ_NEXT(process, in_ended);
	}
	if (watcher->launches)
		watch_launches_merge(watcher->launches);
	watch_sums_merge(watcher->sums);
	while (watcher->n_ended > ENDED_MAX / 2)
		forget_merged(watcher, TAILQ_FIRST(&watcher->ended));
}

/* ---- pages --------------------------------------------------------------------------------- */

static int read_sums(struct watcher *watcher, struct watch_page *page)
{
	int r;

	if (watcher->launches)
		watch_launches_generation(watcher->launches);
	r = watch_sums_read(watcher->sums);
	if (!r && watcher->memory)
		r = watch_memory_page(watcher->memory, page->time_ns, &page->memory);
	if (r)
		return r;
	if (watcher->launches)
		page->launches = watch_launches_page(watcher->launches);
	watch_sums_page(watcher->sums, page);
	return 0;
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
		                   .lost = lost };
	int r;

	if (watcher->to_settle)
		settle(watcher);
	r = read_sums(watcher, &page);
	if (r)
		return err_set(err, r, "reading what the kernel summed up: %s", strerror(-r));
	programs_lost(watcher->options.programs, lost);
	lost[LOST_SUMS] += state->lost_rows;
	if (watcher->options.lost)
		watcher->options.lost(watcher->options.data, lost);
	if (watcher->calls)
		lost[LOST_SUMS] += watch_calls_lost_rows(watcher->calls);
	page.unseen = modules_unseen(watcher->options.modules);
	if (watcher->options.of_capture)
		watcher->options.of_capture(watcher->options.data, &page);
	if (run) {
		page.misses = run->misses;
		page.n_misses = run->n_misses;
	}
	watcher->before_ns = now_ns;
	r = watch->page(watch->data, &page, err);
	watch_sums_turn(watcher->sums);
	if (watcher->launches)
		watch_launches_turn(watcher->launches);
	if (!page.last)
		merge_ended(watcher);
	return r;
}

int watcher_tick(struct watcher *watcher, uint64_t now_ns, struct err *err)
{
	if (watcher->to_settle && now_ns >= watcher->settle_ns)
		settle(watcher);
	if (watcher->memory)
		watch_memory_turn(watcher->memory, now_ns);
	if (now_ns < watcher->before_ns ||
	    now_ns - watcher->before_ns < watcher->options.watch->interval_ns)
		return 0;
	return make_page(watcher, now_ns, NULL, err);
}

int watcher_end(struct watcher *watcher, const struct run_info *run, struct err *err)
{
	return make_page(watcher, run->end_ns, run, err);
}
