// SPDX-License-Identifier: MIT
/* Stacks and frames that are kept once. */
#include "unit.h"

#include "trace/stack.h"

static struct stack_frame frame_of(const char *function, const char *module, uint64_t offset)
{
	return (struct stack_frame){ .function = function, .module = module, .offset = offset };
}

static void test_equal_frames_are_one(void **state)
{
	struct stacks *stacks = stacks_new();
	char function[] = "f", module[] = "m";
	struct stack_frame frame = frame_of(function, module, 8);
	const struct stack_frame *first = stacks_frame(stacks, &frame), *again;

	frame.id = 77; /* whose it is does not matter */
	again = stacks_frame(stacks, &frame);
	assert_ptr_equal(first, again);
	function[0] = module[0] = 'x'; /* strings are copied */
	assert_string_equal(first->function, "f");
	assert_string_equal(first->module, "m");
	assert_int_equal(first->id, 0);
	stacks_free(stacks);
}

static void test_frames_that_differ_in_anything_are_others(void **state)
{
	const struct stack_frame frames[] = {
		{ .function = "f", .module = "m", .file = "a", .line = 1, .first_line = 1 },
		{ .function = "g", .module = "m", .file = "a", .line = 1, .first_line = 1 },
		{ .function = NULL, .module = "m", .file = "a", .line = 1, .first_line = 1 },
		{ .function = "f", .module = NULL, .file = "a", .line = 1, .first_line = 1 },
		{ .function = "f", .module = "m", .file = NULL, .line = 1, .first_line = 1 },
		{ .function = "f", .module = "m", .file = "", .line = 1, .first_line = 1 },
		{ .function = "f", .module = "m", .file = "a", .line = 2, .first_line = 1 },
		{ .function = "f", .module = "m", .file = "a", .line = 1, .first_line = 2 },
		{ .function = "f",
		  .module = "m",
		  .file = "a",
		  .line = 1,
		  .first_line = 1,
		  .offset = 1 },
		{ .function = "f",
		  .module = "m",
		  .file = "a",
		  .line = 1,
		  .first_line = 1,
		  .inlined = 1 },
		{ .function = "f",
		  .module = "m",
		  .file = "a",
		  .line = 1,
		  .first_line = 1,
		  .kind = FRAME_PYTHON },
	};
	const size_t n = sizeof(frames) / sizeof(*frames);
	struct stacks *stacks = stacks_new();

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < n; i++)
			assert_int_equal(stacks_frame(stacks, &frames[i])->id, i);
	stacks_free(stacks);
}

static void test_equal_stacks_are_one(void **state)
{
	struct stacks *stacks = stacks_new();
	struct stack_frame f = frame_of("f", "m", 1), g = frame_of("g", "m", 2);
	const struct stack_frame *up[] = { stacks_frame(stacks, &f), stacks_frame(stacks, &g) };
	const struct stack_frame *down[] = { up[1], up[0] };
	struct stack stack = { .n_frames = 2, .frames = up };
	const struct stack *first = stacks_stack(stacks, &stack);

	assert_ptr_equal(stacks_stack(stacks, &stack), first);
	assert_ptr_not_equal(first->frames, up); /* it is a copy */
	assert_ptr_equal(first->frames[0], up[0]);
	stack.frames = down;
	assert_int_equal(stacks_stack(stacks, &stack)->id, 1);
	stack.n_frames = 1;
	assert_int_equal(stacks_stack(stacks, &stack)->id, 2);
	stack.end = STACK_BAD;
	assert_int_equal(stacks_stack(stacks, &stack)->id, 3);
	assert_int_equal(stacks_stack(stacks, &stack)->end, STACK_BAD);
	stack.python_cut = true;
	assert_int_equal(stacks_stack(stacks, &stack)->id, 4);
	assert_true(stacks_stack(stacks, &stack)->python_cut);
	assert_int_equal(stacks_count(stacks), 5);
	assert_int_equal(stacks_refused(stacks), 0);
	stacks_free(stacks);
}

