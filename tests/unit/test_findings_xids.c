// SPDX-License-Identifier: MIT
/* Findings of Xids, and the calls that failed of them. */
#include "support.h"

#include "base/array.h"
#include "cuda/driver_words.h"
#include "cuda/api.h"
#include "report/findings/findings.h"

#define ILLEGAL_ADDRESS 700

static struct findings findings;
static struct xids *xids;
static struct run_info info;

static int set_up(void **state)
{
	xids = xids_new();
	info = default_run_info();
	return 0;
}

static int tear_down(void **state)
{
	findings_clear(&findings);
	xids_free(xids);
	return 0;
}

/* Of these rows the first. */
static const struct finding *found(void)
{
	findings_clear(&findings);
	findings_add_xids(&findings, xids, &info);
	assert_true(findings.n > 0);
	assert_string_equal(findings.rows[0].cause, "xids");
	return &findings.rows[0];
}

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
	xids_event(xids, &event);
}

static void fails(const char *function, double at_us, int result)
{
	struct call call = call_at(function, at_us, 10);
	struct event event;

	fail_call(&call, result);
	event = call_event(the_process(), 1, &call);
	xids_event(xids, &event);
}

static void test_an_xid_and_what_failed_of_it(void **state)
{
	const struct finding *finding;

	xid(the_process(), 5123, 31, "pid=77, name=train, Ch 00000010");
	fails("cuStreamSynchronize", 5200, ILLEGAL_ADDRESS);
	fails("cuMemFree_v2", 5300, ILLEGAL_ADDRESS);
	finding = found();
	assert_int_equal(finding->count, 1);
	assert_int_equal(finding->pid, the_process()->pid);
	assert_string_equal(
		finding->seen,
		"Xid 31 (GPU memory page fault) at 5.123 ms; 2 calls failed of it, the first "
		"cuStreamSynchronize with CUDA_ERROR_ILLEGAL_ADDRESS (700); after such an error a "
		"context is of no "
		"use, and what it had computed may be lost; the driver says: "
		"pid=77, name=train, Ch 00000010");
	assert_has(finding->hint, "an address that nothing is mapped at");
}

static void test_a_call_that_failed_shortly_before_is_of_it(void **state)
{
	fails("cuCtxSynchronize", 5000, ILLEGAL_ADDRESS);
	xid(the_process(), 9000, 13, "");
	assert_has(found()->seen,
	           "1 call failed of it, cuCtxSynchronize with CUDA_ERROR_ILLEGAL_ADDRESS (700)");
}

static void test_other_failures_are_not_of_it(void **state)
{
	fails("cuMemAlloc_v2", 5000, 2);
	xid(the_process(), 5100, 63, "");
	fails("cuMemAlloc_v2", 5200, 2);
	assert_has(found()->seen, "; no call that was recorded failed of it");
}

static void test_xids_with_one_number_are_one_finding(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		xid(the_process(), 1000 + 100 * i, 31, "");
	xid(the_process(), 1350, 45, "");
	xid(&driver, 500, 79, "GPU has fallen off the bus");
	assert_has(found()->seen, "Xid 31 (GPU memory page fault) 3 times, first at");
	assert_int_equal(findings.n, 3);
	assert_int_equal(findings.rows[0].count, 3);
	assert_has(findings.rows[1].seen, "Xid 45 (");
	assert_has(findings.rows[2].seen, ", of no process that was traced");
	assert_int_equal(findings.rows[2].pid, 0);
}

static void test_numbers_without_a_meaning_and_too_many_of_them(void **state)
{
	for (uint32_t i = 0; i < 300; i++)
		xid(the_process(), 1000 + i, 100000 + i, "");
	assert_has(found()->seen, "Xid 100000 (of unknown meaning) at 1.000 ms");
	assert_has(found()->seen, "; 44 more Xids were not kept");
	assert_has(found()->hint, "NVIDIA's list");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_xid_and_what_failed_of_it),
		TEST(test_a_call_that_failed_shortly_before_is_of_it),
		TEST(test_other_failures_are_not_of_it),
		TEST(test_xids_with_one_number_are_one_finding),
		TEST(test_numbers_without_a_meaning_and_too_many_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
