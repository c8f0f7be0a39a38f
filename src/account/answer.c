// SPDX-License-Identifier: MIT
#include "account/answer.h"

#include <stdlib.h>
#include <string.h>

#include "account/change.h"
#include "account/choose.h"
#include "account/gain.h"
#include "account/phases.h"
#include "base/order.h"
#include "base/xalloc.h"

#define ANSWER_TIE   0.15  /* weight of the account's own time beside what is gained */
#define ANSWER_FEW   5     /* stretches or samples that are no evidence */
#define ANSWER_LINE  0.005 /* of the account: what is less is in its last line */
#define ANSWER_LEAST 0.001 /* a part of the account that begins no change after the first ones */
#define ANSWER_STEPS 0.1   /* of the account that steps are */
#define ANSWER_START 0.1   /* of the time: a start that is apart */
#define ANSWER_MANY  10    /* steps, that are surely some */
#define ANSWER_TRIES 3     /* places of one cause and process */
#define ANSWER_ROUND 128   /* launches and a wait, over and over: no step of a training */

/* ---- what can be changed --------------------------------------------------------------------- */

static bool part_is_change(const struct account_part *part)
{
	switch (part->cause) {
	case ACCOUNT_UNKNOWN:
	case ACCOUNT_HOST:
	case ACCOUNT_TURNAROUND:
	case ACCOUNT_GPU_WAIT:
		return false;
	case ACCOUNT_KERNELS: /* of a peer that others wait for, or of a stream that leaves room */
		return part->via || part->awaited;
	default:
		return true;
	}
}

/*
 * By what is gained at most, of the longest account: what a GPU lacks that is used for a moment is
 * little beside what another one lacks all the time. Time that follows a wait for the GPU is gained
 * by the wait's removal, and by that of what the host then did: of two that gain about the same the
 * one comes first that the account gives the time to; launches, which are many small things, after
 * a wait. Between waits they can be made one at most: where each is waited for by itself, nothing
 * can be joined before the waits are gone.
 */
static double change_rank(const struct answer_change *change)
{
	double share = (change->gain_ns + ANSWER_TIE * change->ns) / change->of_ns;

	return change->cause == ACCOUNT_LAUNCHING ? 0.9 * change->joined * share : share;
}

enum account_cause answer_bound(const struct account *account)
{
	return account_most_but(account, NULL, 0);
}

bool answer_lost_something(const struct run_info *run)
{
	for (int i = 0; i < LOST_COUNT; i++)
		if (run->lost[i] && i != LOST_LATE && i != LOST_NO_ENTRY && i != LOST_TEXTS)
			return true;
	return run->cut_short || run->damaged_chunks;
}

bool answer_lost_stacks(const struct run_info *run)
{
	const uint64_t *missed = run->stacks.missed;

	return missed[STACKS_LOST] || missed[STACKS_NO_ROOM] || missed[STACKS_PROCESSES] ||
	       missed[STACKS_PYTHON];
}

static double account_unknown_ns(const struct account *account)
{
	return account_ns(account, ACCOUNT_UNKNOWN, ACCOUNT_HOST);
}

/* Of the time that samples give a place, the share that they stand for. */
static double change_sampled(const struct answer *answer, const struct answer_change *change)
{
	uint64_t sample_ns = answer->facts->run->stacks.sample_ns;

	if ((!account_cause_computes(change->cause) && change->cause != ACCOUNT_GIL) || !sample_ns)
		return 1;
	return (double)change->count * (double)sample_ns / change->gain_ns;
}

static enum answer_sure change_sure(const struct answer *answer, const struct answer_change *change)
{
	const struct account *account = change->account;
	double unknown = account_unknown_ns(account);
	double sampled = change_sampled(answer, change);

