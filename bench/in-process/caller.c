// SPDX-License-Identifier: MIT
/*
 * The program that is recorded: caller MEMFD cost|rate. It loads the recorder, and calls a function
 * of eleven arguments, as cuLaunchKernel has, by its thunk. Prints JSON.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/probes.h"
#include "agent/lib/ticks.h"
#include "shim.h"

#define ROUNDS  60
#define CALLS   20000 /* a window of a round */
#define SECONDS 5
#define BATCH   32
#define RATE    3000000.0 /* of all threads */
#define THREADS 2

typedef int launch_fn(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      void *, void **, void **);

static __typeof__(&shim_open) open_probes;
static __typeof__(&shim_close) close_probes;
static __typeof__(&shim_thunk) thunk_of;
static __typeof__(&shim_waits) waits;
static volatile unsigned sum;

__attribute__((noinline, noipa)) static int launch(void *f, unsigned gx, unsigned gy, unsigned gz,
                                                   unsigned bx, unsigned by, unsigned bz,
                                                   unsigned shared, void *stream, void **args,
                                                   void **extra)
{
	sum += gx + gy + gz + bx + by + bz + shared;
	return 0;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void load(const char *own)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%.*s/libprobes.so", (int)(strrchr(own, '/') - own), own);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "caller: %s\n", dlerror());
		exit(1);
	}
	open_probes = (__typeof__(open_probes))dlsym(library, "shim_open");
	close_probes = (__typeof__(close_probes))dlsym(library, "shim_close");
	thunk_of = (__typeof__(thunk_of))dlsym(library, "shim_thunk");
	waits = (__typeof__(waits))dlsym(library, "shim_waits");
}

/* ---- what a call costs --------------------------------------------------------------------- */

enum what { BARE, PASSED_ON, IN_TICKS, IN_NS, TWO_TICKS, TWO_NS, WHATS };

static const char *const names[] = { "bare",        "passed_on", "recorded_ticks",
	                             "recorded_ns", "two_ticks", "two_ns" };

/* Of the thread's own time: others use the processor, too. */
static double window(enum what what, launch_fn *call)
{
	uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < CALLS; i++) {
		if (what == TWO_TICKS)
			sum += (unsigned)(ticks_now() + ticks_now());
		else if (what == TWO_NS)
			sum += (unsigned)(now_ns(CLOCK_MONOTONIC) + now_ns(CLOCK_MONOTONIC));
		else
			call((void *)1, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	}
	return (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / CALLS;
}

static void drain(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	while (waits())
		nanosleep(&pause, NULL);
}

static void print_figure(const char *name, const double *of, bool last)
{
	double mean = 0, spread = 0;

	for (int i = 0; i < ROUNDS; i++)
		mean += of[i] / ROUNDS;
	for (int i = 0; i < ROUNDS; i++)
		spread += (of[i] - mean) * (of[i] - mean) / (ROUNDS - 1);
	printf("\"%s\": [%.1f, %.1f]%s", name, mean, 1.96 * sqrt(spread / ROUNDS),
	       last ? "" : ", ");
}

static void cost(int memfd)
{
	static double ns[WHATS][ROUNDS];
	launch_fn *thunk = (launch_fn *)thunk_of(1, (const void *)launch, PROBE_CALL);
	launch_fn *passes = (launch_fn *)thunk_of(2, (const void *)launch, PROBE_PASSES_ON);

	for (int round = -1; round < ROUNDS; round++) {
		for (int what = 0; what < WHATS; what++) {
			double took;

			if (what == IN_TICKS || what == IN_NS)
				open_probes(memfd,
				            what == IN_TICKS ? AGENT_CLOCK_TICKS : AGENT_CLOCK_NS);
			took = window((enum what)what, what == BARE        ? launch
			                               : what == PASSED_ON ? passes
			                                                   : thunk);
			if (what == IN_TICKS || what == IN_NS)
				close_probes();
			drain();
			if (round >= 0)
				ns[what][round] = took;
		}
	}
	printf("{\"calls\": %d, ", 2 * (ROUNDS + 1) * CALLS);
	for (int what = 0; what < WHATS; what++)
		print_figure(names[what], ns[what], what == WHATS - 1);
	printf("}\n");
}

/* ---- how many a second --------------------------------------------------------------------- */

struct thread {
	pthread_t thread;
	launch_fn *call;
	uint64_t calls, cpu_ns;
};

/* At a rate: a thread that is late makes up for it. */
static void *keep_rate(void *data)
{
	struct thread *thread = data;
	const struct timespec pause = { .tv_nsec = 500000 };
	uint64_t begin = now_ns(CLOCK_MONOTONIC), now = begin;

	while (now - begin < SECONDS * 1000000000ull) {
		uint64_t due = (uint64_t)((double)(now - begin) * RATE / THREADS / 1e9);

		while (thread->calls < due) {
			for (int i = 0; i < BATCH; i++)
				thread->call((void *)1, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
			thread->calls += BATCH;
		}
		nanosleep(&pause, NULL);
		now = now_ns(CLOCK_MONOTONIC);
	}
	thread->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void rate(int memfd)
{
	struct thread threads[THREADS] = { 0 };
	uint64_t calls = 0, cpu_ns = 0, begin, end;

	open_probes(memfd, AGENT_CLOCK_TICKS);
	begin = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < THREADS; i++) {
		threads[i].call = (launch_fn *)thunk_of(1, (const void *)launch, PROBE_CALL);
		pthread_create(&threads[i].thread, NULL, keep_rate, &threads[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].thread, NULL);
		calls += threads[i].calls;
		cpu_ns += threads[i].cpu_ns;
	}
	end = now_ns(CLOCK_MONOTONIC);
	close_probes();
	drain();
	printf("{\"calls\": %llu, \"seconds\": %.3f, \"a_second\": %.0f, \"cpu_ns\": %.1f}\n",
	       (unsigned long long)calls, (double)(end - begin) / 1e9,
	       (double)calls * 1e9 / (double)(end - begin), (double)cpu_ns / (double)calls);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	load(argv[0]);
	if (!strcmp(argv[2], "cost"))
		cost(atoi(argv[1]));
	else
		rate(atoi(argv[1]));
	return 0;
}
