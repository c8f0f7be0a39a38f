// SPDX-License-Identifier: MIT
/* Calls that are sent rather than summed up in the kernel: whose they are, and what they add to. */
#include "base/order.h"
#include "capture/watch/watch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "capture/watch/fold_inside.h"
#include "probe/fold.h"

/* ---- watch places -------------------------------------------------------------------------- */

/* Live allocations added up by place: by process, kind of memory, function and stack. */

ORDER_BY(by_place, struct watch_allocation, UP(process->id), UP(kind), UP(function), UP(stack));

ORDER_BY(most_bytes, struct watch_place, DOWN(bytes), DOWN(count), UP(oldest_ns));

static void add_to_place(struct watch_place *place, const struct watch_allocation *a, bool older)
{
	place->process = a->process;
	place->kind = a->kind;
	place->function = a->function;
	place->stack = a->stack;
	place->count++;
	place->bytes += a->bytes;
	place->older_count += older;
	place->older_bytes += older ? a->bytes : 0;
	if (!place->oldest_ns || a->time_ns < place->oldest_ns)
		place->oldest_ns = a->time_ns;
	if (a->time_ns > place->newest_ns)
		place->newest_ns = a->time_ns;
}

struct watch_place *watch_places_of(const struct watch_allocation *allocations, size_t n,
                                    uint64_t older_ns, uint64_t now_ns, size_t *n_places)
{
	struct watch_allocation *list = xcalloc(n + 1, sizeof(*list));
	struct watch_place *places = xcalloc(n + 1, sizeof(*places));
	size_t count = 0;

	if (n)
		memcpy(list, allocations, n * sizeof(*list));
	qsort(list, n, sizeof(*list), by_place);
	for (size_t i = 0; i < n; i++) {
		count += !i || by_place(&list[i], &list[i - 1]);
		add_to_place(&places[count - 1], &list[i], list[i].time_ns + older_ns <= now_ns);
	}
	free(list);
	qsort(places, count, sizeof(*places), most_bytes);
	*n_places = count;
	return places;
}

/* ---- watch calls --------------------------------------------------------------------------- */

#define RECENT 64 /* a power of two */

struct watch_calls {
	struct watcher *watcher;
	struct fold_inside *sums;
	struct fold_plan *plans[WIRE_HOOKS_MAX]; /* once they were asked for */
	struct watched *recent[RECENT];          /* by pid: none of them has ended */
};

static void first_of_row(void *data, const struct wire_call *call)
{
	struct watch_calls *calls = data;

	watcher_first(calls->watcher, call);
}

struct watch_calls *watch_calls_new(struct watcher *watcher, struct watch_sums *sums)
{
	struct watch_calls *calls = xcalloc(1, sizeof(*calls));
	const struct fold_inside_options options = {
		.tools = watcher_options_of(watcher)->watch->tools,
		.launches = watch_sums_ledger(sums, WATCH_SUM_LAUNCHES),
		.copies = watch_sums_ledger(sums, WATCH_SUM_COPIES),
		.kernels_mix = programs_state(watcher_options_of(watcher)->programs)->kernels_mix,
		.first = first_of_row,
		.data = calls,
	};

	calls->watcher = watcher;
	calls->sums = fold_inside_new(&options);
	return calls;
}

void watch_calls_free(struct watch_calls *calls)
{
	if (!calls)
		return;
	for (size_t i = 0; i < WIRE_HOOKS_MAX; i++)
		free(calls->plans[i]);
	fold_inside_free(calls->sums);
	free(calls);
}

/* ---- processes ----------------------------------------------------------------------------- */

void watch_calls_marked(struct watch_calls *calls, uint32_t pid, uint64_t now_ns)
{
	const struct watcher_options *options = watcher_options_of(calls->watcher);
	struct ledger_process key = { .tgid = pid };

	key.born_ns = fold_process_born(options->programs, pid, now_ns);
	watcher_process(calls->watcher, key);
	calls->recent[pid % RECENT] = NULL;
}

/* Its first call here: the pipeline knows by now what the pid stands for. */
static void begin(struct watch_calls *calls, struct watched *process)
{
	const struct watcher_options *options = watcher_options_of(calls->watcher);

	process->inside = true;
	fold_inside_take(calls->sums, options->programs, process->key);
	if (!process->ended)
		process->process = pipeline_process(options->pipeline, (uint32_t)process->key.tgid);
}

static struct watched *process_of(struct watch_calls *calls, const struct wire_call *call)
{
	struct watched **recent = &calls->recent[call->head.tgid % RECENT], *process = *recent;

	if (process && process->key.tgid == call->head.tgid)
		return process;
	process = watcher_process_at(calls->watcher, call->head.tgid, call->head.time_ns);
	if (!process) /* that it has an agent was known too late, or its first thread was lost */
		process = watcher_process(
			calls->watcher, (struct ledger_process){ call->begin_ns, call->head.tgid });
	if (!process->inside)
		begin(calls, process);
	*recent = process->ended ? NULL : process;
	return process;
}

void watch_calls_ended(struct watch_calls *calls, const struct watched *process)
{
	calls->recent[process->key.tgid % RECENT] = NULL;
}

void watch_calls_settle(struct watch_calls *calls)
{
	fold_inside_ended(calls->sums, watcher_is_settling, calls->watcher);
}

void watch_calls_give_back(struct watch_calls *calls, const struct watched *process, uint64_t rows)
{
	fold_inside_give_back(calls->sums, process->key, rows);
}

/* ---- calls --------------------------------------------------------------------------------- */

static const struct fold_plan *plan_of(struct watch_calls *calls, uint16_t hook)
{
	struct fold_plan *plan = calls->plans[hook & (WIRE_HOOKS_MAX - 1)];

	if (plan)
		return plan;
	plan = xcalloc(1, sizeof(*plan));
	if (!fold_hook_plan(watcher_options_of(calls->watcher)->programs, hook, plan))
		plan->op = FOLD_SEND;
	calls->plans[hook & (WIRE_HOOKS_MAX - 1)] = plan;
	return plan;
}

/* Handles may mean other kernels from now on. The programs had counted that by then. */
static void note_unloaded(struct watch_calls *calls, const struct wire_call *call)
{
	const struct hook *hook =
		modules_hook(watcher_options_of(calls->watcher)->modules, call->head.hook, NULL);

	if (hook && hook->api && api_op(hook->api) == OP_MODULE_UNLOAD &&
	    !(call->head.flags & WIRE_UNFINISHED))
		fold_inside_generation(calls->sums, call->head.tgid, (uint16_t)call->generation);
}

bool watch_calls_add(struct watch_calls *calls, const struct wire_call *call)
{
	const struct fold_plan *plan = plan_of(calls, call->head.hook);

	if (plan->op == FOLD_SEND) {
		note_unloaded(calls, call);
		return false;
	}
	fold_inside_call(calls->sums, process_of(calls, call)->key, plan, call);
	return true;
}

uint64_t watch_calls_lost_rows(const struct watch_calls *calls)
{
	return fold_inside_lost_rows(calls->sums);
}
