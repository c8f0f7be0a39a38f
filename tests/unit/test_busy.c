// SPDX-License-Identifier: MIT
/* How long a GPU was busy when pieces of work overlap and come late. */
#include "unit.h"

#include <time.h>

#include "analysis/busy.h"

static void test_overlaps_are_busy_once(void **state)
{
	struct busy busy = { 0 };

	busy_add(&busy, 10, 20);
	busy_add(&busy, 15, 30); /* overlaps the end */
	busy_add(&busy, 40, 50);
	busy_add(&busy, 5, 60); /* around all */
	assert_int_equal(busy_ns(&busy), 55);
	busy_add(&busy, 60, 70); /* touches */
	busy_add(&busy, 80, 80); /* nothing */
	assert_int_equal(busy_ns(&busy), 65);
	busy_free(&busy);
}

static void test_busy_time_of_many_pieces_adds_up(void **state)
{
	struct busy busy = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		busy_add(&busy, i * 10, i * 10 + 3);
	assert_int_equal(busy_ns(&busy), 3000);
	busy_free(&busy);
}

static void test_one_that_lasts_longer_than_a_thousand_others_counts_once(void **state)
{
	struct busy busy = { .most = BUSY_PIECES_OF_GPU };

	for (uint64_t i = 1; i <= 1000; i++)
		busy_add(&busy, i * 10, i * 10 + 3);
	busy_add(&busy, 5, 10100); /* ends after them all */
	assert_int_equal(busy_ns(&busy), 10095);
	busy_free(&busy);
}

static void test_what_begins_before_pieces_that_were_let_go_counts_after_them(void **state)
{
	struct busy busy = { 0 };

	for (uint64_t i = 0; i < BUSY_PIECES + 2; i++) /* the first two are let go */
		busy_add(&busy, i * 10, i * 10 + 3);
	busy_add(&busy, 0, 1000);
	assert_int_equal(busy_ns(&busy), 3 + 3 + (1000 - 13));
	busy_free(&busy);
}

/* One that came late made all that had come since a part of itself: 26 % where it was 5.5 %. */
static void test_one_that_comes_late_joins_nothing_that_it_does_not_touch(void **state)
{
	struct busy busy = { 0 };

	for (uint64_t i = 1; i <= 10; i++)
		busy_add(&busy, i * 100, i * 100 + 1);
	busy_add(&busy, 150, 151);
	assert_int_equal(busy_ns(&busy), 11);
	busy_add(&busy, 50, 51);   /* before them all */
	busy_add(&busy, 201, 300); /* touches two */
	assert_int_equal(busy_ns(&busy), 12 + 99);
	assert_int_equal(busy_short_ns(&busy), 0);
	busy_free(&busy);
}

/* Against a row of flags, with as many pieces as are kept. */
static void test_any_order_within_what_is_kept_is_exact(void **state)
{
	static bool used[4096];
	uint32_t random = 1;

	for (size_t round = 0; round < 200; round++) {
		struct busy busy = { 0 };
		uint64_t wanted = 0;

		memset(used, 0, sizeof(used));
		for (size_t i = 0; i < BUSY_PIECES; i++) {
			uint64_t begin, length;

			random = random * 1664525 + 1013904223;
			begin = random >> 16 & 1023;
			length = random >> 8 & 63;
			busy_add(&busy, 10 + begin, 10 + begin + length);
			for (uint64_t at = 0; at < length; at++)
				used[begin + at] = true;
		}
		for (size_t at = 0; at < 4096; at++)
			wanted += used[at];
		assert_int_equal(busy_ns(&busy), wanted);
		assert_int_equal(busy_short_ns(&busy), 0);
		busy_free(&busy);
	}
}

static void test_what_may_be_left_out_beyond_that_is_known(void **state)
{
	struct busy busy = { 0 };

	for (uint64_t i = 1; i <= BUSY_PIECES + 2; i++) /* two are let go: 10 to 13, 20 to 23 */
		busy_add(&busy, i * 10, i * 10 + 3);
	busy_add(&busy, 14, 16);
	assert_int_equal(busy_ns(&busy), 3 * (BUSY_PIECES + 2));
	assert_int_equal(busy_short_ns(&busy), 2);
	busy_add(&busy, 10, 24); /* no more than there is between the two: 7 */
	assert_int_equal(busy_ns(&busy), 3 * (BUSY_PIECES + 2) + 1);
	assert_int_equal(busy_short_ns(&busy), 7);
	busy_free(&busy);
}

static void test_the_oldest_that_comes_late_into_a_full_ring_is_let_go_itself(void **state)
{
	struct busy busy = { 0 };

	for (uint64_t i = 1; i <= BUSY_PIECES; i++)
		busy_add(&busy, i * 10, i * 10 + 3);
	busy_add(&busy, 2, 4);
	busy_add(&busy, 15, 16); /* the first of the others goes */
	assert_int_equal(busy_ns(&busy), 3 * BUSY_PIECES + 2 + 1);
	assert_int_equal(busy_short_ns(&busy), 0);
	busy_free(&busy);
}

