// SPDX-License-Identifier: MIT
/* When a capture is over, and what is left of it where the reader of files was given up. */
#include "capture/session.h"
#include "unit.h"

#define READY 1000
#define LASTS 100

static struct {
	bool awaited, measured, loading; /* GPU times */
	unsigned freed;
} fake;

/* In place of the library's. */
bool __wrap_gpu_is_awaited(const struct gpu_times *gpu);
bool __wrap_gpu_measured(const struct gpu_times *gpu);
bool __wrap_gpu_is_on_its_way(const struct gpu_times *gpu, const struct wire_call *open);
void __wrap_programs_open_calls(struct programs *programs, programs_record_fn each, void *data);
uint64_t __wrap_order_passed_ns(struct order *order);
void __wrap_modules_free(struct modules *modules);
void __wrap_own_hooks_free(struct own_hooks *own);
void __wrap_programs_free(struct programs *programs);
void __wrap_kernel_features_free(struct kernel_features *features);

bool __wrap_gpu_is_awaited(const struct gpu_times *gpu)
{
	return fake.awaited;
}

bool __wrap_gpu_measured(const struct gpu_times *gpu)
{
	return fake.measured;
}

bool __wrap_gpu_is_on_its_way(const struct gpu_times *gpu, const struct wire_call *open)
{
	return fake.loading;
}

void __wrap_programs_open_calls(struct programs *programs, programs_record_fn each, void *data)
{
	static const struct wire_call call;

	each(data, &call.head, sizeof(call));
}

uint64_t __wrap_order_passed_ns(struct order *order)
{
	return UINT64_MAX;
}

void __wrap_modules_free(struct modules *modules)
{
	fake.freed++;
}

void __wrap_own_hooks_free(struct own_hooks *own)
{
	fake.freed++;
}

void __wrap_programs_free(struct programs *programs)
{
	fake.freed++;
}

void __wrap_kernel_features_free(struct kernel_features *features)
{
	fake.freed++;
}

static int set_up(void **state)
{
	memset(&fake, 0, sizeof(fake));
	return 0;
}

/* ---- the end ------------------------------------------------------------------------------- */

static struct capture with_duration(void)
{
	static char gpu;

	return (struct capture){ .gpu = (struct gpu_times *)&gpu,
		                 .options = { .duration_ns = LASTS },
		                 .ready_ns = READY };
}

static bool is_over(struct capture *c, uint64_t now)
{
	struct err err = { 0 };

	return session_is_over(c, now, &err);
}

static void test_the_time_counts_from_what_it_was_waited_for(void **state)
{
	struct capture c = with_duration();

	fake.awaited = true;
	assert_false(is_over(&c, READY + 5 * LASTS));
	fake.awaited = false;
	fake.measured = true;
	assert_false(is_over(&c, READY + 10 * LASTS));
	assert_false(is_over(&c, READY + 11 * LASTS - 1));
	assert_true(is_over(&c, READY + 11 * LASTS));
}

static void test_where_nothing_comes_the_time_counts_from_when_all_was_hooked(void **state)
{
	struct capture c = with_duration();

	assert_false(is_over(&c, READY + LASTS - 1));
	assert_true(is_over(&c, READY + LASTS));
}

static void test_an_agent_that_is_being_loaded_is_waited_for(void **state)
{
	struct capture c = with_duration();

	fake.loading = true;
	assert_false(is_over(&c, READY + LASTS));
	assert_true(is_over(&c, READY + 60000000000));
	fake.loading = false;
	assert_true(is_over(&c, READY + LASTS));
}

/* ---- what is left -------------------------------------------------------------------------- */

static void test_all_is_freed(void **state)
{
	capture_free(calloc(1, sizeof(struct capture)));
	assert_int_equal(fake.freed, 4);
}

/* It still runs, and looks into these. */
static void test_a_reader_that_was_given_up_keeps_what_it_uses(void **state)
{
	struct capture *c = calloc(1, sizeof(*c));

	c->reader_hangs = true;
	capture_free(c);
	assert_int_equal(fake.freed, 0);
	assert_true(c->reader_hangs);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_time_counts_from_what_it_was_waited_for, set_up),
		cmocka_unit_test_setup(
			test_where_nothing_comes_the_time_counts_from_when_all_was_hooked, set_up),
		cmocka_unit_test_setup(test_an_agent_that_is_being_loaded_is_waited_for, set_up),
		cmocka_unit_test_setup(test_all_is_freed, set_up),
		cmocka_unit_test_setup(test_a_reader_that_was_given_up_keeps_what_it_uses, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
