// SPDX-License-Identifier: MIT
/* What Perfetto's format says of names; tests/export reads whole files. */
#include "support.h"

#include "output/sink.h"

static struct run run;

static int set_up(void **state)
{
	open_run(&run);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_name_that_is_found_late_is_told, set_up,
		                                tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
