// SPDX-License-Identifier: MIT
/* Live memory by place, over pages made here. */
#include "unit.h"

#include "place_stacks.h"
#include "watch/places.h"

#define SECOND 1000000000ull

static const struct process process = { .id = 0, .pid = 1, .comm = "train" };
static const struct process other = { .id = 1, .pid = 2, .comm = "other" };
static const struct function cuda_malloc = { .id = 0, .name = "cudaMalloc" };
static const struct function cuda_malloc_host = { .id = 1, .name = "cudaMallocHost" };

/* Another way to the same line of Python. */
static const struct stack_frame *const again_frames[] = { &frame_of_cuda, &frame_of_python };
static const struct stack in_python_again = { .id = 2, .n_frames = 2, .frames = again_frames };

static struct watch_place row(uint64_t bytes, const struct stack *stack)
{
	return (struct watch_place){ .process = &process,
		                     .kind = MEMORY_DEVICE,
		                     .function = &cuda_malloc,
		                     .stack = stack,
		                     .count = bytes / 100,
		                     .bytes = bytes,
		                     .older_count = bytes / 100,
		                     .older_bytes = bytes,
		                     .oldest_ns = SECOND };
}

static void take(struct places *places, const struct watch_place *rows, size_t n)
{
	const struct watch_process_memory processes[] = { { .process = &process },
		                                          { .process = &other } };
	const struct watch_memory memory = {
		.places = rows, .n_places = n, .processes = processes, .n_processes = 2
	};
	static uint64_t time_ns;
	const struct watch_page page = { .memory = &memory, .time_ns = time_ns += 5 * SECOND };

	places_take(places, &page, NULL);
}

static const struct held_place *first(const struct places *places, size_t expected)
{
	const struct held_place *list;

	assert_int_equal(places_list(places, &list), expected);
	return list;
}

/* Bytes on one page after the other; the trend on the last. */
static enum trend trend_of(const uint64_t *bytes, size_t n)
{
	struct places *places = places_new(false);
	enum trend trend = TREND_COUNT;

	for (size_t i = 0; i < n; i++) {
		struct watch_place one = row(bytes[i], NULL);

		take(places, &one, 1);
		trend = first(places, 1)->trend;
	}
	places_free(places);
	return trend;
}

