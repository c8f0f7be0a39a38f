// SPDX-License-Identifier: MIT
/* Many threads at once: every call is told or counted, whatever becomes of the session meanwhile.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "probes_scene.h"

#define PLAIN   cookie_plain(WIRE_AT_STACK, 0)
#define THREADS 32
#ifdef __SANITIZE_THREAD__
#define CALLS  2000
#define ROUNDS 10
#elif defined(__SANITIZE_ADDRESS__)
#define CALLS  5000
#define ROUNDS 20
#else
#define CALLS  20000
#define ROUNDS 100
#endif
#define JUMPS 200
/* They are fewer on a busy machine, where a reading of the ring is long. */
#define PATIENCE_NS 20000000000ull
#define SLOWEST_NS  200000000000ull

static int (*inner)(uint64_t);
static int (*outer)(uint64_t);
static uint32_t stop;

static int nothing(uint64_t value)
{
	return 0;
}

static int calls_inner(uint64_t value)
{
	return value % 4 ? 0 : inner(value);
}

struct caller {
	pthread_t thread;
	uint32_t tid;
	uint64_t number, calls;
};

static void *call(void *data)
{
	struct caller *caller = data;

	caller->tid = (uint32_t)gettid();
	for (uint64_t i = 0; i < CALLS; i++) {
		outer(caller->number << 32 | i);
		caller->calls += i % 4 ? 1 : 2;
	}
	return NULL;
}

/* Each thread's calls are there in their order, whole, and each nested one before its outer one. */
static void check_calls(const struct caller *callers)
{
	static uint64_t last_begin[THREADS];
	static uint64_t last_end[THREADS];
	size_t n = host_count(host, AGENT_PROBED);

	memset(last_begin, 0, sizeof(last_begin));
	memset(last_end, 0, sizeof(last_end));
	for (size_t i = 0; i < n; i++) {
		const struct agent_probed *told = (const void *)host->kept[i];
		uint64_t number = told->word[WIRE_AT_REG] >> 32;

		assert_in_range(number, 0, THREADS - 1);
		assert_int_equal(told->tid, callers[number].tid);
		assert_true(told->begin <= told->end && told->end >= last_end[number]);
		assert_true(told->begin >= last_begin[number]);
		last_end[number] = told->end;
		if (!told->depth)
			last_begin[number] = told->begin;
	}
}

static void run_all(struct caller *callers, void *(*what)(void *), size_t n)
{
	for (size_t i = 0; i < n; i++) {
		callers[i] = (struct caller){ .number = i };
		pthread_create(&callers[i].thread, NULL, what, &callers[i]);
	}
}

static void test_what_is_not_told_is_counted(void **state)
{
	static struct caller callers[THREADS];
	uint64_t calls = 0;

	lost_now(AGENT_PROBE_RING);
	inner = DIVERT(1, nothing, PLAIN, 0);
	outer = DIVERT(2, calls_inner, PLAIN, 0);
	run_all(callers, call, THREADS);
	for (int i = 0; i < 20; i++) { /* now and then: the ring is full most of the time */
		host_read(host);
		host_sleep(1);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(callers[i].thread, NULL);
		calls += callers[i].calls;
	}
	check_calls(callers);
	assert_int_equal(calls_told() + lost_now(AGENT_PROBE_RING), calls);
	assert_true(calls_told() < calls);
}

/* ---- a session that comes and goes ---- */

static void *call_until_stopped(void *data)
{
	struct caller *caller = data;

	caller->tid = (uint32_t)gettid();
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		outer(caller->number << 32 | caller->calls % 8);
		caller->calls++;
	}
	return NULL;
}

