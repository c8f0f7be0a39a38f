// SPDX-License-Identifier: MIT
/* What `why` says of runs that are made for it: the account, what to change first, how sure. */
#include "why_scene.h"

#include "report/why_inside.h"

/* ---- with GPU times ------------------------------------------------------------------------ */

static void test_a_host_that_is_late_is_told_with_its_line(void **state)
{
	steps(20, 2000, 31);
	conclude(now_us);
	assert_said("computing                   train.py:31 step");
	assert_said("Change first: computing in train.py:31 step: 80 % of the time");
	assert_said("Sure: 140 samples of what ran there.");
	assert_said("At most 5.0 times as fast without it (10.000 ms to 2.005 ms a step)");
}

static void runs_kernel(const struct process *process, const struct kernel *kernel, uint32_t device,
                        double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .device = device,
		                     .context = 1,
		                     .stream = 9,
		                     .kernel = kernel,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };

	see(activity_event(process, &activity));
}

static void communicates(const struct process *process, uint32_t device, double begin_us,
                         double end_us)
{
	static struct kernel *kernel;

	kernel = kernel ? kernel : new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", true);
	runs_kernel(process, kernel, device, begin_us, end_us);
}

#define RANKS "whether other ranks were late"

static void test_a_rank_alone_says_nothing_of_others(void **state)
{
	for (unsigned i = 0; i < 10; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 1000);
		communicates(the_process(), 0, now_us + 1010, now_us + 5000);
	}
	conclude(now_us);
	assert_said(RANKS);
}

static void test_a_rank_that_others_wait_for_was_recorded(void **state)
{
	static const struct process *late;

	late = late ? late : new_process(950, "late");
	runs_kernel(late, NULL, 1, 10, 900000); /* so that it communicates for 4 % of its time */
	for (now_us = 900000; now_us < 1000000; now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 1000);
		communicates(the_process(), 0, now_us + 1010, now_us + 5000);
		communicates(late, 1, now_us + 1010, now_us + 5000);
	}
	conclude(now_us);
	assert_not_said(RANKS);
}

/* Of two workers that sleep in one line, waited for in turn, each has less than launching. */
static void test_workers_that_do_the_same_are_one_change(void **state)
{
	static const struct process *workers[2];

	for (unsigned i = 0; i < 2; i++)
		workers[i] = workers[i] ? workers[i] : new_process(900 + i, "worker");
	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		struct sample waits = sample_of(SAMPLE_OFF_CPU, 8000, stack_of_line(31));
		struct sample sleeps = sample_of(SAMPLE_OFF_CPU, 7900, stack_of_line(51));

		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 1000);
		sleeps.wait = WAIT_SLEEP;
		sleeps.blocked = BLOCKED_INTERRUPT;
		see(sample_event(workers[i % 2], 900 + i % 2, now_us + 9400, &sleeps));
		waits.wait = WAIT_PIPE;
		waits.blocked = BLOCKED_WOKEN;
		waits.waker_tid = 900 + i % 2;
		see(sample_event(the_process(), the_process()->pid, now_us + 9500, &waits));
	}
	conclude(now_us);
	assert_said("Change first: asleep in ");
	assert_said(" of worker (pid 900) and 1 like it: 79 % of the time");
	assert_not_said("pid 901");
}

/* More of them than are counted. */
static void test_how_many_are_alike_is_bounded_and_said_so(void **state)
{
	static struct process workers[70];

	for (uint32_t i = 0; i < 70; i++)
		workers[i] = (struct process){ .id = 100 + i, .pid = 1900 + i, .comm = "worker" };
	for (unsigned i = 0; i < 140; i++, now_us += 10000) {
		struct sample waits = sample_of(SAMPLE_OFF_CPU, 8000, stack_of_line(31));
		struct sample sleeps = sample_of(SAMPLE_OFF_CPU, 7900, stack_of_line(51));

		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 1000);
		sleeps.wait = WAIT_SLEEP;
		sleeps.blocked = BLOCKED_INTERRUPT;
		see(sample_event(&workers[i % 70], 1900 + i % 70, now_us + 9400, &sleeps));
		waits.wait = WAIT_PIPE;
		waits.blocked = BLOCKED_WOKEN;
		waits.waker_tid = 1900 + i % 70;
		see(sample_event(the_process(), the_process()->pid, now_us + 9500, &waits));
	}
	conclude(now_us);
	assert_said(" and 64 or more like it: 79 % of the time");
}

static void test_a_blocked_host_is_told_with_its_line(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		steps(1, 2000, 0);
		sample(SAMPLE_OFF_CPU, now_us - 100, 7800, 44);
	}
	conclude(now_us);
	assert_said("Change first: blocked in train.py:44 step: 7");
	assert_said("Sure: 20 waits.");
}

/* Two samples say nothing of the places of the rest; of a thread that slept they would be all. */
static void test_few_samples_are_of_little_time(void **state)
{
	info.stacks.sample_ns = 1000000;
	info.stacks.missed[STACKS_LOST] = 130;
	steps(20, 2000, 0);
	sample(SAMPLE_CPU, 5000, 1000, 31);
	conclude(now_us);
	assert_said("79.4 %  host, outside of CUDA");
	assert_said("Not known: what the host did outside of CUDA for 79 % of the time was not "
	            "recorded.");
	assert_said("lines of stacks that were lost or could not be read");
	assert_not_said("Change first");
}

