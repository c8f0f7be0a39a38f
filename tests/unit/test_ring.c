// SPDX-License-Identifier: MIT
/* Reading a ring buffer of the kernel, played by memory of this test. */
#include <time.h>

#include "fake_ring.h"
#include "probe/rings.h"

static int open_ring(void **state)
{
	static struct fake_ring fake;

	fake_ring_open(&fake);
	*state = &fake;
	return 0;
}

static int close_ring(void **state)
{
	fake_ring_close(*state);
	return 0;
}

static void assert_next(struct fake_ring *fake, uint32_t tid, size_t bytes)
{
	size_t len = 0;
	const struct wire_head *head = ring_peek(fake->ring, &len);

	assert_non_null(head);
	assert_int_equal(head->tid, tid);
	assert_int_equal(len, bytes);
}

static void assert_nothing(struct fake_ring *fake)
{
	size_t len;

	assert_null(ring_peek(fake->ring, &len));
}

static void test_an_empty_ring_has_no_record(void **state)
{
	assert_nothing(*state);
}

static void test_records_come_in_the_order_of_their_reservation(void **state)
{
	struct fake_ring *fake = *state;

	fake_ring_submit(fake_ring_begin(fake, 1, 1, 64));
	fake_ring_submit(fake_ring_begin(fake, 2, 2, 61));
	fake_ring_submit(fake_ring_begin(fake, 3, 3, 40));
	assert_next(fake, 1, 64);
	ring_advance(fake->ring);
	assert_next(fake, 2, 61);
	ring_advance(fake->ring);
	assert_next(fake, 3, 40);
	ring_advance(fake->ring);
	assert_nothing(fake);
}

static void test_looking_twice_shows_the_same_record(void **state)
{
	struct fake_ring *fake = *state;

	fake_ring_put(fake, 1, 1);
	fake_ring_put(fake, 2, 2);
	assert_next(fake, 1, WIRE_CALL_BYTES(4));
	assert_next(fake, 1, WIRE_CALL_BYTES(4));
}

static void test_space_is_given_back_by_advancing_only(void **state)
{
	struct fake_ring *fake = *state;

	fake_ring_put(fake, 1, 1);
	assert_next(fake, 1, WIRE_CALL_BYTES(4));
	assert_int_equal(*fake_ring_consumer(fake), 0);
	ring_advance(fake->ring);
	assert_int_equal(*fake_ring_consumer(fake), fake->at);
}

static void test_a_record_that_is_being_written_holds_up_those_after_it(void **state)
{
	struct fake_ring *fake = *state;
	uint32_t *busy = fake_ring_begin(fake, 1, 1, 64);

	fake_ring_put(fake, 2, 2);
	assert_nothing(fake);
	fake_ring_submit(busy);
	assert_next(fake, 1, 64);
}

static void test_a_discarded_record_is_stepped_over(void **state)
{
	struct fake_ring *fake = *state;

	fake_ring_discard(fake_ring_begin(fake, 1, 1, 200));
	fake_ring_discard(fake_ring_begin(fake, 2, 2, 64));
	fake_ring_put(fake, 3, 3);
	assert_next(fake, 3, WIRE_CALL_BYTES(4));
	ring_advance(fake->ring);
	assert_nothing(fake);
	assert_int_equal(*fake_ring_consumer(fake), fake->at);
}

/* Many times around, with lengths that meet the border at every place. */
static void test_records_are_whole_across_the_border(void **state)
{
	struct fake_ring *fake = *state;

	for (uint32_t i = 0; i < 5000; i++) {
		size_t bytes = 40 + i % 1000, len;
		const struct wire_head *head;

		fake_ring_submit(fake_ring_begin(fake, i, i, bytes));
		head = ring_peek(fake->ring, &len);
		assert_non_null(head);
		assert_int_equal(len, bytes);
		assert_int_equal(head->time_ns, i);
		assert_int_equal(((const uint8_t *)head)[bytes - 1], i & 0xff);
		ring_advance(fake->ring);
	}
	assert_true(fake->at > 10 * FAKE_RING_BYTES);
}

