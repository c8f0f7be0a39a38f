// SPDX-License-Identifier: MIT
#include "account/choose.h"

#include <stdlib.h>
#include <string.h>

#include "account/change.h"
#include "account/keyed.h"
#include "base/xalloc.h"

#define ANSWER_PART       0.3 /* of a change: so much is told of a place within it, */
#define ANSWER_WITHIN_ALL 0.4 /* if all that are told have so much */

void chooser_init(struct chooser *chooser, const struct answer *answer,
                  const struct account *account)
{
	*chooser = (struct chooser){ .answer = answer, .account = account };
	chooser->weights = xcalloc(account->n_parts + 1, sizeof(*chooser->weights));
	chooser->taken = xcalloc(account->n_parts + 1, sizeof(*chooser->taken));
	chooser->of = xcalloc(account->n_parts + 1, sizeof(struct account_part *));
}

void chooser_clear(struct chooser *chooser)
{
	FREE_ALL(chooser->weights, chooser->taken, chooser->of);
}

static void change_add(struct answer_change *change, const struct account_part *part,
                       const struct account_part **most)
{
	change->ns += part->ns;
	change->gain_ns += part->gain_ns;
	change->count += part->count;
	if (!*most || part->gain_ns > (*most)->gain_ns)
		*most = part;
}

/* The process that had the CPU for more than half of it, if there is one. */
static void change_find_rival(struct answer_change *change, const struct account_part *const *of,
                              size_t n)
{
	struct rival {
		uint32_t pid, unused;
		double ns;
	};
	struct keyed rivals = { .row_bytes = sizeof(struct rival),
		                .key_bytes = offsetof(struct rival, ns) };

	for (size_t i = 0; i < n; i++) {
		struct rival *rival =
			keyed_row(&rivals, &(struct rival){ of[i]->rival, 0, 0 }, SIZE_MAX);

		rival->ns += of[i]->gain_ns;
		if (rival->pid && rival->ns >= change->gain_ns / 2) {
			change->rival = rival->pid;
			change->rival_name = of[i]->longest ? of[i]->longest->rival : "";
		}
	}
	keyed_free(&rivals);
}

enum account_cause account_most_but(const struct account *account,
                                    const struct account_part *const *but, size_t n)
{
	double ns[ACCOUNT_CAUSES] = { 0 };
	enum account_cause most = ACCOUNT_UNKNOWN;

	for (size_t i = 0; i < account->n_parts; i++)
		ns[account->parts[i].cause] += account->parts[i].ns;
	for (size_t i = 0; i < n; i++)
		ns[but[i]->cause] -= but[i]->ns;
	for (int cause = 1; cause < ACCOUNT_CAUSES; cause++)
		if (ns[cause] > ns[most])
			most = (enum account_cause)cause;
	return most;
}

/* Rounding can leave a little less than nothing, and times of a damaged recording more than all. */
void chooser_weigh(struct chooser *chooser, uint32_t chain, double ns)
{
	const uint64_t most = UINT64_MAX / 2;

	if (ns > 0)
		chooser->weights[chooser->n_weights++] =
			(struct chains_weight){ chain, ns < (double)most ? (uint64_t)ns : most };
}

uint32_t chooser_heaviest(struct chooser *chooser, double share, uint64_t *subtree)
{
	size_t n = chooser->n_weights;

	chooser->n_weights = 0;
	return chains_heaviest(chooser->answer->facts->chains, chooser->weights, n, share, subtree);
}

static bool within_has(const struct chains *chains, const struct answer_within *within, size_t n,
                       uint32_t chain)
{
	for (size_t i = 0; i < n; i++)
		if (chain_is_below(chains, chain, within[i].chain))
			return true;
	return false;
}

/* From there outwards to what has a part of the change's gain that is worth telling. */
static uint32_t within_widen(const struct chooser *chooser, const struct answer_change *change,
                             uint32_t node, double *ns)
{
	const struct chains *chains = chooser->answer->facts->chains;
	size_t depth = chains_depth(chains, node);
	double *ends_ns = xcalloc(depth + 1, sizeof(*ends_ns)); /* by depth: no deeper */

	for (size_t i = 0; i < chooser->n_of; i++)
		ends_ns[chain_shared_depth(chains, chooser->of[i]->chain, node)] +=
			chooser->of[i]->gain_ns;
	*ns = ends_ns[depth];
	for (; depth && *ns < ANSWER_PART * change->gain_ns; *ns += ends_ns[--depth])
		node = chains_parent(chains, node);
	free(ends_ns);
	return node;
}

/* Of a place that calls several who take the time, none of them most of it: those who do. */
static void change_find_within(struct chooser *chooser, struct answer_change *change)
{
	const struct chains *chains = chooser->answer->facts->chains;
	struct answer_within within[ANSWER_WITHIN] = { 0 }, less;
	double all = 0;

	for (size_t n = 0; n < ANSWER_WITHIN; n++) {
		uint64_t heaviest_ns;
		double ns = 0;

		for (size_t i = 0; i < chooser->n_of; i++)
			if (!within_has(chains, within, n, chooser->of[i]->chain))
				chooser_weigh(chooser, chooser->of[i]->chain,
				              chooser->of[i]->gain_ns);

		uint32_t node =
			chooser_heaviest(chooser, n ? ANSWER_SHARE : ANSWER_PART, &heaviest_ns);

		node = within_widen(chooser, change, node, &ns);
		if (chains_depth(chains, node) <= chains_depth(chains, change->chain) ||
		    (n && (chain_is_below(chains, node, within[0].chain) ||
		           chain_is_below(chains, within[0].chain, node))))
			break;
		within[n] = (struct answer_within){ node, ns / change->gain_ns };
		all += within[n].share;
	}
	if (all < ANSWER_WITHIN_ALL)
		return;
	if (within[1].share > within[0].share) {
		less = within[0];
		within[0] = within[1];
		within[1] = less;
	}
	memcpy(change->within, within, sizeof(within));
}

