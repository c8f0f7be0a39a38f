// SPDX-License-Identifier: MIT
/* What memory is live: allocations and frees, in any order and layer. */
#include "support.h"

#include <time.h>

#include "analysis/memory.h"
#include "base/array.h"

/* Calls last 10 us, and none frees what is not there yet: they begin 20 us apart. */
#define alloc_at(function, at, ...) alloc_at(function, 20 * (at), __VA_ARGS__)
#define free_at(function, at, ...)  free_at(function, 20 * (at), __VA_ARGS__)

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

static void test_a_free_may_return_after_its_address_was_given_out_again(void **state)
{
	struct call first = free_at("cudaFree", 1, A), second = free_at("cudaFree", 4, A);

	follow(the_process(), alloc_at("cudaMalloc", 0, A, 4 * KIB));
	first.end_ns =
		alloc_at("cudaMalloc", 3, A, KIB).end_ns; /* it is in the call all the while */
	follow(the_process(), alloc_at("cudaMalloc", 2, A, KIB)); /* of another thread */
	assert_int_equal(follow(the_process(), first), 4 * KIB);
	assert_count(memory_totals(memory, MEMORY_DEVICE)->replaced, 0, 0);
	assert_int_equal(live(), KIB);
	assert_int_equal(follow(the_process(), second), KIB);
	assert_count(memory_totals(memory, MEMORY_DEVICE)->freed, 2, 5 * KIB);
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

static void test_peaks_can_begin_anew(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, 4 * KIB));
	follow(the_process(), alloc_at("cudaMalloc", 1, B, 1 * KIB));
	follow(the_process(), free_at("cudaFree", 2, A));
	memory_forget_peaks(memory);
	assert_int_equal(memory_process_totals(memory, the_process(), MEMORY_NONE)->peak_bytes,
	                 1 * KIB);
	assert_int_equal(memory_totals(memory, MEMORY_DEVICE)->peak_bytes, 1 * KIB);
}

/* Begins with a call at `begin` and ends with one at `end`. */
static struct call slow_free_at(uint64_t address, uint64_t begin, uint64_t end)
{
	struct call call = free_at("cudaFree", begin, address);

	call.end_ns = free_at("cudaFree", end, address).end_ns;
	return call;
}

static void assert_all_freed(unsigned n)
{
	assert_int_equal(live(), 0);
	assert_int_equal(memory_unknown_frees(memory), 0);
	assert_int_equal(memory_totals(memory, MEMORY_NONE)->freed.count, n);
	assert_count(memory_totals(memory, MEMORY_NONE)->replaced, 0, 0);
	assert_count(memory_totals(memory, MEMORY_NONE)->exit, 0, 0);
}

/* The first free is the last to return: its address is given out and freed again meanwhile. */
static void test_a_free_may_return_after_the_next_free_of_its_address(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), alloc_at("cudaMalloc", 2, A, 2 * KIB));
	assert_int_equal(follow(the_process(), free_at("cudaFree", 3, A)), 2 * KIB);
	assert_int_equal(follow(the_process(), slow_free_at(A, 1, 4)), KIB);
	assert_all_freed(2);
	follow(the_process(), free_at("cudaFree", 5, A));
	assert_int_equal(memory_unknown_frees(memory), 1);
}

static void test_a_late_free_is_known_after_more_allocations_there(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), alloc_at("cudaMalloc", 2, A, 2 * KIB));
	follow(the_process(), free_at("cudaFree", 3, A));
	follow(the_process(), alloc_at("cudaMalloc", 4, A, 4 * KIB));
	assert_int_equal(live(), 4 * KIB);
	assert_int_equal(follow(the_process(), slow_free_at(A, 1, 5)), KIB);
	follow(the_process(), free_at("cudaFree", 6, A));
	assert_all_freed(3);
}

static void test_a_free_that_began_too_late_leaves_the_late_one_its_allocation(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), alloc_at("cudaMalloc", 2, A, 2 * KIB));
	follow(the_process(), free_at("cudaFree", 3, A));
	follow(the_process(), free_at("cudaFree", 4, A));
	assert_int_equal(memory_unknown_frees(memory), 1);
	assert_int_equal(follow(the_process(), slow_free_at(A, 1, 5)), KIB);
	assert_int_equal(memory_unknown_frees(memory), 1);
}

static void count_one(void *data, const struct memory_allocation *allocation)
{
	++*(unsigned *)data;
}

