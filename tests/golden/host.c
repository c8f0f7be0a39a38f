// SPDX-License-Identifier: MIT
#include "host.h"

#include "base/array.h"
#include "scene.h"

#define STEPS       40
#define STREAM_MAIN 0x55d0aa000110 /* 13, as CUPTI counts them */
#define MAIN        7300
#define WORKER      7301

/* ---- code ---------------------------------------------------------------------------------- */

enum host_frame {
	AT_START,
	AT_TRAIN_LOAD,
	AT_TRAIN_STEP,
	AT_TRAIN_ITEM,
	AT_NEXT,
	AT_GET,
	AT_FUTEX,
	AT_COLLATE,
	AT_AUGMENT,
	AT_MEMCPY,
	AT_FORWARD,
	AT_LAUNCH,
	AT_SYNC,
	AT_WORKER,
	HOST_FRAMES
};

#define TRAIN_PY  "/home/ann/app/train.py"
#define DATA_PY   "/home/ann/app/data.py"
#define LOADER_PY "/usr/lib/python3.12/site-packages/torch/utils/data/dataloader.py"

static const struct stack_frame frames[HOST_FRAMES] = {
	[AT_START] = { .kind = FRAME_NATIVE, .function = "_start", .module = "python3.12" },
	[AT_TRAIN_LOAD] = { .kind = FRAME_PYTHON,
	                    .function = "train",
	                    .file = TRAIN_PY,
	                    .line = 88,
	                    .first_line = 80 },
	[AT_TRAIN_STEP] = { .kind = FRAME_PYTHON,
	                    .function = "train",
	                    .file = TRAIN_PY,
	                    .line = 91,
	                    .first_line = 80 },
	[AT_TRAIN_ITEM] = { .kind = FRAME_PYTHON,
	                    .function = "train",
	                    .file = TRAIN_PY,
	                    .line = 95,
	                    .first_line = 80 },
	[AT_NEXT] = { .kind = FRAME_PYTHON,
	              .function = "DataLoader.__next__",
	              .file = LOADER_PY,
	              .line = 733,
	              .first_line = 725 },
	[AT_GET] = { .kind = FRAME_PYTHON,
	             .function = "Queue.get",
	             .file = "/usr/lib/python3.12/queue.py",
	             .line = 171,
	             .first_line = 154 },
	[AT_FUTEX] = { .kind = FRAME_KERNEL_MODE, .function = "futex_wait", .module = "[kernel]" },
	[AT_COLLATE] = { .kind = FRAME_PYTHON,
	                 .function = "collate",
	                 .file = DATA_PY,
	                 .line = 31,
	                 .first_line = 25 },
	[AT_AUGMENT] = { .kind = FRAME_PYTHON,
	                 .function = "augment",
	                 .file = DATA_PY,
	                 .line = 44,
	                 .first_line = 40 },
	[AT_MEMCPY] = { .kind = FRAME_NATIVE, .function = "memcpy", .module = "libc.so.6" },
	[AT_FORWARD] = { .kind = FRAME_PYTHON,
	                 .function = "Net.forward",
	                 .file = "/home/ann/app/model.py",
	                 .line = 12,
	                 .first_line = 10 },
	[AT_LAUNCH] = { .kind = FRAME_CUDA,
	                .function = "cudaLaunchKernel",
	                .module = "libcudart.so.13" },
	[AT_SYNC] = { .kind = FRAME_CUDA,
	              .function = "cudaStreamSynchronize",
	              .module = "libcudart.so.13" },
	[AT_WORKER] = { .kind = FRAME_NATIVE, .function = "worker", .module = "libtorch_cpu.so" },
};

enum host_stack {
	IN_COLLATE,
	IN_AUGMENT,
	IN_GET,
	IN_LAUNCH,
	IN_FORWARD,
	IN_SYNC,
	IN_WORKER,
	HOST_STACKS
};

