// SPDX-License-Identifier: MIT
/* The svg format: a picture for each kind of trace. */
#include "support.h"

#include "output/sink.h"

#define MIB (1ull << 20)

static struct run run;

static int begin_svg(void **state)
{
	struct sink_options options = { 0 };

	open_run(&run);
	options.out = run.out;
	begin_run(&run, sink_format_by_name("svg")->create(&options));
	return 0;
}

static int end_svg(void **state)
{
	close_run(&run);
	return 0;
}

static const char *drawn(void)
{
	end_run(&run);
	return run.text;
}

static void test_memory_is_followed_through_allocation_and_free(void **state)
{
	run.info.command = "./train --x";
	run.info.hostname = "gpu1";
	push_call(&run, alloc_at("cudaMalloc", 100, 0x10, 6 * MIB));
	push_call(&run, alloc_at("cudaMallocManaged", 200, 0x20, MIB));
	push_call(&run, free_at("cudaFree", 250000, 0x10));
	assert_has(drawn(), "peak 7 MiB after 210 us, 1 MiB live at the end");
	assert_has(run.text, "device, peak 6 MiB");
	assert_has(run.text, "managed, peak 1 MiB");
	assert_has(run.text, "./train --x, on gpu1, 2027-01-15 08:00:00");
}

static void test_a_process_takes_its_memory_with_it(void **state)
{
	push_call(&run, alloc_at("cudaMalloc", 100, 0x10, MIB));
	push_exit(&run, the_process(), 500);
	assert_has(drawn(), "0 B live at the end");
}

static void test_failures_are_drawn_once_for_both_layers(void **state)
{
	struct call inner = alloc_at("cuMemAlloc_v2", 1, 0, 1ull << 40);
	struct call outer = alloc_at("cudaMalloc", 1, 0, 1ull << 40);

	fail_call(&inner, 2);
	fail_call(&outer, 2);
	inner.flags |= CALL_NESTED;
	push_call(&run, inner);
	push_call(&run, outer);
	assert_has(drawn(), "1 allocation failed");
}

static void test_reserved_addresses_are_no_memory(void **state)
{
	push_call(&run, alloc_at("cuMemAddressReserve", 1, 0x10, 1ull << 40));
	assert_has(drawn(), "no allocation was seen");
}

static void test_what_was_missed_is_noted(void **state)
{
	run.info.lost[LOST_RING_FULL] = 12;
	run.info.cut_short = true;
	push_call(&run, free_at("cudaFree", 1, 0x10));
	assert_has(drawn(), "The trace was cut short. 12 lost while it was recorded. "
	                    "1 freed memory whose allocation was not recorded.");
}

int main(void)
{
#define SVG_TEST(test) cmocka_unit_test_setup_teardown(test, begin_svg, end_svg)
	const struct CMUnitTest tests[] = {
		SVG_TEST(test_memory_is_followed_through_allocation_and_free),
		SVG_TEST(test_a_process_takes_its_memory_with_it),
		SVG_TEST(test_failures_are_drawn_once_for_both_layers),
		SVG_TEST(test_reserved_addresses_are_no_memory),
		SVG_TEST(test_what_was_missed_is_noted),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
