// SPDX-License-Identifier: MIT
#include "account/ranks_causes.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/order.h"
#include "base/vec.h"

#define LOOKS_MOST (4u << 20) /* at causes, of all ranks: no recording that is one needs it */

/* Time of a process, by cause and place. */
struct cause {
	const struct account_part *part; /* the longest */
	uint32_t process, cause, chain;
	double ns;
};

struct causes {
	struct cause *of; /* by process, cause and place, each once */
	size_t n;
};

/* What all ranks of a communicator do, by cause and place. */
struct common {
	uint32_t cause, chain;
	double share; /* of their times, added up */
};

ORDER_BY(causes_in_order, struct cause, UP(process), UP(cause), UP(chain));
ORDER_BY(common_in_order, struct common, UP(cause), UP(chain));

static void causes_add(struct causes *causes, const struct account_part *part, uint32_t process,
                       double ns)
{
	*VEC_ADD(causes->of, causes->n) =
		(struct cause){ part, process, part->cause, part->chain, ns };
}

static void causes_merge(struct causes *causes)
{
	size_t n = 0;

	SORT(causes->of, causes->n, causes_in_order);
	for (size_t i = 0; i < causes->n; i++) {
		const struct cause *one = &causes->of[i];
		struct cause *last = n ? &causes->of[n - 1] : NULL;

		if (!last || causes_in_order(last, one)) {
			causes->of[n++] = *one;
			continue;
		}
		last->ns += one->ns;
		if (one->part->ns > last->part->ns)
			last->part = one->part;
	}
	causes->n = n;
}

/* Those of a process; n: how many. */
static const struct cause *causes_of(const struct causes *causes, uint32_t process, size_t *n)
{
	size_t from = ARRAY_BEFORE(causes->n, k, causes->of[k].process < process);

	*n = ARRAY_BEFORE(causes->n, k, causes->of[k].process <= process) - from;
	return *n ? &causes->of[from] : NULL;
}

/* ---- while others wait ----------------------------------------------------------------------- */

/* Whose matter it is that another GPU waits: who waits first on the way to the cause, for workers
 * of its own it may be. */
static const struct process *cause_whose(const struct facts *facts, const struct accounts *accounts,
                                         const struct account_part *part)
{
	uint32_t thread = part->thread;

	for (uint32_t via = part->via; accounts->vias[via].before; via = accounts->vias[via].before)
		if (accounts->vias[via].thread != FACTS_NONE)
			thread = accounts->vias[via].thread;
	return facts->threads[thread].process;
}

static void collect(const struct facts *facts, const struct accounts *accounts,
                    struct causes *meanwhile, struct causes *own)
{
	for (size_t i = 0; i < accounts->n; i++) {
		const struct account *account = &accounts->of[i];

		for (size_t k = 0; k < account->n_parts; k++) {
			const struct account_part *part = &account->parts[k];

			if (!account_part_is_for_peers(accounts, part))
				causes_add(own, part, account->process->id,
				           account->ns > 0 ? part->ns / account->ns : 0);
			else if (part->thread != FACTS_NONE)
				causes_add(meanwhile, part, cause_whose(facts, accounts, part)->id,
				           part->ns);
		}
	}
	causes_merge(meanwhile);
	causes_merge(own);
}

static void explain_meanwhile(struct rank_row *row, const struct causes *meanwhile)
{
	size_t n;
	const struct cause *of = causes_of(meanwhile, row->rank->process->id, &n);

	for (size_t i = 0; i < n; i++) {
		row->why_of_ns += of[i].ns;
		if (of[i].ns <= row->why_ns)
			continue;
		row->why_ns = of[i].ns;
		row->why = of[i].part;
	}
}

/* ---- beside others --------------------------------------------------------------------------- */

static struct common *common_of(const struct rank_row *rows, size_t n_rows,
                                const struct causes *own, size_t *n, size_t *known)
{
	struct common *common = NULL;
	size_t all = 0;

	*n = *known = 0;
	for (size_t i = 0; i < n_rows; i++) {
		size_t count;
		const struct cause *of = causes_of(own, rows[i].rank->process->id, &count);

		*known += count != 0;
		for (size_t k = 0; k < count; k++) {
			*VEC_ADD(common, all) =
				(struct common){ of[k].cause, of[k].chain, of[k].ns };
		}
	}
	SORT(common, all, common_in_order);
	for (size_t i = 0; i < all; i++) {
		if (*n && !common_in_order(&common[*n - 1], &common[i]))
			common[*n - 1].share += common[i].share;
		else
			common[(*n)++] = common[i];
	}
	return common;
}

static void explain_beside(struct rank_row *row, const struct causes *own,
                           const struct common *common, size_t n_common, size_t known)
{
	size_t n;
	const struct cause *of = causes_of(own, row->rank->process->id, &n);

	for (size_t i = 0; i < n; i++) {
		const struct common key = { of[i].cause, of[i].chain, 0 };
		size_t at = ARRAY_BEFORE(n_common, k, common_in_order(&common[k], &key) < 0);
		double others = (common[at].share - of[i].ns) / (double)(known - 1);
		double more = of[i].ns - others;

		if (more <= 0)
			continue;
		row->why_of_ns += more;
		if (more <= row->why_ns)
			continue;
		row->why_ns = more;
		row->why = of[i].part;
	}
	row->beside = row->why != NULL;
}

/* Processes can be in as many communicators as they like. */
static bool take_looks(const struct rank_row *rows, size_t n_rows, const struct causes *own,
                       const struct causes *meanwhile, size_t *looks)
{
	for (size_t i = 0; i < n_rows; i++) {
		size_t n, more;

		causes_of(own, rows[i].rank->process->id, &n);
		causes_of(meanwhile, rows[i].rank->process->id, &more);
		*looks += n + more;
	}
	return *looks <= LOOKS_MOST;
}

static void explain_comm(struct rank_row *rows, size_t n_rows, const struct causes *own,
                         const struct causes *meanwhile)
{
	size_t n, known;
	struct common *common = common_of(rows, n_rows, own, &n, &known);

	for (size_t i = 0; i < n_rows; i++) {
		size_t count;

		if (!rows[i].n_last)
			continue;
		causes_of(own, rows[i].rank->process->id, &count);
		if (count && known > 1)
			explain_beside(&rows[i], own, common, n, known);
		if (!rows[i].why) /* several of one process, too, are not told apart by its time */
			explain_meanwhile(&rows[i], meanwhile);
	}
	free(common);
}

void ranks_explain(struct ranks *ranks, const struct facts *facts, const struct accounts *accounts)
{
	struct causes meanwhile = { 0 }, own = { 0 };
	size_t looks = 0;

	collect(facts, accounts, &meanwhile, &own);
	for (size_t from = 0, to; from < ranks->n_rows; from = to) {
		for (to = from + 1; to < ranks->n_rows &&
		                    ranks->rows[to].rank->comm == ranks->rows[from].rank->comm;)
			to++;
		if (take_looks(&ranks->rows[from], to - from, &own, &meanwhile, &looks))
			explain_comm(&ranks->rows[from], to - from, &own, &meanwhile);
	}
	free(meanwhile.of);
	free(own.of);
}
