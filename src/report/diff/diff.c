// SPDX-License-Identifier: MIT
#include "report/diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/summary/summary.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "report/diff/diff_rows.h"
#include "report/diff/diff_why.h"
#include "report/summary/tally.h"
#include "report/why.h"

/* ---- diff totals --------------------------------------------------------------------------- */

/* What two traces did in all, side by side. */

struct totals_side {
	const struct tally *tally;
	const struct memory_totals *memory;
	uint64_t duration_ns, busy_ns, idle_ns;
};

enum totals_need { NEEDS_NOTHING, NEEDS_ALL_CALLS, NEEDS_GPU_TIMES, NEEDS_COUNT };

/* Where a figure is. */
enum totals_of { OF_SIDE, OF_TALLY, OF_MEMORY };

#define SIDE(member)   OF_SIDE, offsetof(struct totals_side, member)
#define TALLY(member)  OF_TALLY, offsetof(struct tally, member)
#define MEMORY(member) OF_MEMORY, offsetof(struct memory_totals, member)

static const struct totals_figure {
	const char *name;
	enum table_type type;
	enum totals_of of;
	size_t offset;          /* of a uint64_t */
	enum totals_need needs; /* of both traces, or it is not known */
} totals_figures[] = {
	{ "Trace duration", TABLE_DURATION, SIDE(duration_ns) },
	{ "CUDA calls", TABLE_NUMBER, TALLY(calls) },
	{ "Failed calls", TABLE_NUMBER, TALLY(failed) },
	{ "Kernel launches", TABLE_NUMBER, TALLY(launches) },
	{ "Graph launches", TABLE_NUMBER, TALLY(graph_launches) },
	{ "Allocations", TABLE_NUMBER, MEMORY(allocated.count) },
	{ "Allocated", TABLE_BYTES, MEMORY(allocated.bytes) },
	{ "Peak of live memory", TABLE_BYTES, MEMORY(peak_bytes), NEEDS_ALL_CALLS },
	{ "Live at the end", TABLE_BYTES, MEMORY(live.bytes), NEEDS_ALL_CALLS },
	{ "Transfers", TABLE_NUMBER, TALLY(all_copies.count) },
	{ "Transferred", TABLE_BYTES, TALLY(all_copies.bytes) },
	{ "Transferred H2D", TABLE_BYTES, TALLY(copies[DIRECTION_H2D].bytes) },
	{ "Transferred D2H", TABLE_BYTES, TALLY(copies[DIRECTION_D2H].bytes) },
	{ "Synchronisations", TABLE_NUMBER, TALLY(syncs) },
	{ "Time in synchronisations", TABLE_DURATION, TALLY(sync_ns) },
	{ "GPU busy", TABLE_DURATION, SIDE(busy_ns), NEEDS_GPU_TIMES },
	{ "GPU idle", TABLE_DURATION, SIDE(idle_ns), NEEDS_GPU_TIMES },
};

static struct totals_side side_of(const struct consumer *summary, const struct run_info *run)
{
	const struct tally *tally = summary_tally(summary);
	uint64_t busy_ns = gpu_tally_busy_ns(tally->gpu);

	return (struct totals_side){
		.tally = tally,
		.memory = memory_totals(tally->memory, MEMORY_NONE),
		.duration_ns = run->end_ns - run->begin_ns,
		.busy_ns = busy_ns,
		.idle_ns = gpu_tally_measured_ns(tally->gpu) - busy_ns,
	};
}

static uint64_t figure_of(const struct totals_side *side, const struct totals_figure *figure)
{
	const void *const of[] = {
		[OF_SIDE] = side, [OF_TALLY] = side->tally, [OF_MEMORY] = side->memory
	};

	return *(const uint64_t *)((const char *)of[figure->of] + figure->offset);
}

static const struct table_column totals_columns[] = {
	{ "What", TABLE_TEXT },     { "A", TABLE_NUMBER },      { "B", TABLE_NUMBER },
	{ "Change", TABLE_NUMBER }, { "Change", TABLE_CHANGE }, { "Unit", TABLE_TEXT },
};

static const char *totals_unit(enum table_type type)
{
	return type == TABLE_DURATION ? "ns" : type == TABLE_BYTES ? "bytes" : "";
}

static void add_figure(struct table *table, enum table_type type, uint64_t before, uint64_t after)
{
	table_as(table, type);
	table_u64(table, before);
	table_as(table, type);
	table_u64(table, after);
	table_as(table, type);
	table_difference(table, (int64_t)(after - before));
	table_real(table, before ? 100 * ((double)after - (double)before) / (double)before : NAN);
}

static void add_unknown(struct table *table)
{
	for (int i = 0; i < 4; i++)
		table_unknown(table);
}

