// SPDX-License-Identifier: MIT
#include "support.h"

#include "analysis/memory.h"

#define KIB 1024ull
#define A   0x7f0000000000ull
#define B   0x7f0000100000ull

static struct memory *memory;

static int set_up(void **state)
{
	memory = memory_new();
	return 0;
}

static int tear_down(void **state)
{
	memory_free(memory);
	return 0;
}

static uint64_t follow(const struct process *process, struct call call)
{
	return memory_event(memory, &(struct event){ .type = EVENT_CALL,
	                                             .time_ns = call.end_ns,
	                                             .process = process,
	                                             .tid = process->pid,
	                                             .call = &call });
}

static void follow_process(const struct process *process, enum event_type type)
{
	memory_event(memory, &(struct event){ .type = type, .process = process });
}

static uint64_t live(void)
{
	return memory_totals(memory, MEMORY_NONE)->live.bytes;
}

static void assert_count(struct memory_count n, uint64_t count, uint64_t bytes)
{
	assert_int_equal(n.count, count);
	assert_int_equal(n.bytes, bytes);
}

static void test_allocations_and_frees_balance(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, 4 * KIB));
	follow(the_process(), alloc_at("cudaMalloc", 1, B, 8 * KIB));
	assert_int_equal(live(), 12 * KIB);
	assert_int_equal(follow(the_process(), free_at("cudaFree", 2, A)), 4 * KIB);
	assert_int_equal(live(), 8 * KIB);
	assert_count(memory_totals(memory, MEMORY_DEVICE)->allocated, 2, 12 * KIB);
	assert_count(memory_totals(memory, MEMORY_DEVICE)->freed, 1, 4 * KIB);
	assert_int_equal(memory_totals(memory, MEMORY_DEVICE)->peak_bytes, 12 * KIB);
}

static void test_a_free_through_the_other_layer_finds_the_allocation(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), free_at("cuMemFree_v2", 1, A));
	assert_int_equal(live(), 0);
	assert_int_equal(memory_unknown_frees(memory), 0);
}

static void test_the_kind_of_the_allocation_counts_and_not_that_of_the_free(void **state)
{
	follow(the_process(), alloc_at("cudaMallocManaged", 0, A, KIB));
	follow(the_process(), free_at("cudaFree", 1, A));
	assert_count(memory_totals(memory, MEMORY_MANAGED)->freed, 1, KIB);
	assert_count(memory_totals(memory, MEMORY_DEVICE)->freed, 0, 0);
}

static void test_two_processes_may_have_the_same_address(void **state)
{
	const struct process *one = new_process(1, "one"), *two = new_process(2, "two");

	follow(one, alloc_at("cudaMalloc", 0, A, KIB));
	follow(two, alloc_at("cudaMalloc", 0, A, 2 * KIB));
	assert_int_equal(live(), 3 * KIB);
	follow(one, free_at("cudaFree", 1, A));
	assert_int_equal(memory_live_bytes(memory, one), 0);
	assert_int_equal(memory_live_bytes(memory, two), 2 * KIB);
}

static void test_a_free_of_an_unknown_address_is_counted_apart(void **state)
{
	assert_int_equal(follow(the_process(), free_at("cudaFree", 0, A)), 0);
	assert_int_equal(memory_unknown_frees(memory), 1);
	assert_count(memory_totals(memory, MEMORY_NONE)->freed, 0, 0);
}

static void test_a_free_of_null_is_nothing(void **state)
{
	follow(the_process(), free_at("cudaFree", 0, 0));
	assert_int_equal(memory_unknown_frees(memory), 0);
}

static void test_an_address_given_out_twice_replaces(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), alloc_at("cudaMalloc", 1, A, 2 * KIB));
	assert_int_equal(live(), 2 * KIB);
	assert_count(memory_totals(memory, MEMORY_NONE)->replaced, 1, KIB);
	assert_int_equal(memory_totals(memory, MEMORY_NONE)->peak_bytes, 2 * KIB);
}

static void test_what_did_not_happen_changes_nothing(void **state)
{
	static const uint32_t flags[] = { CALL_FAILED, CALL_NESTED, CALL_CAPTURED,
		                          CALL_UNFINISHED };

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		struct call call = alloc_at("cudaMalloc", 0, A, KIB);

		call.flags = flags[i];
		follow(the_process(), call);
	}
	assert_int_equal(live(), 0);
	assert_count(memory_totals(memory, MEMORY_NONE)->allocated, 0, 0);
}

static void test_an_allocation_of_nothing_is_none(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, 0, 0));
	assert_count(memory_totals(memory, MEMORY_NONE)->allocated, 0, 0);
}

static void test_without_a_return_bytes_count_but_are_not_followed(void **state)
{
	struct call call = alloc_at("cudaMalloc", 0, 0, KIB);

	never_ends(&call, CALL_NO_RETURN);
	follow(the_process(), call);
	assert_count(memory_totals(memory, MEMORY_NONE)->allocated, 1, KIB);
	assert_count(memory_totals(memory, MEMORY_NONE)->untracked, 1, KIB);
	assert_int_equal(live(), 0);
}

