// SPDX-License-Identifier: MIT
#include "account/standing.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define ROWS_MAX (1u << 17) /* of some 300 bytes */

/* ---- what a recording tells ------------------------------------------------------------------ */

/* Of each process its first thread and 1, by id. */
static uint32_t *threads_first(const struct facts *facts, size_t *n)
{
	uint32_t *first = NULL;

	*n = 0;
	for (uint32_t i = 0; i < facts->n_threads; i++) {
		const struct process *process = facts->threads[i].process;

		if (process && facts->threads[i].tid == process->pid)
			*BY_ID(first, *n, process->id) = i + 1;
	}
	return first;
}

/* What its first thread was in at the end: blocked, or seen on a CPU. */
static void rank_look(struct standing_rank *rank, const struct facts *facts, const uint32_t *first,
                      size_t n)
{
	const struct process *process = rank->told.process;

	rank->thread = FACTS_NONE;
	if (!process)
		return;
	rank->pid = process->pid;
	if (process->id >= n || !first[process->id])
		return;
	rank->thread = first[process->id] - 1;

	const struct fact_thread *thread = &facts->threads[rank->thread];
	const struct fact_rest *rest = thread->n_rests ? &thread->rests[thread->n_rests - 1] : NULL;
	const struct fact_sample *sample =
		thread->n_samples ? &thread->samples[thread->n_samples - 1] : NULL;

	rank->tid = thread->tid;
	if (sample && (!rest || sample->time_ns > rest->end_ns)) {
		rank->does = sample->compiles ? ACCOUNT_COMPILING : ACCOUNT_COMPUTING;
		rank->chain = sample->chain;
	} else if (rest) {
		rank->does = account_cause_of_rest(rest);
		rank->chain = rest->chain;
	}
}

static struct standing_rank *row_add(struct standings *standings,
                                     const struct collective_told *told)
{
	struct standing_rank *row;

	if (!standings->of_rows.all.most)
		standings->of_rows =
			(struct quota){ .user = { ROWS_MAX / 2 }, .all = { ROWS_MAX } };
	if (quota_take(&standings->of_rows, told->person, 0, 1))
		return NULL;
	row = VEC_ADD(standings->rows, standings->n_rows);
	*row = (struct standing_rank){ .told = *told, .source = standings->n_sources };
	return row;
}

/* Whether all calls of a rank are known by number, from the first on. Of a process that RAS told of
 * it knows more. */
static bool rank_is_counted(const struct collective_rank *rank, const struct facts *facts,
                            const bool *told, size_t n_told)
{
	bool counted = rank->number >= 0 && !rank->lost && !facts_ended(facts, rank->process) &&
	               !(rank->process->id < n_told && told[rank->process->id]);

	for (size_t kind = 0; kind < COLLECTIVES_TOLD; kind++)
		counted &= rank->made || (!rank->uncounted[kind] && !rank->partly[kind]);
	return counted;
}

static void counted_add(struct standings *standings, const struct facts *facts,
                        const struct collective_rank *rank, struct collective_told told)
{
	const struct collective_comm *comm = &facts->collectives.comms[rank->comm];
	struct standing_rank *row;

	memcpy(told.id, comm->id, sizeof(told.id));
	told.person = rank->person;
	told.size = comm->size;
	told.number = rank->number;
	told.process = rank->process;
	told.moved_ns = rank->last_ns;
	told.last_ns = facts_max(rank->last_ns, facts->end_ns);
	for (size_t kind = 0; kind < COLLECTIVES_TOLD; kind++)
		told.counts[kind] += rank->first[kind];
	row = row_add(standings, &told);
	if (row)
		row->counted = true;
}

/* What calls say of ranks; nothing of communicators of which some are not known. */
static void counted_add_all(struct standings *standings, const struct facts *facts)
{
	const struct collectives *of = &facts->collectives;
	struct collective_told *told = xcalloc(of->n_ranks + 1, sizeof(*told));
	bool *unknown = xcalloc(of->n_comms + 1, sizeof(*unknown));
	bool *by_ras = NULL; /* processes, by id */
	size_t n = 0;

	for (size_t i = 0; i < of->n_told; i++) {
		if (!of->told[i].process)
			continue;
		*BY_ID(by_ras, n, of->told[i].process->id) = true;
	}
	for (size_t i = 0; i < of->n_calls; i++)
		if (of->calls[i].kind < COLLECTIVES_TOLD)
			told[of->calls[i].rank].counts[of->calls[i].kind]++;
	for (size_t i = 0; i < of->n_ranks; i++)
		if (of->ranks[i].comm != COLLECTIVES_NONE &&
		    !rank_is_counted(&of->ranks[i], facts, by_ras, n))
			unknown[of->ranks[i].comm] = true;
	for (size_t i = 0; i < of->n_ranks; i++)
		if (of->ranks[i].comm != COLLECTIVES_NONE && !unknown[of->ranks[i].comm])
			counted_add(standings, facts, &of->ranks[i], told[i]);
	FREE_ALL(by_ras, unknown, told);
}

