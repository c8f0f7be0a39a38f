/* SPDX-License-Identifier: MIT */
/*
 * Launches by kernel and process: how many, how fast, and of what shape. A graph launch counts for
 * a row without a kernel, since what is in the graph is not known.
 */
#pragma once

#include "analysis/place.h"
#include "trace/event.h"

/* Shapes of one kernel that are told apart: launches of any other are in other_shapes. */
#define SHAPES_MAX 32

struct launch_shape {
	uint32_t grid[3], block[3];
	uint64_t launches;
};

/* No padding: it is hashed whole. */
struct kernel_row_key {
	uint32_t kernel, process;
	uint32_t place; /* of those that were given; 0 without them */
};

struct kernel_row {
	struct kernel_row_key key;
	const struct process *process;
	const struct kernel *kernel; /* NULL: graphs, or a kernel that nothing is known of */
	bool graphs;
	uint64_t launches;
	uint64_t captured; /* into graphs: did not run */
	uint64_t first_ns, last_ns;
	double per_second;           /* while its process made calls; 0: that was no time at all */
	struct launch_shape *shapes; /* most used first */
	size_t n_shapes;
	uint64_t other_shapes;
	size_t last_shape; /* private */
};

struct kernel_launches;

/* `places` (borrowed): rows are split by them; NULL: they are not. */
struct kernel_launches *kernel_launches_new(struct stack_places *places);
void kernel_launches_free(struct kernel_launches *launches);
void kernel_launches_event(struct kernel_launches *launches, const struct event *event);

/*
 * Most launches first; kernels of one name in a process are one row. Owned by `launches`, and the
 * end of its counting.
 */
const struct kernel_row *kernel_launches_rows(struct kernel_launches *launches, size_t *n);
