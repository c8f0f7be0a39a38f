// SPDX-License-Identifier: MIT
/*
 * The simulated libcupti: its buffers, how it is left, and what it does on demand. Tests whose name
 * begins with on_demand_ need the setting that their name tells and run alone: test_cupti_end NAME.
 * So do those that begin with fatal_, which the process does not survive.
 */
#include "cupti_scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Looks every millisecond, for two seconds. */
#define SOON(condition)                                                                            \
	do {                                                                                       \
		for (int soon = 0; soon < 2000 && !(condition); soon++)                            \
			pause_ms(1);                                                               \
		assert_true(condition);                                                            \
	} while (0)

/* Keeps a stream busy until it is opened. */
static atomic_bool gate_is_open;

static void wait_at_the_gate(void *data)
{
	while (!atomic_load(&gate_is_open))
		pause_ms(1);
}

static CUstream blocked_stream(void)
{
	CUstream stream = new_stream();
	atomic_store(&gate_is_open, false);
	OK(cuLaunchHostFunc, stream, wait_at_the_gate, NULL);
	return stream;
}

static void open_gate(CUstream stream)
{
	atomic_store(&gate_is_open, true);
	OK(cuStreamSynchronize, stream);
	OK(cuStreamDestroy_v2, stream);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void test_a_flush_keeps_buffers_with_work_that_still_runs(void **state)
{
	CUstream stream = blocked_stream();
	CUstream other = new_stream();
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	launch(other);
	OK(cuStreamSynchronize, other);
	launch(stream);
	SUCCEEDS(cuptiActivityFlushAll(0));
	assert_int_equal(seen.buffers, 0);
	open_gate(stream);
	SUCCEEDS(cuptiActivityFlushAll(0));
	assert_int_equal(seen.n, 2);
	assert_true(nth(KIND_CONCURRENT_KERNEL, 1)->kernel.end > 0);
	OK(cuStreamDestroy_v2, other);
}

static void test_a_forced_flush_brings_it_without_times(void **state)
{
	CUstream stream = blocked_stream();
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	launch(stream);
	SUCCEEDS(cuptiActivityFlushAll(FLAG_FLUSH_FORCED));
	assert_int_equal(seen.n, 1);
	assert_int_equal(nth(KIND_CONCURRENT_KERNEL, 0)->kernel.start, 0);
	assert_int_equal(nth(KIND_CONCURRENT_KERNEL, 0)->kernel.end, 0);
	open_gate(stream);
	SUCCEEDS(cuptiActivityFlushAll(FLAG_FLUSH_FORCED));
	assert_int_equal(seen.n, 1);
}

static void test_full_buffers_come_by_themselves_on_another_thread(void **state)
{
	manner.buffer_bytes = 1000; /* four kernels, or six */
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	complete(NULL, 0, NULL, 0, 0); /* this thread's bit */
	uint64_t own = seen.threads;
	for (int i = 0; i < 30; i++)
		launch(NULL);
	OK(cuCtxSynchronize);
	SOON(records_now() >= 24);
	SUCCEEDS(cuptiActivityFlushAll(0));
	assert_true(seen.threads & ~own);
	assert_int_equal(seen.n, 30);
	assert_int_equal(seen.requested, seen.buffers - 1);
}

static void test_with_a_period_they_come_when_it_is_over(void **state)
{
	if (!cuptiActivityFlushPeriod)
		return;
	manner.max_records = 1;
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(cuptiActivityFlushPeriod(200));
	launch(NULL);
	launch(NULL);
	OK(cuCtxSynchronize);
	pause_ms(20);
	assert_int_equal(records_now(), 0);
	SOON(records_now() == 1);
	/* The second one's buffer is not known to be full until there is a third. */
	SUCCEEDS(cuptiActivityFlushAll(0));
	assert_int_equal(seen.n, 2);
}

static void test_a_buffer_holds_no_more_records_than_it_may(void **state)
{
	manner.max_records = 3;
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	for (int i = 0; i < 9; i++)
		launch(NULL);
	wait_for_all();
	assert_int_equal(seen.n, 9);
	assert_int_equal(seen.buffers, 3);
}

static void test_records_without_a_buffer_are_dropped_and_counted(void **state)
{
	size_t dropped;
	if (version < 130000) /* these die of it, as CUDA's do before 12.9 */
		skip();
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	manner.buffer_bytes = 0;
	launch(NULL);
	launch(NULL);
	manner.buffer_bytes = 65536;
	launch(NULL);
	wait_for_all();
	assert_int_equal(seen.n, 1);
	SUCCEEDS(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
	assert_int_equal(dropped, 2);
	SUCCEEDS(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
	assert_int_equal(dropped, 0);
}

static void *launch_once(void *ctx)
{
	OK(cuCtxSetCurrent, ctx);
	launch(NULL);
	return NULL;
}

/* As the attribute's default is since CUDA 13. */
static void test_each_thread_has_its_buffer_where_that_is_so(void **state)
{
	CUcontext ctx;
	pthread_t thread[3];
	OK(cuCtxGetCurrent, &ctx);
	for (int run = 0; run < (version >= 19 ? 2 : 1); run++) {
		uint8_t each = run == 1;
		size_t bytes = 1;
		if (version >= 19)
			SUCCEEDS(cuptiActivitySetAttribute(9, &bytes, &each));
		scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
		for (int i = 0; i < 3; i++) {
			pthread_create(&thread[i], NULL, launch_once, ctx);
			pthread_join(thread[i], NULL);
		}
		wait_for_all();
		assert_int_equal(seen.n, 3);
		assert_int_equal(seen.requested, each ? 3 : 1);
		scene_clean(NULL);
	}
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void test_it_can_be_left_at_a_calls_exit(void **state)
{
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_LAUNCH));
	launch(NULL);
	OK(cuCtxSynchronize);
	manner.finalize = true;
	launch(NULL);
	size_t n = seen.n, told = seen.n_told;
	assert_int_equal(n, 2);
	assert_int_equal(told, 4);
	for (int i = 0; i < 10; i++)
		launch(NULL);
	OK(cuCtxSynchronize);
	pause_ms(20);
	assert_int_equal(seen.n, n);
	assert_int_equal(seen.n_told, told);
}

static void test_the_driver_is_as_before_after_it(void **state)
{
	const struct sim_profiler *profiler = dlsym(driver_library, SIM_PROFILER_NAME);
	assert_null(profiler->hooks);
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	assert_non_null(profiler->hooks);
	scene_end();
	assert_null(profiler->hooks);
}

static void test_it_can_be_started_again(void **state)
{
	for (int i = 1; i <= 3; i++) {
		handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
		SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_LAUNCH));
		launch(NULL);
		wait_for_all();
		assert_int_equal(seen.n, i);
		manner.finalize = true;
		launch(NULL);
		seen.n = (size_t)i; /* the last launch's record came or not */
	}
}

