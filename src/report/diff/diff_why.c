// SPDX-License-Identifier: MIT
/*
 * The verdict: what a step costs more or less, of what. Of each trace the account of one GPU, or
 * thread, is taken; its parts are brought together by cause and by functions from the outermost on,
 * since lines move.
 */
#include "report/diff/diff_why.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/keyed.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "report/diff/welch.h"
#include "report/why_inside.h"
#include "report/why_words.h"

#define NO_STEP_NS    1000000000 /* without steps a second is compared */
#define LEAST         0.005      /* of a step: what is less on both sides has no row of its own */
#define SAME          0.01       /* of a step: so much is no difference */
#define TOLD          0.2        /* of the whole difference that a cause has which is told */
#define TOLD_MOST     3
#define PLACE_SHARE   0.6  /* of its cause's difference that a place has which is told */
#define PLACES_LOOKED 4096 /* costs that a place is looked for in */
#define UNKNOWN       0.1  /* of a step: more of it is said */

struct cost_key {
	uint64_t path; /* of its functions: the same on both sides */
	uint64_t cause;
};

struct cost {
	struct cost_key key;
	double ns[DIFF_SIDES];      /* of a step */
	double most_ns[DIFF_SIDES]; /* and of that its largest part, */
	uint32_t chain[DIFF_SIDES]; /* and where that is */
};

struct side {
	struct why *why;
	const struct account *account;
	const struct steps *steps;
	double step_ns;
	uint64_t *paths; /* by chain */
};

struct comparison {
	struct side sides[DIFF_SIDES];
	bool steps;                      /* both have some */
	struct keyed costs;              /* in the end the largest change first */
	double by_cause[ACCOUNT_CAUSES]; /* differences */
};

static double cost_change(const struct cost *cost)
{
	return cost->ns[DIFF_B] - cost->ns[DIFF_A];
}

static double step_change(const struct comparison *all)
{
	return all->sides[DIFF_B].step_ns - all->sides[DIFF_A].step_ns;
}

static double longer_step(const struct comparison *all)
{
	return fmax(all->sides[DIFF_A].step_ns, all->sides[DIFF_B].step_ns);
}

/* ---- which accounts ------------------------------------------------------------------------ */

/* How many like it are before it: ranks of one program. */
static size_t order_of(const struct why *why, const struct account *account)
{
	size_t n = 0;

	for (const struct account *one = why->accounts.of; one < account; one++)
		n += one->device == account->device &&
		     !strcmp(one->process->comm, account->process->comm);
	return n;
}

static bool are_counterparts(const struct why *a, const struct account *of_a, const struct why *b,
                             const struct account *of_b)
{
	return of_a->device == of_b->device && !strcmp(of_a->process->comm, of_b->process->comm) &&
	       order_of(a, of_a) == order_of(b, of_b);
}

static double step_of(const struct why *why, const struct account *account)
{
	return why_has_step(why, account) ? (double)why_step_ns(why_steps(why, account))
	                                  : NO_STEP_NS;
}

/* Of GPUs that are in both those whose step changed most; else what each is told of. */
static bool choose_accounts(struct comparison *all)
{
	const struct why *a = all->sides[DIFF_A].why, *b = all->sides[DIFF_B].why;
	const struct account *of_a = why_of(a), *of_b = why_of(b);
	double most = -1;

	for (size_t i = 0; i < a->accounts.n; i++)
		for (size_t k = 0; k < b->accounts.n; k++) {
			const struct account *one = &a->accounts.of[i], *other = &b->accounts.of[k];
			double change = fabs(step_of(b, other) - step_of(a, one));

			if (change <= most || !are_counterparts(a, one, b, other))
				continue;
			most = change;
			of_a = one;
			of_b = other;
		}
	all->sides[DIFF_A].account = of_a;
	all->sides[DIFF_B].account = of_b;
	return of_a && of_b && (of_a->device == FACTS_NONE) == (of_b->device == FACTS_NONE);
}

/* ---- costs --------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text)
{
	return text ? hash_long(text, strlen(text)) : 0;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Of each chain its functions; of code without names its file. */
static void make_paths(struct side *side)
{
	const struct chains *chains = side->why->facts.chains;
	size_t n = chains_count(chains);

	side->paths = xcalloc(n + 1, sizeof(*side->paths));
	for (uint32_t node = 1; node < n; node++) {
		const struct stack_frame *frame = chains_frame(chains, node);
		const uint64_t parts[] = {
			side->paths[chains_parent(chains, node)],
			hash_of(frame->function),
			hash_of(base_name(frame->file)),
			frame->function ? 0 : hash_of(frame->module),
		};

		side->paths[node] = hash_long(parts, sizeof(parts));
	}
}

