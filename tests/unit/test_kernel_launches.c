// SPDX-License-Identifier: MIT
/* Launches by kernel, as the report has them. */
#include "support.h"

#include "place_stacks.h"

#include "report/launches/kernel_launches.h"

static struct kernel_launches *launches;

static int set_up(void **state)
{
	launches = kernel_launches_new(NULL);
	return 0;
}

static int tear_down(void **state)
{
	kernel_launches_free(launches);
	return 0;
}

static void see(struct call call)
{
	struct event event = call_event(the_process(), 1, &call);

	kernel_launches_event(launches, &event);
}

static struct call shaped(struct call call, uint32_t grid, uint32_t block)
{
	call.args.grid[0] = grid;
	call.args.block[0] = block;
	return call;
}

static void test_launches_rate_and_shapes(void **state)
{
	const struct kernel *a = new_kernel("a()", true), *b = new_kernel("b()", true);
	const struct kernel_row *rows;
	size_t n;

	see(shaped(launch_at("cuLaunchKernel", 0, a), 10, 256));
	see(shaped(launch_at("cuLaunchKernel", 100, a), 20, 256));
	see(shaped(launch_at("cuLaunchKernel", 200, b), 1, 32));
	see(shaped(launch_at("cuLaunchKernel", 300, a), 20, 256));
	see(call_at("cudaDeviceSynchronize", 400, 600)); /* the process is at it for 1 ms */
	rows = kernel_launches_rows(launches, &n);
	assert_int_equal(n, 2);
	assert_ptr_equal(rows[0].kernel, a);
	assert_int_equal(rows[0].launches, 3);
	assert_true(rows[0].per_second > 2999.9 && rows[0].per_second < 3000.1);
	assert_int_equal(rows[0].n_shapes, 2);
	assert_int_equal(rows[0].shapes[0].grid[0], 20);
	assert_int_equal(rows[0].shapes[0].launches, 2);
	assert_int_equal(rows[0].first_ns, US(0));
	assert_int_equal(rows[0].last_ns, US(305));
	assert_int_equal(rows[1].launches, 1);
}

static void test_graphs_and_captured_launches_stand_apart(void **state)
{
	const struct kernel *a = new_kernel("c()", true);
	struct call captured = launch_at("cuLaunchKernel", 1, a), failed = captured;
	const struct kernel_row *rows;
	size_t n;

	captured.flags |= CALL_CAPTURED;
	fail_call(&failed, 1);
	see(captured);
	see(failed);
	see(call_at("cudaGraphLaunch", 10, 1));
	see(call_at("cudaGraphLaunch", 20, 1));
	rows = kernel_launches_rows(launches, &n);
	assert_int_equal(n, 2);
	assert_true(rows[0].graphs);
	assert_int_equal(rows[0].launches, 2);
	assert_int_equal(rows[0].n_shapes, 0);
	assert_ptr_equal(rows[1].kernel, a);
	assert_int_equal(rows[1].launches, 0);
	assert_int_equal(rows[1].captured, 1);
}

static void test_kernels_that_turn_out_to_have_one_name_are_one_row(void **state)
{
	struct kernel *one = new_kernel("0x1", false), *two = new_kernel("0x2", false);
	const struct kernel_row *rows;
	size_t n;

	see(shaped(launch_at("cuLaunchKernel", 0, one), 10, 256));
	see(shaped(launch_at("cuLaunchKernel", 10, two), 10, 256));
	one->name = two->name = "same()";
	rows = kernel_launches_rows(launches, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].launches, 2);
	assert_int_equal(rows[0].n_shapes, 1);
	assert_int_equal(rows[0].shapes[0].launches, 2);
}

static void test_the_same_kernel_of_two_processes_is_two_rows(void **state)
{
	const struct process *other = new_process(2, "other");
	struct call call = launch_at("cuLaunchKernel", 0, new_kernel("d()", true));
	struct event event = call_event(other, 2, &call);
	size_t n;

	see(call);
	kernel_launches_event(launches, &event);
	kernel_launches_rows(launches, &n);
	assert_int_equal(n, 2);
}

static void test_shapes_without_end_are_counted_together(void **state)
{
	const struct kernel *a = new_kernel("e()", true);
	const struct kernel_row *rows;
	size_t n;

	for (uint32_t i = 1; i <= SHAPES_MAX + 7; i++)
		see(shaped(launch_at("cuLaunchKernel", i, a), i, 32));
	rows = kernel_launches_rows(launches, &n);
	assert_int_equal(rows[0].n_shapes, SHAPES_MAX);
	assert_int_equal(rows[0].other_shapes, 7);
	assert_int_equal(rows[0].launches, SHAPES_MAX + 7);
}

static struct call from(const struct stack *stack, struct call call)
{
	call.stack = stack;
	return call;
}

static void test_places_of_a_kernel_are_rows_of_their_own(void **state)
{
	const struct kernel *a = new_kernel("a()", true);
	struct stack_places *places = stack_places_new();
	const struct kernel_row *rows;
	size_t n;

	kernel_launches_free(launches);
	launches = kernel_launches_new(places);
	see(from(&in_native, launch_at("cuLaunchKernel", 0, a)));
	see(from(&in_python, launch_at("cuLaunchKernel", 100, a)));
	see(from(&in_native, launch_at("cuLaunchKernel", 200, a)));
	see(from(NULL, launch_at("cuLaunchKernel", 300, a)));
	rows = kernel_launches_rows(launches, &n);
	assert_int_equal(n, 3);
	assert_int_equal(rows[0].launches, 2);
	assert_string_equal(stack_places_label(places, rows[0].key.place), IN_NATIVE_PLACE);
	assert_string_equal(stack_places_label(places, rows[1].key.place), PLACE_NO_STACK);
	assert_string_equal(stack_places_label(places, rows[2].key.place), IN_PYTHON_PLACE);
	stack_places_free(places);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_launches_rate_and_shapes),
		TEST(test_graphs_and_captured_launches_stand_apart),
		TEST(test_kernels_that_turn_out_to_have_one_name_are_one_row),
		TEST(test_the_same_kernel_of_two_processes_is_two_rows),
		TEST(test_shapes_without_end_are_counted_together),
		TEST(test_places_of_a_kernel_are_rows_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
