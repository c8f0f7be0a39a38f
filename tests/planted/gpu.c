// SPDX-License-Identifier: MIT
/* The use of the GPU is the problem: waits, copies, allocations, small kernels, graphs, streams. */
#include <dlfcn.h>
#include <string.h>

#include "planted.h"

#define MIB ((size_t)1 << 20)

/* ---- small kernels and waits -------------------------------------------------------------------
 */

static PLANT void launch_small(void)
{
	for (int i = 0; i < 40; i++)
		launch(add, 0, stream);
}

/* Without the problem the same time on the GPU by few kernels. */
static void step_tiny(void)
{
	keep_two_steps(stream);
	if (with_problem)
		launch_small();
	else
		launch(gemm, 160, stream);
	mark_step(stream);
}

static PLANT void prepare_next(void)
{
	compute_anyway(.8);
}

/* What the host does while the GPU runs, unless it waits for that first. */
static void step_that_waits(void (*wait)(void))
{
	keep_two_steps(stream);
	for (int i = 0; i < 5; i++)
		launch(gemm, 200, stream);
	mark_step(stream);
	if (with_problem)
		wait();
	prepare_next();
}

static PLANT void wait_for_context(void)
{
	DRIVER(cuCtxSynchronize);
}

static PLANT void wait_for_stream(void)
{
	DRIVER(cuStreamSynchronize, stream);
}

static CUevent event, other_event;
static CUstream other_stream;

