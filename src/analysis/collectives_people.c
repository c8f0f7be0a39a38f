// SPDX-License-Identifier: MIT
/* Whose ranks and calls are, what he may have of what is kept, and who says the same as others. */
#include "analysis/collectives_inside.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/person.h"

#define NOBODY_ELSE   (1ull << 62) /* and the process's number */
#define MACHINE_SHIFT 48           /* above what is a machine's own */

uint64_t collectives_person(const struct process *process)
{
	if (process->person == PERSON_UNKNOWN)
		return NOBODY_ELSE | process->id;
	if (process->person == PROCESS_UNTOLD || process->person < PERSON_NAMESPACE)
		return process->person;
	return process->person | (uint64_t)process->machine << MACHINE_SHIFT;
}

/* Of one person: all have twice as much, and all but root one and a half times. */
static const size_t table_most[COLLECTIVES_TABLES] = {
	[COLLECTIVES_CALLS] = 1u << 19, /* of 104 bytes, and as much again while they are sorted */
	[COLLECTIVES_KERNELS] = 1u << 20, /* of 32 bytes */
	[COLLECTIVES_RANKS] = COLLECTIVES_RANKS_MOST,
	[COLLECTIVES_THREADS] = 4096,       /* of 1.3 KiB */
	[COLLECTIVES_COUNTS] = 1u << 17,    /* of 80 bytes */
	[COLLECTIVES_TOLD_RANKS] = 1u << 16 /* of 200 bytes: all of a job, by each file's RAS */
};

void tables_begin(struct collectives *collectives)
{
	for (int i = 0; i < COLLECTIVES_TABLES; i++)
		collectives->own->shares[i] =
			(struct quota){ .user = { .most = table_most[i] },
			                .others = { .most = table_most[i] + table_most[i] / 2 },
			                .all = { .most = 2 * table_most[i] } };
}

void table_left_out(struct collectives *collectives, enum collectives_table table, uint64_t person)
{
	size_t at = 0;

	while (at < collectives->n_left && collectives->left[at].person != person &&
	       at + 1 < COLLECTIVES_LEFT_MAX)
		at++;
	if (at == collectives->n_left)
		*VEC_ADD(collectives->left, collectives->n_left) =
			(struct collectives_left){ .person = person };
	if (collectives->left[at].person != person)
		collectives->left[at].person = PERSON_UNKNOWN;
	collectives->left[at].n[table]++;
}

bool table_take(struct collectives *collectives, enum collectives_table table, size_t n,
                const struct process *process)
{
	bool room = collectives->most
	                    ? n < table_most[table]
	                    : !quota_take(&collectives->own->shares[table], process->person, 0, 1);

	if (!room)
		table_left_out(collectives, table, process->person);
	return room;
}

/* By versions that do not say whose ranks are, or some time before, calls that an agent told of
 * beyond its memory were counted with names and stacks. */
static bool may_be_lost(const struct collectives *collectives, const struct run_info *run)
{
	bool older = false;

	for (size_t i = 0; i < collectives->n_ranks; i++)
		older |= collectives->ranks[i].person == PROCESS_UNTOLD;
	return older && run->lost[LOST_OVER_BUDGET];
}

void ranks_lose(struct collectives *collectives, const struct run_info *run)
{
	collectives->lost |= may_be_lost(collectives, run);
	for (size_t i = 0; i < collectives->n_left; i++)
		collectives->lost |=
			collectives->left[i].n[COLLECTIVES_CALLS] && i + 1 == COLLECTIVES_LEFT_MAX;
	for (size_t i = 0; i < collectives->n_ranks; i++) {
		struct collective_rank *rank = &collectives->ranks[i];

		rank->lost = collectives->lost;
		for (size_t k = 0; k < collectives->n_left && !rank->lost; k++)
			rank->lost = collectives->left[k].person == rank->process->person &&
			             collectives->left[k].n[COLLECTIVES_CALLS];
	}
}

/* ---- who says the same ----------------------------------------------------------------------- */

ORDER_BY(claims_in_order, struct collective_claim, UP(id[0]), UP(id[1]), UP(person));

static bool claims_are_alike(const struct collective_claim *a, const struct collective_claim *b)
{
	return a->id[0] == b->id[0] && a->id[1] == b->id[1];
}

/* Once each person of each communicator, whether its ranks are here or RAS told of them. */
static struct collective_claim *claims_all(const struct collectives *collectives, size_t *n)
{
	size_t room = HASH_COUNT(collectives->own->comms) + collectives->n_told, many = 0;
	struct collective_claim *all = xcalloc(room + 1, sizeof(*all));

	for (const struct comm_entry *comm = collectives->own->comms; comm; comm = comm->hh.next)
		all[many++] = (struct collective_claim){ { comm->key.id[0], comm->key.id[1] },
			                                 comm->key.person };
	for (size_t i = 0; i < collectives->n_told; i++)
		all[many++] = (struct collective_claim){ { collectives->told[i].id[0],
			                                   collectives->told[i].id[1] },
			                                 collectives->told[i].person };
	SORT(all, many, claims_in_order);
	*n = 0;
	for (size_t i = 0; i < many; i++)
		if (!*n || claims_in_order(&all[*n - 1], &all[i]))
			all[(*n)++] = all[i];
	return all;
}

void claims_find(struct collectives *collectives)
{
	size_t n;
	struct collective_claim *all = claims_all(collectives, &n);

	for (size_t i = 0; i < n; i++) {
		const struct collective_claim one = all[i];
		const struct comm_key key = { { one.id[0], one.id[1] }, one.person };
		const struct comm_entry *comm = MAP_FIND(collectives->own->comms, &key);

		if (!(i && claims_are_alike(&all[i - 1], &one)) &&
		    !(i + 1 < n && claims_are_alike(&one, &all[i + 1])))
			continue;
		all[collectives->n_claims++] = one;
		if (comm)
			collectives->comms[comm->comm].claimed = true;
	}
	collectives->claims = all;
}
