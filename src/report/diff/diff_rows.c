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
	SORT(sorted, *n, compare_row_labels);
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
	SORT(pairs, *n, compare_changes);
	return pairs;
}

/* ---- cells --------------------------------------------------------------------------------- */

static bool has_values(const struct sums_row *row)
{
	return row && row->values.count;
}

/* NAN: there are none. */
static double average(const struct sums_row *row)
{
	return has_values(row) ? spread_average(&row->values) : NAN;
}

static double median(struct sums_row *row)
{
	return has_values(row) ? spread_median(&row->values) : NAN;
}

static double percent(double from, double to)
{
	return from > 0 ? 100 * (to - from) / from : NAN;
}

static bool have_values(const struct pair *pair)
{
	return has_values(pair->a) && has_values(pair->b);
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
	struct sums_row *a = pair->a, *b = pair->b;
	bool both = have_values(pair);
	double p = both ? welch_p_value(&a->values, &b->values) : NAN;

	TABLE_CELLS(table, TABLE_IF(has_values(a), a->values.sum),
	            TABLE_IF(has_values(b), b->values.sum));
	table_difference(table, change(pair));
	TABLE_CELLS(table, both ? percent((double)a->values.sum, (double)b->values.sum) : NAN,
	            TABLE_IF(a != NULL, a->count), TABLE_IF(b != NULL, b->count), average(a),
	            average(b), both ? percent(average(a), average(b)) : NAN, median(a), median(b),
	            p, verdict(pair, p, sums_type(kind) == TABLE_DURATION));
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

	memcpy(columns, figures, sizeof(figures));
	return ARRAY_SIZE(figures) + sums_labels(kind, columns + ARRAY_SIZE(figures));
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
