// SPDX-License-Identifier: MIT
/* Collectives while they come: those that are whole are told of, and their calls forgotten. */
#include <stdlib.h>
#include <string.h>

#include "analysis/collectives_inside.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define KNOWN_AFTER_NS 30000000000ull /* what RAS has not told of by then it does not tell */
#define WAITING_MOST   8192           /* calls that wait for a rank's; others are told of no more */
#define UNCOUNTED_MOST 2048           /* calls of a rank and kind that wait for RAS: the last */
#define STILL_NS       2000000000ull  /* counts that stay so long are those of a job that does */

/* A call, and by what it is one with others'; those without a number yet come last. */
struct settling {
	struct collective_call call;
	uint32_t comm;
};

ORDER_BY(settling_together, struct settling, UP(comm), UP(call.kind), UP(call.number),
         UP(call.rank));
ORDER_BY(settled_by_time, struct collective, UP(comm), UP(last_ns), UP(first));

/* Whether calls of one rank and kind have numbers, or can get them. */
static bool rank_counts(struct collectives *collectives, const struct collective_call *calls,
                        size_t n)
{
	struct collective_rank *rank = &collectives->ranks[calls->rank];

	if (rank->comm == COLLECTIVES_NONE)
		return false;
	if (!rank->made && !rank->counted[calls->kind])
		rank->counted[calls->kind] =
			calls_before(collectives, calls, n, &rank->first[calls->kind]);
	return rank->made || rank->counted[calls->kind];
}

/* Of what is older no call is there any more. */
static void told_forget(struct collectives_own *own, uint64_t before_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < own->n_told; i++)
		if (own->told[i].end_ns + KNOWN_AFTER_NS > before_ns)
			own->told[n++] = own->told[i];
	own->n_told = n;
}

static void calls_number(struct collectives *collectives, uint64_t before_ns)
{
	struct collective_call *calls = collectives->calls;

	SORT(calls, collectives->n_calls, calls_in_order);
	for (size_t first = 0, n; first < collectives->n_calls; first += n) {
		struct collective_call *run = &calls[first];

		for (n = 1; first + n < collectives->n_calls && run[n].rank == run->rank &&
		            run[n].kind == run->kind;
		     n++)
			;
		if (run->kind >= COLLECTIVE_COUNTED)
			continue;
		if (!rank_counts(collectives, run, n)) {
			for (size_t i = 0; i + UNCOUNTED_MOST < n; i++)
				run[i].begin_ns = 0; /* see settle_later() */
			continue;
		}
		for (size_t i = 0; i < n && run[i].begin_ns < before_ns; i++) {
			if (run[i].settled)
				continue;
			run[i].number = collectives->ranks[run->rank].first[run->kind]++;
			run[i].settled = true;
		}
	}
}

/* By communicator and kind, how many ranks have to call. */
static uint32_t *living_count(const struct collectives *collectives)
{
	uint32_t *living = xcalloc(collectives->n_comms * COLLECTIVE_COUNTED + 1, sizeof(*living));

	for (size_t i = 0; i < collectives->n_ranks; i++) {
		const struct collective_rank *rank = &collectives->ranks[i];

		for (int kind = 0; kind < COLLECTIVE_COUNTED; kind++)
			if (rank->comm != COLLECTIVES_NONE && !rank->gone &&
			    (rank->made || rank->counted[kind]))
				living[rank->comm * COLLECTIVE_COUNTED + (size_t)kind]++;
	}
	return living;
}

/* Of a communicator the first collective that one rank alone has not called. */
struct lacking {
	const struct settling *rows;
	uint32_t n;
};

static void missing_note(struct collectives *collectives, struct lacking *lacking,
                         const struct settling *rows, uint32_t n)
{
	struct missing_call *missing = &collectives->own->missing[rows->comm];
	uint64_t since_ns = 0;

	for (uint32_t i = 0; i < n; i++)
		if (rows[i].call.begin_ns > since_ns)
			since_ns = rows[i].call.begin_ns;
	if (missing->since_ns && missing->since_ns <= since_ns)
		return;
	*missing = (struct missing_call){ since_ns, COLLECTIVES_NONE };
	lacking[rows->comm] = (struct lacking){ rows, n };
}

