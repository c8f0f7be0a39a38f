// SPDX-License-Identifier: MIT
/* Threads that switch between stacks while they are in calls. */
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "probes_scene.h"

#define PLAIN  cookie_plain(WIRE_AT_STACK, 0)
#define STACK  (64 * 1024ul)
#define FIBERS (AGENT_PROBE_DEPTH_MAX + 2)

static char *stacks;
static ucontext_t home, fiber[FIBERS];
static size_t now; /* which fiber runs */
static jmp_buf back_to[FIBERS];

/* The function that is diverted, twice. What it does is what its caller wants: a switch to the
 * thread's own stack, in the middle of the call. */
static int (*call)(int), (*call_within)(int);
enum { RETURNS, SWITCHES, LEAVES };

static void go_home(void)
{
	swapcontext(&fiber[now], &home);
}

static int function(int what)
{
	if (what == SWITCHES)
		go_home();
	if (what == LEAVES)
		longjmp(back_to[now], 1);
	return 0;
}

static int function_within(int what)
{
	return call(what);
}

static void make_fiber(size_t which, char *stack, void (*run)(void))
{
	getcontext(&fiber[which]);
	fiber[which].uc_stack.ss_sp = stack;
	fiber[which].uc_stack.ss_size = STACK;
	fiber[which].uc_link = &home;
	makecontext(&fiber[which], run, 0);
}

static void go_on_with(size_t which)
{
	now = which;
	swapcontext(&home, &fiber[which]);
}

static char *stack_of(size_t which)
{
	return stacks + 2 * STACK * which;
}

/* With nothing between two stacks that can be read. */
static int open_scene(void **state)
{
	stacks = mmap(NULL, 2 * STACK * FIBERS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stacks == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < FIBERS; i++)
		mprotect(stack_of(i), STACK, PROT_READ | PROT_WRITE);
	if (open_probes(state))
		return -1;
	call = DIVERT(8, function, PLAIN, 0);
	call_within = DIVERT(9, function_within, PLAIN, 0);
	lost_now(AGENT_PROBE_ENTRY);
	return 0;
}

static int close_scene(void **state)
{
	munmap(stacks, 2 * STACK * FIBERS);
	return close_probes(state);
}

static const struct agent_probed *told(size_t which)
{
	return host_get(host, AGENT_PROBED, which);
}

static size_t unfinished(void)
{
	size_t n = 0;

	for (size_t i = 0; i < calls_told(); i++)
		n += (told(i)->head.flags & WIRE_UNFINISHED) != 0;
	return n;
}

/* ---- in any order -------------------------------------------------------------------------- */

static void one_call(void)
{
	call(SWITCHES);
}

static void test_calls_of_fibers_end_in_any_order(void **state)
{
	static const size_t order[] = { 1, 0, 3, 2 };

	NOT_UNDER_TSAN();
	for (size_t i = 0; i < 4; i++) {
		make_fiber(i, stack_of(i), one_call);
		go_on_with(i);
		call(RETURNS); /* of the thread itself */
	}
	assert_int_equal(calls_told(), 4);
	for (size_t i = 0; i < 4; i++)
		go_on_with(order[i]);
	assert_int_equal(calls_told(), 8);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(told(i)->head.flags, 0);
		assert_int_equal(told(i)->depth, 0);
	}
	assert_true(told(5)->begin < told(4)->begin && told(7)->begin < told(6)->begin);
	assert_int_equal(lost_now(AGENT_PROBE_ENTRY), 0);
}

static void two_calls(void)
{
	call_within(SWITCHES);
}

