/* SPDX-License-Identifier: MIT */
/* The function that bench/hooks hooks, with arguments of three kinds. */
#ifndef BENCH_CALLED_H
#define BENCH_CALLED_H

#include <stdint.h>

struct request {
	uint64_t id;
	uint32_t kind;
};

uint64_t called(uint64_t size, const struct request *request, const char *name);

#endif