static const enum host_frame code[HOST_STACKS][6] = {
	[IN_COLLATE] = { AT_MEMCPY, AT_COLLATE, AT_NEXT, AT_TRAIN_LOAD },
	[IN_AUGMENT] = { AT_AUGMENT, AT_COLLATE, AT_NEXT, AT_TRAIN_LOAD },
	[IN_GET] = { AT_FUTEX, AT_GET, AT_NEXT, AT_TRAIN_LOAD },
	[IN_LAUNCH] = { AT_LAUNCH, AT_FORWARD, AT_TRAIN_STEP },
	[IN_FORWARD] = { AT_FORWARD, AT_TRAIN_STEP },
	[IN_SYNC] = { AT_SYNC, AT_TRAIN_ITEM },
	[IN_WORKER] = { AT_WORKER },
};

/* Each ends in the begin of the program, which is 0. */
static const struct stack *stack_of(enum host_stack number)
{
	static struct stack_frame all[HOST_FRAMES];
	static const struct stack_frame *of_stack[HOST_STACKS][6];
	static struct stack stacks[HOST_STACKS];
	struct stack *stack = &stacks[number];

	if (stack->n_frames)
		return stack;
	for (uint32_t i = 0; i < HOST_FRAMES; i++) {
		all[i] = frames[i];
		all[i].id = i;
	}
	do {
		of_stack[number][stack->n_frames] = &all[code[number][stack->n_frames]];
	} while (code[number][stack->n_frames++] != AT_START);
	stack->id = number;
	stack->frames = of_stack[number];
	return stack;
}

/* ---- what happens -------------------------------------------------------------------------- */

struct host_scene {
	const char *name;
	bool stacks, gpu_times;
	double sample_us; /* between two samples */
	unsigned lost;    /* all samples but one in so many are; 0: none are */
	void (*put)(struct scene *s, const struct host_scene *scene);
};

static struct kernel *gemm, *relu;
static uint64_t next_mark;
static double sampled_us; /* until which there are samples */

static void sample_of(struct scene *s, double at_us, enum sample_kind kind, double us,
                      enum host_stack stack)
{
	struct sample sample = { .kind = kind,
		                 .weight_ns = (uint64_t)(us * 1000),
		                 .stack = stack_of(stack) };
	struct event event = { .type = EVENT_SAMPLE,
		               .time_ns = US(at_us),
		               .process = s->process,
		               .tid = stack == IN_WORKER ? WORKER : s->tid,
		               .sample = &sample };

	put_event(s, &event);
}

/* The main thread is in this code up to a time; a worker runs all the while. */
static void run_until(struct scene *s, const struct host_scene *scene, double until_us,
                      enum host_stack stack)
{
	static unsigned taken;

	for (; sampled_us < until_us; sampled_us += scene->sample_us) {
		if (!scene->stacks || (scene->lost && ++taken % scene->lost))
			continue;
		sample_of(s, sampled_us, SAMPLE_CPU, scene->sample_us, stack);
		sample_of(s, sampled_us, SAMPLE_CPU, scene->sample_us, IN_WORKER);
	}
}

static void blocked_until(struct scene *s, const struct host_scene *scene, double from_us,
                          double until_us, enum host_stack stack)
{
	if (scene->stacks)
		sample_of(s, until_us, SAMPLE_OFF_CPU, until_us - from_us, stack);
	while (sampled_us < until_us)
		sampled_us += scene->sample_us;
}

static void call_of(struct scene *s, const struct host_scene *scene, const char *function,
                    double at_us, double duration_us, const struct kernel *kernel,
                    enum host_stack stack)
{
	struct call call = call_at(function, at_us, duration_us);

	if (kernel) {
		call.kernel = kernel;
		call.args.handle = 0x55d000002000 + 0x100 * (uint64_t)kernel->id;
		set_args_of_type(&call, T_KERNEL, call.args.handle);
	}
	set_stream(&call, STREAM_MAIN);
	call.stack = scene->stacks ? stack_of(stack) : NULL;
	s->mark = ++next_mark;
	put_call(s, call);
}

