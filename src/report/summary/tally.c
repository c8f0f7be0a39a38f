// SPDX-License-Identifier: MIT
#include "report/summary/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cuda/error.h"

static int descending(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_name(const struct function_tally *a, const struct function_tally *b)
{
	return strcmp(a->function->name, b->function->name);
}

static int compare_calls(const void *left, const void *right)
{
	const struct function_tally *a = *(const struct function_tally *const *)left;
	const struct function_tally *b = *(const struct function_tally *const *)right;
	int order = descending(a->calls, b->calls);

	return order ? order : by_name(a, b);
}

static int compare_total_time(const void *left, const void *right)
{
	const struct function_tally *a = *(const struct function_tally *const *)left;
	const struct function_tally *b = *(const struct function_tally *const *)right;
	int order = descending(a->durations.sum, b->durations.sum);

	return order ? order : by_name(a, b);
}

static int compare_average_time(const void *left, const void *right)
{
	const struct function_tally *a = *(const struct function_tally *const *)left;
	const struct function_tally *b = *(const struct function_tally *const *)right;
	double average_a = sketch_average(&a->durations), average_b = sketch_average(&b->durations);

	return average_a < average_b ? 1 : average_a > average_b ? -1 : by_name(a, b);
}

static int compare_launches(const void *left, const void *right)
{
	const struct kernel_tally *a = *(const struct kernel_tally *const *)left;
	const struct kernel_tally *b = *(const struct kernel_tally *const *)right;
	int order = descending(a->launches, b->launches);

	if (!order)
		order = descending(a->captured, b->captured);
	return order ? order : strcmp(a->name, b->name);
}

static int came_after_shutdown(const struct error_tally *row)
{
	return cuda_error_is_shutdown(row->key.function->function->layer, (int)row->key.code);
}

/* What is harmless comes last. */
static int compare_errors(const void *left, const void *right)
{
	const struct error_tally *a = *(const struct error_tally *const *)left;
	const struct error_tally *b = *(const struct error_tally *const *)right;
	int order = came_after_shutdown(a) - came_after_shutdown(b);

	if (!order)
		order = descending(a->count, b->count);
	if (!order)
		order = by_name(a->key.function, b->key.function);
	return order ? order : (a->key.code > b->key.code) - (a->key.code < b->key.code);
}

const struct function_tally **tally_functions(const struct tally *tally, enum function_order by,
                                              size_t *n)
{
	static int (*const compare[])(const void *, const void *) = {
		[BY_CALLS] = compare_calls,
		[BY_TOTAL_TIME] = compare_total_time,
		[BY_AVERAGE_TIME] = compare_average_time,
	};
	const struct function_tally **rows = xcalloc(HASH_COUNT(tally->functions), sizeof(*rows));
	struct function_tally *row, *next;

	*n = 0;
	HASH_ITER (hh, tally->functions, row, next) {
		if (by == BY_CALLS || row->durations.count)
			rows[(*n)++] = row;
	}
	qsort(rows, *n, sizeof(*rows), compare[by]);
	return rows;
}

const struct kernel_tally **tally_kernels(const struct tally *tally, size_t *n)
{
	const struct kernel_tally **rows = xcalloc(HASH_COUNT(tally->kernels), sizeof(*rows));
	struct kernel_tally *row, *next;

	*n = 0;
	HASH_ITER (hh, tally->kernels, row, next)
		rows[(*n)++] = row;
	qsort(rows, *n, sizeof(*rows), compare_launches);
	return rows;
}

const struct error_tally **tally_errors(const struct tally *tally, size_t *n)
{
	const struct error_tally **rows = xcalloc(HASH_COUNT(tally->errors), sizeof(*rows));
	struct error_tally *row, *next;

	*n = 0;
	HASH_ITER (hh, tally->errors, row, next)
		rows[(*n)++] = row;
	qsort(rows, *n, sizeof(*rows), compare_errors);
	return rows;
}

struct memory_count tally_unresolved(const struct tally *tally)
{
	struct memory_count sum = { 0 };
	struct kernel_tally *row, *next;

	HASH_ITER (hh, tally->kernels, row, next) {
		sum.count += !row->resolved;
		sum.bytes += row->resolved ? 0 : row->launches + row->captured;
	}
	return sum;
}
