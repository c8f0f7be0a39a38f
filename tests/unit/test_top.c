// SPDX-License-Identifier: MIT
/* The screen of `cuscope top`, its keys and its JSON. */
#include "support.h"

#include <math.h>

#include "base/array.h"
#include "base/text.h"
#include "top/top_tables.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* A snapshot made by hand: three processes, the first with details. */
static struct top_process processes[64];
static struct top_snapshot snapshot;
static struct top_item kernels[100];
static struct top_item functions[2];
static struct top_item streams[2];
static struct gpus_sample gpus;
static struct top_page page;
static struct top_view view;
static struct screen screen;
static struct buf text;

static void set_count(struct top_count *count, uint64_t total, double rate)
{
	*count = (struct top_count){ .total = total, .rate = rate };
}

static struct top_process *add_process(const struct process *process, double calls)
{
	struct top_process *added = &processes[snapshot.n_processes++];

	*added = (struct top_process){ .process = process, .threads = 1 };
	set_count(&added->numbers[TOP_COUNT_CALLS], (uint64_t)(10 * calls), calls);
	set_count(&added->numbers[TOP_COUNT_LAUNCHES], (uint64_t)(5 * calls), calls / 2);
	return added;
}

static void set_memory(struct top_process *process, uint64_t bytes, uint64_t peak)
{
	process->memory[MEMORY_NONE] = process->memory[MEMORY_DEVICE] =
		(struct top_memory){ 3, bytes, peak };
}

static void add_details(struct top_process *process)
{
	static struct kernel *gemm, *tick;

	if (!gemm) {
		gemm = new_kernel("void gemm<float, 4>(float const*, float*, int)", true);
		tick = new_kernel("tick()", true);
	}
	kernels[0].kernel = gemm;
	kernels[1].kernel = tick;
	kernels[0].gpu_runs = kernels[1].gpu_runs = 0;
	set_count(&kernels[0].calls, 600, 60);
	set_count(&kernels[1].calls, 400, 140.5);
	functions[0] = (struct top_item){
		.name = "cuLaunchKernel", .time_ns = 7000000, .p50_ns = 6900, .p99_ns = 12300
	};
	functions[1] = (struct top_item){ .name = "cuMemAlloc_v2",
		                          .time_ns = TABLE_NOT_KNOWN,
		                          .p50_ns = TABLE_NOT_KNOWN,
		                          .p99_ns = TABLE_NOT_KNOWN };
	set_count(&functions[0].calls, 1000, 200);
	set_count(&functions[1].calls, 2, 0);
	streams[1].stream.handle = 0x55d000001000;
	set_count(&streams[0].calls, 900, 190);
	set_count(&streams[1].copies, 7, 1);
	set_count(&streams[1].bytes, 7 * MIB, 1.0 * MIB);
	process->items[TOP_KIND_KERNEL].all = kernels;
	process->items[TOP_KIND_FUNCTION].all = functions;
	process->items[TOP_KIND_STREAM].all = streams;
	process->items[TOP_KIND_KERNEL].n = process->items[TOP_KIND_FUNCTION].n =
		process->items[TOP_KIND_STREAM].n = 2;
}

