/* SPDX-License-Identifier: MIT */
/* One piece of work for the device: what a stream's queue and a graph's nodes hold. */
#ifndef SIMCUDA_DRIVER_TASK_H
#define SIMCUDA_DRIVER_TASK_H

#include <stdbool.h>

#include "kernels.h"

enum task_kind {
	TASK_EMPTY,
	TASK_KERNEL,
	TASK_COPY,
	TASK_SET,
	TASK_HOST,     /* a function of the program, on a thread of the driver */
	TASK_CALLBACK, /* the same with cuStreamAddCallback's arguments */
	TASK_ALLOC,    /* nothing to do: the address was given out by the call */
	TASK_FREE,
	TASK_EVENT, /* stamps an event */
	TASK_WAIT,  /* waits for another stream to come to a mark */
	TASK_GRAPH, /* runs the plan of an instantiated graph */
};

/* A point in a stream: reached when `ticket` pieces of work have ended there. */
struct mark {
	CUstream stream; /* holds a reference */
	uint64_t ticket;
};

struct plan; /* graph.h */

struct task {
	enum task_kind kind;
	void *trace; /* see trace.h; NULL: nobody wants to know of it */
	union {
		struct {
			const struct known_kernel *known; /* NULL: it only takes time */
			uint64_t threads;
			uint64_t params[KERNEL_PARAMS_MAX];
			const char *name; /* never freed */
			unsigned int grid[3], block[3], shared_bytes;
			bool cooperative;
		} kernel;
		struct {
			char *to;
			const char *from;
			size_t width, height, depth; /* bytes, rows, slices */
			size_t to_pitch, to_slice, from_pitch, from_slice;
			bool over_pcie;
		} copy;
		struct {
			char *to;
			size_t pitch, width, height; /* width in elements */
			uint32_t value;
			unsigned int element; /* 1, 2 or 4 bytes */
		} set;
		struct {
			CUhostFn call;
			void *data;
		} host;
		struct {
			CUstreamCallback call;
			CUstream stream;
			void *data;
		} callback;
		struct {
			CUdeviceptr address;
		} free;
		struct {
			CUevent event; /* holds a reference */
			uint64_t generation;
		} event;
		struct mark wait;
		struct plan *plan; /* of a graph; holds a reference */
	};
};

/* Does what the task does, except waiting and stamping events, which are the stream's part. */
CUresult task_run(const struct task *task);

/* What it takes in simulated time. */
uint64_t task_duration_ns(const struct task *task);

/* Whether running it is so little that the caller may do it while holding sim_lock. */
bool task_is_trivial(const struct task *task);

/* Whether it calls the program, which must never happen in the thread that submits. */
bool task_calls_program(const struct task *task);

/* With sim_lock held: takes and gives back the references that a task holds. */
void task_get(const struct task *task);
void task_put(const struct task *task);

CUgraphNodeType task_node_type(const struct task *task);

#endif
