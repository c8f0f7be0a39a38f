// SPDX-License-Identifier: MIT
/* Calls of the driver are held, and waited for, while the gate is closed. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "agent/lib/clock.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/gate.h"

#define THREADS 4
#define TURNS   200
#define MS      1000000ull

enum {
	LAUNCH = 307,
	SYNCHRONIZE = 126,
	BEGIN_CAPTURE = 400,
	END_CAPTURE = 401,
	QUERY = 304,
	GET_CURRENT = 305,
	IS_CAPTURING = 306
};

static uint32_t is_over, inside, passed;

static bool callback(uint32_t id, const char *function, uint32_t site, int32_t result)
{
	const struct cupti_callback_data data = { .site = site,
		                                  .function = function,
		                                  .result = &result };

	return gate_call(id, &data);
}

static void enter(uint32_t id, const char *function)
{
	callback(id, function, CUPTI_ENTER, 0);
}

static void leave(uint32_t id, const char *function)
{
	callback(id, function, CUPTI_EXIT, 0);
}

static uint32_t get(const uint32_t *from)
{
	return __atomic_load_n(from, __ATOMIC_SEQ_CST);
}

static void wait_for(const uint32_t *what, uint32_t least)
{
	while (get(what) < least)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static void *launch_again_and_again(void *data)
{
	while (!get(&is_over)) {
		enter(LAUNCH, "cuLaunchKernel");
		__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		enter(LAUNCH, "cuLaunchKernel"); /* within a call one is not held */
		leave(LAUNCH, "cuLaunchKernel");
		__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		leave(LAUNCH, "cuLaunchKernel");
		__atomic_add_fetch(&passed, 1, __ATOMIC_SEQ_CST);
	}
	return data;
}

static void test_no_thread_is_in_a_call_while_it_is_closed(void **state)
{
	pthread_t threads[THREADS];
	uint32_t before;

	is_over = passed = 0;
	gate_begin();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_again_and_again, NULL),
		                 0);
	for (int i = 0; i < TURNS; i++) {
		assert_true(gate_close(5000 * MS));
		for (int j = 0; j < 20; j++)
			assert_int_equal(get(&inside), 0);
		before = get(&passed);
		gate_open();
		wait_for(&passed, before + THREADS + 1); /* who was held goes on */
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	gate_end();
}

static void *stay(void *data)
{
	const char *function = data;
	uint32_t id = function[2] == 'S' ? SYNCHRONIZE : LAUNCH;

	enter(id, function);
	__atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
	wait_for(&is_over, 1);
	leave(id, function);
	return NULL;
}

static void with_one_inside(const char *function, bool closes)
{
	pthread_t thread;

	is_over = inside = 0;
	gate_begin();
	assert_int_equal(pthread_create(&thread, NULL, stay, (void *)function), 0);
	wait_for(&inside, 1);
	assert_int_equal(gate_close(20 * MS), closes);
	gate_open();
	__atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	assert_true(gate_close(20 * MS));
	gate_open();
	gate_end();
	inside = 0;
}

static void test_a_call_that_lasts_keeps_it_open(void **state)
{
	with_one_inside("cuLaunchKernel", false);
}

static void test_who_waits_for_the_gpu_is_let_be(void **state)
{
	with_one_inside("cuStreamSynchronize", true);
}

static void test_a_call_of_a_former_session_is_not_waited_for(void **state)
{
	gate_begin();
	enter(LAUNCH, "cuLaunchKernel");
	gate_end();
	gate_begin();
	leave(LAUNCH, "cuLaunchKernel");
	assert_true(gate_close(20 * MS));
	gate_open();
	gate_end();
}

#define CALLS 50

