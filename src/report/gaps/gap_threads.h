/* SPDX-License-Identifier: MIT */
/*
 * What the host did in a gap, by samples of the thread that ended it: the one that asked for the
 * next work. Some threads only do what others give them, such as those of PyTorch's backward pass.
 * So where the thread was blocked outside of Python for most of what is known of it, or nothing is
 * known, the thread that asked for the work before the gap stands for the host, if it was another.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_THREADS_H
#define CUSCOPE_REPORT_GAPS_GAP_THREADS_H

#include "report/gaps/gap_waits.h"
#include "report/gaps/gaps.h"

struct gap_threads;

struct gap_threads *gap_threads_new(void);
void gap_threads_free(struct gap_threads *threads);

/* A sample of the thread with this dense id. Sums of blocked times are of no time. */
void gap_threads_sample(struct gap_threads *threads, uint32_t thread, const struct event *event);

/* A call of the thread that no other call made, when it has ended. */
void gap_threads_ended(struct gap_threads *threads, uint32_t thread, const struct call *call,
                       uint64_t end_ns);

/* Whether it is recorded what threads wait for. */
bool gap_threads_wait(const struct gap_threads *threads);

/* Splits the host's time in a gap whose cause is the host. */
void gap_threads_split(struct gap_threads *threads, struct gpu_gap *gap, struct gap_waits *waits);
void gap_threads_move_waits(struct gap_threads *threads, struct gap_waits *to,
                            struct gap_waits *from);
const struct gap_whos *gap_threads_whos(const struct gap_threads *threads);

/* Whether there were any samples that tell where. */
bool gap_threads_any(const struct gap_threads *threads);

/* See gap_samples_due(). */
uint64_t gap_threads_due(const struct gap_threads *threads, uint32_t thread);

/* See gap_samples_forget(). */
void gap_threads_forget(struct gap_threads *threads, uint64_t until_ns);

/* Adds what the host did in a gap whose cause is the host. */
void gap_threads_look(struct gap_threads *threads, const struct gpu_gap *gap,
                      struct gap_stacks *stacks);
/* Adds the call that it waited in, or that asked. */
void gap_threads_call(struct gap_threads *threads, const struct gpu_gap *gap,
                      struct gap_stacks *stacks);
void gap_threads_move(struct gap_threads *threads, struct gap_stacks *to, struct gap_stacks *from);

/* The same for this gap alone, in a table of its own, with the place that has most of it. */
void gap_threads_keep(struct gap_threads *threads, struct gpu_gap *gap);

/* NULL: there was neither a sample nor a call with its stack. */
struct stack_places *gap_threads_places(struct gap_threads *threads);

#endif
