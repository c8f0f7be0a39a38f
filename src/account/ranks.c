// SPDX-License-Identifier: MIT
#include "account/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "account/facts_inside.h"
#include "account/gpu_time.h"
#include "account/ranks_causes.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define LATE_LEAST   0.05 /* of a rank's time others wait for it: it is worth a word */
#define LATE_CLEAR   0.5  /* of all waiting in its communicator, */
#define LATE_TIMES   2.0  /* and so many times as much as for any other */
#define LATE_MUCH    0.9  /* of the time that others waited for a rank */
#define LATE_LOOKS   64   /* users, those first whose ranks are waited for most */
#define CLASS_LEAST  10   /* collectives, below which nothing is said of a kind */
#define CLASS_MOSTLY 0.7  /* of the time */

/* ---- collectives ----------------------------------------------------------------------------- */

struct arrival {
	uint64_t time_ns;
	uint32_t rank, call;
};

ORDER_BY(arrivals_by_time, struct arrival, UP(time_ns), UP(rank));

/* Of those that are ranks of their own, in the order in which they came. */
static void arrivals_of(const struct facts *facts, const struct collective *one,
                        struct arrival *arrivals)
{
	const struct collective_call *calls = &facts->collectives.calls[one->first];

	for (uint32_t i = 0; i < one->n; i++)
		arrivals[i] = (struct arrival){ collective_arrival_ns(one, &calls[i]),
			                        calls[i].rank, one->first + i };
	SORT(arrivals, one->n, arrivals_by_time);
}

/* Of stretches that come in the order of their ends what is in none before: from where it is. */
static uint64_t add_stretch(uint64_t *until_ns, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t from_ns = facts_max(*until_ns, begin_ns);

	*until_ns = facts_max(*until_ns, end_ns);
	return from_ns;
}

/*
 * What waiting costs a rank: where its GPU computes meanwhile nothing. Whose kernels were not
 * measured, of him that is not known, and all of it counts.
 */
static uint64_t cost_ns(const struct facts *facts, const struct collective *one,
                        const struct arrival *at, uint64_t begin_ns, uint64_t end_ns)
{
	uint32_t work = one->by_gpu ? facts_work_of_call(facts, at->call) : FACTS_NONE;

	if (end_ns <= begin_ns)
		return 0;
	if (work == FACTS_NONE)
		return end_ns - begin_ns;
	return gpu_time_alone_ns(&gpu_times_of(facts)[facts->works[work].gpu], begin_ns, end_ns);
}

/* Of all but the last, on average. */
static uint64_t cost_of_others_ns(const struct facts *facts, const struct collective *one,
                                  const struct arrival *arrivals, uint64_t begin_ns)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i + 1 < one->n; i++)
		ns += cost_ns(facts, one, &arrivals[i], begin_ns, one->last_ns);
	return ns / (one->n - 1);
}

static void row_add(struct rank_row *row, const struct facts *facts, const struct collective *one,
                    const struct arrival *at)
{
	uint64_t end_ns = facts_max(one->end_ns, one->last_ns), from_ns;

	if (!row->n++)
		row->first_ns = at->time_ns;
	row->by_gpu = one->by_gpu;
	row->end_ns = facts_max(row->end_ns, end_ns);
	row->first_ns = facts_min(row->first_ns, at->time_ns);
	from_ns = add_stretch(&row->waited_until_ns, at->time_ns, one->last_ns);
	row->waited_ns += cost_ns(facts, one, at, from_ns, one->last_ns);
}

static struct rank_kind *kind_of(struct ranks *ranks, const struct collective *one)
{
	struct rank_kind *kind;

	for (size_t i = ranks->n_kinds; i-- > 0;)
		if (ranks->kinds[i].comm == one->comm && ranks->kinds[i].kind == one->kind)
			return &ranks->kinds[i];
	kind = VEC_ADD(ranks->kinds, ranks->n_kinds);
	*kind = (struct rank_kind){ .comm = one->comm, .kind = one->kind };
	return kind;
}

static void kind_add(struct rank_kind *kind, const struct facts *facts,
                     const struct collective *one, const struct arrival *arrivals)
{
	uint64_t waited_ns = 0;

	kind->n++;
	if (one->n > kind->most)
		kind->most = one->n;
	spread_add(&kind->bytes, facts->collectives.calls[one->first].bytes);
	if (!one->by_gpu)
		return;
	kind->n_gpu++;
	for (uint32_t i = 0; i + 1 < one->n; i++)
		waited_ns += one->last_ns - arrivals[i].time_ns;
	kind->waiting_ns += waited_ns / (one->n - 1);
	if (one->end_ns > one->last_ns)
		kind->transfer_ns += one->end_ns - one->last_ns;
}

/* Of a group the first stands for all. */
static bool is_counted(const struct facts *facts, const struct collective *one)
{
	const struct collective_call *calls = &facts->collectives.calls[one->first];

	for (uint32_t i = 0; i < one->n; i++)
		if (calls[i].joined)
			return false;
	return one->n > 1;
}

static uint64_t error_of(const struct facts *facts, uint32_t machine)
{
	return machine < facts->run->n_machines ? facts->run->machines[machine].clock_error_ns : 0;
}

