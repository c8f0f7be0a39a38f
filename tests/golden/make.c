// SPDX-License-Identifier: MIT
/*
 * Makes the golden traces: the files that end in .cuscope here, from events made by hand.
 *
 *   make golden      writes them anew into tests/golden
 *
 *   plain    two processes: launches, copies of every direction, every kind of memory, errors,
 *            streams, events, a graph, nested and captured calls, calls without an end
 *   gpu      the same, and what ran on two GPUs for one of the processes
 *   late     as gpu, but what ran on the GPUs is known only after the last call
 *   lost     a run of which much was missed: losses, misses, counts that are estimates
 *   ranges   two steps of a training: ranges of several threads, waits, overhead, graph launches
 *            as wholes, communication; all of it known up to 50 ms late, some of it lost
 *   ranks    four processes with collectives, of which one is late (ranks.h)
 *   idle     two GPUs, of which one waits for every reason that there is (idle.c)
 *   some     the same, but the recording says that it has not all calls
 *   steady   a loop with most of what the report findings is for
 *   stacks   launches and samples with whole stacks
 *   lines    a training in C++ with source lines and inlined functions, which come at the end
 *   kernel   a vectorAdd with its calls of the kernel side, and of a hook
 *   stalls   two windows in which kernels wait
 *   metrics  four GPUs, each used in another way, by their metrics
 *   host_*   trainings that are slow for one reason each, with their samples (host.c)
 *   driver   faults and migrations of managed memory, Xids, and channels of a GPU (driver.c)
 *
 * Golden outputs are made of them, so what is in them stays as it is. The folder `older` has some
 * of them as earlier versions of the format wrote them; nothing here writes there.
 */
#include "base/array.h"
#include "driver.h"
#include "host.h"
#include "idle.h"
#include "ranks.h"
#include "kernel.h"
#include "lines.h"
#include "metrics.h"
#include "stalls.h"
#include "scene.h"
#include "stacks.h"
#include "steady.h"

#define DEVICE_A  0x7f2a00000000
#define DEVICE_B  0x7f2a00400000
#define DEVICE_C  0x7f2a00800000
#define HOST_A    0x7f1100000000
#define HOST_B    0x7f1100200000
#define MANAGED_A 0x7f3000000000
#define POOL_A    0x7f2b00000000
#define ARRAY_A   0x55d0c0ffee00
#define VMM_A     0x5501
#define VMM_VA_A  0x7e0000000000
#define STREAM_1  0x55d0aa000010
#define STREAM_2  0x55d0aa000020
#define EVENT_1   0x55d0bb000001
#define GRAPH     0x55d0cc000001
#define EXEC      0x55d0cc000002

enum mark {
	MARK_ADD_1 = 1,
	MARK_ADD_2,
	MARK_ADD_3,
	MARK_H2D,
	MARK_D2H,
	MARK_D2D,
	MARK_P2P,
	MARK_SET,
	MARK_GEMM_1,
	MARK_GEMM_2,
	MARK_GRAPH,
	MARK_STEP, /* and three more for the second step */
	MARK_LAST = MARK_STEP + 8,
};

static const struct process *vector_add, *python, *other;
static struct kernel *add, *gemm, *softmax, *unnamed, *reduce;

static void make_objects(void)
{
	vector_add = new_process(4242, "vectorAdd");
	python = new_process(5151, "python3");
	add = new_kernel("vectorAdd(float const*, float const*, float*, int)", true);
	add->mangled = "_Z9vectorAddPKfS0_Pfi";
	gemm = new_kernel("void cutlass::gemm<cutlass::arch::Sm80, 128, 64>(cutlass::Params)",
	                  true);
	gemm->mangled = "_ZN7cutlass4gemmINS_4arch4Sm80ELi128ELi64EEEvNS_6ParamsE";
	softmax = new_kernel("void softmax<__half, 4>(__half*, int)", true);
	softmax->mangled = "_Z7softmaxI6__halfLi4EEvPT_i";
	unnamed = new_kernel("train+0x1234", false);
	reduce = new_kernel(
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)", true);
	other = new_process(6161, "python3");
}

