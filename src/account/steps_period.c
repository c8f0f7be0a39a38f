// SPDX-License-Identifier: MIT
/*
 * A context is a launch with some of those before it: its hash. What comes once a step, and so
 * marks it, is a kernel of its own mostly, else the begin of a run of them, which two or more
 * launches tell. For each context that there is, its distance to itself is found by a vote, and
 * then what part of the time lies between two that have this distance. All of it is by time and by
 * count: a step that sleeps for most of its time has all of its time in one distance, between any
 * two launches of a kernel that lie around it.
 *
 * Layers of a network repeat as steps do. They are told by what is between the last of a step and
 * the first of the next: it is much longer than the others, or has other launches, and something
 * longer is as regular as a clock.
 */
#include "account/steps_period.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define CONTEXTS_MAX 65535u /* of each length; those that come later are not looked at */
#define NO_CONTEXT   65535u
#define SLOTS        (1u << 17)
#define KEYS_MAX     8u
#define STABLE       0.8  /* of the time is in steps; */
#define LESS_STABLE  0.5  /* where no period has that */
#define OFTEN        0.66 /* of its distances a context has its usual one */
#define ODD_MOST     10   /* what lies between steps counts as so many of them at most */
#define LEAST        3    /* distances */
#define LASTS        0.1  /* of the time lies between the first and the last */
#define MOST_OF      0.5  /* launches: a period is of so many, and so many repeat in it */
#define PART_MEAN    1.5  /* times the median is the mean of what may be parts of a step, */
#define PART_ODD     16   /* or one of so many has other launches, */
#define WHOLE        0.95 /* if so much of the time and of its distances is one of a step */

struct context {
	uint64_t hash;
	uint32_t first; /* the launch, */
	uint32_t last;  /* and 1; 0: none yet */
	uint32_t distances;
	uint32_t usual; /* distance */
	uint32_t votes;
	uint32_t n_usual; /* of the distances */
	uint64_t usual_ns, odd_ns;
	uint64_t pause_ns; /* before it, where its distance is usual */
};

struct contexts {
	struct context *all;
	size_t n;
	struct {
		uint32_t tag;     /* of the hash */
		uint32_t context; /* and 1; 0: free */
	} * slots;
	uint16_t *of_launch; /* NO_CONTEXT: of none */
};

static uint64_t hash_context(const struct step_launch *launches, size_t i, unsigned keys)
{
	uint32_t last[KEYS_MAX];

	for (unsigned k = 0; k < keys; k++)
		last[k] = launches[i - k].key;
	return hash_long(last, keys * sizeof(*last));
}

static bool is_near(size_t distance, size_t usual)
{
	size_t apart = distance > usual ? distance - usual : usual - distance;

	return apart <= (usual + 4) / 8;
}

static uint64_t since(const struct step_launch *launches, size_t from, size_t to)
{
	return launches[to].time_ns > launches[from].time_ns
	               ? launches[to].time_ns - launches[from].time_ns
	               : 0;
}

static uint16_t find_or_add(struct contexts *contexts, uint64_t hash)
{
	size_t at = hash & (SLOTS - 1);
	uint32_t tag = (uint32_t)(hash >> 32);

	for (; contexts->slots[at].context; at = (at + 1) & (SLOTS - 1))
		if (contexts->slots[at].tag == tag &&
		    contexts->all[contexts->slots[at].context - 1].hash == hash)
			return (uint16_t)(contexts->slots[at].context - 1);
	if (contexts->n == CONTEXTS_MAX)
		return NO_CONTEXT;
	contexts->all[contexts->n] = (struct context){ .hash = hash };
	contexts->slots[at].tag = tag;
	contexts->slots[at].context = (uint32_t)++contexts->n;
	return (uint16_t)(contexts->n - 1);
}

/* The majority of the distances, where one has it. */
static void vote(struct context *context, uint32_t distance)
{
	context->distances++;
	if (context->votes && is_near(distance, context->usual)) {
		context->votes++;
	} else if (context->votes) {
		context->votes--;
	} else {
		context->usual = distance;
		context->votes = 1;
	}
}

/* False where most launches have one that was not there before: what is not there again as a single
 * kernel is not in any longer context. */
