/* SPDX-License-Identifier: MIT */
/*
 * What the records of one agent mean: names, shapes and lanes, which come once and are referred
 * to by number, put back into each activity and range. The agent is in a process that is not
 * trusted: a record that makes no sense is left out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire.h"
#include "base/budget.h"
#include "trace/event.h"

struct gpu_records;

/* A kernel with its grid, shared by the activities that had it. */
struct gpu_shape {
	uint32_t users;
	const struct kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t registers, shmem_static, shmem_dynamic;
};

/* An activity or a range on its way: small, since very many wait for their place in the order. */
struct gpu_item {
	uint64_t begin_ns, end_ns;
	const struct process *process;
	uint64_t person; /* whose it is (probe/person.h) */
	uint64_t arrived_ns;
	uint64_t arrival;         /* for gpu_order.c */
	uint64_t number, call_ns; /* of its call, and when that began; 0: not known yet */
	uint32_t pid;
	uint32_t agent;       /* whose number `correlation` is */
	uint32_t tid;         /* 0: of no thread */
	uint32_t correlation; /* CUPTI's; 0: of no call */
	uint32_t device, context, stream;
	bool is_range;
	bool own;     /* RANGE_OVERHEAD: of the agent itself, within a call */
	uint8_t kind; /* enum activity_kind, enum range_kind */
	uint8_t copy_kind, source, destination;
	uint32_t graph, peer_device;
	uint64_t graph_node, bytes;
	union {
		struct gpu_shape *shape; /* ACTIVITY_KERNEL */
		struct {
			const char *name;   /* RANGE_SYNC, RANGE_OVERHEAD: static; else owned */
			const char *domain; /* owned; NULL: none */
			uint32_t depth;
			uint32_t text_bytes; /* owned */
			uint32_t category, color;
		} range;
	};
};

/* Gives back what the item holds. */
void gpu_item_free(struct gpu_item *item);

/* What the model has for it, but for process, thread and correlation. Points into the item. */
void gpu_item_activity(const struct gpu_item *item, struct activity *activity);
void gpu_item_range(const struct gpu_item *item, struct range *range);

/* The kernel of a mangled name; never NULL. */
typedef const struct kernel *(*gpu_kernel_fn)(void *data, const char *mangled);

struct gpu_records_options {
	gpu_kernel_fn kernel;
	void *data;
	struct budget *budget; /* names, shapes and lanes are taken from it; may be NULL */
	uint32_t owner;        /* the process */
};

struct gpu_records *gpu_records_new(const struct gpu_records_options *options);

/* Its items may outlive it. */
void gpu_records_free(struct gpu_records *records);

enum gpu_record_is {
	GPU_RECORD_NOTHING, /* a definition */
	GPU_RECORD_CALL,    /* it is a struct agent_call, whole */
	GPU_RECORD_NODE,    /* a struct agent_node */
	GPU_RECORD_STALLS,  /* a struct agent_stall, agent_stall_window or agent_stalls_told */
	GPU_RECORD_ITEM,
	GPU_RECORD_BAD_TIMES, /* an activity or a range that ended before it began */
	GPU_RECORD_BAD,       /* nonsense, or it refers to what was not defined: left out */
};

/* `item` gets all but process, pid, agent, its arrival and its call; tid is the agent's. */
enum gpu_record_is gpu_records_take(struct gpu_records *records, const struct agent_head *record,
                                    struct gpu_item *item);

/* A name by its number, NULL where it was not given. */
const char *gpu_records_name(const struct gpu_records *records, uint32_t number);

/* The kernel of that name, NULL as above. */
const struct kernel *gpu_records_kernel(struct gpu_records *records, uint32_t number);

/* ---- unrecorded ---------------------------------------------------------------------------- */

/*
 * Launches of one process whose work has not been told of: a kernel that still ran when its process
 * ended, and what CUPTI held then, never are. By the numbers of calls, which grow.
 */

#define UNRECORDED_EARLY 64

struct unrecorded {
	uint64_t *open; /* a circle: number times 2, and 1 if it was told of; in order */
	size_t first, count, capacity;
	uint64_t early[UNRECORDED_EARLY]; /* told of before their calls had come; a circle */
	size_t earlies;
	uint64_t unmatched; /* work whose call is not known: of any of these */
};

/*
 * Beyond a quarter of a million at once the oldest is taken for told of: GPUs queue a thousand. So
 * is a launch that comes after more than UNRECORDED_EARLY with higher numbers: its number was
 * reserved, which is done for work that has been told of.
 */
void unrecorded_launched(struct unrecorded *u, uint64_t number);
void unrecorded_told(struct unrecorded *u, uint64_t number); /* 0: not known */

/* How many are left; all are forgotten. */
uint64_t unrecorded_end(struct unrecorded *u);