/* So deep that their outermost frames are not kept. */
static void test_stacks_that_are_cut_are_told(void **state)
{
	enum { DEPTH = CHAINS_DEPTH_MAX + 8 };
	static struct stack_frame frames[DEPTH];
	static const struct stack_frame *pointers[DEPTH];
	static char names[DEPTH][8];
	static struct stack deep = { .id = 300, .n_frames = DEPTH, .frames = pointers };
	struct sample one = sample_of(SAMPLE_CPU, 1000, &deep);

	for (unsigned i = 0; i < DEPTH; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		frames[i] = (struct stack_frame){ .id = 300 + i,
			                          .kind = FRAME_PYTHON,
			                          .function = names[i],
			                          .file = "/home/ann/deep.py",
			                          .line = i + 1 };
		pointers[i] = &frames[i];
	}
	steps(20, 2000, 31);
	see(sample_event(the_process(), the_process()->pid, 5000, &one));
	conclude(now_us);
	assert_said("the outermost frames of stacks that are very deep");
}

/* All that a thread did is known where its waits were recorded, however few samples there are. */
static void test_few_samples_beside_waits_are_not_sure(void **state)
{
	info.stacks.sample_ns = 1000000;
	info.stacks.blocked = true;
	steps(20, 2000, 0);
	for (unsigned i = 1; i < 8; i++)
		sample(SAMPLE_CPU, 10000 * i + 5000, 1000, 31);
	conclude(now_us);
	assert_said("Change first: computing in train.py:31 step");
	assert_said("Not sure: 7 samples");
}

static void test_without_samples_is_said_how_to_take_them(void **state)
{
	steps(20, 2000, 0);
	conclude(now_us);
	assert_said("Not known: what the host did outside of CUDA for 80 % of the time was not "
	            "recorded.");
	assert_said("stacks were not sampled (record --stacks)");
	assert_not_said("Change first");
}

static void test_a_busy_gpu_has_nothing_wrong(void **state)
{
	for (unsigned i = 0; i < 20; i++)
		kernel_on(0, ask("cuLaunchKernel", 10 * i, 5, 0), 300 + 1001 * i, 1000);
	conclude(300 + 1001 * 20);
	assert_said("99.9 %  GPU runs kernels");
	assert_said("Nothing is wrong: most of the time is: GPU runs kernels.");
}

/* What was lost may have been what was wrong. */
/* What a GPU of the machine was used for, as long as the recording. */
static void gpu_was(uint32_t gpu, int64_t busy, int64_t tensor, int64_t dram)
{
	struct gpu_metrics_sample metrics = {
		.source = GPU_METRICS_GPM, .gpu = gpu, .begin_ns = 0, .end_ns = US(100000)
	};

	for (size_t i = 0; i < GPU_METRICS; i++)
		metrics.value[i] = GPU_METRIC_UNKNOWN;
	metrics.value[GPU_METRIC_GRAPHICS] = 100 * busy;
	metrics.value[GPU_METRIC_TENSOR] = 100 * tensor;
	metrics.value[GPU_METRIC_FP32] = 0;
	metrics.value[GPU_METRIC_DRAM] = 100 * dram;
	metrics.value[GPU_METRIC_SM] = 9900;
	see((struct event){
		.type = EVENT_METRICS, .time_ns = metrics.end_ns, .metrics = &metrics });
}

/* The process calls it 0, whichever it is. */
static void a_gpu_is_busy(void)
{
	steps(10, 9990, 0);
	conclude(100000);
	assert_said("Nothing is wrong:");
}

static void test_what_bounds_a_gpu_is_told_of_the_one_that_was_as_busy(void **state)
{
	gpu_was(0, 60, 64, 20);
	gpu_was(1, 99, 0, 87);
	a_gpu_is_busy();
	assert_said("What bounds them: its memory (DRAM bandwidth 87 %)");
}

static void test_of_two_that_were_it_is_not_told(void **state)
{
	gpu_was(0, 99, 64, 20);
	gpu_was(1, 99, 0, 87);
	a_gpu_is_busy();
	assert_said("What bounds them is not known");
}

static void test_but_where_the_driver_says_which_of_them_it_used(void **state)
{
	static struct run_identity who;

	who = (struct run_identity){ .pid = the_process()->pid, .gpus = 1u << 1 };
	who.words[RUN_IDENTITY_USER] = (char *)"ann";
	info.identities = &who;
	info.n_identities = 1;
	gpu_was(0, 99, 64, 20);
	gpu_was(1, 60, 0, 87);
	a_gpu_is_busy();
	assert_said("What bounds them: its memory (DRAM bandwidth 87 %)");
}

static void test_but_where_the_same_bounds_both(void **state)
{
	gpu_was(0, 99, 0, 81);
	gpu_was(1, 99, 0, 87);
	a_gpu_is_busy();
	assert_said("What bounds them: its memory (DRAM bandwidth 81 %)");
}

static void test_of_none_that_was_it_is_not_told(void **state)
{
	gpu_was(0, 60, 64, 20);
	gpu_was(1, 70, 0, 87);
	a_gpu_is_busy();
	assert_said("What bounds them is not known");
}

