// SPDX-License-Identifier: MIT
/* Figures of the reports of NVTX ranges. */
#include "support.h"

#include "report/report.h"
#include "table/table.h"

static struct run run;
static struct table *table;
static char *told;
static size_t top; /* rows of the next report; 0: all */

static void note(void *data, const char *name, const char *text)
{
	char *all = NULL;

	assert_true(asprintf(&all, "%s%s\n", told ? told : "", text) > 0);
	free(told);
	told = all;
}

static void begin_report(const char *word)
{
	struct table_options options = { .form = TABLE_FORM_CSV, .top = top, .note = note };
	struct report_options report_options = { 0 };
	struct report_choice choice;
	struct err err = { 0 };

	free(told);
	told = NULL;
	assert_int_equal(report_choose(word, &choice, &err), 0);
	open_run(&run);
	run.info.gpu_times = true;
	options.out = run.out;
	table = table_open(&options, choice.report->parts);
	report_options.table = table;
	begin_run(&run, report_new(choice.report, &report_options));
}

/* The rows without the headings. */
static void assert_rows(const char *expected)
{
	end_run(&run);
	assert_int_equal(table_finish(table, NULL), 0);
	table_close(table);
	fflush(run.out);
	assert_string_equal(strchr(run.text, '\n') + 1, expected);
	close_run(&run);
}

static void push_named(uint32_t tid, const char *domain, const char *name, uint32_t depth,
                       double begin_us, double end_us)
{
	push_range(&run, tid,
	           (struct range){ .kind = RANGE_PUSHPOP,
	                           .name = name,
	                           .domain = domain,
	                           .depth = depth,
	                           .begin_ns = US(begin_us),
	                           .end_ns = US(end_us) });
}

/* ---- sums ---------------------------------------------------------------------------------- */

static void test_ranges_of_a_name_are_one_row_and_domains_are_told_apart(void **state)
{
	begin_report("nvtx_pushpop_sum");
	push_named(7, NULL, "step", 0, 0, 10);
	push_named(8, NULL, "step", 3, 20, 40);
	push_named(7, "NCCL", "step", 0, 0, 70);
	push_range(&run, 7, (struct range){ .kind = RANGE_MARK, .name = "step", .end_ns = US(99) });
	assert_rows("70.0,70000,1,70000.0,70000.0,70000,70000,0.0,NCCL:step\n"
	            "30.0,30000,2,15000.0,15000.0,10000,20000,7071.1,step\n");
	assert_null(told);
}

static void test_the_sum_of_all_has_styles(void **state)
{
	begin_report("nvtx_sum");
	push_named(7, NULL, "a", 0, 0, 30);
	push_range(
		&run, 7,
		(struct range){
			.kind = RANGE_STARTEND, .name = "a", .begin_ns = US(0), .end_ns = US(10) });
	assert_rows("75.0,30000,1,30000.0,30000.0,30000,30000,0.0,PushPop,a\n"
	            "25.0,10000,1,10000.0,10000.0,10000,10000,0.0,StartEnd,a\n");
}

static void test_names_without_end_share_a_row(void **state)
{
	char name[32];

	begin_report("nvtx_pushpop_sum");
	for (int i = 0; i < 65536 + 10; i++) {
		snprintf(name, sizeof(name), "step %d", i);
		push_named(7, NULL, name, 0, i, i + (i < 65536 ? 1 : 1000));
	}
	end_run(&run);
	assert_int_equal(table_finish(table, NULL), 0);
	table_close(table);
	fflush(run.out);
	assert_has(run.text, "13.2,10000000,10,1000000.0,1000000.0,1000000,1000000,0.0,(others)\n");
	assert_has(told, "ranges in (others), after 65536 names: 10\n");
	close_run(&run);
}

static void test_no_ranges_are_explained(void **state)
{
	begin_report("nvtx_sum");
	assert_rows("");
	assert_has(told, "there are no NVTX ranges in it");
	begin_report("nvtx_pushpop_sum");
	run.info.gpu_times = false;
	assert_rows("");
	assert_has(told, "NVTX ranges were not recorded (cuscope record --gpu does");
}

/* GPU times are there, whatever the head of the file says of them. */
static void test_a_trace_with_gpu_work_has_gpu_times(void **state)
{
	static const char *const names[] = { "nvtx_sum", "nvtx_pushpop_trace", "nvtx_kern_sum" };

	for (size_t i = 0; i < 3; i++) {
		begin_report(names[i]);
		run.info.gpu_times = false;
		push_work(&run, (struct activity){ .kind = ACTIVITY_SET, .end_ns = US(1) });
		assert_rows("");
		assert_has(told, "there are no NVTX ranges in it");
		assert_has_not(told, "not recorded");
	}
}

static void test_ranges_without_any_work_are_explained(void **state)
{
	begin_report("nvtx_gpu_proj_sum");
	push_named(7, NULL, "a", 0, 0, 30);
	assert_rows("");
	assert_has(told, "nothing that ran on a GPU was recorded");
}

/* ---- the trace ----------------------------------------------------------------------------- */

