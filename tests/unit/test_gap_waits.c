// SPDX-License-Identifier: MIT
/* What the host's time in gaps was made of: the parts of a gap, whose they were, and their sums. */
#include "stack_events.h"
#include "support.h"

#include <stdio.h>

#include "base/array.h"
#include "report/gaps/gap_waits.h"

#define THREAD 3

static struct gap_samples *samples;
static struct gap_waits waits;
static struct gap_whos *whos;
static size_t room = 1000;
static enum gap_wait most;
static uint64_t most_ns;

static int begin(void **state)
{
	(void)state;
	samples = gap_samples_new();
	whos = gap_whos_new();
	return 0;
}

static int end(void **state)
{
	(void)state;
	gap_samples_free(samples);
	gap_whos_free(whos);
	gap_waits_free(&waits);
	memset(&waits, 0, sizeof(waits));
	return 0;
}

/* Times are in microseconds. */
static void waited(double from, double to, enum wait_kind kind, const char *who)
{
	const struct gap_part part = { .end_ns = US(to),
		                       .ns = US(to) - US(from),
		                       .wait = kind,
		                       .who = gap_whos_number(whos, who, 77) };

	gap_samples_add_part(samples, THREAD, &part);
}

static void split_part(void *data, const struct gap_sampled *sampled)
{
	gap_split_add(data, sampled);
}

static void gap(double from, double to, double cuda_us)
{
	struct gap_split split = { .into = &waits,
		                   .room = &room,
		                   .ns = US(to) - US(from),
		                   .cuda_ns = (uint64_t)(cuda_us * 1000) };

	gap_samples_in(samples, THREAD, US(from), US(to), split_part, &split);
	most = gap_split_end(&split, split.ns, &most_ns);
}

static void assert_us(enum gap_wait wait, double us)
{
	assert_int_equal(waits.of[wait].ns, (uint64_t)(us * 1000));
}

static void assert_adds_up(void)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < GAP_WAITS; i++)
		ns += waits.of[i].ns;
	assert_int_equal(ns, waits.host_ns);
}

static void test_parts_of_a_gap_add_up(void **state)
{
	(void)state;
	waited(110, 150, WAIT_DISK, NULL);
	waited(150, 155, WAIT_CPU, "cc1");
	waited(160, 170, WAIT_LOCK, "loader");
	gap(100, 200, 12);
	assert_us(GAP_WAIT_DISK, 40);
	assert_us(GAP_WAIT_CPU, 5);
	assert_us(GAP_WAIT_LOCK, 10);
	assert_us(GAP_WAIT_DRIVER, 12);
	assert_us(GAP_WAIT_PROGRAM, 33);
	assert_int_equal(most, GAP_WAIT_DISK);
	assert_int_equal(most_ns, 40000);
	assert_adds_up();
}

static void test_waits_are_cut_at_the_borders_of_a_gap(void **state)
{
	(void)state;
	waited(50, 90, WAIT_SLEEP, NULL);     /* before it */
	waited(90, 120, WAIT_DISK, NULL);     /* into it */
	waited(180, 230, WAIT_NETWORK, NULL); /* out of it */
	waited(240, 250, WAIT_SLEEP, NULL);   /* after it */
	gap(100, 200, 0);
	assert_us(GAP_WAIT_DISK, 20);
	assert_us(GAP_WAIT_NETWORK, 20);
	assert_us(GAP_WAIT_SLEEP, 0);
	assert_us(GAP_WAIT_PROGRAM, 60);
	assert_adds_up();
	gap(200, 300, 0); /* what is cut off is of the next one */
	assert_us(GAP_WAIT_NETWORK, 50);
	assert_us(GAP_WAIT_SLEEP, 10);
	assert_adds_up();
}

static void test_a_wait_longer_than_the_gap_is_all_of_it(void **state)
{
	(void)state;
	waited(10, 900, WAIT_FAULT, NULL);
	gap(100, 200, 0);
	assert_us(GAP_WAIT_MEMORY, 100);
	assert_us(GAP_WAIT_PROGRAM, 0);
	assert_adds_up();
}

/* A call's own waits are the driver's: how it waits for the GPU is not the program's choice. */
static void test_waits_in_calls_are_the_drivers(void **state)
{
	(void)state;
	waited(110, 120, WAIT_LOCK, "event handler");
	gap_samples_call(samples, THREAD, US(105), US(130));
	waited(140, 150, WAIT_LOCK, "loader");
	gap(100, 200, 25);
	assert_us(GAP_WAIT_DRIVER, 25);
	assert_us(GAP_WAIT_LOCK, 10);
	assert_us(GAP_WAIT_PROGRAM, 65);
	assert_adds_up();
}

static void test_disks_and_cpus_count_in_calls_as_well(void **state)
{
	(void)state;
	waited(110, 120, WAIT_DISK, NULL); /* cuModuleLoad */
	waited(120, 124, WAIT_CPU, "cc1");
	gap_samples_call(samples, THREAD, US(105), US(130));
	gap(100, 200, 25);
	assert_us(GAP_WAIT_DISK, 10);
	assert_us(GAP_WAIT_CPU, 4);
	assert_us(GAP_WAIT_DRIVER, 11);
	assert_us(GAP_WAIT_PROGRAM, 75);
	assert_adds_up();
}

