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

/* What two traces did in all, side by side. Private to diff.c. */

struct totals_side {
	const struct tally *tally;
	const struct run_info *run;
};

static const struct memory_totals *memory_of(const struct totals_side *side)
{
	return memory_totals(side->tally->memory, MEMORY_NONE);
}

/* ---- the figures: a function and a row each ------------------------------------------------- */

static uint64_t totals_duration(const struct totals_side *side)
{
	return side->run->end_ns - side->run->begin_ns;
}

static uint64_t totals_calls(const struct totals_side *side)
{
	return side->tally->calls;
}

static uint64_t totals_failed(const struct totals_side *side)
{
	return side->tally->failed;
}

static uint64_t totals_launches(const struct totals_side *side)
{
	return side->tally->launches;
}

static uint64_t graph_launches(const struct totals_side *side)
{
	return side->tally->graph_launches;
}

static uint64_t totals_allocations(const struct totals_side *side)
{
	return memory_of(side)->allocated.count;
}

static uint64_t totals_allocated(const struct totals_side *side)
{
	return memory_of(side)->allocated.bytes;
}

static uint64_t totals_peak(const struct totals_side *side)
{
	return memory_of(side)->peak_bytes;
}

static uint64_t totals_live(const struct totals_side *side)
{
	return memory_of(side)->live.bytes;
}

static uint64_t totals_copies(const struct totals_side *side)
{
	return side->tally->all_copies.count;
}

static uint64_t totals_copied(const struct totals_side *side)
{
	return side->tally->all_copies.bytes;
}

static uint64_t copied_h2d(const struct totals_side *side)
{
	return side->tally->copies[DIRECTION_H2D].bytes;
}

static uint64_t copied_d2h(const struct totals_side *side)
{
	return side->tally->copies[DIRECTION_D2H].bytes;
}

static uint64_t totals_syncs(const struct totals_side *side)
{
	return side->tally->syncs;
}

static uint64_t sync_time(const struct totals_side *side)
{
	return side->tally->sync_ns;
}

static uint64_t gpu_busy(const struct totals_side *side)
{
	return gpu_tally_busy_ns(side->tally->gpu);
}

static uint64_t gpu_idle(const struct totals_side *side)
{
	return gpu_tally_measured_ns(side->tally->gpu) - gpu_busy(side);
}

enum totals_need { NEEDS_NOTHING, NEEDS_ALL_CALLS, NEEDS_GPU_TIMES, NEEDS_COUNT };

static const struct {
	const char *name;
	enum table_type type;
	uint64_t (*get)(const struct totals_side *side);
	enum totals_need needs; /* of both traces, or it is not known */
} totals_figures[] = {
	{ "Trace duration", TABLE_DURATION, totals_duration, NEEDS_NOTHING },
	{ "CUDA calls", TABLE_NUMBER, totals_calls, NEEDS_NOTHING },
	{ "Failed calls", TABLE_NUMBER, totals_failed, NEEDS_NOTHING },
	{ "Kernel launches", TABLE_NUMBER, totals_launches, NEEDS_NOTHING },
	{ "Graph launches", TABLE_NUMBER, graph_launches, NEEDS_NOTHING },
	{ "Allocations", TABLE_NUMBER, totals_allocations, NEEDS_NOTHING },
	{ "Allocated", TABLE_BYTES, totals_allocated, NEEDS_NOTHING },
	{ "Peak of live memory", TABLE_BYTES, totals_peak, NEEDS_ALL_CALLS },
	{ "Live at the end", TABLE_BYTES, totals_live, NEEDS_ALL_CALLS },
	{ "Transfers", TABLE_NUMBER, totals_copies, NEEDS_NOTHING },
	{ "Transferred", TABLE_BYTES, totals_copied, NEEDS_NOTHING },
	{ "Transferred H2D", TABLE_BYTES, copied_h2d, NEEDS_NOTHING },
	{ "Transferred D2H", TABLE_BYTES, copied_d2h, NEEDS_NOTHING },
	{ "Synchronisations", TABLE_NUMBER, totals_syncs, NEEDS_NOTHING },
	{ "Time in synchronisations", TABLE_DURATION, sync_time, NEEDS_NOTHING },
	{ "GPU busy", TABLE_DURATION, gpu_busy, NEEDS_GPU_TIMES },
	{ "GPU idle", TABLE_DURATION, gpu_idle, NEEDS_GPU_TIMES },
};

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
	const struct totals_side sides[DIFF_SIDES] = { { summary_tally(a), runs[DIFF_A] },
		                                       { summary_tally(b), runs[DIFF_B] } };
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
		if (text && totals_figures[i].needs == NEEDS_GPU_TIMES && !known[NEEDS_GPU_TIMES])
			continue; /* most traces have none, by choice */
		table_text(table, totals_figures[i].name);
		if (!known[totals_figures[i].needs])
			add_unknown(table);
		else
			add_figure(table, totals_figures[i].type,
			           totals_figures[i].get(&sides[DIFF_A]),
			           totals_figures[i].get(&sides[DIFF_B]));
		if (!text) /* it is beside the figures */
			table_text(table, totals_unit(totals_figures[i].type));
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
		if (runs[side]->estimate_scale > 1)
			table_note(table,
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
		char *name = report_choice_name(&part->choice);

		diff_rows_print(part->kind, name, part->choice.report->help, a, b, table);
		free(name);
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