/* ---- parts --------------------------------------------------------------------------------- */

static struct call with_stream(struct call call, uint64_t stream)
{
	set_stream(&call, stream);
	return call;
}

static struct call with_arg(struct call call, const char *name, uint64_t value)
{
	set_arg(&call, name, value);
	return call;
}

static struct call launch(const char *function, double at_us, const struct kernel *kernel,
                          uint32_t grid, uint32_t block, uint64_t stream)
{
	struct call call = launch_at(function, at_us, kernel);

	call.args.grid[0] = grid;
	call.args.block[0] = block;
	call.args.handle = 0x55d000001000 + 0x100 * (uint64_t)kernel->id;
	set_args_of_type(&call, T_KERNEL, call.args.handle);
	set_stream(&call, stream);
	return call;
}

static struct call copy(const char *function, double at_us, enum api_direction direction,
                        uint64_t to, uint64_t from, uint64_t bytes)
{
	static const uint8_t kinds[DIRECTION_COUNT] = { [DIRECTION_H2H] = 0,
		                                        [DIRECTION_H2D] = 1,
		                                        [DIRECTION_D2H] = 2,
		                                        [DIRECTION_D2D] = 3,
		                                        [DIRECTION_DEFAULT] = 4 };
	struct call call = copy_at(function, at_us, direction, bytes);

	call.args.address = to;
	call.args.source = from;
	set_args_of_type(&call, T_DST, to);
	set_args_of_type(&call, T_SRC, from);
	set_args_of_type(&call, T_COPYKIND, kinds[direction]);
	return call;
}

static struct call set(const char *function, double at_us, uint64_t to, uint64_t bytes)
{
	struct call call = call_at(function, at_us, 8);

	call.args.address = to;
	call.args.bytes = bytes;
	set_args_of_type(&call, T_DST, to);
	set_args_of_type(&call, T_BYTES, bytes);
	return call;
}

static struct call lasting(struct call call, double duration_us)
{
	call.end_ns = call.begin_ns + (uint64_t)(duration_us * 1000);
	return call;
}

static struct call failed(struct call call, int result)
{
	fail_call(&call, result);
	call.args.address = 0;
	set_args_of_type(&call, T_PTR, 0);
	return call;
}

static struct call captured(struct call call)
{
	call.flags |= CALL_CAPTURED;
	return call;
}

static struct call endless(struct call call, uint32_t flag)
{
	never_ends(&call, flag);
	return call;
}

/* ---- the first process: vectorAdd, the runtime on top of the driver ------------------------ */

static void add_vectors(struct scene *s)
{
	put_process(s, 100, vector_add);
	put_thread(s, 110, 4242, "vectorAdd", 20);
	put_call(s, with_arg(call_at("cuInit", 120, 3000), "Flags", 0));
	put_call(s, with_arg(call_at("cudaSetDevice", 3200, 40), "device", 0));
	put_call(s, lasting(alloc_at("cudaMalloc", 3300, DEVICE_A, 1 << 20), 250));
	put_call(s, alloc_at("cudaMalloc", 3600, DEVICE_B, 1 << 20));
	put_call(s, alloc_at("cudaMalloc", 3650, DEVICE_C, 200000));
	put_call(s, alloc_at("cudaMallocHost", 3700, HOST_A, 1 << 20));
	s->mark = MARK_H2D;
	put_call(s,
	         lasting(copy("cudaMemcpy", 4000, DIRECTION_H2D, DEVICE_A, HOST_A, 1 << 20), 90));
	put_inner(s, "cuMemcpyHtoD_v2");
	put_call(s,
	         lasting(copy("cudaMemcpy", 4200, DIRECTION_H2D, DEVICE_B, 0x7ffc00001000, 200000),
	                 140));
	put_inner(s, "cuMemcpyHtoD_v2");
	for (unsigned i = 0; i < 3; i++) {
		s->mark = MARK_ADD_1 + i;
		put_call(s, lasting(launch("cudaLaunchKernel", 5000 + 100 * i, add, 196, 256, 0),
		                    6.5 + i));
		put_inner(s, "cuLaunchKernel");
	}
	put_call(s, lasting(call_at("cudaDeviceSynchronize", 5400, 0), 820.25));
	s->mark = MARK_D2H;
	put_call(s, lasting(copy("cudaMemcpy", 6300, DIRECTION_D2H, HOST_A, DEVICE_C, 200000), 60));
	put_inner(s, "cuMemcpyDtoH_v2");
	put_call(s, failed(alloc_at("cudaMalloc", 6500, 0, 1ull << 40), 2));
	put_call(s, failed(alloc_at("cudaMalloc", 6600, 0, 1ull << 40), 2));
	put_call(s, failed(launch("cudaLaunchKernel", 6700, add, 1, 2048, 0), 9));
	put_call(s, free_at("cudaFree", 7000, DEVICE_A));
	put_call(s, free_at("cudaFree", 7020, DEVICE_B)); /* DEVICE_C goes with the process */
	put_call(s, free_at("cudaFreeHost", 7040, HOST_A));
	put_other(s, EVENT_EXIT, 8000, NULL, 0);
}

