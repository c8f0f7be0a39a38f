// SPDX-License-Identifier: MIT
/* Tables whose keys were made to meet: by uthash's own function, which is known, they do. */
#include "unit.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"

#define ITEMS   4096
#define WORDS   6 /* of a key: two blocks of three */
#define SECRETS 100
#define LONGEST 40 /* entries in a chain of a table that has grown as it should */

struct item {
	uint32_t key[WORDS];
	UT_hash_handle hh;
};

/* A block of three words, as that function takes it, after the two that it begins with. */
static void take_block(uint32_t state[3], const uint32_t block[3])
{
	uint32_t a = state[0] + block[0], b = state[1] + block[1], c = state[2] + block[2];

	HASH_JEN_MIX(a, b, c);
	state[0] = a;
	state[1] = b;
	state[2] = c;
}

/* The second block makes good for what the first one did. */
static void make_key(uint32_t key[WORDS], uint32_t number)
{
	uint32_t state[3] = { 0x9e3779b9u, 0x9e3779b9u, 0xfeedbeefu };

	key[0] = key[1] = key[2] = number;
	take_block(state, key);
	for (size_t i = 0; i < 3; i++)
		key[3 + i] = 0u - state[i];
}

static unsigned longest_chain(const struct item *table)
{
	const UT_hash_table *all = table->hh.tbl;
	unsigned most = 0;

	for (unsigned i = 0; i < all->num_buckets; i++)
		if (all->buckets[i].count > most)
			most = all->buckets[i].count;
	return most;
}

static void test_keys_that_are_made_to_meet_do_not(void **state)
{
	struct item *items = calloc(ITEMS, sizeof(*items)), *table = NULL;
	uint32_t first, other;

	for (uint32_t i = 0; i < ITEMS; i++) {
		make_key(items[i].key, i);
		HASH_JEN(items[0].key, sizeof(items[0].key), first);
		HASH_JEN(items[i].key, sizeof(items[i].key), other);
		assert_int_equal(first, other); /* or this tests nothing */
		HASH_ADD(hh, table, key, sizeof(items[i].key), &items[i]);
	}
	assert_in_range(longest_chain(table), 1, LONGEST);
	HASH_CLEAR(hh, table);
	free(items);
}

/* Numbers of processes, of devices, pages: whether their table is a table, by this run's secret. */
static int keys_at_equal_distances(void)
{
	static const uint32_t steps[] = { 1, 3, 0x100, 0x1000 };
	static struct item items[ITEMS];
	unsigned most = 0;

	for (size_t step = 0; step < sizeof(steps) / sizeof(*steps); step++) {
		struct item *table = NULL;

		for (uint32_t i = 0; i < ITEMS; i++) {
			items[i].key[0] = i * steps[step];
			HASH_ADD(hh, table, key, sizeof(items[i].key[0]), &items[i]);
		}
		if (longest_chain(table) > most)
			most = longest_chain(table);
		HASH_CLEAR(hh, table);
	}
	return most > LONGEST;
}

/* A secret lasts for a run. */
static void test_keys_at_equal_distances_spread_by_each_secret(void **state)
{
	for (int i = 0; i < SECRETS; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			execl("/proc/self/exe", "test_hash", "distances", NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void test_texts_of_any_length_differ(void **state)
{
	char text[64] = "";
	uint64_t seen[64];

	for (size_t len = 0; len < sizeof(text); len++) {
		seen[len] = hash_long(text, len);
		assert_true(seen[len] == hash_long(text, len));
		for (size_t i = 0; i < len; i++)
			assert_true(seen[i] != seen[len]);
	}
	assert_true(hash_long("abcdefgh1", 9) != hash_long("abcdefgh2", 9));
	assert_true(hash_long("1abcdefgh", 9) != hash_long("2abcdefgh", 9));
}

/* Some ends are NULL: sanitizers look at it. */
static void test_a_key_without_bytes_has_a_hash(void **state)
{
	assert_int_equal(hash_long(NULL, 0), hash_long("", 0));
	assert_int_not_equal(hash_long("", 0), hash_long("", 1));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "distances"))
		return keys_at_equal_distances();

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_that_are_made_to_meet_do_not),
		cmocka_unit_test(test_keys_at_equal_distances_spread_by_each_secret),
		cmocka_unit_test(test_texts_of_any_length_differ),
		cmocka_unit_test(test_a_key_without_bytes_has_a_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
