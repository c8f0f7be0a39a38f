// SPDX-License-Identifier: MIT
/*
 * places PLACES DEPTH ROUNDS [keep]: in each round memory is allocated in as many places as were
 * asked for, each with a stack of its own: DEPTH frames, of which PLACES kinds differ. It is freed
 * at once, or kept.
 */
#include <string.h>

#include "sample.h"

/* A call of such a function is a call: it is neither put into its caller nor known to it. */
#define APART      __attribute__((noipa))
#define NOT_LAST() asm volatile("" ::: "memory")

static bool keep;

APART static void allocate(void)
{
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, 256);
	count_alloc("device", 256);
	if (keep)
		return;
	DRIVER(cuMemFree_v2, memory);
	count_free("device", 256);
}

static void go_on(unsigned place, long depth);

APART static void left(unsigned place, long depth)
{
	go_on(place >> 1, depth - 1);
	NOT_LAST();
}

APART static void right(unsigned place, long depth)
{
	go_on(place >> 1, depth - 1);
	NOT_LAST();
}

/* Into which of the two is the place's lowest bit. */
static inline __attribute__((always_inline)) void go_on(unsigned place, long depth)
{
	if (depth <= 0)
		allocate();
	else if (place & 1)
		right(place, depth);
	else
		left(place, depth);
}

int main(int argc, char **argv)
{
	long places = sample_number(argc, argv, 1, 10), depth = sample_number(argc, argv, 2, 20);
	long rounds = sample_number(argc, argv, 3, 1);

	keep = argc > 4 && !strcmp(argv[4], "keep");
	sample_context();
	for (long round = 0; round < rounds; round++)
		for (long place = 0; place < places; place++)
			go_on((unsigned)place, depth);
	return sample_end();
}