void standings_add(struct standings *standings, const struct facts *facts)
{
	const struct collectives *of = &facts->collectives;
	size_t first_row = standings->n_rows, n;
	uint32_t *first = threads_first(facts, &n);

	for (size_t i = 0; i < of->n_told; i++)
		row_add(standings, &of->told[i]);
	if (!of->lost)
		counted_add_all(standings, facts);
	for (size_t i = first_row; i < standings->n_rows; i++)
		rank_look(&standings->rows[i], facts, first, n);
	standings->n_sources++;
	free(first);
}

/* ---- what all of them say -------------------------------------------------------------------- */

static uint64_t row_launches(const struct standing_rank *row)
{
	uint64_t n = 0;

	for (size_t kind = 0; kind < COLLECTIVES_TOLD && !row->told.missing; kind++)
		n += facts_min(row->told.counts[kind], UINT64_MAX / COLLECTIVES_TOLD);
	return n;
}

static uint64_t row_still_ns(const struct standing_rank *row)
{
	return row->told.last_ns > row->told.moved_ns ? row->told.last_ns - row->told.moved_ns : 0;
}

/* Of each rank what tells most of it comes first; what was only counted last of all. */
ORDER_BY(rows_in_order, struct standing_rank, UP(told.id[0]), UP(told.id[1]), UP(told.person),
         UP(counted), UP(told.number), DOWN_OF(row_launches), DOWN_OF(row_still_ns), DOWN(pid),
         UP(source));

/* The rows of a communicator that count: of all sources, or of one alone where no RAS told. */
static size_t rows_heed(const struct standing_rank *rows, size_t n)
{
	size_t told = 0;

	while (told < n && !rows[told].counted)
		told++;
	for (size_t i = 1; !told && i < n; i++)
		if (rows[i].source != rows[0].source)
			return 0;
	return told ? told : n;
}

/* One row for each rank, with what another recording has of its process. */
static size_t rows_fold(struct standing_rank *rows, size_t n, struct standing_rank **ranks)
{
	size_t kept = 0;

	for (size_t i = 0, of; i < n; i += of) {
		struct standing_rank *row = &rows[i];

		for (of = 1; i + of < n && rows[i + of].told.number == row->told.number; of++) {
			struct standing_rank *other = &rows[i + of];

			if (row->pid && (row->does != ACCOUNT_UNKNOWN || !other->pid))
				continue;
			if (row->pid && other->does == ACCOUNT_UNKNOWN)
				continue;
			other->told.moved_ns = row->told.moved_ns;
			other->told.last_ns = row->told.last_ns;
			memcpy(other->told.counts, row->told.counts, sizeof(other->told.counts));
			other->told.missing = row->told.missing;
			row = other;
		}
		ranks[kept++] = row;
	}
	return kept;
}

/* Those behind come first. */
static void standing_take(struct standing *standing, struct standing_rank **ranks, bool behind)
{
	for (uint32_t i = 0; i < standing->n_told && standing->n < STANDING_RANKS; i++)
		if (!ranks[i]->told.missing && ranks[i]->behind == behind)
			standing->ranks[standing->n++] = ranks[i];
}

/* Those that have launched less of a kind than others; false: there are none. */
static bool standing_find_behind(struct standing *standing, struct standing_rank **ranks,
                                 uint8_t kind)
{
	standing->kind = kind;
	standing->most = 0;
	for (uint32_t i = 0; i < standing->n_told; i++)
		if (!ranks[i]->told.missing)
			standing->most = facts_max(standing->most, ranks[i]->told.counts[kind]);
	standing->number = standing->most;
	for (uint32_t i = 0; i < standing->n_told; i++) {
		uint64_t count = ranks[i]->told.counts[kind];

		ranks[i]->behind = !ranks[i]->told.missing && count < standing->most;
		if (!ranks[i]->behind)
			continue;
		standing->n_behind++;
		standing->number = facts_min(standing->number, count + 1);
	}
	return standing->n_behind;
}

