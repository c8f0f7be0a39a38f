// SPDX-License-Identifier: MIT
/* Findings, unions and windows of events that make no sense: a trace can be damaged. */
#include "finding_events.h"

#include "analysis/gpu_ids.h"
#include "analysis/gpu_windows.h"
#include "analysis/gpu_work.h"
#include "base/array.h"
#include "report/expert/long_gaps.h"

static uint64_t seed;

static uint64_t any(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* Mostly of the run, sometimes of any time at all: sums of it stay below 2^62. */
static uint64_t any_time(void)
{
	return any(50) ? US(any(100000)) : any(4) ? any(1ull << 40) : 0;
}

static struct event any_call(struct call *call)
{
	static const char *const functions[] = {
		"cudaMemcpy",      "cudaMemcpyAsync",       "cudaMemset",        "cuLaunchKernel",
		"cudaGraphLaunch", "cudaDeviceSynchronize", "cudaEventQuery",    "cudaMalloc",
		"cudaFree",        "cudaStreamCreate",      "cudaStreamDestroy", "cudaSetDevice",
		"cuSomethingNew"
	};

	*call = call_at(functions[any(ARRAY_SIZE(functions))], 0, 0);
	call->begin_ns = any_time();
	call->end_ns = any_time();
	call->flags = any(8) ? 0 : (uint32_t)any(32);
	call->correlation = any(2000);
	call->args.direction = (enum api_direction)any(DIRECTION_COUNT);
	call->args.bytes = any(1 << 20);
	call->args.stream = any(4);
	call->kernel = any(2) ? the_kernel() : NULL;
	return call_event(the_process(), (uint32_t)any(5), call);
}

static struct event any_activity(struct activity *activity)
{
	*activity = (struct activity){
		.kind = (enum activity_kind)any(ACTIVITY_COUNT),
		.begin_ns = any_time(),
		.end_ns = any_time(),
		.correlation = any(2000),
		.device = any(100) ? (uint32_t)any(3) : (uint32_t)any(UINT32_MAX),
		.stream = (uint32_t)any(4),
		.bytes = any(1 << 20),
		.direction = (enum api_direction)any(DIRECTION_COUNT),
		.source = (enum activity_memory)any(8),
		.destination = (enum activity_memory)any(8),
	};
	activity->kernel = activity->kind == ACTIVITY_KERNEL && any(8) ? the_kernel() : NULL;
	return activity_event(the_process(), activity);
}

static struct event any_range(struct range *range)
{
	*range = (struct range){ .kind = (enum range_kind)any(RANGE_COUNT),
		                 .begin_ns = any_time(),
		                 .end_ns = any_time(),
		                 .name = "range" };
	return (struct event){ .type = EVENT_RANGE, .process = the_process(), .range = range };
}

static void assert_sound(const struct finding *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_non_null(rows[i].evidence);
		assert_non_null(rows[i].estimate);
		assert_non_null(rows[i].suggestion);
		assert_true(rows[i].lost_ns > 0 || !rows[i].lost_known);
		assert_true(rows[i].lost_ns < 1ull << 62);
	}
}

static void test_findings_come_through_any_events(void **state)
{
	const struct finding *rows;
	struct activity activity;
	struct range range;
	struct event event;
	struct call call;
	size_t n;

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t what = any(20);

		event = what < 10   ? any_call(&call)
		        : what < 19 ? any_activity(&activity)
		                    : any_range(&range);
		feed(findings, &event);
	}
	rows = findings_rows(findings, &info, &n);
	assert_sound(rows, n);
	rows = findings_rows(findings, &info, &n); /* and again */
	assert_sound(rows, n);
}

static void assert_unions(const struct gpu_work_row *row)
{
	uint64_t all = row->union_ns[WORK_ALL];

	for (unsigned classes = 1; classes < WORK_ALL; classes++)
		assert_true(row->union_ns[classes] <= all + BUSY_PIECES_OF_GPU);
	assert_true(gpu_work_idle_ns(row) <= row->end_ns - row->begin_ns);
}

static void test_unions_windows_and_gaps_come_through_any_activities(void **state)
{
	struct consumer *windows = gpu_windows_new();
	struct consumer *gaps = long_gaps_new(1000, 10);
	struct gpu_works *works = gpu_works_new();
	const struct gpu_windows_row *used;
	const struct gpu_work_row *rows;
	struct activity activity;
	struct event event;
	size_t n;

	for (unsigned i = 0; i < 100000; i++) {
		event = any_activity(&activity);
		activity.end_ns = US(i); /* in order, at least */
		activity.begin_ns = US(i) - any(100000);
		gpu_works_event(works, &event);
		feed(windows, &event);
		feed(gaps, &event);
	}
	rows = gpu_works_rows(works, &n);
	assert_int_equal(n, GPU_IDS_MAX);
	assert_true(gpu_works_left_out(works) > 0);
	for (size_t i = 0; i < n; i++)
		assert_unions(&rows[i]);
	used = gpu_windows_rows(windows, &n);
	for (size_t i = 0; i < n * GPU_WINDOWS; i++)
		assert_in_range((uint64_t)(100 * used[i / GPU_WINDOWS].used[i % GPU_WINDOWS]), 0,
		                100);
	long_gaps_rows(gaps, &n);
	assert_in_range(n, 0, 10);
	gpu_works_free(works);
	consumer_free(windows);
	consumer_free(gaps);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_findings_come_through_any_events, set_up,
		                                tear_down),
		cmocka_unit_test(test_unions_windows_and_gaps_come_through_any_activities),
	};

	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 88172645463325252;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