static void test_what_waits_for_a_late_free_is_not_live(void **state)
{
	unsigned n = 0;

	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(the_process(), alloc_at("cudaMalloc", 2, A, 2 * KIB));
	follow(the_process(), free_at("cudaFree", 3, A));
	memory_each_live(memory, count_one, &n);
	assert_int_equal(n, 0);
	follow(the_process(), call_at("cudaDeviceReset", 4, 1));
	assert_count(memory_totals(memory, MEMORY_NONE)->context, 0, 0);
	follow(the_process(), alloc_at("cudaMalloc", 6, B, KIB));
	follow(the_process(), alloc_at("cudaMalloc", 7, B, 2 * KIB));
	follow(the_process(), free_at("cudaFree", 8, B));
	follow_process(the_process(), EVENT_EXIT);
	assert_count(memory_totals(memory, MEMORY_NONE)->exit, 0, 0);
}

/* 1,024 are kept; of one more the oldest is not waited for any longer. */
static void test_only_so_many_late_frees_are_waited_for(void **state)
{
	for (uint64_t i = 0; i < 1025; i++) {
		follow(the_process(), alloc_at("cudaMalloc", 4 * i, A + i * KIB, KIB));
		follow(the_process(), alloc_at("cudaMalloc", 4 * i + 2, A + i * KIB, KIB));
		follow(the_process(), free_at("cudaFree", 4 * i + 3, A + i * KIB));
	}
	assert_int_equal(follow(the_process(), slow_free_at(A, 1, 5000)), 0);
	assert_int_equal(memory_unknown_frees(memory), 1);
	for (uint64_t i = 1; i < 1025; i++)
		assert_int_equal(
			follow(the_process(), slow_free_at(A + i * KIB, 4 * i + 1, 5000 + i)), KIB);
	assert_int_equal(memory_unknown_frees(memory), 1);
	assert_count(memory_totals(memory, MEMORY_NONE)->replaced, 1, KIB);
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

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
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

/* ---- virtual memory management ------------------------------------------------------------- */

#define H 0x5500ull /* a handle */

static uint64_t map(double at, uint64_t address, uint64_t bytes, uint64_t handle)
{
	struct call call = call_at("cuMemMap", 20 * at, 10);

	call.op = OP_MAP;
	call.args.address = address;
	call.args.bytes = bytes;
	call.args.source = handle;
	return follow(the_process(), call);
}

static uint64_t unmap(double at, uint64_t address, uint64_t bytes)
{
	struct call call = call_at("cuMemUnmap", 20 * at, 10);

	call.op = OP_UNMAP;
	call.args.address = address;
	call.args.bytes = bytes;
	return follow(the_process(), call);
}

static void retain(double at, const char *function, uint64_t handle)
{
	struct call call = call_at(function, 20 * at, 10);

	call.op = OP_RETAIN;
	call.args.address = handle;
	follow(the_process(), call);
}

/* What allocators do that grow: PyTorch's expandable segments, vLLM's sleep mode. */
static void test_memory_lives_until_it_is_unmapped_and_released(void **state)
{
	follow(the_process(), alloc_at("cuMemCreate", 0, H, 4 * KIB));
	map(1, A, 4 * KIB, H);
	assert_int_equal(follow(the_process(), free_at("cuMemRelease", 2, H)), 0);
	assert_int_equal(live(), 4 * KIB);
	assert_count(memory_totals(memory, MEMORY_VMM)->live, 1, 4 * KIB);
	assert_int_equal(unmap(3, A, 4 * KIB), 4 * KIB);
	assert_int_equal(live(), 0);
	assert_count(memory_totals(memory, MEMORY_VMM)->freed, 1, 4 * KIB);
	assert_int_equal(memory_unknown_frees(memory), 0);

	follow(the_process(), alloc_at("cuMemCreate", 4, H, KIB));
	map(5, A, KIB, H);
	assert_int_equal(unmap(6, A, KIB), 0);
	assert_int_equal(live(), KIB);
	assert_int_equal(follow(the_process(), free_at("cuMemRelease", 7, H)), KIB);
	assert_int_equal(live(), 0);
}

static void test_memory_that_is_mapped_twice_is_there_once(void **state)
{
	follow(the_process(), alloc_at("cuMemCreate", 0, H, 4 * KIB));
	map(1, A, 4 * KIB, H);
	map(2, B, 2 * KIB, H);
	follow(the_process(), free_at("cuMemRelease", 3, H));
	assert_int_equal(unmap(4, A, 4 * KIB), 0);
	assert_int_equal(live(), 4 * KIB);
	assert_int_equal(unmap(5, B, 2 * KIB), 4 * KIB);
	assert_int_equal(live(), 0);
}

static void test_several_mappings_can_be_unmapped_at_once(void **state)
{
	for (uint64_t i = 0; i < 4; i++) {
		follow(the_process(), alloc_at("cuMemCreate", (double)(3 * i), H + i, KIB));
		map((double)(3 * i + 1), A + i * KIB, KIB, H + i);
		follow(the_process(), free_at("cuMemRelease", (double)(3 * i + 2), H + i));
	}
	assert_int_equal(live(), 4 * KIB);
	assert_int_equal(unmap(20, A, 3 * KIB), 3 * KIB);
	assert_int_equal(live(), KIB);
}

static void test_each_handle_of_memory_has_to_be_given_back(void **state)
{
	follow(the_process(), alloc_at("cuMemCreate", 0, H, KIB));
	retain(1, "cuMemRetainAllocationHandle", H);
	assert_int_equal(follow(the_process(), free_at("cuMemRelease", 2, H)), 0);
	assert_int_equal(live(), KIB);
	assert_int_equal(follow(the_process(), free_at("cuMemRelease", 3, H)), KIB);
	assert_int_equal(live(), 0);
}

static void test_imported_memory_is_that_of_who_made_it(void **state)
{
	retain(0, "cuMemImportFromShareableHandle", H);
	map(1, A, 4 * KIB, H);
	assert_int_equal(live(), 0);
	assert_count(memory_totals(memory, MEMORY_VMM)->live, 0, 0);
	follow(the_process(), free_at("cuMemRelease", 2, H));
	unmap(3, A, 4 * KIB);
	assert_count(memory_totals(memory, MEMORY_VMM)->freed, 0, 0);
	assert_int_equal(memory_unknown_frees(memory), 0);
	follow(the_process(), alloc_at("cuMemCreate", 4, H, KIB)); /* the number again */
	assert_count(memory_totals(memory, MEMORY_VMM)->replaced, 0, 0);
	assert_int_equal(live(), KIB);
}

static void test_what_is_mapped_goes_with_its_process(void **state)
{
	follow(the_process(), alloc_at("cuMemCreate", 0, H, KIB));
	map(1, A, KIB, H);
	follow(the_process(), free_at("cuMemRelease", 2, H));
	retain(3, "cuMemImportFromShareableHandle", H + 1);
	follow(the_process(), call_at("cuCtxDestroy_v2", 4, 1)); /* is not of a context */
	assert_int_equal(live(), KIB);
	follow_process(the_process(), EVENT_EXIT);
	assert_count(memory_totals(memory, MEMORY_NONE)->exit, 1, KIB);
	assert_int_equal(live(), 0);
}

/* Another thread was given the addresses, and its call ended first. */
static void test_an_unmapping_that_ends_late_takes_no_newer_one(void **state)
{
	follow(the_process(), alloc_at("cuMemCreate", 0, H, KIB));
	follow(the_process(), alloc_at("cuMemCreate", 0, H + 1, 2 * KIB));
	map(1, A, KIB, H);
	follow(the_process(), free_at("cuMemRelease", 2, H));
	assert_int_equal(map(5, A, 2 * KIB, H + 1), KIB);
	follow(the_process(), free_at("cuMemRelease", 6, H + 1));
	assert_int_equal(unmap(4, A, KIB), 0);
	assert_int_equal(live(), 2 * KIB);
	assert_int_equal(unmap(7, A, 2 * KIB), 2 * KIB);
}

/* ---- graphs -------------------------------------------------------------------------------- */

#define GRAPH 0x6a00ull
#define EXEC  0xe800ull

static void graph_call(double at, const char *function, enum api_op op, uint64_t graph,
                       uint64_t exec)
{
	struct call call = call_at(function, 20 * at, 10);

	call.op = op;
	call.args.source = graph;
	call.args.handle = exec;
	follow(the_process(), call);
}

static void captured(struct call call)
{
	call.flags |= CALL_CAPTURED;
	follow(the_process(), call);
}

static void launch_graph(double at)
{
	graph_call(at, "cudaGraphLaunch", OP_GRAPH_LAUNCH, 0, EXEC);
}

static void test_memory_of_a_graph_is_there_when_it_runs(void **state)
{
	captured(alloc_at("cudaMallocAsync", 0, A, 4 * KIB));
	assert_int_equal(live(), 0);
	graph_call(1, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH, 0);
	graph_call(2, "cudaGraphInstantiate", OP_INSTANTIATE, GRAPH, EXEC);
	assert_int_equal(live(), 0);
	launch_graph(3);
	assert_int_equal(live(), 4 * KIB);
	assert_count(memory_totals(memory, MEMORY_ASYNC)->allocated, 1, 4 * KIB);
	assert_int_equal(follow(the_process(), free_at("cudaFree", 4, A)), 4 * KIB);
	assert_int_equal(live(), 0);
	assert_int_equal(memory_unknown_frees(memory), 0);
	launch_graph(5);
	launch_graph(6); /* frees what the launch before left */
	assert_int_equal(live(), 4 * KIB);
	assert_count(memory_totals(memory, MEMORY_ASYNC)->freed, 2, 8 * KIB);
}

static void test_memory_that_a_graph_frees_itself_is_there_for_a_moment(void **state)
{
	captured(alloc_at("cudaMallocAsync", 0, A, 4 * KIB));
	captured(free_at("cudaFreeAsync", 1, A));
	graph_call(2, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH, 0);
	graph_call(3, "cudaGraphInstantiate", OP_INSTANTIATE, GRAPH, EXEC);
	graph_call(4, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH, 0); /* the handle again */
	for (int i = 0; i < 3; i++)
		launch_graph(5 + i);
	assert_int_equal(live(), 0);
	assert_count(memory_totals(memory, MEMORY_ASYNC)->allocated, 3, 12 * KIB);
	assert_count(memory_totals(memory, MEMORY_ASYNC)->freed, 3, 12 * KIB);
	assert_int_equal(memory_totals(memory, MEMORY_ASYNC)->peak_bytes, 4 * KIB);
	assert_int_equal(memory_unknown_frees(memory), 0);
}

static void test_a_graph_can_free_what_another_allocated(void **state)
{
	struct call node = call_at("cuGraphAddMemAllocNode", 0, 10);

	node.op = OP_GRAPH_ALLOC;
	node.args.source = GRAPH;
	node.args.address = A;
	node.args.bytes = KIB;
	follow(the_process(), node);
	graph_call(1, "cuGraphInstantiateWithFlags", OP_INSTANTIATE, GRAPH, EXEC);
	node.op = OP_GRAPH_FREE;
	node.args.source = GRAPH + 1;
	follow(the_process(), node);
	graph_call(2, "cuGraphInstantiateWithFlags", OP_INSTANTIATE, GRAPH + 1, EXEC + 1);
	launch_graph(3);
	assert_int_equal(live(), KIB);
	graph_call(4, "cuGraphLaunch", OP_GRAPH_LAUNCH, 0, EXEC + 1);
	assert_int_equal(live(), 0);
	follow_process(the_process(), EVENT_EXIT);
}

#define NODES    30000
#define LAUNCHES 1500
#ifdef __SANITIZE_ADDRESS__
#define SECONDS_MOST 30
#else
#define SECONDS_MOST 4
#endif

#define NODES_KEPT 65536

/* Of a graph with more nodes than are kept all are counted, and none is followed. */
static void test_a_graph_that_is_cut_is_counted_whole(void **state)
{
	const struct memory_totals *totals;

	captured(alloc_at("cudaMallocAsync", 0, A, KIB));
	graph_call(1, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH, 0);
	graph_call(2, "cudaGraphInstantiate", OP_INSTANTIATE, GRAPH, EXEC);
	for (int i = 0; i < NODES_KEPT + 10; i++)
		captured(alloc_at("cudaMallocAsync", 3 + i / 1e6, A + (uint64_t)i * KIB, KIB));
	graph_call(4, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH, 0);
	graph_call(5, "cudaGraphInstantiate", OP_INSTANTIATE, GRAPH, EXEC);
	launch_graph(6);
	totals = memory_totals(memory, MEMORY_ASYNC);
	assert_count(totals->allocated, NODES_KEPT + 10, (NODES_KEPT + 10) * KIB);
	assert_int_equal(totals->untracked.count, NODES_KEPT + 10);
	assert_int_equal(live(), 0);
}

/* Nor is it known when it runs: what it allocates is told once. */
static void test_a_graph_without_room_is_told_of(void **state)
{
	const struct memory_totals *totals = memory_totals(memory, MEMORY_ASYNC);
	struct call node = call_at("cuGraphAddMemAllocNode", 8, 10);

	for (int i = 0; i < NODES_KEPT - 1; i++)
		captured(alloc_at("cudaMallocAsync", i / 1e6, A + (uint64_t)i * KIB, KIB));
	graph_call(1, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH, 0); /* it has the last room */
	assert_int_equal(totals->untracked.count, 0);
	graph_call(2, "cudaGraphInstantiate", OP_INSTANTIATE, GRAPH, EXEC);
	launch_graph(3);
	assert_count(totals->untracked, NODES_KEPT - 1, (NODES_KEPT - 1) * KIB);
	captured(alloc_at("cudaMallocAsync", 4, A, KIB));
	graph_call(5, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH + 1, 0);
	assert_int_equal(totals->untracked.count, NODES_KEPT);
	node.op = OP_GRAPH_ALLOC;
	node.args.source = GRAPH + 2;
	node.args.address = A;
	node.args.bytes = KIB;
	follow(the_process(), node);
	assert_int_equal(totals->untracked.count, NODES_KEPT + 1);
	node.op = OP_GRAPH_FREE;
	follow(the_process(), node);
	graph_call(9, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH + 3, 0); /* of no memory */
	assert_count(totals->allocated, NODES_KEPT + 1, (NODES_KEPT + 1) * KIB);
}

/* A launch of a few bytes stands for all that is in the graph. */
static void test_launches_of_a_huge_graph_cost_no_more_than_their_share(void **state)
{
	const struct memory_totals *totals;
	struct timespec begin, end;

	for (int i = 0; i < NODES; i++)
		captured(alloc_at("cudaMallocAsync", i / 1e6, A + (uint64_t)i * KIB, KIB));
	graph_call(1, "cudaStreamEndCapture", OP_CAPTURE_END, GRAPH, 0);
	graph_call(2, "cudaGraphInstantiate", OP_INSTANTIATE, GRAPH, EXEC);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < LAUNCHES; i++)
		launch_graph(3 + i);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	totals = memory_totals(memory, MEMORY_ASYNC);
	assert_count(totals->allocated, (uint64_t)NODES * LAUNCHES,
	             (uint64_t)NODES * LAUNCHES * KIB);
	assert_true(totals->untracked.count > 0 &&
	            totals->untracked.count < totals->allocated.count);
	assert_int_equal(totals->allocated.count,
	                 totals->freed.count + totals->untracked.count + totals->live.count);
	assert_int_equal(live(), NODES * KIB);
	assert_true(end.tv_sec - begin.tv_sec < SECONDS_MOST);
}

