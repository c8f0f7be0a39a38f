// SPDX-License-Identifier: MIT
#include "analysis/time_bins.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define SHIFT_AT_FIRST 6                   /* log2 of a bin's ns */
#define FARTHEST       ((uint64_t)1 << 55) /* ns, 417 days: no trace is that long, nonsense is */

struct time_bins {
	size_t n;           /* bins of a row */
	uint64_t origin_ns; /* begin of the first bin; it may lie before time began: modulo 2^64 */
	unsigned shift;     /* log2 of a bin's ns; 0: nothing was added */
	uint64_t (**rows)[CATEGORY_COUNT];
	size_t n_rows;
};

struct time_bins *time_bins_new(size_t bins)
{
	struct time_bins *made = xcalloc(1, sizeof(*made));

	made->n = bins;
	return made;
}

void time_bins_free(struct time_bins *bins)
{
	if (!bins)
		return;
	for (size_t i = 0; i < bins->n_rows; i++)
		free(bins->rows[i]);
	free(bins->rows);
	free(bins);
}

size_t time_bins_row(struct time_bins *bins)
{
	*VEC_ADD(bins->rows, bins->n_rows) = xcalloc(bins->n, sizeof(**bins->rows));
	return bins->n_rows - 1;
}

/* ---- making room --------------------------------------------------------------------------- */

/* Bins 2i and 2i + 1 become bin `to` + i. */
static void halve(const struct time_bins *bins, uint64_t (*row)[CATEGORY_COUNT], size_t to)
{
	size_t half = bins->n / 2;

	for (size_t i = 0; i < half; i++) {
		for (size_t c = 0; c < CATEGORY_COUNT; c++)
			row[i][c] = row[2 * i][c] + row[2 * i + 1][c];
	}
	if (to)
		memcpy(row + to, row, half * sizeof(*row));
	memset(to ? row : row + half, 0, half * sizeof(*row));
}

static void grow(struct time_bins *bins, bool left)
{
	for (size_t i = 0; i < bins->n_rows; i++)
		halve(bins, bins->rows[i], left ? bins->n / 2 : 0);
	if (left)
		bins->origin_ns -= (uint64_t)bins->n << bins->shift;
	bins->shift++;
}

/* False where times are too far apart to be true. */
static bool make_room(struct time_bins *bins, uint64_t begin_ns, uint64_t end_ns)
{
	if (!bins->shift) {
		bins->shift = SHIFT_AT_FIRST;
		bins->origin_ns = begin_ns;
	}
	if (end_ns - begin_ns > FARTHEST || end_ns - bins->origin_ns + FARTHEST > 2 * FARTHEST)
		return false;
	while ((int64_t)(begin_ns - bins->origin_ns) < 0)
		grow(bins, true);
	while (end_ns - bins->origin_ns > (uint64_t)bins->n << bins->shift)
		grow(bins, false);
	return true;
}

/* ---- adding and reading -------------------------------------------------------------------- */

void time_bins_add(struct time_bins *bins, size_t row, enum category category, uint64_t begin_ns,
                   uint64_t end_ns)
{
	uint64_t at, end;

	if (!make_room(bins, begin_ns, end_ns))
		return;
	at = begin_ns - bins->origin_ns;
	end = end_ns - bins->origin_ns;
	for (size_t bin = at >> bins->shift; at < end; bin++) {
		uint64_t edge = (uint64_t)(bin + 1) << bins->shift, to = end < edge ? end : edge;

		bins->rows[row][bin][category] += to - at;
		at = to;
	}
}

/* Spreads one bin, of which only what lies in the window can hold anything, over the columns. */
static void spread(const uint64_t bin[CATEGORY_COUNT], double begin, double end, size_t columns,
                   double *out)
{
	size_t first = (size_t)begin;

	for (size_t column = first; column < columns && (double)column < end; column++) {
		double from = begin > (double)column ? begin : (double)column;
		double to = end < (double)(column + 1) ? end : (double)(column + 1);
		double share = (to - from) / (end - begin);

		for (size_t c = 0; c < CATEGORY_COUNT; c++)
			out[column * CATEGORY_COUNT + c] += share * (double)bin[c];
	}
}

static bool is_empty(const uint64_t bin[CATEGORY_COUNT])
{
	for (size_t c = 0; c < CATEGORY_COUNT; c++) {
		if (bin[c])
			return false;
	}
	return true;
}

void time_bins_read(const struct time_bins *bins, size_t row, uint64_t from_ns, uint64_t to_ns,
                    size_t columns, double *out)
{
	double column_ns = (double)(to_ns - from_ns) / (double)columns;
	uint64_t width_ns = (uint64_t)1 << bins->shift;

	memset(out, 0, columns * CATEGORY_COUNT * sizeof(*out));
	for (size_t i = 0; i < bins->n; i++) {
		double begin, end;

		if (is_empty(bins->rows[row][i]))
			continue;
		begin = (double)(int64_t)(bins->origin_ns + i * width_ns - from_ns) / column_ns;
		end = begin + (double)width_ns / column_ns;
		begin = begin < 0 ? 0 : begin;
		end = end > (double)columns ? (double)columns : end;
		if (end > begin)
			spread(bins->rows[row][i], begin, end, columns, out);
	}
}
