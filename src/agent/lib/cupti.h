/* SPDX-License-Identifier: MIT */
/*
 * CUPTI in this process: found, entered, left.
 *
 *   cupti_begin     finds it, subscribes, measures
 *   cupti_flush     now and then
 *   cupti_leave     at a safe point, see leave.h
 *   cupti_disable   where it cannot be left: measures no more; records that it holds still come
 */
#ifndef CUSCOPE_AGENT_LIB_CUPTI_H
#define CUSCOPE_AGENT_LIB_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/failure.h"

/*
 * The writer is open. `given` is a libcupti's descriptor, or -1. From when it returns 0 calls and
 * activities are written. Fills in what struct agent_shared says of CUPTI. Else -1 and a failure;
 * if it then is cupti_entered(), it must be left.
 *
 * `from_start`: the program has not used the GPU yet. Only then are graphs measured as wholes;
 * otherwise their nodes are. CUPTI of CUDA 13.0 crashes at the launch of a graph that was made
 * before CUPTI_KIND_GRAPH_TRACE was enabled.
 */
int cupti_begin(uint32_t kinds, int given, bool from_start, struct failure *failure);

bool cupti_entered(void);

/* Asks for the records of what is finished; `all`: for unfinished ones as well. */
void cupti_flush(bool all);

/* Compares clocks again, where they are two. */
void cupti_clock(void);

void cupti_disable(void); /* activities and callbacks */

/*
 * Whether this CUPTI can be left and entered again. CUPTI of CUDA 11.0 to 12.5 crashes then when
 * the program uses CUDA graphs: pytorch/pytorch#112507 and #146604, pytorch/kineto#1264 (which
 * leaves it from 12.6 on only). That of 13.0 does when graphs were measured as wholes. It is kept,
 * disabled, with what that costs. See also leave_possible().
 */
bool cupti_leavable(void);

/* Instead of leaving: nothing is called back any more, and others can subscribe. */
void cupti_unsubscribe(void);

/* All callbacks of the driver and the runtime, so that one comes soon at which CUPTI can be left.
 */
void cupti_watch_all(void);

/*
 * To be called where leaving is safe. Activities are still on: a CUDA graph that is launched while
 * CUPTI is there and its activities are off has CUPTI's memory in its nodes, which cuptiFinalize
 * frees and does not take out of them. Measured on an H200 with CUDA 13.0: so left, a program that
 * launches graphs dies of CUDA_ERROR_LAUNCH_FAILED at the next launch; with activities on until the
 * end, it does not.
 */
void cupti_leave(void);

#endif
