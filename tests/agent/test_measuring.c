// SPDX-License-Identifier: MIT
/* What the agent writes of a process's work, in that process, on the simulated libcupti. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "host.h"
#include "work.h"

#define ALL    (AGENT_WANT_KERNELS | AGENT_WANT_COPIES | AGENT_WANT_SETS)
#define MIB(n) ((uint64_t)(n) << 20)

int cuscope_agent_enter(int socket);

static int begin_work(void **state)
{
	work_begin();
	return 0;
}

/* An agent that measures. */
static struct host *measure(uint32_t kinds)
{
	struct host *host = host_new(MIB(1));

	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_hello(host, kinds);
	if (host_wait(host, AGENT_RUNNING) != AGENT_RUNNING)
		fail_msg("state %u, failure %u, code %d: %s", host->shared->state,
		         host->shared->failure, host->shared->code, host->shared->text);
	return host;
}

/* Beside other tools, as from CUDA 13.3 on. */
static bool is_shared(const struct host *host)
{
	return host->shared->cupti_version >= 130300 && !getenv("SIMCUPTI_OLD_DRIVER");
}

/* Tells it to leave, and reads what there was. Calls go on meanwhile. */
static void finish_within(struct host *host, int ms)
{
	host_tell(host, AGENT_STOP);
	for (int i = 0; i < ms && host->shared->state != AGENT_OFF; i++) {
		work_query();
		host_sleep(1);
	}
	assert_int_equal(host->shared->state, AGENT_OFF);
	host_read(host);
}

static void finish(struct host *host)
{
	finish_within(host, 2000);
}

/* ---- kernels ---- */

static void test_every_kernel_has_its_call_name_and_shape(void **state)
{
	struct host *host = measure(ALL);
	uint64_t begin = host_now();

	for (uint32_t i = 1; i <= 100; i++)
		work_launch(i);
	work_sync();
	finish(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 100);
	assert_int_equal(host_count(host, AGENT_CALL), 100);
	for (size_t i = 0; i < 100; i++) {
		const struct agent_kernel *kernel = host_get(host, AGENT_KERNEL, i);
		const struct agent_call *call = host_call(host, kernel->correlation);
		const struct agent_shape *shape = host->shapes[kernel->shape];

		assert_non_null(call);
		assert_string_equal(host_kernel_name(host, kernel), WORK_KERNEL);
		assert_string_equal(host->names[call->name], "cuLaunchKernel");
		assert_int_equal(shape->grid[0], i + 1);
		assert_int_equal(shape->block[0], 128);
		assert_int_equal(call->tid, gettid());
		assert_true(call->begin_ns >= begin && call->end_ns >= call->begin_ns);
		assert_true(kernel->begin_ns + host->shared->clock_error_ns >= call->begin_ns);
		assert_true(kernel->begin_ns + kernel->duration_ns <= host_now());
		assert_int_not_equal(host->lanes[kernel->head.lane].stream, 0);
	}
	assert_int_equal(host->shared->activities, 100);
	assert_int_equal(host->shared->lost_times, 0);
	/* CUDA 11.6 is the first whose CUPTI takes its times from our clock, unless it is shared.
	 */
	if (host->shared->cupti_version >= 17 && !is_shared(host))
		assert_int_equal(host->shared->clock_error_ns, 0);
	else
		assert_in_range(host->shared->clock_error_ns, 1, 100000);
	host_free(host);
}

static void test_a_kernel_is_32_bytes_and_its_name_is_said_once(void **state)
{
	struct host *host = measure(AGENT_WANT_KERNELS);
	const struct agent_kernel *kernel;

	for (int i = 0; i < 1000; i++)
		work_launch(8);
	work_sync();
	finish(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 1000);
	kernel = host_get(host, AGENT_KERNEL, 999);
	assert_int_equal(kernel->head.bytes, 32);
	assert_int_equal(host->names_said, 2); /* the kernel's, and cuLaunchKernel */
	assert_int_equal(host->shapes_said, 1);
	host_free(host);
}

