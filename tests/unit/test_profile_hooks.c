// SPDX-License-Identifier: MIT
/* Profiles of calls of functions that users hook: whose time goes where, and what has none. */
#include "profile_scene.h"
#include "support.h"

#include "profile/collect.h"
#include "profile/profile_write.h"

static const struct function all_reduce = { .id = 1, .name = "nccl.all", .layer = LAYER_HOOK };
static const struct function other = { .id = 2, .name = "other", .layer = LAYER_HOOK };
static const struct function driver = { .id = 3, .name = "RM_ALLOC", .layer = LAYER_KERNEL };
static struct consumer *collect; /* freed after it was looked at */
static struct run run;

static int set_up(void **state)
{
	struct collect_options options = { .kinds = 1u << WEIGHT_HOOK };

	open_run(&run);
	collect = collect_new(&options);
	begin_run(&run, collect);
	return 0;
}

static int tear_down(void **state)
{
	consumer_free(collect);
	close_run(&run);
	return 0;
}

static void hit(const struct function *function, const struct stack *stack, double us)
{
	struct call call = {
		.function = function, .begin_ns = US(10), .end_ns = US(10 + us), .stack = stack
	};

	if (us <= 0)
		call.end_ns = 0, call.flags = CALL_UNFINISHED;
	push(&run, &(struct event){ .type = EVENT_OTHER_CALL,
	                            .time_ns = US(10 + us),
	                            .process = the_process(),
	                            .tid = 4242,
	                            .call = &call });
}

static void assert_folded(const char *wanted)
{
	const struct profile_info info = { 0 };
	struct err err = { 0 };
	char *text = NULL;
	size_t bytes;
	FILE *out;

	assert_int_equal(consumers_end(&collect, 1, &run.info, &err), 0);
	out = open_memstream(&text, &bytes);
	assert_int_equal(
		profile_write(collect_profile(collect), &info, PROFILE_FOLDED, out, "x", &err), 0);
	fclose(out);
	assert_has(text, wanted);
	free(text);
}

static void test_hooked_calls_are_under_their_stacks(void **state)
{
	struct collect_figures figures;
	struct profile_sums sums;

	hit(&all_reduce, &scene_cut, 5);
	hit(&all_reduce, &scene_cut, 7);
	hit(&other, &scene_cut, 1);
	hit(&driver, &scene_cut, 100);
	assert_folded(";[hook]nccl.all 12\n");
	profile_total(collect_profile(collect), &sums);
	assert_int_equal(sums.ns[WEIGHT_HOOK], 13000);
	assert_int_equal(sums.count[WEIGHT_HOOK], 3);
	assert_int_equal(sums.count[WEIGHT_GPU], 0);
	collect_figures(collect, &figures);
	assert_true(figures.hooks);
	assert_int_equal(figures.no_end, 0);
	assert_int_equal(figures.gpu_guessed_ns, 0);
}

static void test_calls_that_were_not_walked_are_where_the_others_are(void **state)
{
	struct collect_figures figures;
	struct profile_sums sums;

	hit(&all_reduce, &scene_cut, 4);
	for (int i = 0; i < 9; i++)
		hit(&all_reduce, NULL, 1);
	assert_folded(";[hook]nccl.all 13\n");
	profile_total(collect_profile(collect), &sums);
	assert_int_equal(sums.count[WEIGHT_HOOK], 10); /* and not as often as the time grew */
	collect_figures(collect, &figures);
	assert_int_equal(figures.gpu_guessed_ns, 9000);
}

static void test_calls_that_did_not_return_are_counted_apart(void **state)
{
	struct collect_figures figures;

	hit(&all_reduce, &scene_cut, 0);
	hit(&all_reduce, &scene_cut, 5);
	assert_folded(";[hook]nccl.all 5\n");
	collect_figures(collect, &figures);
	assert_int_equal(figures.no_end, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hooked_calls_are_under_their_stacks),
		TEST(test_calls_that_were_not_walked_are_where_the_others_are),
		TEST(test_calls_that_did_not_return_are_counted_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