/* Kernels of so many names, the first of which takes so much of each 1,000 us. */
static void kernels_run(uint32_t names, double first_us)
{
	static const struct kernel kernels[] = {
		{ .id = 0, .name = "void gemm<float, 128>(Params)" },
		{ .id = 1, .name = "add" },
		{ .id = 2, .name = "copy" },
		{ .id = 3, .name = "scale" },
		{ .id = 4, .name = "norm" },
		{ .id = 5, .name = "sort" },
	};

	for (unsigned i = 0; i < 100; i++) {
		double at_us = 300 + 1001 * i;

		named_kernel_on(0, &kernels[0], ask("cuLaunchKernel", 10 * i, 5, 0), at_us,
		                first_us);
		for (uint32_t k = 1; k < names; k++)
			named_kernel_on(0, &kernels[k], ask("cuLaunchKernel", 10 * i + 5, 5, 0),
			                at_us + first_us +
			                        (k - 1) * (1000 - first_us) / (names - 1),
			                (1000 - first_us) / (names - 1));
	}
	conclude(300 + 1001 * 100);
	assert_said("Nothing is wrong:");
}

static unsigned looked_up; /* calls of works */

const struct fact_call *__real_facts_call_of(const struct facts *facts,
                                             const struct fact_work *work, uint32_t *thread);
const struct fact_call *__wrap_facts_call_of(const struct facts *facts,
                                             const struct fact_work *work, uint32_t *thread);
const struct fact_call *__wrap_facts_call_of(const struct facts *facts,
                                             const struct fact_work *work, uint32_t *thread)
{
	looked_up++;
	return __real_facts_call_of(facts, work, thread);
}

/* Its text is made several times where it is too long. */
static void test_the_longest_kernel_is_looked_for_once(void **state)
{
	AT_END(buf_free) struct buf out = { 0 };
	struct json json = { .out = &out };

	kernels_run(2, 700);
	looked_up = 0;
	buf_reset(&text);
	why_add_text(why, &text);
	why_add_json(why, &json, NULL);
	assert_int_equal(looked_up, 0);
	assert_said("Longest: ");
	assert_non_null(strstr(out.data, "\"longest_kernel\""));
}

static void test_the_kernel_that_takes_most_of_their_time_is_named(void **state)
{
	kernels_run(2, 700);
	assert_said("  Longest: void gemm<float, 128>(Params), 70 % of what kernels take.\n");
}

static void test_of_many_alike_none_is(void **state)
{
	kernels_run(6, 190);
	assert_not_said("Longest");
}

static void test_losses_are_said_beside_all_else(void **state)
{
	info.lost[LOST_RING_FULL] = 1000;
	for (unsigned i = 0; i < 20; i++)
		kernel_on(0, ask("cuLaunchKernel", 10 * i, 5, 0), 300 + 1001 * i, 1000);
	conclude(300 + 1001 * 20);
	assert_said("what was lost while it was recorded");
}

static void test_waits_are_told_with_the_line_of_the_call(void **state)
{
	for (unsigned i = 0; i < 40; i++) {
		double at_us = 1000 * i;

		kernel_on(0, ask("cuLaunchKernel", at_us, 5, 91), at_us + 10, 400);
		ask("cudaStreamSynchronize", at_us + 20, 400, 95);
	}
	conclude(40000);
	assert_said("Change first: after waits for the GPU in train.py:95 step");
}

/* ---- phases -------------------------------------------------------------------------------- */

static void assert_in_json(const char *words)
{
	struct buf out = { 0 };
	struct json json = { .out = &out };

	why_add_json(why, &json, NULL);
	if (!strstr(out.data, words))
		fail_msg("nothing says '%s':\n%s", words, out.data);
	buf_free(&out);
}

static void waits_for(uint32_t tid, uint32_t waker, double begin_us, double end_us, uint32_t line)
{
	struct sample one = sample_of(SAMPLE_OFF_CPU, end_us - begin_us, stack_of_line(line));

	one.wait = WAIT_LOCK;
	one.blocked = BLOCKED_WOKEN;
	one.waker_tid = waker;
	see(sample_event(the_process(), tid, end_us, &one));
}

/* Threads of a pool that wait for each other are all in the line that waits for them. */
static void test_waits_in_a_row_at_one_place_are_told_once(void **state)
{
	uint32_t pid = the_process()->pid;

	for (unsigned i = 0; i < 10; i++, now_us += 10000) {
		struct sample one = sample_of(SAMPLE_CPU, 1000, stack_of_line(33));

		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 500);
		for (unsigned k = 2; k < 9; k++)
			see(sample_event(the_process(), pid + 2, now_us + k * 1000, &one));
		waits_for(pid + 1, pid + 2, now_us + 1000, now_us + 9000, 27);
		waits_for(pid, pid + 1, now_us + 1000, now_us + 9010, 27);
	}
	conclude(100000);
	assert_said("Change first: computing in train.py:33 step");
	assert_said("a lock is waited for in train.py:27 step.");
	assert_not_said("there a lock");
}

static void test_steps_that_are_apart_are_told_with_what_they_are(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		steps(20, 9000, 0);
		if (i == 2)
			break;
		now_us += 190000;
		sample(SAMPLE_OFF_CPU, now_us - 100, 189000, 50);
	}
	conclude(now_us);
	assert_said("59 steps of 16.441 ms on average\n");
	assert_said("Apart: 2 of 59 steps, 200.000 ms each (41 % of the time): blocked in "
	            "train.py:50 step.\n");
	assert_in_json("{\"phase\":\"steps\",\"steps\":57,");
	assert_in_json("{\"phase\":\"long\",\"steps\":2,\"ns\":400000000,"
	               "\"percent\":40.8,\"cause\":\"wait\",");
}

