// SPDX-License-Identifier: MIT
#include "report/gaps/gap_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/xalloc.h"

#define SURE_SAMPLES   30
#define SURE_COVERED   80 /* percent */
#define LIKELY_SAMPLES 10
#define LIKELY_COVERED 50

struct gap_stack {
	const struct stack *stack; /* the key */
	uint64_t cpu_ns, blocked_ns, samples;
	UT_hash_handle hh;
};

/* ---- adding -------------------------------------------------------------------------------- */

/* NULL: there is no room. */
static struct gap_stack *row_of(struct gap_stacks *stacks, size_t *room, const struct stack *stack)
{
	struct gap_stack **recent = &stacks->recent[(stack ? stack->id : 0) % GAP_STACKS_RECENT];
	struct gap_stack *row = *recent;

	if (row && row->stack == stack)
		return row;
	HASH_FIND_PTR(stacks->all, &stack, row);
	if (!row && *room) {
		row = xcalloc(1, sizeof(*row));
		row->stack = stack;
		HASH_ADD_PTR(stacks->all, stack, row);
		(*room)--;
	}
	if (row)
		*recent = row;
	return row;
}

static void add(struct gap_stacks *stacks, size_t *room, const struct gap_stack *from)
{
	struct gap_stack *row = row_of(stacks, room, from->stack);

	if (!row) {
		stacks->others_ns += from->cpu_ns + from->blocked_ns;
		stacks->others_samples += from->samples;
		return;
	}
	row->cpu_ns += from->cpu_ns;
	row->blocked_ns += from->blocked_ns;
	row->samples += from->samples;
}

void gap_stacks_add(struct gap_stacks *stacks, size_t *room, const struct gap_sampled *sampled)
{
	struct gap_stack one = { .stack = sampled->stack, .samples = 1 };

	if (sampled->blocked)
		one.blocked_ns = sampled->ns;
	else
		one.cpu_ns = sampled->ns;
	stacks->known.cpu_ns += one.cpu_ns;
	stacks->known.blocked_ns += one.blocked_ns;
	stacks->known.samples++;
	add(stacks, room, &one);
}

void gap_sampling_of(struct gap_sampling *known, const struct process *process, uint32_t tid)
{
	if (!known->process) {
		known->process = process;
		known->tid = tid;
	}
	known->several |= known->process != process || known->tid != tid;
}

static void add_known(struct gap_sampling *to, const struct gap_sampling *from)
{
	to->gap_ns += from->gap_ns;
	to->cpu_ns += from->cpu_ns;
	to->blocked_ns += from->blocked_ns;
	to->samples += from->samples;
	to->several |= from->several;
	if (from->process)
		gap_sampling_of(to, from->process, from->tid);
}

void gap_stacks_move(struct gap_stacks *to, struct gap_stacks *from, size_t *room)
{
	struct gap_stack *row, *next;

	add_known(&to->known, &from->known);
	to->others_ns += from->others_ns;
	to->others_samples += from->others_samples;
	HASH_ITER (hh, from->all, row, next) {
		HASH_DELETE(hh, from->all, row);
		(*room)++;
		add(to, room, row);
		free(row);
	}
	memset(from, 0, sizeof(*from));
}

void gap_stacks_free(struct gap_stacks *stacks)
{
	struct gap_stack *row, *next;

	HASH_ITER (hh, stacks->all, row, next) {
		HASH_DELETE(hh, stacks->all, row);
		free(row);
	}
	memset(stacks, 0, sizeof(*stacks));
}

#define MOST_OF 16 /* places that are weighed against each other */

const char *gap_stacks_most(const struct gap_stacks *stacks, struct stack_places *places,
                            uint64_t *ns)
{
	uint32_t place[MOST_OF];
	uint64_t of_place[MOST_OF];
	struct gap_stack *row, *next;
	size_t n = 0, most = 0;

	HASH_ITER (hh, stacks->all, row, next) {
		uint32_t number = stack_places_number(places, row->stack);
		size_t i = 0;

		while (i < n && place[i] != number)
			i++;
		if (i == MOST_OF)
			continue;
		if (i == n) {
			place[n] = number;
			of_place[n++] = 0;
		}
		of_place[i] += row->cpu_ns + row->blocked_ns;
		most = of_place[i] > of_place[most] ? i : most;
	}
	*ns = n ? of_place[most] : 0;
	return n ? stack_places_label(places, place[most]) : NULL;
}

/* ---- what comes out ------------------------------------------------------------------------ */