/* ---- the second process: python3, several threads ------------------------------------------ */

static void all_memory(struct scene *s)
{
	put_call(s, with_arg(alloc_at("cudaMallocManaged", 10000, MANAGED_A, 65536), "flags", 1));
	put_call(s, with_stream(alloc_at("cudaMallocAsync", 10020, POOL_A, 4096), STREAM_1));
	put_call(s, alloc_at("cudaHostAlloc", 10040, HOST_B, 8192));
	put_call(s, alloc_at("cudaMallocArray", 10060, ARRAY_A, 1024 * 4));
	put_call(s, alloc_at("cuMemCreate", 10080, VMM_A, 2 << 20));
	put_call(s, alloc_at("cuMemAddressReserve", 10100, VMM_VA_A, 2 << 20));
	put_call(s, alloc_at("cudaMalloc", 10120, DEVICE_A, 3 << 20));
	put_call(s, free_at("cudaFree", 10500, MANAGED_A));
	put_call(s, with_stream(free_at("cudaFreeAsync", 10520, POOL_A), STREAM_1));
	put_call(s, free_at("cudaFreeHost", 10540, HOST_B));
	put_call(s, free_at("cudaFreeArray", 10560, ARRAY_A));
	put_call(s, free_at("cuMemRelease", 10580, VMM_A));
	put_call(s, free_at("cuMemAddressFree", 10600, VMM_VA_A));
}

static void all_copies(struct scene *s)
{
	put_call(s,
	         with_stream(copy("cudaMemcpyAsync", 11000, DIRECTION_H2D, DEVICE_A, HOST_B, 4096),
	                     STREAM_1));
	put_call(s,
	         with_stream(copy("cudaMemcpyAsync", 11020, DIRECTION_D2H, HOST_B, DEVICE_A, 512),
	                     STREAM_1));
	s->mark = MARK_D2D;
	put_call(s, with_stream(copy("cudaMemcpyAsync", 11040, DIRECTION_D2D, DEVICE_A + 8192,
	                             DEVICE_A, 8192),
	                        STREAM_2));
	put_call(s, copy("cudaMemcpy", 11060, DIRECTION_H2H, HOST_B, HOST_B + 4096, 64));
	put_call(s, copy("cudaMemcpy", 11080, DIRECTION_DEFAULT, DEVICE_A, HOST_B, 100));
	s->mark = MARK_P2P;
	put_call(s, with_arg(with_stream(copy("cudaMemcpyPeerAsync", 11100, DIRECTION_P2P,
	                                      0x7f9000000000, DEVICE_A, 1 << 20),
	                                 STREAM_2),
	                     "dstDevice", 1));
	s->mark = MARK_SET;
	put_call(s, with_stream(set("cudaMemsetAsync", 11120, DEVICE_A, 1 << 16), STREAM_1));
	put_call(s, set("cudaMemset", 11140, DEVICE_A, 256));
}

