// SPDX-License-Identifier: MIT
/* Records in order, whether they fit into memory or not. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/sorter.h"

#define SMALL 4096

struct seen {
	uint64_t last_key, last_number;
	size_t n;
	bool in_order;
	size_t stop_at;
};

struct record {
	uint64_t key, number;
};

static int see(void *data, const void *bytes, size_t len)
{
	struct seen *seen = data;
	struct record record;

	memcpy(&record, bytes, sizeof(record));
	if (seen->n && (record.key < seen->last_key ||
	                (record.key == seen->last_key && record.number <= seen->last_number)))
		seen->in_order = false;
	/* the rest is as long as the number says, and made of it */
	for (size_t i = sizeof(record); i < len; i++)
		assert_int_equal(((const uint8_t *)bytes)[i], (uint8_t)record.number);
	assert_int_equal(len, sizeof(record) + record.number % 50);
	seen->last_key = record.key;
	seen->last_number = record.number;
	return ++seen->n == seen->stop_at ? -7 : 0;
}

static void add(struct sorter *sorter, uint64_t key, uint64_t number)
{
	uint8_t bytes[sizeof(struct record) + 50];
	struct record record = { key, number };
	struct err err = { 0 };

	memset(bytes, (uint8_t)number, sizeof(bytes));
	memcpy(bytes, &record, sizeof(record));
	assert_int_equal(sorter_add(sorter, key, bytes, sizeof(record) + number % 50, &err), 0);
}

static struct seen pass(struct sorter *sorter)
{
	struct seen seen = { .in_order = true };
	struct err err = { 0 };

	assert_int_equal(sorter_each(sorter, see, &seen, &err), 0);
	return seen;
}

/* With many equal keys, which stay as they came. */
static void put_in_order(size_t memory, size_t n)
{
	struct sorter *sorter = sorter_new(memory, 0);
	struct seen seen;
	uint64_t random = 1;

	for (size_t i = 0; i < n; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		add(sorter, (random >> 40) % 1000, i);
	}
	seen = pass(sorter);
	assert_true(seen.in_order);
	assert_int_equal(seen.n, n);
	sorter_free(sorter);
}

static void test_what_fits_into_memory_is_put_in_order(void **state)
{
	put_in_order(1 << 20, 1000);
}

static void test_what_does_not_fit_is_put_in_order(void **state)
{
	put_in_order(SMALL, 50000);
}

static void test_nothing_is_no_record(void **state)
{
	struct sorter *sorter = sorter_new(SMALL, 0);

	assert_int_equal(pass(sorter).n, 0);
	sorter_free(sorter);
}

/* Falling keys, so that each new record is one of those that are kept. */
static void keep_some(size_t keep)
{
	struct sorter *sorter = sorter_new(SMALL, keep);
	struct seen seen;

	for (uint64_t i = 0; i < 20000; i++)
		add(sorter, 20000 - i, i);
	seen = pass(sorter);
	assert_true(seen.in_order);
	assert_true(seen.n >= keep && seen.n <= 20000);
	assert_true(keep > 100 || seen.n == keep);
	sorter_free(sorter);
}

static void test_only_those_that_are_wanted_are_kept(void **state)
{
	keep_some(5);
	keep_some(3000); /* more than fit into memory */
}

static void test_who_is_told_can_end_it(void **state)
{
	struct sorter *sorter = sorter_new(SMALL, 0);
	struct seen seen = { .stop_at = 10 };
	struct err err = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		add(sorter, i, i);
	assert_int_equal(sorter_each(sorter, see, &seen, &err), -7);
	assert_int_equal(seen.n, 10);
	sorter_free(sorter);
}

/* /proc has no files without names. */
static void test_a_file_system_without_temporary_files_will_do(void **state)
{
	setenv("TMPDIR", "/proc", 1);
	put_in_order(SMALL, 5000);
	unsetenv("TMPDIR");
}

/* The descriptor of the one file of this process that has no name, -1: there is none. */
static int nameless_file(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		char target[4096] = "";

		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0 &&
		    !strncmp(target, "/var/tmp/", 9))
			found = atoi(entry->d_name);
	}
	closedir(folder);
	return found;
}

static void test_a_damaged_file_is_told(void **state)
{
	struct sorter *sorter = sorter_new(SMALL, 0);
	struct seen seen = { 0 };
	struct err err = { 0 };
	uint8_t nonsense[64];

	for (uint64_t i = 0; i < 1000; i++)
		add(sorter, 1, i);
	memset(nonsense, 0xff, sizeof(nonsense));
	assert_int_equal(pwrite(nameless_file(), nonsense, sizeof(nonsense), 0), sizeof(nonsense));
	assert_int_equal(sorter_each(sorter, see, &seen, &err), -EIO);
	assert_string_equal(err.text,
	                    "cannot read a temporary file back: it is not what was written");
	sorter_free(sorter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fits_into_memory_is_put_in_order),
		cmocka_unit_test(test_what_does_not_fit_is_put_in_order),
		cmocka_unit_test(test_nothing_is_no_record),
		cmocka_unit_test(test_only_those_that_are_wanted_are_kept),
		cmocka_unit_test(test_who_is_told_can_end_it),
		cmocka_unit_test(test_a_file_system_without_temporary_files_will_do),
		cmocka_unit_test(test_a_damaged_file_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
