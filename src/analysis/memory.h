/* SPDX-License-Identifier: MIT */
/*
 * Live allocations. An allocation belongs to a process and has an address there. Any thread may
 * free it, through either layer. Another process may have one at the same address.
 *
 * Only calls that did something change what is live: not failed, not unfinished, not captured into
 * a graph, and not nested (the outer call is the one that counts). What a graph allocates is made
 * by each launch of it, and freed by it, too, where the graph has a node for that.
 *
 * Memory of cuMemCreate is live as long as a handle of it is held or addresses are mapped to it,
 * and is freed by the call that gives the last of these back. What another process made and this
 * one imports is that one's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct memory_count {
	uint64_t count, bytes;
};

static inline void memory_count_add(struct memory_count *count, uint64_t bytes)
{
	count->count++;
	count->bytes += bytes;
}

/*
 * Every allocated byte is in one of freed, replaced, context, exit, untracked or live.
 * MEMORY_VMM_VA (address space without memory behind it) has a row but is in no total.
 */
struct memory_totals {
	struct memory_count allocated;
	struct memory_count freed;     /* by a call */
	struct memory_count replaced;  /* its address was given out again: its free was not seen */
	struct memory_count context;   /* went with its context */
	struct memory_count exit;      /* never freed: went with its process */
	struct memory_count untracked; /* allocated by a call whose return was not recorded, */
				       /* so that its address is not known */
	struct memory_count failed; /* calls that gave nothing, and what they asked for; in none */
				    /* of the others */
	struct memory_count live;
	uint64_t peak_bytes;
	uint64_t peak_ns; /* when it was first reached; 0: never anything live */
};

/* One that is live, or was until now. */
struct memory_allocation {
	const struct process *process;
	const struct function *function; /* that made it */
	const struct stack *stack;       /* of that call; NULL: not known */
	uint32_t tid;                    /* thread that made it */
	enum api_memory kind;
	uint64_t time_ns;
	uint64_t address, bytes;
};

enum memory_fate {
	MEMORY_MADE,
	MEMORY_FREED,
	MEMORY_REPLACED,
	MEMORY_WENT_WITH_CONTEXT,
	MEMORY_WENT_WITH_PROCESS,
};

/* What is told of every change of what is live. Valid while it is told. */
struct memory_change {
	const struct memory_allocation *allocation;
	enum memory_fate fate;
	uint64_t time_ns;
	uint64_t live_bytes; /* of the allocation's process and kind, after the change */
};

struct memory;

struct memory *memory_new(void);
void memory_free(struct memory *memory);

/*
 * Follows one event of any kind. For a call that allocated or freed, the return value is the
 * size of that allocation, else 0.
 */
uint64_t memory_event(struct memory *memory, const struct event *event);

/*
 * Tells `changed` of each change from now on, while memory_event() runs. One event can be many: a
 * process that ends frees all that it had.
 */
void memory_tell_changes(struct memory *memory,
                         void (*changed)(void *data, const struct memory_change *change),
                         void *data);

/* Calls `each` for all that is live now, in no order. */
void memory_each_live(const struct memory *memory,
                      void (*each)(void *data, const struct memory_allocation *allocation),
                      void *data);

/* Live bytes of one process, and of one kind of them; of MEMORY_NONE: of all kinds together. */
uint64_t memory_live_bytes(const struct memory *memory, const struct process *process);
uint64_t memory_live_of_kind(const struct memory *memory, const struct process *process,
                             enum api_memory kind);

/* Totals of one kind; of MEMORY_NONE: of all kinds together. */
const struct memory_totals *memory_totals(const struct memory *memory, enum api_memory kind);

/*
 * The same of one process, also after its end, and of what one function made. NULL: it allocated
 * nothing. Owned by `memory`.
 */
const struct memory_totals *memory_process_totals(const struct memory *memory,
                                                  const struct process *process,
                                                  enum api_memory kind);
const struct memory_totals *memory_function_totals(const struct memory *memory,
                                                   const struct function *function);

/* Whether such a call can change what is live. */
static inline bool memory_follows(enum api_op op)
{
	return op == OP_ALLOC || op == OP_FREE || op == OP_CONTEXT_DESTROY ||
	       op == OP_CAPTURE_END || op == OP_GRAPH_LAUNCH || op >= OP_MAP;
}

/* All peaks begin anew, at what is live. */
void memory_forget_peaks(struct memory *memory);

/* Calls that freed an address whose allocation was not seen: mostly made before the trace. */
uint64_t memory_unknown_frees(const struct memory *memory);