static void test_work_of_a_session_that_ended_is_not_told_in_the_next(void **state)
{
	CUstream stream = blocked_stream();
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	launch(stream);
	scene_end();
	seen.n = 0; /* the forced flush brought it, without times */
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	open_gate(stream);
	launch(NULL);
	wait_for_all();
	assert_int_equal(seen.n, 1);
	assert_int_equal(nth(KIND_CONCURRENT_KERNEL, 0)->kernel.stream, 7);
}

static void test_what_was_registered_is_forgotten(void **state)
{
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	scene_clean(NULL);
	SUCCEEDS(cuptiActivityEnable(KIND_MEMSET));
	launch(NULL);
	REFUSED(RESULT_INVALID_OPERATION, cuptiActivityFlushAll(0));
	SUCCEEDS(cuptiFinalize());
	assert_int_equal(seen.n, 0);
}

/* How a child that does this ends: 0, or the signal. */
static int fate_of(void (*function)(void))
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		freopen("/dev/null", "w", stderr);
		function();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static handle old_subscriber;

static void flush(void)
{
	cuptiActivityFlushAll(0);
}

static void unsubscribe(void)
{
	cuptiUnsubscribe(old_subscriber);
}

static void enable(void)
{
	cuptiEnableCallback(1, old_subscriber, 1, SITE_LAUNCH);
}

