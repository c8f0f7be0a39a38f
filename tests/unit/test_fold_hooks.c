// SPDX-License-Identifier: MIT
/* What the eBPF programs add up of hooks of one's own. */
#include "bpf_native.h"

#include "bpf/fold_hooks.h"

#define PLAN 3

static struct wire_hook_plan plan;
static struct wire_hook hook;

static int fresh(void **state_of_test)
{
	static struct wire_thread blank, thread;
	__u32 zero = 0, tid = 101;

	native_forget();
	memset(&state, 0, sizeof(state));
	settings.fold = FOLD_TOOL_HOOKS;
	settings.share[FOLD_SHARE_HOOKS] = 1000;
	bpf_map_update_elem(&blank_thread, &zero, &blank, BPF_ANY);
	thread = (struct wire_thread){ .tgid = 100, .born_ns = 900 };
	bpf_map_update_elem(&threads, &tid, &thread, BPF_ANY);
	plan = (struct wire_hook_plan){ .flags = PLAN_RETURNS };
	hook = (struct wire_hook){ .head = { .tgid = 100, .tid = 101, .hook = 7, .time_ns = 1500 },
		                   .begin_ns = 1000,
		                   .value = { 11, 4096, 2 } };
	return 0;
}

static struct fold_hook *row_of(__u32 number)
{
	struct fold_hook_key key = { .born_ns = 900, .tgid = 100, .hook = number };

	return bpf_map_lookup_elem(&fold_hooks, &key);
}

static void test_calls_and_their_times_are_added_up(void **state_of_test)
{
	fold_hook(&plan, PLAN, &hook);
	hook.head.time_ns = 1200;
	fold_hook(&plan, PLAN, &hook);
	assert_int_equal(row_of(7)->calls, 2);
	assert_int_equal(row_of(7)->timed, 2);
	assert_int_equal(row_of(7)->ns, 700);
	assert_int_equal(row_of(7)->max_ns, 500);
	assert_int_equal(row_of(7)->bytes, 0);
	assert_int_equal(state.lost_rows, 0);
}

static void test_each_hook_has_its_row(void **state_of_test)
{
	fold_hook(&plan, PLAN, &hook);
	hook.head.hook = 8;
	fold_hook(&plan, PLAN, &hook);
	assert_int_equal(row_of(7)->calls, 1);
	assert_int_equal(row_of(8)->calls, 1);
}

static void test_sizes_are_added_up(void **state_of_test)
{
	plan.sum = 2;
	fold_hook(&plan, PLAN, &hook);
	fold_hook(&plan, PLAN, &hook);
	assert_int_equal(row_of(7)->bytes, 8192);
}

static void test_a_size_may_be_a_product(void **state_of_test)
{
	struct wire_hook_table table = { .number = { 1, 1, 8 } };
	__u32 number = PLAN;

	plan.sum = 2;
	plan.factor = 3;
	fold_hook(&plan, PLAN, &hook); /* there is no table yet */
	bpf_map_update_elem(&fold_hook_tables, &number, &table, BPF_ANY);
	fold_hook(&plan, PLAN, &hook);
	assert_int_equal(row_of(7)->bytes, 8 * 4096);
	for (__u64 key = 3; key; key <<= 1) { /* as a program may say: what the table has not */
		hook.value[2] = key;
		fold_hook(&plan, PLAN, &hook);
	}
	assert_int_equal(row_of(7)->bytes, 8 * 4096);
}

static void test_what_has_no_end_has_no_time(void **state_of_test)
{
	hook.head.flags = WIRE_UNFINISHED;
	fold_hook(&plan, PLAN, &hook);
	hook.head.flags = WIRE_NO_RETURN;
	fold_hook(&plan, PLAN, &hook);
	hook.head.flags = 0;
	plan.flags |= PLAN_MOMENT;
	fold_hook(&plan, PLAN, &hook);
	assert_int_equal(row_of(7)->calls, 3);
	assert_int_equal(row_of(7)->unfinished, 1);
	assert_int_equal(row_of(7)->timed, 0);
	assert_int_equal(row_of(7)->ns, 0);
}

static void test_no_room_is_counted(void **state_of_test)
{
	native_most = 1;
	fold_hook(&plan, PLAN, &hook);
	hook.head.hook = 8;
	fold_hook(&plan, PLAN, &hook);
	assert_null(row_of(8));
	assert_int_equal(state.lost_rows, 1);
}

static void test_one_process_has_a_share(void **state_of_test)
{
	settings.share[FOLD_SHARE_HOOKS] = 2;
	for (__u16 number = 0; number < 5; number++) {
		hook.head.hook = number;
		fold_hook(&plan, PLAN, &hook);
	}
	assert_non_null(row_of(1));
	assert_null(row_of(2));
	assert_int_equal(state.lost_rows, 3);
	hook.head.hook = 1;
	fold_hook(&plan, PLAN, &hook);
	assert_int_equal(row_of(1)->calls, 2);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_calls_and_their_times_are_added_up),
		TEST(test_each_hook_has_its_row),
		TEST(test_sizes_are_added_up),
		TEST(test_a_size_may_be_a_product),
		TEST(test_what_has_no_end_has_no_time),
		TEST(test_no_room_is_counted),
		TEST(test_one_process_has_a_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
