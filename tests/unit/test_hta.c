// SPDX-License-Identifier: MIT
/* The rules of Holistic Trace Analysis; its own figures for the golden traces were the same. */
#include "support.h"

#include "base/array.h"
#include "report/overlap/hta.h"

static struct hta *hta;

static int begin_hta(void **state)
{
	hta = hta_new(NULL);
	return 0;
}

static int end_hta(void **state)
{
	hta_free(hta);
	return 0;
}

static void see_call(double begin_us, uint64_t correlation)
{
	struct call call = call_at("cudaLaunchKernel", begin_us, 1);
	struct event event;

	call.correlation = correlation;
	event = call_event(the_process(), 7, &call);
	hta_event(hta, &event);
}

static void see_kernel(const char *name, uint32_t device, double begin_us, double end_us,
                       uint64_t correlation)
{
	const struct kernel *kernel = name ? new_kernel(name, true) : NULL;
	struct activity activity = { .kind = kernel ? ACTIVITY_KERNEL : ACTIVITY_COPY,
		                     .kernel = kernel,
		                     .device = device,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us),
		                     .correlation = correlation };
	struct event event = activity_event(the_process(), &activity);

	hta_event(hta, &event);
}

static void see_range(enum range_kind kind, const char *name, double begin_us, double end_us)
{
	struct range range = { .kind = kind,
		               .name = name,
		               .begin_ns = US(begin_us),
		               .end_ns = US(end_us),
		               .stream = kind == RANGE_SYNC ? 7 : 0 };

	hta_event(hta, &(struct event){ .type = EVENT_RANGE,
	                                .time_ns = US(end_us),
	                                .process = the_process(),
	                                .tid = 7,
	                                .range = &range });
}

/* The only row: ns. */
static void assert_row(uint64_t kernel, uint64_t busy, uint64_t compute, uint64_t communication,
                       uint64_t both)
{
	const struct hta_row *rows;
	struct err err = { 0 };
	size_t n;

	assert_int_equal(hta_rows(hta, &rows, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rows->kernel_ns, kernel);
	assert_int_equal(rows->busy_ns, busy);
	assert_int_equal(rows->compute_ns, compute);
	assert_int_equal(rows->communication_ns, communication);
	assert_int_equal(rows->both_ns, both);
}

static void test_all_gpus_of_a_process_are_one(void **state)
{
	see_kernel("gemm", 0, 0, 10, 0);
	see_kernel("gemm", 1, 5, 30, 0);
	see_kernel(NULL, 0, 35, 40, 0);
	assert_row(40000, 35000, 30000, 0, 0);
}

static void test_communication_is_beside_computing_or_not(void **state)
{
	see_kernel("gemm", 0, 0, 10, 0);
	see_kernel("ncclDevKernel_AllReduce(int)", 0, 5, 25, 0);
	see_kernel("relu", 0, 20, 21, 0);
	assert_row(25000, 25000, 11000, 20000, 6000);
}

static void test_what_was_not_measured_is_idle(void **state)
{
	see_kernel("gemm", 0, 0, 10, 0);
	see_range(RANGE_NOT_MEASURED, "", 10, 90);
	see_kernel("gemm", 0, 90, 100, 0);
	assert_row(100000, 20000, 20000, 0, 0);
}

static void test_a_wait_on_a_stream_is_work(void **state)
{
	see_kernel("gemm", 0, 0, 10, 0);
	see_range(RANGE_SYNC, "Stream Sync", 5, 20);
	assert_row(20000, 20000, 10000, 0, 0);
}

static void push_two_steps(const char *second)
{
	see_call(2, 1);
	see_call(12, 2);
	see_kernel("gemm", 0, 5, 30, 1); /* runs on in the second */
	see_range(RANGE_PUSHPOP, "ProfilerStep#1", 0, 10);
	see_range(RANGE_PUSHPOP, second, 10, 20);
	see_kernel("gemm", 0, 40, 50, 2);
	see_kernel("gemm", 0, 60, 80, 99); /* nobody asked for it */
}

static void test_the_last_step_is_left_out(void **state)
{
	push_two_steps("ProfilerStep#2");
	assert_row(25000, 25000, 25000, 0, 0);
}

static void test_one_step_is_not_left_out(void **state)
{
	push_two_steps("ProfilerStep#1");
	assert_row(75000, 55000, 55000, 0, 0);
}

static void test_kernels_have_the_class_that_their_names_say(void **state)
{
	static const struct {
		const char *name;
		enum hta_class class;
	} names[] = {
		{ "gemm", HTA_COMPUTE },
		{ "void ns::relu<float>(float*)", HTA_COMPUTE },
		{ "void ncclDevKernel_X<1>()", HTA_COMPUTE }, /* HTA looks at the beginning */
		{ "ncclDevKernel_X()", HTA_COMMUNICATION },
		{ "void ncclKernel_X<1>()", HTA_COMMUNICATION },
		{ "hipGraph", HTA_COMMUNICATION },
		{ "copyMemcpyLike", HTA_OTHER },
		{ "void waitSync()", HTA_OTHER },
		{ "cudaXLaunchKernel", HTA_OTHER },
		{ "mycudaLaunchKernel", HTA_COMPUTE },
		{ "packet_of", HTA_OTHER },
		{ "", HTA_COMPUTE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(hta_class_of(names[i].name), names[i].class);
}

#define HTA_TEST(test) cmocka_unit_test_setup_teardown(test, begin_hta, end_hta)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HTA_TEST(test_all_gpus_of_a_process_are_one),
		HTA_TEST(test_communication_is_beside_computing_or_not),
		HTA_TEST(test_what_was_not_measured_is_idle),
		HTA_TEST(test_a_wait_on_a_stream_is_work),
		HTA_TEST(test_the_last_step_is_left_out),
		HTA_TEST(test_one_step_is_not_left_out),
		cmocka_unit_test(test_kernels_have_the_class_that_their_names_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
