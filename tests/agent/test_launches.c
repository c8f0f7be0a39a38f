// SPDX-License-Identifier: MIT
/* Launches that are recorded and measured at once: CUPTI's number is told with the call. */
#include <setjmp.h>

#include "agent/lib/probe_capture.h"
#include "orders_scene.h"
#include "work.h"

#define KERNEL 3 /* which register has the handle: any that a cookie can say */

static uint64_t a_launch(void)
{
	return (plain() & ~cookie_with_kernel(~0ull)) | cookie_with_kernel(KERNEL);
}

static function divert_as(struct host *host, uint32_t slot, function to, uint64_t cookie)
{
	assert_int_equal(set_one(host, (struct agent_slot){ .slot = fresh(host, slot),
	                                                    .cookie = cookie,
	                                                    .original = area_of(host, 1, to),
	                                                    .does = AGENT_SLOT_CALL }),
	                 0);
	return (function)thunk_of(host, slot);
}

static uint32_t told(struct host *host, size_t which)
{
	assert_true(calls_told(host) > which);
	return call_at(host, which)->correlation;
}

static int launch(int grid)
{
	work_launch((uint32_t)grid);
	return 0;
}

static int copy(int bytes)
{
	work_copy((uint32_t)bytes);
	return 0;
}

/* ---- with CUPTI ---- */

static struct host *measure(void)
{
	struct host *host = begin_with(KIB(1024), AGENT_WANT_KERNELS | AGENT_WANT_COPIES,
	                               AGENT_PROBES_TICKS | AGENT_PROBES_READS);

	assert_int_equal(host_wait(host, AGENT_RUNNING), AGENT_RUNNING);
	return host;
}

static void leave(struct host *host)
{
	host_tell(host, AGENT_STOP);
	for (int i = 0; i < OFF_MOST && host->shared->state != AGENT_OFF; i++) {
		work_query();
		host_sleep(1);
	}
	assert_int_equal(host->shared->state, AGENT_OFF);
	host_read(host);
}

static uint32_t kernel_at(struct host *host, size_t which)
{
	const struct agent_kernel *kernel = host_get(host, AGENT_KERNEL, which);

	return kernel->correlation;
}

static void test_the_call_tells_the_number_of_its_kernel(void **state)
{
	struct host *host = measure();
	function thunk = divert_as(host, 0, launch, a_launch());

	for (int i = 1; i <= 3; i++)
		thunk(i);
	work_sync();
	leave(host);
	assert_int_equal(calls_told(host), 3);
	assert_int_equal(host_count(host, AGENT_KERNEL), 3);
	assert_int_equal(host_count(host, AGENT_CALL), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(told(host, i), kernel_at(host, i));
		assert_int_not_equal(told(host, i), 0);
	}
	host_free(host);
}

static void test_others_are_told_of_as_before(void **state)
{
	struct host *host = measure();
	function plainly = divert_as(host, 0, launch, plain());
	function copies = divert_as(host, 1, copy, a_launch());

	plainly(1);
	launch(2);
	copies(64);
	work_sync();
	leave(host);
	assert_int_equal(calls_told(host), 2);
	assert_int_equal(told(host, 0), 0);
	assert_int_equal(told(host, 1), 0);
	assert_int_equal(host_count(host, AGENT_CALL), 3);
	host_free(host);
}

static int launch_twice(int grid)
{
	launch(grid);
	return launch(grid + 1);
}

/* A call has one number: what else it launches is told of as if nobody recorded it. */
static void test_a_second_kernel_of_a_call_has_a_record_of_its_own(void **state)
{
	struct host *host = measure();
	function thunk = divert_as(host, 0, launch_twice, a_launch());
	const struct agent_call *call;

	thunk(1);
	work_sync();
	leave(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 2);
	assert_int_equal(told(host, 0), kernel_at(host, 0));
	assert_int_equal(host_count(host, AGENT_CALL), 1);
	call = host_get(host, AGENT_CALL, 0);
	assert_int_equal(call->correlation, kernel_at(host, 1));
	host_free(host);
}

/* ---- by hand ---- */

static jmp_buf back_to;
static function inner;
static bool in_launch;
static struct host *whose;

