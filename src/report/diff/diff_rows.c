// SPDX-License-Identifier: MIT
#include "report/diff/diff_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"
#include "report/diff/welch.h"
#include "base/xalloc.h"
#include "report/diff/diff.h"

#define COLUMNS_MOST 16

/* One of the two may be NULL. */
struct pair {
	struct sums_row *a, *b;
};

static int64_t change(const struct pair *pair)
{
	return (int64_t)((pair->b ? pair->b->values.sum : 0) - (pair->a ? pair->a->values.sum : 0));
}

static const struct sums_row *either(const struct pair *pair)
{
	return pair->a ? pair->a : pair->b;
}

ORDER_POINTERS_BY(compare_row_labels, struct sums_row, OR_ELSE(sums_compare_labels));

ORDER_BY(compare_changes, struct pair, ORDER_OF(llabs(change(b)), llabs(change(a))),
         sums_compare_labels(either(a), either(b)));

/* In the order of their labels; the caller frees the array. */
static struct sums_row **by_label(struct consumer *consumer, size_t *n)
{
	struct sums_row *rows = sums_rows(consumer, n);
	struct sums_row **sorted = xcalloc(*n + 1, sizeof(*sorted));

	for (size_t i = 0; i < *n; i++)
		sorted[i] = &rows[i];
	qsort(sorted, *n, sizeof(*sorted), compare_row_labels);
	return sorted;
}

/* The caller frees the array. */
static struct pair *make_pairs(struct consumer *a, struct consumer *b, size_t *n)
{
	size_t n_a, n_b, at_a = 0, at_b = 0;
	struct sums_row **rows_a = by_label(a, &n_a), **rows_b = by_label(b, &n_b);
	struct pair *pairs = xcalloc(n_a + n_b + 1, sizeof(*pairs));

	*n = 0;
	while (at_a < n_a || at_b < n_b) {
		int order = at_a == n_a   ? 1
		            : at_b == n_b ? -1
		                          : sums_compare_labels(rows_a[at_a], rows_b[at_b]);
		struct pair *pair = &pairs[(*n)++];

		if (order <= 0)
			pair->a = rows_a[at_a++];
		if (order >= 0)
			pair->b = rows_b[at_b++];
	}
	free(rows_a);
	free(rows_b);
	qsort(pairs, *n, sizeof(*pairs), compare_changes);
	return pairs;
}

/* ---- cells --------------------------------------------------------------------------------- */

static void add_total(struct table *table, const struct sums_row *row)
{
	if (row && row->values.count)
		table_u64(table, row->values.sum);
	else
		table_unknown(table);
}

static void add_count(struct table *table, const struct sums_row *row)
{
	if (row)
		table_u64(table, row->count);
	else
		table_unknown(table);
}

static void add_average(struct table *table, const struct sums_row *row)
{
	if (row && row->values.count)
		table_real(table, spread_average(&row->values));
	else
		table_unknown(table);
}

static void add_median(struct table *table, struct sums_row *row)
{
	if (row && row->values.count)
		table_real(table, spread_median(&row->values));
	else
		table_unknown(table);
}

static double percent(double from, double to)
{
	return from > 0 ? 100 * (to - from) / from : NAN;
}

static bool have_values(const struct pair *pair)
{
	return pair->a && pair->b && pair->a->values.count && pair->b->values.count;
}

/* Of averages: the total also grows when there are more calls, which is no question of chance. */
static const char *verdict(const struct pair *pair, double p, bool times)
{
	double a, b;

	if (!pair->a || !pair->b)
		return pair->a ? "only in A" : "only in B";
	if (!have_values(pair))
		return "unknown";
	a = spread_average(&pair->a->values);
	b = spread_average(&pair->b->values);
	if (a == b)
		return "same";
	if (isnan(p))
		return "too few to tell";
	if (p >= DIFF_SIGNIFICANT)
		return "not significant";
	if (times)
		return b > a ? "slower" : "faster";
	return b > a ? "larger" : "smaller";
}

static void add_pair(const struct sums_kind *kind, const struct pair *pair, struct table *table)
{
	double p = NAN, average_change = NAN;

	if (have_values(pair)) {
		p = welch_p_value(&pair->a->values, &pair->b->values);
		average_change =
			percent(spread_average(&pair->a->values), spread_average(&pair->b->values));
	}
	add_total(table, pair->a);
	add_total(table, pair->b);
	table_difference(table, change(pair));
	table_real(table, have_values(pair) ? percent((double)pair->a->values.sum,
	                                              (double)pair->b->values.sum)
	                                    : NAN);
	add_count(table, pair->a);
	add_count(table, pair->b);
	add_average(table, pair->a);
	add_average(table, pair->b);
	table_real(table, average_change);
	add_median(table, pair->a);
	add_median(table, pair->b);
	TABLE_CELLS(table, p, verdict(pair, p, sums_type(kind) == TABLE_DURATION));
	sums_add_labels(kind, either(pair), table);
	table_end_row(table);
}

/* ---- the table ----------------------------------------------------------------------------- */

static size_t make_columns(const struct sums_kind *kind, struct table_column *columns)
{
	enum table_type type = sums_type(kind);
	const struct table_column figures[] = {
		{ "Total A", type },
		{ "Total B", type },
		{ "Change", type },
		{ "Change", TABLE_CHANGE },
		{ "Count A", TABLE_NUMBER },
		{ "Count B", TABLE_NUMBER },
		{ "Avg A", type },
		{ "Avg B", type },
		{ "Avg Change", TABLE_CHANGE },
		{ "Med A", type },
		{ "Med B", type },
		{ "P-Value", TABLE_REAL },
		{ "Verdict", TABLE_TEXT },
	};
	size_t n = ARRAY_SIZE(figures), n_labels;
	const struct table_column *labels = sums_labels(kind, &n_labels);

	memcpy(columns, figures, sizeof(figures));
	memcpy(columns + n, labels, n_labels * sizeof(*columns));
	return n + n_labels;
}

void diff_rows_print(const struct sums_kind *kind, const char *name, const char *help,
                     struct consumer *a, struct consumer *b, struct table *table)
{
	struct table_column columns[COLUMNS_MOST];
	size_t n_columns = make_columns(kind, columns), n;
	AT_END(at_end_free) struct pair *pairs = make_pairs(a, b, &n);
	char title[160];

	snprintf(title, sizeof(title), "%s: %s", name, help);
	table_begin(table, name, title, columns, n_columns);
	if (!sums_has_source(a) || !sums_has_source(b))
		n = 0;
	for (size_t i = 0; i < n; i++)
		add_pair(kind, &pairs[i], table);
}