/* The table without its end. `a` and `b` are what summary_new() made, after their ends. */
static void diff_totals_print(const char *name, const struct consumer *a, const struct consumer *b,
                              const struct run_info *const runs[DIFF_SIDES], struct table *table)
{
	const struct totals_side sides[DIFF_SIDES] = { side_of(a, runs[DIFF_A]),
		                                       side_of(b, runs[DIFF_B]) };
	const bool known[NEEDS_COUNT] = {
		[NEEDS_NOTHING] = true,
		[NEEDS_ALL_CALLS] =
			runs[DIFF_A]->estimate_scale <= 1 && runs[DIFF_B]->estimate_scale <= 1,
		[NEEDS_GPU_TIMES] = gpu_tally_any(sides[DIFF_A].tally->gpu) &&
		                    gpu_tally_any(sides[DIFF_B].tally->gpu),
	};
	bool text = table_options(table)->form == TABLE_FORM_TEXT;
	char title[80];

	snprintf(title, sizeof(title), "%s: what was done in all", name);
	table_begin(table, name, title, totals_columns, ARRAY_SIZE(totals_columns) - text);
	table_whole(table);
	for (size_t i = 0; i < ARRAY_SIZE(totals_figures); i++) {
		const struct totals_figure *figure = &totals_figures[i];

		if (text && figure->needs == NEEDS_GPU_TIMES && !known[NEEDS_GPU_TIMES])
			continue; /* most traces have none, by choice */
		table_text(table, figure->name);
		if (!known[figure->needs])
			add_unknown(table);
		else
			add_figure(table, figure->type, figure_of(&sides[DIFF_A], figure),
			           figure_of(&sides[DIFF_B], figure));
		if (!text) /* it is beside the figures */
			table_text(table, totals_unit(figure->type));
		table_end_row(table);
	}
}

/* ---- diff ---------------------------------------------------------------------------------- */

#define TOTALS "totals"
#define WHY    "why"

/* What one table compares. */
struct diff_part {
	struct report_choice choice; /* no report: the totals, or */
	bool why;                    /* the accounts of time */
	const struct sums_kind *kind;
	bool optional; /* not asked for: left out where there is nothing of it */
};

struct diff {
	struct diff_part *parts;
	struct consumer **consumers[DIFF_SIDES]; /* one for each part */
	size_t n;
};

const char *diff_name(size_t i)
{
	if (i < 2)
		return i ? TOTALS : WHY;
	i--;
	for (const struct report *r = reports; r->name; r++) {
		if (sums_kind(r->name, false) && !--i)
			return r->name;
	}
	return NULL;
}

/* ---- what is compared ---------------------------------------------------------------------- */

static int refuse(const char *word, struct err *err)
{
	const char *names[64], *near;
	size_t n = 0;

	while (n < 64 && (names[n] = diff_name(n)))
		n++;
	near = suggest(word, names, n);
	if (near)
		return err_set(err, EINVAL,
		               "'%s' is nothing that can be compared; did you mean '%s'?", word,
		               near);
	return err_set(err, EINVAL,
	               "'%s' is nothing that can be compared; 'cuscope diff --help' lists what is",
	               word);
}

/* The same comparison twice says nothing more. */
static bool is_known(const struct diff *diff, const struct diff_part *part)
{
	for (size_t i = 0; i < diff->n; i++) {
		if (diff->parts[i].kind == part->kind && diff->parts[i].why == part->why &&
		    diff->parts[i].choice.names == part->choice.names)
			return true;
	}
	return false;
}

static int add_part(struct diff *diff, const char *word, bool optional, struct err *err)
{
	struct diff_part *part = &diff->parts[diff->n];
	int rc;

	memset(part, 0, sizeof(*part));
	part->optional = optional;
	part->why = !strcmp(word, WHY);
	if (!part->why && strcmp(word, TOTALS)) {
		rc = report_choose(word, &part->choice, NULL);
		part->kind =
			rc ? NULL : sums_kind(part->choice.report->name, part->choice.by_place);
		if (rc && strchr(word, ':')) /* a form of names that is none */
			return report_choose(word, &part->choice, err);
		if (!part->kind)
			return refuse(word, err);
	}
	if (!is_known(diff, part))
		diff->n++;
	return 0;
}

static struct consumer *new_consumer(const struct diff_part *part,
                                     const struct report_options *options)
{
	if (part->why)
		return why_new(&(struct why_options){ .from_ns = options->from_ns,
		                                      .to_ns = options->to_ns,
		                                      .brief = true,
		                                      .part = options->part,
		                                      .chosen = options->chosen });
	if (!part->kind)
		return summary_new(&(struct summary_options){ 0 });
	return sums_new(part->kind, part->choice.names, options->nested);
}

int diff_new(const char *const *words, size_t n, const struct report_options *options,
             struct diff **diff, struct err *err)
{
	static const char *const usual[] = { WHY, TOTALS, "cuda_api_sum", "cuda_gpu_kern_sum" };
	struct diff *d = xcalloc(1, sizeof(*d));
	bool asked = n > 0;
	int rc = 0;

