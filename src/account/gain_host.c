// SPDX-License-Identifier: MIT
#include "account/gain_host.h"

#include <stdlib.h>

#include "account/change.h"
#include "account/keyed.h"
#include "account/walk.h"
#include "analysis/place.h"
#include "base/xalloc.h"

#define HOST_POLLS 10 /* samples, of so many one: the thread asks whether the GPU is done */
#define HOST_ASKED                                                                                 \
	0.25         /* of the time between two waits for it that who is asked waits for that      \
	              */
#define HOST_HOPS 16 /* of threads that wait to those that they wait for: others are asked */

/* A thread waits for another one, which works ahead of it. */
struct hop {
	uint32_t waits, works;
};

struct ahead {
	struct answer *answer;
	const struct answer_change *change;
	const struct gain_host *host;
	struct hop hops[HOST_HOPS]; /* that the change made it wait by */
	size_t n;
};

void gain_left_add(struct gain_left *left, const struct account_part *part, double share)
{
	left->ns[part->cause] += share * part->ns;
	left->all_ns += share * part->ns;
}

/* ---- what goes ------------------------------------------------------------------------------- */

/* For want of a CPU, which the change's own threads had. */
static bool part_lacks_changes_cpu(const struct facts *facts, const struct answer_change *change,
                                   const struct account_part *part)
{
	return part->cause == ACCOUNT_NO_CPU && part->rival && change->thread != FACTS_NONE &&
	       change->thread != change->account->thread &&
	       (account_cause_computes(change->cause) || change->cause == ACCOUNT_GIL) &&
	       facts->threads[change->thread].process->pid == part->rival;
}

/* The change's thread waits at a place that is changed as a whole. */
static bool wait_is_there(const struct facts *facts, const struct answer_change *change,
                          const struct account_via *wait)
{
	return wait->thread == change->lead->thread && wait->chain &&
	       chain_is_below(facts->chains, wait->chain, change->chain);
}

/* By cause, of its waits that have a place: what is there, and less what is elsewhere. */
static void waits_there(const struct answer *answer, const struct answer_change *change,
                        const struct gain_waits *waits, const struct account *account,
                        double ns[ACCOUNT_CAUSES])
{
	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];
		const struct account_via *wait = &waits->vias[part->via];

		if (part->via && wait->chain && wait->thread == change->lead->thread)
			ns[wait->cause] +=
				wait_is_there(answer->facts, change, wait) ? part->ns : -part->ns;
	}
}

void gain_waits_make(struct gain_waits *waits, const struct answer *answer,
                     const struct answer_change *change, const struct account *account)
{
	double there_ns[ACCOUNT_CAUSES] = { 0 };

	free(waits->gone);
	waits->gone = xcalloc(waits->n + 1, sizeof(*waits->gone));
	if (!change->whole || change->lead->thread == FACTS_NONE)
		return;
	waits_there(answer, change, waits, account, there_ns);
	for (size_t i = 1; i < waits->n; i++) { /* the one that it is in comes before */
		const struct account_via *wait = &waits->vias[i];

		waits->gone[i] = waits->gone[wait->before] ||
		                 wait_is_there(answer->facts, change, wait) ||
		                 (!wait->chain && wait->thread == change->lead->thread &&
		                  there_ns[wait->cause] > 0);
	}
}

