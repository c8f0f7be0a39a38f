// SPDX-License-Identifier: MIT
/*
 * It is asked for each cause that is told, of trees of which a cause has little: so only nodes that
 * have some time are gone through, and those around them.
 */
#include "account/chains_inside.h"

#include <stdlib.h>

#include "analysis/by_id.h"
#include "base/xalloc.h"

static uint64_t add_ns(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void make_room(const struct chains *chains)
{
	struct chains_scratch *scratch = chains->scratch;

	if (scratch->n_sums < chains->n_nodes) {
		scratch->sums = by_id_room(scratch->sums, &scratch->n_sums, sizeof(uint64_t),
		                           (uint32_t)chains->n_nodes);
		free(scratch->group);
		free(scratch->inner);
		scratch->group = xcalloc(scratch->n_sums, sizeof(*scratch->group));
		scratch->inner = xcalloc(scratch->n_sums, sizeof(*scratch->inner));
	}
	scratch->by_function = by_id_room(scratch->by_function, &scratch->n_by_function,
	                                  sizeof(uint64_t), (uint32_t)chains->n_functions);
}

/* What each node has, with all that it calls. */
static void sum_up(const struct chains *chains, const uint64_t *ns, size_t n)
{
	uint64_t *sums = chains->scratch->sums;

	for (uint32_t i = 0; i < n; i++) {
		if (!ns[i])
			continue;
		for (uint32_t at = i; at; at = chains->nodes[at].parent)
			sums[at] = add_ns(sums[at], ns[i]);
		sums[0] = add_ns(sums[0], ns[i]);
	}
}

static void forget_sums(const struct chains *chains, const uint64_t *ns, size_t n)
{
	uint64_t *sums = chains->scratch->sums;

	sums[0] = 0;
	for (uint32_t i = 0; i < n; i++)
		if (ns[i])
			for (uint32_t at = i; at && sums[at]; at = chains->nodes[at].parent)
				sums[at] = 0;
}

/* Nodes that are one function, called in the same way. */
struct group {
	uint32_t *nodes;
	size_t n;
	uint64_t ns;
};

/* The function that has most of what the group calls, and how much of it; of equals the first. */
static uint32_t most_called(const struct chains *chains, const struct group *group, uint64_t *ns)
{
	const struct chains_node *nodes = chains->nodes;
	const uint64_t *sums = chains->scratch->sums;
	uint64_t *by_function = chains->scratch->by_function;
	uint32_t best = CHAINS_NONE, function;

	*ns = 0;
	for (size_t i = 0; i < group->n; i++) {
		for (uint32_t at = nodes[group->nodes[i]].child; at; at = nodes[at].sibling) {
			function = chains->lines[nodes[at].line].function;
			by_function[function] = add_ns(by_function[function], sums[at]);
			if (by_function[function] > *ns ||
			    (by_function[function] == *ns && function < best)) {
				*ns = by_function[function];
				best = function;
			}
		}
	}
	for (size_t i = 0; i < group->n; i++)
		for (uint32_t at = nodes[group->nodes[i]].child; at; at = nodes[at].sibling)
			by_function[chains->lines[nodes[at].line].function] = 0;
	return best;
}

/* `inner` becomes the nodes of `function` that the group calls. */
static void enter(const struct chains *chains, const struct group *group, uint32_t function,
                  struct group *inner)
{
	const struct chains_node *nodes = chains->nodes;

	inner->n = 0;
	for (size_t i = 0; i < group->n; i++)
		for (uint32_t at = nodes[group->nodes[i]].child; at; at = nodes[at].sibling)
			if (chains->scratch->sums[at] &&
			    chains->lines[nodes[at].line].function == function)
				inner->nodes[inner->n++] = at;
}

/* Of equals the first. */
static uint32_t heaviest_of(const struct group *group, const uint64_t *sums)
{
	uint32_t best = group->nodes[0];

	for (size_t i = 1; i < group->n; i++)
		if (sums[group->nodes[i]] > sums[best] ||
		    (sums[group->nodes[i]] == sums[best] && group->nodes[i] < best))
			best = group->nodes[i];
	return best;
}

uint32_t chains_heaviest(const struct chains *chains, const uint64_t *ns, size_t n, double share,
                         uint64_t *subtree_ns)
{
	struct group group = { .n = 1 }, inner = { 0 }, outer;
	uint32_t function, best;

	if (n > chains->n_nodes)
		n = chains->n_nodes;
	make_room(chains);
	sum_up(chains, ns, n);
	group.nodes = chains->scratch->group;
	inner.nodes = chains->scratch->inner;
	group.nodes[0] = 0; /* the root */
	group.ns = chains->scratch->sums[0];
	for (;;) {
		function = most_called(chains, &group, &inner.ns);
		if (!inner.ns || (double)inner.ns < share * (double)group.ns)
			break;
		enter(chains, &group, function, &inner);
		outer = group;
		group = inner;
		inner = outer;
	}
	best = heaviest_of(&group, chains->scratch->sums);
	*subtree_ns = group.ns;
	forget_sums(chains, ns, n);
	return best;
}
