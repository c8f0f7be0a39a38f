// SPDX-License-Identifier: MIT
/* The ring's producers, what is written once, and how CUPTI's records become ours. */
#include <pthread.h>

#include "agent/lib/activities.h"
#include "agent/lib/calls.h"
#include "agent/lib/clock.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/cupti_calls.h"
#include "agent/lib/intern.h"
#include "agent/lib/writer.h"
#include "host.h"

#define RING     ((uint64_t)1 << 20)
#define THREADS  4
#define PER_TURN 20000

static struct host *host;

static int open_ring(void **state)
{
	host = host_new(RING);
	assert_int_equal(writer_open(host->memfd), 0);
	assert_int_equal(activities_open(), 0);
	activities_configure(~0u, CUPTI_VERSION_13_0, 0);
	activities_clock_error(0);
	return 0;
}

static int close_ring(void **state)
{
	activities_close();
	assert_int_equal(writer_close(), 0);
	host_free(host);
	return 0;
}

/* ---- the ring ---- */

struct producer {
	pthread_t thread;
	uint32_t number;
	uint64_t written;
};

static void *produce(void *data)
{
	struct producer *producer = data;

	for (uint32_t i = 0; i < PER_TURN; i++) {
		struct {
			struct agent_call call;
			uint64_t words[3];
		} record = { .call.head = { .type = AGENT_CALL } };
		struct ring *ring = writer_hold(WRITER_OPEN);

		record.call.head.bytes = (uint32_t)(sizeof(record.call) + i % 4 * 8);
		record.call.arguments = i % 4;
		record.call.correlation = i;
		record.call.tid = producer->number;
		for (uint32_t j = 0; j < i % 4; j++)
			record.call.word[j] = ~(uint64_t)i;
		if (ring_put(ring, &record.call.head))
			producer->written++;
		writer_release();
	}
	return NULL;
}

static void test_producers_lose_nothing_but_what_they_count(void **state)
{
	struct producer producers[THREADS];
	uint32_t last[THREADS] = { 0 };
	uint64_t written = 0;

	for (uint32_t i = 0; i < THREADS; i++) {
		producers[i] = (struct producer){ .number = i };
		pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
	}
	for (int i = 0; i < 50; i++) {
		host_read(host);
		host_sleep(1);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(producers[i].thread, NULL);
		written += producers[i].written;
	}
	host_read(host);
	assert_int_equal(host->n_kept, written);
	assert_int_equal(written + host->shared->lost_ring, THREADS * PER_TURN);
	for (size_t i = 0; i < host->n_kept; i++) { /* each thread's own in order, and whole */
		const struct agent_call *call = (const void *)host->kept[i];

		assert_true(call->tid < THREADS);
		assert_true(!last[call->tid] || call->correlation > last[call->tid]);
		last[call->tid] = call->correlation;
		for (uint32_t j = 0; j < call->arguments; j++)
			assert_true(call->word[j] == ~(uint64_t)call->correlation);
	}
}

static void test_a_full_ring_is_used_again_once_it_was_read(void **state)
{
	struct agent_call record = { .head = { .bytes = sizeof(record), .type = AGENT_CALL } };
	struct ring *ring = writer_hold(WRITER_OPEN);
	uint64_t n = 0;

	while (ring_put(ring, &record.head))
		n++;
	assert_int_equal(n, RING / sizeof(record));
	assert_int_equal(host->shared->lost_ring, 1);
	assert_int_equal(host_read(host), n);
	assert_true(ring_put(ring, &record.head));
	assert_int_equal(host_read(host), 1);
	writer_release();
}

static void *close_later(void *data)
{
	host_sleep(20);
	writer_release(); /* of this thread's own hold */
	return NULL;
}

static void *hold_a_while(void *data)
{
	assert_non_null(writer_hold(WRITER_OPEN));
	__atomic_store_n((bool *)data, true, __ATOMIC_RELEASE);
	return close_later(NULL);
}

static void test_closing_waits_for_those_that_write(void **state)
{
	bool holding = false;
	pthread_t thread;
	uint64_t begin;

	pthread_create(&thread, NULL, hold_a_while, &holding);
	while (!__atomic_load_n(&holding, __ATOMIC_ACQUIRE))
		host_sleep(1);
	begin = host_now();
	assert_int_equal(writer_close(), 0);
	assert_true(host_now() - begin > 5000000);
	assert_null(writer_hold(WRITER_OPEN));
	pthread_join(thread, NULL);
}

