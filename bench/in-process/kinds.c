// SPDX-License-Identifier: MIT
/*
 * What calls of several kinds cost in a process that cuscope records; on the simulated driver:
 *
 *	make build/bench/in-process-kinds
 *	export LD_LIBRARY_PATH=build/simcuda/stub:build/simcuda
 *	cuscope record --in-process --all-calls -- chrt -f 5 build/bench/in-process-kinds 10
 *
 * kinds [SECONDS]: calls functions of the driver and the runtime of several kinds in turns, until
 * its time is over, and prints what one call took of the thread's own time in each window of
 * 20,000: the least of all windows, the median, and how many windows there were. The first half of
 * the time is not counted, so that a tool can begin.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALLS    20000
#define PAUSE_US 15000
#define WINDOWS  4096

typedef void *handle;

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(handle *context, int device);
int cuCtxSetCurrent(handle context);
int cuCtxGetDevice(int *device);
int cuDriverGetVersion(int *version);
int cuStreamQuery(handle stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, handle stream);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cudaGetDevice(int *device);
int cudaGetLastError(void);

static int *heap;
static _Thread_local int own;

static void on_stack(void)
{
	int device;

	cuCtxGetDevice(&device);
}

static void on_heap(void)
{
	cuCtxGetDevice(heap);
}

static void thread_local_memory(void)
{
	cuCtxGetDevice(&own);
}

static void two_outputs(void)
{
	unsigned flags;
	int active;

	cuDevicePrimaryCtxGetState(0, &flags, &active);
}

static void no_output(void)
{
	cuStreamQuery(NULL);
}

static void runtime_alone(void)
{
	cudaGetLastError();
}

static void nested(void)
{
	int device;

	cudaGetDevice(&device);
}

__attribute__((noinline)) static void deep(void)
{
	volatile char frame[300000];
	int device;

	frame[0] = frame[sizeof(frame) - 1] = 0;
	cuCtxGetDevice(&device);
}

/* From a place deep in the stack and from one above it, in turns. */
static void deep_and_not(void)
{
	deep();
	on_stack();
}

static struct kind {
	const char *name;
	void (*call)(void);
	int calls;
	double ns[WINDOWS];
	size_t windows;
} kinds[] = {
	{ "getter, output on the stack", on_stack, 1, { 0 }, 0 },
	{ "getter, output on the heap", on_heap, 1, { 0 }, 0 },
	{ "getter, output in thread-local memory", thread_local_memory, 1, { 0 }, 0 },
	{ "getter, two outputs", two_outputs, 1, { 0 }, 0 },
	{ "no output (cuStreamQuery)", no_output, 1, { 0 }, 0 },
	{ "runtime alone (cudaGetLastError)", runtime_alone, 1, { 0 }, 0 },
	{ "runtime and driver (cudaGetDevice)", nested, 1, { 0 }, 0 },
	{ "stack 300 KB deeper, and not, in turns", deep_and_not, 2, { 0 }, 0 },
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* With a pause behind it, in which a tool can read what was recorded. */
static void window(struct kind *kind, int count)
{
	uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < CALLS / kind->calls; i++)
		kind->call();
	if (count && kind->windows < WINDOWS)
		kind->ns[kind->windows++] =
			(double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / CALLS;
	usleep(PAUSE_US);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 4;
	uint64_t begin = now_ns(CLOCK_MONOTONIC), half = (uint64_t)(seconds * 5e8);
	handle context;
	int device;

	heap = malloc(sizeof(*heap));
	cuInit(0);
	if (cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device))
		return 1;
	cuCtxSetCurrent(context);
	while (now_ns(CLOCK_MONOTONIC) - begin < 2 * half)
		for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
			window(&kinds[i], now_ns(CLOCK_MONOTONIC) - begin > half);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct kind *kind = &kinds[i];

		qsort(kind->ns, kind->windows, sizeof(*kind->ns), compare);
		printf("| %s | %.0f | %.0f | %zu |\n", kind->name, kind->ns[0],
		       kind->ns[kind->windows / 2], kind->windows);
	}
	return 0;
}