static void streams_and_graph(struct scene *s)
{
	put_call(s, with_arg(call_at("cudaStreamBeginCapture", 12000, 5), "stream", STREAM_1));
	put_call(s, captured(launch("cudaLaunchKernel", 12020, gemm, 64, 128, STREAM_1)));
	put_call(s, captured(launch("cudaLaunchKernel", 12040, softmax, 32, 256, STREAM_1)));
	put_call(s, captured(with_stream(
			    copy("cudaMemcpyAsync", 12060, DIRECTION_D2H, HOST_B, DEVICE_A, 1024),
			    STREAM_1)));
	put_call(s,
	         with_arg(with_arg(call_at("cudaStreamEndCapture", 12080, 12), "stream", STREAM_1),
	                  "pGraph", GRAPH));
	put_call(s, with_arg(with_arg(call_at("cudaGraphInstantiate", 12100, 300), "graph", GRAPH),
	                     "pGraphExec", EXEC));
	for (unsigned i = 0; i < 2; i++) {
		struct call call = call_at("cudaGraphLaunch", 12500 + 200 * i, 9);

		call.args.handle = EXEC;
		set_arg(&call, "graphExec", EXEC);
		set_stream(&call, STREAM_1);
		s->mark = i ? 0 : MARK_GRAPH;
		put_call(s, call);
	}
}

static struct call event_call(const char *function, double at_us, double duration_us)
{
	struct call call = call_at(function, at_us, duration_us);

	call.args.event = EVENT_1;
	set_args_of_type(&call, T_EVENT, EVENT_1);
	return call;
}

static void train(struct scene *s)
{
	put_call(s, with_stream(call_at("cudaStreamCreateWithFlags", 9600, 30), STREAM_1));
	put_call(s, with_stream(call_at("cudaStreamCreateWithFlags", 9650, 30), STREAM_2));
	put_call(s, event_call("cudaEventCreate", 9700, 2));
	all_memory(s);
	all_copies(s);
	streams_and_graph(s);
	for (unsigned i = 0; i < 8; i++) {
		s->mark = i < 2 ? MARK_GEMM_1 + i : 0;
		put_call(s, lasting(launch("cudaLaunchKernel", 13000 + 50 * i, gemm,
		                           64 + 64 * (i & 1), 128, STREAM_1),
		                    4 + 0.5 * i));
		put_inner(s, "cuLaunchKernel");
		put_call(s, lasting(launch("cudaLaunchKernel", 13020 + 50 * i, softmax, 32, 256,
		                           STREAM_2),
		                    3 + 0.25 * i));
		put_inner(s, "cuLaunchKernel");
	}
	put_call(s, with_stream(event_call("cudaEventRecord", 13500, 2), STREAM_1));
	put_call(s, with_stream(event_call("cudaStreamWaitEvent", 13510, 2), STREAM_2));
	put_call(s, event_call("cudaEventSynchronize", 13520, 150));
	put_call(s, with_stream(call_at("cudaStreamSynchronize", 13700, 400), STREAM_2));
	put_call(s, with_stream(call_at("cudaStreamDestroy", 14200, 25), STREAM_2));
}

/* A thread whose name and text are not to be trusted, and calls that never end. */
static void worker(struct scene *s)
{
	struct call named = call_at("cuModuleGetFunction", 13100, 15);

	named.text = "_ZN7cutlass4gemmINS_4arch4Sm80ELi128ELi64EEEvNS_6ParamsE";
	named.args.handle = 0x55d000001100;
	set_arg(&named, "hfunc", 0x55d000001100);
	set_arg(&named, "hmod", 0x55d0dd000001);
	put_thread(s, 13050, 5153, "red\x1b[31m", 0);
	put_call(s, named);
	put_call(s, launch("cuLaunchKernel", 13150, unnamed, 7, 32, 0));
	put_call(s, endless(launch("cuLaunchKernel", 13160, unnamed, 7, 32, 0), CALL_NO_RETURN));
	put_call(s, call_at("cuSomethingNew", 13170, 11));
	put_call(s,
	         failed(with_stream(call_at("cudaStreamSynchronize", 13200, 700), STREAM_1), 700));
	put_call(s, endless(call_at("cudaDeviceSynchronize", 14500, 0), CALL_UNFINISHED));
}

