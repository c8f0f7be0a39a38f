// SPDX-License-Identifier: MIT
/* The last part of a trace in memory that users share: who has most of it gives way. */
#include "trace_events.h"

#include "base/array.h"
#include "base/clock.h"

#define SECOND_US 1000000.0
#define ANN       1001
#define BOB       1002
#define EVE       1003

static int scratch = -1;
static struct consumer *writer;

static int open_scratch(void *data, const char **name, struct err *err)
{
	if (scratch >= 0)
		close(scratch);
	scratch = memory_file();
	*name = "scratch";
	return dup(scratch);
}

static void begin_window(uint64_t seconds, uint64_t bytes)
{
	const struct writer_window options = { .last_ns = seconds * 1000000000,
		                               .last_bytes = bytes,
		                               .shared = true,
		                               .open = open_scratch };

	writer = writer_new_window(&options);
}

static int end_window(void **state)
{
	writer->ops->free(writer);
	if (scratch >= 0)
		close(scratch);
	scratch = -1;
	return 0;
}

static const struct process *process_of(uint64_t person)
{
	static struct process processes[80];
	static uint32_t n;

	for (uint32_t i = 0; i < n; i++)
		if (processes[i].person == person)
			return &processes[i];
	assert_true(n < ARRAY_SIZE(processes));
	processes[n] = (struct process){ .id = n, .pid = 1 + n, .person = person };
	return &processes[n++];
}

/* A call that cannot be packed well, if it is to be large. */
static void put_call(uint64_t person, double at_us, bool large)
{
	static uint64_t random = 1;
	struct call call = call_at("cudaMalloc", at_us, 1);
	struct event event = { .type = EVENT_CALL,
		               .time_ns = call.end_ns,
		               .process = process_of(person),
		               .tid = 1,
		               .call = &call };
	struct err err = { 0 };

	for (size_t i = 0; i < 4 && large; i++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		call.args.arg[i] = random;
	}
	assert_int_equal(writer->ops->event(writer, &event, &err), 0);
}

/* So many calls of a user, evenly, in so many seconds from that one on. */
static void put_calls(uint64_t person, double from, double seconds, unsigned calls)
{
	for (unsigned i = 0; i < calls; i++)
		put_call(person, (from + seconds * i / calls) * SECOND_US, true);
}

static struct trace_file *snapshot(double second, struct keeper *keeper)
{
	struct run_info run = default_run_info();
	struct err err = { 0 };

	run.end_ns = US(second * SECOND_US);
	assert_int_equal(writer_snapshot(writer, &run, &err), 0);
	return read_list(scratch, NULL, keeper);
}

/* Calls of a user that are held, and the second of the first of them. */
static unsigned held_of(const struct keeper *keeper, uint64_t person, double *first)
{
	unsigned n = 0;

	for (size_t i = 0; i < keeper->list.count; i++) {
		const struct event *event = &keeper->list.at[i].event;

		if (event->process->person != person)
			continue;
		if (!n++)
			*first = (double)(event->time_ns - RUN_BEGIN_NS) / 1e9;
	}
	return n;
}

/* Two flood what holds a second of both at most; of the third all ten seconds are there. */
static void test_two_who_flood_take_nothing_of_a_third_ones_seconds(void **state)
{
	struct writer_left_out left[4];
	struct writer_stats stats;
	struct trace_file *file;
	struct keeper keeper;
	double first_eve, first;
	unsigned held;

	begin_window(10, 100000);
	for (unsigned second = 0; second < 30; second++) {
		for (unsigned part = 0; part < 10; part++) {
			put_calls(ANN, second + part / 10.0, 0.05, 300);
			put_call(EVE, (second + part / 10.0) * SECOND_US, false);
			put_calls(BOB, second + part / 10.0 + 0.05, 0.05, 300);
		}
	}
	file = snapshot(30, &keeper);
	assert_in_range(held_of(&keeper, EVE, &first_eve), 100, 110);
	assert_true(first_eve < 20.1);
	held = held_of(&keeper, ANN, &first);
	assert_true(held > 500 && first > 29 && first < 30);
	assert_in_range(held_of(&keeper, BOB, &first), held * 8 / 10, held * 12 / 10);
	writer_stats(writer, &stats);
	assert_in_range(stats.bytes, 90000, 100000);
	assert_in_range(stats.dropped_ns, US(19 * SECOND_US), US(20.2 * SECOND_US));
	assert_int_equal(writer_left_out(writer, left, ARRAY_SIZE(left)), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(left[0].person + left[1].person, ANN + BOB);
		assert_in_range(left[i].events, 27000, 30000 - 500);
		assert_in_range(left[i].until_ns, US(29 * SECOND_US), US(30 * SECOND_US));
	}
	assert_true(stats.left_out > left[0].events + left[1].events);
	trace_close(file);
	keeper_free(&keeper);
}