#define CROWD      40
#define CROWD_EACH 2000

/* A graph of so many nodes, and as many launches of it. */
static void launch_much(const struct process *process)
{
	for (int i = 0; i < CROWD_EACH; i++) {
		struct call call = alloc_at("cudaMallocAsync", 0, A + (uint64_t)i * KIB, KIB);

		call.flags |= CALL_CAPTURED;
		follow(process, call);
	}
	for (int i = -2; i < CROWD_EACH; i++) {
		struct call call = call_at(i == -2   ? "cudaStreamEndCapture"
		                           : i == -1 ? "cudaGraphInstantiate"
		                                     : "cudaGraphLaunch",
		                           20 * (i + 3), 10);

		call.op = i == -2 ? OP_CAPTURE_END : i == -1 ? OP_INSTANTIATE : OP_GRAPH_LAUNCH;
		call.args.source = GRAPH;
		call.args.handle = EXEC;
		follow(process, call);
	}
	follow_process(process, EVENT_EXIT);
}

/* Each process had four million nodes of its own to begin with, which take a second. Of what all
 * have one user leaves others a part. */
static void test_processes_with_huge_graphs_share_the_time_for_them(void **state)
{
	static struct process crowd[CROWD];
	struct process other = { .id = 200 + CROWD, .pid = 2000, .person = 1002 };
	const struct memory_totals *totals;
	struct timespec begin, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (uint32_t i = 0; i < CROWD; i++) {
		crowd[i] = (struct process){ .id = 200 + i, .pid = 1000 + i, .person = 1001 };
		launch_much(&crowd[i]);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true(end.tv_sec - begin.tv_sec < SECONDS_MOST);
	launch_much(&other);
	totals = memory_process_totals(memory, &other, MEMORY_ASYNC);
	assert_true(totals->freed.count > 100 * CROWD_EACH);
}

/* ---- the rest ------------------------------------------------------------------------------ */

#define HANDLES      60000
#define CONTEXT_ENDS 20000

static void make_mapped_handles(void)
{
	for (int i = 0; i < HANDLES / 2; i++) {
		follow(the_process(), alloc_at("cuMemCreate", i / 1e6, H + (uint64_t)i, KIB));
		map(1, A + (uint64_t)i * KIB, KIB, H + (uint64_t)i);
	}
}

/* Each end of one walked past all memory that is of none: 16 s for a file of a kilobyte. */
static void test_ends_of_contexts_do_not_walk_what_is_of_none(void **state)
{
	struct timespec begin, end;

	make_mapped_handles();
	follow(the_process(), alloc_at("cudaMalloc", 2, B, KIB));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < CONTEXT_ENDS; i++)
		follow(the_process(), call_at("cuCtxDestroy_v2", 3, 1));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_count(memory_totals(memory, MEMORY_NONE)->context, 1, KIB);
	assert_int_equal(live(), HANDLES / 2 * KIB);
	assert_true(end.tv_sec - begin.tv_sec < 2);
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

static void test_each_process_and_function_has_totals_of_its_own(void **state)
{
	const struct process *one = new_process(1, "one"), *two = new_process(2, "two");

	follow(one, alloc_at("cudaMalloc", 0, A, KIB));
	follow(two, alloc_at("cudaMalloc", 1, A, 2 * KIB));
	follow(two, alloc_at("cudaMallocHost", 2, B, 4 * KIB));
	follow(two, free_at("cudaFree", 3, A));
	assert_count(memory_process_totals(memory, one, MEMORY_NONE)->live, 1, KIB);
	assert_count(memory_process_totals(memory, two, MEMORY_NONE)->live, 1, 4 * KIB);
	assert_count(memory_process_totals(memory, two, MEMORY_HOST)->live, 1, 4 * KIB);
	assert_int_equal(memory_process_totals(memory, two, MEMORY_NONE)->peak_bytes, 6 * KIB);
	assert_count(memory_function_totals(memory, the_function("cudaMalloc"))->allocated, 2,
	             3 * KIB);
	assert_count(memory_function_totals(memory, the_function("cudaMalloc"))->freed, 1, 2 * KIB);
	assert_null(memory_function_totals(memory, the_function("cudaMallocManaged")));
}

static void test_totals_of_a_process_outlive_it(void **state)
{
	const struct process *one = new_process(1, "one");

	follow(one, alloc_at("cudaMalloc", 0, A, KIB));
	follow_process(one, EVENT_EXIT);
	assert_count(memory_process_totals(memory, one, MEMORY_NONE)->exit, 1, KIB);
	assert_int_equal(memory_process_totals(memory, one, MEMORY_NONE)->peak_bytes, KIB);
}

static void test_the_peak_has_the_time_at_which_it_was_first_reached(void **state)
{
	follow(the_process(), alloc_at("cudaMalloc", 0, A, 4 * KIB));
	follow(the_process(), free_at("cudaFree", 20, A));
	follow(the_process(), alloc_at("cudaMalloc", 40, A, 4 * KIB));
	assert_int_equal(memory_totals(memory, MEMORY_NONE)->peak_ns, US(10));
}

static void test_failed_allocations_are_counted_with_what_they_asked_for(void **state)
{
	struct call call = alloc_at("cudaMalloc", 0, 0, 1024 * KIB);

	fail_call(&call, 2);
	follow(the_process(), call);
	call.flags |= CALL_NESTED;
	follow(the_process(), call);
	assert_count(memory_totals(memory, MEMORY_NONE)->failed, 1, 1024 * KIB);
	assert_count(memory_totals(memory, MEMORY_NONE)->allocated, 0, 0);
}

static struct {
	enum memory_fate fate;
	uint64_t live_bytes;
} told[8];
static size_t n_told;

static void remember(void *data, const struct memory_change *change)
{
	assert_true(n_told < 8);
	told[n_told].fate = change->fate;
	told[n_told++].live_bytes = change->live_bytes;
}

static void test_every_change_of_what_is_live_is_told(void **state)
{
	static const struct {
		enum memory_fate fate;
		uint64_t live_bytes; /* of device memory, of managed memory */
	} wanted[] = {
		{ MEMORY_MADE, KIB },     { MEMORY_MADE, 3 * KIB },        { MEMORY_FREED, KIB },
		{ MEMORY_MADE, 8 * KIB }, { MEMORY_REPLACED, 0 },          { MEMORY_MADE, 4 * KIB },
		{ MEMORY_FREED, 0 },      { MEMORY_WENT_WITH_PROCESS, 0 },
	};
	const struct process *one = new_process(1, "one");

	n_told = 0;
	memory_tell_changes(memory, remember, NULL);
	follow(one, alloc_at("cudaMalloc", 0, A, KIB));
	follow(one, alloc_at("cudaMalloc", 1, B, 2 * KIB));
	follow(one, free_at("cudaFree", 2, B));
	follow(one, alloc_at("cudaMallocManaged", 3, B, 8 * KIB));
	follow(one, alloc_at("cudaMalloc", 4, A, 4 * KIB));
	follow(one, free_at("cudaFree", 5, B));
	follow_process(one, EVENT_EXIT);
	assert_int_equal(n_told, 8);
	for (size_t i = 0; i < n_told; i++) {
		assert_int_equal(told[i].fate, wanted[i].fate);
		assert_int_equal(told[i].live_bytes, wanted[i].live_bytes);
	}
}

static void add_bytes(void *data, const struct memory_allocation *allocation)
{
	*(uint64_t *)data += allocation->bytes;
}

static void test_what_is_live_can_be_gone_through(void **state)
{
	uint64_t sum = 0;

	follow(the_process(), alloc_at("cudaMalloc", 0, A, KIB));
	follow(new_process(7, "other"), alloc_at("cudaMalloc", 0, A, 2 * KIB));
	follow(the_process(), alloc_at("cudaMalloc", 0, B, 4 * KIB));
	follow(the_process(), free_at("cudaFree", 1, A));
	memory_each_live(memory, add_bytes, &sum);
	assert_int_equal(sum, 6 * KIB);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_allocations_and_frees_balance),
		TEST(test_a_free_through_the_other_layer_finds_the_allocation),
		TEST(test_a_free_may_return_after_its_address_was_given_out_again),
		TEST(test_a_free_may_return_after_the_next_free_of_its_address),
		TEST(test_a_late_free_is_known_after_more_allocations_there),
		TEST(test_a_free_that_began_too_late_leaves_the_late_one_its_allocation),
		TEST(test_what_waits_for_a_late_free_is_not_live),
		TEST(test_only_so_many_late_frees_are_waited_for),
		TEST(test_the_kind_of_the_allocation_counts_and_not_that_of_the_free),
		TEST(test_two_processes_may_have_the_same_address),
		TEST(test_peaks_can_begin_anew),
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
		TEST(test_memory_lives_until_it_is_unmapped_and_released),
		TEST(test_memory_that_is_mapped_twice_is_there_once),
		TEST(test_several_mappings_can_be_unmapped_at_once),
		TEST(test_each_handle_of_memory_has_to_be_given_back),
		TEST(test_imported_memory_is_that_of_who_made_it),
		TEST(test_what_is_mapped_goes_with_its_process),
		TEST(test_an_unmapping_that_ends_late_takes_no_newer_one),
		TEST(test_memory_of_a_graph_is_there_when_it_runs),
		TEST(test_memory_that_a_graph_frees_itself_is_there_for_a_moment),
		TEST(test_a_graph_can_free_what_another_allocated),
		TEST(test_a_graph_that_is_cut_is_counted_whole),
		TEST(test_a_graph_without_room_is_told_of),
		TEST(test_launches_of_a_huge_graph_cost_no_more_than_their_share),
		TEST(test_processes_with_huge_graphs_share_the_time_for_them),
		TEST(test_ends_of_contexts_do_not_walk_what_is_of_none),
		TEST(test_a_handle_and_an_address_may_be_the_same_number),
		TEST(test_each_process_and_function_has_totals_of_its_own),
		TEST(test_totals_of_a_process_outlive_it),
		TEST(test_the_peak_has_the_time_at_which_it_was_first_reached),
		TEST(test_failed_allocations_are_counted_with_what_they_asked_for),
		TEST(test_every_change_of_what_is_live_is_told),
		TEST(test_what_is_live_can_be_gone_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