static void test_sessions_come_and_go_while_threads_call(void **state)
{
	struct caller callers[8];
	uint64_t told = 0;

	inner = DIVERT(1, nothing, PLAIN, 0);
	outer = DIVERT(2, calls_inner, PLAIN, 0);
	stop = 0;
	run_all(callers, call_until_stopped, 8);
	for (int i = 0; i < ROUNDS; i++) {
		host_sleep(2);
		assert_int_equal(probes_close(), 0);
		told += calls_told();
		ring_unmap(&ring); /* whoever still wrote there would fall */
		host_free(host);
		assert_int_equal(open_probes(NULL), 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 8; i++)
		pthread_join(callers[i].thread, NULL);
	assert_true(told > ROUNDS);
}

/* ---- threads that jump out of the recording ---- */

static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t may_jump;
static uint64_t jumps;

static void on_signal(int number)
{
	if (!may_jump)
		return;
	may_jump = 0;
	__atomic_fetch_add(&jumps, 1, __ATOMIC_RELAXED);
	siglongjmp(back, 1);
}

static void *call_and_jump(void *data)
{
	struct caller *caller = data;

	caller->tid = (uint32_t)gettid();
	sigsetjmp(back, 1);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		may_jump = 1;
		for (uint64_t i = 0; i < 50; i++)
			outer(caller->number << 32 | i);
		may_jump = 0;
	}
	outer(caller->number << 32); /* closes what the last jump has left */
	return NULL;
}

static void test_threads_that_jump_out_hold_up_nobody(void **state)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct caller callers[4];
	uint64_t begin = host_now(), after_ns;

	NOT_UNDER_TSAN();
	inner = DIVERT(1, nothing, PLAIN, 0);
	outer = DIVERT(2, calls_inner, PLAIN, 0);
	sigaction(SIGUSR1, &action, NULL);
	stop = 0;
	run_all(callers, call_and_jump, 4);
	host_sleep(10);
	for (int i = 0; __atomic_load_n(&jumps, __ATOMIC_RELAXED) < JUMPS; i++) {
		after_ns = host_now() - begin;
		if (after_ns > (jumps < JUMPS / 20 ? SLOWEST_NS : PATIENCE_NS))
			break;
		pthread_kill(callers[i % 4].thread, SIGUSR1);
		host_read(host);
		host_forget(host);
		sched_yield();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(callers[i].thread, NULL);
	assert_true(jumps >= JUMPS / 20);
	host_read(host);
	host_forget(host);
	outer(77ull << 32 | 1);
	assert_int_equal(last_call()->word[WIRE_AT_REG], 77ull << 32 | 1);
}

/* ---- the exit of a process whose threads go on ---- */

/* Now and then others have the processor while it is open. */
static int yields(uint64_t value)
{
	if (value % 64 == 0)
		sched_yield();
	return 0;
}

static void *nest_until_stopped(void *data)
{
	struct caller *caller = data;

	for (uint64_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i += 4) {
		outer(i);
		caller->calls += 2;
	}
	return NULL;
}

/* The calls that are open when all are told of are told once, as unfinished. */
static void test_open_calls_are_told_while_threads_call(void **state)
{
	static struct caller callers[4];
	uint64_t calls = 0, told = 0, unfinished = 0, lost;

	inner = DIVERT(1, yields, PLAIN, 0);
	outer = DIVERT(2, calls_inner, PLAIN, 0);
	lost_now(AGENT_PROBE_RING);
	lost_now(AGENT_PROBE_REENTRY);
	lost_now(AGENT_PROBE_ENTRY);
	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	run_all(callers, nest_until_stopped, 4);
	for (int i = 0; i < 20 * ROUNDS; i++) {
		probes_tell_open();
		told += calls_told();
		for (size_t k = 0; k < host->n_kept; k++)
			unfinished += (host->kept[k]->flags & WIRE_UNFINISHED) != 0;
		host_forget(host);
		if (i % 8 == 0)
			host_sleep(1);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(callers[i].thread, NULL);
		calls += callers[i].calls;
	}
	told += calls_told();
	lost = lost_now(AGENT_PROBE_RING) + lost_now(AGENT_PROBE_REENTRY) +
	       lost_now(AGENT_PROBE_ENTRY);
	assert_in_range(told, calls - lost, calls);
	assert_true(unfinished > 0);
	assert_true(told > unfinished);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_probes, close_probes)
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_not_told_is_counted),
		TEST(test_sessions_come_and_go_while_threads_call),
		TEST(test_threads_that_jump_out_hold_up_nobody),
		TEST(test_open_calls_are_told_while_threads_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