static void test_what_is_before_and_after_steps_is_told(void **state)
{
	kernel_on(0, ask("cuMemsetD8Async", now_us, 5, 0), now_us + 10, 20);
	now_us += 100000;
	sample(SAMPLE_OFF_CPU, now_us - 100, 99000, 20);
	steps(20, 9000, 0);
	sample(SAMPLE_OFF_CPU, now_us + 300000, 299000, 60);
	conclude(now_us + 300000);
	assert_said("19 steps of 10.000 ms (32 % of the time)\n");
	assert_said("Apart: 310.000 ms after the last step (52 % of the time): blocked in "
	            "train.py:60 step; 99.990 ms before the first step (17 % of the time): blocked "
	            "in train.py:20 step.\n");
	assert_not_said("of a step");
	assert_not_said("a step)");
}

/* Seven that come again in a moment are none. */
static void test_what_covers_little_of_the_time_is_no_step(void **state)
{
	for (unsigned i = 0; i < 8; i++) {
		ask("cuMemsetD8Async", 50 * i, 5, 90);
		kernel_on(0, ask("cuLaunchKernel", 50 * i + 6, 5, 91), 50 * i + 12, 20);
	}
	conclude(9000);
	assert_not_said("steps");
}

/* Launches of one kernel, after one of four of which the host does something else for 8 ms. */
static void runs(double kernel_us)
{
	double gpu_us = 0;

	for (unsigned i = 0, random = 12345; i < 400; i++) {
		random = random * 1664525u + 1013904223u;
		gpu_us = gpu_us > now_us + 10 ? gpu_us : now_us + 10;
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 91), gpu_us, kernel_us);
		gpu_us += kernel_us;
		now_us += random >> 30 ? 10 : 8000;
	}
	conclude(now_us);
}

static void test_launches_in_runs_at_random_are_no_steps(void **state)
{
	runs(20);
	assert_not_said("steps");
	assert_not_said("Apart");
}

static void test_launches_of_a_host_that_is_ahead_are_steps(void **state)
{
	runs(1840);
	assert_said("399 steps of");
	assert_not_said("Apart");
}

static void test_short_kernels_are_told_with_the_line_of_the_launch(void **state)
{
	for (unsigned i = 0; i < 200; i++)
		kernel_on(0, ask("cuLaunchKernel", 20 * i, 10, 91), 20 * i + 11, 2);
	conclude(4000);
	assert_said("Change first: launching in train.py:91 step: 8");
	assert_said("Sure: ");
}

/* JAX has no graphs to capture. */
static void test_what_is_to_be_tried_in_jax_is_what_jax_has(void **state)
{
	const struct stack_frame frames[] = {
		{ .id = 100,
		  .kind = FRAME_PYTHON,
		  .function = "train",
		  .file = "/home/ann/jaxed.py",
		  .line = 91 },
		{ .id = 101,
		  .kind = FRAME_NATIVE,
		  .function = "Call",
		  .module = "libjax_common.so" },
	};
	const struct stack_frame *inward[] = { &frames[1], &frames[0] };
	const struct stack stack = { .id = 100, .n_frames = 2, .frames = inward };

	for (unsigned i = 0; i < 200; i++) {
		struct call call = call_at("cuLaunchKernel", 20 * i, 10);

		call.correlation = ++correlation;
		call.stack = &stack;
		see(call_event(the_process(), the_process()->pid, &call));
		kernel_on(0, correlation, 20 * i + 11, 2);
	}
	conclude(4000);
	assert_said("Change first: launching in jaxed.py:91 train: 8");
	assert_said("jax.jit");
	assert_not_said("CUDA graphs");
}

/* For 900 us of each millisecond a compiler runs in a line of the user's: below that library of
 * JAX's, or none. */
static void compiled_by(const char *library)
{
	const struct stack_frame frames[] = {
		{ .id = 100,
		  .kind = FRAME_PYTHON,
		  .function = "train",
		  .file = "/home/ann/shaped.py",
		  .line = 91 },
		{ .id = 101, .kind = FRAME_NATIVE, .function = "Call", .module = library },
		{ .id = 102, .kind = FRAME_NATIVE, .module = "libnvrtc.so.13" },
	};
	const struct stack_frame *inward[] = { &frames[2], &frames[1], &frames[0] };
	const struct stack stack = { .id = 100, .n_frames = 3, .frames = inward };
	struct sample sample = sample_of(SAMPLE_CPU, 100, &stack);

	for (unsigned i = 0; i < 40; i++) {
		kernel_on(0, ask("cuLaunchKernel", 1000 * i, 10, 90), 1000 * i + 11, 50);
		for (unsigned k = 0; k < 9; k++)
			see(sample_event(the_process(), the_process()->pid, 1000 * i + 60 + 100 * k,
			                 &sample));
	}
	conclude(40000);
	assert_said("Change first: compiling in shaped.py:91 train: ");
	assert_said("samples of what ran there");
}

