// SPDX-License-Identifier: MIT
#include "account/steps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "account/steps_period.h"
#include "base/order.h"
#include "base/vec.h"

#define COVER      0.5 /* so much of the time from their first to their last are ranges of steps */
#define APART      10  /* times the median */
#define RARE       3   /* times, if no more than one of so many are: */
#define RARE_OF    10
#define WARM_UP    2
#define OTHER      2   /* and so many times the launches of a step */
#define NAME_MOST  256 /* letters of a range that are looked at, each time that it comes */
#define PART_TIMES 1.5 /* so much longer is a step than a range of which it has several */

const char *steps_how_name(enum steps_how how)
{
	static const char *const names[] = {
		[STEPS_RANGES] = "ranges", [STEPS_LAUNCHES] = "launches", [STEPS_PAUSES] = "pauses"
	};

	return names[how];
}

/* ---- names of ranges ------------------------------------------------------------------------- */

/* "Step" of "ProfilerStep#", and not of "stepwise"; a plural is one. */
static bool has_word(const char *name, const char *word)
{
	for (const char *at = name; (at = strcasestr(at, word)); at++) {
		const char *end = at + strlen(word);

		if (!strncasecmp(end, "ation", 5))
			end += 5;
		end += *end == 's';
		if (!islower((unsigned char)*end))
			return true;
	}
	return false;
}

unsigned steps_name(const char *name, struct buf *out)
{
	char begin[NAME_MOST + 1];
	size_t len = strnlen(name, NAME_MOST);
	bool number = false;

	memcpy(begin, name, len);
	begin[len] = '\0';
	buf_puts(out, "");
	for (const char *at = begin; *at; at++) {
		if (isdigit((unsigned char)*at))
			number = true;
		else
			buf_putc(out, *at);
	}
	return (has_word(begin, "step") || has_word(begin, "iter") ? 2 : 0) + number;
}

/* ---- what is returned ------------------------------------------------------------------------ */

ORDER_BY(compare_ns, uint64_t, ORDER_OF(*a, *b));

static uint64_t length_of(const struct steps *steps, size_t i)
{
	return steps->begin_ns[i + 1] - steps->begin_ns[i];
}

/* Of those that are not apart. */
static uint64_t median_of(const struct steps *steps)
{
	uint64_t *lengths = xcalloc(steps->n + 1, sizeof(*lengths)), median;
	size_t n = 0;

	for (size_t i = 0; i < steps->n; i++)
		if (!steps->apart[i])
			lengths[n++] = length_of(steps, i);
	SORT(lengths, n, compare_ns);
	median = lengths[n / 2];
	free(lengths);
	return median;
}

static bool is_longer(uint64_t ns, unsigned times, uint64_t median_ns)
{
	return ns / times > median_ns || (ns / times == median_ns && ns % times);
}

/* Those that are clearly longer than most are apart, if they are few. */
static void set_rare(struct steps *steps, uint64_t median)
{
	size_t n = 0;

	for (size_t i = 0; i < steps->n; i++)
		n += !steps->apart[i] && is_longer(length_of(steps, i), RARE, median);
	for (size_t i = 0; i < steps->n && n * RARE_OF <= steps->n; i++)
		if (!steps->apart[i] && is_longer(length_of(steps, i), RARE, median))
			steps->apart[i] = STEP_LONG;
}

static void count_apart(struct steps *steps)
{
	steps->n_apart = 0;
	steps->apart_ns = 0;
	for (size_t i = 0; i < steps->n; i++)
		if (steps->apart[i]) {
			steps->n_apart++;
			steps->apart_ns += length_of(steps, i);
		}
	steps->median_ns = median_of(steps);
}

/* `launches` of each step, or NULL. */
static void set_apart(struct steps *steps, const uint32_t *launches)
{
	uint64_t median = median_of(steps);
	bool regular = false;

	for (size_t i = 0; i < steps->n; i++) {
		uint64_t ns = length_of(steps, i);
		bool longer = is_longer(ns, WARM_UP, median);

		regular |= !longer;
		if (longer && !regular)
			steps->apart[i] = STEP_WARM_UP;
		else if (longer && launches && launches[i] > OTHER * steps->period)
			steps->apart[i] = STEP_OTHER;
		else if (is_longer(ns, APART, median))
			steps->apart[i] = STEP_LONG;
	}
	set_rare(steps, median);
	count_apart(steps);
}

/* Begins, as they come. */
struct begins {
	uint64_t *ns;
	uint32_t *launches; /* up to the next */
	size_t n;
};

static void add_begin(struct begins *begins, uint64_t ns)
{
	begins->ns = vec_room(begins->ns, begins->n, sizeof(*begins->ns));
	begins->launches = vec_room(begins->launches, begins->n, sizeof(*begins->launches));
	begins->launches[begins->n] = 0;
	begins->ns[begins->n++] = ns;
}