/* Who that is, of all communicators at once: a rank is of one. */
static void missing_find(struct collectives *collectives, const struct lacking *lacking)
{
	bool *called = xcalloc(collectives->n_ranks + 1, sizeof(*called));

	for (size_t i = 0; i < collectives->n_comms; i++)
		for (uint32_t k = 0; k < lacking[i].n; k++)
			called[lacking[i].rows[k].call.rank] = true;
	for (uint32_t i = 0; i < collectives->n_ranks; i++) {
		const struct collective_rank *rank = &collectives->ranks[i];
		const struct lacking *of =
			rank->comm == COLLECTIVES_NONE ? NULL : &lacking[rank->comm];

		if (of && of->n && !rank->gone && !called[i] &&
		    (rank->made || rank->counted[of->rows->call.kind]))
			collectives->own->missing[rank->comm].rank = i;
	}
	free(called);
}

/* ---- what RAS says of ranks that do not call ------------------------------------------------- */

ORDER_POINTERS_BY(told_in_order, struct collective_told, UP(id[0]), UP(id[1]), UP(person),
                  UP(number));
ORDER_POINTERS_BY(ranks_by_told, struct collective_rank, UP(ras_id[0]), UP(ras_id[1]), UP(person),
                  UP(number));

/* Whose counts are less than all others' in some kind; NULL: nobody's, or more than one's. All are
 * of this machine, told of by one answer, and have not moved. */
static const struct collective_told *told_behind(const struct collective_told *const *told,
                                                 size_t n, struct behind_rank *since)
{
	const struct collective_told *behind = NULL;

	if (n < 2 || n != told[0]->size)
		return NULL;
	*since = (struct behind_rank){ .last_ns = told[0]->last_ns };
	for (size_t i = 0; i < n; i++) {
		if (!told[i]->process || told[i]->missing || told[i]->failed ||
		    told[i]->last_ns != told[0]->last_ns)
			return NULL;
		if (told[i]->moved_ns > since->since_ns)
			since->since_ns = told[i]->moved_ns;
	}
	if (since->last_ns < since->since_ns + STILL_NS)
		return NULL;
	for (int kind = 0; kind < COLLECTIVES_TOLD; kind++) {
		uint64_t most = 0;

		for (size_t i = 0; i < n; i++)
			most = told[i]->counts[kind] > most ? told[i]->counts[kind] : most;
		for (size_t i = 0; i < n; i++) {
			if (told[i]->counts[kind] == most || behind == told[i])
				continue;
			if (behind)
				return NULL;
			behind = told[i];
		}
	}
	return behind;
}

/* The rank that it is here; it is behind `*at`, as told rows come in the ranks' order. */
static const struct collective_rank *told_rank(const struct collective_rank *const *ranks, size_t n,
                                               size_t *at, const struct collective_told *told)
{
	const struct collective_rank wanted = { .ras_id = { told->id[0], told->id[1] },
		                                .person = told->person,
		                                .number = told->number };
	const struct collective_rank *key = &wanted;

	while (*at < n && ranks_by_told(&ranks[*at], &key) < 0)
		++*at;
	for (size_t i = *at; i < n && !ranks_by_told(&ranks[i], &key); i++)
		if (ranks[i]->process == told->process && !ranks[i]->gone)
			return ranks[i];
	return NULL;
}

static void behind_find(struct collectives *collectives)
{
	struct collectives_own *own = collectives->own;
	size_t n_told = collectives->n_told, n_ranks = collectives->n_ranks, at = 0;
	const struct collective_told **told = xcalloc(n_told + 1, sizeof(*told));
	const struct collective_rank **ranks = xcalloc(n_ranks + 1, sizeof(*ranks));

	for (size_t i = 0; i < n_told; i++)
		told[i] = &collectives->told[i];
	for (size_t i = 0; i < n_ranks; i++)
		ranks[i] = &collectives->ranks[i];
	SORT(told, n_told, told_in_order);
	SORT(ranks, n_ranks, ranks_by_told);
	own->n_behind = 0;
	for (size_t first = 0, n; first < n_told; first += n) {
		const struct collective_told *behind;
		const struct collective_rank *rank;
		struct behind_rank one;

		for (n = 1; first + n < n_told && told[first + n]->id[0] == told[first]->id[0] &&
		            told[first + n]->id[1] == told[first]->id[1] &&
		            told[first + n]->person == told[first]->person;
		     n++)
			;
		behind = told_behind(&told[first], n, &one);
		rank = behind ? told_rank(ranks, n_ranks, &at, behind) : NULL;
		if (!rank || rank->comm == COLLECTIVES_NONE)
			continue;
		one.rank = (uint32_t)(rank - collectives->ranks);
		*VEC_ADD(own->behind, own->n_behind) = one;
	}
	free(told);
	free(ranks);
	own->told_anew = false;
}

/* Where calls do not say it, as some were lost, or as it stands still since before anybody looked.
 * Once one of its communicator has called since it is not so any more. */