static int says(int number)
{
	in_launch = correlation_tell((uint32_t)number);
	return 0;
}

static int says_then_begins_anew(int number)
{
	says(number);
	correlations_begin();
	return 0;
}

static int says_then_leaves(int number)
{
	says(number);
	longjmp(back_to, 1);
}

static int says_within(int number)
{
	inner(number);
	return says(number);
}

static int says_then_sees_the_end(int number)
{
	says(number);
	host_tell(whose, AGENT_STOP);
	return host_wait(whose, AGENT_OFF) != AGENT_OFF;
}

/* Calls `as` by a thunk that has this cookie; what that told. */
static uint32_t number_of(function as, uint64_t cookie, int number)
{
	whose = begin();
	in_launch = true;
	if (!setjmp(back_to))
		divert_as(whose, 0, as, cookie)(number);
	return calls_told(whose) ? told(whose, calls_told(whose) - 1) : 0;
}

static void test_only_a_launch_is_one(void **state)
{
	assert_false(correlation_tell(17));
	assert_false(correlation_is_told(17));
	assert_int_equal(number_of(says, a_launch(), 17), 17);
	assert_true(in_launch);
	assert_true(correlation_is_told(17));
	assert_false(correlation_is_told(18));
	assert_false(correlation_tell(17)); /* it is over */
	end(whose);
	assert_int_equal(number_of(says, plain(), 17), 0);
	assert_false(in_launch);
	end(whose);
	assert_int_equal(number_of(says, a_launch(), 0), 0);
	assert_false(in_launch);
	end(whose);
}

/* A launch of the runtime that is looked at for failing is not told: the driver's is. */
static void test_it_is_the_drivers_that_tells(void **state)
{
	assert_int_equal(number_of(says, a_launch() | cookie_with_runtime_launch(1), 17), 0);
	assert_false(in_launch);
	end(whose);
}

static void test_numbers_of_before_are_not_told(void **state)
{
	assert_int_equal(number_of(says_then_begins_anew, a_launch(), 17), 0);
	assert_true(in_launch);
	assert_false(correlation_is_told(17));
	end(whose);
}

static void test_what_is_open_at_the_end_tells_its_number(void **state)
{
	assert_int_equal(number_of(says_then_sees_the_end, a_launch(), 17), 17);
	assert_int_equal(call_at(whose, 0)->head.flags, WIRE_UNFINISHED);
	assert_false(correlation_tell(18));
	host_free(whose);
}

/* What it launched may have been another's. */
static void test_a_launch_that_was_left_does_not(void **state)
{
	function next;

	number_of(says_then_leaves, a_launch(), 17);
	next = divert_as(whose, 1, says, a_launch());
	next(18);
	assert_int_equal(calls_told(whose), 2);
	assert_int_equal(call_at(whose, 0)->head.flags, WIRE_UNFINISHED);
	assert_int_equal(told(whose, 0), 0);
	assert_int_equal(told(whose, 1), 18);
	end(whose);
}

/* By whichever function CUPTI calls back: the thread is in the launch around the other. */
static void test_a_launch_within_a_launch_leaves_it_to_that(void **state)
{
	struct host *host = begin();

	inner = divert_as(host, 1, says, a_launch());
	divert_as(host, 0, says_within, a_launch())(17);
	assert_int_equal(calls_told(host), 2);
	assert_int_equal(told(host, 0), 0);
	assert_int_equal(told(host, 1), 17);
	end(host);
}

static int begin_work(void **state)
{
	work_begin();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_call_tells_the_number_of_its_kernel),
		cmocka_unit_test(test_others_are_told_of_as_before),
		cmocka_unit_test(test_a_second_kernel_of_a_call_has_a_record_of_its_own),
		cmocka_unit_test(test_only_a_launch_is_one),
		cmocka_unit_test(test_it_is_the_drivers_that_tells),
		cmocka_unit_test(test_numbers_of_before_are_not_told),
		cmocka_unit_test(test_what_is_open_at_the_end_tells_its_number),
		cmocka_unit_test(test_a_launch_that_was_left_does_not),
		cmocka_unit_test(test_a_launch_within_a_launch_leaves_it_to_that),
	};

	return cmocka_run_group_tests(tests, begin_work, NULL);
}
