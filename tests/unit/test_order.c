// SPDX-License-Identifier: MIT
/* Times are in microseconds; the window in which order is put right is a millisecond. */
#include "fake_ring.h"

#include <time.h>

#include "base/array.h"
#include "capture/order.h"

#define RINGS 3
#define NOW   1000000 /* later than all records of a test */
#define US(n) ((uint64_t)(n)*1000)

/* What came out: the numbers of the records, with spaces between. */
struct out {
	char text[4096];
	size_t len, count;
	uint64_t last_ns;
	int stop_at; /* this many records are taken, then -5 is returned; 0: all */
	const struct fake_ring *watched;
	unsigned long read_at_first; /* what had been read of it when the first record came out */
};

struct fixture {
	struct fake_ring fake[RINGS];
	struct rings *rings;
	struct order *order;
	struct out out;
};

static int take(void *data, const struct wire_head *record)
{
	struct out *out = data;

	if (!out->count++ && out->watched)
		out->read_at_first = *fake_ring_consumer(out->watched);
	out->last_ns = record->time_ns;
	if (out->len < sizeof(out->text) - 16)
		out->len += (size_t)snprintf(out->text + out->len, 16, "%s%u", out->len ? " " : "",
		                             record->tid);
	return out->stop_at && out->count == (size_t)out->stop_at ? -5 : 0;
}

static int make(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->rings = rings_new();
	for (size_t i = 0; i < RINGS; i++) {
		fake_ring_open(&f->fake[i]);
		rings_add(f->rings, f->fake[i].ring);
	}
	f->order = order_new(take, &f->out);
	*state = f;
	return 0;
}

static int destroy(void **state)
{
	struct fixture *f = *state;

	order_free(f->order);
	rings_free(f->rings);
	for (size_t i = 0; i < RINGS; i++)
		fake_ring_close(&f->fake[i]);
	free(f);
	return 0;
}

static void put(struct fixture *f, size_t ring, uint64_t time_us, uint32_t number)
{
	fake_ring_put(&f->fake[ring], US(time_us), number);
}

static int read_until(struct fixture *f, uint64_t time_us)
{
	return order_read(f->order, f->rings, US(time_us));
}

static void assert_came(struct fixture *f, const char *numbers)
{
	assert_string_equal(f->out.text, numbers);
}

static void test_what_a_read_has_no_time_for_comes_with_the_next(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 1; i <= 4; i++)
		put(f, i % 2, 10 * i, i);
	order_limit(f->order, 1); /* ns */
	assert_int_equal(read_until(f, NOW), 0);
	assert_came(f, "1");
	assert_true(order_was_limited(f->order));
	assert_true(order_passed_ns(f->order) <= US(10));
	assert_int_equal(read_until(f, NOW), 0);
	assert_came(f, "1 2");
	order_limit(f->order, 0);
	assert_int_equal(read_until(f, NOW), 0);
	assert_came(f, "1 2 3 4");
	assert_false(order_was_limited(f->order));
	order_limit(f->order, 1);
	put(f, 0, 50, 5);
	put(f, 0, 60, 6);
	assert_int_equal(order_finish(f->order), 0);
}

static void test_a_read_has_its_time_however_late_it_begins(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, 1);
	put(f, 1, 20, 2);
	order_limit(f->order, 10000000000);
	assert_int_equal(read_until(f, NOW), 0);
	assert_came(f, "1 2");
	assert_false(order_was_limited(f->order));
}

static void test_rings_are_merged_by_time(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, 1);
	put(f, 0, 40, 4);
	put(f, 1, 20, 2);
	put(f, 1, 50, 5);
	put(f, 2, 30, 3);
	assert_int_equal(read_until(f, NOW), 0);
	assert_came(f, "1 2 3 4 5");
	assert_int_equal(order_late(f->order), 0);
}

/* ---- another source ------------------------------------------------------------------------ */

struct list {
	struct wire_head records[4];
	size_t count, first, taken;
};

static const struct wire_head *take_it(void *data, uint64_t until_ns)
{
	struct list *list = data;

	if (list->first == list->count || list->records[list->first].time_ns > until_ns)
		return NULL;
	list->taken++;
	return &list->records[list->first++];
}

static void release(void *data, const struct wire_head *record)
{
	struct list *list = data;

	assert_ptr_equal(record, &list->records[list->first - 1]);
	list->taken--;
}

static void test_another_source_is_merged_with_the_rings(void **state)
{
	struct fixture *f = *state;
	struct list list = { .count = 3,
		             .records = { { .time_ns = US(5), .tid = 1 },
		                          { .time_ns = US(25), .tid = 3 },
		                          { .time_ns = US(45), .tid = 5 } } };
	const struct order_source source = { take_it, release, &list };

	order_add_source(f->order, &source);
	put(f, 0, 10, 2);
	put(f, 0, 40, 4);
	read_until(f, NOW);
	assert_came(f, "1 2 3 4 5");
	assert_int_equal(order_late(f->order), 0);
	assert_int_equal(list.taken, 0);
}

