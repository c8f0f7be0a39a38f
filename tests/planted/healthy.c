// SPDX-License-Identifier: MIT
/* Nothing is wrong: the GPU always has work before it needs it. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "planted.h"

static CUstream other_stream;
static CUevent copied[2], used[2];
static CUdeviceptr device_batch[2];
static char *pinned;
static CUgraphExec graph;
#define BATCH_BYTES ((size_t)4 << 20)

static void step_busy(void)
{
	train_step();
}

static void prepare_other(void)
{
	DRIVER(cuStreamCreate, &other_stream, CU_STREAM_NON_BLOCKING);
}

static void step_streams(void)
{
	keep_two_steps(stream);
	for (int i = 0; i < 5; i++) {
		launch(gemm, 200, stream);
		launch(gemm, 190, other_stream);
	}
	mark_step(stream);
}

/* One block that is as long as a step, and that nobody waits for. */
static void step_small(void)
{
	keep_two_steps(stream);
	launch_one_block(1, other_stream);
	for (int i = 0; i < 5; i++)
		launch(gemm, 200, stream);
	mark_step(stream);
}

static void prepare_graph(void)
{
	CUgraph captured;

	DRIVER(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	for (int i = 0; i < 50; i++)
		launch(add, 40, stream);
	DRIVER(cuStreamEndCapture, stream, &captured);
	DRIVER(cuGraphInstantiateWithFlags, &graph, captured, 0);
}

static void step_graph(void)
{
	keep_two_steps(stream);
	DRIVER(cuGraphLaunch, graph, stream);
	mark_step(stream);
}

/* Copies beside kernels, two buffers in turn. */
static void prepare_overlap(void)
{
	prepare_other();
	DRIVER(cuMemHostAlloc, (void **)&pinned, BATCH_BYTES, 0);
	memset(pinned, 1, BATCH_BYTES);
	for (int i = 0; i < 2; i++) {
		DRIVER(cuMemAlloc_v2, &device_batch[i], BATCH_BYTES);
		DRIVER(cuEventCreate, &copied[i], CU_EVENT_DISABLE_TIMING);
		DRIVER(cuEventCreate, &used[i], CU_EVENT_DISABLE_TIMING);
	}
}

static void step_overlap(void)
{
	static int n;
	int i = n++ % 2;

	keep_two_steps(stream);
	DRIVER(cuStreamWaitEvent, other_stream, used[i], 0);
	DRIVER(cuMemcpyHtoDAsync_v2, device_batch[i], pinned, BATCH_BYTES, other_stream);
	DRIVER(cuEventRecord, copied[i], other_stream);
	DRIVER(cuStreamWaitEvent, stream, copied[1 - i], 0);
	for (int k = 0; k < 10; k++)
		launch(gemm, 300, stream);
	DRIVER(cuEventRecord, used[1 - i], stream);
	mark_step(stream);
}

/* A thread that has the next batch ready in time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long ready;

static PLANT void load_ahead(void)
{
	compute(1);
}

static void *run_loader(void *data)
{
	for (;;) {
		load_ahead();
		pthread_mutex_lock(&lock);
		while (ready >= 4)
			pthread_cond_wait(&changed, &lock);
		ready++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return data;
}

static void prepare_loader(void)
{
	thread_begin(run_loader);
}

static void step_loader(void)
{
	keep_two_steps(stream);
	pthread_mutex_lock(&lock);
	while (ready == 0)
		pthread_cond_wait(&changed, &lock);
	ready--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 10; i++)
		launch(gemm, 400, stream);
	mark_step(stream);
}

static void *run_sleeper(void *data)
{
	for (;;)
		nap_ms(20);
	return data;
}

static PLANT void gather_statistics(void)
{
	compute(3);
}

static void *run_statistics(void *data)
{
	for (;;) {
		gather_statistics();
		nap_ms(10);
	}
	return data;
}

static void prepare_sleepers(void)
{
	for (int i = 0; i < 4; i++)
		thread_begin(run_sleeper);
}

static void prepare_statistics(void)
{
	thread_begin(run_statistics);
}

static void *run_writer(void *data)
{
	static char bytes[1 << 20];
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/planted-healthy-%d", folder, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	fail_if(fd < 0, path);
	unlink(path);
	for (;;) {
		fail_if(pwrite(fd, bytes, sizeof(bytes), 0) < 0 || fsync(fd) < 0, "write");
		nap_ms(100);
	}
	return data;
}

static void prepare_writer(void)
{
	thread_begin(run_writer);
}

/* A wait once in a hundred steps. */
static void step_rare_wait(void)
{
	static long n;

	train_step();
	if (++n % 100 == 0)
		DRIVER(cuStreamSynchronize, stream);
}

/* The host works, too, but less than the GPU. */
static void step_host_work(void)
{
	train_step();
	compute_anyway(.3);
}

/* A start that takes long is no problem of the steps after it. */
static void prepare_cold(void)
{
	nap_ms(200);
	compute_anyway(100);
}

static PLANT void *run_second(void *data)
{
	CUstream own;
	CUevent done[2];

	DRIVER(cuCtxSetCurrent, context);
	DRIVER(cuStreamCreate, &own, CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < 2; i++)
		DRIVER(cuEventCreate, &done[i], CU_EVENT_DISABLE_TIMING);
	for (long n = 0;; n++) {
		if (n >= 2)
			DRIVER(cuEventSynchronize, done[n % 2]);
		for (int i = 0; i < 5; i++)
			launch(gemm, 200, own);
		DRIVER(cuEventRecord, done[n % 2], own);
	}
	return data;
}

static void prepare_second(void)
{
	thread_begin(run_second);
}

/* Kernels that are long: the host sleeps while they run, and is back in time. */
static void step_long_kernels(void)
{
	keep_two_steps(stream);
	launch(gemm, 12000, stream);
	mark_step(stream);
	nap_ms(4);
}

static void nothing_on_host(void *data)
{
}

static void step_callback(void)
{
	train_step();
	DRIVER(cuLaunchHostFunc, stream, nothing_on_host, NULL);
}

const struct kind healthy_kinds[] = {
	{ "busy", NULL, step_busy },
	{ "busy_streams", prepare_other, step_streams },
	{ "busy_small", prepare_other, step_small },
	{ "busy_graph", prepare_graph, step_graph },
	{ "busy_overlap", prepare_overlap, step_overlap },
	{ "busy_loader", prepare_loader, step_loader },
	{ "busy_sleepers", prepare_sleepers, step_busy },
	{ "busy_statistics", prepare_statistics, step_busy },
	{ "busy_writer", prepare_writer, step_busy },
	{ "busy_rare_wait", NULL, step_rare_wait },
	{ "busy_host_work", NULL, step_host_work },
	{ "busy_cold", prepare_cold, step_busy },
	{ "busy_threads", prepare_second, step_busy },
	{ "busy_long", NULL, step_long_kernels },
	{ "busy_callback", NULL, step_callback },
	{ NULL, NULL, NULL },
};