static void behind_note(struct collectives *collectives)
{
	struct collectives_own *own = collectives->own;
	uint64_t *last_ns = xcalloc(collectives->n_comms + 1, sizeof(*last_ns));

	if (own->told_anew)
		behind_find(collectives);
	for (size_t i = 0; i < collectives->n_ranks; i++) {
		const struct collective_rank *rank = &collectives->ranks[i];

		if (rank->comm != COLLECTIVES_NONE && rank->last_ns > last_ns[rank->comm])
			last_ns[rank->comm] = rank->last_ns;
	}
	for (size_t i = 0; i < own->n_behind; i++) {
		const struct behind_rank *behind = &own->behind[i];
		const struct collective_rank *rank = &collectives->ranks[behind->rank];
		struct missing_call *missing = &own->missing[rank->comm];

		if (!missing->since_ns && !rank->gone && last_ns[rank->comm] < behind->last_ns)
			*missing = (struct missing_call){ behind->since_ns, behind->rank };
	}
	free(last_ns);
}

struct settle {
	struct collectives *collectives;
	struct collective *all;
	struct collective_call *whole; /* calls of `all` */
	struct lacking *lacking;       /* by communicator */
	size_t n_all, n_whole, n_kept;
};

static void settle_whole(struct settle *settle, const struct settling *rows, uint32_t n)
{
	struct collective_comm *comm = &settle->collectives->comms[rows->comm];
	struct collective_call *calls = &settle->whole[settle->n_whole];
	struct collective one = { .comm = rows->comm,
		                  .first = (uint32_t)settle->n_whole,
		                  .n = n,
		                  .kind = rows->call.kind };

	if (n < 2) {
		settle->collectives->alone++;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		calls[i] = rows[i].call;
	if (one.kind != COLLECTIVE_ALL_TO_ALL && !calls_agree(calls, n)) {
		comm->unlike++;
		return;
	}
	comm->matched++;
	collective_fill(&one, calls);
	settle->n_whole += n;
	settle->all[settle->n_all++] = one;
}

static void settle_keep(struct settle *settle, const struct settling *rows, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		settle->collectives->calls[settle->n_kept++] = rows[i].call;
}

static void settle_group(struct settle *settle, const struct settling *rows, uint32_t n,
                         uint32_t n_living)
{
	uint32_t n_here = 0;

	for (uint32_t i = 0; i < n; i++)
		n_here += !settle->collectives->ranks[rows[i].call.rank].gone;
	if (n_here >= n_living) {
		settle_whole(settle, rows, n);
		return;
	}
	if (n_here + 1 == n_living)
		missing_note(settle->collectives, settle->lacking, rows, n);
	if (settle->n_kept < WAITING_MOST)
		settle_keep(settle, rows, n);
	else
		settle->collectives->alone++;
}

/* One whose number is not known, or that came just now. */
static void settle_later(struct settle *settle, const struct settling *row, uint64_t before_ns)
{
	struct collectives *collectives = settle->collectives;
	const struct collective_rank *rank = &collectives->ranks[row->call.rank];

	if (row->call.kind >= COLLECTIVE_COUNTED)
		collectives->unpaired++;
	else if (!rank->gone && row->call.begin_ns + KNOWN_AFTER_NS > before_ns)
		settle_keep(settle, row, 1);
	else if (rank->comm == COLLECTIVES_NONE)
		collectives->unknown++;
	else
		collectives->uncounted++;
}

static bool settling_are_one(const struct settling *a, const struct settling *b)
{
	return a->comm != COLLECTIVES_NONE && a->comm == b->comm && a->call.kind == b->call.kind &&
	       a->call.number == b->call.number;
}

/* `calls` is their copy until all are told of. */
static void settle_tell(struct settle *settle,
                        void (*each)(void *data, const struct collective *one), void *data)
{
	struct collective_call *kept = settle->collectives->calls;

	SORT(settle->all, settle->n_all, settled_by_time);
	settle->collectives->calls = settle->whole;
	for (size_t i = 0; i < settle->n_all; i++)
		if (!settle->collectives->comms[settle->all[i].comm].unlike)
			each(data, &settle->all[i]);
	settle->collectives->calls = kept;
}

void collectives_settle(struct collectives *collectives, uint64_t before_ns,
                        void (*each)(void *data, const struct collective *one), void *data)
{
	struct collectives_own *own = collectives->own;
	size_t n_calls = collectives->n_calls;
	struct settling *rows = xcalloc(n_calls + 1, sizeof(*rows));
	struct settle settle = { .collectives = collectives,
		                 .all = xcalloc(n_calls / 2 + 1, sizeof(*settle.all)),
		                 .whole = xcalloc(n_calls + 1, sizeof(*settle.whole)),
		                 .lacking = xcalloc(collectives->n_comms + 1,
		                                    sizeof(*settle.lacking)) };
	uint32_t *living, n;

	groups_forget(collectives);
	told_forget(own, before_ns);
	told_sort(collectives);
	calls_number(collectives, before_ns);
	living = living_count(collectives);
	free(own->missing);
	own->missing = xcalloc(collectives->n_comms + 1, sizeof(*own->missing));
	own->n_missing = collectives->n_comms;
	for (size_t i = 0; i < n_calls; i++) {
		const struct collective_call *call = &collectives->calls[i];

		rows[i] = (struct settling){ *call, call->settled
			                                    ? collectives->ranks[call->rank].comm
			                                    : COLLECTIVES_NONE };
	}
	SORT(rows, n_calls, settling_together);
	for (size_t first = 0; first < n_calls; first += n) {
		const struct settling *row = &rows[first];

		for (n = 1; first + n < n_calls && settling_are_one(row, row + n); n++)
			;
		if (row->comm == COLLECTIVES_NONE)
			settle_later(&settle, row, before_ns);
		else
			settle_group(&settle, row, n,
			             living[row->comm * COLLECTIVE_COUNTED + row->call.kind]);
	}
	collectives->n_calls = settle.n_kept;
	missing_find(collectives, settle.lacking);
	behind_note(collectives);
	settle_tell(&settle, each, data);
	FREE_ALL(living, rows, settle.lacking, settle.all, settle.whole);
}

uint64_t collectives_missing_ns(const struct collectives *collectives, uint32_t comm,
                                uint32_t *rank)
{
	const struct collectives_own *own = collectives->own;

	if (comm >= own->n_missing || own->missing[comm].rank == COLLECTIVES_NONE)
		return 0;
	*rank = own->missing[comm].rank;
	return own->missing[comm].since_ns;
}

struct collective_counts *collectives_count(const struct collectives *collectives)
{
	struct collective_counts *all = xcalloc(collectives->n_ranks + 1, sizeof(*all));

	for (size_t i = 0; i < collectives->n_ranks; i++) {
		const struct collective_rank *rank = &collectives->ranks[i];

		for (int kind = 0; kind < COLLECTIVES_TOLD; kind++) {
			bool known = rank->comm != COLLECTIVES_NONE && !rank->gone &&
			             (rank->made || rank->counted[kind]);

			all[i].known |= known;
			all[i].of[kind] = known ? rank->first[kind] : UINT64_MAX;
		}
	}
	for (size_t i = 0; i < collectives->n_calls; i++) {
		const struct collective_call *call = &collectives->calls[i];
		struct collective_counts *counts = &all[call->rank];

		if (!call->settled && call->kind < COLLECTIVES_TOLD &&
		    counts->of[call->kind] != UINT64_MAX)
			counts->of[call->kind]++;
	}
	return all;
}

/* None of its calls has a number. */
static bool rank_is_unknown(const struct collective_rank *rank)
{
	bool known = rank->made;

	for (int kind = 0; kind < COLLECTIVES_TOLD; kind++)
		known |= rank->counted[kind];
	return !known && !rank->gone && rank->comm != COLLECTIVES_NONE;
}

/* The calls that it has not told of are among those that are kept, or come soon; or there are none,
 * as all wait for one. */
bool collectives_want_ras(const struct collectives *collectives, uint64_t since_ns)
{
	for (size_t i = 0; i < collectives->n_calls; i++) {
		const struct collective_call *call = &collectives->calls[i];
		const struct collective_rank *rank = &collectives->ranks[call->rank];

		if (call->kind >= COLLECTIVES_TOLD || rank->gone || call->begin_ns < since_ns)
			continue;
		if (rank->comm == COLLECTIVES_NONE || (!rank->made && !rank->counted[call->kind]))
			return true;
	}
	for (size_t i = 0; i < collectives->n_ranks; i++)
		if (rank_is_unknown(&collectives->ranks[i]))
			return true;
	return false;
}

void collectives_distrust(struct collectives *collectives)
{
	groups_forget(collectives);
	for (size_t i = 0; i < collectives->n_ranks; i++) {
		struct collective_rank *rank = &collectives->ranks[i];

		rank->made = false;
		memset(rank->counted, 0, sizeof(rank->counted));
	}
	for (size_t i = 0; i < collectives->n_comms; i++)
		collectives->comms[i].unlike = 0;
	collectives->left_out = 0;
	collectives->n_calls = collectives->own->n_told = 0;
}