static void test_what_is_compiled_each_time_is_to_keep_its_shape(void **state)
{
	compiled_by("libtorch_cuda.so");
	assert_said("Try: shapes that stay the same: pad them, or let the library take");
	assert_not_said("jax.jit");
}

static void test_jax_has_a_cache_for_what_it_compiles(void **state)
{
	compiled_by("libjax_common.so");
	assert_said("so that jax.jit compiles once");
	assert_said("jax_compilation_cache_dir");
}

/* Kernels of 2 us; after each `each` of them a wait of 10 us until the GPU is dry. */
static void wait_after(unsigned each)
{
	for (unsigned i = 0; i < 1200; i++, now_us += 20) {
		bool waits = i % each == each - 1;

		kernel_on(0, ask("cuLaunchKernel", now_us, 10, 91), now_us + 11, waits ? 10 : 2);
		if (waits)
			ask("cuStreamSynchronize", now_us + 12, 10, 92);
		now_us += waits ? 5 : 0;
	}
	conclude(now_us);
}

static void test_where_each_launch_is_waited_for_the_waits_come_first(void **state)
{
	wait_after(1);
	assert_said("Change first: after waits for the GPU in train.py:92 step");
	assert_said("Next: launching between waits in train.py:91 step");
}

static void test_launches_between_waits_are_told_with_those(void **state)
{
	wait_after(6);
	assert_said("Change first: launching between waits in train.py:91 step");
	assert_said("between 199 waits for the GPU.\n");
	assert_said("Try: ask for what is waited for there once");
	assert_not_said("CUDA graphs");
}

/* A frame of evaluate(), and of what it calls in line 95: 0: nothing. */
static const struct stack *in_evaluate(bool calls)
{
	static const struct stack_frame frames[] = {
		{ .id = 102,
		  .kind = FRAME_PYTHON,
		  .function = "evaluate",
		  .file = "/home/ann/train.py",
		  .line = 95 },
		{ .id = 103,
		  .kind = FRAME_PYTHON,
		  .function = "forward",
		  .file = "/home/ann/train.py",
		  .line = 20 },
	};
	static const struct stack_frame *const inward[] = { &frames[1], &frames[0] };
	static const struct stack stacks[] = {
		{ .id = 102, .n_frames = 1, .frames = &inward[1] },
		{ .id = 103, .n_frames = 2, .frames = inward },
	};

	return &stacks[calls];
}

static uint64_t ask_in(const char *function, double us, const struct stack *stack)
{
	struct call call = call_at(function, now_us, us);

	call.correlation = ++correlation;
	call.stack = stack;
	see(call_event(the_process(), the_process()->pid, &call));
	now_us += us + 10;
	return correlation;
}

/* A hundred times so many launches in what evaluate() calls, and a wait in `waits`. */
static void evaluate(unsigned launches, const struct stack *waits)
{
	for (unsigned i = 0; i < 100 * launches; i++) {
		kernel_on(0, ask_in("cuLaunchKernel", 10, in_evaluate(true)), now_us - 9, 2);
		if (i % launches == launches - 1)
			ask_in("cuStreamSynchronize", 2, waits);
	}
	conclude(now_us);
}

static void test_waits_elsewhere_are_told_with_their_place(void **state)
{
	evaluate(6, stack_of_line(92));
	assert_said("Change first: launching between waits in ");
	assert_said("waits for the GPU in train.py:92 step.\n");
}

/* A value of each sample: no graph of all samples can be, as long as that is so. */
static void test_rounds_of_launches_and_a_wait_are_told_with_the_waits(void **state)
{
	evaluate(40, in_evaluate(false));
	assert_said("Change first: launching in ");
	assert_said("waits for the GPU in train.py:95 evaluate.\n");
	assert_said("Try: ask for what is waited for there once");
	assert_not_said("CUDA graphs");
}

static void test_a_wait_elsewhere_makes_no_rounds(void **state)
{
	evaluate(40, stack_of_line(92));
	assert_said("Change first: launching in ");
	assert_said("CUDA graphs");
}

static void test_many_launches_and_a_wait_are_no_round(void **state)
{
	evaluate(200, in_evaluate(false));
	assert_said("CUDA graphs");
}

static void test_a_step_with_one_wait_has_no_number_of_waits(void **state)
{
	for (unsigned i = 0; i < 200; i++, now_us += 100)
		for (unsigned k = 0; k < 6; k++, now_us += 20) {
			kernel_on(0, ask("cuLaunchKernel", now_us, 10, 91 - k), now_us + 11,
			          k == 5 ? 10 : 2);
			if (k == 5)
				ask("cuStreamSynchronize", now_us + 12, 10, 92);
		}
	conclude(now_us);
	assert_said("of a step, between one wait for the GPU and the next.\n");
}

/* A twentieth of what is left once the first is changed, but little of all. */
static void test_next_is_what_is_much_of_what_is_left(void **state)
{
	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 500);
		for (unsigned k = 1; k < 10; k++)
			sample(SAMPLE_CPU, now_us + k * 1000, 1000, 31);
		ask("cuMemAlloc_v2", now_us + 9500, 400, 93);
	}
	conclude(now_us);
	assert_said("Change first: computing in train.py:31 step");
	assert_said("Next: allocating GPU memory in train.py:93 step: 4 % of the time");
}

