// SPDX-License-Identifier: MIT
/* Recordings that nobody made by recording: nothing breaks, and parts add up all the same. */
#include "account_scene.h"

#include "account/answer.h"
#include "account/gpu_time.h"
#include "account/pauses.h"

static uint64_t seed;

static uint32_t pick(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 33) % n;
}

/* A time near others, so that things overlap in all ways; at times one that is none. */
static uint64_t any_time(void)
{
	switch (pick(200)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return UINT64_MAX - 1 - pick(1000);
	case 3:
		return pick(1000);
	default:
		return US(pick(20000));
	}
}

static const struct process *any_process(void)
{
	static const struct process *processes[4];
	uint32_t n = pick(4);

	if (!processes[n])
		processes[n] = new_process(600 + n, "hostile");
	return processes[n];
}

static uint64_t any_correlation(void)
{
	return pick(10) ? pick(50) : pick(2) ? UINT64_MAX : 0;
}

static void any_call(void)
{
	static const char *const functions[] = { "cuLaunchKernel", "cuMemAlloc_v2",
		                                 "cuMemcpyHtoD_v2", "cuCtxGetDevice",
		                                 "cuStreamSynchronize" };
	struct call call = call_at(functions[pick(5)], 0, 0);

	call.begin_ns = any_time();
	call.end_ns = pick(3) ? call.begin_ns + pick(1000000) : any_time();
	call.correlation = any_correlation();
	call.stack = at_line(pick(12));
	if (!pick(20))
		call.flags |= CALL_UNFINISHED;
	see(call_event(any_process(), 1 + pick(6), &call));
}

static void any_work(void)
{
	static struct kernel *kernels[2];
	struct activity activity = { .kind = pick(2) ? ACTIVITY_KERNEL : ACTIVITY_COPY };

	if (!kernels[0]) {
		kernels[0] = new_kernel("gemm", true);
		kernels[1] = new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", true);
	}
	if (activity.kind == ACTIVITY_KERNEL && pick(4))
		activity.kernel = kernels[pick(2)];
	activity.device = pick(2);
	activity.stream = pick(3);
	activity.begin_ns = any_time();
	activity.end_ns = pick(3) ? activity.begin_ns + pick(1000000) : any_time();
	activity.correlation = any_correlation();
	see(activity_event(any_process(), &activity));
}

static void any_sample(void)
{
	struct sample sample = { .kind = pick(2) ? SAMPLE_CPU : SAMPLE_OFF_CPU };
	struct event event;

	sample.weight_ns = pick(10) ? pick(3000000) : any_time();
	sample.runnable_ns = pick(3) ? pick(1000) : any_time();
	sample.stack = at_line(pick(12));
	sample.blocked = pick(BLOCKED_COUNT);
	sample.wait = pick(WAIT_COUNT);
	sample.waker_tid = pick(8);
	sample.rival_pid = pick(2) ? 600 + pick(4) : 0;
	event = sample_event(any_process(), 1 + pick(6), 0, &sample);
	event.time_ns = any_time();
	see(event);
}

static void any_range(void)
{
	static const char *const names[] = { "step 1", "step 2", "", "ProfilerStep#7" };
	struct range range = { .kind = pick(2) ? RANGE_PUSHPOP : RANGE_NOT_MEASURED,
		               .begin_ns = any_time(),
		               .end_ns = any_time(),
		               .depth = pick(3),
		               .name = names[pick(4)] };

	see((struct event){ .type = EVENT_RANGE,
	                    .time_ns = range.end_ns,
	                    .process = any_process(),
	                    .tid = pick(7),
	                    .range = &range });
}

/* What GPUs ran at once, and their pauses, are together what their accounts are of. */
static void check_pauses(void)
{
	struct account_pauses pauses;
	struct gpu_time *gpus = gpu_times_new(&facts);

	account_pauses_make(&pauses, &facts, &accounts, 1000, 10);
	for (size_t i = 0; i < pauses.n; i++)
		assert_adds_up(&pauses.longest[i].of);
	for (size_t i = 0; i < accounts.n; i++) {
		const struct account *account = &accounts.of[i];
		uint64_t all = pauses.sums[i].ns + pauses.sums[i].short_ns;
		uint64_t ns[1 << FACT_CLASSES] = { 0 }, own;

		if (account->gpu == FACTS_NONE)
			continue;
		gpu_time_by_classes(&facts, &gpus[account->gpu], ns);
		for (unsigned classes = 0; classes < 1 << FACT_CLASSES; classes++)
			all += ns[classes];
		own = account->end_ns - account->begin_ns - account->not_measured_ns;
		if (facts.n_unwatched > facts.n_unmeasured) /* GPU times go on */
			assert_true(all >= own);
		else
			assert_int_equal(all, own);
	}
	account_pauses_clear(&pauses);
	gpu_times_free(gpus, &facts);
}