static void disable(void)
{
	cuptiActivityDisable(KIND_CONCURRENT_KERNEL);
}

static void finalize(void)
{
	cuptiFinalize();
}

static void nothing(void)
{
}

static void test_use_after_the_end_aborts(void **state)
{
	old_subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	scene_clean(NULL);
	assert_int_equal(fate_of(nothing), 0);
	assert_int_equal(fate_of(flush), SIGABRT);
	assert_int_equal(fate_of(unsubscribe), SIGABRT);
	assert_int_equal(fate_of(enable), SIGABRT);
	assert_int_equal(fate_of(disable), SIGABRT);
	assert_int_equal(fate_of(finalize), SIGABRT);
}

static void launch_in_child(void)
{
	int status = CU(cuLaunchKernel)(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	_exit(seen.n_told == 0 && status == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
}

static void test_a_forked_child_is_told_nothing(void **state)
{
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(cuptiEnableDomain(1, subscriber, 1));
	assert_int_equal(fate_of(launch_in_child), 0);
	SUCCEEDS(cuptiEnableDomain(0, subscriber, 1));
	launch(NULL);
	wait_for_all();
	assert_int_equal(seen.n, 1);
}

/* Launches on four threads while it begins and ends on this one. */
static atomic_bool enough;

static void *keep_launching(void *ctx)
{
	CU(cuCtxSetCurrent)(ctx);
	CUstream stream = new_stream();
	while (!atomic_load(&enough)) {
		for (int i = 0; i < 10; i++)
			launch(stream);
		OK(cuStreamSynchronize, stream);
	}
	return NULL;
}

static void test_it_begins_and_ends_while_others_launch(void **state)
{
	CUcontext ctx;
	pthread_t thread[4];
	OK(cuCtxGetCurrent, &ctx);
	atomic_store(&enough, false);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, keep_launching, ctx);
	for (int i = 0; i < 50; i++) {
		handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
		SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_LAUNCH));
		pause_ms(1);
		SUCCEEDS(cuptiActivityFlushAll(i % 2));
		scene_end();
		size_t calls = seen.calls, n = seen.n;
		pause_ms(1);
		assert_int_equal(seen.calls, calls);
		assert_int_equal(seen.n, n);
	}
	assert_true(seen.calls > 0 && seen.n > 0);
	atomic_store(&enough, true);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/* ---- on demand ------------------------------------------------------------------------------- */

static void on_demand_busy(void **state)
{
	handle subscriber;
	REFUSED(RESULT_MULTIPLE_SUBSCRIBERS, cuptiSubscribe(&subscriber, tell, NULL));
}

static void on_demand_fail(void **state)
{
	handle subscriber;
	REFUSED(RESULT_INSUFFICIENT_PRIVILEGES, cuptiSubscribe(&subscriber, tell, NULL));
	SUCCEEDS(cuptiActivityEnable(KIND_CONCURRENT_KERNEL));
	REFUSED(RESULT_NOT_SUPPORTED, cuptiActivityEnable(KIND_MEMCPY));
	SUCCEEDS(cuptiFinalize());
}

/* ---- what ends the process ---------------------------------------------------------------- */

/* Each of these does something that it must not survive: it ends with the status of SIGABRT. */
static void expect_the_end(void)
{
	signal(SIGABRT, _exit);
}

static void fatal_unsafe_point(void **state)
{
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	manner.finalize = true;
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_LAUNCH));
	launch(NULL);
	assert_false(manner.finalize);
	SUCCEEDS(cuptiActivityEnable(KIND_CONCURRENT_KERNEL));
	expect_the_end();
	cuptiFinalize();
}

static void fatal_enabled_kinds(void **state)
{
	CUcontext ctx;
	pthread_t thread;
	OK(cuCtxGetCurrent, &ctx);
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	launch(NULL);
	pthread_create(&thread, NULL, launch_once, ctx);
	pthread_join(thread, NULL);
	expect_the_end();
	cuptiFinalize();
}

static void fatal_launched_graph(void **state)
{
	CUgraphExec exec = two_kernels();
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	OK(cuGraphLaunch, exec, NULL);
	OK(cuCtxSynchronize);
	SUCCEEDS(cuptiActivityDisable(KIND_CONCURRENT_KERNEL));
	expect_the_end();
	cuptiFinalize();
}