static void add_cost(struct comparison *all, enum diff_side which, const struct account_part *part)
{
	const struct side *side = &all->sides[which];
	const struct cost_key key = { side->paths[part->chain], part->cause };
	double ns = part->ns / side->account->ns * side->step_ns;
	struct cost *cost = keyed_row(&all->costs, &key, SIZE_MAX);

	cost->ns[which] += ns;
	if (ns > cost->most_ns[which]) {
		cost->most_ns[which] = ns;
		cost->chain[which] = part->chain;
	}
	all->by_cause[part->cause] += which == DIFF_B ? ns : -ns;
}

ORDER_BY(by_change, struct cost, ORDER_OF(fabs(cost_change(b)), fabs(cost_change(a))),
         DOWN(ns[DIFF_A]), UP(key.cause));

static void compare(struct comparison *all)
{
	all->costs.row_bytes = sizeof(struct cost);
	all->costs.key_bytes = sizeof(struct cost_key);
	all->steps = true;
	for (int i = 0; i < DIFF_SIDES; i++) {
		struct side *side = &all->sides[i];

		side->steps = why_steps(side->why, side->account);
		all->steps &= why_has_step(side->why, side->account);
	}
	for (int i = 0; i < DIFF_SIDES; i++) {
		struct side *side = &all->sides[i];

		side->step_ns = all->steps ? (double)why_step_ns(side->steps) : NO_STEP_NS;
		make_paths(side);
		for (size_t k = 0; side->account->ns > 0 && k < side->account->n_parts; k++)
			add_cost(all, i, &side->account->parts[k]);
	}
	keyed_sort(&all->costs, by_change);
}

static void clear(struct comparison *all)
{
	keyed_free(&all->costs);
	for (int i = 0; i < DIFF_SIDES; i++)
		free(all->sides[i].paths);
}

/* ---- places -------------------------------------------------------------------------------- */

/* The side that has more of it: it has the place. */
static enum diff_side side_of(const struct cost *cost)
{
	return cost->ns[DIFF_B] >= cost->ns[DIFF_A] ? DIFF_B : DIFF_A;
}

static void add_label(const struct comparison *all, enum diff_side side, uint32_t chain,
                      const char *before, struct buf *out)
{
	if (!chain)
		return;
	buf_puts(out, before);
	chains_label(all->sides[side].why->facts.chains, chain, 3, out);
}

/* Whether it is in a function with this path, or below it. */
static bool is_below(const struct side *side, uint32_t chain, uint64_t path)
{
	const struct chains *chains = side->why->facts.chains;

	while (chain && side->paths[chain] != path)
		chain = chains_parent(chains, chain);
	return chain;
}

/* The difference of a cause in the place with this path, and below it. */
static double change_below(const struct comparison *all, enum account_cause cause, uint64_t path)
{
	double ns = 0;

	for (size_t i = 0; i < all->costs.n && i < PLACES_LOOKED; i++) {
		const struct cost *cost = keyed_at(&all->costs, i);
		enum diff_side side = side_of(cost);

		if (cost->key.cause == cause &&
		    is_below(&all->sides[side], cost->chain[side], path))
			ns += cost_change(cost);
	}
	return ns;
}

/* From the largest difference of the cause outwards, up to where most of it is. */
static void add_place(const struct comparison *all, enum account_cause cause, struct buf *out)
{
	double wanted = PLACE_SHARE * fabs(all->by_cause[cause]);
	enum diff_side side = DIFF_A;
	uint32_t chain = 0;

	for (size_t i = 0; i < all->costs.n; i++) {
		const struct cost *cost = keyed_at(&all->costs, i);

		if (cost->key.cause != cause ||
		    (cost_change(cost) < 0) != (all->by_cause[cause] < 0))
			continue;
		side = side_of(cost);
		chain = cost->chain[side];
		break;
	}
	while (chain && fabs(change_below(all, cause, all->sides[side].paths[chain])) < wanted)
		chain = chains_parent(all->sides[side].why->facts.chains, chain);
	add_label(all, side, chain, " in ", out);
}

/* ---- the sentence -------------------------------------------------------------------------- */

static void add_ns(struct buf *out, double ns)
{
	buf_duration(out, ns < 0 ? -ns : ns);
}

/* Whether steps differ by more than those of one trace do. */
static bool steps_differ(const struct comparison *all)
{
	struct spread spread[DIFF_SIDES] = { 0 };
	double p;

	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct steps *steps = all->sides[i].steps;

		for (size_t k = 0; k < steps->n; k++)
			if (!steps->apart[k])
				spread_add(&spread[i], steps->begin_ns[k + 1] - steps->begin_ns[k]);
	}
	p = welch_p_value(&spread[DIFF_A], &spread[DIFF_B]);
	spread_free(&spread[DIFF_A]);
	spread_free(&spread[DIFF_B]);
	return isnan(p) || p < DIFF_SIGNIFICANT;
}

