// SPDX-License-Identifier: MIT
/* A run is complete where nothing at all is told of what was missed, and only there. */
#include "support.h"

#include "analysis/missed.h"

static struct run_info whole_run(void)
{
	return (struct run_info){ .estimate_scale = 1, .returns = true };
}

static void assert_incomplete(const struct run_info *run, const char *said)
{
	struct json json = { .out = &(struct buf){ 0 } };
	struct buf text = { 0 };

	missed_text(&text, run);
	json_open(&json, NULL, '{');
	missed_json(&json, run);
	json_close(&json, '}');
	assert_false(missed_nothing(run));
	assert_has(text.data, said);
	assert_has_not(text.data, "nothing was lost");
	assert_has(json.out->data, "\"complete\":false");
	buf_free(json.out);
	buf_free(&text);
}

static void test_a_whole_run_is_complete(void **state)
{
	const struct run_info run = whole_run();
	struct buf text = { 0 };

	missed_text(&text, &run);
	assert_string_equal(text.data, "  nothing was lost\n");
	assert_true(missed_nothing(&run));
	buf_free(&text);
}

static void test_each_reason_has_its_words_and_makes_it_incomplete(void **state)
{
	for (enum lost_reason reason = 0; reason < LOST_COUNT; reason++) {
		struct run_info run = whole_run();

		run.lost[reason] = 4660;
		assert_non_null(missed_lost_key(reason));
		assert_incomplete(&run, " 4660: ");
	}
}

static void test_each_kind_of_miss_makes_it_incomplete(void **state)
{
	for (int kind = MISS_NOT_HOOKED; kind <= MISS_LAST; kind++) {
		const struct miss miss = { .kind = (enum miss_kind)kind, .why = "of a test" };
		struct run_info run = whole_run();

		run.misses = &miss;
		run.n_misses = 1;
		assert_non_null(missed_kind_key(miss.kind));
		if (kind == MISS_GPU_WINDOWS || kind == MISS_NOT_LOOKED)
			continue;
		assert_incomplete(&run, "of a test");
	}
}

static void test_windows_of_gpu_times_are_told_and_miss_nothing(void **state)
{
	const struct miss miss = { .kind = MISS_GPU_WINDOWS, .why = "of a test" };
	struct run_info run = whole_run();
	struct buf text = { 0 };

	run.misses = &miss;
	run.n_misses = 1;
	assert_true(missed_nothing(&run));
	assert_false(missed_brief(&text, &run));
	missed_text(&text, &run);
	assert_string_equal(text.data, "  nothing was lost\n  in windows: of a test\n");
	assert_true(missed_gpu_times(&run));
	buf_free(&text);
}

static void test_what_was_not_looked_at_is_told_and_is_no_loss(void **state)
{
	const struct miss miss = { .kind = MISS_NOT_LOOKED, .name = "f", .why = "of a test" };
	struct run_info run = whole_run();
	struct buf text = { 0 };

	run.misses = &miss;
	run.n_misses = 1;
	assert_true(missed_nothing(&run));
	missed_text(&text, &run);
	assert_string_equal(text.data, "  nothing was lost\n  not looked at: f: of a test\n");
	assert_false(missed_gpu_times(&run));
	buf_free(&text);
}

static void test_each_lack_of_stacks_makes_it_incomplete(void **state)
{
	for (enum stacks_missed missed = 0; missed < STACKS_MISSED_COUNT; missed++) {
		struct run_info run = whole_run();
		struct buf said = { 0 };

		run.stacks.missed[missed] = 4660;
		assert_non_null(missed_stacks_key(missed));
		buf_printf(&said, "  4660 %s\n", stacks_missed_text(missed, 4660));
		assert_incomplete(&run, said.data);
		assert_string_not_equal(stacks_missed_text(missed, 1),
		                        stacks_missed_text(missed, 2));
		buf_free(&said);
	}
}

static void test_lacks_of_stacks_have_keys_where_there_are_some(void **state)
{
	struct json json = { .out = &(struct buf){ 0 } };
	struct run_info run = whole_run();

	json_open(&json, NULL, '{');
	missed_json(&json, &run);
	assert_has_not(json.out->data, "stacks");
	run.stacks.missed[STACKS_LOST] = 390;
	missed_json(&json, &run);
	assert_has(json.out->data, "\"stacks\":{\"lost\":390}");
	buf_free(json.out);
}

static void test_an_estimate_and_a_file_without_end_are_incomplete(void **state)
{
	struct run_info run = whole_run();

	run.estimate_scale = 40;
	assert_incomplete(&run, "about 40.00 times as much");
	run = whole_run();
	run.cut_short = true;
	assert_incomplete(&run, "the trace file was cut short");
	run = whole_run();
	run.damaged_chunks = 1;
	run.damaged_events = 3;
	assert_incomplete(&run,
	                  "1 part of the trace file is damaged and left out, with at least 3");
	run.end_damaged = true;
	assert_incomplete(&run, "3 events; its end is damaged, too: how much was lost");
}

static void test_what_came_late_is_no_event_that_was_lost(void **state)
{
	struct run_info run = whole_run();

	run.lost[LOST_LATE] = 3;
	assert_int_equal(missed_events(run.lost), 0);
	run.lost[LOST_RING_FULL] = 4;
	run.lost[LOST_RECORDS] = 5;
	assert_int_equal(missed_events(run.lost), 9);
}

