// SPDX-License-Identifier: MIT
/* Which kernels of communication are one collective's. */
#include "account/facts_inside.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/order.h"
#include "base/xalloc.h"

/* A kernel of communication, by what a call of a collective knows of its own. */
struct talk_row {
	uint64_t begin_ns;
	uint32_t process, work;
};

ORDER_BY(talks_by_begin, struct talk_row, UP(process), UP(begin_ns), UP(work));

ORDER_BY(talks_by_work, struct fact_talk, UP(work), UP(collective));

static struct talk_row *talk_rows(const struct facts *facts, size_t *n)
{
	struct talk_row *rows;

	*n = 0;
	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i))
		*n += facts->works[i].class == FACT_COMMUNICATION;
	rows = xcalloc(*n + 1, sizeof(*rows));
	*n = 0;
	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i))
		if (facts->works[i].class == FACT_COMMUNICATION)
			rows[(*n)++] =
				(struct talk_row){ facts->works[i].begin_ns,
				                   facts->works[i].process->id, (uint32_t)i };
	SORT(rows, *n, talks_by_begin);
	return rows;
}

static uint32_t talk_find(const struct talk_row *rows, size_t n, uint32_t process,
                          uint64_t begin_ns)
{
	size_t at = ARRAY_BEFORE(n, i,
	                         rows[i].process < process || (rows[i].process == process &&
	                                                       rows[i].begin_ns < begin_ns));

	return at < n && rows[at].process == process && rows[at].begin_ns == begin_ns
	               ? rows[at].work
	               : FACTS_NONE;
}

void facts_ranks(struct facts *facts)
{
	struct collectives *of = &facts->collectives;
	struct talk_row *rows;
	size_t n;

	collectives_end(of, facts->run);
	rows = talk_rows(facts, &n);
	facts->n_talks_alone = n;
	facts->call_works = xcalloc(of->n_calls + 1, sizeof(*facts->call_works));
	facts->talks = xcalloc(n + 1, sizeof(*facts->talks));
	for (size_t i = 0; i < of->n_calls; i++) {
		const struct collective_call *call = &of->calls[i];

		facts->call_works[i] =
			call->gpu_begin_ns ? talk_find(rows, n, of->ranks[call->rank].process->id,
		                                       facts_time(call->gpu_begin_ns))
					   : FACTS_NONE;
	}
	free(rows);
	for (size_t i = 0; i < of->n_all; i++) {
		const struct collective *one = &of->all[i];

		for (uint32_t k = 0; one->by_gpu && k < one->n; k++) {
			uint32_t work = facts->call_works[one->first + k];

			if (work != FACTS_NONE && facts->n_talks < n)
				facts->talks[facts->n_talks++] =
					(struct fact_talk){ work, (uint32_t)i };
		}
	}
	facts->n_talks_alone = n - facts->n_talks;
	SORT(facts->talks, facts->n_talks, talks_by_work);
}

const struct collective *facts_collective_of(const struct facts *facts, size_t work)
{
	size_t at = ARRAY_BEFORE(facts->n_talks, i, facts->talks[i].work < work);

	return at < facts->n_talks && facts->talks[at].work == work
	               ? &facts->collectives.all[facts->talks[at].collective]
	               : NULL;
}

uint32_t facts_work_of_call(const struct facts *facts, uint32_t call)
{
	return facts->call_works ? facts->call_works[call] : FACTS_NONE;
}