static void trace_python(struct scene *s)
{
	put_process(s, 9000, python);
	put_thread(s, 9500, 5151, "python3", 20);
	train(s);
	put_thread(s, 12900, 5152, "pt_autograd_0", 15);
	put_call(s, alloc_at("cudaMalloc", 12950, DEVICE_B, 512 << 10));
	put_call(s, free_at("cudaFree", 13900, DEVICE_A)); /* another thread's */
	worker(s);
}

static void plain(struct scene *s)
{
	add_vectors(s);
	trace_python(s);
}

/* ---- what ran on the GPU ------------------------------------------------------------------- */

static void gpu_of_vectors(struct scene *s)
{
	struct activity copy_in = { .kind = ACTIVITY_COPY,
		                    .correlation = MARK_H2D,
		                    .context = 1,
		                    .stream = 7,
		                    .bytes = 1 << 20,
		                    .direction = DIRECTION_H2D,
		                    .source = ACTIVITY_MEMORY_PINNED,
		                    .destination = ACTIVITY_MEMORY_DEVICE };
	struct activity copy_out = { .kind = ACTIVITY_COPY,
		                     .correlation = MARK_D2H,
		                     .context = 1,
		                     .stream = 7,
		                     .bytes = 200000,
		                     .direction = DIRECTION_D2H,
		                     .source = ACTIVITY_MEMORY_DEVICE,
		                     .destination = ACTIVITY_MEMORY_PAGEABLE };
	struct activity kernel = { .kind = ACTIVITY_KERNEL,
		                   .context = 1,
		                   .stream = 7,
		                   .kernel = add,
		                   .grid = { 196, 1, 1 },
		                   .block = { 256, 1, 1 },
		                   .registers = 16 };

	s->process = vector_add;
	put_activity(s, copy_in, 4010, 70.5);
	for (unsigned i = 0; i < 3; i++) {
		kernel.correlation = MARK_ADD_1 + i;
		put_activity(s, kernel, 5050 + 300 * i, 290.125);
	}
	put_activity(s, copy_out, 6310, 33);
}

static struct activity gemm_activity(uint64_t mark, uint32_t device, uint32_t stream)
{
	return (struct activity){ .kind = ACTIVITY_KERNEL,
		                  .correlation = mark,
		                  .device = device,
		                  .context = device + 1,
		                  .stream = stream,
		                  .kernel = gemm,
		                  .grid = { 64, 1, 1 },
		                  .block = { 128, 1, 1 },
		                  .registers = 168,
		                  .shmem_static = 1024,
		                  .shmem_dynamic = 49152 };
}

/* Several activities of one call, with the nodes of the graph. */
static void gpu_of_graph(struct scene *s)
{
	struct activity node = gemm_activity(MARK_GRAPH, 0, 13);
	struct activity copied = { .kind = ACTIVITY_COPY,
		                   .correlation = MARK_GRAPH,
		                   .context = 1,
		                   .stream = 13,
		                   .bytes = 1024,
		                   .direction = DIRECTION_D2H,
		                   .source = ACTIVITY_MEMORY_DEVICE,
		                   .destination = ACTIVITY_MEMORY_PINNED,
		                   .graph = 3,
		                   .graph_node = 3003 };

	node.graph = 3;
	node.graph_node = 3001;
	put_activity(s, node, 12520, 40);
	node.kernel = softmax;
	node.graph_node = 3002;
	node.registers = 32;
	node.shmem_static = node.shmem_dynamic = 0;
	node.grid[0] = 32;
	node.block[0] = 256;
	put_activity(s, node, 12561, 12);
	put_activity(s, copied, 12574, 3.5);
}

