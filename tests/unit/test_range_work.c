// SPDX-License-Identifier: MIT
/* Which work on GPUs is that of which range, held against counting it all. */
#include "support.h"

#include <time.h>

#include "base/array.h"
#include "report/nvtx/range_work.h"

#define RANGES  2000
#define CALLS   4000
#define THREADS 3

struct one_range {
	uint32_t tid, depth;
	const char *domain;
	double begin_us, end_us;
	struct range_work_done done;
	uint64_t kernels;
	unsigned told;
};

struct one_call {
	uint32_t tid;
	double at_us, begin_us, end_us; /* of the call, of its work */
};

static struct one_range ranges[RANGES];
static struct one_call calls[CALLS];
static size_t n_ranges, n_calls;
static struct range_work *work;

static uint64_t seed;

static uint64_t below(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % limit;
}

/* ---- what is told -------------------------------------------------------------------------- */

static void *row_of(void *data, const struct event *event)
{
	for (size_t i = 0; i < n_ranges; i++) {
		struct one_range *range = &ranges[i];
		bool domain = !event->range->domain == !range->domain;

		if (US(range->begin_us) == event->range->begin_ns && range->tid == event->tid &&
		    range->depth == event->range->depth && domain)
			return range;
	}
	fail_msg("a range that was not");
	return NULL;
}

static void count_kernel(void *data, void *row, const struct kernel *kernel, uint64_t ns)
{
	((struct one_range *)row)->kernels++;
}

static void take_done(void *data, void *row, const struct range_work_done *done)
{
	struct one_range *range = row;

	range->done = *done;
	range->told++;
}

static int set_up(void **state)
{
	static const struct range_work_ops ops = { row_of, count_kernel, take_done };

	memset(ranges, 0, sizeof(ranges));
	n_ranges = n_calls = 0;
	work = range_work_new(&ops, NULL, NULL);
	return 0;
}

static int tear_down(void **state)
{
	range_work_free(work);
	return 0;
}

/* ---- what there was ------------------------------------------------------------------------ */

static void see_call(size_t i)
{
	struct call call = launch_at("cuLaunchKernel", calls[i].at_us, NULL);
	struct event event;

	call.correlation = i + 1;
	event = call_event(the_process(), calls[i].tid, &call);
	range_work_event(work, &event);
}

static void see_work(size_t i)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .correlation = i + 1,
		                     .begin_ns = US(calls[i].begin_us),
		                     .end_ns = US(calls[i].end_us) };
	struct event event = activity_event(the_process(), &activity);

	range_work_event(work, &event);
}

static void see_range(size_t i)
{
	struct range range = { .kind = RANGE_PUSHPOP,
		               .begin_ns = US(ranges[i].begin_us),
		               .end_ns = US(ranges[i].end_us),
		               .name = "r",
		               .domain = ranges[i].domain,
		               .depth = ranges[i].depth };

	range_work_event(work, &(struct event){ .type = EVENT_RANGE,
	                                        .time_ns = range.end_ns,
	                                        .process = the_process(),
	                                        .tid = ranges[i].tid,
	                                        .range = &range });
}

/* Ranges in ranges, as a thread makes them; all times are different. */
static void make_ranges(uint32_t tid, const char *domain, uint32_t depth, double begin_us,
                        double end_us)
{
	double at = begin_us + 1;

	while (at + 20 < end_us && n_ranges < RANGES) {
		double length = 10 + (double)below((uint64_t)(end_us - at) - 10);

		ranges[n_ranges++] = (struct one_range){ .tid = tid,
			                                 .depth = depth,
			                                 .domain = domain,
			                                 .begin_us = at,
			                                 .end_us = at + length };
		if (below(3))
			make_ranges(tid, domain, depth + 1, at, at + length);
		at += length + 1 + (double)below(50);
	}
}