	if (change->count < ANSWER_FEW || unknown > change->gain_ns || sampled < 0.1 ||
	    (!change->chain && change->cause != ACCOUNT_NO_CPU))
		return ANSWER_NO;
	if (unknown > 0.05 * account->ns || answer_lost_something(answer->facts->run) ||
	    answer_lost_stacks(answer->facts->run) || sampled < 0.5 ||
	    (account_cause_computes(change->cause) && account->unsampled_ns > account->sampled_ns))
		return ANSWER_MOSTLY;
	return ANSWER_YES;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The same thing in two accounts: who is waited for by others is slow in his own, too. */
static bool changes_are_one(const struct answer *answer, const struct answer_change *a,
                            const struct answer_change *b)
{
	const struct fact_thread *threads = answer->facts->threads;
	const struct process *of_a = a->thread == FACTS_NONE ? NULL : threads[a->thread].process;
	const struct process *of_b = b->thread == FACTS_NONE ? NULL : threads[b->thread].process;

	return a->cause == b->cause && of_a == of_b &&
	       (a->chain == b->chain || (a->chain && b->chain &&
	                                 chains_function(answer->facts->chains, a->chain) ==
	                                         chains_function(answer->facts->chains, b->chain)));
}

/* That others wait for it is worth telling, where it costs them about as much. */
static double change_weight(const struct answer_change *change)
{
	return change->via ? 1.25 * change_rank(change) : change_rank(change);
}

/* In the place of what is the same, else of the last where there is no room. */
static void answer_keep(struct answer *answer, const struct answer_change *change)
{
	struct answer_change *changes = answer->changes;
	size_t at = 0;

	while (at < answer->n_changes && !changes_are_one(answer, &changes[at], change))
		at++;
	if (at < answer->n_changes && change_weight(&changes[at]) >= change_weight(change))
		return;
	if (at == ANSWER_MOST && change_rank(&changes[--at]) >= change_rank(change))
		return;
	answer->n_changes += at == answer->n_changes;
	for (; at && change_rank(&changes[at - 1]) < change_rank(change); at--)
		changes[at] = changes[at - 1];
	for (; at + 1 < answer->n_changes && change_rank(&changes[at + 1]) >= change_rank(change);
	     at++)
		changes[at] = changes[at + 1];
	changes[at] = *change;
}

/* Parts are in order of their time, so the first of a kind leads it. */
static void answer_choose(struct answer *answer, const struct account *account)
{
	struct chooser chooser;
	size_t tries = 0;

	chooser_init(&chooser, answer, account);
	for (size_t i = 0; i < account->n_parts && tries < ACCOUNT_CAUSES * ANSWER_TRIES;) {
		struct answer_change change;

		if (chooser.taken[i] || !part_is_change(&account->parts[i])) {
			i++;
			continue;
		}
		if (tries >= ACCOUNT_CAUSES &&
		    account->parts[i].gain_ns < ANSWER_LEAST * account->ns)
			break;
		tries++;
		i += change_choose(&chooser, &account->parts[i], &change);
		change.turn = tries;
		change.sure = change_sure(answer, &change);
		if (change.gain_ns >= ANSWER_LITTLE * account->ns)
			answer_keep(answer, &change);
	}
	chooser_clear(&chooser);
}

static void answer_find_steps(const struct facts *facts, const struct account *account,
                              struct steps *steps)
{
	if (account->thread == FACTS_NONE)
		return;

	const struct fact_thread *thread = &facts->threads[account->thread];
	struct step_launch *launches = NULL;
	struct step_range *ranges = NULL;
	struct steps_of of = { .begin_ns = account->begin_ns, .end_ns = account->end_ns };