static int set_up(void **state)
{
	static const struct process *python, *train, *hostile;
	struct top_process *p;

	if (!python) {
		python = new_process(4242, "python3");
		train = new_process(977, "train");
		hostile = new_process(1234567, "a\033[2Jb");
	}
	memset(&snapshot, 0, sizeof(snapshot));
	memset(&gpus, 0, sizeof(gpus));
	snapshot.processes = processes;
	snapshot.begin_ns = US(0);
	snapshot.time_ns = US(753000000);
	snapshot.interval_ns = 1000000000;
	p = add_process(python, 400);
	set_memory(p, 12 * GIB, 13 * GIB);
	set_count(&p->numbers[TOP_COUNT_COPY_BYTES + DIRECTION_H2D], 99 * GIB, 1.25 * GIB);
	set_count(&p->numbers[TOP_COUNT_COPIES + DIRECTION_H2D], 99, 1.5);
	p->sync_share = 0.25;
	add_details(p);
	p = add_process(train, 123456);
	set_memory(p, 512 * MIB, 600 * MIB);
	set_count(&p->numbers[TOP_COUNT_ERRORS], 3, 0);
	p = add_process(hostile, 2);
	p->ended = true;
	p->threads = 0;
	set_count(&snapshot.total.numbers[TOP_COUNT_CALLS], 1238580, 123858);
	snapshot.total.memory[MEMORY_NONE] = (struct top_memory){ 6, 12 * GIB, 14 * GIB };
	snapshot.total.threads = 2;
	page = (struct top_page){ .snapshot = &snapshot,
		                  .gpus = &gpus,
		                  .target = "all processes",
		                  .overhead_percent = 1.23,
		                  .own_percent = 0.44,
		                  .estimate_scale = 1 };
	top_view_init(&view);
	view.keys = true;
	return 0;
}

static int tear_down(void **state)
{
	screen_free(&screen);
	buf_free(&text);
	return 0;
}

static const char *render(size_t rows, size_t columns)
{
	top_render(&page, &view, rows, columns, &screen);
	for (size_t i = 0; columns && i < screen.n_lines; i++) {
		if (text_columns(screen.lines[i].text.data) > columns)
			fail_msg("wider than %zu: %s", columns, screen.lines[i].text.data);
	}
	assert_true(!rows || screen.n_lines <= rows);
	buf_reset(&text);
	screen_text(&screen, &text);
	return text.data;
}

static enum top_action press(int key)
{
	return top_key(&view, &page, key);
}

/* What comes first in the text. */
static void assert_before(const char *all, const char *first, const char *second)
{
	assert_has(all, first);
	assert_has(all, second);
	if (strstr(all, first) > strstr(all, second))
		fail_msg("'%s' should come before '%s' in:\n%s", first, second, all);
}

/* ---- the page ------------------------------------------------------------------------------ */

static void test_the_page_on_80_columns(void **state)
{
	assert_string_equal(
		render(24, 80),
		"cuscope top: all processes                    by CALLS/s, over 1.0 s, for 12m33s\n"
		"nothing lost; tracing costs 1.2% of a thread's time, cuscope 0.4% of a CPU\n"
		"\n"
		"    PID NAME               CALLS/s LAUNCH/s MEMORY  PEAK H2D/s D2H/s ERRORS SYNC\n"
		"    977 train                 123k    61728   512M  600M     0     0      3   0%\n"
		"   4242 python3                400      200  12.0G 13.0G 1.25G     0      0  25%\n"
		"1234567 a\\x1b[2Jb (ended)        2        1      0     0     0     0      0    "
		"-\n"
		"        3 processes           124k        0  12.0G 14.0G     0     0      0   0%\n"
		"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
		"Enter open  < > sort  R reverse  p pause  r reset  h help  q quit\n");
}

static void test_gpu_times_have_columns_where_there_are_any(void **state)
{
	assert_has_not(render(24, 80), " GPU\n");
	assert_int_equal(press('b'), TOP_NOTHING);
	snapshot.gpu_times = true;
	processes[0].gpu_share = 0.934;
	processes[1].gpu_share = -1;
	snapshot.total.gpu_share = -1;
	assert_has(render(24, 80), "D2H/s ERRORS SYNC  GPU\n");
	assert_has(text.data, "25%  93%\n");
	assert_has(text.data, "0%    -\n");
	assert_int_equal(press('b'), TOP_REDRAW);
	assert_before(render(24, 80), "python3", "train");
}

