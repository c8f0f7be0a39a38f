// SPDX-License-Identifier: MIT
/* Ranges of /etc/subuid as the programs look uids up: by how many bits of them are alike. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <endian.h>

#include "bpf/wire_fold.h"
#include "probe/fold.h"
#include "probe/person.h"

#define OTHER_MAP 7
#define UIDS_MAP  8

static struct wire_uids uids[256];
static uint32_t users[256];
static size_t n_uids;

int __wrap_programs_map(const struct programs *programs, const char *name);
int __wrap_bpf_map_update_elem(int map, const void *key, const void *value, __u64 flags);

int __wrap_programs_map(const struct programs *programs, const char *name)
{
	return strcmp(name, "uid_ranges") ? OTHER_MAP : UIDS_MAP;
}

int __wrap_bpf_map_update_elem(int map, const void *key, const void *value, __u64 flags)
{
	if (map != UIDS_MAP)
		return 0;
	assert_true(n_uids < 256);
	memcpy(&uids[n_uids], key, sizeof(*uids));
	memcpy(&users[n_uids++], value, sizeof(*users));
	return 0;
}

/* 0: nobody's. */
static uint32_t whose(uint32_t uid)
{
	uint32_t user = 0;

	for (size_t i = 0; i < n_uids; i++) {
		unsigned rest = 32 - uids[i].bits;

		if ((uint64_t)be32toh(uids[i].first) >> rest == (uint64_t)uid >> rest)
			user = users[i];
	}
	return user;
}

static void fill(const char *ranges)
{
	char path[] = "/tmp/cuscope-uids-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, ranges, strlen(ranges)), strlen(ranges));
	close(fd);
	n_uids = 0;
	person_files(path, "/dev/null");
	fold_fill_users(NULL);
	person_files(NULL, NULL);
	unlink(path);
}

static void test_each_uid_of_a_range_is_its_users_and_no_other(void **state)
{
	fill("1001:100000:65536\n1002:165536:1\n");
	assert_int_equal(whose(99999), 0);
	assert_int_equal(whose(100000), 1001);
	assert_int_equal(whose(131072), 1001);
	assert_int_equal(whose(165535), 1001);
	assert_int_equal(whose(165536), 1002);
	assert_int_equal(whose(165537), 0);
	assert_true(n_uids < 40);
}

static void test_a_range_of_nobody_known_is_one_user(void **state)
{
	fill("ghost:200000:1000\n0:4294900000:90000\n");
	assert_int_not_equal(whose(200000), 0);
	assert_int_equal(whose(200000), whose(200999));
	assert_int_equal(whose(201000), 0);
	assert_int_not_equal(whose(4294967295), 0);
	assert_int_not_equal(whose(4294967295), whose(200000));
}

static void test_all_uids_can_be_one_range(void **state)
{
	fill("1003:0:4294967295\n");
	assert_int_equal(whose(0), 1003);
	assert_int_equal(whose(4294967294), 1003);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_uid_of_a_range_is_its_users_and_no_other),
		cmocka_unit_test(test_a_range_of_nobody_known_is_one_user),
		cmocka_unit_test(test_all_uids_can_be_one_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
