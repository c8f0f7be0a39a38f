// SPDX-License-Identifier: MIT
/* A table of counters that a map and events feed; the map is an array here. */
#include "unit.h"

#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "capture/watch/ledger.h"
#include "probe/fold.h"

struct key {
	uint64_t born_ns;
	uint32_t tgid, what;
};

enum { SUM, MOST, SUM_AFTER, OWN, WORDS };
#define MAP_WORDS OWN

static struct {
	struct key key;
	uint64_t value[MAP_WORDS];
	bool gone;
} map[8];
static size_t n_map;

static struct ledger *ledger;

/* ---- what probe/fold.h says of a map -------------------------------------------------------- */

int fold_read(struct programs *programs, const char *name, size_t key_bytes, size_t value_bytes,
              struct fold_table *table)
{
	assert_string_equal(name, "sums");
	assert_int_equal(key_bytes, sizeof(struct key));
	assert_int_equal(value_bytes, sizeof(map->value));
	*table = (struct fold_table){ .key_bytes = key_bytes,
		                      .value_bytes = value_bytes,
		                      .keys = xmalloc(sizeof(map)),
		                      .values = xmalloc(sizeof(map)) };
	for (size_t i = 0; i < n_map; i++) {
		if (map[i].gone)
			continue;
		memcpy(table->keys + table->count * key_bytes, &map[i].key, key_bytes);
		memcpy(table->values + table->count++ * value_bytes, map[i].value, value_bytes);
	}
	return 0;
}

void fold_table_free(struct fold_table *table)
{
	free(table->keys);
	free(table->values);
}

static size_t place_of_key(const void *key)
{
	size_t i = 0;

	while (i < n_map && (map[i].gone || memcmp(&map[i].key, key, sizeof(map[i].key))))
		i++;
	return i;
}

bool fold_find(struct programs *programs, const char *name, const void *key, void *value)
{
	size_t i = place_of_key(key);

	if (i == n_map)
		return false;
	memcpy(value, map[i].value, sizeof(map[i].value));
	return true;
}

void fold_delete(struct programs *programs, const char *name, const void *key)
{
	size_t i = place_of_key(key);

	if (i < n_map)
		map[i].gone = true;
}

/* ---- the scene ------------------------------------------------------------------------------ */

static struct key key_of(uint32_t tgid, uint32_t what)
{
	return (struct key){ .born_ns = 100 + tgid, .tgid = tgid, .what = what };
}

static void map_says(uint32_t tgid, uint32_t what, uint64_t sum, uint64_t most)
{
	const struct key key = key_of(tgid, what);
	size_t i = place_of_key(&key);

	n_map += i == n_map;
	map[i].key = key;
	map[i].value[SUM] = sum;
	map[i].value[MOST] = most;
	map[i].value[SUM_AFTER] = 10 * sum;
	map[i].gone = false;
}

static struct ledger_row *row_of(uint32_t tgid, uint32_t what)
{
	const struct key key = key_of(tgid, what);

	return ledger_row(ledger, &key);
}

static bool is_of(void *tgid, struct ledger_process process)
{
	assert_int_equal(process.born_ns, process.tgid ? 100 + process.tgid : 0);
	return process.tgid == *(uint32_t *)tgid;
}

static void settle(uint32_t tgid)
{
	ledger_settle(ledger, is_of, &tgid);
}

static int fresh(void **state)
{
	static const struct ledger_layout layout = { .map = "sums",
		                                     .key_bytes = sizeof(struct key),
		                                     .words = WORDS,
		                                     .own = WORDS - MAP_WORDS,
		                                     .tgid_at = offsetof(struct key, tgid),
		                                     .max_at = MOST,
		                                     .room = 2 };

	n_map = 0;
	memset(map, 0, sizeof(map));
	ledger = ledger_new(NULL, &layout);
	return 0;
}

