// SPDX-License-Identifier: MIT
#include "report/diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/summary/summary.h"
#include "base/suggest.h"
#include "base/xalloc.h"
#include "report/diff/diff_totals.h"
#include "report/diff/diff_rows.h"
#include "report/diff/diff_why.h"
#include "report/why.h"

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