static void test_ranges_know_those_around_and_inside_of_them(void **state)
{
	begin_report("nvtx_pushpop_trace");
	push_named(7, NULL, "c", 2, 2, 3);
	push_named(9, NULL, "x", 0, 1, 4); /* another thread */
	push_named(7, NULL, "d", 2, 3, 5);
	push_named(7, NULL, "b", 1, 1, 6);
	push_named(7, NULL, "e", 1, 6, 8);
	push_named(7, NULL, "a", 0, 0, 10);
	push_named(7, NULL, "f", 0, 10, 11);
	assert_rows("0,10000,10000,7000,3000,a,4242,7,0,2,1,,:1,a\n"
	            "1000,4000,3000,0,3000,x,4242,9,0,0,4,,:4,x\n"
	            "1000,6000,5000,3000,2000,b,4242,7,1,2,2,1,:1:2,  b\n"
	            "2000,3000,1000,0,1000,c,4242,7,2,0,3,2,:1:2:3,    c\n"
	            "3000,5000,2000,0,2000,d,4242,7,2,0,5,2,:1:2:5,    d\n"
	            "6000,8000,2000,0,2000,e,4242,7,1,0,6,1,:1:6,  e\n"
	            "10000,11000,1000,0,1000,f,4242,7,0,0,7,,:7,f\n");
}

static void test_domains_of_a_thread_are_trees_of_their_own(void **state)
{
	begin_report("nvtx_pushpop_trace");
	push_named(7, "NCCL", "sum", 0, 2, 3);
	push_named(7, NULL, "a", 0, 0, 10);
	assert_rows("0,10000,10000,0,10000,a,4242,7,0,0,2,,:2,a\n"
	            "2000,3000,1000,0,1000,NCCL:sum,4242,7,0,0,1,,:1,NCCL:sum\n");
}

/* Of a call in the inner range, and of one in the outer alone; a range without any has no row. */
static void test_ranges_are_projected_each_by_itself(void **state)
{
	struct call inner = call_at("cudaLaunchKernel", 2, 1), outer = call_at("cudaMemcpy", 6, 1);

	begin_report("nvtx_gpu_proj_trace");
	inner.correlation = 1;
	outer.correlation = 2;
	push_call_of(&run, the_process(), 7, &inner);
	push_named(7, NULL, "b", 1, 1, 5);
	push_call_of(&run, the_process(), 7, &outer);
	push_named(7, NULL, "c", 1, 8, 9);
	push_named(7, NULL, "a", 0, 0, 10);
	push_work(&run, (struct activity){ .kind = ACTIVITY_SET,
	                                   .begin_ns = US(20),
	                                   .end_ns = US(25),
	                                   .correlation = 1 });
	push_work(&run, (struct activity){ .kind = ACTIVITY_COPY,
	                                   .begin_ns = US(12),
	                                   .end_ns = US(14),
	                                   .correlation = 2 });
	assert_rows("a,12000,13000,0,10000,PushPop,4242,7,2,0,2,1,,:1\n"
	            "b,20000,5000,1000,4000,PushPop,4242,7,1,1,0,2,1,:1:2\n");
}

#define KERNELS 33000 /* more than there is room for in a table that is cut */

/* Rows with the least time leave, whenever they came. */
static void test_kernels_with_most_time_stay(void **state)
{
	static struct kernel kernels[KERNELS];
	static char names[KERNELS][8];

	top = 2;
	begin_report("nvtx_kern_sum");
	for (uint32_t i = 0; i < KERNELS; i++) {
		struct call call = call_at("cudaLaunchKernel", i, 1);
		uint64_t ns = i == 5 ? 7000 : i == KERNELS - 1 ? 9000 : 1 + i % 3;

		snprintf(names[i], sizeof(names[i]), "k%u", i);
		kernels[i] = (struct kernel){ .id = i, .name = names[i] };
		call.correlation = i + 1;
		push_call_of(&run, the_process(), 7, &call);
		push_work(&run, (struct activity){ .kind = ACTIVITY_KERNEL,
		                                   .kernel = &kernels[i],
		                                   .begin_ns = US(i + 1),
		                                   .end_ns = US(i + 1) + ns,
		                                   .correlation = i + 1 });
	}
	push_named(7, NULL, "step", 0, 0, KERNELS);
	assert_rows("step,PushPop,4242,7,1,1,9000,9000.0,9000.0,9000,9000,0.0,k32999\n"
	            "step,PushPop,4242,7,1,1,7000,7000.0,7000.0,7000,7000,0.0,k5\n");
	assert_has(told, "least time beyond 32768: 8192; a row lacks 1 ns at most");
	top = 0;
}

/* A damaged file, or a program that pushes without end. */
static void test_any_depth_is_survived(void **state)
{
	begin_report("nvtx_pushpop_trace");
	push_named(7, NULL, "deep", UINT32_MAX, 0, 1);
	end_run(&run);
	assert_int_equal(table_finish(table, NULL), 0);
	table_close(table);
	fflush(run.out);
	assert_has(run.text, ",deep,4242,7,4294967295,0,");
	close_run(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges_of_a_name_are_one_row_and_domains_are_told_apart),
		cmocka_unit_test(test_the_sum_of_all_has_styles),
		cmocka_unit_test(test_names_without_end_share_a_row),
		cmocka_unit_test(test_no_ranges_are_explained),
		cmocka_unit_test(test_a_trace_with_gpu_work_has_gpu_times),
		cmocka_unit_test(test_ranges_without_any_work_are_explained),
		cmocka_unit_test(test_ranges_know_those_around_and_inside_of_them),
		cmocka_unit_test(test_domains_of_a_thread_are_trees_of_their_own),
		cmocka_unit_test(test_ranges_are_projected_each_by_itself),
		cmocka_unit_test(test_kernels_with_most_time_stay),
		cmocka_unit_test(test_any_depth_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
