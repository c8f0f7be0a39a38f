// SPDX-License-Identifier: MIT
/* What a trace file says of its run, where that is nonsense. */
#include "support.h"

#include "trace/run_record.h"

static struct run_info read_back(struct run_info info)
{
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	info = kept.info;
	run_free(&kept);
	buf_free(&raw);
	return info;
}

static void test_a_run_that_ended_before_it_began_was_short(void **state)
{
	struct run_info info = default_run_info();

	info.end_ns = info.begin_ns - 1;
	assert_int_equal(read_back(info).end_ns, info.begin_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_that_ended_before_it_began_was_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