static void test_arguments_come_where_they_were_asked_for(void **state)
{
	struct host *host = measure(ALL | AGENT_WANT_ARGUMENTS);
	const struct agent_call *call;

	work_launch(5);
	work_set(77);
	work_sync();
	finish(host);
	call = host_get(host, AGENT_CALL, 0);
	assert_int_equal(call->arguments, 11);
	assert_int_equal(call->blob, 0);
	assert_int_equal(call->word[1], 5);
	assert_int_equal(call->word[4], 128);
	call = host_get(host, AGENT_CALL, host_count(host, AGENT_CALL) - 1);
	assert_string_equal(host->names[call->name], "cuMemsetD8Async");
	assert_int_equal(call->arguments, 4);
	assert_int_equal(call->word[1], 7);
	assert_int_equal(call->word[2], 77);
	host_free(host);
}

static void test_a_launch_by_a_struct_carries_the_struct(void **state)
{
	struct host *host = measure(ALL | AGENT_WANT_ARGUMENTS);
	const struct agent_call *call;

	work_launch_ex(6);
	work_sync();
	finish(host);
	if (host->shared->cupti_version >= 18) { /* CUDA 11.8 brought the function */
		call = host_get(host, AGENT_CALL, 0);
		assert_string_equal(host->names[call->name], "cuLaunchKernelEx");
		assert_int_equal(call->arguments, 4);
		assert_int_equal(call->blob, 7);
		assert_int_equal(call->head.flags, AGENT_CALL_BLOB);
		assert_int_equal((uint32_t)call->word[4], 6);
		assert_int_equal(call->word[5] >> 32, 64);
	}
	host_free(host);
}

static void test_calls_come_without_arguments_otherwise(void **state)
{
	struct host *host = measure(ALL);
	const struct agent_call *call;

	work_launch(5);
	work_sync();
	finish(host);
	call = host_get(host, AGENT_CALL, 0);
	assert_int_equal(call->arguments + call->blob, 0);
	assert_int_equal(call->head.bytes, sizeof(*call));
	host_free(host);
}

/* ---- copies, sets, graphs ---- */

static void test_copies_and_sets_tell_their_bytes(void **state)
{
	struct host *host = measure(ALL);
	const struct agent_copy *copy, *set;

	work_copy(1000);
	work_set(500);
	work_sync();
	finish(host);
	copy = host_get(host, AGENT_COPY, 0);
	set = host_get(host, AGENT_SET, 0);
	assert_int_equal(copy->bytes, 1000);
	assert_int_equal(copy->kind, 1);        /* to the device */
	assert_int_equal(copy->source, 1);      /* pageable */
	assert_int_equal(copy->destination, 3); /* the device's */
	assert_int_equal(set->bytes, 500);
	assert_int_equal(set->destination, 3);
	assert_string_equal(host->names[host_call(host, copy->correlation)->name],
	                    "cuMemcpyHtoD_v2");
	assert_string_equal(host->names[host_call(host, set->correlation)->name],
	                    "cuMemsetD8Async");
	host_free(host);
}

static void test_a_call_of_the_runtime_is_told_once(void **state)
{
	struct host *host;
	const struct agent_copy *copy;
	const struct agent_call *call;

	work_runtime();
	work_runtime_copy(8); /* it makes itself ready at the first */
	host = measure(ALL);
	work_runtime_copy(300);
	work_sync();
	finish(host);
	assert_int_equal(host_count(host, AGENT_CALL), 1);
	copy = host_get(host, AGENT_COPY, 0);
	call = host_call(host, copy->correlation);
	assert_string_equal(host->names[call->name], "cudaMemcpy");
	assert_int_equal(call->head.flags, AGENT_CALL_RUNTIME);
	host_free(host);
}

static void test_a_graph_has_its_nodes_under_one_call(void **state)
{
	struct host *host;
	const struct agent_kernel_long *first, *second;

	work_graph(1);
	host = measure(ALL);
	work_graph(1);
	finish(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 2);
	first = host_get(host, AGENT_KERNEL, 0);
	second = host_get(host, AGENT_KERNEL, 1);
	assert_int_equal(first->kernel.head.flags, AGENT_KERNEL_LONG);
	assert_true(first->end_ns >= first->kernel.begin_ns);
	assert_int_not_equal(first->graph_node, 0);
	assert_int_not_equal(first->graph_node, second->graph_node);
	assert_int_equal(first->kernel.correlation, second->kernel.correlation);
	assert_string_equal(host->names[host_call(host, first->kernel.correlation)->name],
	                    "cuGraphLaunch");
	host_free(host);
}