/* All ends and marks are told apart, also where frames are the same. */
static void test_every_end_is_another_stack(void **state)
{
	struct stacks *stacks = stacks_new();
	struct stack_frame f = frame_of("f", "m", 1);
	const struct stack_frame *frame = stacks_frame(stacks, &f);

	for (int end = 0; end < STACK_END_COUNT; end++)
		for (int cut = 0; cut < 2; cut++) {
			struct stack stack = { .end = (enum stack_end)end,
				               .python_cut = cut,
				               .n_frames = 1,
				               .frames = &frame };

			assert_int_equal(stacks_stack(stacks, &stack)->id, 2 * end + cut);
		}
	stacks_free(stacks);
}

static void test_memory_has_a_bound(void **state)
{
	enum { LONG = 1 << 20 };
	struct stacks *stacks = stacks_new();
	char *name = malloc(LONG + 1);
	size_t kept = 0;

	memset(name, 'n', LONG);
	name[LONG] = '\0';
	for (int i = 0; i < 300; i++) {
		struct stack_frame frame = frame_of(name, "m", 0);

		stacks_for(stacks, (uint32_t)i / 50, 0);
		name[0] = (char)('a' + i % 20);
		name[1] = (char)('a' + i / 20);
		kept += stacks_frame(stacks, &frame) != NULL;
	}
	assert_true(kept > 100 && kept < STACKS_BYTES_MAX / LONG + 1);
	assert_int_equal(stacks_refused(stacks), 300 - kept);
	free(name);
	stacks_free(stacks);
	stacks_free(NULL);
}

static void test_one_owner_leaves_the_others_room(void **state)
{
	enum { LONG = 1 << 20 };
	struct stacks *stacks = stacks_new();
	char *name = malloc(LONG + 1);
	struct stack_frame frame = frame_of(name, "m", 0);
	size_t kept = 0;

	memset(name, 'n', LONG);
	name[LONG] = '\0';
	stacks_for(stacks, 1, 0);
	for (int i = 0; i < 100; i++) {
		name[0] = (char)('A' + i % 50);
		name[1] = (char)('a' + i / 50);
		kept += stacks_frame(stacks, &frame) != NULL;
	}
	assert_in_range(kept, 60, STACKS_BYTES_EACH / LONG);
	assert_null(stacks_frame(stacks, &frame));
	stacks_for(stacks, 2, 0);
	assert_non_null(stacks_frame(stacks, &frame));
	stacks_for(stacks, 1, 0);
	assert_non_null(stacks_frame(stacks, &frame)); /* it is there */
	free(name);
	stacks_free(stacks);
}

/* However many processes it has. */
static void test_one_user_leaves_the_others_room(void **state)
{
	enum { LONG = 1 << 20 };
	struct stacks *stacks = stacks_new();
	char *name = malloc(LONG + 1);
	struct stack_frame frame = frame_of(name, "m", 0);
	size_t kept = 0;

	memset(name, 'n', LONG);
	name[LONG] = '\0';
	for (int i = 0; i < 200; i++) {
		stacks_for(stacks, 1 + (uint32_t)i / 50, 1000);
		name[0] = (char)('A' + i % 50);
		name[1] = (char)('a' + i / 50);
		kept += stacks_frame(stacks, &frame) != NULL;
	}
	assert_in_range(kept, 70, STACKS_BYTES_MAX / LONG / 8 * 5);
	stacks_for(stacks, 9, 1000);
	assert_null(stacks_frame(stacks, &frame));
	stacks_for(stacks, 10, 1001);
	assert_non_null(stacks_frame(stacks, &frame));
	free(name);
	stacks_free(stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_frames_are_one),
		cmocka_unit_test(test_frames_that_differ_in_anything_are_others),
		cmocka_unit_test(test_equal_stacks_are_one),
		cmocka_unit_test(test_every_end_is_another_stack),
		cmocka_unit_test(test_memory_has_a_bound),
		cmocka_unit_test(test_one_owner_leaves_the_others_room),
		cmocka_unit_test(test_one_user_leaves_the_others_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