static void *launch_often(void *data)
{
	uint32_t *done = data;

	for (int i = 0; i < CALLS; i++) {
		enter(LAUNCH, "cuLaunchKernel");
		__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		if (i % 10 == 0)
			sched_yield();
		__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		leave(LAUNCH, "cuLaunchKernel");
		__atomic_add_fetch(done, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* Calls that were entered before a session began are over, of these threads. */
static void wait_for_calls_from_before(const uint32_t done[THREADS])
{
	for (int i = 0; i < THREADS; i++) {
		uint32_t now = get(&done[i]);

		wait_for(&done[i], now + 2 < CALLS ? now + 2 : CALLS);
	}
}

/* Who is held when a session ends goes on at any moment of the next one's begin. */
static void test_who_was_held_in_a_former_session_is_held_and_counted_in_the_next(void **state)
{
	pthread_t threads[THREADS];

	inside = 0;
	for (int turn = 0; turn < TURNS; turn++) {
		uint32_t done[THREADS] = { 0 };

		gate_begin();
		assert_true(gate_close(20 * MS));
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &done[i]),
			                 0);
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
		gate_end();
		gate_begin();
		wait_for_calls_from_before(done);
		assert_true(gate_close(5000 * MS));
		for (int i = 0; i < 20; i++)
			assert_int_equal(get(&inside), 0);
		gate_open();
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		assert_true(gate_close(20 * MS));
		gate_open();
		gate_end();
	}
}

static void test_a_capture_keeps_it_open(void **state)
{
	gate_begin();
	leave(END_CAPTURE, "cuStreamEndCapture"); /* of one whose begin was not seen */
	enter(BEGIN_CAPTURE, "cuStreamBeginCapture_v2");
	callback(BEGIN_CAPTURE, "cuStreamBeginCapture_v2", CUPTI_EXIT, 1); /* which failed */
	assert_true(gate_close(20 * MS));
	gate_open();
	enter(BEGIN_CAPTURE, "cuStreamBeginCapture_v2");
	leave(BEGIN_CAPTURE, "cuStreamBeginCapture_v2");
	assert_false(gate_close(20 * MS));
	enter(LAUNCH, "cuLaunchKernel"); /* which is not held then */
	leave(LAUNCH, "cuLaunchKernel");
	enter(END_CAPTURE, "cuStreamEndCapture");
	callback(END_CAPTURE, "cuStreamEndCapture", CUPTI_EXIT, 908); /* of another thread's */
	assert_false(gate_close(20 * MS));
	enter(END_CAPTURE, "cuStreamEndCapture");
	callback(END_CAPTURE, "cuStreamEndCapture", CUPTI_EXIT, 901); /* ended by an error */
	assert_true(gate_close(20 * MS));
	gate_open();
	gate_end();
}

static void test_a_launch_that_was_right_tells_a_context(void **state)
{
	gate_begin();
	assert_false(callback(LAUNCH, "cuLaunchKernel", CUPTI_ENTER, 0));
	assert_true(callback(LAUNCH, "cuLaunchKernel", CUPTI_EXIT, 0));
	enter(LAUNCH, "cuLaunchKernel");
	assert_false(callback(LAUNCH, "cuLaunchKernel", CUPTI_EXIT, 201));
	enter(QUERY, "cuEventQuery"); /* of a context that may be gone */
	assert_false(callback(QUERY, "cuEventQuery", CUPTI_EXIT, 0));
	gate_end();
}

static void test_who_asks_for_what_is_known_is_neither_held_nor_told_of_again(void **state)
{
	for (int i = 0; i < 2; i++) {
		gate_begin();
		assert_int_equal(gate_spare(), 0);
		enter(GET_CURRENT, "cuCtxGetCurrent");
		assert_true(gate_close(20 * MS)); /* nor waited for */
		leave(GET_CURRENT, "cuCtxGetCurrent");
		enter(IS_CAPTURING, "cuStreamIsCapturing"); /* would last two seconds */
		assert_true(gate_lasts());
		gate_open();
		leave(IS_CAPTURING, "cuStreamIsCapturing");
		enter(LAUNCH, "cuLaunchKernel");
		leave(LAUNCH, "cuLaunchKernel");
		assert_int_equal(gate_spare() + gate_spare(), GET_CURRENT + IS_CAPTURING);
		assert_int_equal(gate_spare(), 0);
		enter(GET_CURRENT, "cuCtxGetCurrent"); /* which was on its way */
		leave(GET_CURRENT, "cuCtxGetCurrent");
		assert_int_equal(gate_spare(), 0);
		gate_end(); /* another session has all callbacks again */
	}
}

static void test_it_lasts_less_long_than_who_is_held(void **state)
{
	gate_begin();
	assert_true(gate_close(20 * MS));
	assert_true(gate_lasts());
	nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 100000000 }, NULL);
	assert_false(gate_lasts());
	gate_open();
	gate_end();
}

static void *launch_once(void *data)
{
	uint64_t *took_ns = data, from_ns = clock_now();

	enter(LAUNCH, "cuLaunchKernel");
	*took_ns = clock_now() - from_ns;
	leave(LAUNCH, "cuLaunchKernel");
	return NULL;
}

static void test_nobody_is_held_for_ever(void **state)
{
	uint64_t took_ns = 0;
	pthread_t thread;

	gate_begin();
	assert_true(gate_close(20 * MS));
	assert_int_equal(pthread_create(&thread, NULL, launch_once, &took_ns), 0);
	pthread_join(thread, NULL);
	assert_in_range(took_ns, GATE_HELD_MOST_NS, 10 * GATE_HELD_MOST_NS);
	gate_open();
	gate_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_thread_is_in_a_call_while_it_is_closed),
		cmocka_unit_test(test_a_call_that_lasts_keeps_it_open),
		cmocka_unit_test(test_who_waits_for_the_gpu_is_let_be),
		cmocka_unit_test(test_a_call_of_a_former_session_is_not_waited_for),
		cmocka_unit_test(
			test_who_was_held_in_a_former_session_is_held_and_counted_in_the_next),
		cmocka_unit_test(test_a_capture_keeps_it_open),
		cmocka_unit_test(test_a_launch_that_was_right_tells_a_context),
		cmocka_unit_test(test_who_asks_for_what_is_known_is_neither_held_nor_told_of_again),
		cmocka_unit_test(test_it_lasts_less_long_than_who_is_held),
		cmocka_unit_test(test_nobody_is_held_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