static void test_a_memfd_that_is_no_ring_is_refused(void **state)
{
	struct host *odd = host_new(RING + 4096);
	struct host *small = host_new(32768);

	assert_int_equal(writer_close(), 0);
	assert_true(writer_open(odd->memfd) < 0);
	assert_true(writer_open(small->memfd) < 0);
	assert_true(writer_open(-1) < 0);
	host_free(odd);
	host_free(small);
}

/* ---- what is written once ---- */

static uint32_t last_number;

static uint32_t next_number(void)
{
	return ++last_number;
}

static struct cupti_kernel a_kernel(const char *name, int32_t grid)
{
	return (struct cupti_kernel){ .kind = CUPTI_KIND_KERNEL,
		                      .name = name,
		                      .grid = { grid, 1, 1 },
		                      .block = { 128, 1, 1 },
		                      .stream = 7 };
}

static void test_a_shape_is_told_once(void **state)
{
	struct intern *intern = intern_new(next_number);
	struct ring *ring = writer_hold(WRITER_OPEN);
	struct cupti_kernel one = a_kernel("one", 1), two = a_kernel("one", 2);
	uint32_t first = intern_shape(intern, ring, &one);

	assert_int_equal(intern_shape(intern, ring, &one), first);
	assert_int_not_equal(intern_shape(intern, ring, &two), first);
	host_read(host);
	assert_int_equal(host->names_said, 1);
	assert_int_equal(host->shapes_said, 2);
	assert_int_equal(host->shapes[first]->grid[0], 1);
	writer_release();
	intern_free(intern);
}

static void test_another_name_at_the_same_place_is_another_shape(void **state)
{
	struct intern *intern = intern_new(next_number);
	struct ring *ring = writer_hold(WRITER_OPEN);
	char name[] = "first";
	struct cupti_kernel kernel = a_kernel(name, 1);
	uint32_t number;

	intern_shape(intern, ring, &kernel);
	memcpy(name, "other", sizeof(name)); /* a module was unloaded, and another loaded */
	number = intern_shape(intern, ring, &kernel);
	host_read(host);
	assert_string_equal(host->names[host->shapes[number]->name], "other");
	writer_release();
	intern_free(intern);
}

static void test_names_without_end_do_not_fill_memory(void **state)
{
	struct intern *intern = intern_new(next_number);
	struct ring *ring = writer_hold(WRITER_OPEN);
	char name[64];

	for (int i = 0; i < 100000; i++) {
		struct cupti_kernel kernel = a_kernel(name, i % 100);
		uint32_t number;

		last_number = (uint32_t)i % (HOST_NAMES - 1); /* the reader's table is small */
		snprintf(name, sizeof(name), "kernel_%d_of_very_many", i);
		number = intern_shape(intern, ring, &kernel);
		assert_int_not_equal(number, 0);
		assert_int_not_equal(intern_lane(intern, ring, 0, 1, (uint32_t)i), 0);
		if (i % 1000 == 0) {
			host_read(host);
			assert_string_equal(host->names[host->shapes[number]->name], name);
		}
	}
	writer_release();
	intern_free(intern);
}

static void test_a_name_of_any_length_fits(void **state)
{
	struct intern *intern = intern_new(next_number);
	struct ring *ring = writer_hold(WRITER_OPEN);
	char *name = malloc(100001);
	struct cupti_kernel kernel;
	uint32_t number;

	memset(name, 'k', 100000);
	name[100000] = '\0';
	kernel = a_kernel(name, 1);
	number = intern_shape(intern, ring, &kernel);
	assert_int_equal(intern_shape(intern, ring, &kernel), number);
	host_read(host);
	assert_int_equal(strlen(host->names[host->shapes[number]->name]), 4000);
	assert_int_equal(host->shapes_said, 1);
	writer_release();
	intern_free(intern);
	free(name);
}