/* Clocks of machines are as good as their errors: who is later by less than these may not be. */
static bool is_last_for_certain(const struct facts *facts, const struct arrival *arrivals,
                                uint32_t n)
{
	const struct collective_rank *ranks = facts->collectives.ranks;
	uint32_t own = ranks[arrivals[n - 1].rank].process->machine;

	for (uint32_t i = 0; facts->run->n_machines > 1 && i + 1 < n; i++) {
		uint32_t other = ranks[arrivals[i].rank].process->machine;

		if (other != own && arrivals[n - 1].time_ns - arrivals[i].time_ns <
		                            error_of(facts, own) + error_of(facts, other))
			return false;
	}
	return true;
}

static void collective_count(struct ranks *ranks, const struct facts *facts,
                             const struct collective *one, const struct arrival *arrivals)
{
	uint32_t n = one->n;
	struct rank_row *last = &ranks->rows[arrivals[n - 1].rank];
	uint64_t begin_ns = arrivals[n - 2].time_ns, from_ns, held_ns;

	for (uint32_t i = 0; i < n; i++)
		row_add(&ranks->rows[arrivals[i].rank], facts, one, &arrivals[i]);
	if (one->last_ns - begin_ns < RANKS_LAST_NS)
		return;
	if (!is_last_for_certain(facts, arrivals, n)) {
		ranks->n_unclear++;
		return;
	}
	last->late_ns = vec_room(last->late_ns, last->n_last, sizeof(*last->late_ns));
	last->late_ns[last->n_last] = cost_of_others_ns(facts, one, arrivals, begin_ns);
	last->lateness_ns += (double)last->late_ns[last->n_last++];
	from_ns = add_stretch(&last->held_until_ns, begin_ns, one->last_ns);
	held_ns = cost_of_others_ns(facts, one, arrivals, from_ns);
	last->held_ns += held_ns;
	ranks->held_ns += held_ns;
	if (one->last_ns > from_ns)
		last->beside_ns += one->last_ns - from_ns - held_ns;
}

/* ---- how late -------------------------------------------------------------------------------- */

ORDER_BY(compare_ns, uint64_t, ORDER_OF(*a, *b));

/* Many short ones are no lateness beside a few long ones. */
static void row_judge(struct rank_row *row)
{
	double ns = 0;

	SORT(row->late_ns, row->n_last, compare_ns);
	while (row->n_late < row->n_last && ns < LATE_MUCH * row->lateness_ns)
		ns += (double)row->late_ns[row->n_last - ++row->n_late];
}

uint64_t rank_late_ns(const struct rank_row *row, double share)
{
	size_t at = row->n_late ? (size_t)(share * (double)(row->n_late - 1) + 0.5) : 0;

	return row->n_late ? row->late_ns[row->n_last - row->n_late + at] : 0;
}

uint64_t rank_late_mean_ns(const struct rank_row *row)
{
	double ns = 0;

	for (size_t i = row->n_last - row->n_late; i < row->n_last; i++)
		ns += (double)row->late_ns[i];
	return row->n_late ? (uint64_t)(ns / (double)row->n_late) : 0;
}

uint64_t rank_late_deviation_ns(const struct rank_row *row)
{
	uint64_t middle = rank_late_ns(row, 0.5), ns, *away;

	if (!row->n_late)
		return 0;
	away = xcalloc(row->n_late, sizeof(*away));
	for (size_t i = 0; i < row->n_late; i++) {
		ns = row->late_ns[row->n_last - 1 - i];
		away[i] = ns > middle ? ns - middle : middle - ns;
	}
	SORT(away, row->n_late, compare_ns);
	ns = away[row->n_late / 2];
	free(away);
	return ns;
}

/* ---- all ------------------------------------------------------------------------------------- */

ORDER_BY(rows_in_order, struct rank_row, UP(rank->comm), UP(rank->number), UP(rank->process->pid),
         UP(rank->handle));
ORDER_BY(kinds_in_order, struct rank_kind, UP(comm), UP(kind));

double rank_held(const struct rank_row *row)
{
	return row->most_ns ? (double)row->held_ns / (double)row->most_ns : 0;
}

double rank_waited(const struct rank_row *row)
{
	return row->time_ns ? (double)row->waited_ns / (double)row->time_ns : 0;
}

/* Between windows nothing is known of a GPU. */
static void row_measure(struct rank_row *row, const struct facts *facts, bool by_gpu)
{
	struct measured part = measured_of_gpu(facts, row->rank->process);

	row->time_ns = row->end_ns - row->first_ns;
	if (!by_gpu)
		return;
	row->time_ns = 0;
	part.end_ns = row->first_ns;
	while (measured_next(&part, row->end_ns))
		row->time_ns += part.end_ns - part.begin_ns;
}