/* The last of them is the end of the last step. False: there are too few. */
static bool take_begins(struct steps *steps, struct begins *begins, const struct steps_of *of)
{
	if (begins->n < STEPS_LEAST + 1)
		return false;
	steps->n = begins->n - 1;
	steps->begin_ns = begins->ns;
	begins->ns = NULL;
	steps->apart = xcalloc(steps->n, sizeof(*steps->apart));
	set_apart(steps, steps->period ? begins->launches : NULL);
	if (steps->begin_ns[0] > of->begin_ns)
		steps->before_ns = steps->begin_ns[0] - of->begin_ns;
	if (of->end_ns > steps->begin_ns[steps->n])
		steps->after_ns = of->end_ns - steps->begin_ns[steps->n];
	return true;
}

static void free_begins(struct begins *begins)
{
	free(begins->ns);
	free(begins->launches);
}

uint64_t steps_within(const struct steps *steps, uint64_t begin_ns, uint64_t end_ns, size_t *n)
{
	uint64_t ns = 0;

	*n = 0;
	for (size_t i = 0; i < steps->n; i++) {
		uint64_t from_ns = steps->begin_ns[i], to_ns = steps->begin_ns[i + 1];

		from_ns = from_ns > begin_ns ? from_ns : begin_ns;
		to_ns = to_ns < end_ns ? to_ns : end_ns;
		if (to_ns <= from_ns)
			continue;
		ns += to_ns - from_ns;
		++*n;
	}
	return ns;
}

void steps_keep_within(struct steps *steps, uint64_t begin_ns, uint64_t end_ns)
{
	size_t first = 0, n = steps->n;

	while (n && steps->begin_ns[n - 1] >= end_ns)
		n--;
	while (first < n && steps->begin_ns[first + 1] <= begin_ns)
		first++;
	if (!first && n == steps->n)
		return;
	n -= first;
	if (n < STEPS_LEAST) {
		steps_clear(steps);
		return;
	}
	memmove(steps->begin_ns, steps->begin_ns + first, (n + 1) * sizeof(*steps->begin_ns));
	memmove(steps->apart, steps->apart + first, n * sizeof(*steps->apart));
	steps->n = n;
	count_apart(steps);
}

void steps_join(struct steps *steps, enum step_apart apart)
{
	for (size_t i = 0; i < steps->n; i++)
		if (steps->apart[i] == apart)
			steps->apart[i] = STEP_USUAL;
	count_apart(steps);
}

uint64_t steps_mean_ns(const struct steps *steps)
{
	return (steps->begin_ns[steps->n] - steps->begin_ns[0]) / steps->n;
}