/* A launch of 8 us, and what it launches. */
static void kernel_of(struct scene *s, const struct host_scene *scene, const struct kernel *kernel,
                      double at_us, double begin_us, double duration_us)
{
	struct activity ran = { .kind = ACTIVITY_KERNEL,
		                .context = 1,
		                .stream = 13,
		                .kernel = kernel,
		                .grid = { 64, 1, 1 },
		                .block = { 128, 1, 1 } };

	call_of(s, scene, "cudaLaunchKernel", at_us, 8, kernel, IN_LAUNCH);
	ran.correlation = next_mark;
	if (scene->gpu_times)
		put_activity(s, ran, begin_us, duration_us);
}

/* Of each 10 ms the kernel takes 2, and all else is one line that loads data, and a helper of it.
 */
static void put_line(struct scene *s, const struct host_scene *scene)
{
	for (unsigned i = 0; i < STEPS; i++) {
		double at_us = 1000 + 10000 * i;

		run_until(s, scene, at_us + 8500, IN_COLLATE);
		run_until(s, scene, at_us + 9900, IN_AUGMENT);
		kernel_of(s, scene, gemm, at_us + 9900, at_us + 9912, 2000);
	}
}

/* The same, but it waits for a queue that others fill. */
static void put_blocked(struct scene *s, const struct host_scene *scene)
{
	for (unsigned i = 0; i < STEPS; i++) {
		double at_us = 1000 + 10000 * i;

		blocked_until(s, scene, at_us, at_us + 9600, IN_GET);
		run_until(s, scene, at_us + 9900, IN_FORWARD);
		kernel_of(s, scene, gemm, at_us + 9900, at_us + 9912, 2000);
	}
}

/* All is asked for in time, and the host waits for the end. */
static void put_busy(struct scene *s, const struct host_scene *scene)
{
	for (unsigned i = 0; i < STEPS; i++)
		kernel_of(s, scene, gemm, 1000 + 100 * i, 1020 + 10002 * i, 10000);
	run_until(s, scene, 5000, IN_FORWARD);
	call_of(s, scene, "cudaStreamSynchronize", 5000, 396110, NULL, IN_SYNC);
	blocked_until(s, scene, 5000, 401110, IN_SYNC);
}

/* A value is read back after each of many small steps, so nothing is ever queued. */
static void put_sync(struct scene *s, const struct host_scene *scene)
{
	for (unsigned i = 0; i < 3 * STEPS; i++) {
		double at_us = 1000 + 1000 * i;

		kernel_of(s, scene, gemm, at_us, at_us + 12, 400);
		call_of(s, scene, "cudaStreamSynchronize", at_us + 20, 400, NULL, IN_SYNC);
		run_until(s, scene, at_us + 20, IN_LAUNCH);
		blocked_until(s, scene, at_us + 20, at_us + 420, IN_SYNC);
		run_until(s, scene, at_us + 1000, IN_FORWARD);
	}
}

/* Kernels of 3 us, each launched by a framework that takes 10 us. */
static void put_small(struct scene *s, const struct host_scene *scene)
{
	for (unsigned i = 0; i < 12 * STEPS; i++) {
		double at_us = 1000 + 14 * i;

		run_until(s, scene, at_us, IN_FORWARD);
		kernel_of(s, scene, i & 1 ? relu : gemm, at_us, at_us + 9, 3);
		run_until(s, scene, at_us + 8, IN_LAUNCH);
	}
}

/* ---- what the host waits for ---------------------------------------------------------------- */

static void waits(struct scene *s, double from_us, double until_us, struct sample wait)
{
	struct event event = { .type = EVENT_SAMPLE,
		               .time_ns = US(until_us),
		               .process = s->process,
		               .tid = s->tid,
		               .sample = &wait };

	wait.kind = SAMPLE_OFF_CPU;
	wait.weight_ns = (uint64_t)((until_us - from_us) * 1000);
	put_event(s, &event);
}

