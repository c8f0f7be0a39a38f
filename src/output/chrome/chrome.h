/* SPDX-License-Identifier: MIT */
/*
 * Rows of a Chrome trace: processes with threads, GPUs with streams. Each has its place by a
 * metadata event before its first event, and its name at the end. Private to src/output.
 */
#pragma once

#include "base/buf.h"
#include "gpus/gpu_metrics.h"
#include "output/who.h"
#include "trace/event.h"

/* The separator before every event but the first, and what all begin with. */
struct chrome_writer {
	struct buf *out;
	uint64_t base_ns; /* of CLOCK_MONOTONIC: what times are relative to */
	bool comma;
	uint64_t last_id; /* of ranges that are not slices */
};

void chrome_begin_event(struct chrome_writer *writer);

/* Microseconds since the base, with three decimals. */
void chrome_add_time(struct chrome_writer *writer, uint64_t time_ns);

struct chrome_rows;

struct chrome_rows *chrome_rows_new(struct chrome_writer *writer);
void chrome_rows_free(struct chrome_rows *rows);

void chrome_rows_process(struct chrome_rows *rows, const struct process *process);

/* `thread`: EVENT_THREAD's, or NULL. */
void chrome_rows_thread(struct chrome_rows *rows, const struct process *process, uint32_t tid,
                        const struct thread *thread);

/* The thread number of a row of the stream in which nothing else runs at that time. */
uint32_t chrome_rows_activity(struct chrome_rows *rows, const struct process *process,
                              const struct activity *activity);

/*
 * The thread number of a row for waits, "stream 7 (sync)", of the device that the context is known
 * to be of, which is told in `device`. `stream` 0: waits for the whole context.
 */
uint32_t chrome_rows_wait(struct chrome_rows *rows, const struct process *process,
                          const struct range *range, uint32_t *device);

/* The same of one for what NVTX ranges are on the GPU, "stream 7 (annotations)". */
uint32_t chrome_rows_annotation(struct chrome_rows *rows, const struct process *process,
                                uint32_t device, uint32_t stream, uint64_t begin_ns,
                                uint64_t end_ns);

/* Of which device contexts are, told ahead of the rows. */
void chrome_rows_look_ahead(struct chrome_rows *rows, const struct event *event);

/* A row of the process -1, in which Kineto has what measuring took. */
uint32_t chrome_rows_overhead(struct chrome_rows *rows, const struct range *range);

/* Numbers of the GPUs that something ran on, in order of appearance. */
const uint32_t *chrome_rows_devices(const struct chrome_rows *rows, size_t *n);

/* What all rows are called, and who its processes are, as their labels; and those that are told of.
 */
void chrome_rows_end(struct chrome_rows *rows, const struct run_info *run);
const struct who *chrome_rows_who(const struct chrome_rows *rows);

/* chrome_run.c: what stands around the events, which are a list. */
struct sink;
struct sink_options;
struct chrome_stacks;

void chrome_run_begin(struct chrome_writer *writer, const struct sink_options *options,
                      const struct run_info *run);
void chrome_run_end(struct chrome_writer *writer, const struct chrome_rows *rows,
                    struct chrome_stacks *stacks, struct sink *sink, const struct run_info *run);

/* ---- stacks: chrome_stacks.c ----------------------------------------------------------------- */

struct chrome_stacks *chrome_stacks_new(void);
void chrome_stacks_free(struct chrome_stacks *stacks);

/* The number of a stack for "sf"; 0: it has none, or there is no room for it. */
uint32_t chrome_stack(struct chrome_stacks *stacks, const struct stack *stack);

void chrome_add_sample(struct chrome_writer *writer, struct chrome_stacks *stacks,
                       const struct event *event);

/* What the numbers mean, as a key beside the list of events. */
void chrome_add_stacks(struct chrome_stacks *stacks, struct sink *sink);

/* How many calls and samples are without their stacks for want of room. */
uint64_t chrome_stacks_left_out(const struct chrome_stacks *stacks);

/* ---- what ranges are on a GPU: chrome_ranges.c ------------------------------------------ */

struct chrome_annotations;

struct chrome_annotations *chrome_annotations_new(void);
void chrome_annotations_free(struct chrome_annotations *annotations);

/* All events ahead; then the beginning, all events again, and what comes of them. */
void chrome_annotations_look_ahead(struct chrome_annotations *annotations,
                                   const struct event *event);
void chrome_annotations_begin(struct chrome_annotations *annotations);
void chrome_annotations_event(struct chrome_annotations *annotations, const struct event *event);
void chrome_annotations_write(struct chrome_annotations *annotations, struct chrome_writer *writer,
                              struct chrome_rows *rows);

/* ---- kernels: chrome_run.c --------------------------------------------------------------- */

/* What is known of the GPUs that kernels ran on; 0, NULL: it is not. */
struct chrome_gpu {
	uint32_t multiprocessors;
	const struct gpu_limits *limits;
};

void chrome_gpu_of_run(struct chrome_gpu *gpu, const struct run_info *run);
void chrome_add_triple(struct buf *out, const char *key, const uint32_t dims[3]);
void chrome_add_kernel(struct buf *out, const struct chrome_gpu *gpu, const struct activity *a);

/* chrome_ranges.c: NVTX ranges, waits, overhead. */
struct event_waits;

void chrome_add_range(struct chrome_writer *writer, struct chrome_rows *rows,
                      const struct event_waits *waits, const struct event *event);

/* chrome_run.c: metrics of GPUs. */
void chrome_add_metrics(struct chrome_writer *writer, const struct event *event);

/* A number that is unique in the file for a number that is the process's own. */
uint64_t chrome_correlation(uint32_t process, uint64_t correlation);
