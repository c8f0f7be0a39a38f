// SPDX-License-Identifier: MIT
#include "idle.h"

#include "scene.h"

#define STREAM_MAIN 0x55d0aa000110 /* 13, as CUPTI counts them */
#define STREAM_COPY 0x55d0aa000120 /* 14 */

static struct kernel *gemm, *relu, *attention;
static uint64_t next_mark;

/* What runs for it is given its mark. */
static uint64_t ask(struct scene *s, const char *function, uint64_t stream, double at_us,
                    double duration_us, const struct kernel *kernel)
{
	struct call call = call_at(function, at_us, duration_us);

	call.kernel = kernel;
	if (kernel) {
		call.args.handle = 0x55d000002000 + 0x100 * (uint64_t)kernel->id;
		set_args_of_type(&call, T_KERNEL, call.args.handle);
	}
	if (kernel || stream)
		set_stream(&call, stream);
	s->mark = ++next_mark;
	put_call(s, call);
	return next_mark;
}

static struct activity activity_of(uint64_t mark, uint32_t device, uint32_t stream,
                                   const struct kernel *kernel)
{
	return (struct activity){ .kind = kernel ? ACTIVITY_KERNEL : ACTIVITY_COPY,
		                  .correlation = mark,
		                  .device = device,
		                  .context = 1 + device,
		                  .stream = stream,
		                  .kernel = kernel,
		                  .grid = { 64, 1, 1 },
		                  .block = { 128, 1, 1 },
		                  .registers = 40,
		                  .bytes = kernel ? 0 : 1 << 20,
		                  .direction = kernel ? DIRECTION_NONE : DIRECTION_H2D,
		                  .source = kernel ? 0 : ACTIVITY_MEMORY_PINNED,
		                  .destination = kernel ? 0 : ACTIVITY_MEMORY_DEVICE };
}

static void run_kernel(struct scene *s, const struct kernel *kernel, double at_us, double begin_us,
                       double duration_us)
{
	uint64_t mark = ask(s, "cuLaunchKernel", STREAM_MAIN, at_us, 5, kernel);

	put_activity(s, activity_of(mark, 0, 13, kernel), begin_us, duration_us);
}

/* Kernels so small that the host cannot keep up, then one after the other from a queue. */
static void launches(struct scene *s)
{
	for (unsigned i = 0; i < 8; i++)
		run_kernel(s, relu, 10000 + 6 * i, 10008 + 6 * i, 2);
	run_kernel(s, gemm, 10050, 10058, 200); /* until 10258 */
	for (unsigned i = 0; i < 4; i++)
		run_kernel(s, relu, 10060 + 6 * i, 10259 + 11 * i, 10);
}

/* From 10302 on nothing runs: the host waits, allocates, and does what is not seen. */
static void late_host(struct scene *s)
{
	uint64_t loaded;

	ask(s, "cudaStreamSynchronize", STREAM_MAIN, 10090, 220, NULL); /* until 10310 */
	run_kernel(s, gemm, 10400, 10408, 92);                          /* until 10500 */
	ask(s, "cudaMalloc", 0, 10600, 300, NULL);
	ask(s, "cudaSetDevice", 0, 10950, 1, NULL);
	run_kernel(s, gemm, 11500, 11508, 92);                                 /* until 11600 */
	loaded = ask(s, "cuLaunchKernel", STREAM_MAIN, 11620, 590, attention); /* loads it first */
	put_activity(s, activity_of(loaded, 0, 13, attention), 12215, 85);     /* until 12300 */
}

/* The second stream copies what the first one needs; 12300 on. */
static void copies(struct scene *s)
{
	uint64_t copied = ask(s, "cudaMemcpyAsync", STREAM_COPY, 12210.5, 4, NULL), waiting;

	ask(s, "cudaStreamWaitEvent", STREAM_MAIN, 12216, 2, NULL);
	waiting = ask(s, "cuLaunchKernel", STREAM_MAIN, 12219, 5, gemm);
	put_activity(s, activity_of(copied, 0, 14, NULL), 12220, 400); /* until 12620 */
	put_activity(s, activity_of(waiting, 0, 13, gemm), 12623, 77); /* until 12700 */
	copied = ask(s, "cudaMemcpy", 0, 12720, 290, NULL);            /* fills a buffer first */
	put_activity(s, activity_of(copied, 0, 7, NULL), 12900, 100);  /* until 13000 */
	run_kernel(s, gemm, 13060, 13068, 32);                         /* until 13100 */
}

static void graph(struct scene *s)
{
	uint64_t mark = ask(s, "cudaGraphLaunch", STREAM_MAIN, 13070, 9, NULL);

	put_activity(s, activity_of(mark, 0, 13, gemm), 13102, 48);
	put_activity(s, activity_of(mark, 0, 13, relu), 13200, 10); /* 50 us after the first */
	put_activity(s, activity_of(0, 0, 13, relu), 13300, 10);    /* nobody knows why */
}

/* Windows of 5 ms: from 15000 to 19000 nothing is measured, though something ran. */
static void windows(struct scene *s)
{
	run_kernel(s, gemm, 14900, 14908, 80); /* until 14988 */
	ask(s, "cuLaunchKernel", STREAM_MAIN, 16000, 5, gemm);
	put_range(s, (struct range){ .kind = RANGE_NOT_MEASURED, .name = "between two windows" },
	          15000, 4000);
	run_kernel(s, gemm, 19100, 19108, 92); /* until 19200 */
}

/* Another process on the same GPU, and on one that has more to do than it can. */
static void serve(struct scene *s)
{
	uint64_t mark = ask(s, "cuLaunchKernel", 0, 13400, 5, attention);

	put_activity(s, activity_of(mark, 0, 7, attention), 13408, 1000);
	for (unsigned i = 0; i < 10; i++) {
		mark = ask(s, "cuLaunchKernel", 0, 14000 + 10 * i, 5, attention);
		put_activity(s, activity_of(mark, 1, 7, attention), 14010 + 500.5 * i, 500);
	}
}

void trace_idle(struct scene *s)
{
	const struct process *train = new_process(7100, "train"), *server;

	server = new_process(7200, "serve");
	gemm = new_kernel("void cutlass::gemm<cutlass::arch::Sm90, 128>(cutlass::Params)", true);
	relu = new_kernel("void relu<float>(float*, int)", true);
	attention = new_kernel("flash_attention(Params)", true);
	s->flush_ns = 5000000;
	put_process(s, 9000, train);
	put_thread(s, 9500, 7101, "train", 20);
	launches(s);
	late_host(s);
	copies(s);
	graph(s);
	windows(s);
	put_process(s, 9100, server);
	put_thread(s, 9600, 7200, "serve", 20);
	serve(s);
}