/* And nothing is told as left out: what is held of him begins later, as the file says. */
static void test_one_who_is_alone_has_all_of_it(void **state)
{
	struct writer_left_out left[1];
	struct writer_stats stats;
	struct trace_file *file;
	struct keeper keeper;
	double first;

	begin_window(10, 100000);
	for (unsigned second = 0; second < 20; second++)
		put_calls(ANN, second, 1, 3000);
	file = snapshot(20, &keeper);
	writer_stats(writer, &stats);
	assert_in_range(stats.bytes, 90000, 100000);
	assert_true(held_of(&keeper, ANN, &first) > 2000);
	assert_true(stats.dropped_ns > US(19 * SECOND_US));
	assert_int_equal(stats.left_out, 0);
	assert_int_equal(writer_left_out(writer, left, 1), 0);
	assert_int_equal(trace_run(file)->begin_ns, keeper.list.at[0].call.begin_ns);
	trace_close(file);
	keeper_free(&keeper);
}

/* What is held of him is all that he did since, without a hole. */
static void test_what_is_held_of_one_who_floods_is_whole_since_some_moment(void **state)
{
	struct writer_left_out left[1];
	struct trace_file *file;
	struct keeper keeper;
	double first_eve, first, from;
	unsigned held, all = 0;

	begin_window(10, 100000);
	for (unsigned second = 0; second < 15; second++)
		for (unsigned part = 0; part < 10; part++) {
			put_call(EVE, (second + part / 10.0) * SECOND_US, false);
			for (unsigned i = 0; i < 600; i++)
				put_call(ANN, (second + part / 10.0) * SECOND_US + 1000 + i * 100,
				         true);
		}
	file = snapshot(15, &keeper);
	held = held_of(&keeper, ANN, &first);
	held_of(&keeper, EVE, &first_eve);
	for (unsigned i = 0; i < 15 * 10 * 600; i++) {
		from = (i / 600 * 0.1 * SECOND_US + 1001 + i % 600 * 100) / SECOND_US;
		all += from >= first_eve;
		if (from < first - 0.00005)
			continue;
		assert_true(held > 0);
		held--;
	}
	assert_int_equal(held, 0);
	held = held_of(&keeper, ANN, &first);
	assert_int_equal(writer_left_out(writer, left, 1), 1);
	assert_int_equal(left[0].person, ANN);
	assert_in_range(left[0].events, all - held - 900, all - held + 900); /* a chunk */
	assert_true(left[0].until_ns < US(first * SECOND_US) + 1000);
	trace_close(file);
	keeper_free(&keeper);
}

/* When the one who was there alone is joined by another, that one's seconds grow to the window's.
 */
static void test_one_who_comes_later_gets_his_part(void **state)
{
	struct trace_file *file;
	struct keeper keeper;
	double first;

	begin_window(10, 100000);
	for (unsigned second = 0; second < 40; second++) {
		put_calls(ANN, second, 1, 6000);
		if (second >= 20)
			put_call(EVE, second * SECOND_US + 999999, false);
	}
	file = snapshot(40, &keeper);
	assert_in_range(held_of(&keeper, EVE, &first), 10, 11);
	trace_close(file);
	keeper_free(&keeper);
}