static void test_what_is_too_new_waits_in_the_other_source(void **state)
{
	struct fixture *f = *state;
	struct list list = { .count = 3,
		             .records = { { .time_ns = US(10), .tid = 1 },
		                          { .time_ns = US(30), .tid = 3 },
		                          { .time_ns = US(2000), .tid = 5 } } };
	const struct order_source source = { take_it, release, &list };

	order_add_source(f->order, &source);
	put(f, 0, 20, 2);
	put(f, 0, 40, 4);
	read_until(f, 1000);
	assert_came(f, "1 2 3 4");
	f->out.stop_at = 5;
	assert_int_equal(order_finish(f->order), -5);
	assert_came(f, "1 2 3 4 5");
	assert_int_equal(list.taken, 0);
}

static void test_records_of_the_same_time_keep_their_order(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, 1);
	put(f, 0, 10, 2);
	put(f, 0, 10, 3);
	read_until(f, NOW);
	assert_came(f, "1 2 3");
}

static void test_order_within_a_ring_is_put_right(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, 1);
	put(f, 0, 30, 3);
	put(f, 0, 20, 2);
	put(f, 1, 25, 25);
	read_until(f, NOW);
	assert_came(f, "1 2 25 3");
	assert_int_equal(order_late(f->order), 0);
}

static void test_what_is_too_new_waits(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, 1);
	put(f, 0, 2000, 2);
	put(f, 1, 1990, 3);
	read_until(f, 1000);
	assert_came(f, "1");
	read_until(f, 2000);
	assert_came(f, "1 3 2");
}

/* Record 2 is due, but stands behind one that is not. */
static void test_a_record_that_is_too_new_does_not_hide_an_older_one(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 1100, 5);
	put(f, 0, 900, 2);
	put(f, 1, 950, 3);
	read_until(f, 1000);
	assert_came(f, "2 3");
	put(f, 1, 1050, 4);
	read_until(f, 2000);
	assert_came(f, "2 3 4 5");
	assert_int_equal(order_late(f->order), 0);
}

static void test_reading_ends_though_the_target_goes_on(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 10, 1);
	put(f, 0, 90000, 2);
	read_until(f, 1000);
	assert_came(f, "1");
	assert_int_equal(*fake_ring_consumer(&f->fake[0]), f->fake[0].at / 2);
}

static void test_a_late_record_is_passed_on_and_counted(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 1000, 1);
	read_until(f, 2000);
	put(f, 1, 500, 2);
	put(f, 1, 2500, 3);
	read_until(f, 3000);
	assert_came(f, "1 2 3");
	assert_int_equal(order_late(f->order), 1);
}

static void test_two_late_records_are_two(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 1000, 1);
	read_until(f, 2000);
	put(f, 1, 500, 2);
	put(f, 1, 600, 3);
	read_until(f, 3000);
	assert_came(f, "1 2 3");
	assert_int_equal(order_late(f->order), 2);
}

static void test_order_is_put_right_while_a_long_run_is_read(void **state)
{
	struct fixture *f = *state;
	uint64_t last = 0, n = 0;

	for (int turn = 0; turn < 20; turn++) {
		for (int i = 0; i < 600; i++, n++)
			put(f, n % RINGS, 10 * n + n % 7 * 15, (uint32_t)n);
		assert_int_equal(read_until(f, 10 * n - 100), 0);
		assert_true(f->out.last_ns >= last);
		last = f->out.last_ns;
	}
	assert_int_equal(read_until(f, NOW), 0);
	assert_int_equal(f->out.count, n);
	assert_int_equal(order_late(f->order), 0);
}

/* So that memory does not grow with what has piled up in the rings. */
static void test_a_backlog_is_passed_on_while_it_is_read(void **state)
{
	struct fixture *f = *state;

	f->out.watched = &f->fake[0];
	for (uint32_t i = 0; i < 700; i++)
		put(f, 0, 100 * i, i);
	read_until(f, NOW);
	assert_int_equal(f->out.count, 700);
	assert_true(f->out.read_at_first < f->fake[0].at / 2);
}

/* As if the thread of the rings had done it while the reader stood still. */
static void test_what_was_kept_is_merged_with_what_is_in_the_rings(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 100, 1);
	put(f, 1, 200, 2);
	put(f, 0, 300, 3);
	assert_true(ring_keep(rings_at(f->rings, 0), FAKE_RING_BYTES) > 0);
	put(f, 1, 400, 4);
	put(f, 0, 500, 5);
	read_until(f, NOW);
	assert_came(f, "1 2 3 4 5");
	assert_int_equal(order_late(f->order), 0);
}

/* The circle of the window doubles several times, at different places of its beginning. */
static void test_a_window_may_hold_many_records(void **state)
{
	struct fixture *f = *state;
	struct wire_head head = { .type = WIRE_CALL };
	uint64_t n = 0;

	for (int turn = 0; turn < 3; turn++) {
		put(f, 0, 100000 * (turn + 1), 0);
		read_until(f, 100000 * (turn + 1)); /* moves the beginning of the circle */
		for (int i = 0; i < 3000; i++, n++) {
			head.time_ns = US(100000 * (turn + 1) + 5000 - i);
			order_add(f->order, &head, sizeof(head));
		}
		read_until(f, 100000 * (turn + 1) + 6000);
	}
	assert_int_equal(f->out.count, n + 3);
	assert_int_equal(order_late(f->order), 0);
}

