// SPDX-License-Identifier: MIT
/* The rule of findings on Xids, and the calls that failed of them. */
#include "finding_events.h"

#include "base/array.h"
#include "cuda/managed.h"
#include "cuda/row_text.h"

#define ILLEGAL_ADDRESS 700

static struct process driver = { .id = 40, .pid = 0, .comm = "[driver]" };

static const struct function *kernel_function(const char *name, const char *arguments)
{
	static struct function functions[400];
	static char names[400][MANAGED_NAME];
	static size_t n;
	struct api_text text = { .name = name, .cls = CLASS_OTHER, .spec = arguments };
	struct function *function = &functions[n];
	struct api *made;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(names[i], name))
			return &functions[i];
	}
	assert_true(n < ARRAY_SIZE(functions));
	snprintf(names[n], sizeof(names[n]), "%s", name);
	*function = (struct function){ .id = 2000 + (uint32_t)n,
		                       .name = names[n++],
		                       .lib = "nvidia",
		                       .layer = LAYER_KERNEL,
		                       .cls = CLASS_OTHER,
		                       .api = api_from_text(&text, &made) };
	return function;
}

static void xid(const struct process *process, double at_us, uint32_t number, const char *says)
{
	const struct managed what = { .kind = MANAGED_XID, .xid = number };
	char name[MANAGED_NAME];
	struct call call = { .begin_ns = US(at_us), .end_ns = US(at_us), .text = says };
	struct event event;

	call.function = kernel_function(managed_name(&what, name), managed_arguments(&what));
	call.args.arg[XID_NUMBER] = number;
	call.args.arg[XID_PID] = process->pid;
	event = (struct event){
		.type = EVENT_OTHER_CALL, .time_ns = US(at_us), .process = process, .call = &call
	};
	feed(findings, &event);
}

static void fails(const char *function, double at_us, int result)
{
	struct call call = call_at(function, at_us, 10);

	fail_call(&call, result);
	see(call);
}

static void test_an_xid_and_what_failed_of_it(void **state)
{
	const struct finding *finding;

	launch_round(0);
	xid(the_process(), 5123, 31, "pid=77, name=train, Ch 00000010");
	fails("cuStreamSynchronize", 5200, ILLEGAL_ADDRESS);
	fails("cuMemFree_v2", 5300, ILLEGAL_ADDRESS);
	finding = found("xids");
	assert_non_null(finding);
	assert_int_equal(finding->count, 1);
	assert_ptr_equal(finding->process, the_process());
	assert_false(finding->lost_known);
	assert_string_equal(
		finding->evidence,
		"Xid 31 (GPU memory page fault) at 5.123 ms; 2 calls failed of it, the first "
		"cuStreamSynchronize with CUDA_ERROR_ILLEGAL_ADDRESS (700); the driver says: "
		"pid=77, name=train, Ch 00000010");
	assert_has(finding->suggestion, "an address that nothing is mapped at");
	assert_has(finding->estimate, "a context is of no use");
}

static void test_a_call_that_failed_shortly_before_is_of_it(void **state)
{
	fails("cuCtxSynchronize", 5000, ILLEGAL_ADDRESS);
	xid(the_process(), 9000, 13, "");
	assert_has(found("xids")->evidence,
	           "1 call failed of it, cuCtxSynchronize with CUDA_ERROR_ILLEGAL_ADDRESS (700)");
}

static void test_other_failures_are_not_of_it(void **state)
{
	fails("cuMemAlloc_v2", 5000, 2);
	xid(the_process(), 5100, 63, "");
	fails("cuMemAlloc_v2", 5200, 2);
	assert_has(found("xids")->evidence, "; no call that was recorded failed of it");
	assert_has(found("xids")->estimate, "what it cost is not known");
}

static void test_xids_with_one_number_are_one_finding(void **state)
{
	const struct finding *rows;
	size_t n, of_rule = 0;

	for (unsigned i = 0; i < 3; i++)
		xid(the_process(), 1000 + 100 * i, 31, "");
	xid(the_process(), 1350, 45, "");
	xid(&driver, 500, 79, "GPU has fallen off the bus");
	assert_has(found("xids")->evidence, "Xid 31 (GPU memory page fault) 3 times, first at");
	rows = findings_rows(findings, &info, &n);
	for (size_t i = 0; i < n; i++)
		of_rule += !strcmp(rows[i].rule, "xids");
	assert_int_equal(of_rule, 3);
	assert_int_equal(rows[0].count, 3);
	assert_has(rows[1].evidence, "Xid 45 (");
	assert_has(rows[2].evidence, ", of no process that was traced");
	assert_string_equal(rows[2].process->comm, "[driver]");
}

/* A program ends of it, whatever else costs time. */
static void test_xids_come_before_what_costs_time(void **state)
{
	const struct finding *rows;
	size_t n;

	for (unsigned round = 0; round < ROUNDS; round++) {
		launch_round(round);
		see(call_at("cudaDeviceSynchronize", round * ROUND_US + 20, 50));
	}
	launch_round(ROUNDS);
	xid(the_process(), 30000, 31, "");
	rows = findings_rows(findings, &info, &n);
	assert_true(n >= 2);
	assert_string_equal(rows[0].rule, "xids");
	assert_string_equal(rows[1].rule, "needless_sync");
}

static void test_numbers_without_a_meaning_and_too_many_of_them(void **state)
{
	for (uint32_t i = 0; i < 300; i++)
		xid(the_process(), 1000 + i, 100000 + i, "");
	assert_has(found("xids")->evidence, "Xid 100000 (of unknown meaning) at 1.000 ms");
	assert_has(found("xids")->evidence, "; 44 more Xids were not kept");
	assert_has(found("xids")->suggestion, "NVIDIA's list");
}

static void test_without_the_kernel_side_it_is_not_judged(void **state)
{
	launch_round(0);
	assert_null(found("xids"));
	assert_string_equal(why_not_judged("xids"), "needs record --kernel");
}

static void test_a_kernel_side_without_xids_is_good(void **state)
{
	struct call call = { .function = kernel_function("RM_FREE", ""), .end_ns = US(10) };
	struct event event = {
		.type = EVENT_OTHER_CALL, .time_ns = US(10), .process = the_process(), .call = &call
	};

	feed(findings, &event);
	assert_null(found("xids"));
	assert_null(why_not_judged("xids"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_xid_and_what_failed_of_it),
		TEST(test_a_call_that_failed_shortly_before_is_of_it),
		TEST(test_other_failures_are_not_of_it),
		TEST(test_xids_with_one_number_are_one_finding),
		TEST(test_xids_come_before_what_costs_time),
		TEST(test_numbers_without_a_meaning_and_too_many_of_them),
		TEST(test_without_the_kernel_side_it_is_not_judged),
		TEST(test_a_kernel_side_without_xids_is_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
