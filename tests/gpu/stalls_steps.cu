// SPDX-License-Identifier: MIT
/*
 * stalls_steps WORD...: CUPTI's PC sampling as it is, without cuscope: one way to call it, while
 * kernels are launched, and how long each call takes. For tests/gpu/stalls-steps, which tries many.
 *
 *   thread=main|own    who calls: the thread that launches, while the GPU is idle; or another one
 *   mode=window|start  a window is Enable to Disable, or Start to Stop
 *   kernels=0|1        records of kernels are on
 *   period=N, buffer=N powers of two of cycles, MiB; 0: CUPTI's own
 *   sync=0|1           cuCtxSynchronize before a window begins
 *   busy=0|1           launches go on all the time, without a wait in between
 *   ms=N, rounds=N     of a window; how many
 *   exit=off|on        it is left on at the exit
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/pcs_abi.h"

#define NODES  (1u << 22)
#define ROOM   4096
#define STALLS 128

static int number(int argc, char **argv, const char *name, int otherwise)
{
	size_t length = strlen(name);

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return argv[i][length + 1] >= 'a' ? argv[i][length + 1]
			                                  : atoi(argv[i] + length + 1);
	}
	return otherwise;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double begin_ms;
static int by_main, by_start, with_sync, window_ms, rounds, stays_on, period, buffer_mib, busy;
static void *cupti;
static CUcontext context;

/* ---- calls --------------------------------------------------------------------------------- */

static uint32_t call(const char *function, void *given)
{
	uint32_t (*address)(void *) = (uint32_t(*)(void *))dlsym(cupti, function);
	double from = now_ms();
	uint32_t result;

	printf("%8.1f ms  %s ...\n", from - begin_ms, function);
	fflush(stdout);
	result = address ? address(given) : 999;
	printf("%8.1f ms  %s: %u, %.1f ms\n", now_ms() - begin_ms, function, result,
	       now_ms() - from);
	fflush(stdout);
	return result;
}

static struct pcs_pc pcs[2][ROOM];
static struct pcs_stall stalls[2][ROOM][STALLS];
static struct pcs_data data[2];
static char names[STALLS][PCS_REASON_NAME], *name[STALLS];
static uint32_t reason_of[STALLS];
static size_t n_reasons;

static void prepare(void)
{
	for (int i = 0; i < 2; i++) {
		data[i].size = sizeof(data[i]);
		data[i].room = ROOM;
		data[i].pcs = pcs[i];
		for (int j = 0; j < ROOM; j++) {
			pcs[i][j].size = sizeof(pcs[i][j]);
			pcs[i][j].stalls = stalls[i][j];
		}
	}
	for (int i = 0; i < STALLS; i++)
		name[i] = names[i];
}

static const char *reason_name(uint32_t index)
{
	for (size_t i = 0; i < n_reasons; i++) {
		if (reason_of[i] == index)
			return names[i];
	}
	return "?";
}

/* What is in a buffer: samples with and without those "not issued", and the most frequent reason.
 */
static void show(const char *what, const struct pcs_data *from)
{
	unsigned long issued = 0, idle = 0, most = 0, by[1024] = { 0 };
	uint32_t which = 0;

	for (size_t i = 0; i < from->n && i < ROOM; i++) {
		for (size_t j = 0; j < from->pcs[i].n_stalls && j < STALLS; j++) {
			const struct pcs_stall *stall = &from->pcs[i].stalls[j];

			if (strstr(reason_name(stall->reason), "not_issued"))
				idle += stall->samples;
			else
				issued += stall->samples;
			if (stall->reason < 1024 && (by[stall->reason] += stall->samples) > most) {
				most = by[stall->reason];
				which = stall->reason;
			}
		}
	}
	printf("             %s: %zu PCs, %zu left; %llu samples, %llu dropped, %llu foreign; %lu "
	       "and "
	       "%lu not issued; most %s; buffer %s\n",
	       what, from->n, from->left, (unsigned long long)from->samples,
	       (unsigned long long)from->dropped, (unsigned long long)from->foreign_samples, issued,
	       idle, most ? reason_name(which) : "none", from->hardware_full ? "full" : "not full");
	fflush(stdout);
}

