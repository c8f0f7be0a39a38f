// SPDX-License-Identifier: MIT
/* The text of the summary. */
#include "support.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/array.h"
#include "report/summary/summary.h"
#include "failing_output.h"

static struct run run;

static void begin_calls(void)
{
	open_run(&run);
	begin_run(&run, summary_new(&(struct summary_options){ .text = run.out }));
}

/* A little of everything. */
static void push_small_program(void)
{
	const struct kernel *kernel = new_kernel("vectorAdd(float const*, int)", true);
	struct call call;

	push_process(&run, the_process(), 0);
	push_call(&run, alloc_at("cudaMalloc", 100, 0x7f0000000000, 1 << 20));
	push_call(&run, copy_at("cudaMemcpy", 200, DIRECTION_H2D, 4096));
	for (int i = 0; i < 3; i++)
		push_call(&run, launch_at("cuLaunchKernel", 300 + i, kernel));
	push_call(&run, call_at("cudaDeviceSynchronize", 400, 250));
	push_call(&run, copy_at("cudaMemcpy", 700, DIRECTION_D2H, 1024));
	call = alloc_at("cudaMalloc", 800, 0, 1ull << 40);
	fail_call(&call, 2);
	push_call(&run, call);
	push_call(&run, free_at("cudaFree", 900, 0x7f0000000000));
	push_exit(&run, the_process(), 1000);
}

static void test_summary_of_a_small_program(void **state)
{
	begin_calls();
	push_small_program();
	end_run(&run);
	assert_string_equal(
		run.text,
		"=== TRACE SUMMARY ===\n"
		"Total trace duration: 1.500 seconds\n"
		"Processes with CUDA calls: 1\n"
		"Total CUDA API calls: 9, 1 failed\n"
		"Kernel launches: 3\n"
		"Memory allocations: 1, 1 freed\n"
		"Total memory allocated: 1048576 bytes (1.00 MiB), peak 1.00 MiB, "
		"live at the end 0 B\n"
		"Memory transfers: 2\n"
		"Total data transferred: 5120 bytes (5.00 KiB)\n"
		"Synchronisations: 1, 250.00 us in them\n"
		"\n"
		"MEMORY BY KIND\n"
		"  KIND    COUNT  ALLOCATED     FREED      PEAK  LIVE AT END  RELEASED BY EXIT\n"
		"  device      1   1.00 MiB  1.00 MiB  1.00 MiB          0 B               0 B\n"
		"\n"
		"TRANSFERS BY DIRECTION\n"
		"  DIRECTION  COUNT     BYTES   AVERAGE\n"
		"  H2D            1  4.00 KiB  4.00 KiB\n"
		"  D2H            1  1.00 KiB  1.00 KiB\n"
		"\n"
		"ERRORS\n"
		"  FUNCTION    COUNT  ERROR\n"
		"  cudaMalloc      1  cudaErrorMemoryAllocation (2)\n"
		"\n"
		"FUNCTIONS BY CALL COUNT\n"
		"  FUNCTION               CALLS      TOTAL  #    AVERAGE  #        P50        P95"
		"        P99        MAX\n"
		"  cuLaunchKernel             3   15.00 us  4    5.00 us  5    5.00 us    5.00 us"
		"    5.00 us    5.00 us\n"
		"  cudaMalloc                 2   20.00 us  2   10.00 us  3   10.00 us   10.00 us"
		"   10.00 us   10.00 us\n"
		"  cudaMemcpy                 2   20.00 us  3   10.00 us  4   10.00 us   10.00 us"
		"   10.00 us   10.00 us\n"
		"  cudaDeviceSynchronize      1  250.00 us  1  250.00 us  1  250.00 us  250.00 us"
		"  250.00 us  250.00 us\n"
		"  cudaFree                   1   10.00 us  5   10.00 us  2   10.00 us   10.00 us"
		"   10.00 us   10.00 us\n"
		"  (#: places by total and by average time; P50, P95 and P99 within 0.8 %)\n"
		"\n"
		"KERNELS BY LAUNCHES\n"
		"  LAUNCHES  KERNEL\n"
		"         3  vectorAdd(float const*, int)\n"
		"\n"
		"WHAT WAS MISSED\n"
		"  nothing was lost\n");
	close_run(&run);
}

