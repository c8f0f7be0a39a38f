// SPDX-License-Identifier: MIT
/* The report of memory by kind and function. */
#include "support.h"

#include "place_stacks.h"

#include "report/memory_use.h"

static struct consumer *use;

static int set_up(void **state)
{
	use = memory_use_new();
	return 0;
}

static int tear_down(void **state)
{
	consumer_free(use);
	return 0;
}

static void see(const struct process *process, struct call call)
{
	struct event event = call_event(process, process->pid, &call);

	feed(use, &event);
}

static void test_kinds_of_each_process_and_of_all(void **state)
{
	const struct process *one = new_process(1, "one"), *two = new_process(2, "two");
	const struct memory_kind_row *rows;
	size_t n;

	see(one, alloc_at("cudaMalloc", 0, 0x1000, 100));
	see(two, alloc_at("cudaMallocHost", 10, 0x1000, 10));
	rows = memory_use_kinds(use, &n);
	assert_int_equal(n, 7); /* all: all, device, host; one: all, device; two: all, host */
	assert_null(rows[0].process);
	assert_int_equal(rows[0].totals->live.bytes, 110);
	assert_int_equal(rows[1].kind, MEMORY_DEVICE);
	assert_ptr_equal(rows[3].process, one);
	assert_int_equal(rows[3].kind, MEMORY_NONE);
	assert_int_equal(rows[6].kind, MEMORY_HOST);
	assert_int_equal(rows[6].totals->peak_bytes, 10);
}

static void test_one_process_is_not_shown_twice(void **state)
{
	const struct memory_kind_row *rows;
	size_t n;

	see(the_process(), alloc_at("cudaMalloc", 0, 0x1000, 100));
	rows = memory_use_kinds(use, &n);
	assert_int_equal(n, 2);
	assert_ptr_equal(rows[0].process, the_process());
}

static void test_functions_by_what_they_made(void **state)
{
	const struct memory_function_row *rows;
	struct call failed = alloc_at("cudaMallocManaged", 20, 0, 1 << 20);
	size_t n;

	fail_call(&failed, 2);
	see(the_process(), alloc_at("cudaMallocHost", 0, 0x2000, 100));
	see(the_process(), alloc_at("cudaMalloc", 0, 0x1000, 300));
	see(the_process(), free_at("cudaFree", 20, 0x1000));
	see(the_process(), failed);
	rows = memory_use_functions(use, &n);
	assert_int_equal(n, 3);
	assert_string_equal(rows[0].function->name, "cudaMalloc");
	assert_int_equal(rows[0].totals->freed.bytes, 300);
	assert_string_equal(rows[1].function->name, "cudaMallocHost");
	assert_string_equal(rows[2].function->name, "cudaMallocManaged");
	assert_int_equal(rows[2].totals->failed.bytes, 1 << 20);
}

static struct call alloc_in(const struct stack *stack, const char *function, double begin_us,
                            uint64_t address, uint64_t bytes)
{
	struct call call = alloc_at(function, begin_us, address, bytes);

	call.stack = stack;
	return call;
}

static void assert_place(const struct memory_place_row *row, const char *place,
                         const char *function, uint64_t allocated, uint64_t freed)
{
	assert_string_equal(row->place, place);
	assert_string_equal(row->function->name, function);
	assert_int_equal(row->totals.allocated.bytes, allocated);
	assert_int_equal(row->totals.freed.bytes, freed);
}

static void test_places_of_what_stayed_come_first(void **state)
{
	const struct process *gone = new_process(4, "gone");
	struct event exit = process_event(EVENT_EXIT, gone, 90);
	const struct memory_place_row *rows;
	size_t n;

	see(gone, alloc_in(&in_native, "cudaMalloc", 0, 0x1000, 900));
	see(gone, free_at("cudaFree", 20, 0x1000));
	see(gone, alloc_in(&in_python, "cudaMalloc", 30, 0x1000, 100));
	feed(use, &exit);
	see(the_process(), alloc_in(&in_python, "cudaMalloc", 40, 0x1000, 200));
	see(the_process(), alloc_in(&in_python, "cudaMallocHost", 50, 0x2000, 250));
	see(the_process(), alloc_in(NULL, "cudaMalloc", 60, 0x3000, 50));
	see(the_process(), alloc_in(&in_python, "cuMemAddressReserve", 70, 0x4000, 1 << 20));
	rows = memory_use_places(use, &n);
	assert_int_equal(n, 4);
	assert_place(&rows[0], IN_PYTHON_PLACE, "cudaMalloc", 300, 0);
	assert_int_equal(rows[0].totals.exit.bytes, 100);
	assert_int_equal(rows[0].totals.live.bytes, 200);
	assert_int_equal(rows[0].totals.peak_bytes, 200);
	assert_place(&rows[1], IN_PYTHON_PLACE, "cudaMallocHost", 250, 0);
	assert_place(&rows[2], "(no stack)", "cudaMalloc", 50, 0);
	assert_place(&rows[3], IN_NATIVE_PLACE, "cudaMalloc", 900, 900);
}