static void test_a_call_marks_what_ended_in_it_alone(void **state)
{
	(void)state;
	waited(100, 110, WAIT_LOCK, NULL);
	waited(120, 130, WAIT_LOCK, NULL);
	gap_samples_call(samples, THREAD, US(110), US(125));
	gap_samples_call(samples, THREAD + 1, US(0), US(1000)); /* of no thread that is known */
	gap(100, 200, 0);
	assert_us(GAP_WAIT_LOCK, 20);
}

/* As only a damaged trace has them. */
static void test_waits_that_overlap_are_no_more_than_the_gap(void **state)
{
	(void)state;
	waited(100, 190, WAIT_DISK, NULL);
	waited(100, 195, WAIT_NETWORK, NULL);
	waited(100, 199, WAIT_LOCK, NULL);
	gap(100, 200, 500);
	assert_int_equal(waits.host_ns, 100000);
	assert_adds_up();
}

/* Of what comes after its last wait nothing is known to be one. */
static void test_a_thread_that_ended_waits_no_more(void **state)
{
	(void)state;
	waited(110, 120, WAIT_PIPE, "loader");
	gap(100, 200, 0);
	gap(300, 400, 0);
	assert_us(GAP_WAIT_PROCESS, 10);
	assert_us(GAP_WAIT_PROGRAM, 190);
	assert_adds_up();
}

static void test_who_had_the_cpu_most_comes_first(void **state)
{
	struct gap_who_sum rows[2];
	uint64_t rest_ns;

	(void)state;
	waited(100, 110, WAIT_CPU, "cc1");
	waited(110, 150, WAIT_CPU, "make");
	waited(150, 162, WAIT_CPU, NULL);
	waited(165, 170, WAIT_CPU, "cc1");
	gap(100, 200, 0);
	assert_int_equal(gap_waits_who(&waits.of[GAP_WAIT_CPU], rows, 2, &rest_ns), 2);
	assert_string_equal(gap_whos_at(whos, rows[0].who)->name, "make");
	assert_int_equal(rows[0].ns, 40000);
	assert_int_equal(rows[1].ns, 15000);
	assert_int_equal(rest_ns, 12000);
	assert_int_equal(rows[0].count + rows[1].count, 3);
	assert_int_equal(gap_waits_who(&waits.of[GAP_WAIT_LOCK], rows, 2, &rest_ns), 0);
}

static void test_names_beyond_those_that_are_kept_are_others(void **state)
{
	char name[16];

	(void)state;
	for (unsigned i = 0; i < GAP_WHO_MOST + 10; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		gap_whos_number(whos, name, i);
	}
	assert_int_equal(gap_whos_number(whos, "name 0", 0), GAP_WHO_FIRST);
	assert_int_equal(gap_whos_number(whos, "another", 1), GAP_WHO_OTHERS);
	assert_string_equal(gap_whos_at(whos, GAP_WHO_OTHERS)->name, "(others)");
	assert_string_equal(gap_whos_at(whos, UINT32_MAX)->name, "(others)");
}

static void test_sums_move_with_all_they_have(void **state)
{
	struct gap_waits own;

	(void)state;
	waited(100, 150, WAIT_CPU, "cc1");
	waited(150, 160, WAIT_DISK, NULL);
	gap(100, 200, 0);
	own = waits;
	memset(&waits, 0, sizeof(waits));
	gap(100, 200, 0);
	gap_waits_move(&waits, &own, &room);
	assert_us(GAP_WAIT_CPU, 100);
	assert_us(GAP_WAIT_DISK, 20);
	assert_int_equal(waits.of[GAP_WAIT_CPU].count, 2);
	assert_int_equal(waits.of[GAP_WAIT_CPU].longest_ns, 50000);
	assert_int_equal(own.host_ns, 0);
	assert_adds_up();
}

static void test_each_kind_of_wait_has_its_part(void **state)
{
	(void)state;
	for (int i = 0; i < WAIT_COUNT; i++) {
		enum gap_wait wait = gap_wait_of((enum wait_kind)i);

		assert_true(wait > GAP_WAIT_PROGRAM && wait < GAP_WAITS);
		assert_true((wait == GAP_WAIT_UNKNOWN) == (i == WAIT_UNKNOWN));
		assert_non_null(gap_wait_name(wait));
		assert_non_null(gap_wait_text(wait));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_parts_of_a_gap_add_up),
		TEST(test_waits_are_cut_at_the_borders_of_a_gap),
		TEST(test_a_wait_longer_than_the_gap_is_all_of_it),
		TEST(test_waits_in_calls_are_the_drivers),
		TEST(test_disks_and_cpus_count_in_calls_as_well),
		TEST(test_a_call_marks_what_ended_in_it_alone),
		TEST(test_waits_that_overlap_are_no_more_than_the_gap),
		TEST(test_a_thread_that_ended_waits_no_more),
		TEST(test_who_had_the_cpu_most_comes_first),
		TEST(test_names_beyond_those_that_are_kept_are_others),
		TEST(test_sums_move_with_all_they_have),
		TEST(test_each_kind_of_wait_has_its_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