static void test_a_run_without_calls_says_so(void **state)
{
	begin_calls();
	end_run(&run);
	assert_has(run.text, "\nTotal CUDA API calls: 0\n\nWHAT WAS MISSED\n");
	assert_has(run.text, "WHAT WAS MISSED\n  nothing was lost\n");
	close_run(&run);
}

static void begin_on_terminal(size_t width)
{
	open_run(&run);
	begin_run(&run, summary_new(&(struct summary_options){
				.text = run.out, .apart = true, .width = width, .top = 2 }));
}

static size_t longest_line(const char *text)
{
	size_t most = 0;

	for (; *text; text += strcspn(text, "\n") + 1) {
		size_t len = strcspn(text, "\n");

		most = len > most ? len : most;
	}
	return most;
}

static void test_summary_below_a_table_stands_apart_and_says_what_it_leaves_out(void **state)
{
	begin_on_terminal(0);
	push_small_program();
	end_run(&run);
	assert_int_equal(strncmp(run.text, "\n=== TRACE SUMMARY ===\n", 23), 0);
	assert_has(run.text, "\nTOP 2 OF 5 FUNCTIONS BY CALL COUNT\n");
	assert_has(run.text, "\nKERNELS BY LAUNCHES\n");
	close_run(&run);
}

static void test_functions_that_do_not_all_fit_are_shown_in_three_orders(void **state)
{
	begin_on_terminal(80);
	push_small_program();
	end_run(&run);
	assert_has(run.text, "\nTOP 2 OF 5 FUNCTIONS BY CALL COUNT\n"
	                     "  FUNCTION        CALLS     TOTAL   AVERAGE       P95       MAX\n"
	                     "  cuLaunchKernel      3  15.00 us   5.00 us   5.00 us   5.00 us\n"
	                     "  cudaMalloc          2  20.00 us  10.00 us  10.00 us  10.00 us\n"
	                     "\nTOP 2 OF 5 FUNCTIONS BY TOTAL TIME\n");
	assert_has(run.text, "\nTOP 2 OF 5 FUNCTIONS BY AVERAGE TIME PER CALL\n");
	assert_has(run.text, "\n  (P95 within 0.8 %)\n");
	assert_has_not(run.text, "#");
	close_run(&run);
}

static void test_summary_fits_into_a_narrow_terminal(void **state)
{
	static char name[600];

	strcpy(name, "void gemm<");
	memset(name + strlen(name), 'x', 500);
	strcat(name, ">(int)");
	begin_on_terminal(80);
	push_call(&run, launch_at("cuLaunchKernel", 1, new_kernel(name, true)));
	push_call(&run, call_at("cudaDeviceGetStreamPriorityRange", 2, 123456));
	end_run(&run);
	assert_has(run.text, "  FUNCTION                CALLS       TOTAL  #     AVERAGE  #"
	                     "         MAX\n");
	assert_has(run.text, "  cudaDeviceGetStream...      1  123.456 ms");
	assert_has(run.text, "         1  void gemm<...>(...)\n");
	assert_true(longest_line(run.text) <= 80);
	close_run(&run);
}

static void test_processes_without_a_call_are_counted_apart(void **state)
{
	const struct process *shell = new_process(10, "sh"), *app = new_process(11, "app");
	struct call call = call_at("cuInit", 1, 1);

	begin_calls();
	push_process(&run, shell, 0);
	push_process(&run, app, 0);
	push_call_of(&run, app, 11, &call);
	push_call_of(&run, app, 12, &call);
	end_run(&run);
	assert_has(run.text, "\nProcesses with CUDA calls: 1, 1 without\n");
	close_run(&run);
}

static void test_a_nested_pair_counts_once(void **state)
{
	struct call inner = alloc_at("cuMemAlloc_v2", 2, 0x7f0000000000, 4096);

	inner.flags |= CALL_NESTED;
	begin_calls();
	push_call(&run, inner);
	push_call(&run, alloc_at("cudaMalloc", 1, 0x7f0000000000, 4096));
	end_run(&run);
	assert_has(run.text, "\nTotal CUDA API calls: 1\nDriver calls nested in them: 1\n");
	assert_has(run.text, "\nMemory allocations: 1\n");
	assert_has(run.text, "  FUNCTION       CALLS  NESTED ");
	assert_has(run.text, "  cuMemAlloc_v2      1       1 ");
	assert_has(run.text, "  cudaMalloc         1       0 ");
	close_run(&run);
}

