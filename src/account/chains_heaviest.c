// SPDX-License-Identifier: MIT
/*
 * It is asked for each cause that is told, of trees of which a cause has little: so only nodes that
 * have some time are gone through.
 */
#include "account/chains_inside.h"

#include <stdlib.h>

#include "analysis/by_id.h"
#include "base/xalloc.h"

#define CHAINS_MOST 0.5 /* of all: else what is left of its callers is more than what is told */

static uint64_t add_ns(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void make_room(const struct chains *chains)
{
	struct chains_scratch *scratch = chains->scratch;

	if (scratch->n_sums < chains->n_nodes) {
		scratch->sums = by_id_room(scratch->sums, &scratch->n_sums, sizeof(*scratch->sums),
		                           (uint32_t)chains->n_nodes);
		free(scratch->group);
		free(scratch->inner);
		scratch->group = xcalloc(scratch->n_sums, sizeof(*scratch->group));
		scratch->inner = xcalloc(scratch->n_sums, sizeof(*scratch->inner));
	}
	scratch->by_function = by_id_room(scratch->by_function, &scratch->n_by_function,
	                                  sizeof(uint64_t), (uint32_t)chains->functions_by.n);
}

static void node_add(const struct chains *chains, uint32_t node, uint64_t ns)
{
	struct chains_sum *sums = chains->scratch->sums;

	for (uint32_t at = node; at; at = chains->nodes[at].parent) {
		if (!sums[at].ns) {
			struct chains_sum *parent = &sums[chains->nodes[at].parent];

			sums[at].sibling = parent->child;
			parent->child = at;
		}
		sums[at].ns = add_ns(sums[at].ns, ns);
	}
	sums[0].ns = add_ns(sums[0].ns, ns);
}

static void node_forget(const struct chains *chains, uint32_t node)
{
	struct chains_sum *sums = chains->scratch->sums;

	for (uint32_t at = node; at && sums[at].ns; at = chains->nodes[at].parent)
		sums[at] = (struct chains_sum){ 0 };
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
	const struct chains_sum *sums = chains->scratch->sums;
	uint64_t *by_function = chains->scratch->by_function;
	uint32_t best = CHAINS_NONE, function;

	*ns = 0;
	for (size_t i = 0; i < group->n; i++) {
		for (uint32_t at = sums[group->nodes[i]].child; at; at = sums[at].sibling) {
			function = chains->lines[nodes[at].line].function;
			by_function[function] = add_ns(by_function[function], sums[at].ns);
			if (by_function[function] > *ns ||
			    (by_function[function] == *ns && function < best)) {
				*ns = by_function[function];
				best = function;
			}
		}
	}
	for (size_t i = 0; i < group->n; i++)
		for (uint32_t at = sums[group->nodes[i]].child; at; at = sums[at].sibling)
			by_function[chains->lines[nodes[at].line].function] = 0;
	return best;
}

/* `inner` becomes the nodes of `function` that the group calls. */
static void enter(const struct chains *chains, const struct group *group, uint32_t function,
                  struct group *inner)
{
	const struct chains_sum *sums = chains->scratch->sums;

	inner->n = 0;
	for (size_t i = 0; i < group->n; i++)
		for (uint32_t at = sums[group->nodes[i]].child; at; at = sums[at].sibling)
			if (chains->lines[chains->nodes[at].line].function == function)
				inner->nodes[inner->n++] = at;
}

/* Of equals the first. */
static uint32_t heaviest_of(const struct group *group, const struct chains_sum *sums)
{
	uint32_t best = group->nodes[0];

	for (size_t i = 1; i < group->n; i++)
		if (sums[group->nodes[i]].ns > sums[best].ns ||
		    (sums[group->nodes[i]].ns == sums[best].ns && group->nodes[i] < best))
			best = group->nodes[i];
	return best;
}

uint32_t chains_heaviest(const struct chains *chains, const struct chains_weight *weights, size_t n,
                         double share, uint64_t *subtree_ns)
{
	struct group group = { .n = 1 }, inner = { 0 }, outer;
	uint32_t function, best;

	make_room(chains);
	for (size_t i = 0; i < n; i++)
		if (weights[i].ns && weights[i].node < chains->n_nodes)
			node_add(chains, weights[i].node, weights[i].ns);
	group.nodes = chains->scratch->group;
	inner.nodes = chains->scratch->inner;
	group.nodes[0] = 0; /* the root */
	group.ns = chains->scratch->sums[0].ns;
	for (;;) {
		function = most_called(chains, &group, &inner.ns);
		if (!inner.ns || (double)inner.ns < share * (double)group.ns ||
		    (double)inner.ns < CHAINS_MOST * (double)chains->scratch->sums[0].ns)
			break;
		enter(chains, &group, function, &inner);
		outer = group;
		group = inner;
		inner = outer;
	}
	best = heaviest_of(&group, chains->scratch->sums);
	*subtree_ns = group.ns;
	for (size_t i = 0; i < n; i++)
		if (weights[i].node < chains->n_nodes)
			node_forget(chains, weights[i].node);
	chains->scratch->sums[0] = (struct chains_sum){ 0 };
	return best;
}
