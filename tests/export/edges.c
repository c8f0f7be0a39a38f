// SPDX-License-Identifier: MIT
/*
 * Makes a trace of what seldom happens and has to come out right in every format:
 *
 *   edges FILE.cuscope
 *
 * kernels of one stream that overlap, two processes on one GPU, work that ends before its call
 * does, work without a call and calls without work, an inner call that begins and ends with the
 * outer one, a call that was under way when the trace began, numbers of threads and processes that
 * come again, names that no terminal and no JSON should see.
 */
#include "../golden/scene.h"

enum mark { MARK_FIRST = 1, MARK_SECOND, MARK_THIRD, MARK_COPY, MARK_OTHER, MARK_LAST };

static const struct kernel *evil, *plain;

static struct activity kernel_of(uint64_t mark, const struct kernel *kernel)
{
	return (struct activity){ .kind = ACTIVITY_KERNEL,
		                  .correlation = mark,
		                  .context = 1,
		                  .stream = 7,
		                  .kernel = kernel,
		                  .grid = { 1, 2, 3 },
		                  .block = { 32, 1, 1 } };
}

static void put_launch(struct scene *s, double at_us, uint64_t mark, const struct kernel *kernel)
{
	s->mark = mark;
	put_call(s, launch_at("cuLaunchKernel_ptsz", at_us, kernel));
}

/* Three launches whose kernels overlap: the second within the first, the third beyond it. */
static void overlapping(struct scene *s)
{
	put_launch(s, 100, MARK_FIRST, plain);
	put_launch(s, 110, MARK_SECOND, evil);
	put_launch(s, 120, MARK_THIRD, plain);
	put_activity(s, kernel_of(MARK_FIRST, plain), 200, 100);
	put_activity(s, kernel_of(MARK_SECOND, evil), 220, 30);
	put_activity(s, kernel_of(MARK_THIRD, plain), 280, 100);
	put_activity(s, kernel_of(0, plain), 380, 0); /* begins as that ends, and takes no time */
}

/* The work is done before the call that waits for it has ended. */
static void waited_for(struct scene *s)
{
	struct activity copy = { .kind = ACTIVITY_COPY,
		                 .correlation = MARK_COPY,
		                 .context = 1,
		                 .stream = 7,
		                 .bytes = 4096,
		                 .direction = DIRECTION_D2H,
		                 .source = ACTIVITY_MEMORY_DEVICE,
		                 .destination = ACTIVITY_MEMORY_PINNED };
	struct call call = copy_at("cudaMemcpy", 500, DIRECTION_D2H, 4096);

	call.end_ns = US(600);
	s->mark = MARK_COPY;
	put_call(s, call);
	put_activity(s, copy, 510, 80);
}

/* Three calls, each in the one before it, that begin and end in the same nanoseconds. */
static void same_times(struct scene *s)
{
	struct call call = call_at("cuCtxGetCurrent", 700, 10);

	for (uint32_t depth = 3; depth--;) {
		call.depth = depth;
		call.flags = depth ? CALL_NESTED : 0;
		put_call(s, call);
	}
	call = call_at("cudaSetDevice", 710, 10); /* and the next begins where they end */
	put_call(s, call);
}

static void strange_calls(struct scene *s)
{
	struct call call = call_at("cudaDeviceSynchronize", 0, 50);

	call.begin_ns = RUN_BEGIN_NS - 7000; /* under way when the trace began */
	put_call(s, call);
	call = call_at("cudaStreamSynchronize", 800, 0);
	never_ends(&call, CALL_UNFINISHED);
	put_call(s, call);
	call = launch_at("cudaLaunchKernel", 810, evil);
	never_ends(&call, CALL_NO_RETURN);
	put_call(s, call);
}

/* On the same GPU and stream, with the same numbers of calls. */
static void another_process(struct scene *s, const struct process *process)
{
	put_process(s, 150, process);
	put_launch(s, 160, MARK_OTHER, plain);
	put_activity(s, kernel_of(MARK_OTHER, plain), 250, 100);
	put_other(s, EVENT_EXIT, 900, NULL, 0);
}

/* Exec keeps the number of the process, and a thread's number is given to another. */
static void numbers_again(struct scene *s, const struct process *process)
{
	put_process(s, 1000, process);
	put_thread(s, 1000, process->pid + 1, "first", 20);
	put_call(s, call_at("cudaSetDevice", 1010, 10));
	put_thread(s, 1100, process->pid + 1, "second", 20);
	put_launch(s, 1110, MARK_LAST, evil);
	put_activity(s, kernel_of(MARK_LAST, evil), 1200, 100);
}

int main(int argc, char **argv)
{
	struct scene scene = { 0 };
	struct run_info run = default_run_info();
	const struct process *process = new_process(77, "a\"\\\x1b[2J");

	if (argc != 2)
		return 2;
	evil = new_kernel("k\"\\\x1b[31m\n\xff<\"x\">", true);
	plain = new_kernel("plain(int)", true);
	run.end_ns = US(2000);
	run.command = "sh -c 'echo \"\x1b]0;x\\'";
	put_process(&scene, 1, process);
	overlapping(&scene);
	waited_for(&scene);
	same_times(&scene);
	strange_calls(&scene);
	another_process(&scene, new_process(78, "other"));
	numbers_again(&scene, new_process(77, "again"));
	write_scene(&scene, &run, argv[1]);
	return 0;
}
