// SPDX-License-Identifier: MIT
/* Stacks and frames that are kept once. */
#include "unit.h"

#include <stdio.h>

#include "trace/format.h"
#include "trace/stack.h"

static struct stack_frame frame_of(const char *function, const char *module, uint64_t offset)
{
	return (struct stack_frame){ .function = function, .module = module, .offset = offset };
}

static void test_equal_frames_are_one(void **state)
{
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
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
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < n; i++)
			assert_int_equal(stacks_frame(stacks, &frames[i])->id, i);
	stacks_free(stacks);
}

static void test_equal_stacks_are_one(void **state)
{
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
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
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
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
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
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
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
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
	assert_in_range(kept, 60, (STACKS_BYTES_MAX / 2) / LONG);
	assert_null(stacks_frame(stacks, &frame));
	stacks_for(stacks, 2, 0);
	assert_non_null(stacks_frame(stacks, &frame));
	stacks_for(stacks, 1, 0);
	assert_non_null(stacks_frame(stacks, &frame)); /* it is there */
	free(name);
	stacks_free(stacks);
}

/* A file has it of each of them, and who reads that has 128 MiB for frames with their texts. */
static void test_a_text_counts_for_each_frame_that_has_it(void **state)
{
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
	char *name = malloc(FORMAT_FRAME_TEXT_MAX + 1);
	struct stack_frame frame = frame_of(name, "m", 0);

	memset(name, 'n', FORMAT_FRAME_TEXT_MAX);
	name[FORMAT_FRAME_TEXT_MAX] = '\0';
	while (stacks_frame(stacks, &frame))
		frame.offset++;
	assert_in_range(frame.offset, 10000, STACKS_BYTES_MAX / 2 / FORMAT_FRAME_TEXT_MAX);
	free(name);
	stacks_free(stacks);
}

/* However many processes it has. */
static void test_one_user_leaves_the_others_room(void **state)
{
	enum { LONG = 1 << 20 };
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
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

/* ---- what is given back ---------------------------------------------------------------------- */

#define MOST ((size_t)8 << 20)

/* A stack of two frames that no other number has, under one that all have; NULL: no room. */
static const struct stack *numbered(struct stacks *stacks, unsigned number)
{
	char function[32] = "";
	struct stack_frame own = frame_of(function, "m", number), outer = frame_of("main", "m", 0);
	const struct stack_frame *frames[2];
	const struct stack stack = { .n_frames = 2, .frames = frames };

	snprintf(function, sizeof(function), "f%u", number);
	frames[0] = stacks_frame(stacks, &own);
	frames[1] = stacks_frame(stacks, &outer);
	return frames[0] && frames[1] ? stacks_stack(stacks, &stack) : NULL;
}

static void assert_number(const struct stack *stack, unsigned number)
{
	char function[32];

	snprintf(function, sizeof(function), "f%u", number);
	assert_int_equal(stack->n_frames, 2);
	assert_string_equal(stack->frames[0]->function, function);
	assert_string_equal(stack->frames[1]->function, "main");
	assert_int_equal(stack->frames[0]->offset, number);
}

static void test_what_was_moved_is_the_same_and_all_else_is_gone(void **state)
{
	struct stacks *stacks = stacks_new(MOST), *next = stacks_new(MOST);
	const struct stack *held[2] = { numbered(stacks, 1), NULL }, *moved;

	for (unsigned i = 2; i < 1000; i++)
		numbered(stacks, i);
	held[1] = numbered(stacks, 1000);
	moved = stacks_move(next, held[1]);
	assert_ptr_equal(stacks_move(next, held[1]), moved); /* who holds it, too, finds it */
	held[0] = stacks_move(next, held[0]);
	stacks_free(stacks);
	assert_number(held[0], 1);
	assert_number(moved, 1000);
	assert_ptr_equal(held[0]->frames[1], moved->frames[1]);
	assert_int_equal(stacks_count(next), 2);
	assert_int_equal(moved->id, 0); /* numbers are dense again */
	assert_int_equal(held[0]->id, 1);
	assert_ptr_equal(numbered(next, 1), held[0]);
	stacks_free(next);
}

/* One process after the other floods; what one of another user holds is right all the while. */
static void test_floods_without_end_leave_room_and_what_is_held(void **state)
{
	enum { HELD = 500, FLOOD = 20000, PERSON = 1000, OTHER = 1001 };
	struct stacks *stacks = stacks_new(MOST);
	const struct stack *held[HELD];

	stacks_for(stacks, 1, OTHER);
	for (unsigned i = 0; i < HELD; i++)
		assert_non_null(held[i] = numbered(stacks, i));
	for (uint32_t generation = 0; generation < 40; generation++) {
		struct stacks *next;

		stacks_for(stacks, 2 + generation, PERSON);
		for (unsigned i = 0; i < FLOOD; i++)
			numbered(stacks, HELD + generation * FLOOD + i);
		assert_true(stacks_are_worn(stacks));
		stacks_for(stacks, 1000 + generation, OTHER); /* who comes later has some at once */
		assert_non_null(numbered(stacks, UINT32_MAX - generation));
		next = stacks_new(MOST);
		stacks_for(next, 1, OTHER);
		for (unsigned i = 0; i < HELD; i++)
			held[i] = stacks_move(next, held[i]);
		stacks_as_new(next);
		stacks_free(stacks);
		stacks = next;
		assert_false(stacks_are_worn(stacks));
		assert_int_equal(stacks_count(stacks), HELD);
		assert_int_equal(stacks_refused(stacks), 0);
		for (unsigned i = 0; i < HELD; i++)
			assert_number(held[i], i);
	}
	stacks_free(stacks);
}

/* What one user still holds does not take the room that others' have. */
static void test_what_has_no_room_when_it_is_moved_is_told(void **state)
{
	enum { N = 20000 };
	struct stacks *stacks = stacks_new(16 * MOST), *next = stacks_new(MOST);
	const struct stack *held[N];
	size_t moved = 0;

	for (unsigned i = 0; i < N; i++)
		assert_non_null(held[i] = numbered(stacks, i));
	for (unsigned i = 0; i < N; i++) {
		stacks_for(next, 1 + i / (N / 4), 1000); /* of four processes */
		held[i] = stacks_move(next, held[i]);
		moved += held[i] != NULL;
		if (held[i])
			assert_number(held[i], i);
	}
	assert_in_range(moved, N / 4, N - 1);
	assert_in_range(stacks_refused(next), 1, N);
	stacks_for(next, 9, 1001);
	assert_non_null(numbered(next, UINT32_MAX));
	stacks_free(stacks);
	stacks_free(next);
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
		cmocka_unit_test(test_a_text_counts_for_each_frame_that_has_it),
		cmocka_unit_test(test_one_user_leaves_the_others_room),
		cmocka_unit_test(test_what_was_moved_is_the_same_and_all_else_is_gone),
		cmocka_unit_test(test_floods_without_end_leave_room_and_what_is_held),
		cmocka_unit_test(test_what_has_no_room_when_it_is_moved_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