static void test_the_page_on_120_columns_has_more(void **state)
{
	gpus.n_processes = 1;
	gpus.processes[0] = (struct gpu_process){ 4242, 1, 13 * GIB };
	assert_has(render(40, 120),
	           "    PID NAME                  THR    CALLS CALLS/s LAUNCHES LAUNCH/s GRAPH/s "
	           "MEMORY  PEAK GPUMEM H2D/s D2H/s ERRORS SYNC\n"
	           "    977 train                   1    1.23M    123k     617k    61728       0 "
	           "  512M  600M      -     0     0      3   0%\n"
	           "   4242 python3                 1     4000     400     2000      200       0 "
	           " 12.0G 13.0G  13.0G 1.25G     0      0  25%\n");
}

static void test_the_page_on_200_columns_has_room_for_names(void **state)
{
	view.table = TOP_KERNELS;
	view.process = processes[0].process->id;
	kernels[0].kernel = new_kernel(
		"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_"
		"nn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn::Params)",
		true);
	assert_has(render(50, 200), "\nKERNEL  ");
	assert_has(text.data,
	           "\nvoid cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_"
	           "32x3_nn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn::"
	           "Params)                    600       60   30%\n");
}

static void test_the_page_fits_any_size_from_80_by_24(void **state)
{
	for (size_t columns = 80; columns <= 200; columns++)
		render(24 + columns % 27, columns);
	assert_has(render(50, 200), "nothing lost");
}

static void test_a_smaller_screen_is_told(void **state)
{
	assert_string_equal(render(20, 60), "needs 80 x 24; this is 60 x 20 (q quits)\n");
	assert_string_equal(render(5, 10), "needs 8...\n");
}

static void test_without_limits_names_are_whole(void **state)
{
	view.keys = false;
	assert_has(render(0, 0), "\n1234567 a\\x1b[2Jb (ended)    0");
	assert_has_not(text.data, "Enter open");
}

static void test_an_empty_page_says_so(void **state)
{
	snapshot.n_processes = 0;
	assert_has(render(24, 80), "no process has called CUDA yet\n");
	assert_int_equal(press('\n'), TOP_NOTHING);
}

static void test_what_is_gone_is_a_line(void **state)
{
	snapshot.n_gone = 12;
	set_count(&snapshot.gone.numbers[TOP_COUNT_ERRORS], 5, 0);
	assert_has(render(24, 80),
	           "        12 gone                  0        0      0     0     0     0      5");
	assert_has(text.data, "\n        15 processes ");
}

static void test_losses_are_never_silent(void **state)
{
	page.lost[LOST_RING_FULL] = 4660;
	page.lost[LOST_LATE] = 2;
	assert_has(render(24, 80), "lost 4660: ring full: ");
	assert_has(text.data, "late 2: ");
	assert_has_not(text.data, "nothing lost");
}

static void test_nothing_lost_is_not_said_of_a_page_that_ends_with_what_was(void **state)
{
	page.lost[LOST_RING_FULL] = 4660;
	page.missed = true;
	assert_has_not(render(24, 80), "nothing lost");
	assert_has_not(text.data, "4660"); /* nor is it told twice */
}

static void test_windows_and_notices_are_told(void **state)
{
	page.estimate_scale = 12.34;
	page.notice = "tracing costs \033much";
	assert_has(render(24, 80), "counts and rates are 1/12.3 of the estimates\n");
	assert_has(text.data, "tracing costs \\x1bmuch\n");
}