static void gpu_of_python(struct scene *s)
{
	struct activity moved = { .kind = ACTIVITY_COPY,
		                  .correlation = MARK_D2D,
		                  .context = 1,
		                  .stream = 14,
		                  .bytes = 8192,
		                  .direction = DIRECTION_D2D,
		                  .source = ACTIVITY_MEMORY_DEVICE,
		                  .destination = ACTIVITY_MEMORY_DEVICE };
	struct activity filled = { .kind = ACTIVITY_SET,
		                   .correlation = MARK_SET,
		                   .context = 1,
		                   .stream = 13,
		                   .bytes = 1 << 16,
		                   .destination = ACTIVITY_MEMORY_DEVICE };

	s->process = python;
	put_activity(s, moved, 11050, 2.5);
	moved.correlation = MARK_P2P;
	moved.direction = DIRECTION_P2P;
	moved.bytes = 1 << 20;
	moved.peer_device = 1;
	put_activity(s, moved, 11110, 55);
	put_activity(s, filled, 11130, 1.75);
	gpu_of_graph(s);
	put_activity(s, gemm_activity(MARK_GEMM_1, 0, 13), 13006, 120);
	put_activity(s, gemm_activity(MARK_GEMM_2, 1, 13), 13060, 95.5); /* overlaps, elsewhere */
	put_activity(s, gemm_activity(0, 0, 14), 13200, 10);             /* its call was not seen */
}

/* ---- a training with ranges ---------------------------------------------------------------- */

static struct activity reduce_activity(uint64_t mark)
{
	return (struct activity){ .kind = ACTIVITY_KERNEL,
		                  .correlation = mark,
		                  .context = 1,
		                  .stream = 20,
		                  .kernel = reduce,
		                  .grid = { 16, 1, 1 },
		                  .block = { 512, 1, 1 },
		                  .registers = 96 };
}

static void put_named(struct scene *s, const char *name, uint32_t depth, double begin_us,
                      double duration_us)
{
	put_range(s, (struct range){ .kind = RANGE_PUSHPOP, .name = name, .depth = depth },
	          begin_us, duration_us);
}

/* The step's calls: MARK_STEP + 0 the product, 1 the sum of all, 2 the graph, 3 the wait. */
static void call_step(struct scene *s, uint64_t mark, double at_us)
{
	struct call graph = call_at("cudaGraphLaunch", at_us + 300, 12);

	s->mark = mark;
	put_call(s, launch("cudaLaunchKernel", at_us + 100, gemm, 64, 128, 0));
	s->mark = mark + 1;
	put_call(s, launch("cudaLaunchKernel", at_us + 200, reduce, 16, 512, STREAM_2));
	graph.args.handle = EXEC;
	set_arg(&graph, "graphExec", EXEC);
	set_stream(&graph, 0);
	s->mark = mark + 2;
	put_call(s, graph);
	s->mark = mark + 3;
	put_call(s, lasting(call_at("cudaDeviceSynchronize", at_us + 400, 0), 4000));
}

static void run_step(struct scene *s, const char *name, uint64_t mark, double at_us)
{
	struct activity graph = { .kind = ACTIVITY_GRAPH_RUN,
		                  .correlation = mark + 2,
		                  .context = 1,
		                  .stream = 7,
		                  .graph = 3 };
	struct range wait = {
		.kind = RANGE_SYNC, .name = "Context Sync", .correlation = mark + 3, .context = 1
	};

	put_named(s, "aten::mm", 2, at_us + 80, 60);
	put_named(s, "forward \x1b[31m", 1, at_us + 50, 200);
	put_named(s, "optimizer", 1, at_us + 260, 100);
	put_named(s, name, 0, at_us, 4500);
	put_activity(s, gemm_activity(mark, 0, 7), at_us + 112.5, 1500);
	put_activity(s, reduce_activity(mark + 1), at_us + 1200, 1000);
	put_activity(s, graph, at_us + 1700, 2600);
	put_range(s, wait, at_us + 402, 3990);
}

