// SPDX-License-Identifier: MIT
/* Tables of entries that are found by a key. */
#include "unit.h"

#include "base/map.h"

struct row_key {
	uint32_t pid;
	uint32_t tid;
};

struct row {
	uint64_t before; /* the key is not what an entry begins with */
	struct row_key key;
	unsigned seen;
	UT_hash_handle hh;
};

struct named {
	const char *name;
	UT_hash_handle hh;
};

static void test_what_was_added_is_found_by_its_key(void **state)
{
	struct row *rows = NULL, *row;

	assert_null(MAP_FIND(rows, (&(struct row_key){ 1, 2 })));
	row = MAP_ADD(rows, key, (&(struct row_key){ 1, 2 }));
	assert_int_equal(row->before, 0);
	assert_int_equal(row->seen, 0);
	assert_int_equal(row->key.pid, 1);
	assert_int_equal(row->key.tid, 2);
	assert_ptr_equal(MAP_FIND(rows, (&(struct row_key){ 1, 2 })), row);
	assert_null(MAP_FIND(rows, (&(struct row_key){ 2, 1 })));
	MAP_FREE(rows, free);
}

static void test_one_is_made_where_there_is_none(void **state)
{
	struct row *rows = NULL;

	for (uint32_t i = 0; i < 1000; i++) {
		struct row_key key = { i % 10, 0 };

		MAP_MAKE(rows, key, &key)->seen++;
	}
	assert_int_equal(HASH_COUNT(rows), 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(MAP_FIND(rows, (&(struct row_key){ i, 0 }))->seen, 100);
	MAP_FREE(rows, free);
}

static void test_what_was_dropped_is_not_found(void **state)
{
	struct row_key keys[] = { { 1, 0 }, { 2, 0 }, { 3, 0 } };
	struct row *rows = NULL, *row, *next;
	uint32_t last = 0;

	for (size_t i = 0; i < 3; i++)
		MAP_ADD(rows, key, &keys[i]);
	row = MAP_FIND(rows, &keys[1]);
	MAP_DROP(rows, row);
	assert_null(MAP_FIND(rows, &keys[1]));
	HASH_ITER (hh, rows, row, next) { /* in the order in which they came */
		assert_true(row->key.pid > last);
		last = row->key.pid;
	}
	assert_int_equal(last, 3);
	MAP_DROP(rows, rows);
	MAP_DROP(rows, rows);
	assert_null(rows);
}

static unsigned freed;

static void row_free(struct row *row)
{
	freed++;
	free(row);
}

static void test_all_are_freed_by_the_owners_function(void **state)
{
	struct row *rows = NULL;

	for (uint32_t i = 0; i < 100; i++)
		MAP_ADD(rows, key, (&(struct row_key){ i, i }));
	freed = 0;
	MAP_FREE(rows, row_free);
	assert_int_equal(freed, 100);
	assert_null(rows);
	MAP_FREE(rows, row_free); /* an empty one */
	assert_int_equal(freed, 100);
}

static void test_texts_are_found_with_and_without_their_end(void **state)
{
	struct named one = { .name = "cuMemAlloc" }, *names = NULL;

	HASH_ADD_KEYPTR(hh, names, one.name, strlen(one.name), &one);
	assert_ptr_equal(MAP_FIND_TEXT(names, "cuMemAlloc"), &one);
	assert_ptr_equal(MAP_FIND_BYTES(names, "cuMemAlloc_v2", 10), &one);
	assert_null(MAP_FIND_TEXT(names, "cuMem"));
	HASH_CLEAR(hh, names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_added_is_found_by_its_key),
		cmocka_unit_test(test_one_is_made_where_there_is_none),
		cmocka_unit_test(test_what_was_dropped_is_not_found),
		cmocka_unit_test(test_all_are_freed_by_the_owners_function),
		cmocka_unit_test(test_texts_are_found_with_and_without_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