/* "a step takes 3.100 ms more (24.300 ms to 27.400 ms)" */
static void add_step(const struct comparison *all, struct buf *out)
{
	double change = step_change(all);
	bool differs = steps_differ(all);

	buf_puts(out, "a step takes ");
	if (!differs || fabs(change) < SAME * longer_step(all)) {
		buf_puts(out, "as long");
	} else {
		add_ns(out, change);
		buf_puts(out, change > 0 ? " more" : " less");
	}
	buf_puts(out, " (");
	add_ns(out, all->sides[DIFF_A].step_ns);
	buf_puts(out, " to ");
	add_ns(out, all->sides[DIFF_B].step_ns);
	if (!differs && fabs(change) >= SAME * longer_step(all))
		buf_puts(out, ", which steps of one recording differ by as well");
	buf_putc(out, ')');
}

/* The cause whose time changed most, and was not told; ACCOUNT_CAUSES: none did as much. */
static enum account_cause next_cause(const struct comparison *all, const bool *told, double least)
{
	enum account_cause most = ACCOUNT_CAUSES;

	for (int cause = 0; cause < ACCOUNT_CAUSES; cause++)
		if (!told[cause] && fabs(all->by_cause[cause]) >= least &&
		    (most == ACCOUNT_CAUSES ||
		     fabs(all->by_cause[cause]) > fabs(all->by_cause[most])))
			most = (enum account_cause)cause;
	return most;
}

static void add_causes(const struct comparison *all, struct buf *out)
{
	double least = fmax(TOLD * fabs(step_change(all)), SAME * longer_step(all));
	bool told[ACCOUNT_CAUSES] = { false };
	enum account_cause cause;
	size_t n;

	for (n = 0; n < TOLD_MOST; n++) {
		cause = next_cause(all, told, least);
		if (cause == ACCOUNT_CAUSES)
			break;
		told[cause] = true;
		buf_printf(out, "%s%c", n ? "; " : ": ", all->by_cause[cause] > 0 ? '+' : '-');
		add_ns(out, all->by_cause[cause]);
		buf_putc(out, ' ');
		buf_puts(out, account_cause_text(cause));
		add_place(all, cause, out);
	}
	if (!n)
		buf_puts(out, ", of the same");
	else if (!told[ACCOUNT_KERNELS] &&
	         fabs(all->by_cause[ACCOUNT_KERNELS]) < SAME * longer_step(all))
		buf_puts(out, "; kernels the same");
}

static void add_unknown(const struct comparison *all, struct buf *out)
{
	for (int i = 0; i < DIFF_SIDES; i++) {
		double unknown = answer_unknown(all->sides[i].account);

		if (unknown > UNKNOWN)
			buf_printf(out, "; of %c %.0f %% has no cause that was recorded", 'A' + i,
			           100 * unknown);
		if (all->sides[i].why->facts.left_out)
			buf_printf(out, "; of %c what it has beyond the room for it is not known",
			           'A' + i);
	}
}

static void add_whose(const struct comparison *all, struct buf *out)
{
	const struct account *account = all->sides[DIFF_B].account;

	if (all->sides[DIFF_A].why->accounts.n < 2 && all->sides[DIFF_B].why->accounts.n < 2)
		return;
	if (account->device != FACTS_NONE)
		buf_printf(out, "GPU %u of ", account->device);
	text_add_safe(out, account->process->comm);
	buf_puts(out, ": ");
}

static void add_verdict(const struct comparison *all, struct buf *out)
{
	add_whose(all, out);
	if (all->steps)
		add_step(all, out);
	else
		buf_puts(out, "steps were not found in both, so a second of each is compared");
	add_causes(all, out);
	add_unknown(all, out);
}

/* Why there is nothing to compare. */
static void add_reason(const struct comparison *all, struct buf *out)
{
	for (int i = 0; i < DIFF_SIDES; i++) {
		struct why *why = all->sides[i].why;

		if (!why->accounts.n)
			buf_printf(out, "%sof %c nothing is known: %s", out->len ? "; " : "",
			           'A' + i, why_words_none(&why->facts, &why->options));
	}
	if (!out->len)
		buf_printf(out, "nothing is compared: when GPUs were busy is known of %c alone",
		           all->sides[DIFF_A].account->device == FACTS_NONE ? 'B' : 'A');
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{ "A", TABLE_DURATION },    { "B", TABLE_DURATION }, { "Change", TABLE_DURATION },
	{ "Change", TABLE_CHANGE }, { "Cause", TABLE_TEXT }, { "What", TABLE_WORDS },
};