static void assert_brief(const struct run_info *run, const char *said)
{
	struct buf text = { 0 };

	assert_true(missed_brief(&text, run));
	assert_string_equal(text.data, said);
	buf_free(&text);
}

/* A closing line with a sum of its own said "none lost" of all reasons that it had not. */
static void test_no_reason_is_left_out_in_brief(void **state)
{
	struct run_info run = whole_run();
	struct buf text = { 0 };

	assert_false(missed_brief(&text, &run));
	assert_null(text.data);
	for (enum lost_reason reason = 0; reason < LOST_COUNT; reason++) {
		run = whole_run();
		run.lost[reason] = 213801;
		buf_printf(&text, "213801 %s", missed_lost_word(reason));
		assert_brief(&run, text.data);
		buf_reset(&text);
	}
	run = whole_run();
	run.lost[LOST_RING_FULL] = 1;
	run.lost[LOST_OVER_BUDGET] = 20;
	run.lost[LOST_GPU_RING] = 300;
	assert_brief(&run, "301 lost, 20 left out");
	run = whole_run();
	run.estimate_scale = 2;
	assert_brief(&run, "not all was seen");
	buf_free(&text);
}

static void test_what_became_of_the_file_is_not_what_was_missed_before(void **state)
{
	struct run_info run = whole_run();
	struct buf text = { 0 };

	run.cut_short = true;
	run.damaged_chunks = 3;
	assert_false(missed_brief(&text, &run));
	run.lost[LOST_RING_FULL] = 7;
	assert_brief(&run, "7 lost");
}

/* A sum that wraps is 0, and 0 is complete. */
static void test_numbers_of_a_hostile_file_do_not_wrap(void **state)
{
	struct run_info run = whole_run();

	run.lost[LOST_RING_FULL] = UINT64_MAX;
	run.lost[LOST_NO_ENTRY] = 1;
	assert_int_equal(missed_events(run.lost), UINT64_MAX);
	assert_incomplete(&run, " 18446744073709551615: ");
	assert_brief(&run, "18446744073709551615 lost");
}

static void test_reasons_for_which_a_gpu_was_less_idle_than_told(void **state)
{
	struct run_info run = whole_run();

	run.lost[LOST_RING_FULL] = 1;
	run.lost[LOST_GPU_RING] = 20;
	run.lost[LOST_GPU_RECORDS] = 300;
	run.lost[LOST_GPU_UNRECORDED] = 4000;
	assert_int_equal(missed_of(run.lost, MISSED_GPU_WORK), 4320);
	assert_int_equal(missed_of(run.lost, MISSED_FOR_RINGS), 21);
}

/* Two functions with as many calls are two sentences, and not one with both their names. */
static void test_counted_calls_are_told_of_each_function(void **state)
{
	const struct miss misses[] = {
		{ .kind = MISS_COUNTED, .name = "cuA", .lib = "l", .calls = 7, .why = "7 calls" },
		{ .kind = MISS_COUNTED, .name = "cuB", .lib = "l", .calls = 7, .why = "7 calls" },
		{ .kind = MISS_COUNTED, .name = "cuB", .lib = "m", .calls = 5, .why = "5 calls" },
	};
	const struct function function = { .name = "cuB", .lib = "l" };
	const struct function unknown = { .name = "cuA", .lib = "m" };
	struct missed_functions *functions;
	struct run_info run = whole_run();
	struct json json = { .out = &(struct buf){ 0 } };
	struct buf text = { 0 };

	run.misses = misses;
	run.n_misses = 3;
	missed_text(&text, &run);
	assert_has(text.data, "counted: cuA (l): 7 calls\n");
	assert_has(text.data, "counted: cuB (l): 7 calls\n");
	json_open(&json, NULL, '{');
	missed_json(&json, &run);
	assert_has(json.out->data, "\"name\":\"cuA\",\"lib\":\"l\",\"calls\":7");
	functions = missed_functions_new(&run);
	assert_int_equal(missed_of_function(functions, &function).counted, 7);
	assert_true(missed_of_function(functions, &function).partly);
	assert_false(missed_of_function(functions, &unknown).partly);
	missed_functions_free(functions);
	buf_free(json.out);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_run_is_complete),
		cmocka_unit_test(test_each_reason_has_its_words_and_makes_it_incomplete),
		cmocka_unit_test(test_each_kind_of_miss_makes_it_incomplete),
		cmocka_unit_test(test_windows_of_gpu_times_are_told_and_miss_nothing),
		cmocka_unit_test(test_what_was_not_looked_at_is_told_and_is_no_loss),
		cmocka_unit_test(test_each_lack_of_stacks_makes_it_incomplete),
		cmocka_unit_test(test_lacks_of_stacks_have_keys_where_there_are_some),
		cmocka_unit_test(test_an_estimate_and_a_file_without_end_are_incomplete),
		cmocka_unit_test(test_what_came_late_is_no_event_that_was_lost),
		cmocka_unit_test(test_no_reason_is_left_out_in_brief),
		cmocka_unit_test(test_what_became_of_the_file_is_not_what_was_missed_before),
		cmocka_unit_test(test_numbers_of_a_hostile_file_do_not_wrap),
		cmocka_unit_test(test_reasons_for_which_a_gpu_was_less_idle_than_told),
		cmocka_unit_test(test_counted_calls_are_told_of_each_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