static void prepare_events(void)
{
	DRIVER(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	DRIVER(cuEventCreate, &other_event, CU_EVENT_DISABLE_TIMING);
	DRIVER(cuStreamCreate, &other_stream, CU_STREAM_NON_BLOCKING);
}

static PLANT void wait_for_event(void)
{
	DRIVER(cuEventRecord, event, stream);
	DRIVER(cuEventSynchronize, event);
}

static PLANT void ask_event(void)
{
	DRIVER(cuEventRecord, event, stream);
	while (CALL_IN(driver, cuEventQuery, event) != CUDA_SUCCESS)
		;
}

static void step_sync_context(void)
{
	step_that_waits(wait_for_context);
}

static void step_sync_stream(void)
{
	step_that_waits(wait_for_stream);
}

static void step_sync_event(void)
{
	step_that_waits(wait_for_event);
}

static void step_query(void)
{
	step_that_waits(ask_event);
}

/* A wait after each small kernel. */
static PLANT void run_and_wait(void)
{
	for (int i = 0; i < 20; i++) {
		launch(add, 30, stream);
		if (with_problem)
			DRIVER(cuStreamSynchronize, stream);
	}
}

static void step_sync_each(void)
{
	keep_two_steps(stream);
	run_and_wait();
	mark_step(stream);
}

static CUdeviceptr loss, device_batch;
static char *pageable, *pinned;
#define BATCH_BYTES (16 * MIB)

static PLANT void read_loss(void)
{
	float value;

	DRIVER(cuMemcpyDtoHAsync_v2, &value, loss, sizeof(value), stream);
	DRIVER(cuStreamSynchronize, stream);
	sink += (double)value;
}

static void prepare_copies(void)
{
	prepare_events();
	DRIVER(cuMemAlloc_v2, &loss, 4096);
	DRIVER(cuMemAlloc_v2, &device_batch, BATCH_BYTES);
	DRIVER(cuMemHostAlloc, (void **)&pinned, BATCH_BYTES, 0);
	pageable = malloc(BATCH_BYTES);
	memset(pageable, 1, BATCH_BYTES);
	memset(pinned, 1, BATCH_BYTES);
}

static void step_loss(void)
{
	step_that_waits(read_loss);
}

/* ---- copies -----------------------------------------------------------------------------------
 */

static PLANT void upload_pageable(void)
{
	if (with_problem)
		DRIVER(cuMemcpyHtoDAsync_v2, device_batch, pageable, BATCH_BYTES, stream);
}

static void step_pageable(void)
{
	train_step();
	upload_pageable();
}

static PLANT void upload_and_wait(void)
{
	if (!with_problem)
		return;
	DRIVER(cuMemcpyHtoDAsync_v2, device_batch, pinned, BATCH_BYTES, stream);
	DRIVER(cuStreamSynchronize, stream);
}

static void step_pinned_wait(void)
{
	train_step();
	upload_and_wait();
}

static PLANT void download_activations(void)
{
	if (with_problem)
		DRIVER(cuMemcpyDtoHAsync_v2, pageable, device_batch, BATCH_BYTES, stream);
}

static void step_download(void)
{
	train_step();
	download_activations();
}

static PLANT void clear_buffers(void)
{
	if (with_problem)
		DRIVER(cuMemsetD8Async, device_batch, 0, BATCH_BYTES, stream);
}

static void step_memset(void)
{
	train_step();
	clear_buffers();
}

/* ---- allocations, modules, streams: calls that take long ----------------------------------------
 */

static PLANT void make_buffers(void)
{
	CUdeviceptr buffer;

	if (!with_problem)
		return;
	DRIVER(cuMemAlloc_v2, &buffer, 8 * MIB);
	DRIVER(cuMemFree_v2, buffer);
}

static void step_alloc(void)
{
	train_step();
	make_buffers();
}

static PLANT void make_pinned_buffers(void)
{
	void *buffer;

	if (!with_problem)
		return;
	DRIVER(cuMemHostAlloc, &buffer, 8 * MIB, 0);
	DRIVER(cuMemFreeHost, buffer);
}

static void step_alloc_pinned(void)
{
	train_step();
	make_pinned_buffers();
}

static PLANT void load_kernels(void)
{
	CUmodule module;

	if (!with_problem)
		return;
	DRIVER(cuModuleLoadData, &module, sample_ptx);
	DRIVER(cuModuleUnload, module);
}

static void step_module(void)
{
	train_step();
	load_kernels();
}

static PLANT void open_stream(void)
{
	CUstream fresh;

	if (!with_problem)
		return;
	DRIVER(cuStreamCreate, &fresh, CU_STREAM_NON_BLOCKING);
	launch(add, 0, fresh);
	DRIVER(cuStreamDestroy_v2, fresh);
}

static void step_stream_create(void)
{
	train_step();
	open_stream();
}

static PLANT void two_buffers(void)
{
	make_buffers();
}

static PLANT void two_pause(void)
{
	nap(4);
}

static void step_two_alloc_sleep(void)
{
	train_step();
	two_buffers();
	two_pause();
}

static void step_two_wait_sleep(void)
{
	step_that_waits(read_loss);
	two_pause();
}

/* ---- graphs -----------------------------------------------------------------------------------
 */

static CUgraphExec graph;

static CUgraphExec graph_make(int kernels, double us)
{
	CUgraph captured;
	CUgraphExec made;

	DRIVER(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	for (int i = 0; i < kernels; i++)
		launch(add, us, stream);
	DRIVER(cuStreamEndCapture, stream, &captured);
	DRIVER(cuGraphInstantiateWithFlags, &made, captured, 0);
	DRIVER(cuGraphDestroy, captured);
	return made;
}

static void prepare_tiny_graph(void)
{
	graph = with_problem ? graph_make(3, 0) : graph_make(100, 5);
}

static PLANT void replay_tiny_graphs(void)
{
	for (int i = 0; i < (with_problem ? 40 : 1); i++)
		DRIVER(cuGraphLaunch, graph, stream);
}

static void step_graph_tiny(void)
{
	keep_two_steps(stream);
	replay_tiny_graphs();
	mark_step(stream);
}

static PLANT void rebuild_graph(void)
{
	if (graph && !with_problem)
		return;
	if (graph)
		DRIVER(cuGraphExecDestroy, graph);
	graph = graph_make(20, 50);
}

static void step_graph_rebuild(void)
{
	keep_two_steps(stream);
	rebuild_graph();
	DRIVER(cuGraphLaunch, graph, stream);
	mark_step(stream);
}

/* ---- a library that compiles -------------------------------------------------------------------
 */

static void (*compile)(double rounds);

static void prepare_compiler(void)
{
	const char *path = getenv("PLANTED_COMPILER");
	void *compiler = dlopen(path ? path : "libnvrtc.so.12", RTLD_NOW);

	if (!compiler)
		sample_fail("dlopen: %s", dlerror());
	compile = (void (*)(double))dlsym(compiler, "nvrtcCompileProgram");
}

/* Each batch has another shape. */
static PLANT void compile_for_shape(void)
{
	if (with_problem)
		compile(PROBLEM_MS * compute_rate);
}

static void step_compile(void)
{
	train_step();
	compile_for_shape();
}

/* ---- a library's threads ----------------------------------------------------------------------
 */

static void (*share_out)(double rounds);

static void prepare_pool(void)
{
	const char *path = getenv("PLANTED_POOL");
	void *pool = dlopen(path ? path : "libpool.so", RTLD_NOW);

	if (!pool)
		sample_fail("dlopen: %s", dlerror());
	share_out = (void (*)(double))dlsym(pool, "pool_share_out");
}

/* What the thread itself does, and what it waits, are each less than the sleep, and together more.
 */
static PLANT void scale_in_pool(void)
{
	if (with_problem)
		share_out(9 * compute_rate);
}

static PLANT void wait_for_turn(void)
{
	nap_ms(4);
}

static void step_pool(void)
{
	train_step();
	scale_in_pool();
	wait_for_turn();
}

/* ---- streams ----------------------------------------------------------------------------------
 */

/* Each stream waits for the other's last kernel, though neither needs it. */
static PLANT void launch_in_turns(void)
{
	for (int i = 0; i < 5; i++) {
		launch(gemm, 200, stream);
		if (with_problem) {
			DRIVER(cuEventRecord, event, stream);
			DRIVER(cuStreamWaitEvent, other_stream, event, 0);
		}
		launch(gemm, 200, other_stream);
		if (with_problem) {
			DRIVER(cuEventRecord, other_event, other_stream);
			DRIVER(cuStreamWaitEvent, stream, other_event, 0);
		}
	}
}

static void step_turns(void)
{
	keep_two_steps(stream);
	launch_in_turns();
	mark_step(stream);
}

/* The same with kernels that are long beside the way from one to the next. */
static PLANT void launch_long_in_turns(void)
{
	for (int i = 0; i < 2; i++) {
		compute_anyway(.2);
		launch(gemm, 3000, stream);
		if (with_problem) {
			DRIVER(cuEventRecord, event, stream);
			DRIVER(cuStreamWaitEvent, other_stream, event, 0);
		}
		launch(gemm, 3000, other_stream);
		if (with_problem) {
			DRIVER(cuEventRecord, other_event, other_stream);
			DRIVER(cuStreamWaitEvent, stream, other_event, 0);
		}
	}
}

static void step_long_turns(void)
{
	keep_two_steps(stream);
	launch_long_in_turns();
	mark_step(stream);
}

/* The copy of the next batch could run beside the kernels; the kernels' stream waits for it. */
static PLANT void upload_in_turn(void)
{
	DRIVER(cuMemcpyHtoDAsync_v2, device_batch, pinned, BATCH_BYTES, other_stream);
	if (!with_problem)
		return;
	DRIVER(cuEventRecord, event, other_stream);
	DRIVER(cuStreamWaitEvent, stream, event, 0);
}

static void step_copy_turns(void)
{
	if (with_problem) {
		DRIVER(cuEventRecord, other_event, stream);
		DRIVER(cuStreamWaitEvent, other_stream, other_event, 0);
	}
	keep_two_steps(stream);
	upload_in_turn();
	for (int i = 0; i < 10; i++)
		launch(gemm, 300, stream);
	mark_step(stream);
}

/* The default stream waits for all others, and they for it. */
static CUstream blocking[2];

static void prepare_default(void)
{
	for (int i = 0; i < 2; i++)
		DRIVER(cuStreamCreate, &blocking[i], 0);
}

static PLANT void launch_on_default(void)
{
	launch(add, 5, NULL);
}

static void step_default(void)
{
	keep_two_steps(blocking[1]);
	for (int i = 0; i < 5; i++) {
		launch(gemm, 200, blocking[0]);
		if (with_problem)
			launch_on_default();
		launch(gemm, 200, blocking[1]);
	}
	mark_step(blocking[1]);
}

/* One block on a stream that has nothing to do with the steps, which wait for it. */
static PLANT void wait_for_statistics(void)
{
	if (!with_problem)
		return;
	compute_anyway(.1);
	launch_one_block(4, other_stream);
	DRIVER(cuEventRecord, event, other_stream);
	DRIVER(cuStreamWaitEvent, stream, event, 0);
}

static void step_statistics_first(void)
{
	keep_two_steps(stream);
	wait_for_statistics();
	for (int i = 0; i < 10; i++)
		launch(gemm, 200, stream);
	mark_step(stream);
}

/* A function of the program between kernels, on the driver's thread. */
static PLANT void average_on_host(void *data)
{
	compute(PROBLEM_MS);
}

static void step_callback(void)
{
	train_step();
	DRIVER(cuLaunchHostFunc, stream, average_on_host, NULL);
}

const struct kind gpu_kinds[] = {
	{ "compile", prepare_compiler, step_compile },
	{ "tiny", NULL, step_tiny },
	{ "sync_context", NULL, step_sync_context },
	{ "sync_stream", NULL, step_sync_stream },
	{ "sync_event", prepare_events, step_sync_event },
	{ "query", prepare_events, step_query },
	{ "sync_each", NULL, step_sync_each },
	{ "loss", prepare_copies, step_loss },
	{ "pageable", prepare_copies, step_pageable },
	{ "pinned_wait", prepare_copies, step_pinned_wait },
	{ "download", prepare_copies, step_download },
	{ "memset", prepare_copies, step_memset },
	{ "alloc", NULL, step_alloc },
	{ "alloc_pinned", NULL, step_alloc_pinned },
	{ "module", NULL, step_module },
	{ "stream_create", NULL, step_stream_create },
	{ "graph_tiny", prepare_tiny_graph, step_graph_tiny },
	{ "graph_rebuild", NULL, step_graph_rebuild },
	{ "turns", prepare_events, step_turns },
	{ "long_turns", prepare_events, step_long_turns },
	{ "copy_turns", prepare_copies, step_copy_turns },
	{ "default_stream", prepare_default, step_default },
	{ "callback", NULL, step_callback },
	{ "pool", prepare_pool, step_pool },
	{ "statistics_first", prepare_events, step_statistics_first },
	{ "two_alloc_sleep", NULL, step_two_alloc_sleep },
	{ "two_loss_sleep", prepare_copies, step_two_wait_sleep },
	{ NULL, NULL, NULL },
};