static void test_captured_launches_are_not_run(void **state)
{
	struct call call = launch_at("cuLaunchKernel", 1, new_kernel("a()", true));
	struct call graph = call_at("cudaGraphLaunch", 2, 1);

	begin_calls();
	push_call(&run, call);
	call.flags |= CALL_CAPTURED;
	push_call(&run, call);
	push_call(&run, call);
	push_call(&run, graph);
	end_run(&run);
	assert_has(run.text, "\nKernel launches: 1\nKernels captured into graphs, not run: 2\n"
	                     "Graph launches: 1\n");
	assert_has(run.text, "  LAUNCHES  CAPTURED  KERNEL\n         1         2  a()\n");
	close_run(&run);
}

static void test_failed_and_unfinished_launches_are_not_run(void **state)
{
	struct call failed = launch_at("cuLaunchKernel", 1, new_kernel("b()", true));
	struct call unfinished = failed;

	fail_call(&failed, 1);
	never_ends(&unfinished, CALL_UNFINISHED);
	begin_calls();
	push_call(&run, failed);
	push_call(&run, unfinished);
	end_run(&run);
	assert_has(run.text, "\nTotal CUDA API calls: 2, 1 failed, 1 unfinished\n"
	                     "Kernel launches: 0\n");
	assert_has(run.text, "  cuLaunchKernel      1  CUDA_ERROR_INVALID_VALUE (1)\n");
	close_run(&run);
}

static void test_errors_are_told_apart_by_code_and_by_function(void **state)
{
	struct call call = call_at("cudaFree", 1, 1);

	begin_calls();
	fail_call(&call, 1);
	push_call(&run, call);
	push_call(&run, call);
	fail_call(&call, 700);
	push_call(&run, call);
	call = call_at("cuMemFree_v2", 1, 1);
	fail_call(&call, 1);
	push_call(&run, call);
	end_run(&run);
	assert_has(run.text, "  cudaFree          2  cudaErrorInvalidValue (1)\n"
	                     "  cuMemFree_v2      1  CUDA_ERROR_INVALID_VALUE (1)\n"
	                     "  cudaFree          1  cudaErrorIllegalAddress (700)\n");
	close_run(&run);
}

static void test_without_returns_there_are_no_durations(void **state)
{
	struct call call = launch_at("cuLaunchKernel", 1, NULL);

	begin_calls();
	run.info.returns = false;
	never_ends(&call, CALL_NO_RETURN);
	push_call(&run, call);
	end_run(&run);
	assert_has(run.text, "  FUNCTION        CALLS\n  cuLaunchKernel      1\n");
	assert_has(run.text, "no durations");
	assert_has_not(run.text, "P99");
	assert_has(run.text, "\nKernel launches: 1\n");
	close_run(&run);
}

static void test_one_cooperative_launch_on_two_devices_is_two(void **state)
{
	struct call call = launch_at("cuLaunchCooperativeKernelMultiDevice", 1, NULL);

	call.args.launches = 2;
	begin_calls();
	push_call(&run, call);
	push_call(&run, launch_at("cuLaunchKernel", 2, NULL));
	end_run(&run);
	assert_has(run.text, "\nTotal CUDA API calls: 2\n");
	assert_has(run.text, "\nKernel launches: 3\n");
	close_run(&run);
}

/* What goes on in three windows of time: a launch, a copy and an allocation each; a free in one. */
static void push_windows(void)
{
	push_call(&run, call_at("cuInit", 1, 1));
	for (int i = 0; i < 3; i++) {
		double at = 10 + 300000 * i;

		push_call(&run, alloc_at("cudaMalloc", at, 0x7f0000000000 + 4096 * i, 1024));
		push_call(&run, launch_at("cuLaunchKernel", at + 20, NULL));
		push_call(&run, copy_at("cudaMemcpy", at + 40, DIRECTION_H2D, 5120));
	}
	push_call(&run, free_at("cudaFree", 700000, 0x7f0000000000));
}