static void test_entries_only_leaves_unknown_what_is_unknown(void **state)
{
	processes[0].entries_only = true;
	assert_has(render(24, 80), "   4242 python3                400      200      -     -");
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

static void add_gpu(const char *name)
{
	struct gpu *gpu = &gpus.gpus[gpus.n++];

	*gpu = (struct gpu){ .busy_percent = 87,
		             .memory_used_bytes = 12 * GIB,
		             .memory_total_bytes = 141 * GIB,
		             .power_mw = 412345,
		             .power_limit_mw = 700000,
		             .temperature_c = 61,
		             .sm_percent = GPU_UNKNOWN,
		             .tensor_percent = GPU_UNKNOWN,
		             .dram_percent = GPU_UNKNOWN };
	snprintf(gpu->name, sizeof(gpu->name), "%s", name);
}

static void test_a_gpu_is_a_line(void **state)
{
	add_gpu("NVIDIA H200");
	assert_has(render(24, 80),
	           "\nGPU0  NVIDIA H200                 busy  87%  mem 12.0G/141G   412W/700W    "
	           "61C\n");
}

static void test_how_well_a_gpu_is_used_stands_behind_the_rest(void **state)
{
	add_gpu("NVIDIA H200");
	gpus.gpus[0].sm_percent = 81;
	gpus.gpus[0].tensor_percent = 7;
	gpus.gpus[0].dram_percent = 45;
	assert_has(render(24, 120), "   61C  SM  81%  tensor   7%  DRAM  45%\n");
}

static void test_what_a_gpu_does_not_tell_is_a_dash(void **state)
{
	add_gpu("NVIDIA H200 MIG");
	gpus.gpus[0].busy_percent = GPU_UNKNOWN;
	gpus.gpus[0].power_mw = gpus.gpus[0].power_limit_mw = GPU_UNKNOWN;
	gpus.gpus[0].temperature_c = GPU_UNKNOWN;
	assert_has(render(24, 80), "busy    -  mem 12.0G/141G   -\n");
}

static void test_many_gpus_leave_room_for_processes(void **state)
{
	for (int i = 0; i < GPUS_MAX; i++)
		add_gpu("NVIDIA H200");
	assert_has(render(24, 80), "GPU7 ");
	assert_has_not(text.data, "GPU8 ");
	assert_has(text.data, "\n8 more GPUs\n");
	assert_has(text.data, "3 processes");
}

static void test_a_missing_library_is_a_note(void **state)
{
	snprintf(gpus.why, sizeof(gpus.why), "no GPU figures: libnvidia-ml.so.1 is not here");
	assert_has(render(24, 80), "\nno GPU figures: libnvidia-ml.so.1 is not here\n");
	page.gpus = NULL;
	assert_has(render(24, 80), "\nGPU figures are being asked for\n");
}

static void test_numbers_stay_short(void **state)
{
	static const struct {
		void (*add)(struct buf *out, double n);
		double n;
		const char *text;
	} rows[] = {
		{ top_add_count, 0, "0" },
		{ top_add_count, 1.25, "1.2" },
		{ top_add_count, 99999, "99999" },
		{ top_add_count, 99999.6, "100k" },
		{ top_add_count, 1.2345e7, "12.3M" },
		{ top_add_count, 1e15, "1000T" },
		{ top_add_bytes, 999, "999" },
		{ top_add_bytes, 1000, "0.98K" },
		{ top_add_bytes, 1.5 * MIB, "1.50M" },
		{ top_add_bytes, 18e18, "15.6E" },
		{ top_add_time, 999, "999ns" },
		{ top_add_time, 1234, "1.23us" },
		{ top_add_time, 999.6e6, "1.00s" },
		{ top_add_time, 7e12, "7000s" },
		{ top_add_time, 3.6e15, "1000h" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_reset(&text);
		rows[i].add(&text, rows[i].n);
		assert_string_equal(text.data, rows[i].text);
	}
}

/* ---- sorting ------------------------------------------------------------------------------- */

static void test_keys_sort_by_their_columns(void **state)
{
	assert_before(render(24, 80), "train", "python3"); /* CALLS/s */
	press('m');
	assert_before(render(24, 80), "python3", "train");
	assert_has(text.data, "by MEMORY, ");
	press('e');
	assert_before(render(24, 80), "train", "python3");
	press('n');
	assert_before(render(24, 80), "python3", "train");
	press('d');
	assert_before(render(24, 80), "train", "python3");
	press('R');
	assert_before(render(24, 80), "python3", "train");
	assert_has(text.data, "by PID backwards, ");
}

static void test_arrows_sort_by_the_column_beside_that_is_shown(void **state)
{
	render(24, 80);
	press('>');
	assert_has(render(24, 80), "by LAUNCH/s, ");
	press('<');
	press('<');
	assert_has(render(24, 80), "by NAME, ");
	press('<');
	press('<');
	assert_has(render(24, 80), "by SYNC, ");
}

/* ---- one process --------------------------------------------------------------------------- */

static void open_python(void)
{
	press('m');
	render(24, 80);
	view.selected = processes[0].process->id;
	assert_int_equal(press('\n'), TOP_REDRAW);
}

static void test_enter_opens_the_kernels(void **state)
{
	open_python();
	assert_has(render(24, 80),
	           "4242 python3  400 calls/s  200 launches/s  12.0G in use  0 errors\n"
	           "waiting for the GPU 25%, why: cuscope why -p 4242\n"
	           " 1 kernels   2 functions   3 streams   4 memory   5 transfers\n"
	           "KERNEL                                                   LAUNCHES LAUNCH/s "
	           "SHARE\n"
	           "void gemm<float, 4>(float const*, float*, int)                600       60   "
	           "30%\n"
	           "tick()                                                        400      140   "
	           "20%\n");
}

/* In place of what sums alone tell of its process; hostile names stay text. */
static void test_the_account_stands_above_all(void **state)
{
	page.account = "Change first: asleep in a\033[2Jb.py:7 step: 78 % of the time.";
	page.account_pid = 977;
	assert_has(render(24, 80), "of a CPU\nlast 10 s: Change first: asleep in a\\x1b[2Jb.py:7");
	open_python();
	assert_has(render(24, 80), "waiting for the GPU 25%, why: cuscope why -p 4242\n");
	page.account_pid = 4242;
	assert_has(render(24, 80), "in use  0 errors\n 1 kernels ");
	assert_has(text.data, "last 10 s: Change first: asleep");
}

static void test_kernels_have_their_time_on_the_gpu(void **state)
{
	snapshot.gpu_times = true;
	kernels[0].gpu_runs = 600;
	kernels[0].gpu_ns = 1200000000;
	kernels[1].gpu_runs = 0;
	open_python();
	processes[0].gpu_share = 0.42;
	assert_has(render(24, 80), "SHARE GPUTIME AVERAGE\n");
	assert_has(text.data,
	           "waiting for the GPU 25%, GPU busy with it 42%, why: cuscope why -p 4242\n");
	assert_has(text.data, "30%   1.20s  2.00ms\n");
	assert_has(text.data, "20%       -       -\n");
}

static void test_numbers_choose_tables(void **state)
{
	open_python();
	press('2');
	assert_has(
		render(24, 80),
		"FUNCTION                            CALLS CALLS/s ERRORS     P50     P99    TIME\n"
		"cuLaunchKernel                       1000     200      0  6.90us  12.3us  7.00ms\n"
		"cuMemAlloc_v2                           2       0      0       -       -       "
		"-\n");
	press('3');
	assert_has(
		render(24, 80),
		"STREAM                        LAUNCHES LAUNCH/s   COPIES COPIES/s  BYTES BYTES/s\n"
		"0 (default)                        900      190        0        0      0       0\n"
		"0x55d000001000                       0        0        7        1  7.00M   "
		"1.00M\n");
	press('4');
	assert_has(
		render(24, 80),
		"KIND                                               ALLOCATIONS   MEMORY     PEAK\n"
		"all                                                          3    12.0G    13.0G\n"
		"device                                                       3    12.0G    "
		"13.0G\n");
	press('5');
	assert_has(
		render(24, 80),
		"DIRECTION                                         COPIES COPIES/s  BYTES BYTES/s\n"
		"H2D                                                   99      1.5  99.0G   "
		"1.25G\n");
}

static void test_tab_goes_round(void **state)
{
	open_python();
	for (int i = 0; i < 5; i++)
		press('\t');
	assert_int_equal(view.table, TOP_KERNELS);
	press(TOP_KEY_BACKWARD_TAB);
	assert_int_equal(view.table, TOP_TRANSFERS);
}

static void test_tables_of_a_process_sort_too(void **state)
{
	open_python();
	press('s');
	assert_before(render(24, 80), "tick()", "gemm");
	press('n');
	assert_before(render(24, 80), "tick()", "gemm");
	press('R');
	assert_before(render(24, 80), "gemm", "tick()");
}

static void test_escape_and_q_go_back_and_q_quits(void **state)
{
	open_python();
	assert_int_equal(press(27), TOP_REDRAW);
	assert_int_equal(view.table, TOP_PROCESSES);
	press('\n');
	press('q');
	assert_int_equal(view.table, TOP_PROCESSES);
	assert_int_equal(press(27), TOP_NOTHING);
	assert_int_equal(press('q'), TOP_QUIT);
}

static void test_a_process_that_is_folded_closes(void **state)
{
	open_python();
	snapshot.n_processes = 0;
	assert_has(render(24, 80), "no process has called CUDA yet");
	assert_int_equal(view.table, TOP_PROCESSES);
}

static void test_long_kernel_names_are_shortened(void **state)
{
	static char name[600];

	snprintf(name, sizeof(name), "void ns::gemm<");
	memset(name + strlen(name), 'T', 500);
	strcat(name, ">(float*)");
	kernels[0].kernel = new_kernel(name, true);
	open_python();
	assert_has(render(24, 80), "\nvoid ns::gemm<...>(...)  ");
}

/* ---- hooks of one's own -----------------------------------------------------------------------
 */

static void add_hooks(void)
{
	static struct top_item of_python[2], of_train[1], of_gone[1];

	of_python[0] = (struct top_item){
		.name = "nccl.ncclAllReduce", .time_ns = 5000000, .mean_ns = 10000, .max_ns = 123456
	};
	set_count(&of_python[0].calls, 500, 20.5);
	set_count(&of_python[0].bytes, 64 * MIB, 2.0 * MIB);
	of_python[1] = (struct top_item){ .name = "a\033[2Jb",
		                          .time_ns = TABLE_NOT_KNOWN,
		                          .mean_ns = TABLE_NOT_KNOWN,
		                          .max_ns = TABLE_NOT_KNOWN };
	set_count(&of_python[1].calls, 3, 0);
	set_count(&of_python[1].bytes, TABLE_NOT_KNOWN, NAN);
	of_train[0] = of_python[0];
	of_train[0].time_ns = 9000000;
	of_gone[0] = of_python[0];
	of_gone[0].time_ns = 1000;
	processes[0].items[TOP_KIND_HOOK].all = of_python;
	processes[0].items[TOP_KIND_HOOK].n = 2;
	processes[1].items[TOP_KIND_HOOK].all = of_train;
	processes[1].items[TOP_KIND_HOOK].n = 1;
	snapshot.gone.items[TOP_KIND_HOOK].all = of_gone;
	snapshot.gone.items[TOP_KIND_HOOK].n = 1;
	page.hooks = true;
}

static void test_hooks_are_a_table_of_a_process(void **state)
{
	add_hooks();
	open_python();
	assert_has(render(24, 80), "   5 transfers   6 hooks\n");
	assert_has(text.data, "Esc back  Tab 1-6 tables");
	press(TOP_KEY_BACKWARD_TAB);
	assert_has(
		render(24, 80),
		"HOOK                               CALLS CALLS/s BYTES/s    MEAN     MAX    TIME\n"
		"nccl.ncclAllReduce                   500      20   2.00M  10.0us   123us  5.00ms\n"
		"a\\x1b[2Jb                              3       0       -       -       -       "
		"-\n");
	press('\t');
	assert_int_equal(view.table, TOP_KERNELS);
	press('6');
	assert_int_equal(view.table, TOP_HOOKS);
	press('c');
	assert_has(render(24, 80), "by CALLS, ");
}

static void test_hooks_of_all_processes_are_a_table(void **state)
{
	add_hooks();
	assert_has(render(24, 80),
	           "Enter open  H hooks  < > sort  R reverse  p pause  r reset  h ");
	assert_int_equal(press('H'), TOP_REDRAW);
	assert_has(
		render(24, 80),
		"    PID HOOK                       CALLS CALLS/s BYTES/s    MEAN     MAX    TIME\n"
		"    977 nccl.ncclAllReduce           500      20   2.00M  10.0us   123us  9.00ms\n"
		"   4242 nccl.ncclAllReduce           500      20   2.00M  10.0us   123us  5.00ms\n"
		"      - nccl.ncclAllReduce           500      20   2.00M  10.0us   123us  1.00us\n"
		"   4242 a\\x1b[2Jb                      3       0       -       -       -       "
		"-\n");
	press('d');
	render(24, 80);
	assert_has(render(24, 120), "         (gone) nccl.ncclAllReduce ");
	press('q');
	assert_int_equal(view.table, TOP_PROCESSES);
}

static void test_without_hooks_there_is_no_table_of_them(void **state)
{
	assert_has_not(render(24, 80), "H hooks");
	assert_int_equal(press('H'), TOP_NOTHING);
	open_python();
	assert_has_not(render(24, 80), "hooks");
	assert_int_equal(press('6'), TOP_NOTHING);
	assert_int_equal(press('H'), TOP_NOTHING);
}

static void test_a_page_without_a_screen_has_hooks_below(void **state)
{
	add_hooks();
	view.keys = false;
	assert_before(render(0, 0), "3 processes", "    PID            NAME HOOK");
	assert_has(text.data, "\n   4242         python3 nccl.ncclAllReduce ");
	assert_int_equal(view.table, TOP_PROCESSES);
	processes[0].items[TOP_KIND_HOOK].n = processes[1].items[TOP_KIND_HOOK].n =
		snapshot.gone.items[TOP_KIND_HOOK].n = 0;
	assert_has(render(0, 0), "\nno hook was hit yet\n");
	page.hooks = false;
	assert_has_not(render(0, 0), "HOOK");
}

static void test_hooks_as_json(void **state)
{
	struct run_info run = { .estimate_scale = 1 };
	struct buf json = { 0 };

	top_json(&page, &run, 0, &json);
	assert_has_not(json.data, "\"hooks\": [{");
	buf_reset(&json);
	add_hooks();
	top_json(&page, &run, 0, &json);
	assert_has(json.data,
	           "\"hooks\": [{\"name\": \"nccl.ncclAllReduce\", \"calls\": 500, "
	           "\"calls_per_second\": 20.50, \"bytes\": 67108864, "
	           "\"bytes_per_second\": 2097152.00, \"time_ns\": 5000000, \"mean_ns\": 10000, "
	           "\"max_ns\": 123456}, {\"name\": \"a\\u001b[2Jb\", \"calls\": 3, "
	           "\"calls_per_second\": 0.00}]");
	buf_free(&json);
}

/* ---- moving -------------------------------------------------------------------------------- */

static void add_many(void)
{
	static char names[40][16];

	for (int i = 0; i < 40; i++) {
		static const struct process *made[40];

		snprintf(names[i], sizeof(names[i]), "worker%02d", i);
		if (!made[i])
			made[i] = new_process(10000 + (uint32_t)i, names[i]);
		add_process(made[i], 1000 - i);
	}
}

static void test_the_selected_row_stays_in_sight(void **state)
{
	add_many();
	assert_has(render(24, 80), "worker00");
	assert_has_not(text.data, "worker39");
	press(TOP_KEY_END);
	render(24, 80);
	press(TOP_KEY_UP);
	press(TOP_KEY_UP); /* python3 and the ended one are last */
	assert_has(render(24, 80), "worker39");
	assert_has_not(text.data, "worker00");
	press(TOP_KEY_HOME);
	assert_has(render(24, 80), "worker00");
}

static void test_the_selection_follows_its_process(void **state)
{
	render(24, 80);
	press(TOP_KEY_DOWN);
	assert_int_equal(view.selected, processes[0].process->id);
	press('m');
	render(24, 80);
	assert_int_equal(view.selected, processes[0].process->id);
}

static void test_details_scroll(void **state)
{
	for (int i = 2; i < 63; i++) {
		kernels[i].kernel = kernels[1].kernel;
		set_count(&kernels[i].calls, 300 - (uint64_t)i, 0);
	}
	processes[0].items[TOP_KIND_KERNEL].n = 63;
	open_python();
	render(24, 80);
	press(TOP_KEY_END);
	assert_has(render(24, 80), " 238 ");
	assert_has_not(text.data, "gemm");
	press(TOP_KEY_PAGE_UP);
	assert_has_not(render(24, 80), " 238 ");
	press(TOP_KEY_HOME);
	assert_has(render(24, 80), "gemm");
}

/* ---- other keys ---------------------------------------------------------------------------- */

static void test_pausing_is_seen(void **state)
{
	press('p');
	assert_has(render(24, 80), "PAUSED, by CALLS/s");
	press(' ');
	assert_has_not(render(24, 80), "PAUSED");
}

static void test_help_and_back(void **state)
{
	press('h');
	assert_has(render(24, 80), "choose a process");
	assert_int_equal(press('m'), TOP_NOTHING);
	press('?');
	assert_has_not(render(24, 80), "choose a process");
	press('h');
	press('q');
	assert_has_not(render(24, 80), "choose a process");
}

static void test_reset_and_unknown_keys(void **state)
{
	assert_int_equal(press('r'), TOP_RESET);
	assert_int_equal(press('Z'), TOP_NOTHING);
	assert_int_equal(press(0), TOP_NOTHING);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_page_on_80_columns),
		TEST(test_gpu_times_have_columns_where_there_are_any),
		TEST(test_the_account_stands_above_all),
		TEST(test_kernels_have_their_time_on_the_gpu),
		TEST(test_the_page_on_120_columns_has_more),
		TEST(test_the_page_on_200_columns_has_room_for_names),
		TEST(test_the_page_fits_any_size_from_80_by_24),
		TEST(test_a_smaller_screen_is_told),
		TEST(test_without_limits_names_are_whole),
		TEST(test_an_empty_page_says_so),
		TEST(test_what_is_gone_is_a_line),
		TEST(test_losses_are_never_silent),
		TEST(test_nothing_lost_is_not_said_of_a_page_that_ends_with_what_was),
		TEST(test_windows_and_notices_are_told),
		TEST(test_entries_only_leaves_unknown_what_is_unknown),
		TEST(test_a_gpu_is_a_line),
		TEST(test_how_well_a_gpu_is_used_stands_behind_the_rest),
		TEST(test_what_a_gpu_does_not_tell_is_a_dash),
		TEST(test_many_gpus_leave_room_for_processes),
		TEST(test_a_missing_library_is_a_note),
		TEST(test_numbers_stay_short),
		TEST(test_keys_sort_by_their_columns),
		TEST(test_arrows_sort_by_the_column_beside_that_is_shown),
		TEST(test_enter_opens_the_kernels),
		TEST(test_numbers_choose_tables),
		TEST(test_tab_goes_round),
		TEST(test_tables_of_a_process_sort_too),
		TEST(test_escape_and_q_go_back_and_q_quits),
		TEST(test_a_process_that_is_folded_closes),
		TEST(test_long_kernel_names_are_shortened),
		TEST(test_hooks_are_a_table_of_a_process),
		TEST(test_hooks_of_all_processes_are_a_table),
		TEST(test_without_hooks_there_is_no_table_of_them),
		TEST(test_a_page_without_a_screen_has_hooks_below),
		TEST(test_hooks_as_json),
		TEST(test_the_selected_row_stays_in_sight),
		TEST(test_the_selection_follows_its_process),
		TEST(test_details_scroll),
		TEST(test_pausing_is_seen),
		TEST(test_help_and_back),
		TEST(test_reset_and_unknown_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
