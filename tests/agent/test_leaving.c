// SPDX-License-Identifier: MIT
/* How the agent comes into a process that runs, and leaves it: nothing of it stays. */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"
#include "work.h"

#define ALL    (AGENT_WANT_KERNELS | AGENT_WANT_COPIES | AGENT_WANT_SETS)
#define ROUNDS 1000
#define KIB(n) ((uint64_t)(n) << 10)

int cuscope_agent_enter(int socket);

static int begin_work(void **state)
{
	work_begin();
	return 0;
}

static struct host *enter(void)
{
	struct host *host = host_new(KIB(256));

	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_hello(host, ALL);
	return host;
}

static void wait_for(struct host *host, uint32_t state)
{
	if (host_wait(host, state) != state)
		fail_msg("state %u instead of %u, failure %u, code %d: %s", host->shared->state,
		         state, host->shared->failure, host->shared->code, host->shared->text);
}

/* Whether the thread ends; it does after the socket is closed. */
static bool thread_is_gone(size_t threads)
{
	for (int i = 0; i < 2000 && count_threads() > threads; i++)
		host_sleep(1);
	return count_threads() == threads;
}

/* ---- a program that works ---- */

static bool stop_working; /* atomic */

static void *keep_working(void *data)
{
	work_thread();
	while (!__atomic_load_n(&stop_working, __ATOMIC_RELAXED)) {
		work_launch(1);
		work_sync();
	}
	return NULL;
}

static pthread_t start_working(void)
{
	pthread_t thread;

	__atomic_store_n(&stop_working, false, __ATOMIC_RELAXED);
	pthread_create(&thread, NULL, keep_working, NULL);
	return thread;
}

static void end_working(pthread_t thread)
{
	__atomic_store_n(&stop_working, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* ---- tests ---- */

static void test_a_program_at_work_is_left_at_one_of_its_calls(void **state)
{
	pthread_t thread = start_working();
	struct host *host = enter();

	wait_for(host, AGENT_RUNNING);
	host_sleep(50);
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	host_read(host);
	assert_true(host_count(host, AGENT_KERNEL) > 0);
	assert_true(host->shared->active_until_ns > host->shared->active_since_ns);
	end_working(thread);
	host_free(host);
}

static void test_a_program_without_calls_is_left_as_well(void **state)
{
	struct host *host = enter();
	uint64_t begin;

	wait_for(host, AGENT_RUNNING);
	begin = host_now();
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	assert_true(host_now() - begin < 2000000000);
	host_free(host);
}

static struct host *sample(void)
{
	struct host *host = host_new(KIB(1024));

	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_hello(host, ALL | AGENT_WANT_STALLS);
	wait_for(host, AGENT_RUNNING);
	return host;
}

static bool comes(struct host *host, uint8_t type)
{
	for (int i = 0; i < 5000 && !host_count(host, type); i++) {
		host_sleep(1);
		host_read(host);
	}
	return host_count(host, type) > 0;
}

/* Where CUPTI is left with sampling on, or a context that is being destroyed is touched, the
 * simulated one ends the process. */
static void test_sampling_is_off_before_cupti_is_left(void **state)
{
	pthread_t thread = start_working();
	struct host *host = sample();
	const struct agent_stall_window *window;

	if (host->shared->cupti_version < 27) { /* it cannot */
		assert_true(comes(host, AGENT_STALLS_TOLD));
	} else {
		assert_true(comes(host, AGENT_STALL_WINDOW));
		window = host_get(host, AGENT_STALL_WINDOW, 0);
		assert_in_range(window->end_ns - window->begin_ns, 20000000, 2000000000);
	}
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	end_working(thread);
	host_free(host);
}

static void test_a_context_can_be_destroyed_while_it_is_sampled(void **state)
{
	pthread_t thread = start_working();
	struct host *host = sample();
	uint64_t begin = host_now();

	while (host_now() - begin < 1500000000)
		work_other_context();
	host_read(host);
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	end_working(thread);
	host_free(host);
}

static void test_a_pause_is_not_measured(void **state)
{
	struct host *host = enter();
	uint64_t until;

	wait_for(host, AGENT_RUNNING);
	work_launch(1);
	work_sync();
	host_tell(host, AGENT_PAUSE);
	wait_for(host, AGENT_PAUSED);
	until = host->shared->active_until_ns;
	work_launch(2);
	work_sync();
	host_tell(host, AGENT_RUN);
	wait_for(host, AGENT_RUNNING);
	assert_true(host->shared->active_since_ns > until);
	work_launch(3);
	work_sync();
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 2);
	assert_int_equal(host_count(host, AGENT_CALL), 2);
	host_free(host);
}

static void test_a_pause_can_be_the_end(void **state)
{
	struct host *host = enter();

	wait_for(host, AGENT_RUNNING);
	host_tell(host, AGENT_PAUSE);
	wait_for(host, AGENT_PAUSED);
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	host_free(host);
}

/* A graph whose nodes were measured would go on writing where CUPTI was: see
 * enum agent_leftover. */
static void test_a_graph_that_comes_while_it_ends_keeps_cupti(void **state)
{
	struct host *host;

	work_graph(1);
	host = enter();
	wait_for(host, AGENT_RUNNING);
	host_tell(host, AGENT_STOP);
	if (host->shared->cupti_version >= 24) { /* older ones are not left anyway */
		wait_for(host, AGENT_ENDING);
		host_sleep(50); /* it waits for a call to end */
		work_graph_once();
	}
	wait_for(host, AGENT_OFF);
	assert_int_equal(host->shared->leftover, AGENT_LEFT_CUPTI);
	host_free(host);

	host = enter(); /* it can be entered again, and measures */
	wait_for(host, AGENT_RUNNING);
	work_launch(5);
	work_sync();
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 1);
	host_free(host);
}