static void make_all(void)
{
	struct answer answer;

	facts_end(&facts, &info);
	accounts_make(&accounts, &facts);
	assert_all_add_up();
	check_pauses();
	answer_make(&answer, &facts, &accounts);
	for (size_t i = 0; i < accounts.n; i++) {
		struct answer_line lines[8];
		size_t n = answer_lines(&answer, &accounts.of[i], lines, 8);
		double ns = 0;

		assert_true(n <= 8);
		for (size_t k = 0; k < n; k++)
			ns += lines[k].ns;
		assert_true(ns <= accounts.of[i].ns * (1 + 1e-9) + 1);
		assert_true(ns >= accounts.of[i].ns * 0.999 - 1);
	}
	for (size_t i = 0; i < answer.n_changes; i++) {
		assert_true(answer.changes[i].gain_ns >= 0);
		assert_true(answer.changes[i].gain_ns <= answer.changes[i].account->ns);
	}
	answer_clear(&answer);
}

static void test_events_of_any_kind(void **state)
{
	size_t told = 0;

	for (uint64_t round = 1; round <= 300; round++) {
		unsigned n = 1 + (unsigned)round;

		seed = round * 88172645463325252ull;
		for (unsigned i = 0; i < n; i++) {
			static void (*const any[])(void) = { any_call,  any_call,   any_work,
				                             any_work,  any_sample, any_sample,
				                             any_sample };

			any[pick(7)]();
			if (!pick(30))
				any_range();
			if (!pick(100))
				exited(any_process(), pick(20000));
		}
		if (!pick(10))
			info.end_ns = any_time();
		make_all();
		told += accounts.n;
		close_scene(state);
		open_scene(state);
	}
	assert_true(told > 300);
}

static void test_a_hundred_thousand_threads(void **state)
{
	for (uint32_t i = 0; i < 100000; i++) {
		launch_in(the_process(), 1 + i, i, 30);
		waited_in(the_process(), 1 + i, WAIT_LOCK, i, i + 50000, 1 + (i + 1) % 100000, 27);
	}
	ran(1, 10, 20);
	ran(100000, 100010, 100020);
	make_all();
	assert_int_equal(accounts.n, 1);
}

static void test_calls_that_all_have_one_number(void **state)
{
	for (int i = 0; i < 1000; i++) {
		correlation = 6;
		launch(10 * i, 30);
		ran(7, 10 * i + 6, 10 * i + 8);
	}
	make_all();
	assert_int_equal(accounts.n, 1);
	assert_us(&accounts.of[0], ACCOUNT_KERNELS, ANY, 2000);
}

static void test_calls_without_numbers(void **state)
{
	struct call call = launch_at("cuLaunchKernel", 10, NULL);

	see(call_event(the_process(), MAIN, &call));
	ran(0, 20, 30);
	ran(0, 50, 60);
	make_all();
	assert_us(&accounts.of[0], ACCOUNT_UNKNOWN, ANY, 20 + 1500000 - 60);
	assert_int_equal(accounts.of[0].thread, FACTS_NONE);
}

static void test_works_of_many_gpus_in_any_order(void **state)
{
	seed = 4711;
	for (int i = 0; i < 20000; i++) {
		struct activity activity = { .kind = ACTIVITY_KERNEL, .device = pick(300) };

		activity.begin_ns = US(pick(1000000));
		activity.end_ns = activity.begin_ns + pick(100000);
		see(activity_event(any_process(), &activity));
	}
	make_all();
	assert_int_equal(accounts.n, ACCOUNTS_MAX);
	for (size_t i = 1; i < facts.n_works; i++) {
		const struct fact_work *work = &facts.works[i];

		assert_true(work[-1].gpu <= work->gpu);
		assert_true(work[-1].gpu < work->gpu || work[-1].begin_ns <= work->begin_ns);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_events_of_any_kind),
		TEST(test_a_hundred_thousand_threads),
		TEST(test_calls_that_all_have_one_number),
		TEST(test_calls_without_numbers),
		TEST(test_works_of_many_gpus_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
