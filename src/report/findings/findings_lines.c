// SPDX-License-Identifier: MIT
#include "report/findings/findings_lines.h"

#include <stdlib.h>
#include <string.h>

/*
 * The place of a stack; where it has none and all are taken, that of the least, which goes. It
 * takes over its rank: stacks that alternate would displace each other for ever otherwise.
 */
static struct finding_stack *slot_of(struct finding_stacks *stacks, const struct stack *stack)
{
	struct finding_stack *least = &stacks->of[0];

	for (size_t i = 0; i < FINDING_STACKS; i++) {
		struct finding_stack *slot = &stacks->of[i];

		if (slot->stack == stack)
			return slot;
		if (!slot->stack || slot->rank_ns < least->rank_ns)
			least = slot;
		if (!slot->stack)
			break;
	}
	*least = (struct finding_stack){ .stack = stack, .rank_ns = least->rank_ns };
	return least;
}

static void add_to_slot(struct finding_stacks *stacks, const struct finding_stack *one)
{
	struct finding_stack *slot = slot_of(stacks, one->stack);

	slot->count += one->count;
	slot->cost_ns += one->cost_ns;
	slot->rank_ns += one->cost_ns ? one->cost_ns : one->count;
}

void finding_stack_add(struct finding_stacks *stacks, const struct finding_stack *one)
{
	stacks->count += one->count;
	stacks->cost_ns += one->cost_ns;
	add_to_slot(stacks, one);
}

void finding_add_stacks(struct finding_stacks *into, const struct finding_stacks *from)
{
	into->count += from->count;
	into->cost_ns += from->cost_ns;
	for (size_t i = 0; i < FINDING_STACKS && from->of[i].stack; i++)
		add_to_slot(into, &from->of[i]);
}

static int most_first(const void *left, const void *right)
{
	const struct finding_line *a = left, *b = right;

	if (a->share != b->share)
		return a->share < b->share ? 1 : -1;
	return strcmp(a->line, b->line);
}

static struct finding_line *line_of(struct finding *finding, const char *label)
{
	for (size_t i = 0; i < finding->n_lines; i++) {
		if (finding->lines[i].line == label)
			return &finding->lines[i];
	}
	finding->lines[finding->n_lines].line = label;
	return &finding->lines[finding->n_lines++];
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

void finding_set_lines(struct finding *finding, const struct finding_cases *cases,
                       struct stack_places *places)
{
	const struct finding_stacks *stacks = &cases->stacks;
	bool by_cost = cases->cost_ns > 0;

	free(finding->lines);
	finding->n_lines = 0;
	finding->lines = xcalloc(FINDING_STACKS, sizeof(*finding->lines));
	for (size_t i = 0; i < FINDING_STACKS && stacks->of[i].stack; i++) {
		uint32_t number = stack_places_number(places, stacks->of[i].stack);
		struct finding_line *line = line_of(finding, stack_places_label(places, number));

		line->count += stacks->of[i].count;
		line->cost_ns += stacks->of[i].cost_ns;
		line->share = by_cost ? percent(line->cost_ns, cases->cost_ns)
		                      : percent(line->count, cases->count);
	}
	finding->walked = by_cost ? percent(stacks->cost_ns, cases->cost_ns)
	                          : percent(stacks->count, cases->count);
	qsort(finding->lines, finding->n_lines, sizeof(*finding->lines), most_first);
}