static void test_there_are_no_places_without_stacks(void **state)
{
	size_t n;

	see(the_process(), alloc_at("cudaMalloc", 0, 0x1000, 100));
	assert_null(memory_use_places(use, &n));
	assert_int_equal(n, 0);
}

static void test_the_biggest_that_were_never_freed(void **state)
{
	const struct process *gone = new_process(3, "gone");
	struct event exit = process_event(EVENT_EXIT, gone, 90);
	const struct kept_allocation *rows;
	size_t n;

	see(gone, alloc_at("cudaMalloc", 0, 0x1000, 500));
	see(gone, alloc_at("cudaMalloc", 1, 0x2000, 900));
	see(gone, free_at("cudaFree", 20, 0x2000));
	feed(use, &exit);
	for (uint64_t i = 1; i <= 30; i++)
		see(the_process(), alloc_at("cudaMalloc", (double)i, 0x10000 * i, 10 * i));
	rows = memory_use_kept(use, &n);
	assert_int_equal(n, MEMORY_BIGGEST);
	assert_true(rows[0].exited);
	assert_int_equal(rows[0].allocation.bytes, 500);
	assert_ptr_equal(rows[0].allocation.process, gone);
	assert_false(rows[1].exited);
	assert_int_equal(rows[1].allocation.bytes, 300);
	assert_int_equal(rows[19].allocation.bytes, 120);
	memory_use_kept(use, &n); /* asked again: the same */
	assert_int_equal(n, MEMORY_BIGGEST);
}

static void assert_nvml(const struct memory_nvml_row *row, enum run_memory_moment moment,
                        uint64_t by_calls, uint64_t of_nccl, int64_t rest, bool whole)
{
	assert_int_equal(row->moment, moment);
	assert_int_equal(row->beyond.by_calls, by_calls);
	assert_int_equal(row->beyond.nccl_bytes, of_nccl);
	assert_int_equal(row->beyond.rest_bytes, rest);
	assert_int_equal(row->beyond.whole, whole);
}

/* In the middle of a run, at its end, of a process without calls and of one that was not met. */
static void test_what_no_call_holds_is_of_its_moment(void **state)
{
	const struct stack_frame frame = { .module = "/usr/lib/libnccl.so.2" };
	const struct stack_frame *frames[] = { &frame };
	const struct stack in_nccl = { .n_frames = 1, .frames = frames };
	const struct process *one = new_process(1, "one"), *two = new_process(2, "two");
	const struct run_identity identities[] = {
		{ .pid = two->pid, .memory = { { US(50), 7 }, { US(50), 7 }, { US(50), 7 } } },
		{ .pid = one->pid,
		  .memory_whole = true,
		  .memory = { { US(50), 5000 }, { US(150), 9000 }, { US(900), 600 } } },
		{ .pid = 77, .memory = { { US(50), 7 }, { US(50), 7 }, { US(50), 7 } } },
	};
	const struct run_info run = { .identities = identities, .n_identities = 3 };
	struct event met = process_event(EVENT_PROCESS, two, 1);
	const struct memory_nvml_row *rows;
	struct err err;
	size_t n;

	assert_int_equal(consumers_begin(&use, 1, &run, &err), 0);
	feed(use, &met);
	see(one, alloc_at("cudaMalloc", 10, 0x1000, 1000));
	see(one, alloc_at("cudaMallocManaged", 20, 0x2000, 1 << 20)); /* in no figure of NVML's */
	see(one, alloc_in(&in_nccl, "cudaMalloc", 100, 0x3000, 300));
	see(one, free_at("cudaFree", 200, 0x1000));
	see(one, alloc_at("cudaMalloc", 300, 0x4000, 700));
	rows = memory_use_nvml(use, &n);
	assert_int_equal(n, 4);
	assert_nvml(&rows[0], RUN_MEMORY_FIRST, 1000, 0, 4000, true);
	assert_nvml(&rows[1], RUN_MEMORY_MOST, 1300, 300, 7700, true);
	assert_nvml(&rows[2], RUN_MEMORY_LAST, 1000, 300, -400,
	            true); /* older than what it is beside */
	assert_ptr_equal(rows[3].process, two);
	assert_nvml(&rows[3], RUN_MEMORY_FIRST, 0, 0, 7, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_kinds_of_each_process_and_of_all),
		TEST(test_one_process_is_not_shown_twice),
		TEST(test_functions_by_what_they_made),
		TEST(test_places_of_what_stayed_come_first),
		TEST(test_there_are_no_places_without_stacks),
		TEST(test_the_biggest_that_were_never_freed),
		TEST(test_what_no_call_holds_is_of_its_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