	for (size_t i = 0; i < thread->n_calls; i = spill_next(facts->spill, i)) {
		const struct fact_call *call = &thread->calls[i];

		if (!call->correlation || call->begin_ns < facts->begin_ns)
			continue;
		*SPILL_ADD(facts->spill, launches, of.n_launches) = (struct step_launch){
			call->begin_ns, call->kernel ? 2 * call->kernel : 2 * call->function->id + 1
		};
	}
	for (size_t i = 0; i < facts->n_ranges; i = spill_next(facts->spill, i)) {
		const struct fact_range *range = &facts->ranges[i];

		if (range->thread != account->thread)
			continue;
		*SPILL_ADD(facts->spill, ranges, of.n_ranges) =
			(struct step_range){ range->begin_ns, range->end_ns, range->name,
			                     range->depth, range->likely };
	}
	of.launches = launches;
	of.ranges = ranges;
	steps_find(steps, &of);
	steps_keep_within(steps, account->begin_ns, account->end_ns);
	/* a few launches that come again are no steps of a program that mostly does something else
	 */
	if (steps->how != STEPS_NONE && steps->how != STEPS_RANGES &&
	    (double)(steps->begin_ns[steps->n] - steps->begin_ns[0]) < ANSWER_STEPS * account->ns)
		steps_clear(steps);
	spill_drop(facts->spill, launches);
	spill_drop(facts->spill, ranges);
}

static double account_share(const struct account *account, enum account_cause first,
                            enum account_cause last)
{
	return account->ns > 0 ? account_ns(account, first, last) / account->ns : 0;
}

double answer_busy(const struct account *account)
{
	return account_share(account, ACCOUNT_KERNELS, ACCOUNT_GPU_WAIT);
}

double answer_host(const struct account *account)
{
	return account_share(account, ACCOUNT_HOST, ACCOUNT_HOST);
}

double answer_unknown(const struct account *account)
{
	return account_share(account, ACCOUNT_UNKNOWN, ACCOUNT_HOST);
}

/* What is little beside what is left once those before are changed is not told. */
static void answer_drop_little(struct answer *answer)
{
	size_t n = 0;

	for (size_t i = 0; i < answer->n_changes; i++) {
		const struct answer_change *change = &answer->changes[i];
		double left_ns = change->account->ns;

		for (size_t k = 0; k < n; k++)
			if (answer->changes[k].account == change->account)
				left_ns -= answer->changes[k].gain_ns;
		if (change->gain_ns >= ANSWER_NEXT * left_ns)
			answer->changes[n++] = *change;
	}
	answer->n_changes = n;
}

static bool call_is_wait(const struct fact_call *call)
{
	return call->op == OP_SYNC || (call->blocking && !call->waited);
}

/* How many waits for the GPU the thread has between such launches, and where most of them are. */
static void change_find_waits(const struct facts *facts, struct answer_change *change)
{
	const struct fact_thread *thread = &facts->threads[change->thread];
	struct chains_weight *weights = NULL;
	uint64_t waits = 0, asks = 0, subtree;
	size_t n = 0;

	for (size_t i = 0; i < thread->n_calls; i = spill_next(facts->spill, i)) {
		const struct fact_call *call = &thread->calls[i];

		if (call->begin_ns < change->account->begin_ns)
			continue;
		asks += call->correlation && !call_is_wait(call);
		if (!call_is_wait(call) || (change->awaited && !call->awaited))
			continue;
		waits++;
		if (!call->chain)
			continue;
		*SPILL_ADD(facts->spill, weights, n) = (struct chains_weight){ call->chain, 1 };
	}
	change->waits_chain = chains_heaviest(facts->chains, weights, n, ANSWER_SHARE, &subtree);
	if (change->awaited || (waits && asks <= ANSWER_ROUND * waits && change->waits_chain &&
	                        chain_is_below(facts->chains, change->chain, change->waits_chain)))
		change->waits = waits;
	if (!change->waits || chain_is_below(facts->chains, change->waits_chain, change->chain))
		change->waits_chain = 0;
	spill_drop(facts->spill, weights);
}

static double account_awaited_ns(const struct account *account)
{
	double ns = 0;

	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		ns += part->cause == ACCOUNT_LAUNCHING && part->awaited ? part->ns : 0;
	}
	return ns;
}

/* Of launches between waits of those that have most of them. */
static void answer_count_waits(struct answer *answer)
{
	for (size_t i = 0; i < answer->n_changes; i++) {
		struct answer_change *change = &answer->changes[i];

		if (change->cause == ACCOUNT_LAUNCHING && change->thread != FACTS_NONE &&
		    (!change->awaited ||
		     change->ns >= ANSWER_SHARE * account_awaited_ns(change->account)))
			change_find_waits(answer->facts, change);
	}
}

static void answer_find_gains(struct answer *answer)
{
	struct gain_host *hosts = xcalloc(answer->accounts->n + 1, sizeof(*hosts));

	for (size_t i = 0; i < answer->n_changes; i++) {
		struct answer_change *change = &answer->changes[i];
		size_t of = (size_t)(change->account - answer->accounts->of);

		gain_find(answer, change, &hosts[of]);
	}
	for (size_t i = 0; i < answer->accounts->n; i++)
		gain_host_clear(&hosts[i]);
	free(hosts);
}

/* Little of what it takes is gained: others work beside it, and need as long. */
static bool change_gains_little(const struct answer_change *change)
{
	return change->left_ns > change->account->ns - change->gain_ns / 4;
}

/* Much enough to be told first. */
static bool change_stands_out(const struct answer_change *change)
{
	return change->gain_ns >= ANSWER_FIRST * change->of_ns &&
	       change->gain_ns >= account_unknown_ns(change->account);
}

/* Those come after the ones that stand out, in the order that they have. */
static void answer_put_back(struct answer *answer)
{
	struct answer_change little[ANSWER_MOST];
	size_t n = 0, n_little = 0, n_out = 0;

	while (n_out < answer->n_changes && change_stands_out(&answer->changes[n_out]))
		n_out++;
	for (size_t i = 0; i < n_out; i++)
		if (change_gains_little(&answer->changes[i]))
			little[n_little++] = answer->changes[i];
		else
			answer->changes[n++] = answer->changes[i];
	memcpy(&answer->changes[n], little, n_little * sizeof(*little));
}

/*
 * Where a program starts for long before it does the same over and over, that is what is asked
 * about: the account is of the time from the first step on, and the start is told apart. 0: it is
 * of all, as no steps were found that are most of what comes then.
 */
