/* SPDX-License-Identifier: MIT */
/*
 * GPU time without anybody who measures it: what a program put on a stream and then waited for ran
 * between the first of these launches and the end of the wait. Each of them is given an equal part
 * of that. It is too much where the GPU is idle between launches, and where streams share it.
 *
 * A wait that returns at once tells that the GPU was done before; then it is until the last launch
 * had returned.
 *
 * Launches with a long pause of the program between them are bursts, and it has to be decided
 * whether the GPU ran on through the pause. Nothing proves it either way. Had it a queue left, the
 * end of the pause would be an accident to it: it would rarely come just before all work was done.
 * So the GPU is taken to have been idle where all that came after the pause is short against it,
 * the wait included, and no call after it took long: a launch that blocks or a wait tells of a
 * queue. Else the pause is the GPU's time.
 *
 * A burst that ended with such a pause is taken to have ended as late after its last launch as the
 * wait lasted: so far the GPU was seen to be behind. The rule is then asked for the pause before
 * that burst. It is too little where the GPU did run in a pause and was done just before the end of
 * it, by up to the pause. It is too much, by the whole pause, where what came after was long and
 * the GPU idle. What is left out is told, so the true time is below the sum of both.
 *
 * Memory: ESTIMATE_EACH_BYTES of a process, ESTIMATE_ALL_BYTES of all, and what base/budget.h gives
 * each even where all is taken. It is given back when a wait or the end of the process comes.
 */
#ifndef CUSCOPE_PROFILE_ESTIMATE_H
#define CUSCOPE_PROFILE_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

#define ESTIMATE_EACH_BYTES ((size_t)8 << 20) /* 131,072 launches on one stream */
#define ESTIMATE_ALL_BYTES  ((size_t)24 << 20)

/* A shorter wait did not wait: on an H200 such calls take 2 to 10 us, and probes are added to that.
 */
#define ESTIMATE_WAIT_NS 20000

/* Shorter pauses are those between the calls of a program that is busy launching. */
#define ESTIMATE_PAUSE_NS 1000000

/* The GPU was idle in a pause: what came after took at most a quarter of it, no call a 16th. Less
 * would take the delays of a busy machine for a queue. */
#define ESTIMATE_AFTER_SHARE 4
#define ESTIMATE_CALL_SHARE  16

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

/* False, and counted, where there is no room for it: its time is given to the others. */
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

/* A process with this number has ended, or is another program now: nobody waits any more. */
void estimate_ended(struct estimate *estimate, uint32_t pid);

struct estimate_figures {
	uint64_t not_waited;  /* launches that nobody has waited for: yet, or before the end */
	uint64_t refused;     /* that there was no room for */
	uint32_t refused_pid; /* the first of these processes */
	uint64_t left_out_ns; /* pauses in which the GPU is taken to have been idle, of each stream
	                       */
};

void estimate_figures(const struct estimate *estimate, struct estimate_figures *figures);

#endif
