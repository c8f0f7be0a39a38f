// SPDX-License-Identifier: MIT
/*
 * Makes a trace of what seldom happens and has to come out right in every format:
 *
 *   edges FILE.cuscope
 *
 * kernels of one stream that overlap, two processes on one GPU, work that ends before its call
 * does, work without a call and calls without work, an inner call that begins and ends with the
 * outer one, a call that was under way when the trace began, numbers of threads and processes that
 * come again, names that no terminal and no JSON should see; ranges that begin in the same
 * nanosecond, whose outer one never ended, that have no name, that overlap where nothing nests; and
 * what becomes known of a process after its end.
 */
#include "../golden/scene.h"

enum mark { MARK_FIRST = 1, MARK_SECOND, MARK_THIRD, MARK_COPY, MARK_OTHER, MARK_LAST, MARK_ENDED };

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

static void put_nested(struct scene *s, const char *name, uint32_t depth, double begin_us,
                       double end_us)
{
	put_range(s, (struct range){ .kind = RANGE_PUSHPOP, .name = name, .depth = depth },
	          begin_us, end_us - begin_us);
}

static void strange_ranges(struct scene *s)
{
	struct range free = { .kind = RANGE_STARTEND, .name = "free", .domain = "\xff\"\\" };
	struct range wait = {
		.kind = RANGE_SYNC, .name = "Stream Sync", .context = 1, .stream = 7
	};

	put_nested(s, "inner\x1b[2J", 2, 1400, 1450); /* all three begin at once */
	put_nested(s, "", 1, 1400, 1450);             /* and two of them end at once */
	put_nested(s, "outer\xff", 0, 1400, 1500);
	put_nested(s, "orphan", 3, 1510, 1520);
	put_nested(s, "of no time", 0, 1530, 1530);
	put_range(s, free, 1400, 100);
	put_range(s, free, 1450, 100);
	put_range(s, wait, 1400, 60);
	put_range(s, wait, 1430, 60);
	wait.stream = wait.context = 0;
	wait.name = "Context Sync";
	put_range(s, wait, 1440, 1);
	put_range(s, (struct range){ .kind = RANGE_MARK, .name = "mark" }, 1420, 0);
	put_range(s, (struct range){ .kind = RANGE_OVERHEAD, .name = "Buffer Flush" }, 1400, 50);
	put_range(s, (struct range){ .kind = RANGE_OVERHEAD, .name = "Buffer Flush" }, 1410, 50);
	put_range(s, (struct range){ .kind = RANGE_NOT_MEASURED, .name = "" }, 1600, 10);
}

/* What ran before a process's end is known after it. */
static void known_after_the_end(struct scene *s, const struct process *process)
{
	struct call graph = call_at("cudaGraphLaunch", 1710, 5);

	put_process(s, 1700, process);
	s->mark = MARK_ENDED;
	put_call(s, graph);
	put_other(s, EVENT_EXIT, 1740, NULL, 0);
	s->flush_ns = 100000;
	put_activity(s, kernel_of(MARK_ENDED, plain), 1720, 10);
	put_activity(s, kernel_of(MARK_ENDED, plain), 1722,
	             12); /* another node, at the same time */
	put_nested(s, "last", 0, 1705, 1735);
	s->flush_ns = 0;
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
	run.gpu_times = true;
	run.boottime_offset_ns = 3600000000000; /* the machine had slept for an hour */
	run.kernel_release = "6.8.0\xff";
	run.machine = "x86_64";
	run.command = "sh -c 'echo \"\x1b]0;x\\'";
	put_process(&scene, 1, process);
	overlapping(&scene);
	waited_for(&scene);
	same_times(&scene);
	strange_calls(&scene);
	another_process(&scene, new_process(78, "other"));
	numbers_again(&scene, new_process(77, "again"));
	strange_ranges(&scene);
	known_after_the_end(&scene, new_process(79, "ended"));
	write_scene(&scene, &run, argv[1]);
	return 0;
}
