// SPDX-License-Identifier: MIT
/* Calls that are counted: each once, whoever makes it and whatever becomes of it. */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes_scene.h"

#define PLAIN   cookie_plain(WIRE_AT_STACK, 0)
#define SLOT    3
#define THREADS (AGENT_COUNT_SHARES + 36) /* more than have shares of their own */
#ifdef __SANITIZE_THREAD__
#define CALLS 500
#else
#define CALLS 20000
#endif

static int (*getter)(uint64_t);
static int (*other)(uint64_t);

static int answers(uint64_t value)
{
	return (int)value;
}

static const void *count(uint32_t slot, const void *function)
{
	const void *thunk = divert(slot, function, PLAIN, AGENT_STACK_WORDS_UNKNOWN);

	probes_turn(slot, PROBE_COUNT);
	return thunk;
}

#define COUNT(slot, function) ((__typeof__(&(function)))count(slot, (const void *)(function)))

static uint64_t counted(uint32_t slot)
{
	const uint64_t *counts = (const uint64_t *)((const char *)host->shared + AGENT_COUNTS_AT);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < host->shared->probe_shares; i++)
		sum += __atomic_load_n(&counts[i * AGENT_SLOTS_MOST + slot], __ATOMIC_RELAXED);
	return sum;
}

static void test_all_but_a_thread_s_first_call_are_counted(void **state)
{
	size_t before = calls_told();

	getter = COUNT(SLOT, answers);
	other = COUNT(SLOT + 1, answers);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(getter(0), 0);
	for (int i = 0; i < 10; i++)
		other(0);
	assert_int_equal(calls_told() - before + counted(SLOT) + counted(SLOT + 1), 1010);
	assert_true(calls_told() - before <= 1);
	assert_int_equal(counted(SLOT + 1), 10);
	probes_turn(SLOT, PROBE_CALL);
	getter(0);
	assert_int_equal(last_call()->head.lane, SLOT);
	assert_true(last_call()->begin < last_call()->end);
	assert_int_equal(counted(SLOT + 1), 10);
}

static void test_a_call_that_fails_is_recorded_and_not_counted(void **state)
{
	uint64_t before;

	getter = COUNT(SLOT, answers);
	getter(0);
	before = counted(SLOT);
	assert_int_equal(getter(201), 201);
	assert_int_equal(last_call()->result, 201);
	assert_int_equal(last_call()->head.lane, SLOT);
	assert_int_equal(last_call()->begin, last_call()->end);
	assert_int_equal(last_call()->word[WIRE_AT_REG], 201);
	assert_int_equal(getter((uint64_t)-1), -1);
	assert_int_equal(last_call()->result, -1);
	assert_int_equal(counted(SLOT), before);
	assert_int_equal(getter(THUNK_NOT_READY), THUNK_NOT_READY);
	assert_int_equal(counted(SLOT), before + 1);
}

static long eleven(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
                   long k)
{
	return (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k)
	       << 32;
}

static void *at_each_place_of_the_stack(void *data)
{
	__typeof__(&eleven) thunk = COUNT(SLOT, eleven);
	size_t told = calls_told();
	uint64_t before = counted(SLOT), calls = 0;

	for (size_t bytes = 16; bytes <= 3 * 4096; bytes += 16) {
		memset(alloca(16), 1, 16);
		assert_int_equal(thunk(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, (long)bytes),
		                 eleven(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, (long)bytes));
		calls++;
	}
	assert_int_equal(counted(SLOT) - before + calls_told() - told, calls);
	assert_true(counted(SLOT) - before > calls * 9 / 10);
	return NULL;
}

static void test_words_of_the_stack_are_handed_on_wherever_it_ends(void **state)
{
	pthread_t thread;

	pthread_create(&thread, NULL, at_each_place_of_the_stack, NULL);
	pthread_join(thread, NULL);
	at_each_place_of_the_stack(NULL);
}

/* ---- nesting ---- */

static int (*inner)(uint64_t);

static int calls_inner(uint64_t value)
{
	return inner(value);
}

static sigjmp_buf place;

static int jumps(uint64_t value)
{
	if (value)
		siglongjmp(place, 1);
	return 0;
}

static void test_what_a_counted_call_makes_is_nested(void **state)
{
	getter = COUNT(SLOT, calls_inner);
	inner = DIVERT(SLOT + 1, answers, PLAIN, AGENT_STACK_WORDS_UNKNOWN);
	getter(0);
	getter(0);
	assert_int_equal(last_call()->head.lane, SLOT + 1);
	assert_int_equal(last_call()->depth, 1);
	assert_true(last_call()->head.flags & WIRE_NESTED);
	inner(0);
	assert_int_equal(last_call()->depth, 0);
	assert_false(last_call()->head.flags & WIRE_NESTED);
}

static void __attribute__((noinline)) jump_out(volatile char *deeper)
{
	volatile char frame[2048];

	frame[0] = frame[2047] = *deeper;
	getter(1);
}

static void test_after_a_longjmp_nothing_is_nested(void **state)
{
	volatile char byte = 1;

	getter = COUNT(SLOT, jumps);
	inner = DIVERT(SLOT + 1, answers, PLAIN, AGENT_STACK_WORDS_UNKNOWN);
	getter(0);
	getter(0);
	if (!sigsetjmp(place, 1))
		jump_out(&byte);
	inner(0);
	assert_int_equal(last_call()->depth, 0);
	getter(0);
	inner(0);
	assert_int_equal(last_call()->depth, 0);
}

/* ---- threads, signals, forks ---- */

static pthread_barrier_t all_are_there;

static void *call(void *data)
{
	getter(0);
	if (data)
		pthread_barrier_wait(&all_are_there);
	for (int i = 1; i < CALLS; i++)
		getter(0);
	return NULL;
}