#define TREND(...)                                                                                 \
	trend_of((const uint64_t[]){ __VA_ARGS__ },                                                \
	         sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void test_trends_follow_the_last_three_intervals(void **state)
{
	assert_int_equal(TREND(100), TREND_NEW);
	assert_int_equal(TREND(100, 200, 300), TREND_NEW);
	assert_int_equal(TREND(100, 200, 300, 400), TREND_SUSPECT);
	assert_int_equal(TREND(100, 100, 100, 100), TREND_STEADY);
	assert_int_equal(TREND(100, 200, 200, 300), TREND_GROWING);
	assert_int_equal(TREND(100, 200, 100, 200), TREND_VARYING);
	assert_int_equal(TREND(900, 100, 200, 300, 400), TREND_SUSPECT);
	assert_int_equal(TREND(100, 200, 300, 400, 400), TREND_GROWING);
	assert_int_equal(TREND(100, 200, 300, 300, 300, 300), TREND_STEADY);
}

static void test_place_that_was_empty_begins_anew(void **state)
{
	struct places *places = places_new(false);
	struct watch_place one = row(100, NULL);

	for (int i = 0; i < 4; i++)
		take(places, &one, 1);
	assert_int_equal(first(places, 1)->trend, TREND_STEADY);
	take(places, NULL, 0);
	first(places, 0);
	take(places, &one, 1);
	assert_int_equal(first(places, 1)->trend, TREND_NEW);
	places_free(places);
}

static void test_growth_is_since_the_page_before(void **state)
{
	struct places *places = places_new(false);
	struct watch_place one = row(100, NULL);

	take(places, &one, 1);
	assert_int_equal(first(places, 1)->grown_bytes, 0);
	one = row(700, NULL);
	take(places, &one, 1);
	assert_int_equal(first(places, 1)->grown_bytes, 600);
	assert_int_equal(first(places, 1)->grew, 1);
	one = row(300, NULL);
	take(places, &one, 1);
	assert_int_equal(first(places, 1)->grown_bytes, -400);
	assert_int_equal(first(places, 1)->grew, 0);
	places_free(places);
}

static void test_old_memory_comes_before_young(void **state)
{
	struct places *places = places_new(false);
	struct watch_place rows[] = { row(900, NULL), row(100, NULL) };

	rows[0].older_count = rows[0].older_bytes = 0;
	rows[1].kind = MEMORY_HOST;
	take(places, rows, 2);
	assert_int_equal(first(places, 2)[0].bytes, 100);
	places_free(places);
}

static void test_kinds_functions_and_processes_are_places_of_their_own(void **state)
{
	struct places *places = places_new(false);
	struct watch_place rows[] = { row(100, NULL), row(200, NULL), row(300, NULL),
		                      row(400, NULL) };
	const struct held_place *list;

	rows[1].kind = MEMORY_HOST;
	rows[2].function = &cuda_malloc_host;
	rows[3].process = &other;
	take(places, rows, 4);
	list = first(places, 4);
	assert_int_equal(list[0].bytes, 400); /* the most first */
	assert_int_equal(list[3].bytes, 100);
	places_free(places);
}

static void test_ways_to_one_line_come_together(void **state)
{
	struct places *places = places_new(false);
	struct watch_place rows[] = { row(100, &in_python), row(300, &in_python_again),
		                      row(200, &in_native), row(50, NULL) };
	const struct held_place *list;

	take(places, rows, 4);
	list = first(places, 3);
	assert_int_equal(list[0].bytes, 400);
	assert_int_equal(list[0].stacks, 2);
	assert_ptr_equal(list[0].frame, &frame_of_python);
	assert_ptr_equal(list[0].stack, &in_python_again); /* that with the most */
	assert_ptr_equal(list[1].frame, &frame_of_app);
	assert_null(list[2].stack);
	assert_null(list[2].frame);
	places_free(places);
}

static void test_by_stack_they_stay_apart(void **state)
{
	struct places *places = places_new(true);
	struct watch_place rows[] = { row(100, &in_python), row(300, &in_python_again),
		                      row(50, NULL) };

	take(places, rows, 3);
	assert_int_equal(first(places, 3)->bytes, 300);
	places_free(places);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void test_end_of_a_process_is_told_once(void **state)
{
	struct places *places = places_new(false);
	const struct watch_memory_totals totals[] = {
		{ .process = &process, .kind = MEMORY_DEVICE, .exit = { 2, 200 } },
		{ .process = &process, .kind = MEMORY_HOST, .exit = { 1, 50 } },
		{ .process = &process, .kind = MEMORY_VMM_VA, .exit = { 1, 1000 } },
	};
	const struct watch_process_memory ended = { .process = &process, .ended = true };
	struct watch_place one = row(200, NULL);
	struct watch_memory memory = { .left = &one,
		                       .n_left = 1,
		                       .processes = &ended,
		                       .n_processes = 1,
		                       .totals = totals,
		                       .n_totals = 3 };
	const struct watch_page page = { .memory = &memory };
	const struct held_process *processes;

	one.older_count = one.older_bytes = 0; /* all that was left, however old */
	places_take(places, &page, NULL);
	assert_int_equal(places_processes(places, &processes), 1);
	assert_int_equal(processes[0].unfreed.count, 3);
	assert_int_equal(processes[0].unfreed.bytes, 250);
	assert_int_equal(processes[0].n_totals, 3);
	assert_true(first(places, 1)->ended);
	memory.n_left = 0;
	places_take(places, &page, NULL);
	assert_int_equal(places_processes(places, &processes), 0);
	first(places, 0);
	places_free(places);
}

static void test_last_page_tells_of_all_that_ended(void **state)
{
	struct places *places = places_new(false);
	struct watch_place one = row(200, NULL);
	const struct watch_process_memory ended = { .process = &process, .ended = true };
	struct watch_memory memory = {
		.left = &one, .n_left = 1, .processes = &ended, .n_processes = 1
	};
	struct watch_page page = { .memory = &memory };
	const struct held_process *processes;

	places_take(places, &page, NULL);
	memory.n_left = 0;
	places_take(places, &page, NULL);
	first(places, 0);
	page.last = true;
	places_take(places, &page, NULL);
	assert_int_equal(first(places, 1)->bytes, 200);
	assert_int_equal(places_processes(places, &processes), 1);
	places_free(places);
}

static void test_growth_and_failures_of_a_process_are_since_the_page_before(void **state)
{
	struct places *places = places_new(false);
	struct watch_process_memory row_of = { .process = &process,
		                               .live = { 1, 1000 },
		                               .failed = 2 };
	const struct watch_memory memory = { .processes = &row_of, .n_processes = 1 };
	const struct watch_page page = { .memory = &memory };
	const struct held_process *processes;

	places_take(places, &page, NULL);
	row_of.live.bytes = 400;
	row_of.failed = 5;
	places_take(places, &page, NULL);
	assert_int_equal(places_processes(places, &processes), 1);
	assert_int_equal(processes[0].grown_bytes, -600);
	assert_int_equal(processes[0].failed_since, 3);
	places_free(places);
}

/* Stacks that are there then have other numbers, and old numbers are those of others. */
static void test_trends_go_on_when_stacks_have_other_numbers(void **state)
{
	static const struct stack python_after = { .id = 1,
		                                   .n_frames = 3,
		                                   .frames = python_frames };
	static const struct stack native_after = { .id = 0,
		                                   .n_frames = 2,
		                                   .frames = native_frames };
	struct places *places = places_new(false);
	struct watch_place rows[2];
	struct watch_memory memory = { .places = rows, .n_places = 2 };
	const struct watch_page page = { .memory = &memory };
	AT_END(buf_free) struct buf label = { 0 };
	const struct held_place *list;

	for (uint64_t i = 1; i <= 8; i++) {
		memory.stacks_turn = i / 2;
		rows[0] = row(1000 * i, i % 4 < 2 ? &in_python : &python_after);
		rows[1] = row(500, i % 4 < 2 ? &in_native : &native_after);
		places_take(places, &page, NULL);
		list = first(places, 2);
		buf_reset(&label);
		place_label(list[0].frame, &label);
		assert_string_equal(label.data, IN_PYTHON_PLACE);
		assert_int_equal(list[0].grown_bytes, i > 1 ? 1000 : 0);
		assert_int_equal(list[0].trend, i > PLACES_TREND ? TREND_SUSPECT : TREND_NEW);
		assert_int_equal(list[1].grown_bytes, 0);
		assert_int_equal(list[1].trend, i > PLACES_TREND ? TREND_STEADY : TREND_NEW);
	}
	places_free(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trends_follow_the_last_three_intervals),
		cmocka_unit_test(test_place_that_was_empty_begins_anew),
		cmocka_unit_test(test_growth_is_since_the_page_before),
		cmocka_unit_test(test_old_memory_comes_before_young),
		cmocka_unit_test(test_kinds_functions_and_processes_are_places_of_their_own),
		cmocka_unit_test(test_ways_to_one_line_come_together),
		cmocka_unit_test(test_by_stack_they_stay_apart),
		cmocka_unit_test(test_end_of_a_process_is_told_once),
		cmocka_unit_test(test_last_page_tells_of_all_that_ended),
		cmocka_unit_test(test_growth_and_failures_of_a_process_are_since_the_page_before),
		cmocka_unit_test(test_trends_go_on_when_stacks_have_other_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