/* That one crashes the real CUPTI where the graph is older than the agent. */
static void test_a_graph_as_a_whole_is_not_asked_for_late(void **state)
{
	struct host *host;

	work_graph(1);
	host = measure(AGENT_WANT_GRAPHS);
	work_graph(3);
	finish(host);
	assert_int_equal(host->shared->nodes_instead, 1);
	assert_int_equal(host_count(host, AGENT_GRAPH), 0);
	assert_int_equal(host_count(host, AGENT_KERNEL), 6);
	host_free(host);
}

/* It would write to memory that CUPTI gave back: see enum agent_leftover. */
static void test_cupti_stays_once_a_graph_was_measured(void **state)
{
	struct host *host = measure(ALL);

	work_graph(1);
	finish(host);
	assert_int_equal(host->shared->leftover,
	                 is_shared(host) ? AGENT_LEFT_SHARED : AGENT_LEFT_CUPTI);
	host_free(host);
	work_graph(2);
	host = measure(ALL); /* and can be asked again */
	work_launch(1);
	work_sync();
	finish(host);
	assert_int_equal(host->shared->leftover,
	                 is_shared(host) ? AGENT_LEFT_SHARED : AGENT_LEFT_CUPTI);
	assert_int_equal(host_count(host, AGENT_KERNEL), 1);
	host_free(host);
}

static void test_waits_come_where_they_were_asked_for(void **state)
{
	struct host *host = measure(ALL | AGENT_WANT_SYNC);
	const struct agent_wait *wait;

	work_launch(1);
	work_sync();
	finish(host);
	assert_true(host_count(host, AGENT_SYNC) >= 1);
	wait = host_get(host, AGENT_SYNC, 0);
	assert_int_equal(wait->kind, 4); /* for the context */
	assert_true(wait->end_ns >= wait->begin_ns);
	host_free(host);
}

static void test_only_what_was_asked_for_comes(void **state)
{
	struct host *host = measure(AGENT_WANT_COPIES);

	work_launch(1);
	work_set(10);
	work_copy(10);
	work_sync();
	finish(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 0);
	assert_int_equal(host_count(host, AGENT_SET), 0);
	assert_int_equal(host_count(host, AGENT_COPY), 1);
	assert_int_equal(host_count(host, AGENT_CALL), 1);
	host_free(host);
}

/* ---- how they come ---- */

static void test_records_come_while_it_runs(void **state)
{
	struct host *host = measure(ALL);
	size_t seen = 0;

	for (int i = 0; i < 200 && seen < 10; i++) {
		work_launch(1);
		work_sync();
		host_sleep(2);
		host_read(host);
		seen = host_count(host, AGENT_KERNEL);
	}
	assert_true(seen >= 10); /* nobody told it to stop */
	finish(host);
	host_free(host);
}

static void test_a_full_ring_loses_and_counts(void **state)
{
	struct host *host = host_new(65536);

	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_hello(host, ALL);
	assert_int_equal(host_wait(host, AGENT_RUNNING), AGENT_RUNNING);
	for (uint32_t i = 0; i < 3000; i++)
		work_launch(1);
	work_sync();
	finish(host);
	assert_true(host->shared->lost_ring > 0);
	assert_int_equal(host_count(host, AGENT_KERNEL) + host_count(host, AGENT_CALL) +
	                         host->shared->lost_ring,
	                 6000);
	host_free(host);
}

/* CUPTI holds all there are: one before 12.9 ends the program where it is given none. */
static void test_a_cupti_that_holds_all_buffers_loses_what_is_counted(void **state)
{
	enum { LAUNCHES = 100000 };
	struct host *host;
	uint64_t begin, launched;

	if (!getenv("TEST_HOLDS"))
		skip();
	host = measure(AGENT_WANT_KERNELS);
	begin = host_now();
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		work_launch(i % 50 + 1);
		if (!(i % 1000))
			host_read(host);
	}
	launched = host_now();
	work_sync();
	finish_within(host, 20000);
	if (launched - begin < 900000000u) /* half of them come back after 1 s, a quarter of 4 */
		assert_true(host->shared->lost_buffers > 0);
	/* how many there were in a buffer that nobody reads is told by its bytes */
	assert_in_range(host->shared->lost_buffers + host->shared->lost_ring +
	                        host_count(host, AGENT_KERNEL),
	                LAUNCHES * 9 / 10, LAUNCHES + 300);
	host_free(host);
}

