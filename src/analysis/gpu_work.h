/* SPDX-License-Identifier: MIT */
/*
 * How long each GPU was busy with work of each class and of several at once, by process: lengths
 * of unions, so that nothing is counted twice.
 */
#ifndef CUSCOPE_ANALYSIS_GPU_WORK_H
#define CUSCOPE_ANALYSIS_GPU_WORK_H

#include "analysis/busy.h"
#include "trace/event.h"

/* Classes of work, as bits. */
enum gpu_work {
	WORK_COMPUTE = 1,       /* kernels that are none of the next, and graphs as a whole */
	WORK_COMMUNICATION = 2, /* kernels of NCCL, by their names */
	WORK_MEMORY = 4,        /* copies and sets */
	WORK_KERNELS = WORK_COMPUTE | WORK_COMMUNICATION,
	WORK_ALL = WORK_KERNELS | WORK_MEMORY,
};

/* Whether a kernel's name, demangled or not, is one of NCCL's, of any version. */
bool kernel_name_is_communication(const char *name);

struct gpu_work_longest {
	uint64_t begin_ns, duration_ns, bytes;
	const struct kernel *kernel; /* NULL: a copy or set */
};

struct gpu_work_row {
	const struct process *process;
	uint32_t device;
	uint64_t begin_ns, end_ns; /* of the first and the last that ran */
	uint64_t not_measured_ns;  /* between them */
	uint64_t kernels, communications, copies, sets, graphs;
	struct gpu_work_longest copy, communication;
	uint64_t union_ns[WORK_ALL + 1]; /* in which any of these classes ran, by their bits */
	uint64_t short_ns;               /* that they lack at most: see busy_short_ns() */
};

struct gpu_works;

struct gpu_works *gpu_works_new(void);
void gpu_works_free(struct gpu_works *works);
void gpu_works_event(struct gpu_works *works, const struct event *event);

/* By process and device. Owned by `works`, until the next event. */
const struct gpu_work_row *gpu_works_rows(struct gpu_works *works, size_t *n);

/* In which work of both ran. `a` and `b` have no class in common. */
uint64_t gpu_work_both_ns(const struct gpu_work_row *row, unsigned a, unsigned b);

/* ---- gpu ids ------------------------------------------------------------------------------- */

/*
 * Dense ids of GPUs as processes number them, for arrays with something of each. Memory is bounded,
 * whatever a trace says: GPU_IDS_MAX get an id, and what runs on the others is left out.
 */

#define GPU_IDS_MAX 256u
#define GPU_ID_NONE UINT32_MAX

struct gpu_ids;

struct gpu_ids *gpu_ids_new(void);
void gpu_ids_free(struct gpu_ids *ids);

/* Of an EVENT_ACTIVITY. GPU_ID_NONE where there are too many. */
uint32_t gpu_ids_of(struct gpu_ids *ids, const struct event *event);

/* How many there are, from 0. */
uint32_t gpu_ids_count(const struct gpu_ids *ids);

#endif