static bool find_contexts(struct contexts *contexts, const struct step_launch *launches, size_t n,
                          unsigned keys)
{
	size_t again = 0;

	contexts->n = 0;
	memset(contexts->slots, 0, SLOTS * sizeof(*contexts->slots));
	for (size_t i = 0; i < n; i++) {
		struct context *context;

		contexts->of_launch[i] = NO_CONTEXT;
		if (i + 1 < keys)
			continue;
		contexts->of_launch[i] = find_or_add(contexts, hash_context(launches, i, keys));
		if (contexts->of_launch[i] == NO_CONTEXT)
			continue;
		context = &contexts->all[contexts->of_launch[i]];
		if (context->last)
			vote(context, (uint32_t)(i + 1) - context->last);
		else
			context->first = (uint32_t)i;
		again += context->last > 0;
		context->last = (uint32_t)i + 1;
	}
	return (double)again >= MOST_OF * (double)n;
}

/* Whether any can have a usual distance: a vote that two thirds won has a third left. */
static bool any_is_regular(const struct contexts *contexts)
{
	for (size_t c = 0; c < contexts->n; c++)
		if (contexts->all[c].distances >= LEAST &&
		    contexts->all[c].votes >= contexts->all[c].distances / 4)
			return true;
	return false;
}

static void forget_last(struct contexts *contexts)
{
	for (size_t c = 0; c < contexts->n; c++)
		contexts->all[c].last = 0;
}

/* The time of each distance is what it usually is, or (`odd`) something else, which is looked at
 * when all usual ones are known. */
static void add_times(struct contexts *contexts, const struct step_launch *launches, size_t n,
                      bool odd)
{
	forget_last(contexts);
	for (size_t i = 0; i < n; i++) {
		struct context *context = &contexts->all[contexts->of_launch[i]];
		uint64_t ns, most;

		if (contexts->of_launch[i] == NO_CONTEXT)
			continue;
		if (context->last) {
			ns = since(launches, context->last - 1, i);
			if (!is_near(i + 1 - context->last, context->usual)) {
				most = context->n_usual
				               ? context->usual_ns / context->n_usual * ODD_MOST
				               : 0;
				context->odd_ns += !odd ? 0 : ns < most ? ns : most;
			} else if (!odd) {
				context->n_usual++;
				context->usual_ns += ns;
				context->pause_ns += since(launches, i ? i - 1 : 0, i);
			}
		}
		context->last = (uint32_t)i + 1;
	}
}

static const unsigned lengths[] = { 1, 2, 4, KEYS_MAX }; /* of contexts */

/* ---- choosing -------------------------------------------------------------------------------- */

/* How good a period has to be; the first that one is found for is taken. */
static const struct wanted {
	double share; /* of the time, */
	double often; /* of the distances, */
	double lasts; /* and of the time from the first launch to the last */
	uint64_t least_ns;
	size_t least; /* launches */
	bool single;  /* periods of one launch */
} wanted[] = {
	{ STABLE, OFTEN, LASTS, STEPS_PART_NS, 2, false },
	{ STABLE, OFTEN, LASTS, 0, 2, false },
	{ LESS_STABLE, OFTEN, LASTS, STEPS_PART_NS, 2, false },
	{ LESS_STABLE, OFTEN, LASTS, 0, 2, false },
	{ STABLE, OFTEN, LASTS, STEPS_PART_NS, 1, true },
};

/* What comes a few times while a program starts is not what it does over and over later. */
static bool lasts(const struct context *context, const struct step_launch *launches, size_t n,
                  double share)
{
	return (double)since(launches, context->first, context->last - 1) >=
	       share * (double)since(launches, 0, n - 1);
}

static bool is_wanted(const struct context *context, const struct step_launch *launches, size_t n,
                      const struct wanted *want)
{
	double all = (double)context->usual_ns + (double)context->odd_ns;

	return context->n_usual >= LEAST && context->n_usual >= want->often * context->distances &&
	       (double)context->usual_ns >= want->share * all &&
	       context->usual_ns / context->n_usual >= want->least_ns &&
	       context->usual >= want->least && (context->usual == 1) == want->single &&
	       lasts(context, launches, n, want->lasts);
}

/*
 * The smallest period; of the contexts that have it the one with the longest pauses before it: a
 * step begins after what it waits for.
 */