/* A chunk ends where it would be of more users than it can tell. */
static void test_any_number_of_users_share(void **state)
{
	struct trace_file *file;
	struct keeper keeper;
	double first;

	begin_window(10, 400000);
	for (unsigned second = 0; second < 12; second++)
		for (unsigned part = 0; part < 10; part++) {
			for (unsigned user = 0; user < 70; user++)
				put_call(2000 + user, (second + part / 10.0) * SECOND_US + user,
				         false);
			put_calls(ANN, second + part / 10.0 + 0.01, 0.05, 500);
		}
	file = snapshot(12, &keeper);
	for (unsigned user = 0; user < 70; user++)
		assert_in_range(held_of(&keeper, 2000 + user, &first), 100, 120);
	assert_in_range(held_of(&keeper, ANN, &first), 1000, 20000);
	trace_close(file);
	keeper_free(&keeper);
}

/* Calls of `most`, but every 5,000th, which is of `one`, at times that cannot be packed well. The
 * longest time that sixteen of them took, of a processor. */
static uint64_t flood(uint64_t most, uint64_t one, unsigned calls, double *at_us)
{
	uint64_t last_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID), longest_ns = 0, now_ns;
	static uint64_t random = 1;

	for (unsigned i = 1; i <= calls; i++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		put_call(i % 5000 ? most : one, *at_us += 1 + (double)(random >> 52) / 1000, false);
		if (i % 16)
			continue;
		now_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);
		longest_ns = now_ns - last_ns > longest_ns ? now_ns - last_ns : longest_ns;
		last_ns = now_ns;
	}
	return longest_ns;
}

/*
 * One user has an event in each of many chunks that are another's, and then comes to have most: all
 * of these would be unpacked and packed again for the one next chunk. Two users can make that.
 */
static void test_who_has_a_little_in_many_chunks_stops_nobody(void **state)
{
	struct writer_left_out left;
	struct writer_stats stats;
	struct trace_file *file;
	struct keeper keeper;
	uint64_t each_ns, longest_ns;
	double first, at_us = 0;
	unsigned n = 0;

	begin_window(600, 2 << 20);
	do {
		each_ns = flood(BOB, ANN, 100000, &at_us);
		writer_stats(writer, &stats);
	} while (++n < 100 && stats.bytes < (2 << 20) * 9 / 10);
	longest_ns = flood(ANN, ANN, n * 120000, &at_us);
	assert_true(longest_ns < 20 * each_ns + 5000000);
	file = snapshot(at_us / SECOND_US + 1, &keeper);
	assert_true(held_of(&keeper, ANN, &first) > 0);
	assert_in_range(writer_left_out(writer, &left, 1), 1, 2);
	assert_int_equal(left.person, ANN);
	assert_true(left.until_ns <= US(first * SECOND_US) + 1000);
	trace_close(file);
	keeper_free(&keeper);
}

/* Names of threads, which no window drops, have a bound of their own. */
static void test_so_many_threads_have_names_and_no_more(void **state)
{
	const struct thread thread = { .comm = "worker" };
	const struct writer_window options = { .last_bytes = 100000,
		                               .threads = 100,
		                               .open = open_scratch };
	struct writer_stats stats;
	struct trace_file *file;
	struct keeper keeper;
	struct err err = { 0 };

	writer = writer_new_window(&options);
	for (unsigned i = 0; i < 1000; i++) {
		struct event event = { .type = EVENT_THREAD,
			               .time_ns = US(i),
			               .process = process_of(i < 900 ? ANN : BOB),
			               .tid = i + 1,
			               .thread = &thread };

		assert_int_equal(writer->ops->event(writer, &event, &err), 0);
	}
	put_call(ANN, 2000, false);
	writer_stats(writer, &stats);
	assert_int_equal(stats.unnamed, 900);
	file = snapshot(1, &keeper);
	assert_int_equal(keeper.list.count, 101);
	trace_close(file);
	keeper_free(&keeper);
}

#define TEST(name) cmocka_unit_test_teardown(name, end_window)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_two_who_flood_take_nothing_of_a_third_ones_seconds),
		TEST(test_one_who_is_alone_has_all_of_it),
		TEST(test_what_is_held_of_one_who_floods_is_whole_since_some_moment),
		TEST(test_one_who_comes_later_gets_his_part),
		TEST(test_any_number_of_users_share),
		TEST(test_who_has_a_little_in_many_chunks_stops_nobody),
		TEST(test_so_many_threads_have_names_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