static void test_estimates_are_scaled_and_marked(void **state)
{
	begin_calls();
	run.info.estimate_scale = 10;
	push_windows();
	end_run(&run);
	assert_has(run.text, "\nTotal CUDA API calls: ~65\n"); /* 2 * 3 * 10, 3 + 1 + 1 */
	assert_has(run.text, "\nKernel launches: ~30\n");
	assert_has(run.text, "\nTotal data transferred: ~153600 bytes (150.00 KiB)\n");
	assert_has(run.text, "  cuLaunchKernel    ~30 ");
	assert_has(run.text, "counts marked ~ are estimates: multiplied by 10.00");
	assert_has_not(run.text, "live at the end");
	close_run(&run);
}

/* A program that frees all that it allocates had "~37,850 allocations, ~3,764 freed". */
static void test_what_comes_in_pairs_or_once_is_as_it_was_seen(void **state)
{
	begin_calls();
	run.info.estimate_scale = 10;
	push_windows();
	end_run(&run);
	assert_has(run.text, "\nMemory allocations: 3, 1 freed, in the time that was measured\n");
	assert_has(run.text, "\nTotal memory allocated: 3072 bytes (3.00 KiB)\n");
	assert_has(run.text, "  cudaMalloc          3 ");
	assert_has(run.text, "  cudaFree            1 ");
	assert_has(run.text, "  cuInit              1 ");
	assert_has(run.text,
	           "All others are what was seen: of memory and of other calls that come");
	close_run(&run);
}

static void test_memory_that_outlives_the_trace_or_its_process_is_told_apart(void **state)
{
	const struct process *gone = new_process(1, "gone");
	struct call call = alloc_at("cudaMalloc", 1, 0x7f0000000000, 2048);

	begin_calls();
	push_call(&run, alloc_at("cudaMalloc", 1, 0x7f0000000000, 4096));
	push_call_of(&run, gone, 1, &call);
	push_exit(&run, gone, 100);
	push_call(&run, free_at("cudaFree", 200, 0x10));
	end_run(&run);
	assert_has(run.text, "  device      2   6.00 KiB    0 B  6.00 KiB     4.00 KiB"
	                     "          2.00 KiB\n");
	assert_has(run.text, "  1 allocation (2.00 KiB) never freed: released by process exit\n"
	                     "  1 free of memory whose allocation was not recorded\n");
	close_run(&run);
}

static void test_a_name_found_late_counts_for_all_launches(void **state)
{
	struct kernel *kernel = new_kernel("0x55d0", false);

	begin_calls();
	push_call(&run, launch_at("cuLaunchKernel", 1, kernel));
	kernel->name = "foundLate()";
	kernel->resolved = true;
	push_call(&run, launch_at("cuLaunchKernel", 2, kernel));
	end_run(&run);
	assert_has(run.text, "         2  foundLate()\n");
	assert_has_not(run.text, "0x55d0");
	close_run(&run);
}

static void test_the_same_kernel_of_two_processes_is_one_row(void **state)
{
	begin_calls();
	push_call(&run, launch_at("cuLaunchKernel", 1, new_kernel("shared()", true)));
	push_call(&run, launch_at("cuLaunchKernel", 2, new_kernel("shared()", true)));
	end_run(&run);
	assert_has(run.text, "         2  shared()\n");
	close_run(&run);
}

static void test_functions_that_were_unhooked_are_marked(void **state)
{
	const struct call call = call_at("cudaGetDevice", 1, 5);
	struct miss miss = { MISS_UNHOOKED, "cudaGetDevice", call.function->lib, 0, "4.1 %", 0 };

	begin_calls();
	run.info.misses = &miss;
	run.info.n_misses = 1;
	run.info.overhead_percent = 12.34;
	run.info.overhead_most_percent = 36.4;
	push_call(&run, call);
	push_call(&run, call_at("cudaGetLastError", 9, 5));
	end_run(&run);
	assert_has(run.text, "\n  cudaGetDevice        1+  5.00 us");
	assert_has(run.text, "\n  cudaGetLastError      1  5.00 us");
	assert_has(run.text, "\nTracing cost the busiest thread: 12.3 % of its own time, at most "
	                     "36 %\n");
	close_run(&run);
}