static int done(void **state)
{
	ledger_free(ledger);
	return 0;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_what_the_map_says_and_what_is_added_here_add_up(void **state)
{
	const struct key key = key_of(1, 0);
	struct ledger_row *row;

	map_says(1, 0, 5, 9);
	assert_int_equal(ledger_read(ledger), 0);
	assert_null(ledger_here(ledger, &key));
	assert_true(ledger_make_here(ledger, &key));
	ledger_here(ledger, &key)[SUM] += 3;
	ledger_here(ledger, &key)[SUM_AFTER] += 1;
	map_says(1, 0, 7, 4);
	assert_int_equal(ledger_read(ledger), 0);
	row = row_of(1, 0);
	assert_int_equal(row->now[SUM], 10);
	assert_int_equal(row->now[MOST], 9);
	assert_int_equal(row->now[SUM_AFTER], 71);
	assert_int_equal(row->map[SUM], 7);
	assert_int_equal(ledger_count(ledger), 1);
}

static void test_a_page_knows_what_was_before(void **state)
{
	map_says(1, 0, 5, 0);
	ledger_read(ledger);
	assert_int_equal(row_of(1, 0)->before[SUM], 0);
	ledger_turn(ledger);
	map_says(1, 0, 12, 0);
	ledger_read(ledger);
	assert_int_equal(row_of(1, 0)->before[SUM], 5);
	assert_int_equal(row_of(1, 0)->now[SUM], 12);
}

static void test_rows_of_a_process_that_ended_leave_the_map_and_stay_here(void **state)
{
	map_says(1, 0, 5, 0);
	map_says(2, 0, 6, 0);
	settle(1);
	assert_true(map[0].gone);
	assert_false(map[1].gone);
	assert_int_equal(ledger_count(ledger), 1); /* of the others nothing is read yet */
	assert_true(row_of(1, 0)->ended);
	assert_int_equal(row_of(1, 0)->now[SUM], 5);
	map_says(1, 0, 50, 0); /* a call that was on its way */
	ledger_read(ledger);
	assert_int_equal(row_of(1, 0)->now[SUM], 5);
	assert_int_equal(row_of(2, 0)->now[SUM], 6);
}

static void test_words_that_the_map_lacks_are_the_readers(void **state)
{
	map_says(1, 0, 5, 0);
	ledger_read(ledger);
	row_of(1, 0)->now[OWN] = 77;
	map_says(1, 0, 6, 0);
	ledger_read(ledger);
	assert_int_equal(row_of(1, 0)->now[OWN], 77);
	assert_int_equal(row_of(1, 0)->now[SUM], 6);
}

/* 7 and more are not told apart. */
static void only_small(const struct ledger *of, void *key)
{
	struct key *changed = key;

	assert_ptr_equal(of, ledger);
	if (changed->what > 7)
		changed->what = 7;
}

static void merge(uint32_t tgid)
{
	ledger_merge_all(ledger, is_of, &tgid, (struct ledger_process){ 0 }, only_small);
}

static void test_rows_of_processes_that_are_merged_become_one_by_the_rest_of_the_key(void **state)
{
	const struct key ended = { .what = 7 }, small = { .what = 1 };

	map_says(1, 8, 5, 20);
	map_says(1, 9, 6, 30);
	map_says(1, 1, 1, 1);
	map_says(2, 9, 100, 10);
	ledger_read(ledger);
	ledger_turn(ledger);
	row_of(1, 9)->now[OWN] = 2;
	map_says(1, 9, 8, 30); /* since it was read */
	merge(1);
	assert_int_equal(ledger_count(ledger), 3);
	assert_int_equal(ledger_row(ledger, &ended)->now[SUM], 5 + 8);
	assert_int_equal(ledger_row(ledger, &ended)->before[SUM], 5 + 6);
	assert_int_equal(ledger_row(ledger, &ended)->now[MOST], 30);
	assert_int_equal(ledger_row(ledger, &ended)->now[SUM_AFTER], 130);
	assert_int_equal(ledger_row(ledger, &ended)->now[OWN], 2);
	assert_true(ledger_row(ledger, &ended)->ended);
	assert_int_equal(ledger_row(ledger, &small)->now[SUM], 1);
	assert_true(map[0].gone && map[1].gone && map[2].gone && !map[3].gone);
	merge(2);
	assert_int_equal(ledger_count(ledger), 2);
	assert_int_equal(ledger_row(ledger, &ended)->now[SUM], 5 + 8 + 100);
	assert_int_equal(ledger_row(ledger, &ended)->now[MOST], 30);
}

static void test_rows_that_are_added_to_here_have_room_until_their_process_ends(void **state)
{
	const struct key one = key_of(1, 0), two = key_of(2, 0), three = key_of(3, 0);

	map_says(4, 0, 5, 0); /* the kernel's alone takes none of it, and gives none back */
	settle(4);
	assert_true(ledger_make_here(ledger, &one));
	assert_true(ledger_make_here(ledger, &two));
	assert_false(ledger_make_here(ledger, &three));
	settle(1);
	assert_true(row_of(1, 0)->ended);
	assert_false(row_of(2, 0)->ended);
	assert_true(ledger_make_here(ledger, &three));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(of) cmocka_unit_test_setup_teardown(of, fresh, done)
		TEST(test_what_the_map_says_and_what_is_added_here_add_up),
		TEST(test_a_page_knows_what_was_before),
		TEST(test_rows_of_a_process_that_ended_leave_the_map_and_stay_here),
		TEST(test_words_that_the_map_lacks_are_the_readers),
		TEST(test_rows_of_processes_that_are_merged_become_one_by_the_rest_of_the_key),
		TEST(test_rows_that_are_added_to_here_have_room_until_their_process_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