static uint64_t answer_from_ns(const struct account *account, const struct steps *steps)
{
	double all_ns = (double)(account->end_ns - account->begin_ns), ns, left_ns;

	if (steps->how == STEPS_NONE || steps->n < ANSWER_MANY ||
	    steps->begin_ns[0] <= account->begin_ns || steps->begin_ns[0] >= account->end_ns)
		return 0;
	ns = (double)(steps->begin_ns[steps->n] - steps->begin_ns[0]);
	left_ns = (double)(account->end_ns - steps->begin_ns[0]);
	return all_ns - left_ns >= ANSWER_START * all_ns && ns >= 2 * ANSWER_START * all_ns &&
	                       ns >= left_ns / 2
	               ? steps->begin_ns[0]
	               : 0;
}

static void answer_find_all_steps(struct answer *answer, const struct facts *facts,
                                  struct accounts *accounts)
{
	uint64_t from_ns[ACCOUNTS_MAX], any = 0;

	for (size_t i = 0; i < accounts->n; i++) {
		answer_find_steps(facts, &accounts->of[i], &answer->steps[i]);
		any |= from_ns[i] = answer_from_ns(&accounts->of[i], &answer->steps[i]);
	}
	if (any)
		accounts_make_again(accounts, facts, from_ns);
}

void answer_make(struct answer *answer, const struct facts *facts, struct accounts *accounts)
{
	memset(answer, 0, sizeof(*answer));
	answer->facts = facts;
	answer->accounts = accounts;
	answer->budget = ACCOUNT_BUDGET;
	answer->steps = xcalloc(accounts->n + 1, sizeof(*answer->steps));
	answer_find_all_steps(answer, facts, accounts);
	for (size_t i = 0; i < accounts->n; i++)
		if (accounts->of[i].ns > answer->longest_ns)
			answer->longest_ns = accounts->of[i].ns;
	for (size_t i = 0; i < accounts->n; i++)
		if (accounts->of[i].ns >= ANSWER_LEAST_NS)
			answer_choose(answer, &accounts->of[i]);
	answer_drop_little(answer);
	answer_count_waits(answer);
	answer_find_gains(answer);
	answer_put_back(answer);
	phases_make(answer);
	if (answer->n_changes && !change_stands_out(&answer->changes[0]))
		answer->n_changes = 0;
}

void answer_clear(struct answer *answer)
{
	for (size_t i = 0; answer->accounts && i < answer->accounts->n; i++)
		steps_clear(&answer->steps[i]);
	free(answer->steps);
	free(answer->phases);
	memset(answer, 0, sizeof(*answer));
}

/* ---- lines of an account --------------------------------------------------------------------- */

ORDER_BY(line_order, struct answer_line, DOWN(ns));

/* One line for each cause, and process where others are waited for, at its heaviest place. */
static size_t lines_gather(struct chooser *chooser, struct answer_line *lines, size_t most)
{
	const struct account *account = chooser->account;
	uint64_t subtree;
	size_t n = 0;

	for (size_t i = 0; i < account->n_parts && n < most; i++) {
		const struct account_part *of = &account->parts[i];
		struct answer_line *line = &lines[n];

		if (chooser->taken[i])
			continue;
		n++;
		*line = (struct answer_line){ .cause = of->cause,
			                      .thread = of->thread,
			                      .via = of->via,
			                      .awaited = of->awaited };
		for (size_t k = i; k < account->n_parts; k++) {
			const struct account_part *part = &account->parts[k];

			if (chooser->taken[k] || !parts_are_alike(chooser->answer->facts, of, part))
				continue;
			chooser->taken[k] = true;
			line->ns += part->ns;
			chooser_weigh(chooser, part->chain, part->ns);
		}
		line->chain = chooser_heaviest(chooser, ANSWER_SHARE, &subtree);
	}
	return n;
}

size_t answer_lines(const struct answer *answer, const struct account *account,
                    struct answer_line *lines, size_t most)
{
	struct answer_line all[4 * ACCOUNT_CAUSES];
	struct chooser chooser;
	double told = 0;
	size_t n;

	chooser_init(&chooser, answer, account);
	n = lines_gather(&chooser, all, 4 * ACCOUNT_CAUSES);
	chooser_clear(&chooser);
	SORT(all, n, line_order);
	while (n && all[n - 1].ns < ANSWER_LINE * account->ns)
		n--;
	if (n >= most)
		n = most - 1;
	for (size_t i = 0; i < n; i++) {
		lines[i] = all[i];
		told += all[i].ns;
	}
	if (n < most && account->ns - told > 0.0005 * account->ns)
		lines[n++] = (struct answer_line){ .cause = ACCOUNT_CAUSES,
			                           .thread = FACTS_NONE,
			                           .ns = account->ns - told };
	return n;
}