	if (!asked) {
		words = usual;
		n = ARRAY_SIZE(usual);
	}
	d->parts = xcalloc(n, sizeof(*d->parts));
	for (size_t i = 0; i < n && !rc; i++)
		rc = add_part(d, words[i], !asked, err);
	for (int side = 0; side < DIFF_SIDES && !rc; side++) {
		d->consumers[side] = xcalloc(d->n, sizeof(struct consumer *));
		for (size_t i = 0; i < d->n; i++)
			d->consumers[side][i] = new_consumer(&d->parts[i], options);
	}
	*diff = d;
	if (rc) {
		diff_free(d);
		*diff = NULL;
	}
	return rc;
}

void diff_free(struct diff *diff)
{
	if (!diff)
		return;
	for (int side = 0; side < DIFF_SIDES; side++) {
		for (size_t i = 0; diff->consumers[side] && i < diff->n; i++)
			diff->consumers[side][i]->ops->free(diff->consumers[side][i]);
		free(diff->consumers[side]);
	}
	free(diff->parts);
	free(diff);
}

struct consumer *const *diff_consumers(const struct diff *diff, enum diff_side side, size_t *n)
{
	*n = diff->n;
	return diff->consumers[side];
}

void diff_share(struct diff *diff, enum diff_side side, struct consumer *why, struct work *work)
{
	for (size_t i = 0; i < diff->n; i++) {
		struct consumer **own = &diff->consumers[side][i];

		if (diff->parts[i].kind)
			continue;
		(*own)->ops->free(*own);
		*own = diff->parts[i].why ? why_share(why)
		                          : summary_new(&(struct summary_options){ .work = work });
	}
}

bool diff_first_steps(const struct diff *diff, uint64_t ns[DIFF_SIDES])
{
	for (size_t i = 0; i < diff->n; i++)
		if (diff->parts[i].why)
			return diff_why_first_steps(diff->consumers[DIFF_A][i],
			                            diff->consumers[DIFF_B][i], ns);
	return false;
}

/* ---- printing ------------------------------------------------------------------------------ */

static bool has_source(const struct diff *diff, size_t i, enum diff_side side)
{
	return !diff->parts[i].kind || sums_has_source(diff->consumers[side][i]);
}

static void note_missing_gpu_times(const struct diff *diff, size_t i, struct table *table)
{
	bool a = has_source(diff, i, DIFF_A), b = has_source(diff, i, DIFF_B);

	if (!a && !b)
		report_note_no_gpu_times(table, false, NULL);
	else if (!a || !b)
		table_note(table, "GPU times were not recorded in %s", a ? "B" : "A");
}

/* Counts of estimated runs are those of what was seen, and differ by how much that was. */
static void note_estimates(const struct run_info *const runs[DIFF_SIDES], struct table *table)
{
	for (int side = 0; side < DIFF_SIDES; side++) {
		table_note_if(table, runs[side]->estimate_scale > 1,
		              "%c was recorded in windows of time: about %.2f times as much "
		              "happened as is counted here",
		              'A' + side, runs[side]->estimate_scale);
	}
}

static int print_part(struct diff *diff, size_t i, const struct run_info *const runs[DIFF_SIDES],
                      struct table *table, struct err *err)
{
	struct consumer *a = diff->consumers[DIFF_A][i], *b = diff->consumers[DIFF_B][i];
	const struct diff_part *part = &diff->parts[i];
	int rc = 0;

	if (part->why) {
		rc = diff_why_print(a, b, runs, table, err);
	} else if (part->kind) {
		AT_END(at_end_free) char *name = report_choice_name(&part->choice);

		diff_rows_print(part->kind, name, part->choice.report->help, a, b, table);
	} else {
		diff_totals_print(TOTALS, a, b, runs, table);
	}
	note_missing_gpu_times(diff, i, table);
	note_estimates(runs, table);
	return rc ? rc : table_end(table, err);
}

int diff_print(struct diff *diff, const struct run_info *const runs[DIFF_SIDES],
               const struct table_options *options, struct err *err)
{
	struct table *table = table_open(options, diff->n > 1 || diff->parts[0].why);
	int rc = 0;

	for (size_t i = 0; i < diff->n && !rc; i++) {
		bool nothing = diff->parts[i].why ? !diff_why_any(diff->consumers[DIFF_A][i],
		                                                  diff->consumers[DIFF_B][i])
		                                  : !has_source(diff, i, DIFF_A) &&
		                                            !has_source(diff, i, DIFF_B);

		if (!nothing || !diff->parts[i].optional)
			rc = print_part(diff, i, runs, table, err);
	}
	if (!rc)
		rc = table_finish(table, err);
	table_close(table);
	return rc;
}