static const struct miss misses[] = {
	{ MISS_NOT_HOOKED, "cuA", "libcuda.so.1", 0, "the entry is data", 0 },
	{ MISS_NOT_HOOKED, "cuB", "libcuda.so.1", 0, "the entry is data", 0 },
	{ MISS_HOOKED_LATE, NULL, "libcudart.so.12", 4242, "153 ms after it was mapped", 0 },
	{ MISS_UNHOOKED, "cudaGetDevice", "libcudart.so.13", 0, "4.1 % of the time", 0 },
	{ MISS_UNHOOKED, NULL, NULL, 78, "calls from 5 ms to 9 ms: its agent has ended", 0 },
	{ MISS_ENTRY_ONLY, NULL, NULL, 77, "it runs under seccomp", 0 },
};

static void test_what_was_missed_is_told_in_full(void **state)
{
	begin_calls();
	run.info.lost[LOST_RING_FULL] = 1234;
	run.info.misses = misses;
	run.info.n_misses = ARRAY_SIZE(misses);
	push_call(&run, launch_at("cuLaunchKernel", 1, new_kernel("0x1234", false)));
	end_run(&run);
	assert_has(run.text, "WHAT WAS MISSED\n  lost 1234: ");
	assert_has(run.text, "  not hooked: 2 functions: cuA, cuB (libcuda.so.1): "
	                     "the entry is data\n");
	assert_has(run.text, "  hooked late: libcudart.so.12 in pid 4242: "
	                     "153 ms after it was mapped\n");
	assert_has(run.text, "  unhooked by the governor: cudaGetDevice (libcudart.so.13): "
	                     "4.1 % of the time\n");
	assert_has(run.text, "  not recorded for a while: pid 78: calls from 5 ms to 9 ms: "
	                     "its agent has ended\n");
	assert_has(run.text, "  entries only, without results and durations: pid 77: "
	                     "it runs under seccomp\n");
	assert_has(run.text, "  kernel names not resolved: 1 (launches: 1)\n");
	assert_has_not(run.text, "nothing was lost");
	close_run(&run);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
	static char text[65536];
	FILE *file = fopen(path, "r");
	size_t n;

	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	return text;
}

static void run_json(const char *path)
{
	open_run(&run);
	begin_run(&run, summary_new(&(struct summary_options){ .json = path }));
	push_small_program();
	end_run(&run);
	close_run(&run);
}

static void test_json_has_the_same_figures(void **state)
{
	char dir[] = "/tmp/cuscope-test-XXXXXX", path[64];
	const char *text;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/summary.json", dir);
	run_json(path);
	text = read_file(path);
	assert_has(text, "\n    \"total\": 9,");
	assert_has(text, "\n    \"kernels\": 3,");
	assert_has(text, "\"H2D\": {\"count\": 1, \"bytes\": 4096, \"unknown_size\": 0}");
	assert_has(text, "{\"function\": \"cudaMalloc\", \"code\": 2, "
	                 "\"error\": \"cudaErrorMemoryAllocation\", \"count\": 1}");
	assert_has(text, "{\"name\": \"vectorAdd(float const*, int)\", \"resolved\": true, "
	                 "\"launches\": 3, \"captured\": 0}");
	assert_has(text, "\n    \"complete\": true,");
	unlink(path);
	assert_int_equal(rmdir(dir), 0); /* no temporary file stayed */
}

/* An array copy from the device to the host; two of the other direction, one with its size. */
static void push_copies_of_unknown_size(void)
{
	struct call copy = copy_at("cudaMemcpy", 100, DIRECTION_D2H, 0);

	copy.flags |= CALL_SIZE_UNKNOWN;
	push_call(&run, copy);
	push_call(&run, copy_at("cudaMemcpy", 200, DIRECTION_H2D, 4096));
	copy = copy_at("cudaMemcpy", 300, DIRECTION_H2D, 0);
	copy.flags |= CALL_SIZE_UNKNOWN;
	push_call(&run, copy);
}