static void test_what_a_full_ring_did_not_take_is_told_again(void **state)
{
	struct agent_call filler = { .head = { .bytes = sizeof(filler), .type = AGENT_CALL } };
	struct intern *intern = intern_new(next_number);
	struct ring *ring = writer_hold(WRITER_OPEN);
	struct cupti_kernel kernel = a_kernel("late", 1);
	uint32_t number;

	while (ring_try(ring, &filler.head))
		;
	assert_int_equal(intern_shape(intern, ring, &kernel), 0);
	assert_int_equal(intern_lane(intern, ring, 0, 1, 7), 0);
	host_read(host);
	number = intern_shape(intern, ring, &kernel);
	assert_int_not_equal(number, 0);
	assert_int_not_equal(intern_lane(intern, ring, 0, 1, 7), 0);
	host_read(host);
	assert_string_equal(host->names[host->shapes[number]->name], "late");
	writer_release();
	intern_free(intern);
}

/* ---- records ---- */

static struct cupti_kernel buffer[8];

static uint32_t next_of_buffer(uint8_t *from, size_t valid, struct cupti_record **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + sizeof(*buffer) : from;

	if (next >= from + valid)
		return CUPTI_MAX_LIMIT_REACHED;
	*record = (struct cupti_record *)next;
	return CUPTI_OK;
}

static void write_buffer(size_t n)
{
	activities_write((uint8_t *)buffer, n * sizeof(*buffer), next_of_buffer);
	host_read(host);
}

static void test_impossible_times_are_counted_and_left_out(void **state)
{
	uint64_t now = host_now();
	const uint64_t times[][2] = {
		{ 0, 0 },
		{ now - 1000, 0 },
		{ now - 1000, now - 2000 },
		{ now - 5000000000, now - 4000000000 }, /* before it began to measure */
		{ now, now + 60000000000 },             /* in the future */
		{ now - 1000, now - 500 },              /* right */
	};

	writer_measure(AGENT_WANT_KERNELS);
	host->shared->active_since_ns = now - 1000000000;
	activities_configure(~0u, CUPTI_VERSION_13_0, now - 1000000000);
	for (size_t i = 0; i < 6; i++) {
		buffer[i] = a_kernel("k", 1);
		buffer[i].start = times[i][0];
		buffer[i].end = times[i][1];
	}
	write_buffer(6);
	assert_int_equal(host->shared->lost_times, 5);
	assert_int_equal(host->shared->activities, 1);
	assert_int_equal(host_count(host, AGENT_KERNEL), 1);
}

static void test_the_clocks_error_is_allowed_for(void **state)
{
	uint64_t now = host_now();

	host->shared->active_since_ns = now - 1000;
	activities_configure(~0u, CUPTI_VERSION_13_0, now - 1000);
	buffer[0] = a_kernel("k", 1);
	buffer[0].start = now - 5000;
	buffer[0].end = now;
	write_buffer(1);
	activities_clock_error(10000);
	write_buffer(1);
	assert_int_equal(host->shared->lost_times, 1);
	assert_int_equal(host->shared->activities, 1);
}

static void test_work_from_before_calls_are_told_is_no_error(void **state)
{
	uint64_t now = host_now();

	host->shared->active_since_ns = now - 1000;
	activities_configure(~0u, CUPTI_VERSION_13_0, now - 5000);
	buffer[0] = a_kernel("between", 1);
	buffer[0].start = now - 3000;
	buffer[0].end = now;
	write_buffer(1);
	assert_int_equal(host->shared->lost_times, 0);
	assert_int_equal(host->shared->activities, 0);
}

static void test_work_unfinished_at_the_end_or_later_is_no_error(void **state)
{
	uint64_t now = host_now();

	host->shared->active_since_ns = now - 10000;
	host->shared->active_until_ns = now - 1000;
	buffer[0] = a_kernel("unfinished", 1); /* times 0 */
	buffer[1] = a_kernel("later", 1);
	buffer[1].start = now - 500;
	buffer[1].end = now;
	write_buffer(2);
	assert_int_equal(host->shared->lost_times, 0);
	assert_int_equal(host->shared->activities, 0);
}

static void test_kinds_that_nobody_asked_for_are_counted(void **state)
{
	activities_configure(AGENT_WANT_COPIES, CUPTI_VERSION_13_0, 0);
	buffer[0] = a_kernel("k", 1);
	buffer[1].kind = 12345;
	write_buffer(2);
	assert_int_equal(host->shared->unknown, 2);
	assert_int_equal(host->n_kept, 0);
}

