// SPDX-License-Identifier: MIT
/* Files that nobody has looked into: one that many map does not take the room of all others. */
#include "unit.h"

#include "probe/unseen.h"

static void map(struct unseen *unseen, uint64_t inode, const char *name, uint32_t pid)
{
	const struct wire_file file = { .inode = inode };
	const struct unseen_user user = { .pid = pid, .born_ns = 1 };

	unseen_add(unseen, &file, name, &user);
}

static void count(void *data, const struct unseen_user *user)
{
	++*(uint64_t *)data;
}

static void test_a_file_has_a_share_and_what_is_beyond_is_counted(void **state)
{
	struct unseen *unseen = unseen_new();
	const struct wire_file greedy = { .inode = 1 }, other = { .inode = 2 };
	uint64_t users = 0, more;
	struct buf names = { 0 };

	for (uint32_t pid = 1; pid <= 100000; pid++)
		map(unseen, 1, "greedy.so", pid);
	map(unseen, 2, "libcuda.so.1", 7);
	assert_int_equal(unseen_processes(unseen, true, &names), 1);
	assert_string_equal(names.data, "libcuda.so.1");
	buf_reset(&names);
	assert_int_equal(unseen_processes(unseen, false, &names), 100000);
	assert_int_equal(unseen_settle(unseen, &other, count, &users), 0);
	assert_int_equal(users, 1);
	/* read after all: those that were not told apart are told of by their number */
	users = 0;
	more = unseen_settle(unseen, &greedy, count, &users);
	assert_int_equal(users + more, 100000);
	assert_in_range(users, 1000, 65535);
	assert_int_equal(unseen_settle(unseen, &greedy, count, &users), 0);
	buf_free(&names);
	unseen_free(unseen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_has_a_share_and_what_is_beyond_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