/* The same, with nothing that makes it fast. */
struct slow {
	struct busy_piece at[64];
	size_t most, n;
	uint64_t done_ns, until_ns;
};

static void slow_let_go(struct slow *slow, const struct busy_piece *piece)
{
	slow->done_ns += piece->end_ns - piece->begin_ns;
	slow->until_ns = piece->end_ns;
}

static void slow_drop(struct slow *slow, size_t at)
{
	memmove(&slow->at[at], &slow->at[at + 1], (--slow->n - at) * sizeof(slow->at[0]));
}

static void slow_add(struct slow *slow, uint64_t begin_ns, uint64_t end_ns)
{
	struct busy_piece piece = { begin_ns > slow->until_ns ? begin_ns : slow->until_ns, end_ns };
	size_t at = 0;

	if (end_ns <= piece.begin_ns)
		return;
	while (at < slow->n && slow->at[at].end_ns < piece.begin_ns)
		at++;
	for (; at < slow->n && slow->at[at].begin_ns <= piece.end_ns; slow_drop(slow, at)) {
		if (slow->at[at].begin_ns < piece.begin_ns)
			piece.begin_ns = slow->at[at].begin_ns;
		if (slow->at[at].end_ns > piece.end_ns)
			piece.end_ns = slow->at[at].end_ns;
	}
	if (slow->n == slow->most && !at) {
		slow_let_go(slow, &piece);
		return;
	}
	if (slow->n == slow->most) {
		slow_let_go(slow, &slow->at[0]);
		slow_drop(slow, 0);
		at--;
	}
	memmove(&slow->at[at + 1], &slow->at[at], (slow->n++ - at) * sizeof(slow->at[0]));
	slow->at[at] = piece;
}

static uint64_t slow_ns(const struct slow *slow)
{
	uint64_t sum = slow->done_ns;

	for (size_t i = 0; i < slow->n; i++)
		sum += slow->at[i].end_ns - slow->at[i].begin_ns;
	return sum;
}

/* More than are kept, in an order that goes on and back, so that the ring's ends are everywhere. */
static void test_pieces_are_those_of_a_slower_way(void **state)
{
	uint32_t random = 1;

	for (size_t most = 4; most <= 32; most *= 2) {
		struct busy busy = { .most = most };
		struct slow slow = { .most = most };

		for (uint64_t i = 0; i < 20000; i++) {
			uint64_t begin_ns, length;

			random = random * 1664525 + 1013904223;
			begin_ns = 1000 + 20 * i - (random >> 16) % (40 * most);
			length = random >> 8 & (random >> 28 ? 15 : 511);
			busy_add(&busy, begin_ns, begin_ns + length);
			slow_add(&slow, begin_ns, begin_ns + length);
			assert_int_equal(busy_ns(&busy), slow_ns(&slow));
		}
		busy_free(&busy);
	}
}

#define LATE 1000000

/* A million before those that are kept: each was looked for among all of them, 5 us. */
static void test_what_comes_late_takes_no_longer(void **state)
{
	struct busy busy = { .most = BUSY_PIECES_OF_GPU };
	struct timespec begin, end;

	for (uint64_t i = 1; i < BUSY_PIECES_OF_GPU; i++)
		busy_add(&busy, 1000000000 + i * 10, 1000000000 + i * 10 + 3);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (uint64_t i = 0; i < LATE; i++)
		busy_add(&busy, i * 10, i * 10 + 3);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_int_equal(busy_ns(&busy), 3 * (LATE + BUSY_PIECES_OF_GPU - 1));
	assert_true((double)(end.tv_sec - begin.tv_sec) +
	                    (double)(end.tv_nsec - begin.tv_nsec) / 1e9 <
	            2);
	busy_free(&busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlaps_are_busy_once),
		cmocka_unit_test(test_busy_time_of_many_pieces_adds_up),
		cmocka_unit_test(test_one_that_lasts_longer_than_a_thousand_others_counts_once),
		cmocka_unit_test(test_what_begins_before_pieces_that_were_let_go_counts_after_them),
		cmocka_unit_test(test_one_that_comes_late_joins_nothing_that_it_does_not_touch),
		cmocka_unit_test(test_any_order_within_what_is_kept_is_exact),
		cmocka_unit_test(test_pieces_are_those_of_a_slower_way),
		cmocka_unit_test(test_what_comes_late_takes_no_longer),
		cmocka_unit_test(test_what_may_be_left_out_beyond_that_is_known),
		cmocka_unit_test(test_the_oldest_that_comes_late_into_a_full_ring_is_let_go_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