void steps_clear(struct steps *steps)
{
	free(steps->begin_ns);
	free(steps->apart);
	*steps = (struct steps){ 0 };
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Ranges of one name. */
struct named {
	const uint32_t *order; /* which they are, by begin */
	size_t n;
	unsigned likely;
	uint32_t depth; /* the least */
	uint64_t ns;
};

static int compare_ranges(const void *a, const void *b, void *data)
{
	const struct step_range *ranges = data;
	const struct step_range *one = &ranges[*(const uint32_t *)a];
	const struct step_range *other = &ranges[*(const uint32_t *)b];

	if (one->name != other->name)
		return one->name < other->name ? -1 : 1;
	if (one->begin_ns != other->begin_ns)
		return one->begin_ns < other->begin_ns ? -1 : 1;
	return one->end_ns < other->end_ns ? -1 : one->end_ns > other->end_ns;
}

/* Whether they can be steps: several, one after the other, with not too much between. */
static bool look_at(struct named *named, const struct step_range *ranges)
{
	const struct step_range *first = &ranges[named->order[0]], *last = first;

	if (named->n < STEPS_LEAST)
		return false;
	named->depth = UINT32_MAX;
	for (size_t i = 0; i < named->n; i++) {
		const struct step_range *range = &ranges[named->order[i]];

		if (range->end_ns < range->begin_ns || (i && range->begin_ns < last->end_ns))
			return false;
		named->ns += range->end_ns - range->begin_ns;
		if (range->depth < named->depth)
			named->depth = range->depth;
		if (range->likely > named->likely)
			named->likely = range->likely;
		last = range;
	}
	return named->ns && (double)named->ns >= COVER * (double)(last->end_ns - first->begin_ns);
}

/* What calls itself a step, then the outermost, then what has a number, then what is longest. */
static bool is_better(const struct named *one, const struct named *than)
{
	if ((one->likely >= 2) != (than->likely >= 2))
		return one->likely >= 2;
	if (one->depth != than->depth)
		return one->depth < than->depth;
	if (one->likely != than->likely)
		return one->likely > than->likely;
	return one->ns > than->ns;
}

/* The last step ends with its range. */
static bool take_ranges(struct steps *steps, const struct named *named, const struct steps_of *of)
{
	struct begins begins = { 0 };
	bool taken;

	for (size_t i = 0; i < named->n; i++)
		add_begin(&begins, of->ranges[named->order[i]].begin_ns);
	add_begin(&begins, of->ranges[named->order[named->n - 1]].end_ns);
	taken = take_begins(steps, &begins, of);
	steps->how = STEPS_RANGES;
	steps->name = of->ranges[named->order[0]].name;
	free_begins(&begins);
	return taken;
}

/* *sure: they say that they are steps. */
static bool find_ranges(struct steps *steps, const struct steps_of *of, bool *sure)
{
	struct named best = { 0 }, named;
	size_t n = of->n_ranges < UINT32_MAX ? of->n_ranges : UINT32_MAX;
	uint32_t *order;
	bool found = false;

	*sure = false;
	if (n < STEPS_LEAST)
		return false;
	order = xcalloc(n, sizeof(*order));
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, n, sizeof(*order), compare_ranges, (void *)of->ranges);
	for (size_t i = 0; i < n; i += named.n) {
		named = (struct named){ .order = order + i };
		while (i + named.n < n &&
		       of->ranges[order[i + named.n]].name == of->ranges[order[i]].name)
			named.n++;
		if (look_at(&named, of->ranges) && (!found || is_better(&named, &best))) {
			best = named;
			found = true;
		}
	}
	*sure = found && best.likely >= 2;
	found = found && take_ranges(steps, &best, of);
	free(order);
	return found;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Pauses of a program that starts are between no steps, whatever it launches there. */
static void drop_start(struct begins *begins, const struct steps_period *period)
{
	size_t first = 0, usual = 0;

	for (size_t i = 0; i + 1 < begins->n && usual < STEPS_LEAST; i++) {
		usual = steps_period_is_usual(period, begins->launches[i]) ? usual + 1 : 0;
		first = i + 1 - usual;
	}
	if (usual < STEPS_LEAST)
		return;
	begins->n -= first;
	memmove(begins->ns, begins->ns + first, begins->n * sizeof(*begins->ns));
	memmove(begins->launches, begins->launches + first, begins->n * sizeof(*begins->launches));
}

/*
 * The launches that begin a step. What can begin one and comes within half of a period after the
 * last is a part of it, as an evaluation has kernels of the training.
 */
static bool take_period(struct steps *steps, const struct steps_period *period,
                        const struct steps_of *of)
{
	struct begins begins = { 0 };
	size_t last = 0;
	bool taken;

	for (size_t i = 0; i < of->n_launches; i++) {
		if (!steps_period_begins(period, of->launches, i))
			continue;
		if (begins.n) {
			if ((i - last) * 2 < period->launches ||
			    of->launches[i].time_ns < begins.ns[begins.n - 1])
				continue;
			begins.launches[begins.n - 1] =
				i - last < UINT32_MAX ? (uint32_t)(i - last) : UINT32_MAX;
		}
		add_begin(&begins, of->launches[i].time_ns);
		last = i;
	}
	if (!period->keys)
		drop_start(&begins, period);
	steps->period = period->launches;
	steps->how = period->keys ? STEPS_LAUNCHES : STEPS_PAUSES;
	taken = take_begins(steps, &begins, of);
	free_begins(&begins);
	return taken;
}

static bool find_launches(struct steps *steps, const struct steps_of *of)
{
	size_t n = of->n_launches < UINT32_MAX ? of->n_launches : UINT32_MAX - 1;
	struct steps_period keys, pauses;
	bool by_keys = steps_period_of_keys(of->launches, n, &keys), by_pauses;

	if (by_keys && keys.launches > 1 && keys.mean_ns >= STEPS_PART_NS)
		return take_period(steps, &keys, of);
	by_pauses = steps_period_of_pauses(of->launches, n, &pauses);
	if (by_pauses && (!by_keys || pauses.launches > PART_TIMES * (double)keys.launches))
		return take_period(steps, &pauses, of);
	return by_keys && take_period(steps, &keys, of);
}

void steps_find(struct steps *steps, const struct steps_of *of)
{
	struct steps by_launches = { 0 };
	bool found, sure;

	*steps = (struct steps){ 0 };
	found = find_ranges(steps, of, &sure);
	if (found && sure)
		return;
	if (find_launches(&by_launches, of) &&
	    (!found || (double)by_launches.median_ns > PART_TIMES * (double)steps->median_ns)) {
		steps_clear(steps);
		*steps = by_launches;
		return;
	}
	steps_clear(&by_launches);
	if (!found)
		steps_clear(steps);
}
