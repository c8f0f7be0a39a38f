// SPDX-License-Identifier: MIT
#include "analysis/lateness.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/xalloc.h"

#define BEHIND_NS    2000000000ull /* so long ago a call was at least, when it is judged */
#define WAITED_LEAST 20000         /* a shorter wait found the GPU done */
#define WAITS_MAX    256           /* of a process that are remembered: the last */
#define EVENTS_MAX   64            /* likewise, that were recorded */
#define WAITERS_MAX  512           /* processes at a time; waits of others are not known */

/* Until its end the GPU was busy with what was asked for before `asked_ns`. */
struct wait {
	uint64_t asked_ns, end_ns;
};

struct waiter {
	struct wait waits[WAITS_MAX];
	struct {
		uint64_t handle, recorded_ns;
	} events[EVENTS_MAX];
	uint64_t n_waits, n_events; /* ever */
};

struct lateness {
	struct collectives collectives;
	struct lateness_rank *ranks;
	uint64_t *before_ns; /* by communicator: when the collective before could begin */
	size_t n_ranks, n_comms;
	struct waiter **waiters;     /* by process */
	size_t n_waiters, n_waiting; /* n_waiters: places */
	uint64_t lost, unlike;
};

struct lateness *lateness_new(size_t calls_most)
{
	struct lateness *lateness = xcalloc(1, sizeof(*lateness));

	collectives_init(&lateness->collectives);
	lateness->collectives.most = calls_most;
	return lateness;
}