static void make_calls(void)
{
	double at = 0;

	for (; n_calls < CALLS; n_calls++) {
		struct one_call *call = &calls[n_calls];

		at += 0.25 + (double)below(4);
		call->tid = 1 + (uint32_t)below(THREADS);
		call->at_us = at + 0.5; /* no range begins or ends there */
		call->begin_us = call->at_us + (double)below(below(4) ? 10 : 2000);
		call->end_us = call->begin_us + 1 + (double)below(below(9) ? 5 : 900);
	}
}

static double when(size_t i)
{
	return i < n_ranges ? ranges[i].end_us : calls[i - n_ranges].end_us;
}

static int by_end(const void *left, const void *right)
{
	double a = when(*(const size_t *)left), b = when(*(const size_t *)right);

	return a < b ? -1 : a > b;
}

/* Ranges and work in the order of their ends, each after the calls of `late_us` later. */
static void see_all(double late_us)
{
	size_t n = n_ranges + n_calls, *order = calloc(n, sizeof(*order)), call = 0;

	for (size_t i = 0; i < n; i++)
		order[i] = i;
	qsort(order, n, sizeof(*order), by_end);
	for (size_t i = 0; i < n; i++) {
		while (call < n_calls && calls[call].at_us < when(order[i]) + late_us)
			see_call(call++);
		if (order[i] < n_ranges)
			see_range(order[i]);
		else
			see_work(order[i] - n_ranges);
	}
	free(order);
	range_work_finish(work);
}

static void assert_counted(const struct one_range *range)
{
	struct range_work_done expected = { .depth = range->depth };

	for (size_t i = 0; i < n_calls; i++) {
		const struct one_call *call = &calls[i];

		if (call->tid != range->tid || call->at_us < range->begin_us ||
		    call->at_us > range->end_us)
			continue;
		if (!expected.ops || US(call->begin_us) < expected.begin_ns)
			expected.begin_ns = US(call->begin_us);
		if (!expected.ops || US(call->end_us) > expected.end_ns)
			expected.end_ns = US(call->end_us);
		expected.ops++;
	}
	for (size_t i = 0; i < n_ranges; i++)
		expected.children +=
			ranges[i].tid == range->tid && !ranges[i].domain == !range->domain &&
			ranges[i].depth == range->depth + 1 &&
			ranges[i].begin_us > range->begin_us && ranges[i].end_us < range->end_us;
	assert_int_equal(range->told, 1);
	assert_int_equal(range->done.ops, expected.ops);
	assert_int_equal(range->kernels, expected.ops);
	assert_int_equal(range->done.begin_ns, expected.begin_ns);
	assert_int_equal(range->done.end_ns, expected.end_ns);
	assert_int_equal(range->done.children, expected.children);
	assert_int_equal(range->done.depth, expected.depth);
	assert_int_equal(range->done.range_ns, US(range->end_us) - US(range->begin_us));
}

static void test_all_work_is_found_whatever_comes_first(void **state)
{
	static const double late_us[] = { 0, 100, 100000 };

	for (unsigned i = 0; i < 12; i++) {
		size_t some = 0;

		seed = (i + 1) * 0x9e3779b97f4a7c15;
		make_calls();
		for (uint32_t tid = 1; tid <= THREADS; tid++) {
			make_ranges(tid, NULL, 0, 0, calls[CALLS - 1].at_us);
			make_ranges(tid, "NCCL", 0, 0.125, 1500);
		}
		see_all(late_us[i % 3]);
		for (size_t j = 0; j < n_ranges; j++) {
			assert_counted(&ranges[j]);
			some += ranges[j].done.ops > 0;
		}
		assert_true(some > 10);
		assert_int_equal(range_work_cut(work), 0);
		tear_down(NULL);
		set_up(NULL);
	}
}