static void test_bytes_that_calls_do_not_say_are_not_zero(void **state)
{
	begin_calls();
	push_copies_of_unknown_size();
	end_run(&run);
	assert_has(run.text, "  DIRECTION  COUNT     BYTES   AVERAGE\n"
	                     "  H2D            2  4.00 KiB  4.00 KiB\n"
	                     "  D2H            1         -         -\n"
	                     "  calls that do not say how many bytes, in COUNT only: 2\n");
	close_run(&run);
	open_run(&run);
	begin_run(&run, summary_new(&(struct summary_options){ .json_stream = run.out }));
	push_copies_of_unknown_size();
	end_run(&run);
	assert_has(run.text, "\"D2H\": {\"count\": 1, \"bytes\": null, \"unknown_size\": 1}");
	assert_has(run.text, "\"H2D\": {\"count\": 2, \"bytes\": 4096, \"unknown_size\": 1}");
	assert_has(run.text,
	           "\"sets\": {\n    \"count\": 0,\n    \"bytes\": 0,\n    \"unknown_size\": 0\n");
	close_run(&run);
}

static void test_json_replaces_the_old_file_at_once(void **state)
{
	char dir[] = "/tmp/cuscope-test-XXXXXX", path[64];
	struct stat before, after;
	FILE *old;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/summary.json", dir);
	old = fopen(path, "w");
	assert_int_equal(fstat(fileno(old), &before), 0);
	run_json(path);
	assert_int_equal(stat(path, &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_int_equal(fstat(fileno(old), &before), 0);
	assert_int_equal(before.st_size, 0); /* whoever has the old one open keeps it */
	fclose(old);
	unlink(path);
	rmdir(dir);
}

static void test_json_that_cannot_be_written_is_an_error(void **state)
{
	struct err err = feed_until_error(
		summary_new(&(struct summary_options){ .json = "/no/such/directory/s.json" }), 1);

	assert_int_equal(err.code, -ENOENT);
	assert_has(err.text, "cannot write /no/such/directory/s.json: No such file");
	err = feed_until_error(summary_new(&(struct summary_options){ .json = "/dev/full" }), 1);
	assert_int_equal(err.code, -ENOSPC);
}

static void test_text_that_cannot_be_written_is_an_error(void **state)
{
	FILE *out = full_disk();
	struct err err = feed_until_error(summary_new(&(struct summary_options){ .text = out }), 1);

	assert_int_equal(err.code, -ENOSPC);
	assert_has(err.text, "cannot write the summary");
	fclose(out);
	out = closed_pipe();
	err = feed_until_error(summary_new(&(struct summary_options){ .text = out }), 1);
	assert_int_equal(err.code, -EPIPE);
	fclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_summary_of_a_small_program),
		cmocka_unit_test(test_a_run_without_calls_says_so),
		cmocka_unit_test(
			test_summary_below_a_table_stands_apart_and_says_what_it_leaves_out),
		cmocka_unit_test(test_summary_fits_into_a_narrow_terminal),
		cmocka_unit_test(test_processes_without_a_call_are_counted_apart),
		cmocka_unit_test(test_functions_that_do_not_all_fit_are_shown_in_three_orders),
		cmocka_unit_test(test_a_nested_pair_counts_once),
		cmocka_unit_test(test_captured_launches_are_not_run),
		cmocka_unit_test(test_failed_and_unfinished_launches_are_not_run),
		cmocka_unit_test(test_errors_are_told_apart_by_code_and_by_function),
		cmocka_unit_test(test_without_returns_there_are_no_durations),
		cmocka_unit_test(test_one_cooperative_launch_on_two_devices_is_two),
		cmocka_unit_test(test_estimates_are_scaled_and_marked),
		cmocka_unit_test(test_what_comes_in_pairs_or_once_is_as_it_was_seen),
		cmocka_unit_test(test_memory_that_outlives_the_trace_or_its_process_is_told_apart),
		cmocka_unit_test(test_a_name_found_late_counts_for_all_launches),
		cmocka_unit_test(test_the_same_kernel_of_two_processes_is_one_row),
		cmocka_unit_test(test_functions_that_were_unhooked_are_marked),
		cmocka_unit_test(test_what_was_missed_is_told_in_full),
		cmocka_unit_test(test_json_has_the_same_figures),
		cmocka_unit_test(test_bytes_that_calls_do_not_say_are_not_zero),
		cmocka_unit_test(test_json_replaces_the_old_file_at_once),
		cmocka_unit_test(test_json_that_cannot_be_written_is_an_error),
		cmocka_unit_test(test_text_that_cannot_be_written_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