static void test_reading_begins_where_an_earlier_reader_stopped(void **state)
{
	struct fake_ring *fake = *state;
	struct ring *again;
	size_t len;

	fake_ring_put(fake, 1, 1);
	fake_ring_put(fake, 2, 2);
	assert_next(fake, 1, WIRE_CALL_BYTES(4));
	ring_advance(fake->ring);
	again = ring_open(dup(ring_fd(fake->ring)), FAKE_RING_BYTES);
	assert_non_null(again);
	assert_int_equal(ring_peek(again, &len)->tid, 2);
	ring_free(again);
}

/* ---- what is kept -------------------------------------------------------------------------- */

static void test_what_is_kept_gives_its_space_back_and_comes_first(void **state)
{
	struct fake_ring *fake = *state;
	unsigned long kept;

	fake_ring_submit(fake_ring_begin(fake, 1, 1, 64));
	fake_ring_discard(fake_ring_begin(fake, 2, 2, 64));
	fake_ring_submit(fake_ring_begin(fake, 3, 3, 61));
	kept = fake->at;
	assert_int_equal(ring_used(fake->ring), kept);
	assert_int_equal(ring_keep(fake->ring, FAKE_RING_BYTES), kept);
	assert_int_equal(*fake_ring_consumer(fake), kept);
	assert_int_equal(ring_used(fake->ring), 0);
	assert_true(ring_kept(fake->ring) > 0);
	fake_ring_submit(fake_ring_begin(fake, 4, 4, 40));
	for (uint32_t i = 1; i <= 4; i++) {
		static const size_t bytes[] = { 0, 64, 0, 61, 40 };

		if (!bytes[i])
			continue;
		assert_next(fake, i, bytes[i]);
		assert_next(fake, i, bytes[i]);
		ring_advance(fake->ring);
	}
	assert_nothing(fake);
	assert_int_equal(ring_kept(fake->ring), 0);
	assert_int_equal(*fake_ring_consumer(fake), fake->at);
}

static void test_what_is_being_written_is_not_kept(void **state)
{
	struct fake_ring *fake = *state;
	uint32_t *busy;

	fake_ring_put(fake, 1, 1);
	busy = fake_ring_begin(fake, 2, 2, 64);
	fake_ring_put(fake, 3, 3);
	ring_keep(fake->ring, FAKE_RING_BYTES);
	assert_int_equal(ring_keep(fake->ring, FAKE_RING_BYTES), 0);
	assert_next(fake, 1, WIRE_CALL_BYTES(4));
	ring_advance(fake->ring);
	assert_nothing(fake);
	fake_ring_submit(busy);
	assert_next(fake, 2, 64);
	ring_advance(fake->ring);
	assert_next(fake, 3, WIRE_CALL_BYTES(4));
}

static void test_no_more_is_kept_at_once_than_was_asked_for(void **state)
{
	struct fake_ring *fake = *state;

	for (uint32_t i = 0; i < 100; i++)
		fake_ring_submit(fake_ring_begin(fake, i, i, 56));
	assert_int_equal(ring_keep(fake->ring, 640), 640);
	assert_int_equal(ring_used(fake->ring), 90 * 64);
}

/* Many times the ring and several blocks of memory, in lengths that end blocks at every place. */
static void test_what_is_kept_is_whole_and_in_order(void **state)
{
	struct fake_ring *fake = *state;
	const struct wire_head *head;
	uint32_t n = 0;
	size_t len;

	while (ring_kept(fake->ring) < 4 << 20) {
		fake_ring_submit(fake_ring_begin(fake, n, n, 40 + n % 1000));
		if (++n % 50 == 0)
			ring_keep(fake->ring, FAKE_RING_BYTES);
	}
	for (uint32_t i = 0; i < n; i++) {
		head = ring_peek(fake->ring, &len);
		assert_non_null(head);
		assert_int_equal(head->time_ns, i);
		assert_int_equal(len, 40 + i % 1000);
		assert_int_equal(((const uint8_t *)head)[len - 1], i & 0xff);
		ring_advance(fake->ring);
	}
	assert_nothing(fake);
	assert_int_equal(ring_kept(fake->ring), 0);
}

