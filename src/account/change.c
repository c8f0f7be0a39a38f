// SPDX-License-Identifier: MIT
#include "account/change.h"

#include <string.h>

static const struct process *part_process(const struct facts *facts,
                                          const struct account_part *part)
{
	return part->thread == FACTS_NONE ? NULL : facts->threads[part->thread].process;
}

/* One process, or two of one name that are waited for: workers do the same, one as the other. */
static bool parts_are_of_kin(const struct facts *facts, const struct account_part *a,
                             const struct account_part *b)
{
	const struct process *of_a = part_process(facts, a), *of_b = part_process(facts, b);

	return of_a == of_b ||
	       (of_a && of_b && a->via && b->via && !strcmp(of_a->comm, of_b->comm));
}

/* What a process lacks of CPUs is one thing, in whichever of its threads. */
bool parts_are_alike(const struct facts *facts, const struct account_part *a,
                     const struct account_part *b)
{
	return a->cause == b->cause && a->awaited == b->awaited &&
	       (!a->via == !b->via || a->cause == ACCOUNT_NO_CPU) && parts_are_of_kin(facts, a, b);
}

bool chain_is_below(const struct chains *chains, uint32_t chain, uint32_t node)
{
	size_t depth = chains_depth(chains, node), at = chains_depth(chains, chain);

	if (!node)
		return true;
	for (; at > depth; at--)
		chain = chains_parent(chains, chain);
	if (at < depth)
		return false;
	for (; depth; depth--) {
		if (chain == node)
			return true;
		if (chains_function(chains, chain) != chains_function(chains, node))
			return false;
		chain = chains_parent(chains, chain);
		node = chains_parent(chains, node);
	}
	return true;
}

size_t chain_shared_depth(const struct chains *chains, uint32_t chain, uint32_t other)
{
	size_t depth = chains_depth(chains, chain), of_other = chains_depth(chains, other), shared;

	for (; depth > of_other; depth--)
		chain = chains_parent(chains, chain);
	for (; of_other > depth; of_other--)
		other = chains_parent(chains, other);
	for (shared = depth; chain != other; depth--) {
		if (chains_function(chains, chain) != chains_function(chains, other))
			shared = depth - 1;
		chain = chains_parent(chains, chain);
		other = chains_parent(chains, other);
	}
	return shared;
}

/* The functions that a place is told by. */
#define PLACE_FRAMES 3

static bool places_read_alike(const struct chains *chains, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < PLACE_FRAMES && (a || b); i++) {
		if (!a || !b || chains_function(chains, a) != chains_function(chains, b))
			return false;
		a = chains_parent(chains, a);
		b = chains_parent(chains, b);
	}
	return true;
}

/* The same code, called by others, as in another thread. */
static bool chain_is_below_alike(const struct chains *chains, uint32_t chain, uint32_t node)
{
	if (chains_depth(chains, node) < PLACE_FRAMES)
		return false;
	for (; chain; chain = chains_parent(chains, chain))
		if (places_read_alike(chains, chain, node))
			return true;
	return false;
}

/* What is computed in several threads, in turn where they need the GIL for it, is one thing. */
static bool place_has(const struct facts *facts, const struct answer_change *change, uint32_t chain)
{
	return chain_is_below(facts->chains, chain, change->chain) ||
	       ((account_cause_computes(change->cause) || change->cause == ACCOUNT_GIL) &&
	        chain_is_below_alike(facts->chains, chain, change->chain));
}

/* Time of a thread of the host that is not in CUDA's calls. */
static bool cause_is_hosts(enum account_cause cause)
{
	return cause >= ACCOUNT_COMPUTING;
}

static bool cause_is_copy(enum account_cause cause)
{
	return cause == ACCOUNT_COPIES || cause == ACCOUNT_COPY_CALL;
}

/* What it has computed comes back for whoever reads it there. */
static bool part_is_copy_to_host(const struct account_part *part)
{
	return part->cause == ACCOUNT_COPIES && part->work &&
	       part->work->direction == DIRECTION_D2H;
}

/* Whether kernels are asked for in that function, or below it. */
static bool place_runs_kernels(const struct facts *facts, const struct account *account,
                               uint32_t node)
{
	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		if (part->cause == ACCOUNT_KERNELS && part->chain &&
		    chain_is_below(facts->chains, part->chain, node))
			return true;
	}
	return false;
}

/* Whether something is asked for in that function, or below it, that the GPU runs for others. */
static bool place_launches(const struct facts *facts, const struct account *account, uint32_t node)
{

	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		if ((part->cause == ACCOUNT_KERNELS || part->cause == ACCOUNT_COPIES) &&
		    !part_is_copy_to_host(part) && part->chain &&
		    chain_is_below(facts->chains, part->chain, node))
			return true;
	}
	return false;
}

/*
 * A function that asks for nothing on the GPU, or only has results copied to the host, is changed
 * as a whole: what it waits for, copies, computes and has no CPU for goes with the largest of them.
 * Of one that does, a loop, it is the same line. With a CPU for it it still has to be computed. A
 * copy is the GPU's time and the call's that waits for it, in any line of a function that asks for
 * copies alone.
 */
static bool part_goes_along(const struct facts *facts, const struct answer_change *change,
                            const struct account_part *part)
{
	uint32_t node = change->chain;

	if (node && cause_is_copy(change->cause) &&
	    (change->whole ? chain_is_below(facts->chains, part->chain, node)
	                   : part->chain == node) &&
	    part_process(facts, change->lead) == part_process(facts, part))
		return cause_is_copy(part->cause) || part->cause == ACCOUNT_NO_CPU;
	if (!node || change->cause == ACCOUNT_NO_CPU || !cause_is_hosts(change->cause) ||
	    !(cause_is_hosts(part->cause) || (change->whole && (part->cause == ACCOUNT_COPY_CALL ||
	                                                        part_is_copy_to_host(part)))) ||
	    part_process(facts, change->lead) != part_process(facts, part))
		return false;
	return change->whole ? place_has(facts, change, part->chain) : part->chain == node;
}

bool change_is_whole(const struct facts *facts, const struct answer_change *change)
{
	if (!change->chain)
		return false;
	return cause_is_hosts(change->cause)
	               ? !place_launches(facts, change->account, change->chain)
	               : cause_is_copy(change->cause) &&
	                         !place_runs_kernels(facts, change->account, change->chain);
}

bool change_has(const struct facts *facts, const struct answer_change *change,
                const struct account_part *part)
{
	return (parts_are_alike(facts, change->lead, part) &&
	        (part->cause == ACCOUNT_NO_CPU ||
	         chain_is_below(facts->chains, part->chain, change->chain))) ||
	       part_goes_along(facts, change, part);
}
