// SPDX-License-Identifier: MIT
/* What a trace file says of its run, where that is nonsense. */
#include "support.h"

#include "base/array.h"

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

static void test_the_reason_of_a_flight_recorder_comes_back(void **state)
{
	struct run_info info = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_null(kept.info.reason);
	run_free(&kept);
	info.reason = "slow_step: 412 ms";
	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_string_equal(kept.info.reason, "slow_step: 412 ms");
	run_free(&kept);
	buf_free(&raw);
}

static void test_calls_that_were_counted_come_back(void **state)
{
	const struct miss misses[] = { { .kind = MISS_COUNTED,
		                         .name = "cuCtxGetDevice",
		                         .lib = "libcuda.so.1",
		                         .processes = 2,
		                         .calls = 1ull << 40,
		                         .why = "of a test" },
		                       { .kind = MISS_UNHOOKED, .name = "cuCtxGetCurrent" } };
	struct run_info info = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	info.misses = misses;
	info.n_misses = 2;
	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_int_equal(kept.info.n_misses, 2);
	assert_int_equal(kept.info.misses[0].kind, MISS_COUNTED);
	assert_int_equal(kept.info.misses[0].processes, 2);
	assert_int_equal(kept.info.misses[0].calls, 1ull << 40);
	assert_int_equal(kept.info.misses[1].calls, 0);
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

/* Two processes of one number, one after the other, and one of which nothing is known. */
static void test_who_processes_were_comes_back(void **state)
{
	char user[] = "ada", rank[] = "3", job[] = "77", too_long[300];
	struct run_identity all[] = {
		{ .pid = 7, .since_ns = 100, .words = { [RUN_IDENTITY_USER] = user } },
		{ .pid = 7,
		  .since_ns = 200,
		  .own_word = 1u << RUN_IDENTITY_RANK,
		  .gpus = 1u << 3,
		  .memory_whole = true,
		  .memory = { { 210, 500 }, { 220, INT64_MAX - 1 }, { 230, 700 } },
		  .words = { [RUN_IDENTITY_RANK] = rank,
		             [RUN_IDENTITY_JOB] = job,
		             [RUN_IDENTITY_COMMAND] = too_long } },
		{ .pid = 8, .since_ns = 300 },
		{ .pid = 7, .since_ns = 400 },
	};
	struct run_info info = default_run_info();
	struct kept_run kept = { 0 };
	const struct run_identity *who;
	struct buf raw = { 0 };

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	info.identities = all;
	info.n_identities = 4;
	info.identities_left_out = 5;
	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_int_equal(kept.info.n_identities, 3);
	assert_int_equal(kept.info.identities_left_out, 5);
	who = run_identity_of(&kept.info, 7, 150);
	assert_string_equal(who->words[RUN_IDENTITY_USER], "ada");
	assert_null(who->words[RUN_IDENTITY_RANK]);
	assert_int_equal(who->gpus, 0);
	assert_int_equal(who->memory[RUN_MEMORY_FIRST].time_ns, 0);
	who = run_identity_of(&kept.info, 7, 200);
	assert_string_equal(who->words[RUN_IDENTITY_RANK], "3");
	assert_string_equal(who->words[RUN_IDENTITY_JOB], "77");
	assert_int_equal(who->own_word, 1u << RUN_IDENTITY_RANK);
	assert_int_equal(who->gpus, 1u << 3);
	assert_true(who->memory_whole);
	assert_memory_equal(who->memory, all[1].memory, sizeof(who->memory));
	assert_null(who->words[RUN_IDENTITY_COMMAND]);
	assert_null(run_identity_of(&kept.info, 8, 300));
	assert_null(run_identity_of(&kept.info, 7, 400)); /* another has the number by then */
	assert_null(run_identity_of(&kept.info, 9, 300));
	run_free(&kept);
	buf_free(&raw);
}

static void test_memory_that_cannot_be_is_not_read(void **state)
{
	static const struct run_memory bad[] = { { 0, 5 }, { UINT64_MAX, 5 }, { 5, UINT64_MAX } };
	char user[] = "ada";
	struct run_identity one = { .pid = 7, .words = { user } };
	struct run_info info = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	info.identities = &one;
	info.n_identities = 1;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		one.memory[RUN_MEMORY_FIRST] = one.memory[RUN_MEMORY_MOST] =
			(struct run_memory){ 10, 5 };
		one.memory[RUN_MEMORY_LAST] = bad[i];
		run_write(&info, &raw);
		assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
		assert_int_equal(kept.info.identities[0].memory[RUN_MEMORY_FIRST].time_ns, 0);
	}
	run_free(&kept);
	buf_free(&raw);
}

static void test_no_more_identities_are_read_than_there_is_room_for(void **state)
{
	char user[] = "ada";
	struct run_identity *all = calloc(RUN_IDENTITIES_MAX + 3, sizeof(*all));
	struct run_info info = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	for (uint32_t i = 0; i < RUN_IDENTITIES_MAX + 3; i++)
		all[i] = (struct run_identity){ .pid = i, .words = { user } };
	info.identities = all;
	info.n_identities = RUN_IDENTITIES_MAX + 3;
	run_write(&info, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_int_equal(kept.info.n_identities, RUN_IDENTITIES_MAX);
	run_free(&kept);
	buf_free(&raw);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_that_ended_before_it_began_was_short),
		cmocka_unit_test(test_the_machine_and_its_gpus_come_back),
		cmocka_unit_test(test_the_options_that_left_calls_out_come_back),
		cmocka_unit_test(test_the_reason_of_a_flight_recorder_comes_back),
		cmocka_unit_test(test_calls_that_were_counted_come_back),
		cmocka_unit_test(test_no_more_gpus_are_read_than_there_is_room_for),
		cmocka_unit_test(test_who_processes_were_comes_back),
		cmocka_unit_test(test_memory_that_cannot_be_is_not_read),
		cmocka_unit_test(test_no_more_identities_are_read_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