/* Of the longest account: what is used for a moment has no weight. */
static void test_a_gpu_that_was_used_for_a_moment_is_not_told_first(void **state)
{
	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 91), now_us + 10, 6000);
		for (unsigned k = 6; k < 10; k++)
			sample(SAMPLE_CPU, now_us + k * 1000 + 500, 1000, 31);
	}
	for (unsigned i = 0; i < 100; i++)
		kernel_on(3, ask("cuLaunchKernel", now_us + 20 * i, 10, 92), now_us + 20 * i + 11,
		          2);
	conclude(now_us + 2000);
	assert_said("GPU 0: ");
	assert_said("Change first: computing in train.py:31 step");
}

/* Each account has percentages of its own: another one's is named with them. */
static void test_what_is_next_of_another_gpu_is_told_as_such(void **state)
{
	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 91), now_us + 10, 2000);
		for (unsigned k = 3; k < 10; k++)
			sample(SAMPLE_CPU, now_us + k * 1000, 1000, 31);
		kernel_on(3, ask("cuLaunchKernel", now_us + 9000, 900, 92), now_us + 9950, 9000);
	}
	conclude(now_us);
	assert_said("GPU 0: ");
	assert_said("Change first: computing in train.py:31 step");
	if (strstr(text.data, "Next: "))
		assert_said("of the time");
}

static void test_a_moment_is_too_short_to_judge(void **state)
{
	kernel_on(0, ask("cuLaunchKernel", 0, 5, 91), 10, 100);
	kernel_on(0, ask("cuLaunchKernel", 500, 5, 91), 510, 100);
	conclude(610);
	assert_said("Not known: this is too little to judge by; a longer recording tells more.");
	assert_not_said("Change first");
}

static void test_of_chosen_calls_nothing_is_judged(void **state)
{
	choose((struct why_options){ .part = true, .chosen = true });
	steps(20, 2000, 31);
	conclude(now_us);
	assert_said("Only a choice of calls or processes was recorded or read");
	assert_not_said("%");
}

static void test_of_chosen_calls_that_were_recorded_nothing_is_judged(void **state)
{
	info.chosen = "--kernel gemm*";
	steps(20, 2000, 31);
	conclude(now_us);
	assert_said("Only a choice of calls or processes was recorded or read");
	assert_not_said("%");
}

static void test_a_part_ends_where_it_ends(void **state)
{
	choose((struct why_options){ .part = true, .to_ns = 50000000 });
	steps(5, 2000, 31);
	conclude(200000);
	assert_said("GPU 0: 49.990 ms");
	assert_said("what the parts have that were not read.");
}

static void test_gpu_times_without_work_in_them_are_not_asked_for(void **state)
{
	ask("cuLaunchKernel", 0, 5, 0);
	ask("cuLaunchKernel", 9000, 5, 0);
	conclude(10000);
	assert_said("what the GPU did: none of its work is in what was read;");
	assert_not_said("record --gpu");
}

static void test_a_long_start_is_told(void **state)
{
	now_us = 1.2e6;
	steps(20, 2000, 31);
	conclude(now_us);
	assert_said("from its first work on, which came after 1.200 s\n");
}

/* ---- without ------------------------------------------------------------------------------- */

static void test_nothing_recorded_is_nothing_wrong(void **state)
{
	conclude(10000);
	assert_said("No work of a GPU was seen");
	assert_not_said("Nothing is wrong");
}

static void test_what_there_was_no_room_for_is_not_said_to_be_absent(void **state)
{
	((struct why *)why)->facts.left_out = 1;
	conclude(10000);
	assert_said("No work of a GPU is in what there was room for");
	assert_not_said("no process made");
}

static void test_a_damaged_file_does_not_tell_what_was_recorded(void **state)
{
	info.damaged_chunks = 1;
	conclude(10000);
	assert_said("No work of a GPU is in what could be read of the file");
}

static void test_a_file_without_its_end_does_not_tell_either(void **state)
{
	info.cut_short = true;
	conclude(10000);
	assert_said("No work of a GPU is in what could be read of the file");
}

static void test_calls_without_work_are_told_as_such(void **state)
{
	ask_nothing("cudaSetDevice", 0, 5);
	conclude(10000);
	assert_said("no process made a CUDA call that asks for some");
}

static void test_without_gpu_times_the_launching_thread_is_judged(void **state)
{
	info.gpu_times = false;
	for (unsigned i = 0; i < 40; i++) {
		ask("cuLaunchKernel", 10000 * i, 10, 0);
		for (unsigned k = 1; k < 10; k++)
			sample(SAMPLE_CPU, 10000 * i + 1000 * k, 1000, 31);
	}
	conclude(400000);
	assert_said("without GPU times");
	assert_said("Change first: computing in train.py:31 step: 100 % of the time");
	assert_said("How much faster it would be without it is not known");
	assert_said("GPU times were not recorded (record --gpu)");
	assert_not_said("times as fast");
}

/* As far as is known the GPU worked meanwhile: it is no harm, and to wait less gains nothing. */
static void test_without_gpu_times_a_thread_that_waits_is_well(void **state)
{
	info.gpu_times = false;
	for (unsigned i = 0; i < 40; i++) {
		ask("cuLaunchKernel", 10000 * i, 10, 0);
		ask_nothing("cudaStreamSynchronize", 10000 * i + 20, 9900);
	}
	conclude(400000);
	assert_said("waiting for the GPU");
	assert_said("Nothing is wrong: most of the time is: waiting for the GPU.");
}

