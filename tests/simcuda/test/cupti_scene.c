// SPDX-License-Identifier: MIT
#include "cupti_scene.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEFINE(name, params) enum result(*name) params;
CUPTI_FUNCTIONS(DEFINE)
#undef DEFINE

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry " TICK "() { ret; }\n";

void *driver_library;
uint32_t version;
struct seen seen;
struct manner manner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule module;
static bool session;
static handle subscribed;
static void *given[4096]; /* buffers that have not come back */

static void defaults(void)
{
	memset(&seen, 0, sizeof(seen));
	manner = (struct manner){ .buffer_bytes = 65536 };
}

int scene_open(void **state)
{
	const char *name = getenv("CUPTI");
	void *cupti;
	CUcontext ctx;

	driver_library = dlopen("libcuda.so.1", RTLD_NOW);
	cupti = dlopen(name ? name : "libcupti.so.13", RTLD_NOW);
	if (!driver_library || !cupti) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
#define FIND(name, params) name = (enum result(*) params)dlsym(cupti, #name);
	CUPTI_FUNCTIONS(FIND)
#undef FIND
	cuptiGetVersion(&version);
	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxRetain, &ctx, 0);
	OK(cuCtxSetCurrent, ctx);
	OK(cuModuleLoadData, &module, ptx);
	defaults();
	return 0;
}

/* As it is safe: kinds first. After graphs it is not, and CUPTI stays. */
static void leave(void)
{
	static const uint32_t kinds[] = {
#define KIND(kind, ...) kind,
		RECORD_VERSIONS(KIND)
#undef KIND
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cuptiActivityDisable(kinds[i]);
	cuptiActivityFlushAll(FLAG_FLUSH_FORCED);
	if (manner.graphs)
		cuptiUnsubscribe(subscribed);
	else
		cuptiFinalize();
}

void scene_end(void)
{
	if (session)
		leave();
	session = false;
	/* What it still had is the program's own again. */
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		free(given[i]);
		given[i] = NULL;
	}
}

int scene_clean(void **state)
{
	CU(cuCtxSynchronize)();
	scene_end();
	defaults();
	return 0;
}

uint64_t monotonic(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the program ----------------------------------------------------------------------------- */

static uint64_t thread_bit(void)
{
	static __thread uint64_t bit;
	static uint64_t next = 1;
	if (!bit) {
		bit = next;
		next = next << 1 ? next << 1 : next;
	}
	return bit;
}

static void given_swap(void *from, void *to)
{
	size_t i = 0;
	while (i + 1 < sizeof(given) / sizeof(given[0]) && given[i] != from)
		i++;
	given[i] = to;
}

void request(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	*bytes = manner.buffer_bytes;
	*buffer = *bytes ? aligned_alloc(8, *bytes) : NULL;
	*max_records = manner.max_records;
	pthread_mutex_lock(&lock);
	seen.requested++;
	if (*buffer)
		given_swap(NULL, *buffer);
	pthread_mutex_unlock(&lock);
}

/* Records are as long as the release has them: up to the next one. */
void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	struct record *record = NULL;
	pthread_mutex_lock(&lock);
	enum result more = cuptiActivityGetNextRecord(buffer, valid, &record);
	while (more == RESULT_SUCCESS && seen.n < sizeof(seen.record) / sizeof(seen.record[0])) {
		uint8_t *begin = (uint8_t *)record;
		more = cuptiActivityGetNextRecord(buffer, valid, &record);
		uint8_t *end = more == RESULT_SUCCESS ? (uint8_t *)record : buffer + valid;
		memcpy(&seen.record[seen.n++], begin, (size_t)(end - begin));
	}
	seen.buffers++;
	seen.threads |= thread_bit();
	if (buffer)
		given_swap(buffer, NULL);
	pthread_mutex_unlock(&lock);
	free(buffer);
}

void tell(void *user, uint32_t domain, uint32_t site, const void *data)
{
	const struct callback_data *call = data;
	pthread_mutex_lock(&lock);
	seen.calls++;
	struct told *told = &seen.told[seen.n_told < 255 ? seen.n_told++ : 255];
	*told = (struct told){ .domain = domain,
		               .site = site,
		               .correlation = call->correlation,
		               .context = call->context_number,
		               .exit = call->site == 1,
		               .result = call->site == 1 ? *(int *)call->result : -1,
		               .data = *call->data };
	snprintf(told->function, sizeof(told->function), "%s", call->function);
	snprintf(told->symbol, sizeof(told->symbol), "%s", call->symbol ? call->symbol : "");
	memcpy(told->params, call->params, manner.params_bytes);
	*call->data = 4711;
	pthread_mutex_unlock(&lock);
	if (manner.finalize && call->site == 1) {
		manner.finalize = false;
		session = false;
		leave();
	}
}

handle scene_start(const uint32_t *kinds)
{
	handle subscriber;
	SUCCEEDS(cuptiSubscribe(&subscriber, tell, NULL));
	session = true;
	subscribed = subscriber;
	if (cuptiActivityRegisterTimestampCallback)
		SUCCEEDS(cuptiActivityRegisterTimestampCallback(monotonic));
	SUCCEEDS(cuptiActivityRegisterCallbacks(request, complete));
	for (; *kinds; kinds++)
		SUCCEEDS(cuptiActivityEnable(*kinds));
	return subscriber;
}

/* ---- work ------------------------------------------------------------------------------------ */

CUfunction tick_function(void)
{
	CUfunction function;
	OK(cuModuleGetFunction, &function, module, TICK);
	return function;
}

void launch(CUstream stream)
{
	OK(cuLaunchKernel, tick_function(), 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

CUstream new_stream(void)
{
	CUstream stream;
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	return stream;
}

CUgraphExec two_kernels(void)
{
	CUDA_KERNEL_NODE_PARAMS params = { .func = tick_function(),
		                           .gridDimX = 1,
		                           .gridDimY = 1,
		                           .gridDimZ = 1,
		                           .blockDimX = 1,
		                           .blockDimY = 1,
		                           .blockDimZ = 1 };
	CUgraph graph;
	CUgraphNode first, second;
	CUgraphExec exec;
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphAddKernelNode_v2, &first, graph, NULL, 0, &params);
	OK(cuGraphAddKernelNode_v2, &second, graph, &first, 1, &params);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphDestroy, graph);
	return exec;
}

void wait_for_all(void)
{
	OK(cuCtxSynchronize);
	SUCCEEDS(cuptiActivityFlushAll(0));
}

size_t records_now(void)
{
	pthread_mutex_lock(&lock);
	size_t n = seen.n;
	pthread_mutex_unlock(&lock);
	return n;
}

size_t count_kind(uint32_t kind)
{
	size_t n = 0;
	for (size_t i = 0; i < seen.n; i++)
		n += seen.record[i].kind == kind;
	return n;
}

const union any_record *nth(uint32_t kind, size_t n)
{
	for (size_t i = 0; i < seen.n; i++) {
		if (seen.record[i].kind == kind && n-- == 0)
			return &seen.record[i];
	}
	fail_msg("only %zu records of kind %u", count_kind(kind), kind);
	return NULL;
}
