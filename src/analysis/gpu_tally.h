/* SPDX-License-Identifier: MIT */
/*
 * What the summary says of GPUs: how busy each was, kernels by time, how long work waited and how
 * fast copies were. It also says how much of the communication ran beside computing.
 */
#pragma once

#include "analysis/busy.h"
#include "analysis/gpu_ids.h"
#include "analysis/spread.h"
#include "analysis/work.h"
#include "trace/event.h"

/* Busy times that are told apart: by the device's number, modulo this. */
#define GPU_TALLY_BUSY 64

struct gpu_kernel {
	const char *name;
	uint64_t count, ns; /* ns: of each run, overlaps counted twice */
};

struct gpu_copies {
	uint64_t count, bytes, ns; /* ns: of each, overlaps counted twice */
};

/* Of one GPU, by all processes. */
struct gpu_line {
	uint32_t device;
	uint64_t busy_ns;
	uint64_t short_ns;            /* that busy_ns lacks at most: see busy_short_ns() */
	uint64_t begin_ns, end_ns;    /* of its first work, and of its last */
	uint64_t not_measured_ns;     /* between them */
	uint64_t ran[ACTIVITY_COUNT]; /* by kind */
	/* By process added up: those of NCCL, and in which another kernel of that process ran. */
	uint64_t communication_ns, beside_ns;
};

struct gpu_tally {
	uint64_t activities;
	struct busy busy[GPU_TALLY_BUSY];
	struct gpu_ids *ids;
	struct gpu_tally_device *devices[GPU_IDS_MAX]; /* by id */
	struct gpu_tally_kernel *kernels;              /* by id */
	size_t n_kernels;
	struct kernels_looked_at looked_at;
	struct gpu_copies copies[DIRECTION_COUNT], sets;
	struct sketch queue; /* ns from a call's end to the begin of its work */
	uint64_t not_queued; /* work that began before its call had returned */
	uint64_t unmatched;  /* whose call was not seen, or had to be forgotten */
	struct work *work;
	struct gpu_line *lines;
	struct gpu_kernel *kernel_rows;
};

/* `work`: its window, or NULL: see work_share(). */
void gpu_tally_init(struct gpu_tally *tally, struct work *work);
void gpu_tally_free(struct gpu_tally *tally);
void gpu_tally_event(struct gpu_tally *tally, const struct event *event);

/* False where nothing ran on a GPU that is known. */
bool gpu_tally_any(const struct gpu_tally *tally);

/* By device. Owned by `tally`, until the next event. */
const struct gpu_line *gpu_tally_lines(struct gpu_tally *tally, size_t *n);

/* Most time first, by name. Owned by `tally`, until the next event. */
const struct gpu_kernel *gpu_tally_kernels(struct gpu_tally *tally, size_t *n);

/* What busy_ns is a share of: from its first work to its last, without what was not measured. */
uint64_t gpu_line_measured_ns(const struct gpu_line *line);

/*
 * Of all GPUs that ran anything together: busy_ns, and what it is a share of. The same as in the
 * report overlap; gaps leaves out all of a gap that was not measured in part.
 */
uint64_t gpu_tally_busy_ns(struct gpu_tally *tally);
uint64_t gpu_tally_measured_ns(struct gpu_tally *tally);

/* 10^9 bytes a second; 0 where no time was spent. */
double gpu_copies_rate(const struct gpu_copies *copies);
