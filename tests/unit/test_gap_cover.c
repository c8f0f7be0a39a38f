// SPDX-License-Identifier: MIT
/* The gaps between pieces of work that overlap and come late. */
#include "support.h"

#include "report/gaps/gap_cover.h"

static struct gap_cover cover;
static uint64_t gaps_ns;

static int set_up(void **state)
{
	gap_cover_init(&cover, 1000);
	gaps_ns = 0;
	return 0;
}

static int tear_down(void **state)
{
	gap_cover_free(&cover);
	return 0;
}

static void settle(void)
{
	const struct gap_work *before;
	uint64_t begin_ns;

	if (gap_cover_gap(&cover, 0, &begin_ns, &before))
		gaps_ns += gap_cover_piece(&cover, 0)->begin_ns - begin_ns;
	gap_cover_settle(&cover);
}

static struct gap_piece *add(uint64_t begin_ns, uint64_t end_ns)
{
	struct gap_work work = { .begin_ns = begin_ns, .end_ns = end_ns };

	while (gap_cover_is_full(&cover))
		settle();
	return gap_cover_add(&cover, &work);
}

static void finish(void)
{
	while (cover.n)
		settle();
}

static void test_overlaps_count_once(void **state)
{
	add(100, 200);
	add(150, 250);
	add(250, 260); /* touches it */
	add(300, 310);
	finish();
	assert_int_equal(cover.busy_ns, 170);
	assert_int_equal(gaps_ns, 40);
}

static void test_one_that_ends_last_covers_the_gaps_of_others(void **state)
{
	add(100, 110);
	add(150, 160);
	add(200, 210);
	add(140, 220);
	finish();
	assert_int_equal(cover.busy_ns, 90);
	assert_int_equal(gaps_ns, 30);
}

static void test_a_piece_knows_what_began_it_and_what_ended_it(void **state)
{
	struct gap_piece *piece;
	const struct gap_work *before;
	uint64_t begin_ns;

	add(0, 50);
	add(100, 200);
	piece = add(90, 300);
	assert_int_equal(piece->first.begin_ns, 90);
	assert_int_equal(piece->last.end_ns, 300);
	assert_int_equal(gap_cover_index(&cover, piece), 1);
	assert_true(gap_cover_gap(&cover, 1, &begin_ns, &before));
	assert_int_equal(begin_ns, 50);
	assert_int_equal(before->end_ns, 50);
}

static void test_what_comes_out_of_order_finds_its_place(void **state)
{
	add(300, 400);
	add(100, 150);
	add(200, 250);
	add(140, 210);
	add(500, 600);
	finish();
	assert_int_equal(cover.busy_ns, 350);
	assert_int_equal(gaps_ns, 150);
	assert_int_equal(cover.first_ns, 100);
	assert_int_equal(cover.last_ns, 600);
}

static void test_a_changed_neighbour_makes_a_verdict_void(void **state)
{
	add(100, 150);
	add(300, 400)->judged = true;
	add(200, 250);
	assert_false(gap_cover_piece(&cover, 2)->judged);
	gap_cover_piece(&cover, 2)->judged = true;
	add(240, 260);
	assert_false(gap_cover_piece(&cover, 2)->judged);
}

static void test_an_empty_interval_divides_a_gap(void **state)
{
	add(100, 200);
	add(250, 250);
	add(300, 400);
	assert_int_equal(cover.n, 3);
	finish();
	assert_int_equal(cover.busy_ns, 200);
	assert_int_equal(gaps_ns, 100);
}

static void test_what_was_settled_counts_once(void **state)
{
	cover.most = 2;
	for (uint64_t i = 0; i < 10; i++)
		add(100 * i, 100 * i + 10);
	add(0, 1000);
	finish();
	assert_int_equal(cover.late, 1);
	assert_int_equal(cover.busy_ns + gaps_ns, 1000);
	assert_int_equal(cover.busy_ns, 9 * 10 + 1000 - 810); /* from the last that was settled */
	assert_null(add(5, 900));
}

/* ---- against marks on a line --------------------------------------------------------------- */

#define LINE 4000

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

/* Intervals in any order, with as few pieces kept as `most`: true with its busy time. */
static uint64_t run_random(size_t most, uint64_t lateness, bool *marks)
{
	uint64_t busy = 0;

	memset(marks, 0, LINE);
	gap_cover_init(&cover, most);
	gaps_ns = 0;
	for (uint64_t at = 0; at + 100 < LINE; at += random_below(30)) {
		uint64_t end = at > lateness ? at - random_below(lateness + 1) : at;
		uint64_t length = random_below(20) ? random_below(12) : random_below(200);
		uint64_t begin = end > length ? end - length : 0;

		add(begin, end);
		memset(marks + begin, 1, end - begin);
	}
	finish();
	for (size_t i = 0; i < LINE; i++)
		busy += marks[i];
	return busy;
}

static void test_any_intervals_make_their_union(void **state)
{
	static bool marks[LINE];

	for (int i = 0; i < 500; i++) {
		uint64_t busy = run_random(1000, (uint64_t)i % 50, marks);

		assert_int_equal(cover.busy_ns, busy);
		assert_int_equal(gaps_ns, cover.last_ns - cover.first_ns - busy);
		gap_cover_free(&cover);
	}
	gap_cover_init(&cover, 1);
}

static void test_few_pieces_never_make_more_than_there_is(void **state)
{
	static bool marks[LINE];
	uint64_t late = 0;

	for (int i = 0; i < 500; i++) {
		uint64_t busy = run_random(3, (uint64_t)i % 50, marks);

		assert_true(cover.busy_ns <= busy);
		assert_true(cover.busy_ns + gaps_ns <= cover.last_ns - cover.first_ns);
		late += cover.late;
		gap_cover_free(&cover);
	}
	assert_true(late > 0);
	gap_cover_init(&cover, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_overlaps_count_once),
		TEST(test_one_that_ends_last_covers_the_gaps_of_others),
		TEST(test_a_piece_knows_what_began_it_and_what_ended_it),
		TEST(test_what_comes_out_of_order_finds_its_place),
		TEST(test_a_changed_neighbour_makes_a_verdict_void),
		TEST(test_an_empty_interval_divides_a_gap),
		TEST(test_what_was_settled_counts_once),
		TEST(test_any_intervals_make_their_union),
		TEST(test_few_pieces_never_make_more_than_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