static void get(void)
{
	struct pcs_get given = { PCS_GET_BYTES, NULL, context, &data[1] };

	for (int i = 0; i < 8; i++) {
		data[1].n = data[1].left = 0;
		if (call("cuptiPCSamplingGetData", &given))
			break;
		show("given", &data[1]);
		if (!data[1].left)
			break;
	}
}

static uint32_t enable(void)
{
	struct pcs_context given = { PCS_CONTEXT_BYTES, NULL, context };
	struct pcs_count count = { PCS_COUNT_BYTES, NULL, context, &n_reasons };
	struct pcs_reasons reasons = { PCS_REASONS_BYTES, NULL, context, 0, reason_of, name };
	struct pcs_attribute attributes[8];
	struct pcs_configure configure = { PCS_CONFIGURE_BYTES, NULL, context, 0, attributes };
	uint32_t result = call("cuptiPCSamplingEnable", &given);

	if (result)
		return result;
	call("cuptiPCSamplingGetNumStallReasons", &count);
	if (n_reasons > STALLS)
		n_reasons = STALLS;
	reasons.n = n_reasons;
	call("cuptiPCSamplingGetStallReasons", &reasons);
	memset(attributes, 0, sizeof(attributes));
	attributes[0].type = PCS_REASONS;
	attributes[0].reasons.n = n_reasons;
	attributes[0].reasons.index = reason_of;
	attributes[1].type = PCS_MODE;
	attributes[1].number = PCS_MODE_CONTINUOUS;
	attributes[2].type = PCS_BUFFER;
	attributes[2].buffer = &data[0];
	attributes[3].type = PCS_FORMAT;
	attributes[3].number = PCS_FORMAT_PARSED;
	configure.n = 4;
	if (by_start) {
		attributes[configure.n].type = PCS_START_STOP;
		attributes[configure.n++].number = 1;
	}
	if (period) {
		attributes[configure.n].type = PCS_PERIOD;
		attributes[configure.n++].number = (uint32_t)period;
	}
	if (buffer_mib) {
		attributes[configure.n].type = PCS_HARDWARE_BYTES;
		attributes[configure.n++].bytes = (size_t)buffer_mib << 20;
	}
	result = call("cuptiPCSamplingSetConfigurationAttribute", &configure);
	for (size_t i = 0; i < configure.n; i++) {
		if (attributes[i].status)
			printf("             attribute %u: %u\n", attributes[i].type,
			       attributes[i].status);
	}
	return result;
}

static void disable(void)
{
	struct pcs_context given = { PCS_CONTEXT_BYTES, NULL, context };

	data[0].n = 0;
	call("cuptiPCSamplingDisable", &given);
	show("left by disabling", &data[0]);
}

static void synchronize(void)
{
	double from = now_ms();

	if (!with_sync)
		return;
	cuCtxSynchronize();
	printf("             cuCtxSynchronize: %.1f ms\n", now_ms() - from);
}

/* ---- windows ------------------------------------------------------------------------------- */

static int round_now, is_open;

static void window_begin(void)
{
	struct pcs_context given = { PCS_CONTEXT_BYTES, NULL, context };

	synchronize();
	if (!by_start || !round_now)
		enable();
	if (by_start)
		call("cuptiPCSamplingStart", &given);
	is_open = 1;
}

static void window_end(void)
{
	struct pcs_context given = { PCS_CONTEXT_BYTES, NULL, context };

	is_open = 0;
	if (stays_on && round_now == rounds - 1)
		return;
	if (by_start)
		call("cuptiPCSamplingStop", &given);
	get();
	if (by_start) {
		usleep(200000);
		get();
	}
	if (!by_start || round_now == rounds - 1)
		disable();
	round_now++;
}

static void *own_thread(void *unused)
{
	cuCtxSetCurrent(context);
	while (round_now < rounds && !(stays_on && round_now == rounds - 1 && is_open)) {
		window_begin();
		usleep((useconds_t)window_ms * 1000);
		if (stays_on && round_now == rounds - 1)
			break;
		window_end();
		usleep(300000);
	}
	return NULL;
}

/* ---- kernels ------------------------------------------------------------------------------- */

