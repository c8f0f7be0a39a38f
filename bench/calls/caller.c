// SPDX-License-Identifier: MIT
/*
 * The program that bench/calls traces. It calls the functions of libentries.so as it is told on
 * its standard input, one command a line, and answers each with one line of JSON:
 *
 *   loop CALLS                    CALLS calls of each shape: {"push": NS, "endbr64": NS, "stub":
 * NS} pace RATE THREADS SECONDS     RATE calls a second in all, 0 for as fast as it goes:
 *                                 {"calls": N, "seconds": S}
 *   init                          calls cuInit, which tells a tracer that CUDA works: {"init":
 * RESULT} watch all|shapes SECONDS      calls until every watched function is hooked, which is seen
 * by what a call costs: {"ready_ns": CLOCK_MONOTONIC} or 0
 *
 * One process serves all runs, bare and traced, so that nothing but the tracer differs.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"

typedef int entry_fn(int a, long b);
entry_fn cuInit, cuBenchPush, cuBenchEndbr, cuBenchStub, cuBenchPaced, cuFiller1000, cuFiller2094;

#define NS_PER_S 1000000000ull

/* A trap costs more than this on any machine, a call and two readings of the clock less. */
#define TRAP_NS 150
/* So many slow calls in a row are a hook; fewer may be an interrupt. */
#define SLOW_CALLS 16

struct shape {
	const char *name;
	entry_fn *fn;
};

static const struct shape shapes[] = {
	{ "push", cuBenchPush },
	{ "endbr64", cuBenchEndbr },
	{ "stub", cuBenchStub },
};
#define N_SHAPES (ARRAY_SIZE(shapes))

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* What others do on the machine meanwhile is not counted. */
static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- loop ---------------------------------------------------------------------------------- */

static void loop(unsigned long calls)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		uint64_t begin = cpu_ns();
		for (unsigned long i = 0; i < calls; i++)
			shapes[s].fn(i, i);
		double ns = (double)(cpu_ns() - begin) / calls;
		printf("%s\"%s\": %.2f", s ? ", " : "{", shapes[s].name, ns);
	}
	printf("}\n");
}

/* ---- pace ---------------------------------------------------------------------------------- */

struct pacer {
	pthread_t thread;
	double rate; /* calls a second, 0: no limit */
	uint64_t begin_ns, end_ns;
	uint64_t calls;
};

/* The clock is read after as many calls at the latest. */
#define BURST_MAX 2000

/* Bursts of a millisecond with sleep between them: spinning would take the tracer's processor. */
static void *pacer_run(void *arg)
{
	struct pacer *p = arg;
	uint64_t tick = p->begin_ns, now;

	while ((now = now_ns()) < p->end_ns) {
		uint64_t due = p->rate * (now - p->begin_ns) / NS_PER_S;
		if (p->rate == 0 || due > p->calls + BURST_MAX)
			due = p->calls + BURST_MAX;
		for (; p->calls < due; p->calls++)
			cuBenchPaced(0, p->calls);
		if (p->rate > 0) { /* a tick that has passed is no sleep */
			tick += NS_PER_S / 1000;
			struct timespec t = { tick / NS_PER_S, tick % NS_PER_S };
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		}
	}
	return NULL;
}

static void pace(double rate, unsigned threads, double seconds)
{
	struct pacer pacers[64];
	uint64_t begin = now_ns(), calls = 0;

	if (threads < 1 || threads > 64)
		threads = 1;
	for (unsigned i = 0; i < threads; i++) {
		pacers[i] = (struct pacer){ .rate = rate / threads,
			                    .begin_ns = begin,
			                    .end_ns = begin + seconds * NS_PER_S };
		if (pthread_create(&pacers[i].thread, NULL, pacer_run, &pacers[i])) {
			perror("pthread_create");
			exit(1);
		}
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(pacers[i].thread, NULL);
		calls += pacers[i].calls;
	}
	printf("{\"calls\": %" PRIu64 ", \"seconds\": %.3f}\n", calls,
	       (double)(now_ns() - begin) / NS_PER_S);
}

/* ---- watch --------------------------------------------------------------------------------- */

static uint64_t timed_call(entry_fn *fn)
{
	uint64_t begin = now_ns();
	fn(0, 0);
	return now_ns() - begin;
}

/* The first hook can be any of these: those of each shape, and the ends of the library. */
static entry_fn *const watched[] = { cuFiller1000, cuBenchPush, cuBenchEndbr, cuBenchStub,
	                             cuFiller2094 };
#define N_WATCHED (ARRAY_SIZE(watched))

static bool is_hooked(entry_fn *fn)
{
	for (int i = 0; i < SLOW_CALLS; i++)
		if (timed_call(fn) < TRAP_NS)
			return false;
	return true;
}

/* `all`: the fillers too, else the three shapes only. */
static void watch(bool all, double seconds)
{
	uint64_t deadline = now_ns() + seconds * NS_PER_S, ready = 0;

	for (size_t i = all ? 0 : 1, n = all ? N_WATCHED : N_WATCHED - 1; i < n; i++) {
		while (!is_hooked(watched[i])) {
			if (now_ns() > deadline) {
				printf("{\"ready_ns\": 0}\n");
				return;
			}
		}
		ready = now_ns();
	}
	printf("{\"ready_ns\": %" PRIu64 "}\n", ready);
}

int main(void)
{
	char line[128], what[16];
	double rate, seconds;
	unsigned long calls;
	unsigned threads;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("{\"pid\": %d}\n", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "loop %lu", &calls) == 1)
			loop(calls);
		else if (sscanf(line, "pace %lf %u %lf", &rate, &threads, &seconds) == 3)
			pace(rate, threads, seconds);
		else if (!strcmp(line, "init\n"))
			printf("{\"init\": %d}\n", cuInit(0, 0));
		else if (sscanf(line, "watch %15s %lf", what, &seconds) == 2)
			watch(!strcmp(what, "all"), seconds);
		else
			printf("{\"error\": \"unknown command\"}\n");
	}
	return 0;
}
