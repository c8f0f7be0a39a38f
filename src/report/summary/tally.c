// SPDX-License-Identifier: MIT
#include "report/summary/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "base/number.h"
#include "base/order.h"
#include "base/xalloc.h"

ORDER_BY(by_name, struct function_tally, BY_TEXT(function->name));

ORDER_POINTERS_BY(compare_calls, struct function_tally, DOWN(calls), OR_ELSE(by_name));

ORDER_POINTERS_BY(compare_total_time, struct function_tally, DOWN(durations.sum), OR_ELSE(by_name));

ORDER_POINTERS_BY(compare_average_time, struct function_tally,
                  ORDER_OF(spread_average(&b->durations), spread_average(&a->durations)),
                  OR_ELSE(by_name));

ORDER_POINTERS_BY(compare_launches, struct kernel_tally, DOWN(launches), DOWN(captured),
                  BY_TEXT(name));

struct function_tally **tally_functions(const struct tally *tally, enum function_order by,
                                        size_t *n)
{
	static int (*const compare[])(const void *, const void *) = {
		[BY_CALLS] = compare_calls,
		[BY_TOTAL_TIME] = compare_total_time,
		[BY_AVERAGE_TIME] = compare_average_time,
	};
	struct function_tally **rows = xcalloc(HASH_COUNT(tally->functions), sizeof(*rows));
	struct function_tally *row, *next;

	*n = 0;
	HASH_ITER (hh, tally->functions, row, next) {
		if (by == BY_CALLS || row->durations.count)
			rows[(*n)++] = row;
	}
	SORT(rows, *n, compare[by]);
	return rows;
}

const struct kernel_tally **tally_kernels(const struct tally *tally, size_t *n)
{
	const struct kernel_tally **rows = xcalloc(HASH_COUNT(tally->kernels), sizeof(*rows));
	struct kernel_tally *row, *next;

	*n = 0;
	HASH_ITER (hh, tally->kernels, row, next)
		rows[(*n)++] = row;
	SORT(rows, *n, compare_launches);
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

/* ---- estimates ----------------------------------------------------------------------------- */

static bool comes_in_pairs(const struct function *function)
{
	static const char *const words[] = { "Create", "Destroy", "egister" };
	static const enum api_op ops[] = {
		OP_ALLOC,       OP_FREE,          OP_STREAM_CREATE,  OP_STREAM_DESTROY,
		OP_MAP,         OP_UNMAP,         OP_RETAIN,         OP_CAPTURE_BEGIN,
		OP_CAPTURE_END, OP_MODULE_UNLOAD, OP_CONTEXT_DESTROY
	};
	enum api_op op = function->api ? api_op(function->api) : OP_NONE;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		if (op == ops[i])
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(function->name, words[i]))
			return true;
	}
	return false;
}

bool tally_is_scalable(const struct function_tally *function)
{
	return recurrence_is(&function->seen) && !comes_in_pairs(function->function);
}

static void multiply(uint64_t *count, bool scalable, double scale)
{
	if (scalable)
		*count = number_rounded((double)*count * scale);
}

static void multiply_transfers(struct transfer_count *count, bool scalable, double scale)
{
	multiply(&count->count, scalable, scale);
	multiply(&count->bytes, scalable, scale);
	multiply(&count->unsized, scalable, scale);
}

/* Those that were made by one function all can be multiplied or none. */
static void estimate_calls(struct tally *told, const struct tally *tally, double scale)
{
	const struct function_tally *function, *next;
	const struct error_row *errors;
	size_t n;

	told->calls = told->nested = told->failed = 0;
	HASH_ITER (hh, tally->functions, function, next) {
		uint64_t calls = function->calls - function->nested, nested = function->nested;

		multiply(&calls, tally_is_scalable(function), scale);
		multiply(&nested, tally_is_scalable(function), scale);
		told->calls += calls;
		told->nested += nested;
	}
	errors = errors_rows(tally->errors, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t count = errors[i].count;

		multiply(&count, tally_is_error_scalable(tally, &errors[i]), scale);
		told->failed += count;
	}
	if (tally->calls)
		told->entry_only = number_rounded((double)tally->entry_only * (double)told->calls /
		                                  (double)tally->calls);
}

bool tally_is_error_scalable(const struct tally *tally, const struct error_row *error)
{
	const struct function_tally *function =
		MAP_FIND_TEXT(tally->functions, error->function->name);

	return function && recurrence_is(&error->seen) && tally_is_scalable(function);
}

struct tally tally_estimated(const struct tally *tally, double scale)
{
	struct tally told = *tally;
	bool copies = recurrence_is(&tally->work[OP_COPY]);
	bool syncs = recurrence_is(&tally->work[OP_SYNC]);

	if (scale <= 1)
		return told;
	estimate_calls(&told, tally, scale);
	multiply(&told.launches, recurrence_is(&tally->work[OP_LAUNCH]), scale);
	multiply(&told.graph_launches, recurrence_is(&tally->work[OP_GRAPH_LAUNCH]), scale);
	multiply(&told.host_launches, recurrence_is(&tally->work[OP_HOST_LAUNCH]), scale);
	for (size_t i = 0; i < DIRECTION_COUNT; i++)
		multiply_transfers(&told.copies[i], copies, scale);
	multiply_transfers(&told.all_copies, copies, scale);
	multiply_transfers(&told.sets, recurrence_is(&tally->work[OP_SET]), scale);
	multiply(&told.syncs, syncs, scale);
	multiply(&told.sync_ns, syncs, scale);
	return told;
}
