// SPDX-License-Identifier: MIT
/* What a hook's cookie says is what its plan says: src/bpf reads nothing else. */
#include "unit.h"

#include "cuda/row.h"
#include "probe/module.h"

static struct hook hook_of(const char *symbol, uint16_t id)
{
	struct hook hook = { .id = id, .name = symbol, .api = api_find(symbol) };

	assert_non_null(hook.api);
	api_plan(hook.api, ABI_NATIVE, &hook.plan);
	return hook;
}

/* ---- fields -------------------------------------------------------------------------------- */

static void test_fields_stand_side_by_side(void **state)
{
	uint64_t taken = 0;

#define FIELD(name, at, bits)                                                                      \
	do {                                                                                       \
		uint64_t whole = cookie_with_##name(UINT64_MAX);                                   \
		assert_int_equal(whole, ((1ull << (bits)) - 1) << (at));                           \
		assert_int_equal(whole &taken, 0);                                                 \
		assert_int_equal(cookie_##name(whole), (1u << (bits)) - 1);                        \
		assert_int_equal(cookie_##name(~whole), 0);                                        \
		taken |= whole;                                                                    \
	} while (0);
	COOKIE_FIELDS(FIELD)
#undef FIELD
}

static void test_fields_are_wide_enough(void **state)
{
	assert_int_equal(cookie_hook(cookie_with_hook(WIRE_HOOKS_MAX - 1)), WIRE_HOOKS_MAX - 1);
	assert_int_equal(cookie_words(cookie_with_words(WIRE_WORDS)), WIRE_WORDS);
	assert_int_equal(cookie_stack(cookie_with_stack(WIRE_STACK)), WIRE_STACK);
	assert_int_equal(cookie_blob_words(cookie_with_blob_words(WIRE_BLOB)), WIRE_BLOB);
	assert_int_equal(COOKIE_NONE, PLAN_NO_ARG);
	assert_true(COOKIE_NONE > WIRE_REGS);
}

/* ---- every function that is known ---------------------------------------------------------- */

static void assert_fields(const struct hook *hook, uint64_t cookie)
{
	const struct capture_plan *plan = &hook->plan;

	assert_int_equal(cookie_hook(cookie), hook->id);
	assert_int_equal(cookie_stack(cookie), plan->stack);
	assert_int_equal(cookie_out0(cookie), plan->out[0]);
	assert_int_equal(cookie_out1(cookie), plan->out[1]);
	if (plan->out[0] != PLAN_NO_ARG)
		assert_int_equal(cookie_out0_wide(cookie) ? 8 : 4, plan->out_bytes[0]);
	if (plan->out[1] != PLAN_NO_ARG)
		assert_int_equal(cookie_out1_wide(cookie) ? 8 : 4, plan->out_bytes[1]);
	assert_int_equal(cookie_blob(cookie), plan->blob);
	assert_int_equal(cookie_blob_words(cookie), plan->blob_words);
	assert_int_equal(cookie_blob_on_return(cookie), plan->blob_on_return);
	assert_int_equal(cookie_string(cookie), plan->string);
	assert_int_equal(cookie_kernel(cookie), plan->kernel);
	assert_int_equal(cookie_name_key(cookie), plan->name_key);
	assert_int_equal(cookie_forgets_kernels(cookie), plan->forgets_kernels);
	assert_int_equal(cookie_runtime(cookie), hook->layer == LAYER_RUNTIME);
}

/* A record must reach as far as the last word that the plan reads. */
static void assert_words(const struct hook *hook, unsigned words)
{
	const struct capture_plan *plan = &hook->plan;

	assert_true(words <= WIRE_WORDS);
	assert_true(words >= WIRE_AT_REG + plan->regs);
	if (plan->stack)
		assert_true(words >= WIRE_AT_STACK + plan->stack);
	if (plan->blob != PLAN_NO_ARG)
		assert_true(words >= WIRE_AT_BLOB + plan->blob_words);
}

/* The register that an index field names must exist on this machine. */
static void assert_register(uint8_t index)
{
	assert_true(index < WIRE_REGS || index == PLAN_NO_ARG);
}

static void assert_cookies_of(const struct api_row *rows, size_t count, enum api_layer layer)
{
	for (size_t i = 0; i < count; i++) {
		struct hook hook = hook_of(rows[i].name, (uint16_t)(i * 37 % WIRE_HOOKS_MAX));
		const struct capture_plan *plan = &hook.plan;
		uint64_t cookie;

		hook.layer = layer;
		cookie = hook_cookie(&hook);
		assert_fields(&hook, cookie);
		assert_words(&hook, cookie_words(cookie));
		assert_true(plan->regs <= WIRE_REGS);
		assert_register(plan->out[0]);
		assert_register(plan->out[1]);
		assert_register(plan->blob);
		assert_register(plan->string);
		assert_register(plan->kernel);
		assert_register(plan->name_key);
	}
}

static void test_every_driver_function_has_a_cookie_that_says_its_plan(void **state)
{
	assert_cookies_of(driver_rows, n_driver_rows, LAYER_DRIVER);
}

static void test_every_runtime_function_has_a_cookie_that_says_its_plan(void **state)
{
	assert_cookies_of(runtime_rows, n_runtime_rows, LAYER_RUNTIME);
}

/* ---- whose stack it is --------------------------------------------------------------------- */

static void assert_stack_kind(const char *symbol, enum wire_stack_kind kind)
{
	struct hook hook = hook_of(symbol, 1);

	assert_int_equal(hook_stack_kind(&hook), kind);
	assert_int_equal(cookie_stack_kind(hook_cookie(&hook)), kind);
}

static void test_a_function_says_whose_stacks_its_calls_have(void **state)
{
	assert_stack_kind("cuLaunchKernel", STACK_OF_LAUNCH);
	assert_stack_kind("cuGraphLaunch", STACK_OF_LAUNCH);
	assert_stack_kind("cuMemcpyHtoDAsync_v2", STACK_OF_COPY);
	assert_stack_kind("cudaMemsetAsync", STACK_OF_COPY);
	assert_stack_kind("cudaMemcpy", STACK_OF_WAITING_COPY);
	assert_stack_kind("cuMemcpyDtoH_v2", STACK_OF_WAITING_COPY);
	assert_stack_kind("cuStreamSynchronize", STACK_OF_WAIT);
	assert_stack_kind("cuEventSynchronize", STACK_OF_WAIT);
	assert_stack_kind("cuCtxSynchronize", STACK_OF_WAIT);
	assert_stack_kind("cudaDeviceSynchronize", STACK_OF_WAIT);
	assert_stack_kind("cuMemAlloc_v2", STACK_OF_ALLOCATION);
	assert_stack_kind("cudaMallocHost", STACK_OF_ALLOCATION);
	assert_stack_kind("cuMemFree_v2", STACK_OF_FREE);
	assert_stack_kind("cuStreamCreate", STACK_OF_NOTHING);
}

static void test_a_function_that_is_not_known_has_no_stacks(void **state)
{
	const struct hook hook = { .id = 1, .name = "cuSomethingNew" };

	assert_int_equal(hook_stack_kind(&hook), STACK_OF_NOTHING);
}

/* ---- how long a record is ------------------------------------------------------------------ */

static void test_a_record_ends_after_the_last_register_of_its_function(void **state)
{
	struct hook hook = hook_of("cudaMalloc", 1);

	assert_int_equal(cookie_words(hook_cookie(&hook)), WIRE_AT_REG + hook.plan.regs);
}

static void test_a_record_ends_after_the_last_stack_word_of_its_function(void **state)
{
	struct hook hook = hook_of("cuLaunchKernel", 1);

	assert_true(hook.plan.stack > 0);
	assert_int_equal(cookie_words(hook_cookie(&hook)), WIRE_AT_STACK + hook.plan.stack);
}

static void test_a_record_ends_after_the_struct_of_its_function(void **state)
{
	struct hook hook = hook_of("cuMemcpy3D_v2", 1);

	assert_true(hook.plan.blob_words > 0);
	assert_int_equal(cookie_words(hook_cookie(&hook)), WIRE_AT_BLOB + hook.plan.blob_words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_stand_side_by_side),
		cmocka_unit_test(test_fields_are_wide_enough),
		cmocka_unit_test(test_every_driver_function_has_a_cookie_that_says_its_plan),
		cmocka_unit_test(test_every_runtime_function_has_a_cookie_that_says_its_plan),
		cmocka_unit_test(test_a_function_says_whose_stacks_its_calls_have),
		cmocka_unit_test(test_a_function_that_is_not_known_has_no_stacks),
		cmocka_unit_test(test_a_record_ends_after_the_last_register_of_its_function),
		cmocka_unit_test(test_a_record_ends_after_the_last_stack_word_of_its_function),
		cmocka_unit_test(test_a_record_ends_after_the_struct_of_its_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