static void test_a_kernel_of_five_seconds_keeps_its_end(void **state)
{
	const struct agent_kernel_long *kernel;
	uint64_t now = host_now();

	host->shared->active_since_ns = 1;
	buffer[0] = a_kernel("long", 1);
	buffer[0].start = now - 5000000000;
	buffer[0].end = now;
	write_buffer(1);
	kernel = host_get(host, AGENT_KERNEL, 0);
	assert_int_equal(kernel->kernel.head.flags, AGENT_KERNEL_LONG);
	assert_int_equal(kernel->end_ns - kernel->kernel.begin_ns, 5000000000);
}

static void test_a_graph_is_told_only_where_records_have_it(void **state)
{
	uint64_t now = host_now();

	host->shared->active_since_ns = 1;
	for (int i = 0; i < 2; i++) {
		const struct agent_kernel_long *kernel;

		activities_configure(~0u, i ? CUPTI_VERSION_GRAPH_ID : CUPTI_VERSION_11_0, 0);
		buffer[0] = a_kernel("node", 1);
		buffer[0].start = now - 10;
		buffer[0].end = now;
		buffer[0].graph_node = 77;
		buffer[0].graph = 5;
		write_buffer(1);
		kernel = host_get(host, AGENT_KERNEL, (size_t)i);
		assert_int_equal(kernel->graph_node, 77);
		assert_int_equal(kernel->graph, i ? 5 : 0);
	}
}

/* ---- the clock ---- */

static int64_t clock_ahead;

static uint32_t read_clock(uint64_t *ns)
{
	*ns = host_now() + (uint64_t)clock_ahead;
	return CUPTI_OK;
}

static uint32_t read_nothing(uint64_t *ns)
{
	return CUPTI_UNKNOWN;
}

static void test_another_clock_is_compared_and_its_drift_is_an_error(void **state)
{
	uint64_t error, now;

	clock_shared();
	clock_ahead = 1700000000000000000;
	error = clock_compare(read_clock);
	assert_in_range(error, 1, 1000000);
	now = host_now();
	assert_true(clock_converted(now + (uint64_t)clock_ahead) - now + error <= 2 * error);
	clock_ahead += 5000000;
	assert_true(clock_compare(read_clock) >= 5000000 - error);
	assert_int_equal(clock_converted(0), 0);
	assert_true(clock_compare(read_nothing) == UINT64_MAX);
	clock_shared();
	assert_true(clock_converted(now) == now);
}

/* ---- calls ---- */

static void call_at(uint32_t site, uint32_t correlation)
{
	const struct cupti_callback_data data = { .site = site, .correlation = correlation };

	calls_callback(CUPTI_DOMAIN_DRIVER, CUPTI_ID_cuLaunchKernel, &data, false);
}

static void test_correlations_may_come_again_after_a_pause(void **state)
{
	calls_prepare();
	writer_measure(AGENT_WANT_KERNELS);
	call_at(CUPTI_ENTER, 17); /* its end is not seen */
	calls_prepare();
	host->shared->active_since_ns = clock_now();
	call_at(CUPTI_ENTER, 17);
	call_at(CUPTI_EXIT, 17);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_CALL), 1);
}

#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RING(test_producers_lose_nothing_but_what_they_count),
		WITH_RING(test_a_full_ring_is_used_again_once_it_was_read),
		WITH_RING(test_closing_waits_for_those_that_write),
		WITH_RING(test_a_memfd_that_is_no_ring_is_refused),
		WITH_RING(test_a_shape_is_told_once),
		WITH_RING(test_another_name_at_the_same_place_is_another_shape),
		WITH_RING(test_names_without_end_do_not_fill_memory),
		WITH_RING(test_a_name_of_any_length_fits),
		WITH_RING(test_what_a_full_ring_did_not_take_is_told_again),
		WITH_RING(test_impossible_times_are_counted_and_left_out),
		WITH_RING(test_the_clocks_error_is_allowed_for),
		WITH_RING(test_work_from_before_calls_are_told_is_no_error),
		WITH_RING(test_work_unfinished_at_the_end_or_later_is_no_error),
		WITH_RING(test_kinds_that_nobody_asked_for_are_counted),
		WITH_RING(test_a_kernel_of_five_seconds_keeps_its_end),
		WITH_RING(test_a_graph_is_told_only_where_records_have_it),
		WITH_RING(test_correlations_may_come_again_after_a_pause),
		WITH_RING(test_another_clock_is_compared_and_its_drift_is_an_error),
	};

	return cmocka_run_group_tests_name("agent: records", tests, NULL, NULL);
}
