// SPDX-License-Identifier: MIT
/* Stacks of Chrome's JSON: a tree with a bound. */
#include "support.h"

#include <stdlib.h>

#include "base/array.h"
#include "output/chrome/chrome.h"

#define LONG_NAME ((size_t)1 << 20)

static struct stack_frame frames[200];
static const struct stack_frame *list[200];

static struct stack stack_of(uint32_t id, size_t first, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		frames[i].id = (uint32_t)i;
		list[i] = &frames[i];
	}
	return (struct stack){ .id = id, .n_frames = n, .frames = &list[first] };
}

static void test_stacks_that_begin_alike_share_their_begin(void **state)
{
	struct chrome_stacks *stacks = chrome_stacks_new();
	struct stack outer = stack_of(0, 2, 2), inner = stack_of(1, 1, 3), all = stack_of(2, 0, 4);
	struct stack other = stack_of(3, 4, 1);

	assert_int_equal(chrome_stack(stacks, &outer), 2);
	assert_int_equal(chrome_stack(stacks, &all), 4);
	assert_int_equal(chrome_stack(stacks, &inner), 3);
	assert_int_equal(chrome_stack(stacks, &other), 5);
	assert_int_equal(chrome_stack(stacks, &all), 4);
	assert_int_equal(chrome_stack(stacks, NULL), 0);
	assert_int_equal(chrome_stacks_left_out(stacks), 0);
	chrome_stacks_free(stacks);
}

/* The number of a frame is what makes it the same: in a recursion it is there again and again. */
static void test_a_recursion_is_as_deep_as_it_is(void **state)
{
	struct chrome_stacks *stacks = chrome_stacks_new();
	const struct stack_frame *same[3000];
	struct stack stack = { .n_frames = ARRAY_SIZE(same), .frames = same };

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		same[i] = &frames[0];
	assert_int_equal(chrome_stack(stacks, &stack), 3000);
	chrome_stacks_free(stacks);
}

/* 64 MiB of names have room: each event that has a stack beyond is counted, again and again. */
static void test_what_has_no_room_is_counted(void **state)
{
	struct chrome_stacks *stacks = chrome_stacks_new();
	char *name = malloc(LONG_NAME + 1);
	unsigned fit = 0;

	assert_non_null(name);
	memset(name, 'n', LONG_NAME);
	name[LONG_NAME] = '\0';
	for (uint32_t i = 0; i < 100; i++) {
		struct stack stack = stack_of(i, i, 1);

		frames[i].function = name;
		fit += chrome_stack(stacks, &stack) != 0;
	}
	assert_int_equal(fit, 64);
	assert_int_equal(chrome_stacks_left_out(stacks), 36);
	for (uint32_t i = 0; i < 100; i++) {
		struct stack stack = stack_of(i, i, 1);

		assert_int_equal(chrome_stack(stacks, &stack) != 0, i < 64);
	}
	assert_int_equal(chrome_stacks_left_out(stacks), 72);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i].function = NULL;
	chrome_stacks_free(stacks);
	free(name);
}

/* A million places: what comes then is left out, whatever it has in common with what is there. */
static void test_places_have_a_bound(void **state)
{
	enum { MILLION = 1000000, DEPTH = 500 };
	struct stack_frame *many = calloc(MILLION + 10 * DEPTH, sizeof(*many));
	struct chrome_stacks *stacks = chrome_stacks_new();
	const struct stack_frame *chain[DEPTH];

	assert_non_null(many);
	for (uint32_t i = 0; i < MILLION / DEPTH + 10; i++) {
		struct stack stack = { .id = i, .n_frames = DEPTH, .frames = chain };

		for (uint32_t k = 0; k < DEPTH; k++) {
			uint32_t number = i * DEPTH + k;

			many[number].id = number;
			chain[DEPTH - 1 - k] = &many[number];
		}
		assert_int_equal(chrome_stack(stacks, &stack),
		                 i < MILLION / DEPTH ? (i + 1) * DEPTH : 0);
	}
	assert_int_equal(chrome_stacks_left_out(stacks), 10);
	chrome_stacks_free(stacks);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_that_begin_alike_share_their_begin),
		cmocka_unit_test(test_a_recursion_is_as_deep_as_it_is),
		cmocka_unit_test(test_what_has_no_room_is_counted),
		cmocka_unit_test(test_places_have_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