/* What was asked for as it begins and as it ends, before it is told and after. */
static void test_the_ends_of_a_range_are_its_own(void **state)
{
	static const double at_us[] = { 10, 100, 9.999, 100.001 };

	for (int late = 0; late < 2; late++) {
		n_ranges = 1;
		ranges[0] = (struct one_range){ .tid = 1, .begin_us = 10, .end_us = 100 };
		for (n_calls = 0; n_calls < ARRAY_SIZE(at_us); n_calls++) {
			calls[n_calls] = (struct one_call){ 1, at_us[n_calls], 200, 201 };
			see_call(n_calls);
		}
		if (late)
			see_range(0);
		for (size_t i = 0; i < n_calls; i++)
			see_work(i);
		if (!late)
			see_range(0);
		range_work_finish(work);
		assert_int_equal(ranges[0].done.ops, 2);
		tear_down(NULL);
		set_up(NULL);
	}
}

/* A range that was open during more work than is kept has the last of it, and that is said. */
static void test_what_had_to_be_let_go_is_said(void **state)
{
	n_ranges = 1;
	ranges[0] = (struct one_range){ .tid = 1, .begin_us = 0, .end_us = 1e7 };
	for (size_t i = 0; i < RANGE_WORK_PIECES + 1000; i++) {
		calls[0] = (struct one_call){ 1, 10 + (double)i, 20 + (double)i, 21 + (double)i };
		n_calls = 1;
		see_call(0);
		see_work(0);
	}
	see_range(0);
	range_work_finish(work);
	assert_int_equal(range_work_cut(work), 1);
	assert_in_range(ranges[0].done.ops, RANGE_WORK_PIECES / 2, RANGE_WORK_PIECES);
	assert_int_equal(ranges[0].done.end_ns, US(21.0 + RANGE_WORK_PIECES + 999));
}

/* Work that comes when more ranges than are kept have ended after its own. */
static void test_work_that_comes_after_its_range_was_let_go_is_said(void **state)
{
	const size_t more = RANGE_WORK_RANGES + 10;

	n_calls = 2;
	calls[0] = (struct one_call){ 1, 10, 20, 30 };
	calls[1] = (struct one_call){ 1, 100.0 * (double)more + 10, 1e9, 2e9 };
	see_call(0);
	see_call(1);
	n_ranges = 1;
	for (size_t i = 0; i <= more; i++) {
		double begin_us = 100.0 * (double)i;

		ranges[0] = (struct one_range){ .tid = 1,
			                        .begin_us = begin_us,
			                        .end_us = begin_us + 50 };
		see_range(0);
	}
	see_work(1);
	assert_int_equal(range_work_late(work), 0);
	see_work(0);
	assert_int_equal(range_work_late(work), 1);
	range_work_finish(work);
	assert_int_equal(ranges[0].done.ops, 1);
	assert_int_equal(range_work_cut(work), 0);
}

/* CPU time of so many pieces, each by itself, of that many threads in turn. */
static clock_t time_of(size_t pieces, size_t threads, bool backwards)
{
	clock_t begin = clock();

	for (size_t i = 0; i < pieces; i++) {
		double at = backwards ? 1e7 - (double)i : (double)i;

		calls[0] = (struct one_call){ 1 + (uint32_t)(i % threads), at, at + 10, at + 11 };
		n_calls = 1;
		see_call(0);
		see_work(0);
	}
	return clock() - begin;
}

/* What a file says decides the order of its work and its threads, not what they cost. */
static void test_work_costs_the_same_in_any_order_of_any_threads(void **state)
{
	const size_t pieces = RANGE_WORK_PIECES + 2000;
	clock_t limit = 10 * time_of(pieces, 1, false) + CLOCKS_PER_SEC;

	tear_down(NULL);
	set_up(NULL);
	assert_in_range(time_of(pieces, pieces, false), 0, limit);
	tear_down(NULL);
	set_up(NULL);
	assert_in_range(time_of(pieces, 1, true), 0, limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_work_is_found_whatever_comes_first, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_the_ends_of_a_range_are_its_own, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_what_had_to_be_let_go_is_said, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(
			test_work_that_comes_after_its_range_was_let_go_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_work_costs_the_same_in_any_order_of_any_threads, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