static void write_row(struct table *table, const double ns[DIFF_SIDES], const char *cause,
                      const char *what)
{
	TABLE_CELLS(table, (uint64_t)ns[DIFF_A], (uint64_t)ns[DIFF_B]);
	table_difference(table, (int64_t)ns[DIFF_B] - (int64_t)ns[DIFF_A]);
	TABLE_LAST(table, ns[DIFF_A] >= 1 ? 100 * (ns[DIFF_B] - ns[DIFF_A]) / ns[DIFF_A] : NAN,
	           cause, what);
}

static void write_rows(const struct comparison *all, struct table *table)
{
	const double steps[] = { all->sides[DIFF_A].step_ns, all->sides[DIFF_B].step_ns };
	double rest[DIFF_SIDES] = { 0 };

	write_row(table, steps, "all", all->steps ? "a step" : "a second");
	for (size_t i = 0; i < all->costs.n; i++) {
		const struct cost *cost = keyed_at(&all->costs, i);
		AT_END(buf_free) struct buf what = { 0 };

		if (fmax(cost->ns[DIFF_A], cost->ns[DIFF_B]) < LEAST * longer_step(all)) {
			rest[DIFF_A] += cost->ns[DIFF_A];
			rest[DIFF_B] += cost->ns[DIFF_B];
			continue;
		}
		buf_puts(&what, account_cause_text((enum account_cause)cost->key.cause));
		add_label(all, side_of(cost), cost->chain[side_of(cost)], " in ", &what);
		write_row(table, cost->ns, account_cause_name((enum account_cause)cost->key.cause),
		          what.data);
	}
	if (rest[DIFF_A] >= 1 || rest[DIFF_B] >= 1)
		write_row(table, rest, "rest", "all else");
}

static void verdict_json(const void *data, struct json *json, const char *key)
{
	json_open(json, key, '[');
	json_open(json, NULL, '{');
	json_string(json, "Verdict", data);
	json_close(json, '}');
	json_close(json, ']');
}

static int write_verdict(struct table *table, struct buf *verdict, struct err *err)
{
	AT_END(at_end_free) char *words = xstrdup(verdict->data);

	buf_putc(verdict, '\n');
	text_wrap_lines(verdict, 0, table_options(table)->width);
	return table_passage(table,
	                     &(struct table_passage){ .key = "verdict",
	                                              .title = "why: what a step costs",
	                                              .column = "Verdict",
	                                              .lines = verdict->data,
	                                              .add = verdict_json,
	                                              .data = words },
	                     err);
}

static void set_side(struct side *side, struct consumer *consumer, const struct run_info *run)
{
	side->why = (struct why *)consumer;
	side->why->facts.run = run; /* that of its end is gone */
}

bool diff_why_any(struct consumer *a, struct consumer *b)
{
	return ((struct why *)a)->accounts.n || ((struct why *)b)->accounts.n;
}

int diff_why_print(struct consumer *a, struct consumer *b,
                   const struct run_info *const runs[DIFF_SIDES], struct table *table,
                   struct err *err)
{
	struct comparison all = { 0 };
	AT_END(buf_free) struct buf verdict = { 0 };
	bool comparable;
	int rc;

	set_side(&all.sides[DIFF_A], a, runs[DIFF_A]);
	set_side(&all.sides[DIFF_B], b, runs[DIFF_B]);
	comparable = choose_accounts(&all);
	if (comparable) {
		compare(&all);
		add_verdict(&all, &verdict);
	} else {
		add_reason(&all, &verdict);
	}
	rc = write_verdict(table, &verdict, err);
	table_begin(table, "why", "What it consists of", TABLE_COLUMNS(columns));
	if (comparable)
		write_rows(&all, table);
	clear(&all);
	return rc;
}

bool diff_why_first_steps(struct consumer *a, struct consumer *b, uint64_t ns[DIFF_SIDES])
{
	struct comparison all = { .sides = { { .why = (struct why *)a },
		                             { .why = (struct why *)b } } };

	if (!choose_accounts(&all))
		return false;
	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct why *why = all.sides[i].why;
		const struct steps *steps = why_steps(why, all.sides[i].account);
		size_t first = 0;

		if (!why_has_step(why, all.sides[i].account))
			return false;
		while (first < steps->n && steps->apart[first])
			first++;
		ns[i] = first < steps->n && steps->begin_ns[first] > why->facts.run->begin_ns
		                ? steps->begin_ns[first] - why->facts.run->begin_ns
		                : 0;
	}
	return true;
}
