// SPDX-License-Identifier: MIT
/*
 * Makes a trace of a program in whose steps one stream waits for another, and the host for both:
 *
 *   events FILE.cuscope
 *
 * CUPTI told of the waits. In the last step an event is waited for that was recorded before the
 * trace began. The program was a shell before.
 */
#include "../golden/scene.h"

#define STEPS    4
#define STREAM_A 0xa0
#define STREAM_B 0xb0
#define CUPTI_A  13
#define CUPTI_B  14

enum handle { READY = 0xe0, DONE = 0xe1, OLD = 0xe2 };

/* Of a step: what waits, and what ran. */
enum mark {
	MARK_WORK_A = 1,
	MARK_WORK_B,
	MARK_STREAM_WAIT,
	MARK_HOST_WAIT,
	MARK_SYNC,
	MARKS_OF_STEP
};

static uint64_t marks_before;

static struct call event_call(const char *function, double at_us, double us, uint64_t event,
                              uint64_t stream)
{
	struct call call = call_at(function, at_us, us);

	call.args.event = event;
	set_args_of_type(&call, T_EVENT, event);
	if (stream)
		set_stream(&call, stream);
	return call;
}

static void put_marked(struct scene *s, enum mark mark, struct call call)
{
	s->mark = marks_before + mark;
	put_call(s, call);
}

static void put_launch(struct scene *s, enum mark mark, double at_us, uint64_t stream,
                       uint32_t cupti, const struct kernel *kernel, double us)
{
	struct call call = launch_at("cudaLaunchKernel", at_us, kernel);
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .correlation = marks_before + mark,
		                     .context = 1,
		                     .stream = cupti,
		                     .kernel = kernel,
		                     .registers = 32,
		                     .shmem_dynamic = 16384,
		                     .grid = { 264, 1, 1 },
		                     .block = { 256, 1, 1 } };

	set_stream(&call, stream);
	put_marked(s, mark, call);
	put_activity(s, activity, at_us + 20, us);
}

static void put_wait(struct scene *s, enum mark mark, const char *name, uint32_t stream,
                     double at_us, double us)
{
	put_range(s,
	          (struct range){ .kind = RANGE_SYNC,
	                          .name = name,
	                          .correlation = marks_before + mark,
	                          .context = 1,
	                          .stream = stream },
	          at_us, us);
}

static void put_step(struct scene *s, unsigned step, const struct kernel *first,
                     const struct kernel *second)
{
	double at_us = 1000 + 1000.0 * step;
	char name[32];

	snprintf(name, sizeof(name), "ProfilerStep#%u", step);
	put_launch(s, MARK_WORK_A, at_us + 10, STREAM_A, CUPTI_A, first, 200);
	put_call(s, event_call("cudaEventRecord", at_us + 20, 2, READY, STREAM_A));
	put_marked(s, MARK_STREAM_WAIT,
	           event_call("cudaStreamWaitEvent", at_us + 30, 2, step == STEPS - 1 ? OLD : READY,
	                      STREAM_B));
	put_wait(s, MARK_STREAM_WAIT, "Stream Wait Event", CUPTI_B, at_us + 30.5, 1);
	put_launch(s, MARK_WORK_B, at_us + 240, STREAM_B, CUPTI_B, second, 300);
	put_call(s, event_call("cudaEventRecord", at_us + 250, 2, DONE, STREAM_B));
	put_marked(s, MARK_HOST_WAIT,
	           event_call("cudaEventSynchronize", at_us + 260, 320, DONE, 0));
	put_wait(s, MARK_HOST_WAIT, "Event Sync", 0, at_us + 261, 318);
	put_marked(s, MARK_SYNC, call_at("cudaDeviceSynchronize", at_us + 600, 20));
	put_wait(s, MARK_SYNC, "Context Sync", 0, at_us + 601, 18);
	put_range(s, (struct range){ .kind = RANGE_PUSHPOP, .name = strdup(name) }, at_us, 900);
	marks_before += MARKS_OF_STEP;
}

int main(int argc, char **argv)
{
	const struct run_gpu gpu = { .name = "NVIDIA H100 80GB HBM3",
		                     .major = 9,
		                     .multiprocessors = 132 };
	struct scene scene = { 0 };
	struct run_info run = default_run_info();
	const struct process *shell = new_process(77, "bash");
	const struct process *process = new_process(77, "train");

	if (argc < 2)
		return 2;
	run.end_ns = US(10000);
	run.gpu_times = true;
	run.gpus = &gpu;
	run.n_gpus = 1;
	put_process(&scene, 1, shell);
	put_thread(&scene, 1, 77, "bash", 20);
	put_call(&scene, call_at("cuInit", 2, 1));
	put_process(&scene, 10, process);
	put_thread(&scene, 10, 77, "train", 20);
	for (unsigned step = 0; step < STEPS; step++)
		put_step(&scene, step, new_kernel("first()", true), new_kernel("second()", true));
	write_scene(&scene, &run, argv[1]);
	return 0;
}