/* On other threads: another domain, a range that two threads share, a moment, CUPTI's own time. */
static void other_ranges(struct scene *s)
{
	struct range sum = { .kind = RANGE_PUSHPOP, .name = "ncclAllReduce", .domain = "NCCL" };
	struct range epoch = { .kind = RANGE_STARTEND, .name = "epoch", .domain = "train" };
	struct range mark = { .kind = RANGE_MARK, .name = "checkpoint" };
	struct range overhead = { .kind = RANGE_OVERHEAD, .name = "Buffer Flush" };
	struct range pause = { .kind = RANGE_NOT_MEASURED, .name = "" };

	put_range(s, sum, 10190, 30);
	put_range(s, mark, 14700, 0);
	put_thread(s, 9900, 5152, "pt_autograd_0", 15);
	put_range(s, epoch, 9950, 10200);
	put_named(s, "backward", 0, 10500, 800);
	put_range(s, overhead, 50010, 120);
	put_range(s, pause, 51000, 8000);
}

static void train_with_ranges(struct scene *s)
{
	s->flush_ns = 50000000;
	put_process(s, 9000, python);
	put_thread(s, 9500, 5151, "python3", 20);
	for (unsigned i = 0; i < 2; i++) {
		call_step(s, MARK_STEP + 4 * i, 10000 + 5000 * i);
		run_step(s, i ? "ProfilerStep#2" : "ProfilerStep#1", MARK_STEP + 4 * i,
		         10000 + 5000 * i);
	}
	put_call(s, call_at("cudaMalloc", 60000, 30)); /* long before which all of it was over */
	other_ranges(s);
	put_process(s, 9100, other);
	put_thread(s, 9200, 6161, "python3", 20);
	put_call(s, launch("cudaLaunchKernel", 12000, softmax, 32, 256, 0));
}

/* ---- the files ----------------------------------------------------------------------------- */

static struct run_info run_info(double end_us)
{
	struct run_info run = default_run_info();

	run.end_ns = US(end_us);
	run.hostname = "gpu-box";
	run.kernel_release = "6.8.0-45-generic";
	run.machine = "x86_64";
	run.driver_version = "580.65.06";
	run.command = "python3 train.py --batch '64 x 2'";
	run.machine = "x86_64";
	run.cpus = 96;
	run.memory_bytes = 1ull << 40;
	return run;
}

/* Two of which the processes used one or both; `n` of them. */
static void put_gpus(struct run_info *run, size_t n)
{
	static struct run_gpu gpus[2];

	for (int i = 0; i < 2; i++) {
		gpus[i] = (struct run_gpu){ .name = "NVIDIA H200",
			                    .memory_bytes = 150754820096,
			                    .clock_hz = 1980000000,
			                    .memory_bandwidth = 4916736000000,
			                    .major = 9,
			                    .multiprocessors = 132 };
		snprintf(gpus[i].uuid, sizeof(gpus[i].uuid),
		         "GPU-8c0d2f6e-0000-4000-8000-00000000000%d", i);
		snprintf(gpus[i].bus, sizeof(gpus[i].bus), "00000000:%d:00.0", 18 + 80 * i);
	}
	run->gpus = gpus;
	run->n_gpus = n;
}

static void write_lost(struct scene *scene, const char *path)
{
	static const struct miss misses[] = {
		{ MISS_NOT_HOOKED, "cuLaunchKernelEx", "libcuda.so.1", 0,
		  "its first instruction cannot be moved", 0 },
		{ MISS_HOOKED_LATE, NULL, "libcudart.so.13", 5151, "96.4 ms after it was loaded",
		  0 },
		{ MISS_UNHOOKED, "cudaGetLastError", "libcudart.so.13", 0, "cost 4.2 % of a thread",
		  0 },
		{ MISS_ENTRY_ONLY, NULL, NULL, 5151, "the process is under seccomp", 0 },
		{ MISS_ESTIMATED, NULL, NULL, 0, "40 % of the time was measured", 0 },
	};
	struct run_info run = run_info(20000);

	run.lost[LOST_RING_FULL] = 4660;
	run.lost[LOST_NO_ENTRY] = 3;
	run.lost[LOST_LATE] = 1;
	run.misses = misses;
	run.n_misses = ARRAY_SIZE(misses);
	run.estimate_scale = 2.5;
	run.holds = 12;
	run.longest_hold_ns = 4200000;
	run.command = NULL;
	run.driver_version = NULL;
	run.machine = NULL;
	write_scene(scene, &run, path);
}

