// SPDX-License-Identifier: MIT
/* Two traces side by side, and the test behind it. */
#include "stack_events.h"

#include <math.h>

#include "report/diff/welch.h"
#include "report/diff/diff.h"

static const struct report_options usual;

/* ---- the test ------------------------------------------------------------------------------ */

static struct spread of(const uint64_t *values, size_t n)
{
	struct spread spread = { 0 };

	for (size_t i = 0; i < n; i++)
		spread_add(&spread, values[i]);
	return spread;
}

#define OF(...)                                                                                    \
	of((const uint64_t[]){ __VA_ARGS__ },                                                      \
	   sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void assert_p(struct spread a, struct spread b, double expected)
{
	double p = welch_p_value(&a, &b), back = welch_p_value(&b, &a);

	if (isnan(expected) ? !isnan(p) : !(fabs(p - expected) < 1e-9 * expected))
		fail_msg("%.15g is not %.15g", p, expected);
	if (!isnan(p) && p != back)
		fail_msg("%.17g one way, %.17g the other", p, back);
	spread_free(&a);
	spread_free(&b);
}

/* Expected values: Student's density integrated by Simpson's rule with 200,000 steps. */
static void test_p_values(void **state)
{
	assert_p(OF(10, 12, 14, 16, 18, 20), OF(14, 16, 18, 20, 22, 24), 0.09379255157921873);
	assert_p(OF(100, 110, 90, 105), OF(130, 180, 140, 155, 160, 90, 200), 0.00971445279034322);
	assert_p(OF(5, 6), OF(7, 9), 0.19872738893453679);
}

static void test_equal_averages_are_chance(void **state)
{
	assert_p(OF(1, 3), OF(0, 4), 1);
}

static void test_what_does_not_vary_cannot_be_told(void **state)
{
	assert_p(OF(5, 5, 5), OF(7, 7), NAN);
	assert_p(OF(5), OF(7, 8, 9), NAN);
	assert_p((struct spread){ 0 }, OF(7, 8, 9), NAN);
}

static void test_a_clear_difference_of_many_values_is_no_chance(void **state)
{
	struct spread a = { 0 }, b = { 0 };

	for (uint64_t i = 0; i < 100000; i++) {
		spread_add(&a, 1000 + i % 10);
		spread_add(&b, 1005 + i % 10);
	}
	assert_true(welch_p_value(&a, &b) < 1e-100);
	spread_free(&a);
	spread_free(&b);
}

/* ---- the tables ---------------------------------------------------------------------------- */

static struct diff *diff;
static struct run run; /* of the side that is fed */
static char *text, *told;
static size_t len;

static void begin_diff(const char *name)
{
	struct err err = { 0 };

	assert_int_equal(diff_new(&name, 1, &usual, &diff, &err), 0);
	free(told);
	told = NULL;
}

static void begin_side(enum diff_side side)
{
	size_t n;

	memset(&run, 0, sizeof(run));
	run.info = default_run_info();
	begin_run(&run, diff_consumers(diff, side, &n)[0]);
	assert_int_equal(n, 1);
}

static void end_side(void)
{
	assert_int_equal(run.consumer->ops->end(run.consumer, &run.info, NULL), 0);
}

static void note(void *data, const char *name, const char *line)
{
	free(told);
	told = strdup(line);
}

/* The rows without the headings. */
static const char *end_diff(void)
{
	const struct run_info info = default_run_info(), *const runs[] = { &info, &info };
	struct table_options options = { .form = TABLE_FORM_CSV, .note = note };
	struct err err = { 0 };

	options.out = open_memstream(&text, &len);
	assert_int_equal(diff_print(diff, runs, &options, &err), 0);
	fclose(options.out);
	diff_free(diff);
	return strchr(text, '\n') + 1;
}

static void push_durations(const char *function, const double *us, size_t n)
{
	for (size_t i = 0; i < n; i++)
		push_call(&run, call_at(function, 100 * i, us[i]));
}

static void test_rows_are_paired_by_name_and_sorted_by_change(void **state)
{
	begin_diff("cuda_api_sum");
	begin_side(DIFF_A);
	push_durations("cuInit", (double[]){ 10, 12 }, 2);
	push_durations("cuMemFree_v2", (double[]){ 1 }, 1);
	end_side();
	begin_side(DIFF_B);
	push_durations("cuMemFree_v2", (double[]){ 100 }, 1);
	push_durations("cuInit", (double[]){ 10, 13 }, 2);
	end_side();
	assert_string_equal(end_diff(),
	                    "1000,100000,99000,9900.0,1,1,1000.0,100000.0,9900.0,1000.0,100000.0,,"
	                    "too few to tell,"
	                    "cuMemFree_v2\n"
	                    "22000,23000,1000,4.5,2,2,11000.0,11500.0,4.5,11000.0,11500.0,0.810892,"
	                    "not significant,cuInit\n");
	free(text);
}

static void test_rows_of_one_side_are_shown_as_such(void **state)
{
	begin_diff("cuda_api_sum");
	begin_side(DIFF_A);
	push_durations("cuInit", (double[]){ 10 }, 1);
	end_side();
	begin_side(DIFF_B);
	push_durations("cuCtxCreate_v2", (double[]){ 3 }, 1);
	end_side();
	assert_string_equal(end_diff(),
	                    "10000,,-10000,,1,,10000.0,,,10000.0,,,only in A,cuInit\n"
	                    ",3000,3000,,,1,,3000.0,,,3000.0,,only in B,cuCtxCreate_v2\n");
	free(text);
}

static const char *verdict_of(const double *a, size_t n_a, const double *b, size_t n_b)
{
	static char verdict[40];
	const char *at;

	begin_diff("cuda_api_sum");
	begin_side(DIFF_A);
	push_durations("cuInit", a, n_a);
	end_side();
	begin_side(DIFF_B);
	push_durations("cuInit", b, n_b);
	end_side();
	at = end_diff();
	for (int i = 0; i < 12; i++)
		at = strchr(at, ',') + 1;
	snprintf(verdict, sizeof(verdict), "%.*s", (int)strcspn(at, ","), at);
	free(text);
	return verdict;
}

static void test_verdicts(void **state)
{
	static const double few[] = { 10, 11, 12, 10, 11, 12 }, more[] = { 20, 21, 22, 20, 21 };

	assert_string_equal(verdict_of(few, 6, more, 5), "slower");
	assert_string_equal(verdict_of(more, 5, few, 6), "faster");
	assert_string_equal(verdict_of(few, 6, few, 5), "not significant");
	assert_string_equal(verdict_of(few, 6, few, 6), "same");
	assert_string_equal(verdict_of(few, 1, more, 1), "too few to tell");
}

static void test_without_gpu_times_on_a_side_nothing_is_compared(void **state)
{
	const struct activity activity = { .kind = ACTIVITY_KERNEL,
		                           .begin_ns = US(1),
		                           .end_ns = US(2),
		                           .kernel = new_kernel("add(int)", true) };

	begin_diff("cuda_gpu_kern_sum");
	begin_side(DIFF_A);
	push(&run, &(struct event){ .type = EVENT_ACTIVITY,
	                            .time_ns = US(2),
	                            .process = the_process(),
	                            .activity = &activity });
	end_side();
	begin_side(DIFF_B);
	end_side();
	assert_string_equal(end_diff(), "");
	assert_string_equal(told, "GPU times were not recorded in B");
	free(text);
}

static void push_kernel(double begin_us, double end_us)
{
	const struct activity activity = { .kind = ACTIVITY_KERNEL,
		                           .begin_ns = US(begin_us),
		                           .end_ns = US(end_us) };

	push(&run, &(struct event){ .type = EVENT_ACTIVITY,
	                            .time_ns = US(end_us),
	                            .process = the_process(),
	                            .activity = &activity });
}

static void test_totals_of_gpus(void **state)
{
	begin_diff("totals");
	begin_side(DIFF_A);
	push_kernel(10, 20);
	push_kernel(50, 60);
	end_side();
	begin_side(DIFF_B);
	push_kernel(10, 20);
	push_kernel(25, 30);
	end_side();
	end_diff();
	assert_has(text, "\nGPU busy,20000,15000,-5000,-25.0,ns\n");
	assert_has(text, "\nGPU idle,30000,5000,-25000,-83.3,ns\n");
	free(text);
}

static void test_totals(void **state)
{
	begin_diff("totals");
	begin_side(DIFF_A);
	push_call(&run, launch_at("cuLaunchKernel", 1, new_kernel("add(int)", true)));
	end_side();
	begin_side(DIFF_B);
	push_call(&run, alloc_at("cuMemAlloc_v2", 1, 0x1000, 4096));
	push_call(&run, alloc_at("cuMemAlloc_v2", 20, 0x2000, 4096));
	end_side();
	end_diff();
	assert_has(text, "\nTrace duration,1500000000,1500000000,0,0.0,ns\n");
	assert_has(text, "\nCUDA calls,1,2,1,100.0,\n");
	assert_has(text, "\nKernel launches,1,0,-1,-100.0,\n");
	assert_has(text, "\nAllocated,0,8192,8192,,bytes\n");
	assert_has(text, "\nPeak of live memory,0,8192,8192,,bytes\n");
	free(text);
}

/* ---- the accounts -------------------------------------------------------------------------- */

/* Frames of a function, whose lines and folders move; a recording's own ids. */
static const struct stack *stack_in(const char *function, const char *file, uint32_t line)
{
	static struct stack_frame frames[32];
	static const struct stack_frame *pointers[32];
	static struct stack stacks[32];
	static uint32_t n;

	assert_true(n < 32);
	frames[n] = (struct stack_frame){
		.id = n, .kind = FRAME_PYTHON, .function = function, .file = file, .line = line
	};
	pointers[n] = &frames[n];
	stacks[n] = (struct stack){ .id = n, .n_frames = 1, .frames = &pointers[n] };
	return &stacks[n++];
}

/* Twenty steps: a kernel of 2 ms, then a thread that computes there for the rest of so many ms, but
 * for what they differ by. */
static void push_steps(const struct stack *stack, unsigned ms, unsigned differ_us)
{
	double at_us = 0;

	for (unsigned i = 0; i < 20; i++) {
		double step_us = 1000 * ms + (i % 5) * differ_us;
		struct call call = call_at("cuLaunchKernel", at_us, 5);
		struct activity activity = { .kind = ACTIVITY_KERNEL, .context = 1 };

		activity.begin_ns = US(at_us + 10);
		activity.end_ns = US(at_us + 2010);
		call.correlation = activity.correlation = i + 1;
		push_call(&run, call);
		push_work(&run, activity);
		for (double us = 3000; us < step_us; us += 1000) {
			struct sample one = sample_of(SAMPLE_CPU, 1000, stack);
			struct event event = sample_event(the_process(), 4243, at_us + us, &one);

			push(&run, &event);
		}
		at_us += step_us;
	}
	run.info.end_ns = US(at_us);
}

static void push_side(enum diff_side side, const struct stack *stack, unsigned ms,
                      unsigned differ_us)
{
	begin_side(side);
	push_steps(stack, ms, differ_us);
	end_side();
}

static void test_what_a_step_costs_more_is_told_by_function(void **state)
{
	begin_diff("why");
	push_side(DIFF_A, stack_in("decode", "/old/data.py", 27), 10, 0);
	push_side(DIFF_B, stack_in("decode", "/new/data.py", 31), 13, 0);
	end_diff();
	assert_has(text, "a step takes 3.000 ms more (10.000 ms to 13.000 ms): "
	                 "+3.000 ms computing in data.py:31 decode; kernels the same");
	assert_has(text, "\n10000000,13000000,3000000,30.0,all,a step\n");
	assert_has(text, ",computing,computing in data.py:31 decode\n");
	assert_has_not(text, "data.py:27"); /* it is the same function */
	free(text);
}

static void test_what_moves_between_functions_is_both(void **state)
{
	begin_diff("why");
	push_side(DIFF_A, stack_in("decode", "data.py", 27), 10, 0);
	push_side(DIFF_B, stack_in("augment", "data.py", 40), 7, 0);
	end_diff();
	assert_has(text, "a step takes 3.000 ms less (10.000 ms to 7.000 ms): -3.000 ms computing");
	assert_has(text, ",-100.0,computing,computing in data.py:27 decode\n");
	assert_has(text, ",,computing,computing in data.py:40 augment\n");
	free(text);
}

/* Of more GPUs than are told apart. */
static void test_what_there_is_no_room_for_is_said(void **state)
{
	begin_diff("why");
	push_side(DIFF_A, stack_in("decode", "data.py", 27), 10, 0);
	begin_side(DIFF_B);
	push_steps(stack_in("decode", "data.py", 27), 10, 0);
	for (uint32_t i = 0; i < 300; i++) {
		struct activity set = { .kind = ACTIVITY_SET, .device = i, .end_ns = 1 };
		struct event event = activity_event(the_process(), &set);

		push(&run, &event);
	}
	end_side();
	end_diff();
	assert_has(text, "; of B what it has beyond the room for it is not known");
	assert_has_not(text, "; of A what");
	free(text);
}

static void test_steps_that_vary_by_more_are_as_long(void **state)
{
	begin_diff("why");
	push_side(DIFF_A, stack_in("decode", "data.py", 27), 10, 1000);
	push_side(DIFF_B, stack_in("decode", "data.py", 27), 10, 1100);
	end_diff();
	assert_has(text, "a step takes as long (");
	assert_has(text, ", which steps of one recording differ by as well)");
	free(text);
}

static void test_the_same_costs_the_same(void **state)
{
	begin_diff("why");
	push_side(DIFF_A, stack_in("decode", "data.py", 27), 10, 0);
	push_side(DIFF_B, stack_in("decode", "data.py", 27), 10, 0);
	end_diff();
	assert_has(text, "a step takes as long (10.000 ms to 10.000 ms), of the same\"\n");
	free(text);
}

static void test_what_is_not_known_of_a_side_is_not_compared(void **state)
{
	struct call call = call_at("cuLaunchKernel", 0, 900000);

	begin_diff("why");
	push_side(DIFF_A, stack_in("decode", "data.py", 27), 10, 0);
	begin_side(DIFF_B);
	end_side();
	end_diff();
	assert_has(text, "of B nothing is known: No work of a GPU was seen");
	assert_has_not(text, "a step");
	free(text);
	begin_diff("why");
	push_side(DIFF_A, stack_in("decode", "data.py", 27), 10, 0);
	begin_side(DIFF_B);
	call.correlation = 1;
	push_call(&run, call);
	end_side();
	end_diff();
	assert_has(text, "nothing is compared: when GPUs were busy is known of A alone");
	free(text);
}

static void assert_refused(const char *word, const char *sentence)
{
	struct err err = { 0 };

	assert_true(diff_new(&word, 1, &usual, &diff, &err) < 0);
	assert_has(err.text, sentence);
}

static void test_what_cannot_be_compared_is_said(void **state)
{
	assert_refused("total", "'total' is nothing that can be compared; did you mean 'totals'?");
	assert_refused("cuda_api_trace", "'cuda_api_trace' is nothing that can be compared");
	assert_refused("cuda_gpu_kern_sum:bse", "':bse' is no form of names (:base or :mangled)");
}

static void test_what_is_named_twice_is_compared_once(void **state)
{
	const char *const words[] = { "totals",
		                      "cuda_api_sum",
		                      "totals",
		                      "cuda_gpu_kern_sum",
		                      "cuda_gpu_kern_sum:base",
		                      "cuda_api_sum" };
	struct err err = { 0 };
	size_t n;

	assert_int_equal(diff_new(words, 6, &usual, &diff, &err), 0);
	diff_consumers(diff, DIFF_A, &n);
	assert_int_equal(n, 4);
	diff_free(diff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_p_values),
		cmocka_unit_test(test_equal_averages_are_chance),
		cmocka_unit_test(test_what_does_not_vary_cannot_be_told),
		cmocka_unit_test(test_a_clear_difference_of_many_values_is_no_chance),
		cmocka_unit_test(test_rows_are_paired_by_name_and_sorted_by_change),
		cmocka_unit_test(test_rows_of_one_side_are_shown_as_such),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_without_gpu_times_on_a_side_nothing_is_compared),
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_totals_of_gpus),
		cmocka_unit_test(test_what_a_step_costs_more_is_told_by_function),
		cmocka_unit_test(test_what_moves_between_functions_is_both),
		cmocka_unit_test(test_what_there_is_no_room_for_is_said),
		cmocka_unit_test(test_steps_that_vary_by_more_are_as_long),
		cmocka_unit_test(test_the_same_costs_the_same),
		cmocka_unit_test(test_what_is_not_known_of_a_side_is_not_compared),
		cmocka_unit_test(test_what_cannot_be_compared_is_said),
		cmocka_unit_test(test_what_is_named_twice_is_compared_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