/* Others wait for a late one before its own first collective begins. */
static void rows_measure(struct ranks *ranks, const struct facts *facts, const bool *by_gpu)
{
	uint64_t *most_ns = xcalloc(facts->collectives.n_comms + 1, sizeof(*most_ns));

	for (size_t i = 0; i < ranks->n_rows; i++) {
		struct rank_row *row = &ranks->rows[i];
		uint32_t comm = row->rank->comm;

		if (!row->n)
			continue;
		row_measure(row, facts, by_gpu[comm]);
		most_ns[comm] = facts_max(most_ns[comm], row->time_ns);
	}
	for (size_t i = 0; i < ranks->n_rows; i++)
		if (ranks->rows[i].n)
			ranks->rows[i].most_ns = most_ns[ranks->rows[i].rank->comm];
	free(most_ns);
}

enum rank_class rank_kind_class(const struct rank_kind *kind)
{
	double all = (double)kind->waiting_ns + (double)kind->transfer_ns;

	if (kind->n_gpu < CLASS_LEAST || all <= 0 || !collective_ends_together(kind->kind))
		return RANKS_UNCLEAR;
	if ((double)kind->waiting_ns >= CLASS_MOSTLY * all)
		return RANKS_WAITING;
	return (double)kind->transfer_ns >= CLASS_MOSTLY * all ? RANKS_TRANSFER : RANKS_MIXED;
}

static bool is_named(const struct ranks *ranks, uint64_t person)
{
	for (size_t i = 0; i < ranks->n_late; i++)
		if (ranks->late[i]->rank->person == person)
			return true;
	return false;
}

/* The one for whom others wait most, of those users' whose is not looked at yet. */
static struct rank_row *held_most(const struct ranks *ranks, const bool *looked)
{
	struct rank_row *most = NULL;

	for (size_t i = 0; i < ranks->n_rows; i++) {
		struct rank_row *row = &ranks->rows[i];

		if (!looked[i] && row->held_ns && !is_named(ranks, row->rank->person) &&
		    (!most || row->held_ns > most->held_ns))
			most = row;
	}
	return most;
}

static bool is_late(const struct ranks *ranks, const struct rank_row *most)
{
	uint64_t all_ns = 0, second_ns = 0; /* of its communicator: other jobs are no measure */

	for (size_t i = 0; i < ranks->n_rows; i++) {
		const struct rank_row *row = &ranks->rows[i];

		if (row->rank->comm != most->rank->comm)
			continue;
		all_ns += row->held_ns;
		if (row != most)
			second_ns = facts_max(second_ns, row->held_ns);
	}
	return rank_held(most) >= LATE_LEAST &&
	       (double)most->held_ns >= LATE_CLEAR * (double)all_ns &&
	       (double)most->held_ns >= LATE_TIMES * (double)second_ns;
}

/* Of each user his most: who makes others of his own wait more hides nobody's. */
static void find_late(struct ranks *ranks)
{
	AT_END(at_end_free) bool *looked = xcalloc(ranks->n_rows + 1, sizeof(*looked));
	struct rank_row *most;

	for (int i = 0; i < LATE_LOOKS && ranks->n_late < RANKS_LATE; i++) {
		most = held_most(ranks, looked);
		if (!most)
			return;
		if (is_late(ranks, most))
			ranks->late[ranks->n_late++] = most;
		for (size_t k = 0; k < ranks->n_rows; k++)
			looked[k] |= ranks->rows[k].rank->person == most->rank->person;
	}
}

void ranks_make(struct ranks *ranks, const struct facts *facts, const struct accounts *accounts)
{
	const struct collectives *of = &facts->collectives;
	struct arrival *arrivals = xcalloc(of->n_ranks + 1, sizeof(*arrivals));
	bool *by_gpu = xcalloc(of->n_comms + 1, sizeof(*by_gpu)); /* some of each communicator */

	*ranks = (struct ranks){ .rows = xcalloc(of->n_ranks + 1, sizeof(*ranks->rows)),
		                 .n_rows = of->n_ranks };
	for (size_t i = 0; i < of->n_ranks; i++)
		ranks->rows[i].rank = &of->ranks[i];
	for (size_t i = 0; i < of->n_all; i++)
		by_gpu[of->all[i].comm] |= of->all[i].by_gpu;
	for (size_t i = 0; i < of->n_all; i++) {
		const struct collective *one = &of->all[i];

		if (!is_counted(facts, one))
			continue;
		arrivals_of(facts, one, arrivals);
		kind_add(kind_of(ranks, one), facts, one, arrivals);
		if (one->by_gpu == by_gpu[one->comm])
			collective_count(ranks, facts, one, arrivals);
	}
	rows_measure(ranks, facts, by_gpu);
	free(by_gpu);
	free(arrivals);
	for (size_t i = 0; i < ranks->n_rows; i++)
		row_judge(&ranks->rows[i]);
	SORT(ranks->rows, ranks->n_rows, rows_in_order);
	ranks_explain(ranks, facts, accounts);
	SORT(ranks->kinds, ranks->n_kinds, kinds_in_order);
	find_late(ranks);
}

void ranks_clear(struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->n_rows; i++)
		free(ranks->rows[i].late_ns);
	for (size_t i = 0; i < ranks->n_kinds; i++)
		spread_free(&ranks->kinds[i].bytes);
	free(ranks->rows);
	free(ranks->kinds);
	*ranks = (struct ranks){ 0 };
}
