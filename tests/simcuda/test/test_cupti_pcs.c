// SPDX-License-Identifier: MIT
/*
 * PC sampling of the simulated libcupti. Tests whose name begins with fatal_ run alone, and the
 * process does not survive them: test_cupti_pcs NAME.
 */
#include "cupti_scene.h"

#include <stdlib.h>

#include "agent/lib/pcs_abi.h"

#define PCS(function) ((enum result(*)(void *))dlsym(cupti_library(), #function))

#define ROOM 2 /* PCs: a kernel has three */

static struct pcs_stall stalls[ROOM][16];
static struct pcs_pc pcs[ROOM];
static struct pcs_data kept;

static void *cupti_library(void)
{
	const char *name = getenv("CUPTI");

	return dlopen(name ? name : "libcupti.so.13", RTLD_NOW);
}

static void *context(void)
{
	CUcontext ctx;

	OK(cuCtxGetCurrent, &ctx);
	return ctx;
}

static struct pcs_context of(void *ctx)
{
	return (struct pcs_context){ .size = PCS_CONTEXT_BYTES, .context = ctx };
}

static struct pcs_data output(void)
{
	size_t bytes = version >= 22 ? sizeof(struct pcs_pc) : 56;

	for (size_t i = 0; i < ROOM; i++)
		pcs[i] = (struct pcs_pc){ .size = bytes, .stalls = stalls[i] };
	return (struct pcs_data){ .size = sizeof(kept), .room = ROOM, .pcs = pcs };
}

static void configure(void *ctx, size_t hardware_bytes, enum result expected)
{
	struct pcs_attribute attributes[] = {
		{ .type = PCS_PERIOD, .number = 12 },
		{ .type = PCS_HARDWARE_BYTES, .bytes = hardware_bytes },
		{ .type = PCS_START_STOP, .number = 1 },
		{ .type = PCS_BUFFER, .buffer = &kept },
	};
	struct pcs_configure given = {
		.size = PCS_CONFIGURE_BYTES, .context = ctx, .n = 4, .attributes = attributes
	};

	REFUSED(expected, PCS(cuptiPCSamplingSetConfigurationAttribute)(&given));
	assert_int_equal(attributes[1].status, expected);
}

static void test_reasons_are_known_once_a_context_is_enabled(void **state)
{
	size_t n = 0;
	void *ctx = context();
	struct pcs_count count = { .size = PCS_COUNT_BYTES, .context = ctx, .n = &n };
	struct pcs_context enabled = of(ctx), wrong = { .size = sizeof(wrong) + 8, .context = ctx };

	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	REFUSED(RESULT_INVALID_OPERATION, PCS(cuptiPCSamplingGetNumStallReasons)(&count));
	REFUSED(RESULT_INVALID_PARAMETER, PCS(cuptiPCSamplingEnable)(&wrong));
	SUCCEEDS(PCS(cuptiPCSamplingEnable)(&enabled));
	REFUSED(RESULT_INVALID_OPERATION, PCS(cuptiPCSamplingEnable)(&enabled));
	SUCCEEDS(PCS(cuptiPCSamplingGetNumStallReasons)(&count));
	assert_int_equal(n, 9);
	SUCCEEDS(PCS(cuptiPCSamplingDisable)(&enabled));
}

static void test_what_runs_between_start_and_stop_is_sampled(void **state)
{
	void *ctx = context();
	struct pcs_context enabled = of(ctx);
	struct pcs_data data = output();
	struct pcs_get get = { .size = PCS_GET_BYTES, .context = ctx, .data = &data };

	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(PCS(cuptiPCSamplingEnable)(&enabled));
	configure(ctx, 1 << 20, RESULT_SUCCESS);
	launch(NULL);
	wait_for_all();
	SUCCEEDS(PCS(cuptiPCSamplingStart)(&enabled));
	launch(NULL);
	wait_for_all();
	SUCCEEDS(PCS(cuptiPCSamplingStop)(&enabled));
	launch(NULL);
	wait_for_all();
	SUCCEEDS(PCS(cuptiPCSamplingGetData)(&get));
	assert_int_equal(data.n, ROOM);
	assert_int_equal(data.left, 1);
	assert_string_equal(pcs[0].name, TICK);
	assert_int_equal(pcs[1].stalls[0].reason, 5);
	/* 300 us in periods of 2.4, four schedulers: some 500, and 70 of 100 here */
	assert_in_range(pcs[1].stalls[0].samples, 70 * 4, 70 * 12);
	SUCCEEDS(PCS(cuptiPCSamplingGetData)(&get));
	assert_int_equal(data.n, 1);
	assert_int_equal(data.left, 0);
	SUCCEEDS(PCS(cuptiPCSamplingGetData)(&get));
	assert_int_equal(data.n, 0);
	SUCCEEDS(PCS(cuptiPCSamplingDisable)(&enabled));
}

static void test_too_large_a_buffer_is_refused(void **state)
{
	struct pcs_context enabled = of(context());

	setenv("SIMCUPTI_PCS_ROOM", "1000", 1);
	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(PCS(cuptiPCSamplingEnable)(&enabled));
	configure(enabled.context, 1001, RESULT_OUT_OF_MEMORY);
	REFUSED(RESULT_INVALID_OPERATION, PCS(cuptiPCSamplingStart)(&enabled));
	SUCCEEDS(PCS(cuptiPCSamplingDisable)(&enabled));
	unsetenv("SIMCUPTI_PCS_ROOM");
}

static void fatal_finalized(void)
{
	struct pcs_context enabled = of(context());

	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(PCS(cuptiPCSamplingEnable)(&enabled));
	cuptiFinalize();
}

static void fatal_destroyed(void)
{
	struct pcs_context enabled = of(context());

	scene_start(KINDS_OF(KIND_CONCURRENT_KERNEL));
	SUCCEEDS(PCS(cuptiPCSamplingEnable)(&enabled));
	OK(cuCtxDestroy_v2, enabled.context);
	PCS(cuptiPCSamplingDisable)(&enabled);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_reasons_are_known_once_a_context_is_enabled,
		                          scene_clean),
		cmocka_unit_test_teardown(test_what_runs_between_start_and_stop_is_sampled,
		                          scene_clean),
		cmocka_unit_test_teardown(test_too_large_a_buffer_is_refused, scene_clean),
	};

	if (argc > 1) {
		scene_open(NULL);
		if (!strcmp(argv[1], "finalized"))
			fatal_finalized();
		else
			fatal_destroyed();
		return 0;
	}
	return cmocka_run_group_tests(tests, scene_open, NULL);
}