static void run(size_t n, void *data)
{
	static pthread_t threads[THREADS];

	for (size_t i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, call, data);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void test_threads_count_exactly(void **state)
{
	size_t told = calls_told();

	getter = COUNT(SLOT, answers);
	pthread_barrier_init(&all_are_there, NULL, THREADS);
	run(THREADS, &all_are_there);
	assert_int_equal(host->shared->probe_shares, AGENT_COUNT_CHILDREN);
	assert_int_equal(counted(SLOT) + calls_told() - told, (uint64_t)THREADS * CALLS);
	assert_true(calls_told() - told <= THREADS);
}

/* Shares are used again, and go on where they were. */
static void test_threads_that_come_and_go_count_exactly(void **state)
{
	size_t told = calls_told();

	getter = COUNT(SLOT, answers);
	for (int i = 0; i < 40; i++) {
		run(8, NULL);
		probes_look();
	}
	assert_int_equal(counted(SLOT) + calls_told() - told, 320ull * CALLS);
	assert_true(host->shared->probe_shares < 64);
}

static volatile uint64_t signals;

static void on_alarm(int signal)
{
	getter(0);
	signals++;
}

static void test_a_handler_s_calls_are_counted_beside_its_thread_s(void **state)
{
	const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
	struct sigaction action = { .sa_handler = on_alarm };
	size_t told = calls_told();
	uint64_t calls = 0, lost;

	NOT_UNDER_TSAN();
	lost_now(AGENT_PROBE_REENTRY);
	getter = COUNT(SLOT, answers);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; signals < 200; calls++)
		getter(calls % 64 == 0 ? 1 : 0);
	setitimer(ITIMER_REAL, &never, NULL);
	lost = lost_now(AGENT_PROBE_REENTRY) + lost_now(AGENT_PROBE_RING);
	assert_int_equal(counted(SLOT) + calls_told() - told + lost, calls + signals);
}

static uint64_t counted_in_children(uint32_t slot)
{
	const uint64_t *counts = (const uint64_t *)((const char *)host->shared + AGENT_COUNTS_AT);

	return __atomic_load_n(&counts[AGENT_COUNT_CHILDREN * AGENT_SLOTS_MOST + slot],
	                       __ATOMIC_RELAXED);
}

/* Without what the C library does at a fork, as programs may. */
static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void calls_of_children(pid_t (*forks)(void))
{
	uint64_t before = counted(SLOT), children = counted_in_children(SLOT);
	uint64_t recorded = counted_in_children(SLOT + 1), passed = counted_in_children(SLOT + 2);
	size_t told = calls_told();
	int status;
	pid_t child = forks();

	if (!child) {
		for (int i = 0; i < 100; i++)
			getter(0);
		if (!forks())
			_exit(getter(0));
		while (wait(NULL) > 0)
			;
		other(0);
		inner(0);
		_exit(getter(7));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(counted(SLOT), before);
	assert_int_equal(counted_in_children(SLOT) - children, 102);
	assert_int_equal(counted_in_children(SLOT + 1) - recorded, 1);
	assert_int_equal(counted_in_children(SLOT + 2), passed);
	assert_int_equal(calls_told(), told);
}

static void test_calls_of_children_of_fork_are_counted_apart(void **state)
{
	getter = COUNT(SLOT, answers);
	other = DIVERT(SLOT + 1, answers, PLAIN, AGENT_STACK_WORDS_UNKNOWN);
	inner = DIVERT(SLOT + 2, answers, PLAIN, AGENT_STACK_WORDS_UNKNOWN);
	probes_turn(SLOT + 2, PROBE_PASSES_ON);
	getter(0);
	calls_of_children(fork);
	calls_of_children(raw_fork);
}

static void test_after_a_session_a_child_counts_for_nobody(void **state)
{
	int status;
	pid_t child;

	getter = COUNT(SLOT, answers);
	getter(0);
	assert_int_equal(probes_close(), 0);
	child = fork();
	if (!child)
		_exit(getter(7));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(counted_in_children(SLOT), 0);
}

/* ---- sessions ---- */

static uint32_t stop;

static void *call_until_stopped(void *data)
{
	uint64_t *calls = data;

	for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); ++*calls)
		getter(0);
	return NULL;
}

/* Whoever still counted in memory of a former session would fall. */
static void test_sessions_come_and_go_while_threads_count(void **state)
{
	uint64_t calls[4] = { 0 }, told = 0;
	pthread_t threads[4];

	stop = 0;
	getter = COUNT(SLOT, answers);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, call_until_stopped, &calls[i]);
	for (int i = 0; i < 50; i++) {
		host_sleep(2);
		assert_int_equal(probes_close(), 0);
		told += counted(SLOT);
		ring_unmap(&ring);
		host_free(host);
		assert_int_equal(open_probes(NULL), 0);
		assert_true(counted(SLOT) < 10000000);
		probes_turn(SLOT, PROBE_COUNT);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(told > 50);
	assert_true(told <= calls[0] + calls[1] + calls[2] + calls[3]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, open_probes, close_probes)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_but_a_thread_s_first_call_are_counted),
		TEST(a_call_that_fails_is_recorded_and_not_counted),
		TEST(words_of_the_stack_are_handed_on_wherever_it_ends),
		TEST(what_a_counted_call_makes_is_nested),
		TEST(after_a_longjmp_nothing_is_nested),
		TEST(threads_that_come_and_go_count_exactly),
		TEST(threads_count_exactly),
		TEST(a_handler_s_calls_are_counted_beside_its_thread_s),
		TEST(calls_of_children_of_fork_are_counted_apart),
		TEST(after_a_session_a_child_counts_for_nobody),
		TEST(sessions_come_and_go_while_threads_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