static void *launch_many(void *data)
{
	work_thread();
	for (int i = 0; i < 2000; i++)
		work_launch((uint32_t)(i % 50 + 1));
	return NULL;
}

static void test_threads_do_not_disturb_each_other(void **state)
{
	struct host *host = host_new(MIB(4));
	pthread_t threads[4];

	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_hello(host, ALL | AGENT_WANT_ARGUMENTS);
	assert_int_equal(host_wait(host, AGENT_RUNNING), AGENT_RUNNING);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, launch_many, NULL);
	for (int i = 0; i < 200; i++) {
		host_read(host);
		host_sleep(1);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	work_sync();
	finish(host);
	assert_int_equal(host->shared->lost_ring + host->shared->lost_buffers, 0);
	assert_int_equal(host_count(host, AGENT_KERNEL), 8000);
	assert_int_equal(host_count(host, AGENT_CALL), 8000);
	assert_int_equal(host->names_said + host->shapes_said < 60, 1);
	host_free(host);
}

static void test_a_given_libcupti_is_the_one_in_use(void **state)
{
	struct host *host = measure(ALL);
	const char *path = getenv("TEST_LIBCUPTI");
	char real[PATH_MAX] = "";

	if (path)
		assert_non_null(realpath(path, real));
	assert_int_equal(strcmp(host->shared->cupti_path, real) == 0, path != NULL);
	assert_true(host->shared->cupti_version >= 13);
	finish(host);
	host_free(host);
}

/* Another tool that shares CUPTI with us has all kernels: before us, beside us, after us. */
static void test_another_tool_goes_on(void **state)
{
	struct host *host = measure(AGENT_WANT_KERNELS);
	void *cupti = dlopen(host->shared->cupti_path, RTLD_NOW | RTLD_NOLOAD);
	unsigned long (*others)(void);

	assert_non_null(cupti);
	others = (unsigned long (*)(void))dlsym(cupti, "cuptiOtherKernels");
	assert_non_null(others);
	work_launch(1);
	work_sync();
	assert_int_equal(others(), 1);
	finish(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 1);
	assert_int_equal(host->shared->leftover, AGENT_LEFT_SHARED);
	host_free(host);
	work_launch(2);
	work_sync();
	assert_int_equal(others(), 2);
	host = measure(AGENT_WANT_KERNELS);
	work_launch(1);
	work_sync();
	finish(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), 1);
	assert_int_equal(others(), 3);
	host_free(host);
	dlclose(cupti);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest beside[] = {
		cmocka_unit_test(test_another_tool_goes_on), /* it counts from the begin */
		cmocka_unit_test(test_every_kernel_has_its_call_name_and_shape),
		cmocka_unit_test(test_threads_do_not_disturb_each_other),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_given_libcupti_is_the_one_in_use), /* it stays: the first */
		cmocka_unit_test(test_every_kernel_has_its_call_name_and_shape),
		cmocka_unit_test(test_a_kernel_is_32_bytes_and_its_name_is_said_once),
		cmocka_unit_test(test_arguments_come_where_they_were_asked_for),
		cmocka_unit_test(test_a_launch_by_a_struct_carries_the_struct),
		cmocka_unit_test(test_calls_come_without_arguments_otherwise),
		cmocka_unit_test(test_copies_and_sets_tell_their_bytes),
		cmocka_unit_test(test_a_call_of_the_runtime_is_told_once),
		cmocka_unit_test(test_a_graph_has_its_nodes_under_one_call),
		cmocka_unit_test(test_a_graph_as_a_whole_is_not_asked_for_late),
		cmocka_unit_test(test_cupti_stays_once_a_graph_was_measured),
		cmocka_unit_test(test_waits_come_where_they_were_asked_for),
		cmocka_unit_test(test_only_what_was_asked_for_comes),
		cmocka_unit_test(test_records_come_while_it_runs),
		cmocka_unit_test(test_a_full_ring_loses_and_counts),
		cmocka_unit_test(test_a_cupti_that_holds_all_buffers_loses_what_is_counted),
		cmocka_unit_test(test_threads_do_not_disturb_each_other),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (getenv("SIMCUPTI_OTHER"))
		return cmocka_run_group_tests_name("agent: beside another tool", beside, begin_work,
		                                   NULL);
	return cmocka_run_group_tests_name("agent: measuring", tests, begin_work, NULL);
}