/* How many processes there are of which these parts are, but one. */
static uint32_t change_alike(const struct facts *facts, const struct account_part *const *of,
                             size_t n)
{
	struct keyed seen = { .row_bytes = sizeof(struct process *),
		              .key_bytes = sizeof(struct process *) };
	uint32_t others;

	for (size_t i = 0; i < n; i++)
		if (of[i]->thread != FACTS_NONE)
			keyed_row(&seen, &facts->threads[of[i]->thread].process, ANSWER_ALIKE + 1);
	others = seen.n ? (uint32_t)seen.n - 1 : 0;
	keyed_free(&seen);
	return others;
}

/* Whose it is, and by which waits: of the most of it; what all threads of a process lack is all
 * theirs. */
static void change_set_whose(struct answer_change *change, const struct account_part *most,
                             const struct facts *facts)
{
	uint32_t own = change->account->thread;

	change->thread = most->thread;
	change->via = most->via;
	if (change->cause != ACCOUNT_NO_CPU || change->chain || own == FACTS_NONE ||
	    most->thread == FACTS_NONE ||
	    facts->threads[own].process != facts->threads[most->thread].process)
		return;
	change->thread = own;
	change->via = 0;
}

/* How much of the launches would be gone if those between two waits were one. */
static double change_joined(const struct facts *facts, const struct account_part *part)
{
	const struct fact_thread *thread =
		part->thread == FACTS_NONE ? NULL : &facts->threads[part->thread];

	return part->cause == ACCOUNT_LAUNCHING && part->awaited && thread && thread->awaited
	               ? 1 - (double)thread->awaits / (double)thread->awaited
	               : 1;
}

/* All parts of the cause and process of `of` that are at its heaviest place. */
static void change_make(struct chooser *chooser, const struct account_part *of,
                        struct answer_change *change)
{
	const struct account *account = chooser->account;
	const struct account_part *most = NULL;
	uint64_t subtree;

	for (size_t i = 0; i < account->n_parts; i++)
		if (!chooser->taken[i] &&
		    parts_are_alike(chooser->answer->facts, of, &account->parts[i]))
			chooser_weigh(chooser, account->parts[i].chain, account->parts[i].gain_ns);

	uint32_t node = chains_called(chooser->answer->facts->chains,
	                              chooser_heaviest(chooser, ANSWER_SHARE, &subtree));

	chooser->n_of = 0;
	memset(change, 0, sizeof(*change));
	change->account = account;
	change->of_ns = chooser->answer->longest_ns;
	change->cause = of->cause;
	change->chain = node;

	change->lead = of;
	change->whole = change_is_whole(chooser->answer->facts, change);
	change->awaited = of->awaited;
	change->joined = change_joined(chooser->answer->facts, of);
	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		if (chooser->taken[i] || !change_has(chooser->answer->facts, change, part))
			continue;
		chooser->taken[i] = true;
		chooser->of[chooser->n_of++] = part;
		change_add(change, part, &most);
	}
	if (!most)
		most = of;
	if (of->cause == ACCOUNT_NO_CPU)
		change_find_rival(change, chooser->of, chooser->n_of);
	change_set_whose(change, most, chooser->answer->facts);
	change->alike = change_alike(chooser->answer->facts, chooser->of, chooser->n_of);
	change->longest = most->longest;
	change->work = most->work;
	change->call = most->call;
	change_find_within(chooser, change);
	if (change->gain_ns > account->ns)
		change->gain_ns = account->ns;
	change->then = account_most_but(account, chooser->of, chooser->n_of);
}

/* What goes along with a change is told under the largest cause of all: a part of that, if it is
 * another one than what leads it. NULL: it is the same. */
static const struct account_part *change_larger(const struct chooser *chooser,
                                                const struct answer_change *change)
{
	const struct account_part *first[ACCOUNT_CAUSES] = { NULL };
	double ns[ACCOUNT_CAUSES] = { 0 };
	enum account_cause most = change->cause;

	for (size_t i = 0; i < chooser->n_of; i++) { /* the largest come first */
		const struct account_part *part = chooser->of[i];

		ns[part->cause] += part->gain_ns;
		if (!first[part->cause])
			first[part->cause] = part;
	}
	for (int cause = ACCOUNT_COMPUTING; cause < ACCOUNT_CAUSES; cause++)
		if (ns[cause] > ns[most])
			most = (enum account_cause)cause;
	return most != change->cause && change->cause >= ACCOUNT_COMPUTING ? first[most] : NULL;
}

bool change_choose(struct chooser *chooser, const struct account_part *of,
                   struct answer_change *change)
{
	const struct account_part *larger;

	change_make(chooser, of, change);
	larger = change_larger(chooser, change);
	if (!larger)
		return true;
	for (size_t i = 0; i < chooser->n_of; i++)
		chooser->taken[chooser->of[i] - chooser->account->parts] = false;
	change_make(chooser, larger, change);
	return false;
}
