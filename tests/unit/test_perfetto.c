// SPDX-License-Identifier: MIT
/* What Perfetto's format says of names; tests/export reads whole files. */
#include "support.h"

#include "output/sink.h"

static struct run run;

static int set_up(void **state)
{
	open_run(&run);
	run.info.gpu_times = true;
	begin_run(
		&run,
		sink_format_by_name("perfetto")->create(&(struct sink_options){ .out = run.out }));
	return 0;
}

static int tear_down(void **state)
{
	close_run(&run);
	return 0;
}

static bool said(const char *text)
{
	return memmem(run.text, run.len, text, strlen(text));
}

static void test_a_name_that_is_found_late_is_told(void **state)
{
	struct kernel *kernel = new_kernel("app+0x1234", false);

	push_call(&run, launch_at("cuLaunchKernel", 0, kernel));
	kernel->name = "vectorAdd()";
	kernel->resolved = true;
	push_call(&run, launch_at("cuLaunchKernel", 10, kernel));
	end_run(&run);
	assert_true(said("app+0x1234"));
	assert_true(said("vectorAdd()"));
}

/* Older files do not say which machine they are of, and trace_processor wants that of a system. */
static void test_a_system_without_a_machine_is_not_told_of(void **state)
{
	end_run(&run);
	assert_false(said("Linux"));
}

/* ---- the queue ----------------------------------------------------------------------------- */

/* The values of the counter in order of time, "1@10 0@30" in microseconds. */
static void assert_queue(const char *expected)
{
	char text[512] = "";
	size_t len = 0;
	struct {
		uint64_t time_ns, value;
	} found[32];
	size_t n = 0;

	/* packet { timestamp 8: varint, sequence 10, event 11 { type 9: 4, track 11, value 30
	 * } } */
	for (size_t i = 0; i + 2 < run.len; i++) {
		const uint8_t *at = (const uint8_t *)run.text + i;
		uint64_t time_ns = 0;
		unsigned bytes = 0;

		if (at[0] != 0x40) /* field 8 */
			continue;
		do
			time_ns |= (uint64_t)(at[1 + bytes] & 127) << (7 * bytes);
		while (at[1 + bytes++] & 128 && bytes < 10);
		at = memmem(at, 20, "\x48\x04\x58", 3);
		if (time_ns < RUN_BEGIN_NS || time_ns > US(1e6) || !at || at[4] != 0xf0)
			continue;
		found[n].time_ns = time_ns;
		found[n++].value = at[6];
		assert_true(n < 32);
	}
	for (uint64_t t = 0; t < 1000; t++) {
		for (size_t i = 0; i < n; i++) {
			if (found[i].time_ns == US(t))
				len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u@%u",
				                        len ? " " : "", (unsigned)found[i].value,
				                        (unsigned)t);
		}
	}
	assert_string_equal(text, expected);
}

static void push_launch(uint64_t correlation, double end_us)
{
	struct call call = launch_at("cuLaunchKernel", end_us - 5, NULL);

	call.correlation = correlation;
	push_call(&run, call);
}

static void push_kernel(uint64_t correlation, double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us),
		                     .correlation = correlation,
		                     .stream = 7 };

	push_work(&run, activity);
}

/* Each value is that of its time, although the kernels are known after all launches. */
static void test_the_queue_is_as_deep_as_it_was_when_kernels_come_late(void **state)
{
	push_launch(1, 10);
	push_launch(2, 20);
	push_launch(3, 50);
	push_launch(4, 60); /* it waits for its kernel */
	push_kernel(1, 12, 30);
	push_kernel(2, 30, 40);
	push_kernel(3, 51, 55);
	push_kernel(4, 57, 58);
	push_launch(5, 100);
	end_run(&run);
	assert_queue("1@10 2@20 1@30 0@40 1@50 0@55 1@100");
}

static void test_kernels_that_come_at_once_count_the_same(void **state)
{
	push_launch(1, 10);
	push_launch(2, 20);
	push_kernel(1, 12, 30);
	push_kernel(2, 30, 40);
	push_launch(3, 50);
	push_kernel(3, 51, 55);
	push_kernel(4, 57, 58);
	push_launch(4, 60);
	push_launch(5, 100);
	end_run(&run);
	assert_queue("1@10 2@20 1@30 0@40 1@50 0@55 1@100");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_system_without_a_machine_is_not_told_of,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_name_that_is_found_late_is_told, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_queue_is_as_deep_as_it_was_when_kernels_come_late, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_kernels_that_come_at_once_count_the_same,
		                                set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