static int more_first(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

static int by_place(const void *left, const void *right)
{
	const struct gap_place *a = left, *b = right;
	int order = more_first(gap_place_ns(a), gap_place_ns(b));

	return order ? order : (a->place > b->place) - (a->place < b->place);
}

static uint32_t stack_id(const struct gap_stack_row *row)
{
	return row->stack ? row->stack->id : UINT32_MAX;
}

static int by_id(const void *left, const void *right)
{
	uint32_t a = stack_id(left), b = stack_id(right);

	return (a > b) - (a < b);
}

static int by_time(const void *left, const void *right)
{
	const struct gap_stack_row *a = left, *b = right;
	int order = more_first(a->cpu_ns + a->blocked_ns, b->cpu_ns + b->blocked_ns);

	return order ? order : by_id(left, right);
}

/* The rows of all tables; one stack of several of them is one row. */
static void collect_stacks(const struct gap_stacks *const *tables, size_t n, struct gap_host *host)
{
	struct gap_stack *row, *next;
	size_t room = 1, found = 0;

	for (size_t i = 0; i < n; i++)
		room += HASH_COUNT(tables[i]->all);
	host->stacks = xcalloc(room, sizeof(*host->stacks));
	for (size_t i = 0; i < n; i++) {
		HASH_ITER (hh, tables[i]->all, row, next)
			host->stacks[found++] =
				(struct gap_stack_row){ row->stack, row->cpu_ns, row->blocked_ns,
				                        row->samples };
	}
	qsort(host->stacks, found, sizeof(*host->stacks), by_id);
	for (size_t i = 0; i < found; i++) {
		struct gap_stack_row *last = host->stacks + host->n_stacks - 1;

		if (!host->n_stacks || last->stack != host->stacks[i].stack) {
			host->stacks[host->n_stacks++] = host->stacks[i];
			continue;
		}
		last->cpu_ns += host->stacks[i].cpu_ns;
		last->blocked_ns += host->stacks[i].blocked_ns;
		last->samples += host->stacks[i].samples;
	}
	qsort(host->stacks, host->n_stacks, sizeof(*host->stacks), by_time);
}

/* Stacks come in the order of their time, so the first of a place has most of it. */
static void collect_places(struct stack_places *places, struct gap_host *host)
{
	size_t n_numbers;
	uint32_t *row_of;

	for (size_t i = 0; i < host->n_stacks; i++)
		stack_places_number(places, host->stacks[i].stack);
	n_numbers = stack_places_count(places);
	row_of = xcalloc(n_numbers, sizeof(*row_of)); /* and 1; 0: none yet */
	host->places = xcalloc(n_numbers + 1, sizeof(*host->places));
	for (size_t i = 0; i < host->n_stacks; i++) {
		const struct gap_stack_row *stack = &host->stacks[i];
		uint32_t number = stack_places_number(places, stack->stack);
		struct gap_place *place;

		if (!row_of[number]) {
			host->places[host->n] = (struct gap_place){
				.place = number,
				.stack = stack->stack,
				.stack_ns = stack->cpu_ns + stack->blocked_ns,
			};
			row_of[number] = (uint32_t)++host->n;
		}
		place = &host->places[row_of[number] - 1];
		place->cpu_ns += stack->cpu_ns;
		place->blocked_ns += stack->blocked_ns;
		place->samples += stack->samples;
	}
	free(row_of);
}

void gap_host_sum_up(const struct gap_stacks *const *tables, size_t n, struct stack_places *places,
                     struct gap_host *host)
{
	struct gap_place others = { .place = GAP_PLACE_OTHERS };

	memset(host, 0, sizeof(*host));
	collect_stacks(tables, n, host);
	collect_places(places, host);
	for (size_t i = 0; i < n; i++) {
		add_known(&host->known, &tables[i]->known);
		others.cpu_ns += tables[i]->others_ns;
		others.samples += tables[i]->others_samples;
	}
	if (others.samples)
		host->places[host->n++] = others;
	qsort(host->places, host->n, sizeof(*host->places), by_place);
}

const char *gap_place_label(const struct stack_places *places, const struct gap_place *place)
{
	if (place->place == GAP_PLACE_OTHERS)
		return "(other stacks)";
	return stack_places_label(places, place->place);
}

void gap_host_free(struct gap_host *host)
{
	free(host->places);
	free(host->stacks);
	memset(host, 0, sizeof(*host));
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

double gap_host_share(const struct gap_host *host, uint64_t ns)
{
	uint64_t sampled_ns = host->known.cpu_ns + host->known.blocked_ns;

	return percent(ns, sampled_ns > host->known.gap_ns ? sampled_ns : host->known.gap_ns);
}

double gap_host_covered(const struct gap_sampling *known)
{
	double covered = percent(known->cpu_ns + known->blocked_ns, known->gap_ns);

	return covered > 100 ? 100 : covered;
}

enum gap_trust gap_host_trust(const struct gap_sampling *known)
{
	double covered = gap_host_covered(known);

	double blocked = percent(known->blocked_ns, known->gap_ns);

	if (!known->samples)
		return GAP_TRUST_NONE;
	if ((known->samples >= SURE_SAMPLES && covered >= SURE_COVERED) || blocked >= SURE_COVERED)
		return GAP_TRUST_SURE;
	if ((known->samples >= LIKELY_SAMPLES && covered >= LIKELY_COVERED) ||
	    blocked >= LIKELY_COVERED)
		return GAP_TRUST_LIKELY;
	return known->samples >= LIKELY_SAMPLES ? GAP_TRUST_PARTLY : GAP_TRUST_GUESS;
}

const char *gap_trust_name(enum gap_trust trust)
{
	static const char *const names[] = {
		[GAP_TRUST_NONE] = "no samples", [GAP_TRUST_GUESS] = "a guess",
		[GAP_TRUST_PARTLY] = "partly",   [GAP_TRUST_LIKELY] = "likely",
		[GAP_TRUST_SURE] = "sure",
	};

	return names[trust];
}