static void test_a_call_is_within_those_of_its_own_stack(void **state)
{
	NOT_UNDER_TSAN();
	make_fiber(0, stack_of(0), two_calls);
	make_fiber(1, stack_of(1), two_calls);
	go_on_with(0);
	go_on_with(1);
	call_within(RETURNS);
	go_on_with(0);
	go_on_with(1);
	assert_int_equal(calls_told(), 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(told(i)->depth, (i + 1) % 2); /* the inner one first */
	assert_int_equal(unfinished(), 0);
	assert_int_equal(lost_now(AGENT_PROBE_ENTRY), 0);
}

/* ---- that do not come back ----------------------------------------------------------------- */

static void leaves_and_calls(void)
{
	if (!setjmp(back_to[now]))
		call_within(LEAVES);
	call(SWITCHES);
}

static void test_what_a_longjmp_left_on_one_stack_ends_nothing_on_others(void **state)
{
	NOT_UNDER_TSAN();
	make_fiber(0, stack_of(0), one_call);
	make_fiber(1, stack_of(1), leaves_and_calls);
	go_on_with(0);
	go_on_with(1);
	assert_int_equal(calls_told(), 2);
	assert_int_equal(unfinished(), 2);
	go_on_with(0);
	go_on_with(1);
	assert_int_equal(calls_told(), 4);
	assert_int_equal(unfinished(), 2);
	assert_int_equal(told(2)->depth, 0);
	assert_int_equal(told(3)->depth, 0);
	assert_int_equal(lost_now(AGENT_PROBE_ENTRY), 0);
}

static void test_at_the_end_what_is_open_on_all_stacks_is_told(void **state)
{
	NOT_UNDER_TSAN();
	make_fiber(0, stack_of(0), one_call);
	make_fiber(1, stack_of(1), two_calls);
	go_on_with(0);
	go_on_with(1);
	probes_tell_open();
	assert_int_equal(calls_told(), 3);
	assert_int_equal(unfinished(), 3);
	go_on_with(0);
	go_on_with(1);
	assert_int_equal(calls_told(), 3);
	assert_int_equal(lost_now(AGENT_PROBE_ENTRY), 0);
}

/* One whose stack was used by others since will not return. */
static void test_where_there_is_no_room_one_on_another_stack_goes(void **state)
{
	NOT_UNDER_TSAN();
	lost_now(AGENT_PROBE_DEPTH);
	for (size_t i = 0; i < AGENT_PROBE_DEPTH_MAX; i++) {
		make_fiber(i, stack_of(i), one_call);
		go_on_with(i);
	}
	assert_int_equal(calls_told(), 0);
	memset(stack_of(5), 0, STACK);
	call(RETURNS);
	assert_int_equal(calls_told(), 2);
	assert_int_equal(unfinished(), 1);
	make_fiber(5, stack_of(5), one_call);
	go_on_with(5);
	call_within(RETURNS); /* two more than there is room for */
	assert_int_equal(calls_told(), 6);
	assert_int_equal(unfinished(), 3);
	for (size_t i = 0; i < AGENT_PROBE_DEPTH_MAX; i++)
		go_on_with(i);
	assert_int_equal(calls_told(), 6 + AGENT_PROBE_DEPTH_MAX - 2);
	assert_int_equal(unfinished(), 3);
	assert_int_equal(lost_now(AGENT_PROBE_ENTRY), 2);
	assert_int_equal(lost_now(AGENT_PROBE_DEPTH), 0);
}

/* Two stacks with nothing between look like one: so the lower one's call was left, as far as can be
 * seen. That it comes back is counted. */
static void test_stacks_side_by_side_are_taken_for_one(void **state)
{
	NOT_UNDER_TSAN();
	mprotect(stack_of(0) + STACK, STACK, PROT_READ | PROT_WRITE);
	make_fiber(0, stack_of(0), one_call);
	make_fiber(1, stack_of(1), one_call);
	go_on_with(0);
	go_on_with(1);
	assert_int_equal(calls_told(), 1);
	assert_int_equal(unfinished(), 1);
	go_on_with(0);
	go_on_with(1);
	assert_int_equal(calls_told(), 2);
	assert_int_equal(unfinished(), 1);
	assert_int_equal(lost_now(AGENT_PROBE_ENTRY), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, open_scene, close_scene)
		TEST(calls_of_fibers_end_in_any_order),
		TEST(a_call_is_within_those_of_its_own_stack),
		TEST(what_a_longjmp_left_on_one_stack_ends_nothing_on_others),
		TEST(at_the_end_what_is_open_on_all_stacks_is_told),
		TEST(where_there_is_no_room_one_on_another_stack_goes),
		TEST(stacks_side_by_side_are_taken_for_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
