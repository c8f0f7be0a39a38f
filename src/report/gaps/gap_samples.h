/* SPDX-License-Identifier: MIT */
/*
 * The samples of the last while of threads that use CUDA, for the analysis of gaps: what a thread
 * did between two times. The last GAP_SAMPLES_KEPT are kept, and no more. Gaps are told of later
 * than samples of their time, so gap_samples_due() says in time what is about to be forgotten.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_SAMPLES_H
#define CUSCOPE_REPORT_GAPS_GAP_SAMPLES_H

#include "trace/event.h"

#define GAP_SAMPLES_KEPT (1u << 20) /* of all threads; 32 bytes each */

/* What a sample says of a time that was asked for. */
struct gap_sampled {
	const struct stack *stack; /* NULL: it had none */
	uint64_t ns; /* on a CPU: all that the sample stands for; blocked: what lies in that time */
	bool blocked;
	bool in_call;        /* blocked, within a call of CUDA */
	enum wait_kind wait; /* blocked: what for */
	uint32_t who;        /* see gap_samples_add_part() */
};

/* A part of a stretch of blocked time: up to when it was woken, or from then on. */
struct gap_part {
	uint64_t end_ns, ns;
	const struct stack *stack;
	enum wait_kind wait;
	uint32_t who; /* woke it, or had the CPU: the caller's number */
};

typedef void (*gap_samples_tell)(void *data, const struct gap_sampled *sampled);

struct gap_samples;

struct gap_samples *gap_samples_new(void);
void gap_samples_free(struct gap_samples *samples);

/* Of one thread in the order of their times; `thread` is a dense id. */
void gap_samples_add(struct gap_samples *samples, uint32_t thread, uint64_t time_ns,
                     const struct sample *sample);

void gap_samples_add_part(struct gap_samples *samples, uint32_t thread,
                          const struct gap_part *part);

/* A call of the thread that no other made has ended: what was kept of its time is within it. */
void gap_samples_call(struct gap_samples *samples, uint32_t thread, uint64_t begin_ns,
                      uint64_t end_ns);

/* The next one of the thread makes those up to this time be forgotten; 0: none. */
uint64_t gap_samples_due(const struct gap_samples *samples, uint32_t thread);

/* Those before this time are asked for no more: their room is used again. */
void gap_samples_forget(struct gap_samples *samples, uint64_t until_ns);

/* Tells what a thread did from `begin_ns` to before `end_ns`, as far as samples know. */
void gap_samples_in(struct gap_samples *samples, uint32_t thread, uint64_t begin_ns,
                    uint64_t end_ns, gap_samples_tell tell, void *data);

#endif