static void fatal_instantiated_graph(void **state)
{
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	two_kernels();
	SUCCEEDS(cuptiActivityDisable(KIND_CONCURRENT_KERNEL));
	expect_the_end();
	cuptiFinalize();
}

static void fatal_early_graph(void **state)
{
	CUgraphExec exec = two_kernels();
	scene_start(KINDS_OF(KIND_GRAPH_TRACE));
	expect_the_end();
	CU(cuGraphLaunch)(exec, NULL);
}

static void hold(void *user, uint32_t domain, uint32_t site, const void *data)
{
	wait_at_the_gate(NULL);
}

static void fatal_held_thread(void **state)
{
	CUcontext ctx;
	pthread_t thread;
	handle subscriber;
	OK(cuCtxGetCurrent, &ctx);
	SUCCEEDS(cuptiSubscribe(&subscriber, hold, NULL));
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_LAUNCH));
	pthread_create(&thread, NULL, launch_once, ctx);
	pause_ms(100);
	expect_the_end();
	cuptiFinalize();
}

/* ---- on demand, the rest ------------------------------------------------------------------ */

static void on_demand_wrap(void **state)
{
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(cuptiEnableCallback(1, subscriber, 1, SITE_LAUNCH));
	CUfunction function = tick_function();
	for (int i = 0; i < 20; i++)
		OK(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	wait_for_all();
	bool wrapped = false;
	for (size_t i = 0; i < 20; i++) {
		uint32_t id = nth(KIND_CONCURRENT_KERNEL, i)->kernel.correlation;
		assert_int_not_equal(id, 0);
		assert_int_equal(id, seen.told[2 * i].correlation);
		wrapped |= i > 0 && id < seen.told[2 * i - 2].correlation;
	}
	assert_true(wrapped);
}

/* Every third, in turn nothing, backwards, an hour ahead. */
static void on_demand_times(void **state)
{
	uint64_t now = monotonic();
	int zero = 0, backwards = 0, ahead = 0;
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	for (int i = 0; i < 27; i++)
		launch(NULL);
	wait_for_all();
	for (size_t i = 0; i < 27; i++) {
		const struct kernel_record *kernel = &nth(KIND_CONCURRENT_KERNEL, i)->kernel;
		zero += kernel->start == 0 && kernel->end == 0;
		backwards += kernel->end < kernel->start;
		ahead += kernel->start > now + 1800000000000u;
	}
	assert_int_equal(zero, 3);
	assert_int_equal(backwards, 3);
	assert_int_equal(ahead, 3);
}

/* Each stream in its order, the streams the other way round, and the last buffer first. */
static void on_demand_shuffle(void **state)
{
	CUstream stream[2] = { new_stream(), new_stream() };
	manner.max_records = 4;
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	CUfunction function = tick_function();
	for (int i = 0; i < 8; i++)
		OK(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream[i % 2], NULL, NULL);
	OK(cuCtxSynchronize);
	SUCCEEDS(cuptiActivityFlushAll(0));
	assert_int_equal(seen.n, 8);
	for (size_t i = 0; i < 8; i += 4) {
		const struct kernel_record *kernel[4];
		for (size_t j = 0; j < 4; j++)
			kernel[j] = &nth(KIND_CONCURRENT_KERNEL, i + j)->kernel;
		assert_true(kernel[0]->stream > kernel[2]->stream);
		assert_true(kernel[0]->correlation < kernel[1]->correlation);
		assert_true(kernel[2]->correlation < kernel[3]->correlation);
		assert_true(kernel[2]->correlation < kernel[0]->correlation);
	}
}

static void on_demand_late(void **state)
{
	manner.max_records = 1;
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	complete(NULL, 0, NULL, 0, 0);
	uint64_t own = seen.threads;
	uint64_t begin = monotonic();
	for (int i = 0; i < 6; i++)
		launch(NULL);
	OK(cuCtxSynchronize);
	assert_true(records_now() < 6);
	SUCCEEDS(cuptiActivityFlushAll(0));
	assert_true(monotonic() - begin >= 100000000u);
	assert_int_equal(seen.n, 6);
	assert_false(seen.threads & own & ~own);
	assert_true(__builtin_popcountll(seen.threads & ~own) > 1);
	bool in_order = true;
	for (size_t i = 1; i < 6; i++)
		in_order &= nth(KIND_CONCURRENT_KERNEL, i)->kernel.correlation >
		            nth(KIND_CONCURRENT_KERNEL, i - 1)->kernel.correlation;
	assert_false(in_order);
}

static void on_demand_slow_flush(void **state)
{
	scene_start(KINDS_OF(KIND_OVERHEAD));
	uint64_t begin = monotonic();
	SUCCEEDS(cuptiActivityFlushAll(0));
	assert_true(monotonic() - begin >= 100000000u);
	seen.n = 0;
	SUCCEEDS(cuptiActivityFlushAll(0));
	const struct overhead_record *overhead = &nth(KIND_OVERHEAD, 0)->overhead;
	assert_int_equal(overhead->overhead_kind, OVERHEAD_FLUSH);
	assert_int_equal(overhead->process, getpid());
	if (cuptiActivityRegisterTimestampCallback)
		assert_true(overhead->end - overhead->start >= 100000000u);
}

static uint64_t launches_ns(void)
{
	CUfunction function = tick_function();
	uint64_t begin = monotonic();
	for (int i = 0; i < 100; i++)
		OK(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return monotonic() - begin;
}

/* A hundred calls of 200 us each. */
static void on_demand_cost(void **state)
{
	handle subscriber = scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	assert_true(launches_ns() >= 20000000u);
	SUCCEEDS(cuptiActivityDisable(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(cuptiUnsubscribe(subscriber));
	assert_true(launches_ns() >= 20000000u);
	scene_end();
	assert_true(launches_ns() < 20000000u);
}

static const struct {
	const char *name;
	void (*test)(void **state);
} demanded[] = {
	{ "busy", on_demand_busy },
	{ "fail", on_demand_fail },
	{ "unsafe_point", fatal_unsafe_point },
	{ "enabled_kinds", fatal_enabled_kinds },
	{ "launched_graph", fatal_launched_graph },
	{ "instantiated_graph", fatal_instantiated_graph },
	{ "early_graph", fatal_early_graph },
	{ "held_thread", fatal_held_thread },
	{ "wrap", on_demand_wrap },
	{ "times", on_demand_times },
	{ "shuffle", on_demand_shuffle },
	{ "late", on_demand_late },
	{ "slow_flush", on_demand_slow_flush },
	{ "cost", on_demand_cost },
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, scene_clean)
		TEST(test_a_flush_keeps_buffers_with_work_that_still_runs),
		TEST(test_a_forced_flush_brings_it_without_times),
		TEST(test_full_buffers_come_by_themselves_on_another_thread),
		TEST(test_with_a_period_they_come_when_it_is_over),
		TEST(test_a_buffer_holds_no_more_records_than_it_may),
		TEST(test_records_without_a_buffer_are_dropped_and_counted),
		TEST(test_each_thread_has_its_buffer_where_that_is_so),
		TEST(test_it_can_be_left_at_a_calls_exit),
		TEST(test_the_driver_is_as_before_after_it),
		TEST(test_it_can_be_started_again),
		TEST(test_work_of_a_session_that_ended_is_not_told_in_the_next),
		TEST(test_what_was_registered_is_forgotten),
		TEST(test_use_after_the_end_aborts),
		TEST(test_a_forked_child_is_told_nothing),
		TEST(test_it_begins_and_ends_while_others_launch),
	};
	if (argc < 2)
		return cmocka_run_group_tests(tests, scene_open, NULL);
	for (size_t i = 0; i < sizeof(demanded) / sizeof(demanded[0]); i++) {
		if (strcmp(demanded[i].name, argv[1]) != 0)
			continue;
		const struct CMUnitTest test[] = { { demanded[i].name, demanded[i].test, NULL,
			                             scene_clean, NULL } };
		return cmocka_run_group_tests(test, scene_open, NULL);
	}
	return 99;
}