void lateness_free(struct lateness *lateness)
{
	if (!lateness)
		return;
	for (size_t i = 0; i < lateness->n_waiters; i++)
		free(lateness->waiters[i]);
	FREE_ALL(lateness->waiters, lateness->ranks, lateness->before_ns);
	collectives_clear(&lateness->collectives);
	free(lateness);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* NULL: there is no room. */
static struct waiter *waiter_of(struct lateness *lateness, const struct process *process)
{
	struct waiter **waiter = BY_ID(lateness->waiters, lateness->n_waiters, process->id);

	if (!*waiter && lateness->n_waiting < WAITERS_MAX) {
		*waiter = xcalloc(1, sizeof(**waiter));
		lateness->n_waiting++;
	}
	return *waiter;
}

static void waiter_gone(struct lateness *lateness, const struct process *process)
{
	if (process->id >= lateness->n_waiters || !lateness->waiters[process->id])
		return;
	free(lateness->waiters[process->id]);
	lateness->waiters[process->id] = NULL;
	lateness->n_waiting--;
}

static void event_recorded(struct waiter *waiter, const struct call *call)
{
	size_t n = waiter->n_events < EVENTS_MAX ? waiter->n_events : EVENTS_MAX, at = n;

	for (size_t i = 0; i < n; i++)
		if (waiter->events[i].handle == call->args.event)
			at = i;
	if (at == n)
		at = waiter->n_events++ % EVENTS_MAX;
	waiter->events[at].handle = call->args.event;
	waiter->events[at].recorded_ns = call->begin_ns;
}

/* A wait for an event is for what came before its record, any other for all before itself. */
static uint64_t wait_asked_ns(const struct waiter *waiter, const struct call *call)
{
	size_t n = waiter->n_events < EVENTS_MAX ? waiter->n_events : EVENTS_MAX;

	if (!strstr(call->function->name, "Event"))
		return call->begin_ns;
	for (size_t i = 0; i < n; i++)
		if (waiter->events[i].handle == call->args.event)
			return waiter->events[i].recorded_ns;
	return 0; /* it was recorded long ago */
}

static void wait_seen(struct waiter *waiter, const struct call *call)
{
	uint64_t asked_ns = wait_asked_ns(waiter, call);

	if (call->end_ns < call->begin_ns + WAITED_LEAST || !asked_ns)
		return;
	waiter->waits[waiter->n_waits++ % WAITS_MAX] = (struct wait){ asked_ns, call->end_ns };
}

/* Until when a process's GPU certainly could not begin what was called then, and was seen to be
 * later than `after_ns`; else that. */
static uint64_t busy_until(const struct lateness *lateness, const struct collective_call *call,
                           uint64_t after_ns)
{
	uint32_t process = lateness->collectives.ranks[call->rank].process->id;
	const struct waiter *waiter =
		process < lateness->n_waiters ? lateness->waiters[process] : NULL;
	uint64_t n, until_ns = after_ns;

	if (!waiter)
		return after_ns;
	n = waiter->n_waits < WAITS_MAX ? waiter->n_waits : WAITS_MAX;
	for (uint64_t i = 1; i <= n; i++) {
		const struct wait *wait = &waiter->waits[(waiter->n_waits - i) % WAITS_MAX];

		if (wait->end_ns <= after_ns)
			break;
		if (wait->asked_ns < call->begin_ns && wait->end_ns > until_ns)
			until_ns = wait->end_ns;
	}
	return until_ns;
}

/* ---- collectives ----------------------------------------------------------------------------- */

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void lateness_room(struct lateness *lateness)
{
	const struct collectives *of = &lateness->collectives;

	if (of->n_ranks > lateness->n_ranks)
		lateness->ranks = by_id_room(lateness->ranks, &lateness->n_ranks,
		                             sizeof(*lateness->ranks), (uint32_t)of->n_ranks - 1);
	if (of->n_comms > lateness->n_comms)
		lateness->before_ns =
			by_id_room(lateness->before_ns, &lateness->n_comms,
		                   sizeof(*lateness->before_ns), (uint32_t)of->n_comms - 1);
}

static void collective_add(void *data, const struct collective *one)
{
	struct lateness *lateness = data;
	const struct collective_call *calls = &lateness->collectives.calls[one->first];
	uint64_t *before_ns = &lateness->before_ns[one->comm], second_ns = *before_ns, busy_ns;

	for (uint32_t i = 0; i < one->n; i++)
		if (one->first + i != one->last)
			second_ns = later_of(second_ns, calls[i].begin_ns);
	busy_ns = second_ns;
	for (uint32_t i = 0; i < one->n && busy_ns < one->last_ns; i++)
		busy_ns = later_of(busy_ns, busy_until(lateness, &calls[i], busy_ns));
	for (uint32_t i = 0; i < one->n; i++) {
		struct lateness_rank *rank = &lateness->ranks[calls[i].rank];
		uint64_t from_ns = later_of(*before_ns, calls[i].begin_ns);

		rank->n++;
		if (one->first + i == one->last) {
			if (one->last_ns < busy_ns + LATENESS_LEAST_NS)
				continue;
			rank->n_last++;
			rank->late_ns += one->last_ns - busy_ns;
			continue;
		}
		from_ns = later_of(from_ns, busy_until(lateness, &calls[i], from_ns));
		if (one->last_ns > from_ns)
			rank->waited_ns += one->last_ns - from_ns;
	}
	*before_ns = later_of(*before_ns, one->last_ns);
}

void lateness_event(struct lateness *lateness, const struct event *event)
{
	struct collectives *of = &lateness->collectives;
	struct waiter *waiter;

	if (event->type == EVENT_EXIT) {
		collectives_exit(of, event->process);
		waiter_gone(lateness, event->process);
	} else if (event->type == EVENT_OTHER_CALL) {
		collectives_event(of, event);
	} else if (event->type == EVENT_CALL &&
	           (event->call->op == OP_SYNC || event->call->op == OP_EVENT_RECORD) &&
	           collectives_know(of, event->process)) {
		waiter = waiter_of(lateness, event->process);
		if (waiter && event->call->op == OP_SYNC)
			wait_seen(waiter, event->call);
		else if (waiter)
			event_recorded(waiter, event->call);
	}
}

void lateness_distrust(struct lateness *lateness)
{
	lateness->lost += lateness->collectives.n_calls + lateness->collectives.left_out;
	collectives_distrust(&lateness->collectives);
	for (size_t i = 0; i < lateness->n_comms; i++)
		lateness->before_ns[i] = 0;
}

/* A communicator whose ranks say different things lacks calls: numbers of it are wrong. */
static void look_at_numbers(struct lateness *lateness)
{
	uint64_t unlike = 0;

	for (size_t i = 0; i < lateness->collectives.n_comms; i++)
		unlike += lateness->collectives.comms[i].unlike;
	lateness->unlike += unlike;
	if (unlike || lateness->collectives.left_out)
		lateness_distrust(lateness);
}

void lateness_turn(struct lateness *lateness, uint64_t now_ns)
{
	struct collectives *of = &lateness->collectives;
	uint64_t since_ns;
	uint32_t rank;

	if (now_ns < BEHIND_NS)
		return;
	lateness_room(lateness);
	collectives_settle(of, now_ns - BEHIND_NS, collective_add, lateness);
	for (size_t i = 0; i < lateness->n_ranks; i++)
		lateness->ranks[i].missing_ns = 0;
	for (uint32_t i = 0; i < of->n_comms; i++) {
		since_ns = collectives_missing_ns(of, i, &rank);
		/* it may have called since, too lately to be judged */
		if (since_ns && since_ns < now_ns && of->ranks[rank].last_ns < since_ns)
			lateness->ranks[rank].missing_ns = now_ns - since_ns;
	}
	look_at_numbers(lateness);
}

const struct collectives *lateness_collectives(const struct lateness *lateness)
{
	return &lateness->collectives;
}

const struct lateness_rank *lateness_of(const struct lateness *lateness, size_t rank)
{
	static const struct lateness_rank none;

	return rank < lateness->n_ranks ? &lateness->ranks[rank] : &none;
}

struct lateness_unmatched lateness_unmatched(const struct lateness *lateness)
{
	return (struct lateness_unmatched){ lateness->collectives.unknown,
		                            lateness->collectives.uncounted, lateness->lost,
		                            lateness->unlike };
}