static void test_what_is_kept_and_never_read_is_freed(void **state)
{
	struct fake_ring *fake = *state;

	fake_ring_put(fake, 1, 1);
	assert_true(ring_keep(fake->ring, FAKE_RING_BYTES) > 0);
}

/* The reader stands still: twenty times what the ring has room for is written meanwhile. */
static void test_a_watched_ring_has_room_while_nobody_reads(void **state)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct fake_ring *fake = *state;
	struct rings *rings = rings_new();
	uint32_t n = 0, i = 0;
	size_t len;

	rings_add(rings, fake->ring);
	rings_watch(rings, RINGS_KEPT_MOST);
	for (int waits = 0; fake->at < 20 * FAKE_RING_BYTES && waits < 20000;) {
		if (fake->at - *(volatile unsigned long *)fake_ring_consumer(fake) >
		    FAKE_RING_BYTES / 2) {
			nanosleep(&pause, NULL);
			waits++;
			continue;
		}
		fake_ring_put(fake, n, n);
		n++;
	}
	assert_true(fake->at >= 20 * FAKE_RING_BYTES);
	rings_enter(rings);
	for (const struct wire_head *head; (head = ring_peek(fake->ring, &len)); i++) {
		assert_int_equal(head->tid, i);
		ring_advance(fake->ring);
	}
	rings_leave(rings);
	assert_int_equal(i, n);
	rings_free(rings);
}

/* A flood does not get all memory: the ring fills, and the programs count what finds no room. */
static void test_what_is_kept_of_a_set_has_a_bound(void **state)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct fake_ring *fake = *state;
	struct rings *rings = rings_new();
	const size_t most = (size_t)2 << 20;
	int full_ms = 0;

	rings_add(rings, fake->ring);
	rings_watch(rings, most);
	for (uint32_t n = 0; full_ms < 300; n++) {
		full_ms = 0;
		while (full_ms < 300 &&
		       fake->at - *(volatile unsigned long *)fake_ring_consumer(fake) >
		               FAKE_RING_BYTES - 8192) {
			nanosleep(&pause, NULL);
			full_ms++;
		}
		if (full_ms < 300)
			fake_ring_submit(fake_ring_begin(fake, n, n, 8000));
		assert_true(fake->at < 2 * most);
	}
	assert_true(ring_kept(fake->ring) <= most + (512 << 10)); /* the last block */
	assert_true(ring_kept(fake->ring) > most / 2);
	rings_free(rings);
}

static void test_what_is_no_ring_is_refused(void **state)
{
	assert_null(ring_open(-1, FAKE_RING_BYTES));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ring, close_ring)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_empty_ring_has_no_record),
		TEST(test_records_come_in_the_order_of_their_reservation),
		TEST(test_looking_twice_shows_the_same_record),
		TEST(test_space_is_given_back_by_advancing_only),
		TEST(test_a_record_that_is_being_written_holds_up_those_after_it),
		TEST(test_a_discarded_record_is_stepped_over),
		TEST(test_records_are_whole_across_the_border),
		TEST(test_reading_begins_where_an_earlier_reader_stopped),
		TEST(test_what_is_kept_gives_its_space_back_and_comes_first),
		TEST(test_what_is_being_written_is_not_kept),
		TEST(test_no_more_is_kept_at_once_than_was_asked_for),
		TEST(test_what_is_kept_is_whole_and_in_order),
		TEST(test_what_is_kept_and_never_read_is_freed),
		TEST(test_a_watched_ring_has_room_while_nobody_reads),
		TEST(test_what_is_kept_of_a_set_has_a_bound),
		TEST(test_what_is_no_ring_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
