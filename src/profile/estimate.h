/* SPDX-License-Identifier: MIT */
/*
 * GPU time without anybody who measures it: what a program put on a stream and then waited for ran
 * between the first of these launches and the end of the wait. Each of them is given an equal part
 * of that. A wait that returns at once tells that the GPU was done before; then it is until the
 * last launch had returned. It is too much where the GPU is idle between launches, and where
 * streams share it.
 */
#ifndef CUSCOPE_PROFILE_ESTIMATE_H
#define CUSCOPE_PROFILE_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

#define ESTIMATE_WAITING_MAX                                                                       \
	(256u << 10)              /* launches that nobody has waited for yet: 56 bytes each */
#define ESTIMATE_STREAMS_MAX 4096 /* that have some */

/* A shorter wait did not wait: on an H200 such calls take 2 to 10 us, and probes are added to that.
 */
#define ESTIMATE_WAIT_NS 20000

struct estimate;

struct estimate *estimate_new(void);
void estimate_free(struct estimate *estimate); /* NULL is allowed */

/* A launch or copy; `name` is the caller's, and comes back with it. */
struct estimate_launch {
	void *name;
	const struct stack *stack;
	const struct process *process;
	uint32_t tid;
	uint64_t begin_ns, end_ns; /* of the call */
};

/* False where there is no room for it: its time is given to the others. */
bool estimate_add(struct estimate *estimate, uint64_t stream, const struct estimate_launch *launch);

/* A wait of a process for a stream, or for all of its streams. What it has ended is told. */
struct estimate_wait {
	const struct process *process;
	bool all;
	uint64_t stream;
	uint64_t begin_ns, end_ns;
};

typedef void (*estimate_fn)(void *data, const struct estimate_launch *launch, uint64_t ns);

void estimate_waited(struct estimate *estimate, const struct estimate_wait *wait, estimate_fn each,
                     void *data);

size_t estimate_waiting(const struct estimate *estimate); /* launches */

#endif
