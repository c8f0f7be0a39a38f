// SPDX-License-Identifier: MIT
/*
 * A program that gives a tracer as much to remember as it can:
 *
 *   floods names N       kernels with names of 700 bytes that are 35 KiB when they are demangled
 *   floods handles N     launches of handles that lead to no name
 *   floods streams N     launches in as many streams
 *   floods errors N      calls that fail, each with an error of its own
 *   floods memory N      allocations that are never freed
 *   floods threads N     threads that make one call each
 *   floods processes N   processes that make one call each
 *   floods leavers N     processes that leave an allocation of 512 bytes behind and launch once
 *   floods stacks N      allocations, each on a stack of its own
 *   floods passing N     the same, each freed at once; 65,536 of them differ
 *
 * It brings its own driver, whose functions do nothing, and prints how many calls it made.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default"), noipa))

EXPORT int cuInit(unsigned flags);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes);
EXPORT int cuMemFree_v2(uint64_t address);
EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                          void **extra);

static long made;
static long error;
static uint64_t next_address = 0x7f0000000000;

int cuInit(unsigned flags)
{
	if (flags) /* no locked instruction first: it cannot be probed */
		return 1;
	__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
	return (int)error;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	made++;
	*function = module;
	return name ? 0 : 1;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	made++;
	*address = next_address;
	next_address += (bytes + 511) & ~511ull;
	return 0;
}

int cuMemFree_v2(uint64_t address)
{
	made++;
	return !address;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	made++;
	return function ? 0
	                : (int)(gx + gy + gz + bx + by + bz + shared + !!stream + !!params +
	                        !!extra);
}

static void launch(void *function, void *stream)
{
	cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

/* cuscope is to be what is measured, not what it loses when it cannot follow. */
static void breathe(long i)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	if (i % 64 == 63)
		nanosleep(&pause, NULL);
}

/* "_Z1f500x00000001xxx...S_S_S_...": the first parameter's type, 70 times. */
static const char *long_name(long i)
{
	static char name[1024];
	int at = snprintf(name, sizeof(name), "_Z1f500x%08ld", i);

	memset(name + at, 'x', 491);
	at += 491;
	for (int n = 0; n < 70; n++, at += 2)
		memcpy(name + at, "S_", 3);
	return name;
}

static void names(long n)
{
	for (long i = 0; i < n; i++, breathe(i)) {
		void *function, *handle = (void *)(0x10000 + 256 * i);

		cuModuleGetFunction(&function, handle, long_name(i));
		launch(handle, NULL);
	}
}

static void handles(long n)
{
	for (long i = 0; i < n; i++, breathe(i))
		launch((void *)(0x10000 + 256 * i), NULL);
}

static void streams(long n)
{
	for (long i = 0; i < n; i++, breathe(i))
		launch((void *)0x10000, (void *)(0x10000 + 256 * i));
}

static void errors(long n)
{
	for (error = 1; error <= n; error++, breathe(error))
		cuInit(0);
}

static void memory(long n)
{
	uint64_t address;

	for (long i = 0; i < n; i++, breathe(i))
		cuMemAlloc_v2(&address, 512);
}

static void *one_call(void *data)
{
	cuInit(0);
	return data;
}

static void threads(long n)
{
	pthread_t thread;

	for (long i = 0; i < n; i++) {
		if (pthread_create(&thread, NULL, one_call, NULL))
			exit(1);
		pthread_join(thread, NULL);
	}
}

static void processes(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			cuInit(0);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		made++;
	}
}

static void leavers(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			uint64_t address;

			cuMemAlloc_v2(&address, 512);
			launch((void *)0x10000, NULL);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		made += 2;
	}
}

/* Each bit of the number is one of two callers. */
static __attribute__((noinline)) long descend(long number, int bits);

static __attribute__((noinline)) long left(long number, int bits)
{
	return descend(number >> 1, bits - 1) + 1;
}

static __attribute__((noinline)) long right(long number, int bits)
{
	return descend(number >> 1, bits - 1) + 2;
}

static int frees;

static long descend(long number, int bits)
{
	uint64_t address;

	if (!bits && frees)
		return cuMemAlloc_v2(&address, 512) + cuMemFree_v2(address);
	if (!bits)
		return cuMemAlloc_v2(&address, 512) + (long)(address & 1);
	return (number & 1 ? left(number, bits) : right(number, bits)) + 1;
}

static void stacks(long n)
{
	for (long i = 0; i < n; i++, breathe(i))
		descend(i, 20);
}

/* Others of this program have others. */
static void passing(long n)
{
	long first = getpid() % 256 * 65536L;

	frees = 1;
	for (long i = 0; i < n; i++, breathe(i))
		descend(first + i % 65536, 48);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*flood)(long n);
	} floods[] = { { "names", names },         { "handles", handles }, { "streams", streams },
		       { "errors", errors },       { "memory", memory },   { "threads", threads },
		       { "processes", processes }, { "stacks", stacks },   { "leavers", leavers },
		       { "passing", passing } };

	if (argc != 3)
		return 2;
	cuInit(0);
	for (size_t i = 0; i < sizeof(floods) / sizeof(*floods); i++)
		if (!strcmp(argv[1], floods[i].name))
			floods[i].flood(atol(argv[2]));
	printf("%ld\n", made);
	return 0;
}