static void test_without_durations_nothing_is_claimed(void **state)
{
	info.gpu_times = false;
	info.returns = false;
	for (unsigned i = 0; i < 40; i++)
		ask("cuLaunchKernel", 10000 * i, 10, 0);
	conclude(400000);
	assert_said("Where the time went is not known: neither how long calls took was recorded");
	assert_not_said("%");
}

/* ---- bad input ----------------------------------------------------------------------------- */

static void test_names_command_no_terminal(void **state)
{
	struct stack_frame frame = { .id = 70,
		                     .kind = FRAME_PYTHON,
		                     .function = "f\033[2J\nChange first: nothing",
		                     .file = "/a\033b.py",
		                     .line = 1 };
	const struct stack_frame *frames[] = { &frame };
	struct stack stack = { .id = 70, .n_frames = 1, .frames = frames };

	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		struct sample one = sample_of(SAMPLE_CPU, 1000, &stack);

		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 2000);
		for (unsigned k = 3; k < 10; k++)
			see(sample_event(the_process(), the_process()->pid, now_us + k * 1000,
			                 &one));
	}
	conclude(now_us);
	assert_said("f\\x1b[2J\\x0aChange first: nothing");
	assert_not_said("\033");
	assert_not_said("\nChange first: nothing");
}

/* ---- several that share it ------------------------------------------------------------------- */

/* Of two recordings one is kept while the other is read. */
static void test_rows_are_not_kept_where_the_account_is_all(void **state)
{
	struct err err = { 0 };

	choose((struct why_options){ .brief = true });
	steps(20, 2000, 31);
	info.end_ns = US(now_us);
	assert_int_equal(consumers_end(&why, 1, &info, &err), 0);
	assert_int_equal(why_answer(why)->accounts->n, 1);
	assert_int_equal(why_answer(why)->facts->n_works, 0);
	assert_int_equal(why_answer(why)->facts->threads[0].n_calls, 0);
}

static void test_what_shares_the_answer_does_not_feed_it_again(void **state)
{
	struct consumer *feeder = why_feeder(why), *other = why_share(why);
	struct consumer *const all[] = { feeder, why, other };
	struct activity activity = { .kind = ACTIVITY_KERNEL, .context = 1 };
	struct err err = { 0 };

	activity.begin_ns = US(100);
	activity.end_ns = US(5100);
	for (size_t i = 0; i < 3; i++) {
		struct event event = activity_event(the_process(), &activity);

		feed(all[i], &event);
	}
	info.end_ns = US(10000);
	assert_int_equal(consumers_end(all, 3, &info, &err), 0);
	assert_true(why_is_shared(why));
	assert_int_equal(why_answer(other)->facts->n_works, 1);
	assert_true(why_answer(other) == why_answer(why));
	consumer_free(other);
	assert_false(why_is_shared(why));
	why_add_text(why, &text);
	assert_said("GPU 0: ");
}

/* The host asks for eight steps of 2 ms each, and then waits for them; of the first ones no work
 * was recorded. */
static void ask_ahead(unsigned rounds, unsigned unseen, double idle_us)
{
	for (unsigned i = 0; i < rounds; i++) {
		double at_us = 10 + (16000 + idle_us) * i;

		for (unsigned k = 0; k < 8; k++) {
			uint64_t graph = ask("cuGraphLaunch", at_us + 20 * k, 5, 40);
			uint64_t copy = ask("cuMemcpyDtoDAsync_v2", at_us + 20 * k + 10, 5, 41);

			if (i < unseen)
				continue;
			kernel_on(0, graph, at_us + 30 + 2000 * k, 1990);
			kernel_on(0, copy, at_us + 30 + 2000 * k + 1990, 9);
		}
		ask_nothing("cuStreamSynchronize", at_us + 200, 15840);
	}
	conclude(10 + (16000 + idle_us) * rounds);
}

static void test_steps_that_wait_for_those_before_are_no_others(void **state)
{
	ask_ahead(50, 0, 0);
	assert_said("GPU 0: 799.9");
	assert_said(", 398 steps of 1.970 ms on average\n");
	assert_not_said("Apart: ");
}

static void test_steps_that_wait_for_something_else_are_apart(void **state)
{
	ask_ahead(50, 0, 24000);
	assert_said("Apart: ");
}

static void test_steps_are_those_of_the_time_that_is_told(void **state)
{
	ask_ahead(50, 20, 0);
	assert_said("GPU 0: 479.9");
	assert_said(", 238 steps of 1.950 ms on average\n");
}

/* Something comes a few times, in long steps; then the program prepares itself; then it decodes. */
static void start_and_decode(unsigned steps)
{
	for (unsigned i = 0; i < 7; i++) {
		uint64_t set = ask("cuMemsetD8Async", 100 + 5000 * i, 5, 30);
		uint64_t kernel = ask("cuLaunchKernel", 200 + 5000 * i, 5, 31);

		kernel_on(0, set, 300 + 5000 * i, 10);
		kernel_on(0, kernel, 320 + 5000 * i, 10);
	}
	for (unsigned i = 0; i < 600; i++)
		sample(SAMPLE_CPU, 40000 + 1000 * i, 1000, 53);
	for (unsigned i = 0; i < steps; i++) {
		double at_us = 640000 + 800 * i;
		uint64_t graph = ask("cuGraphLaunch", at_us, 5, 40);
		uint64_t copy = ask("cuMemcpyDtoDAsync_v2", at_us + 10, 5, 41);

		kernel_on(0, graph, at_us + 20, 700);
		kernel_on(0, copy, at_us + 720, 60);
	}
	conclude(640000 + 800 * steps);
}