/* The kind that they differ in; false: they do not, or it moves. */
static bool standing_judge(struct standing *standing, struct standing_rank **ranks)
{
	uint32_t n = 0;

	standing->still_ns = UINT64_MAX;
	for (uint32_t i = 0; i < standing->n_told; i++) {
		standing->n_missing += ranks[i]->told.missing;
		if (ranks[i]->told.missing)
			continue;
		n++;
		standing->still_ns = facts_min(standing->still_ns, row_still_ns(ranks[i]));
	}
	if (!n || standing->still_ns < STANDING_NS)
		return false;
	for (uint8_t kind = 0; kind < COLLECTIVES_TOLD; kind++)
		if (standing_find_behind(standing, ranks, kind))
			return true;
	return false;
}

static bool row_has_id(const struct standing_rank *row, const struct standing_rank *other)
{
	return row->told.id[0] == other->told.id[0] && row->told.id[1] == other->told.id[1];
}

ORDER_BY(standings_in_order, struct standing, DOWN(n_told), UP(id[0]));

/* The rows of one communicator of one person. */
static size_t standing_rows(const struct standings *standings, size_t first)
{
	const struct standing_rank *rows = standings->rows;
	size_t n = 1;

	while (first + n < standings->n_rows && row_has_id(&rows[first + n], &rows[first]) &&
	       rows[first + n].told.person == rows[first].told.person)
		n++;
	return n;
}

static bool is_taken(const struct standings *standings, const struct standing_rank *row)
{
	for (size_t i = 0; i < standings->n; i++)
		if (standings->of[i].id[0] == row->told.id[0] &&
		    standings->of[i].id[1] == row->told.id[1] &&
		    standings->of[i].person == row->told.person)
			return true;
	return false;
}

/* Those that stand still, as far as there are places; how many there are none for. */
static size_t standings_take(struct standings *standings, struct quota *places,
                             struct standing_rank **ranks)
{
	struct standing_rank *rows = standings->rows;
	size_t more = 0;

	for (size_t i = 0, n; i < standings->n_rows; i += n) {
		struct standing one = { .id = { rows[i].told.id[0], rows[i].told.id[1] },
			                .person = rows[i].told.person,
			                .claimed = i && row_has_id(&rows[i - 1], &rows[i]) };

		n = standing_rows(standings, i);
		if (is_taken(standings, &rows[i]))
			continue;
		one.claimed |= i + n < standings->n_rows && row_has_id(&rows[i + n], &rows[i]);
		one.n_told = (uint32_t)rows_fold(&rows[i], rows_heed(&rows[i], n), ranks);
		if (!standing_judge(&one, ranks))
			continue;
		if (quota_take(places, one.person, 0, 1)) {
			more++;
			continue;
		}
		standing_take(&one, ranks, true);
		standing_take(&one, ranks, false);
		*VEC_ADD(standings->of, standings->n) = one;
	}
	return more;
}

/* Anybody's RAS can say that he has any number of them. */
void standings_judge(struct standings *standings)
{
	struct quota places = quota_of_places(STANDING_MAX);
	struct standing_rank **ranks;

	if (!standings->n_rows)
		return;
	places.all.most = STANDING_MAX;
	SORT(standings->rows, standings->n_rows, rows_in_order);
	ranks = xcalloc(standings->n_rows, sizeof(struct standing_rank *));
	standings->n_more = standings_take(standings, &places, ranks);
	places.user.most = 0;
	if (standings->n_more)
		standings->n_more = standings_take(standings, &places, ranks);
	quota_free(&places);
	free(ranks);
	SORT(standings->of, standings->n, standings_in_order);
}

bool standings_are_of(const struct standings *standings, uint64_t person)
{
	for (size_t i = 0; i < standings->n; i++)
		if (standings->of[i].person == person)
			return true;
	return false;
}

void standings_clear(struct standings *standings)
{
	for (size_t i = 0; i < standings->n_rows; i++) {
		FREE_ALL(standings->rows[i].name, standings->rows[i].where,
		         standings->rows[i].thread_name);
	}
	free(standings->rows);
	free(standings->of);
	quota_free(&standings->of_rows);
	*standings = (struct standings){ 0 };
}
