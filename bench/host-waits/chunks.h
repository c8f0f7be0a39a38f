/* SPDX-License-Identifier: MIT */
/*
 * A program that does the same again and again until it gets SIGTERM, and then prints how long that
 * took: a line for each 10 ms, when they began and ended, and how often it was done meanwhile.
 */
#ifndef CHUNKS_H
#define CHUNKS_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHUNK_NS   10000000ull
#define CHUNKS_MAX 60000 /* ten minutes */

static volatile sig_atomic_t chunks_end;

static inline uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The same number of instructions each time, and as many as took `ns` when the program began. */
static inline void chunks_compute(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		;
}

static inline uint64_t chunks_turns(uint64_t ns)
{
	uint64_t best = UINT64_MAX, turns = 1000000;

	for (int i = 0; i < 20; i++) {
		uint64_t begin = now_ns(), took;

		chunks_compute(turns);
		took = now_ns() - begin;
		best = took < best ? took : best;
	}
	return ns * turns / best;
}

static void chunks_stop(int signal)
{
	(void)signal;
	chunks_end = 1;
}

/* `once` is not 0 when it failed. */
static inline int chunks_run(int (*once)(void *), void *data)
{
	static struct {
		uint64_t begin_ns, end_ns, n;
	} chunk[CHUNKS_MAX];
	size_t n = 0;

	signal(SIGTERM, chunks_stop);
	printf("ready\n");
	fflush(stdout);
	for (; !chunks_end && n < CHUNKS_MAX; n++) {
		uint64_t now = chunk[n].begin_ns = now_ns();

		for (; now - chunk[n].begin_ns < CHUNK_NS; now = now_ns(), chunk[n].n++)
			if (once(data))
				return 1;
		chunk[n].end_ns = now;
	}
	for (size_t i = 0; i < n; i++)
		printf("%llu %llu %llu\n", (unsigned long long)chunk[i].begin_ns,
		       (unsigned long long)chunk[i].end_ns, (unsigned long long)chunk[i].n);
	return 0;
}

#endif
