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

static void test_the_machine_and_its_gpus_come_back(void **state)
{
	const struct run_gpu gpus[] = { { .name = "NVIDIA H200",
		                          .uuid = "GPU-8c0d",
		                          .bus = "00000000:18:00.0",
		                          .memory_bytes = 150754820096,
		                          .clock_hz = 1980000000,
		                          .memory_bandwidth = 4916736000000,
		                          .major = 9,
		                          .multiprocessors = 132 },
		                        { .name = "another" } };
	struct run_info info = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	info.machine = "x86_64";
	info.cpus = 96;
	info.memory_bytes = 1ull << 40;
	info.gpus = gpus;
	info.n_gpus = 2;
	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_string_equal(kept.info.machine, "x86_64");
	assert_int_equal(kept.info.cpus, 96);
	assert_int_equal(kept.info.memory_bytes, 1ull << 40);
	assert_int_equal(kept.info.n_gpus, 2);
	assert_memory_equal(kept.info.gpus, gpus, sizeof(gpus));
	run_free(&kept);
	buf_free(&raw);
}

static void test_the_options_that_left_calls_out_come_back(void **state)
{
	struct run_info info = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_null(kept.info.chosen);
	run_free(&kept);
	info.chosen = "--only cuMem*";
	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_string_equal(kept.info.chosen, "--only cuMem*");
	run_free(&kept);
	buf_free(&raw);
}

static void test_no_more_gpus_are_read_than_there_is_room_for(void **state)
{
	struct run_gpu gpus[RUN_GPUS_MAX + 3] = { 0 };
	struct run_info info = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	memset(gpus[0].name, 'n', sizeof(gpus[0].name) - 1);
	info.gpus = gpus;
	info.n_gpus = RUN_GPUS_MAX + 3;
	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_int_equal(kept.info.n_gpus, RUN_GPUS_MAX);
	assert_int_equal(strlen(kept.info.gpus[0].name), sizeof(gpus[0].name) - 1);
	run_free(&kept);
	buf_free(&raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_that_ended_before_it_began_was_short),
		cmocka_unit_test(test_the_machine_and_its_gpus_come_back),
		cmocka_unit_test(test_the_options_that_left_calls_out_come_back),
		cmocka_unit_test(test_no_more_gpus_are_read_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