static void write_ranges(struct scene *scene, const char *path)
{
	static const struct miss misses[] = {
		{ MISS_GPU_TIMES, NULL, NULL, 6161,
		  "another profiler has CUPTI: one program at a time can have it", 0 },
	};
	struct run_info run = run_info(80000);

	put_gpus(&run, 1);
	run.gpu_times = true;
	run.gpu_clock_error_ns = 1250;
	run.lost[LOST_GPU_RING] = 17;
	run.lost[LOST_GPU_TIMES] = 2;
	run.misses = misses;
	run.n_misses = 1;
	write_scene(scene, &run, path);
}

int main(int argc, char **argv)
{
	struct scene scene = { 0 };
	struct run_info run = run_info(15000);
	char path[4096];

	if (argc != 2)
		return 2;
	make_objects();
	snprintf(path, sizeof(path), "%s/plain.cuscope", argv[1]);
	plain(&scene);
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/gpu.cuscope", argv[1]);
	plain(&scene);
	put_gpus(&run, 2);
	run.gpu_times = true;
	gpu_of_vectors(&scene);
	gpu_of_python(&scene);
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/late.cuscope", argv[1]);
	scene.flush_ns = 50000000;
	plain(&scene);
	gpu_of_vectors(&scene);
	gpu_of_python(&scene);
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/lost.cuscope", argv[1]);
	trace_python(&scene);
	write_lost(&scene, path);
	snprintf(path, sizeof(path), "%s/ranges.cuscope", argv[1]);
	train_with_ranges(&scene);
	write_ranges(&scene, path);
	snprintf(path, sizeof(path), "%s/idle.cuscope", argv[1]);
	trace_idle(&scene);
	run = run_info(21000);
	run.gpu_times = true;
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/some.cuscope", argv[1]);
	trace_idle(&scene);
	run.chosen = "--min-duration 100.00 us --only cu*";
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/steady.cuscope", argv[1]);
	put_steady(&scene, python, gemm, reduce);
	run = run_info(12000);
	run.gpu_times = true;
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/ranks.cuscope", argv[1]);
	put_ranks(&scene, gemm, reduce);
	run = run_info(100000);
	run.gpu_times = run.stacks.blocked = run.stacks.host_waits = true;
	run.stacks.blocked_ns = 100000;
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/stacks.cuscope", argv[1]);
	put_stacks(&scene, python, gemm, softmax);
	run = run_info(5000);
	run.gpu_times = true;
	run.stacks = stacks_asked();
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/lines.cuscope", argv[1]);
	put_lines(&scene, new_process(7171, "trainer"), gemm);
	run = run_info(62000);
	run.gpu_times = true;
	run.stacks = stacks_asked();
	memset(run.stacks.missed, 0, sizeof(run.stacks.missed));
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/metrics.cuscope", argv[1]);
	trace_metrics(&scene, python, gemm);
	run = run_info(4200000);
	run.metrics = metrics_asked();
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/stalls.cuscope", argv[1]);
	trace_stalls(&scene, python, gemm, softmax);
	run = run_info(502000);
	run.gpu_times = true;
	write_scene(&scene, &run, path);
	snprintf(path, sizeof(path), "%s/kernel.cuscope", argv[1]);
	trace_kernel(&scene, vector_add, add);
	run = run_info(9000);
	write_scene(&scene, &run, path);
	write_host_traces(argv[1]);
	write_driver_trace(argv[1]);
	return 0;
}