static void test_exit_releases_what_the_process_held(void **state)
{
	const struct process *one = new_process(1, "one"), *two = new_process(2, "two");

	follow(one, alloc_at("cudaMalloc", 0, A, KIB));
	follow(two, alloc_at("cudaMalloc", 0, A, 2 * KIB));
	follow_process(one, EVENT_EXIT);
	assert_count(memory_totals(memory, MEMORY_NONE)->exit, 1, KIB);
	assert_count(memory_totals(memory, MEMORY_NONE)->live, 1, 2 * KIB);
	assert_int_equal(memory_totals(memory, MEMORY_NONE)->peak_bytes, 3 * KIB);
}

static void test_exec_releases_what_the_process_held(void **state)
{
	const struct process *before = new_process(9, "sh"), *after = new_process(9, "app");

	follow_process(before, EVENT_PROCESS);
	follow(before, alloc_at("cudaMalloc", 0, A, KIB));
	follow_process(after, EVENT_PROCESS);
	assert_count(memory_totals(memory, MEMORY_NONE)->exit, 1, KIB);
	assert_int_equal(live(), 0);
}

static void test_a_context_takes_its_memory_with_it(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), alloc_at("cuMemCreate", 0, 7, 64 * KIB));
	follow(the_process(), call_at("cudaDeviceReset", 1, 1));
	assert_count(memory_totals(memory, MEMORY_NONE)->context, 1, KIB);
	assert_count(memory_totals(memory, MEMORY_NONE)->live, 1, 64 * KIB);
}

static void test_a_free_after_a_context_ended_shows_that_it_was_another(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), call_at("cuCtxDestroy_v2", 1, 1));
	follow(the_process(), free_at("cudaFree", 2, A));
	assert_count(memory_totals(memory, MEMORY_NONE)->context, 0, 0);
	assert_count(memory_totals(memory, MEMORY_NONE)->freed, 1, KIB);
	assert_int_equal(memory_unknown_frees(memory), 0);
	assert_int_equal(live(), 0);
}

static void test_memory_of_an_ended_context_does_not_go_twice(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), call_at("cudaDeviceReset", 1, 1));
	follow(the_process(), call_at("cudaDeviceReset", 2, 1));
	follow_process(the_process(), EVENT_EXIT);
	assert_count(memory_totals(memory, MEMORY_NONE)->context, 1, KIB);
	assert_count(memory_totals(memory, MEMORY_NONE)->exit, 0, 0);
}

static void test_an_address_of_an_ended_context_can_be_given_out_again(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), call_at("cudaDeviceReset", 1, 1));
	follow(the_process(), alloc_at("cudaMalloc", 2, A, 2 * KIB));
	assert_count(memory_totals(memory, MEMORY_NONE)->replaced, 0, 0);
	assert_count(memory_totals(memory, MEMORY_NONE)->live, 1, 2 * KIB);
}

static void test_reserved_addresses_are_not_bytes(void **state)
{
	follow(the_process(), alloc_at("cuMemAddressReserve", 0, A, 1024 * KIB));
	assert_int_equal(live(), 0);
	assert_count(memory_totals(memory, MEMORY_NONE)->allocated, 0, 0);
	assert_count(memory_totals(memory, MEMORY_VMM_VA)->live, 1, 1024 * KIB);
}

static void test_a_handle_and_an_address_may_be_the_same_number(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), alloc_at("cuMemCreate", 0, A, 2 * KIB));
	follow(the_process(), alloc_at("cuMemAddressReserve", 0, A, 4 * KIB));
	follow(the_process(), free_at("cuMemRelease", 1, A));
	assert_int_equal(live(), KIB);
	assert_count(memory_totals(memory, MEMORY_VMM)->freed, 1, 2 * KIB);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_allocations_and_frees_balance),
		TEST(test_a_free_through_the_other_layer_finds_the_allocation),
		TEST(test_the_kind_of_the_allocation_counts_and_not_that_of_the_free),
		TEST(test_two_processes_may_have_the_same_address),
		TEST(test_a_free_of_an_unknown_address_is_counted_apart),
		TEST(test_a_free_of_null_is_nothing),
		TEST(test_an_address_given_out_twice_replaces),
		TEST(test_what_did_not_happen_changes_nothing),
		TEST(test_an_allocation_of_nothing_is_none),
		TEST(test_without_a_return_bytes_count_but_are_not_followed),
		TEST(test_exit_releases_what_the_process_held),
		TEST(test_exec_releases_what_the_process_held),
		TEST(test_a_context_takes_its_memory_with_it),
		TEST(test_a_free_after_a_context_ended_shows_that_it_was_another),
		TEST(test_memory_of_an_ended_context_does_not_go_twice),
		TEST(test_an_address_of_an_ended_context_can_be_given_out_again),
		TEST(test_reserved_addresses_are_not_bytes),
		TEST(test_a_handle_and_an_address_may_be_the_same_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