/* Of each 10 ms a disk has 4, a compiler 2.5 of its CPU, a loader's lock 1, and a socket little. */
static void put_waits(struct scene *s, const struct host_scene *scene)
{
	for (unsigned i = 0; i < STEPS / 4; i++) {
		double at_us = 1000 + 10000 * i;

		waits(s, at_us + 2500, at_us + 6500,
		      (struct sample){ .wait = WAIT_DISK,
		                       .blocked = BLOCKED_INTERRUPT,
		                       .stack = stack_of(IN_COLLATE),
		                       .runnable_ns = 500000,
		                       .rival = "cc1plus",
		                       .rival_pid = 9100 });
		waits(s, at_us + 6700, at_us + 8700,
		      (struct sample){ .wait = WAIT_CPU,
		                       .blocked = BLOCKED_PREEMPTED,
		                       .stack = stack_of(IN_AUGMENT),
		                       .runnable_ns = 2000000,
		                       .rival = i & 1 ? "cc1plus" : "make",
		                       .rival_pid = i & 1 ? 9100 : 9101 });
		waits(s, at_us + 8700, at_us + 9700,
		      (struct sample){ .wait = WAIT_LOCK,
		                       .blocked = BLOCKED_WOKEN,
		                       .stack = stack_of(IN_GET),
		                       .waker = "loader \x1b[31m",
		                       .waker_tid = 7302 });
		waits(s, at_us + 9800, at_us + 9850, (struct sample){ .wait = WAIT_NETWORK });
		kernel_of(s, scene, gemm, at_us + 9900, at_us + 9912, 2000);
	}
	/* those that are too short to be told of: 31 of them, added up */
	waits(s, 101000, 101124, (struct sample){ .blocked = BLOCKED_BRIEF, .count = 31 });
	sampled_us = 110000;
}

static void put_nothing(struct scene *s, const struct host_scene *scene)
{
}

static const struct host_scene scenes[] = {
	{ "host_line", true, true, 1000, 0, put_line },
	{ "host_blocked", true, true, 1000, 0, put_blocked },
	{ "host_busy", true, true, 1000, 0, put_busy },
	{ "host_sync", true, true, 100, 0, put_sync },
	{ "host_small", true, true, 20, 0, put_small },
	{ "host_no_stacks", false, true, 1000, 0, put_line },
	{ "host_no_gpu", true, false, 1000, 0, put_line },
	{ "host_empty", true, true, 1000, 0, put_nothing },
	{ "host_lost", true, true, 1000, 70, put_line },
	{ "host_waits", false, true, 1000, 0, put_waits },
};

static struct run_info run_of(const struct host_scene *scene, double duration_us)
{
	struct run_info run = default_run_info();

	run.end_ns = US(duration_us);
	run.gpu_times = scene->gpu_times;
	run.command = "python3 train.py";
	if (scene->stacks)
		run.stacks = (struct run_stacks){ .sample_ns = (uint64_t)(scene->sample_us * 1000),
			                          .calls = true,
			                          .one_in = 1 };
	if (scene->put == put_waits)
		run.stacks = (struct run_stacks){ .blocked = true,
			                          .blocked_ns = 10000,
			                          .host_waits = true };
	if (scene->lost)
		run.stacks.missed[STACKS_LOST] = 390;
	return run;
}

void write_host_traces(const char *folder)
{
	const struct process *python = new_process(MAIN, "python3");
	struct scene scene = { 0 };
	struct run_info run;
	char path[4096];

	gemm = new_kernel("void gemm<float, 128>(Params)", true);
	relu = new_kernel("void relu<float>(float*, int)", true);
	for (size_t i = 0; i < ARRAY_SIZE(scenes); i++) {
		next_mark = 0;
		sampled_us = 1000;
		if (scenes[i].put != put_nothing) {
			put_process(&scene, 100, python);
			put_thread(&scene, 110, MAIN, "python3", 20);
			scenes[i].put(&scene, &scenes[i]);
		}
		run = run_of(&scenes[i], sampled_us > 5000 ? sampled_us + 3000 : 10000);
		snprintf(path, sizeof(path), "%s/%s.cuscope", folder, scenes[i].name);
		write_scene(&scene, &run, path);
	}
}