__global__ void chase(const unsigned int *next, unsigned int *out)
{
	unsigned int at = (blockIdx.x * blockDim.x + threadIdx.x) * 977 % NODES;

	for (int i = 0; i < 200; i++)
		at = next[at];
	out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

static void requested(uint8_t **buffer, size_t *bytes, size_t *most)
{
	*bytes = 256 << 10;
	*buffer = (uint8_t *)malloc(*bytes);
	*most = 0;
}

static void completed(void *ctx, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	free(buffer);
}

static void measure_kernels(void)
{
	uint32_t (*callbacks)(void (*)(uint8_t **, size_t *, size_t *),
	                      void (*)(void *, uint32_t, uint8_t *, size_t, size_t)) =
		(uint32_t(*)(void (*)(uint8_t **, size_t *, size_t *),
	                     void (*)(void *, uint32_t, uint8_t *, size_t,
	                              size_t)))dlsym(cupti, "cuptiActivityRegisterCallbacks");
	uint32_t (*enable_kind)(uint32_t) =
		(uint32_t(*)(uint32_t))dlsym(cupti, "cuptiActivityEnable");

	printf("kernels: callbacks %u", callbacks(requested, completed));
	printf(", enabled %u\n", enable_kind(10));
}

int main(int argc, char **argv)
{
	unsigned int *host = (unsigned int *)malloc(NODES * sizeof(*host)), *next, *out;
	double end_ms, tick, open_ms = 0, slowest = 0;
	unsigned long launches = 0;
	pthread_t thread;

	by_main = number(argc, argv, "thread", 'o') == 'm';
	by_start = number(argc, argv, "mode", 'w') == 's';
	with_sync = number(argc, argv, "sync", 0);
	window_ms = number(argc, argv, "ms", 20);
	rounds = number(argc, argv, "rounds", 3);
	period = number(argc, argv, "period", 20);
	buffer_mib = number(argc, argv, "buffer", 256);
	busy = number(argc, argv, "busy", 0);
	for (int i = 1; i < argc; i++)
		stays_on |= !strcmp(argv[i], "exit=on");
	cupti = dlopen(getenv("LIBCUPTI") ? getenv("LIBCUPTI") : "libcupti.so.13", RTLD_NOW);
	if (!cupti) {
		printf("no libcupti: %s\n", dlerror());
		return 1;
	}
	for (unsigned int i = 0; i < NODES; i++)
		host[i] = (i * 1664525u + 1013904223u) % NODES;
	cudaMalloc(&next, NODES * sizeof(*host));
	cudaMalloc(&out, 1056 * 256 * sizeof(*host));
	cudaMemcpy(next, host, NODES * sizeof(*host), cudaMemcpyHostToDevice);
	chase<<<1056, 256>>>(next, out);
	cudaDeviceSynchronize();
	cuCtxGetCurrent(&context);
	prepare();
	if (number(argc, argv, "kernels", 0))
		measure_kernels();
	begin_ms = tick = now_ms();
	end_ms = begin_ms + 1000 + rounds * (window_ms + 800);
	if (!by_main && pthread_create(&thread, NULL, own_thread, NULL))
		return 1;
	while (now_ms() < end_ms) {
		double from = now_ms();

		if (by_main && !is_open && round_now < rounds &&
		    from - begin_ms > 300 + round_now * (window_ms + 500)) {
			cudaDeviceSynchronize();
			window_begin();
			open_ms = now_ms();
		}
		if (by_main && is_open && now_ms() - open_ms > window_ms &&
		    !(stays_on && round_now == rounds - 1)) {
			cudaDeviceSynchronize();
			window_end();
		}
		from = now_ms();
		for (int i = 0; i < 4; i++)
			chase<<<1056, 256>>>(next, out);
		if (!busy)
			cudaDeviceSynchronize();
		launches += 4;
		if (now_ms() - from > slowest)
			slowest = now_ms() - from;
		if (now_ms() - tick < 500)
			continue;
		printf("%8.1f ms  launches %lu, the longest four took %.1f ms\n",
		       now_ms() - begin_ms, launches, slowest);
		fflush(stdout);
		launches = 0;
		slowest = 0;
		tick = now_ms();
	}
	if (!by_main && !stays_on)
		pthread_join(thread, NULL);
	printf("%8.1f ms  exit\n", now_ms() - begin_ms);
	fflush(stdout);
	return 0;
}