static void test_a_start_is_apart_from_what_is_done_over_and_over(void **state)
{
	start_and_decode(500);
	assert_said("GPU 0: 400.000 ms, 499 steps of 800.00 us");
	assert_said("Apart: 639.700 ms before the first step (62 % of the time): computing in "
	            "train.py:53 step.\n");
	assert_said("Nothing is wrong");
	assert_not_said("Change first: ");
}

static void test_a_start_that_is_nearly_all_is_what_is_asked_about(void **state)
{
	start_and_decode(100);
	assert_said("Change first: computing in train.py:53 step");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_steps_that_wait_for_those_before_are_no_others),
		TEST(test_steps_that_wait_for_something_else_are_apart),
		TEST(test_steps_are_those_of_the_time_that_is_told),
		TEST(test_a_start_is_apart_from_what_is_done_over_and_over),
		TEST(test_a_start_that_is_nearly_all_is_what_is_asked_about),
		TEST(test_a_host_that_is_late_is_told_with_its_line),
		TEST(test_workers_that_do_the_same_are_one_change),
		TEST(test_a_rank_alone_says_nothing_of_others),
		TEST(test_a_rank_that_others_wait_for_was_recorded),
		TEST(test_how_many_are_alike_is_bounded_and_said_so),
		TEST(test_a_blocked_host_is_told_with_its_line),
		TEST(test_few_samples_are_of_little_time),
		TEST(test_stacks_that_are_cut_are_told),
		TEST(test_few_samples_beside_waits_are_not_sure),
		TEST(test_without_samples_is_said_how_to_take_them),
		TEST(test_the_longest_kernel_is_looked_for_once),
		TEST(test_a_busy_gpu_has_nothing_wrong),
		TEST(test_what_bounds_a_gpu_is_told_of_the_one_that_was_as_busy),
		TEST(test_of_two_that_were_it_is_not_told),
		TEST(test_but_where_the_driver_says_which_of_them_it_used),
		TEST(test_but_where_the_same_bounds_both),
		TEST(test_the_kernel_that_takes_most_of_their_time_is_named),
		TEST(test_of_many_alike_none_is),
		TEST(test_of_none_that_was_it_is_not_told),
		TEST(test_losses_are_said_beside_all_else),
		TEST(test_waits_are_told_with_the_line_of_the_call),
		TEST(test_waits_in_a_row_at_one_place_are_told_once),
		TEST(test_steps_that_are_apart_are_told_with_what_they_are),
		TEST(test_what_is_before_and_after_steps_is_told),
		TEST(test_what_covers_little_of_the_time_is_no_step),
		TEST(test_launches_in_runs_at_random_are_no_steps),
		TEST(test_launches_of_a_host_that_is_ahead_are_steps),
		TEST(test_short_kernels_are_told_with_the_line_of_the_launch),
		TEST(test_what_is_to_be_tried_in_jax_is_what_jax_has),
		TEST(test_what_is_compiled_each_time_is_to_keep_its_shape),
		TEST(test_jax_has_a_cache_for_what_it_compiles),
		TEST(test_where_each_launch_is_waited_for_the_waits_come_first),
		TEST(test_launches_between_waits_are_told_with_those),
		TEST(test_waits_elsewhere_are_told_with_their_place),
		TEST(test_rounds_of_launches_and_a_wait_are_told_with_the_waits),
		TEST(test_a_wait_elsewhere_makes_no_rounds),
		TEST(test_many_launches_and_a_wait_are_no_round),
		TEST(test_a_step_with_one_wait_has_no_number_of_waits),
		TEST(test_next_is_what_is_much_of_what_is_left),
		TEST(test_a_gpu_that_was_used_for_a_moment_is_not_told_first),
		TEST(test_what_is_next_of_another_gpu_is_told_as_such),
		TEST(test_a_moment_is_too_short_to_judge),
		TEST(test_of_chosen_calls_nothing_is_judged),
		TEST(test_of_chosen_calls_that_were_recorded_nothing_is_judged),
		TEST(test_a_part_ends_where_it_ends),
		TEST(test_gpu_times_without_work_in_them_are_not_asked_for),
		TEST(test_a_long_start_is_told),
		TEST(test_nothing_recorded_is_nothing_wrong),
		TEST(test_what_there_was_no_room_for_is_not_said_to_be_absent),
		TEST(test_a_damaged_file_does_not_tell_what_was_recorded),
		TEST(test_a_file_without_its_end_does_not_tell_either),
		TEST(test_calls_without_work_are_told_as_such),
		TEST(test_without_gpu_times_the_launching_thread_is_judged),
		TEST(test_without_gpu_times_a_thread_that_waits_is_well),
		TEST(test_without_durations_nothing_is_claimed),
		TEST(test_names_command_no_terminal),
		TEST(test_rows_are_not_kept_where_the_account_is_all),
		TEST(test_what_shares_the_answer_does_not_feed_it_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