static bool choose(const struct contexts *contexts, const struct step_launch *launches, size_t n,
                   const struct wanted *want, struct steps_period *period)
{
	const struct context *all = contexts->all, *best = NULL;
	uint32_t least = UINT32_MAX;

	for (size_t c = 0; c < contexts->n; c++)
		if (all[c].usual < least && is_wanted(&all[c], launches, n, want))
			least = all[c].usual;
	for (size_t c = 0; c < contexts->n; c++)
		if (is_near(all[c].usual, least) && is_wanted(&all[c], launches, n, want) &&
		    (!best || all[c].pause_ns / all[c].n_usual > best->pause_ns / best->n_usual))
			best = &all[c];
	if (!best)
		return false;
	*period = (struct steps_period){ .launches = best->usual,
		                         .mean_ns = best->usual_ns / best->n_usual,
		                         .context = best->hash,
		                         .pause_ns = best->pause_ns / best->n_usual };
	return true;
}

/*
 * Whether most launches were there a period before. Of a million kernels that come now and then, a
 * few come four times at equal distances.
 */
static bool repeats(struct contexts *contexts, size_t n, size_t launches)
{
	uint64_t again = 0;

	forget_last(contexts);
	for (size_t i = 0; i < n; i++) {
		struct context *context = &contexts->all[contexts->of_launch[i]];

		if (contexts->of_launch[i] == NO_CONTEXT)
			continue;
		again += context->last && i + 1 - context->last <= launches + launches / 2;
		context->last = (uint32_t)i + 1;
	}
	return (double)again >= MOST_OF * (double)n;
}

/* A shorter one is the better, and of those that are alike the one with clearly longer pauses. */
static bool is_better(const struct steps_period *one, const struct steps_period *than)
{
	return is_near(one->launches, than->launches) ? one->pause_ns / 5 > than->pause_ns / 4
	                                              : one->launches < than->launches;
}

ORDER_BY(compare_lengths, uint64_t, ORDER_OF(*a, *b));

static bool may_be_parts(const struct steps_period *period, const struct step_launch *launches,
                         size_t n)
{
	uint64_t *took = NULL, sum = 0;
	size_t count = 0, odd = 0, last = n;
	bool may;

	for (size_t i = 0; i < n; i++) {
		if (!steps_period_begins(period, launches, i))
			continue;
		if (last < n) {
			uint64_t ns = since(launches, last, i);

			*VEC_ADD(took, count) = ns;
			sum += ns;
			odd += !is_near(i - last, period->launches);
		}
		last = i;
	}
	SORT(took, count, compare_lengths);
	may = count && (odd * PART_ODD >= count ||
	                (double)sum >= PART_MEAN * (double)took[count / 2] * (double)count);
	free(took);
	return may;
}

/* Takes the step's period where what was found are its parts. */
static void take_whole(struct contexts *contexts, const struct step_launch *launches, size_t n,
                       struct steps_period *period)
{
	const struct wanted want = { .share = WHOLE,
		                     .often = WHOLE,
		                     .lasts = MOST_OF,
		                     .least_ns = STEPS_PART_NS,
		                     .least = period->launches + period->launches / 2 };
	struct steps_period found;

	for (size_t l = 0; l < ARRAY_SIZE(lengths); l++) {
		if (!find_contexts(contexts, launches, n, lengths[l]))
			return;
		add_times(contexts, launches, n, false);
		add_times(contexts, launches, n, true);
		if (!choose(contexts, launches, n, &want, &found) ||
		    !repeats(contexts, n, found.launches))
			continue;
		*period = found;
		period->keys = lengths[l];
		return;
	}
}

bool steps_period_of_keys(const struct step_launch *launches, size_t n, struct steps_period *period)
{
	struct contexts contexts = { 0 };
	struct steps_period found;
	size_t best = ARRAY_SIZE(wanted);

	if (n < LEAST + 1)
		return false;
	contexts.all = xcalloc(CONTEXTS_MAX + 1, sizeof(*contexts.all));
	contexts.slots = xcalloc(SLOTS, sizeof(*contexts.slots));
	contexts.of_launch = xcalloc(n, sizeof(*contexts.of_launch));
	/* two launches in any case: those on both sides of a pause are seldom together elsewhere */
	for (size_t l = 0; l < ARRAY_SIZE(lengths) && (l < 2 || best > 0); l++) {
		if (!find_contexts(&contexts, launches, n, lengths[l]))
			break;
		if (!any_is_regular(&contexts))
			continue;
		add_times(&contexts, launches, n, false);
		add_times(&contexts, launches, n, true);
		for (size_t w = 0; w <= best && w < ARRAY_SIZE(wanted); w++) {
			if (!choose(&contexts, launches, n, &wanted[w], &found) ||
			    (w == best && !is_better(&found, period)) ||
			    !repeats(&contexts, n, found.launches))
				continue;
			*period = found;
			period->keys = lengths[l];
			best = w;
		}
	}
	if (best < ARRAY_SIZE(wanted) && may_be_parts(period, launches, n))
		take_whole(&contexts, launches, n, period);
	FREE_ALL(contexts.all, contexts.slots, contexts.of_launch);
	return best < ARRAY_SIZE(wanted);
}