/* Times that fall were sorted by insertion once: 40 s for these. */
static void test_falling_times_take_no_longer_than_others(void **state)
{
	struct fixture *f = *state;
	struct wire_head head = { .type = WIRE_CALL };
	const uint64_t count = 200000;
	clock_t begin = clock();

	for (uint64_t i = 0; i < count; i++) {
		head.time_ns = US(2 * count - i);
		order_add(f->order, &head, sizeof(head));
	}
	order_finish(f->order);
	assert_int_equal(f->out.count, count);
	assert_int_equal(order_late(f->order), 0);
	assert_true(clock() - begin < 4 * CLOCKS_PER_SEC);
}

/* Whichever way it came: at the end of the circle or through the heap. */
static void test_of_one_time_the_first_to_come_is_the_first_to_go(void **state)
{
	static const struct {
		uint32_t number;
		uint64_t time_us;
	} records[] = {
		{ 5, 20 }, { 1, 10 }, { 2, 10 }, { 6, 20 }, { 3, 10 }, { 7, 20 }, { 4, 15 }
	};
	struct fixture *f = *state;
	struct wire_head head = { .type = WIRE_CALL };

	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		head.tid = records[i].number;
		head.time_ns = US(records[i].time_us);
		order_add(f->order, &head, sizeof(head));
	}
	order_finish(f->order);
	assert_came(f, "1 2 3 4 5 6 7");
}

static void test_long_records_are_kept_whole(void **state)
{
	struct fixture *f = *state;
	static struct wire_name name;

	memset(name.text, 'x', sizeof(name.text));
	for (uint32_t i = 1; i <= 3; i++) {
		name.head = (struct wire_head){ .type = WIRE_NAME, .tid = i, .time_ns = US(4 - i) };
		order_add(f->order, &name.head, sizeof(name));
	}
	order_finish(f->order);
	assert_came(f, "3 2 1");
}

static void test_records_from_elsewhere_find_their_place(void **state)
{
	struct fixture *f = *state;
	struct wire_head head = { .type = WIRE_CALL, .tid = 9, .time_ns = US(15) };

	order_add(f->order, &head, sizeof(head));
	put(f, 0, 10, 1);
	put(f, 0, 20, 2);
	read_until(f, NOW);
	assert_came(f, "1 9 2");
}

static void test_the_end_passes_on_what_is_left(void **state)
{
	struct fixture *f = *state;
	struct wire_head head = { .type = WIRE_CALL, .tid = 9, .time_ns = US(5000) };

	order_add(f->order, &head, sizeof(head));
	read_until(f, 1000);
	assert_came(f, "");
	assert_int_equal(order_finish(f->order), 0);
	assert_came(f, "9");
}

static void test_a_failing_consumer_stops_the_reading(void **state)
{
	struct fixture *f = *state;

	f->out.stop_at = 2;
	for (uint32_t i = 1; i <= 4; i++)
		put(f, 0, 10 * i, i);
	assert_int_equal(read_until(f, NOW), -5);
	assert_came(f, "1 2");
	assert_int_equal(read_until(f, NOW), 0); /* it may go on: nothing was lost or doubled */
	assert_came(f, "1 2 3 4");
}

static void test_what_never_came_out_is_freed(void **state)
{
	struct fixture *f = *state;
	struct wire_head head = { .type = WIRE_CALL, .time_ns = US(5) };

	for (int i = 0; i < 2000; i++)
		order_add(f->order, &head, sizeof(head));
	assert_came(f, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_a_read_has_no_time_for_comes_with_the_next),
		TEST(test_a_read_has_its_time_however_late_it_begins),
		TEST(test_rings_are_merged_by_time),
		TEST(test_another_source_is_merged_with_the_rings),
		TEST(test_what_was_kept_is_merged_with_what_is_in_the_rings),
		TEST(test_what_is_too_new_waits_in_the_other_source),
		TEST(test_records_of_the_same_time_keep_their_order),
		TEST(test_order_within_a_ring_is_put_right),
		TEST(test_what_is_too_new_waits),
		TEST(test_a_record_that_is_too_new_does_not_hide_an_older_one),
		TEST(test_reading_ends_though_the_target_goes_on),
		TEST(test_a_late_record_is_passed_on_and_counted),
		TEST(test_two_late_records_are_two),
		TEST(test_order_is_put_right_while_a_long_run_is_read),
		TEST(test_a_backlog_is_passed_on_while_it_is_read),
		TEST(test_a_window_may_hold_many_records),
		TEST(test_falling_times_take_no_longer_than_others),
		TEST(test_of_one_time_the_first_to_come_is_the_first_to_go),
		TEST(test_long_records_are_kept_whole),
		TEST(test_records_from_elsewhere_find_their_place),
		TEST(test_the_end_passes_on_what_is_left),
		TEST(test_a_failing_consumer_stops_the_reading),
		TEST(test_what_never_came_out_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