static void test_when_cuscope_dies_all_is_turned_off(void **state)
{
	pthread_t thread = start_working();
	size_t threads = count_threads(), fds = count_fds();
	struct host *host = enter();
	uint64_t begin;

	wait_for(host, AGENT_RUNNING);
	begin = host_now();
	close(host->socket);
	host->socket = -1;
	assert_true(thread_is_gone(threads));
	assert_true(host_now() - begin < 1000000000);
	assert_int_equal(host->shared->state, AGENT_OFF);
	end_working(thread);
	host_free(host);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_mappings("memfd:ring"), 0);
}

static void test_when_cuscope_dies_before_it_said_anything_nothing_happens(void **state)
{
	size_t threads = count_threads(), fds = count_fds();
	struct host *host = host_new(KIB(64));

	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_free(host);
	assert_true(thread_is_gone(threads));
	assert_int_equal(count_fds(), fds);
}

static void test_a_second_cuscope_is_told_to_go(void **state)
{
	struct host *host = enter(), *second = host_new(KIB(64));

	wait_for(host, AGENT_RUNNING);
	assert_int_equal(cuscope_agent_enter(second->theirs), -EBUSY);
	host_free(second);
	assert_int_equal(host->shared->state, AGENT_RUNNING);
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	host_free(host);
}

static void test_one_that_comes_while_another_ends_waits(void **state)
{
	struct host *host = enter(), *next;
	int code;

	wait_for(host, AGENT_RUNNING);
	close(host->socket);
	host->socket = -1;
	next = host_new(KIB(256));
	while ((code = cuscope_agent_enter(next->theirs)) == -EBUSY) { /* not noticed yet */
		host_free(next);
		next = host_new(KIB(256));
		host_sleep(1);
	}
	assert_int_equal(code, 0);
	host_hello(next, ALL);
	wait_for(next, AGENT_RUNNING);
	host_tell(next, AGENT_STOP);
	wait_for(next, AGENT_OFF);
	host_free(next);
	host_free(host);
}

static size_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_a_thousand_rounds_leave_nothing_behind(void **state)
{
	const char *rounds = getenv("TEST_ROUNDS");
	int n = rounds ? atoi(rounds) : ROUNDS;
	pthread_t thread = start_working();
	size_t threads = count_threads(), fds = count_fds(), mappings = 0, memory = 0;

	for (int i = 0; i < n; i++) {
		struct host *host = enter();

		wait_for(host, AGENT_RUNNING);
		if (i % 3 == 0) { /* it dies */
			close(host->socket);
			host->socket = -1;
		} else {
			host_tell(host, AGENT_STOP);
		}
		wait_for(host, AGENT_OFF);
		host_free(host);
		assert_true(thread_is_gone(threads));
		if (i == n / 10) { /* what is made once is there */
			mappings = count_mappings("");
			memory = resident_bytes();
		}
	}
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_mappings("memfd:ring"), 0);
	/* Those of malloc and of threads come and go; one a round would be far more. */
	assert_true(count_mappings("") < mappings + (size_t)n / 4 + 8);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep what was freed */
	assert_true(resident_bytes() < memory + ((size_t)2 << 20) + (size_t)n * 1024);
#else
	assert_true(memory > 0);
#endif
	end_working(thread);
}

static void test_calls_that_began_before_are_not_told(void **state)
{
	struct host *host = enter();

	wait_for(host, AGENT_RUNNING);
	for (int i = 0; i < 10; i++)
		work_launch(1);
	work_sync();
	host_tell(host, AGENT_STOP);
	wait_for(host, AGENT_OFF);
	host_read(host);
	for (size_t i = 0; i < host_count(host, AGENT_CALL); i++) {
		const struct agent_call *call = host_get(host, AGENT_CALL, i);

		assert_true(call->begin_ns >= host->shared->active_since_ns);
		assert_true(call->begin_ns <= host->shared->active_until_ns);
	}
	assert_int_equal(host_count(host, AGENT_CALL), 10);
	host_free(host);
}

static void test_a_hello_of_another_version_is_refused(void **state)
{
	struct host *host = host_new(KIB(64));

	host->abi = AGENT_ABI + 1;
	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_hello(host, ALL);
	assert_int_equal(host_wait(host, AGENT_FAILED), AGENT_FAILED);
	assert_int_equal(host->shared->failure, AGENT_BAD_HELLO);
	host_free(host);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_program_at_work_is_left_at_one_of_its_calls),
		cmocka_unit_test(test_a_program_without_calls_is_left_as_well),
		cmocka_unit_test(test_sampling_is_off_before_cupti_is_left),
		cmocka_unit_test(test_a_context_can_be_destroyed_while_it_is_sampled),
		cmocka_unit_test(test_a_pause_is_not_measured),
		cmocka_unit_test(test_a_pause_can_be_the_end),
		cmocka_unit_test(test_when_cuscope_dies_all_is_turned_off),
		cmocka_unit_test(test_when_cuscope_dies_before_it_said_anything_nothing_happens),
		cmocka_unit_test(test_a_second_cuscope_is_told_to_go),
		cmocka_unit_test(test_one_that_comes_while_another_ends_waits),
		cmocka_unit_test(test_calls_that_began_before_are_not_told),
		cmocka_unit_test(test_a_hello_of_another_version_is_refused),
		cmocka_unit_test(test_a_thousand_rounds_leave_nothing_behind),
		cmocka_unit_test(test_a_graph_that_comes_while_it_ends_keeps_cupti), /* for good */
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("agent: leaving", tests, begin_work, NULL);
}