/* ---- pauses ---------------------------------------------------------------------------------- */

#define CLASSES    256 /* of lengths: four for each power of two */
#define PAUSE_MORE 4   /* a pause is so many times as long as what is none */

static unsigned class_of(uint64_t ns)
{
	unsigned bits;

	if (ns < 4)
		return (unsigned)ns;
	bits = 63 - (unsigned)__builtin_clzll(ns);
	return bits * 4 + (unsigned)(ns >> (bits - 2) & 3);
}

static uint64_t least_of(unsigned class)
{
	return class < 8 ? class : (4ull + class % 4) << (class / 4 - 2);
}

/* The class below which so much of those from `from` to before `to` is. */
static unsigned quantile(const uint64_t *counts, unsigned from, unsigned to, double part)
{
	uint64_t all = 0, below = 0;
	unsigned class;

	for (class = from; class < to; class ++)
		all += counts[class];
	for (class = from; class + 1 < to; class ++) {
		below += counts[class];
		if ((double)below > part * (double)all)
			break;
	}
	return class;
}

/* The first class of the long ones: where two parts differ most (Otsu's method), of logarithms. */
static unsigned split(const uint64_t *counts)
{
	double all = 0, sum = 0, below = 0, below_sum = 0, best = 0, between;
	unsigned class, found = 0;

	for (class = 0; class < CLASSES; class ++) {
		all += (double)counts[class];
		sum += (double)counts[class] * class;
	}
	for (class = 1; class < CLASSES; class ++) {
		below += (double)counts[class - 1];
		below_sum += (double)counts[class - 1] * (class - 1);
		if (below == 0 || below == all)
			continue;
		between = below_sum / below - (sum - below_sum) / (all - below);
		between *= between * below * (all - below);
		if (between > best) {
			best = between;
			found = class;
		}
	}
	return found;
}

/* What is the least pause; 0 where there are none that stand out. */
static uint64_t least_pause(const struct step_launch *launches, size_t n)
{
	uint64_t counts[CLASSES] = { 0 };
	unsigned first;

	for (size_t i = 1; i < n; i++)
		counts[class_of(since(launches, i - 1, i))]++;
	first = split(counts);
	if (!first || least_of(quantile(counts, first, CLASSES, 0.1)) <
	                      PAUSE_MORE * least_of(quantile(counts, 0, first, 0.9)))
		return 0;
	return least_of(first);
}

bool steps_period_of_pauses(const struct step_launch *launches, size_t n,
                            struct steps_period *period)
{
	struct context pauses = { 0 };

	if (n < LEAST + 1)
		return false;
	*period = (struct steps_period){ .pause_ns = least_pause(launches, n) };
	if (!period->pause_ns)
		return false;
	for (unsigned pass = 0; pass < 2; pass++) {
		pauses.last = 0;
		for (size_t i = 1; i < n; i++) {
			if (since(launches, i - 1, i) < period->pause_ns)
				continue;
			if (pauses.last && !pass) {
				vote(&pauses, (uint32_t)(i + 1) - pauses.last);
			} else if (pauses.last && is_near(i + 1 - pauses.last, pauses.usual)) {
				pauses.n_usual++;
				pauses.usual_ns += since(launches, pauses.last - 1, i);
			}
			pauses.last = (uint32_t)i + 1;
		}
	}
	if (pauses.usual < 2 || pauses.n_usual < LEAST || pauses.n_usual < OFTEN * pauses.distances)
		return false;
	period->launches = pauses.usual;
	period->mean_ns = pauses.usual_ns / pauses.n_usual;
	return true;
}

bool steps_period_is_usual(const struct steps_period *period, size_t launches)
{
	return is_near(launches, period->launches);
}

bool steps_period_begins(const struct steps_period *period, const struct step_launch *launches,
                         size_t i)
{
	if (!period->keys)
		return i && since(launches, i - 1, i) >= period->pause_ns;
	return i + 1 >= period->keys && hash_context(launches, i, period->keys) == period->context;
}