bool gain_has(const struct answer *answer, const struct answer_change *change,
              const struct gain_waits *waits, const struct account_part *part)
{
	struct account_part alike = *part;

	if (waits->gone[part->via])
		return true;
	if (waits->vias != answer->accounts->vias) /* of another thread than the GPU waits for */
		alike.via = change->lead->via;
	if (!change_has(answer->facts, change, &alike))
		return false;
	if (change->whole && part->cause < ACCOUNT_COMPUTING)
		return true; /* its copies, which are told by themselves, too */
	for (size_t i = 0; i < answer->n_changes; i++) {
		const struct answer_change *other = &answer->changes[i];

		if (other->account == change->account && other->turn < change->turn &&
		    change_has(answer->facts, other, &alike))
			return false;
	}
	return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* A wait for the GPU that goes with the change. */
static bool call_goes(const struct facts *facts, const struct answer_change *change,
                      const struct fact_call *call)
{
	struct account_part part = { .cause = walk_cause_of_call(call),
		                     .chain = call->chain,
		                     .thread = change->account->thread };

	return part.chain && change_has(facts, change, &part);
}

double gain_host_after_waits(const struct facts *facts, const struct answer_change *change)
{
	const struct account *account = change->account;
	const struct fact_thread *thread = &facts->threads[account->thread];
	const struct fact_call *waited = NULL;
	double ns = 0;

	for (size_t i = 0; i < thread->n_calls; i = spill_next(facts->spill, i)) {
		const struct fact_call *call = &thread->calls[i];

		if (call->begin_ns < account->begin_ns || call->begin_ns >= account->end_ns)
			continue;
		if (waited && call->correlation) {
			ns += (double)(call->end_ns - waited->end_ns);
			waited = NULL;
		}
		if (call->waits_all && !call_goes(facts, change, call))
			waited = call;
	}
	return ns;
}

void gain_host_make(struct gain_host *host, struct answer *answer, const struct account *account)
{
	const struct facts *facts = answer->facts;
	const struct fact_thread *thread;

	host->made = true;
	if (account->thread == FACTS_NONE)
		return;
	thread = &facts->threads[account->thread];
	if (HOST_POLLS * thread->polls > thread->n_samples)
		return; /* how much of its time it only waited is not known */
	host->known = true;
	account_of_thread_alone(&host->account, facts, account, account->thread, &answer->budget,
	                        &host->waits.vias, &host->waits.n);
}

void gain_host_clear(struct gain_host *host)
{
	FREE_ALL(host->account.parts, host->waits.vias, host->waits.gone);
	*host = (struct gain_host){ 0 };
}

/* ---- who works ahead ------------------------------------------------------------------------- */

/* It has nothing to do until the other one asks, or somebody who is not known. */
static bool rest_waits_for(const struct fact_rest *rest, uint32_t thread)
{
	if (rest->gil)
		return false;
	return rest->waker == thread || (rest->waker == FACTS_NONE &&
	                                 (rest->wait == WAIT_NETWORK || rest->wait == WAIT_PIPE));
}

/* How long in that time it waits to be asked by that thread. */
static double asked_ns(struct fact_thread *works, uint32_t by, uint64_t begin_ns, uint64_t end_ns,
                       uint64_t *budget)
{
	double ns = 0;

	for (size_t i = facts_rest_at(works, begin_ns);
	     i < works->n_rests && works->rests[i].begin_ns < end_ns && *budget; i++) {
		const struct fact_rest *rest = &works->rests[i];
		uint64_t from = facts_max(rest->begin_ns, begin_ns);
		uint64_t to = facts_min(rest->ready_ns, end_ns);

		--*budget;
		if (from < to && rest_waits_for(rest, by))
			ns += (double)(to - from);
	}
	return ns;
}

/* In the time between two waits of the one for the other that is little of it. */
static bool hop_is_ahead(struct answer *answer, const struct hop *hop)
{
	const struct fact_thread *waits = &answer->facts->threads[hop->waits];
	struct fact_thread *works = &answer->facts->threads[hop->works];
	const struct fact_rest *before = NULL;
	double between = 0, asked = 0;

	for (size_t i = 0; i < waits->n_rests && answer->budget; i++) {
		const struct fact_rest *rest = &waits->rests[i];

		--answer->budget;
		if (rest->waker != hop->works || rest->gil)
			continue;
		if (before && before->end_ns < rest->begin_ns) {
			between += (double)(rest->begin_ns - before->end_ns);
			asked += asked_ns(works, hop->waits, before->end_ns, rest->begin_ns,
			                  &answer->budget);
		}
		before = rest;
	}
	return between > 0 && asked < HOST_ASKED * between;
}

static const struct hop *ahead_find(const struct ahead *ahead, uint32_t waits, uint32_t works)
{
	for (size_t i = 0; i < ahead->n; i++)
		if (ahead->hops[i].waits == waits && ahead->hops[i].works == works)
			return &ahead->hops[i];
	return NULL;
}

/* Of the waits that led to a part the outermost for one who works ahead. NULL: none is. */
static const struct hop *ahead_of_part(const struct ahead *ahead, const struct account_part *part)
{
	const struct account_via *vias = ahead->host->waits.vias;
	const struct hop *found = NULL;
	uint32_t works = part->thread;

	for (uint32_t via = part->via; via; via = vias[via].before) {
		const struct hop *hop = ahead_find(ahead, vias[via].thread, works);

		found = hop ? hop : found;
		works = vias[via].thread;
	}
	return found;
}

/* All that the thread waits for those by who do what goes; or else who do what stays. */
static void ahead_collect(struct ahead *ahead, bool goes)
{
	const struct gain_host *host = ahead->host;
	struct hop known[HOST_HOPS];
	size_t n_known = 0;

	for (size_t i = 0; i < host->account.n_parts; i++) {
		const struct account_part *part = &host->account.parts[i];
		struct hop hop = { FACTS_NONE, part->thread };

		if (!part->via || part->cause == ACCOUNT_GIL ||
		    gain_has(ahead->answer, ahead->change, &host->waits, part) != goes)
			continue;
		for (uint32_t via = part->via; via; via = host->waits.vias[via].before) {
			size_t at = 0;

			hop.waits = host->waits.vias[via].thread;
			while (at < n_known &&
			       (known[at].waits != hop.waits || known[at].works != hop.works))
				at++;
			if (at == n_known && at < HOST_HOPS) {
				known[n_known++] = hop;
				if (hop.waits != FACTS_NONE && hop.works != FACTS_NONE &&
				    hop_is_ahead(ahead->answer, &hop))
					ahead->hops[ahead->n++] = hop;
			}
			hop.works = hop.waits;
		}
	}
}

/* ---- what is left ---------------------------------------------------------------------------- */

/* Nobody is known to have ended it: of who works ahead it is for something to do. */
static bool cause_is_for_something_to_do(enum account_cause cause)
{
	return cause == ACCOUNT_LOCK || cause == ACCOUNT_PIPE || cause == ACCOUNT_NETWORK ||
	       cause == ACCOUNT_OTHER_WAIT || cause == ACCOUNT_CHILD || cause == ACCOUNT_GIL;
}

/* It waits there for the thread itself, which is no time that it needs. */
static bool part_is_of(const struct account_via *vias, const struct account_part *part,
                       uint32_t thread)
{
	uint32_t works = part->thread;

	for (uint32_t via = part->via; via; via = vias[via].before) {
		if (works == thread && vias[via].cause != ACCOUNT_GIL)
			return true;
		works = vias[via].thread;
	}
	return false;
}

/* What a thread of CUDA's does in no code of the program is the GPU's time; one that never is in
 * such code has the place of who waits for it. */
static bool part_is_cudas(const struct facts *facts, const struct account_part *part)
{
	const struct stack_frame *frame = chains_frame(facts->chains, part->chain);
	const struct fact_thread *thread =
		part->thread == FACTS_NONE ? NULL : &facts->threads[part->thread];

	return thread && thread->of_cuda &&
	       (!thread->is_cudas || !frame || chains_rank(facts->chains, frame) > PLACE_NATIVE);
}

/* What one who works ahead has to do, with those whom it asks. */
static struct gain_left ahead_left(const struct ahead *ahead, uint32_t thread)
{
	struct gain_left left = { 0 };
	struct gain_host own = { 0 };
	struct ahead of = *ahead;

	account_of_thread_alone(&own.account, ahead->answer->facts, ahead->change->account, thread,
	                        &ahead->answer->budget, &own.waits.vias, &own.waits.n);
	gain_waits_make(&own.waits, ahead->answer, ahead->change, &own.account);
	of.host = &own;
	for (size_t i = 0; i < own.account.n_parts; i++) {
		const struct account_part *part = &own.account.parts[i];

		if (!cause_is_for_something_to_do(part->cause) && !ahead_of_part(&of, part) &&
		    !part_is_cudas(ahead->answer->facts, part) &&
		    !part_is_of(own.waits.vias, part, ahead->change->account->thread) &&
		    !gain_has(ahead->answer, ahead->change, &own.waits, part))
			gain_left_add(&left, part, 1);
	}
	gain_host_clear(&own);
	return left;
}

/* A wait of which it is known who ended it: all its time, and what is left of that. */
struct wait_left {
	struct account_via key;
	double ns, left_ns, beside_ns;
};

/* What is left of a part, of 1: in all, and where those who work ahead do so beside it. */
struct part_left {
	double all, beside;
};

static struct part_left part_left(const struct ahead *ahead, const struct account_part *part)
{
	const struct answer *answer = ahead->answer;
	struct part_left left = { 1, 1 };

	if (part->cause == ACCOUNT_SYNCHRONISATION ||
	    gain_has(answer, ahead->change, &ahead->host->waits, part) ||
	    part_lacks_changes_cpu(answer->facts, ahead->change, part))
		return (struct part_left){ 0 };
	if (ahead_of_part(ahead, part))
		left.beside = 0;
	return left;
}

static void waits_left_add(const struct ahead *ahead, struct keyed *waits)
{
	const struct gain_host *host = ahead->host;

	for (size_t i = 0; i < host->account.n_parts; i++) {
		const struct account_part *part = &host->account.parts[i];
		struct part_left left = part_left(ahead, part);

		for (uint32_t via = part->via; via; via = host->waits.vias[via].before) {
			struct wait_left *wait =
				keyed_row(waits, &host->waits.vias[via], host->waits.n);

			wait->ns += part->ns;
			wait->left_ns += left.all * part->ns;
			wait->beside_ns += left.beside * part->ns;
		}
	}
}

/* A wait that nobody is known to have ended is as those are that the thread waits for there. */
static struct part_left part_left_as_others(const struct ahead *ahead, struct keyed *waits,
                                            const struct account_part *part)
{
	struct part_left left = part_left(ahead, part);
	struct account_via key = { part->via, part->cause, part->thread, part->chain };
	const struct wait_left *wait;

	if (left.all <= 0 || !cause_is_for_something_to_do(part->cause))
		return left;
	wait = keyed_row(waits, &key, ahead->host->waits.n + ahead->host->account.n_parts);
	if (wait && wait->ns > 0)
		left = (struct part_left){ wait->left_ns / wait->ns, wait->beside_ns / wait->ns };
	return left;
}

void gain_host_left(struct answer *answer, const struct answer_change *change,
                    struct gain_host *host, struct gain_left *left)
{
	struct ahead ahead = { .answer = answer, .change = change, .host = host };
	struct keyed waits = { .row_bytes = sizeof(struct wait_left),
		               .key_bytes = sizeof(struct account_via) };
	struct gain_left beside = { 0 };

	gain_waits_make(&host->waits, answer, change, &host->account);
	ahead_collect(&ahead, true);
	waits_left_add(&ahead, &waits);
	for (size_t i = 0; i < host->account.n_parts; i++) {
		const struct account_part *part = &host->account.parts[i];
		struct part_left of = part_left_as_others(&ahead, &waits, part);

		gain_left_add(left, part, of.all);
		gain_left_add(&beside, part, of.beside);
	}
	for (size_t i = 0; i < ahead.n; i++) {
		struct gain_left of = ahead_left(&ahead, ahead.hops[i].works);

		if (of.all_ns > beside.all_ns)
			beside = of;
	}
	if (beside.all_ns < left->all_ns)
		*left = beside;
	keyed_free(&waits);
}

void gain_host_beside(struct answer *answer, const struct answer_change *change,
                      struct gain_host *host, struct gain_left *left)
{
	struct ahead ahead = { .answer = answer, .change = change, .host = host };

	gain_waits_make(&host->waits, answer, change, &host->account);
	ahead_collect(&ahead, false);
	for (size_t i = 0; i < ahead.n; i++) {
		struct gain_left of = { 0 };

		if (ahead.hops[i].waits == change->account->thread)
			of = ahead_left(&ahead, ahead.hops[i].works);
		if (of.all_ns > left->all_ns)
			*left = of;
	}
}
