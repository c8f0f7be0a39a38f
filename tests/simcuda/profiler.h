/* SPDX-License-Identifier: MIT */
/*
 * What the simulated driver and runtime show a profiler, which is the simulated libcupti. The
 * driver exports one object, simcuda_profiler, and while its `hooks` are NULL nothing is told and
 * nothing is done. libcupti, loaded whenever, puts its hooks there and takes them away again.
 *
 * Hooks are called on the program's threads, but for `ended`, which the streams' threads call.
 * `enter`, `leave` and `submit` are called without a lock of the driver; the others must not call
 * the program or a CUDA function.
 */
#ifndef SIMCUDA_PROFILER_H
#define SIMCUDA_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_layer { SIM_DRIVER = 1, SIM_RUNTIME = 2 };

/* An exported function. */
struct sim_site {
	const char *name;
	enum sim_layer layer;
	int id; /* the profiler's own number for it; 0: not looked up yet */
};

/* One call of it, on the stack of the caller. */
struct sim_call {
	struct sim_site *site;
	const void *params; /* a struct of the arguments */
	void *result;       /* CUresult or cudaError_t */
	/* the profiler's own, from enter to leave */
	uint64_t session, data, begin_ns;
	uint32_t correlation;
};

enum sim_work_kind { SIM_KERNEL, SIM_COPY, SIM_SET, SIM_GRAPH };

/* Where memory is, as CUpti_ActivityMemoryKind counts. */
enum sim_memory {
	SIM_PAGEABLE = 1,
	SIM_PINNED,
	SIM_DEVICE,
	SIM_ARRAY,
	SIM_MANAGED,
	SIM_STATIC,
};

/* Work that a call has asked for. */
struct sim_work {
	enum sim_work_kind kind;
	uint32_t device, context, stream;
	uint32_t graph;      /* 0: not of a graph */
	uint64_t graph_node; /* of SIM_GRAPH: 0 */
	bool made_before;    /* SIM_GRAPH: instantiated while there were no hooks */
	uint64_t made_ns;    /* SIM_GRAPH: when */
	union {
		struct {
			const char *name; /* mangled; never freed */
			uint32_t grid[3], block[3];
			uint32_t shared_bytes, registers;
			bool cooperative;
		} kernel;
		struct {
			uint64_t bytes;
			enum sim_memory from, to;
			uint32_t from_device, from_context, to_device, to_context;
			bool peer; /* from one device to another */
			bool async;
		} copy;
		struct {
			uint64_t bytes;
			uint32_t value;
			enum sim_memory to;
			bool async;
		} set;
	};
};

/* Times are ns of CLOCK_MONOTONIC. */
struct sim_span {
	uint64_t begin_ns, end_ns;
};

/* As CUpti_ActivitySynchronizationType counts. */
enum sim_wait_kind { SIM_WAIT_EVENT = 1, SIM_STREAM_WAIT_EVENT, SIM_WAIT_STREAM, SIM_WAIT_CONTEXT };

#define SIM_NONE 0xffffffffu

struct sim_wait {
	enum sim_wait_kind kind;
	uint32_t context, stream, event; /* SIM_NONE: none */
	uint32_t result;
	struct sim_span span;
};

struct sim_hooks {
	/* Around a call. `leave` is called where `enter` returned true. */
	bool (*enter)(struct sim_call *call);
	void (*leave)(struct sim_call *call);

	/* n pieces of work that will run one after another, or the first of them a graph and the
	 * others its nodes. What comes back, unless it is NULL, is for one of the next two. */
	void *(*submit)(const struct sim_work *work, size_t n);
	void (*ended)(void *trace, const struct sim_span *span, size_t n);
	void (*cancelled)(void *trace);

	void (*waited)(const struct sim_wait *wait);
	void (*instantiated)(void); /* a graph */
	/* A context, of no thread any more that uses it, is about to be destroyed; it was made. */
	void (*context_ends)(void *context);
	void (*context_made)(void *context);
	void (*module_loaded)(void *context);
	/* A node of a graph was made, in the calling thread; `original`: of this one, 0: of none.
	 */
	void (*node_made)(uint64_t node, uint64_t original);
};

struct sim_profiler {
	const struct sim_hooks *hooks;
	/* NULL takes the hooks away. */
	void (*install)(const struct sim_hooks *hooks);
	/* The calling thread's context and its number; NULL: none. */
	void *(*context)(uint32_t *number);
	/* Of a context that is there; 0: it is none. */
	uint32_t (*context_number)(const void *context);
	/* The name of what a launch is given, a CUfunction or CUkernel; NULL: it is neither. */
	const char *(*kernel_name)(const void *handle);
};

#define SIM_PROFILER_NAME "simcuda_profiler"
extern struct sim_profiler simcuda_profiler; /* in the driver */

static inline const struct sim_hooks *profiler_hooks(const struct sim_profiler *profiler)
{
	return __atomic_load_n(&profiler->hooks, __ATOMIC_ACQUIRE);
}

static inline bool profiler_enter(const struct sim_profiler *profiler, struct sim_call *call,
                                  struct sim_site *site, const void *params, void *result)
{
	const struct sim_hooks *hooks = profiler_hooks(profiler);
	if (!hooks)
		return false;
	*call = (struct sim_call){ .site = site, .params = params, .result = result };
	return hooks->enter(call);
}

static inline void profiler_leave(const struct sim_profiler *profiler, struct sim_call *call)
{
	const struct sim_hooks *hooks = profiler_hooks(profiler);
	if (hooks)
		hooks->leave(call);
}

#endif
