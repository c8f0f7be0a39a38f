/* SPDX-License-Identifier: MIT */
/*
 * CUPTI in this process: found, entered, left.
 *
 *   cupti_begin     finds it, subscribes, measures
 *   cupti_flush     now and then
 *   cupti_disable   measures no more
 *   cupti_leave     at a safe point, see leave.h
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/failure.h"

/*
 * The writer is open. `given` is a libcupti's descriptor, or -1. From when it returns 0 calls and
 * activities are written. Fills in what struct agent_shared says of CUPTI. Else -1 and a failure;
 * if it then is cupti_entered(), it must be left. `calls_are_open`: the program may be in calls
 * that began before.
 */
int cupti_begin(uint32_t kinds, int given, bool calls_are_open, struct failure *failure);

bool cupti_entered(void);

/* Asks for the records of what is finished; `all`: for unfinished ones as well. */
void cupti_flush(bool all);

/* Callbacks that have come and that nobody needs: not one more. Now and then. */
void cupti_spare(void);

/* The modules of kernels, at each launch: how those are known that were loaded before we came. */
void cupti_tell_launched_modules(bool on);

/* Compares clocks again, where they are two. */
void cupti_clock(void);

/* Activities: not one more; records that it holds still come. Graphs are still noticed. */
void cupti_disable(void);

/*
 * Whether this CUPTI can be left and entered again. CUPTI of CUDA 11.0 to 12.5 crashes then when
 * the program uses CUDA graphs: pytorch/pytorch#112507 and #146604, pytorch/kineto#1264 (which
 * leaves it from 12.6 on only). With later ones programs that launch graphs die as well, by error
 * 700 or 719 at the next synchronisation. That was measured on an H200 with CUPTI of CUDA 12.9 and
 * 13.0. It happened when several threads launched graphs, when graphs were measured as wholes, and
 * when one was launched after activities were disabled. So once a graph was seen, CUPTI is disabled
 * and kept. So it is where it is shared: others may use it.
 */
bool cupti_leavable(void);

/* Whether other tools can use CUPTI beside us: from CUDA 13.3 on. */
bool cupti_is_shared(void);

/* Instead of leaving: nothing is called back any more; */
void cupti_mute(void);
/* and others can subscribe. */
void cupti_unsubscribe(void);

/* All callbacks of the driver and the runtime, so that one comes soon at which CUPTI can
 * be left. */
void cupti_call_back_always(void);

/* To be called where leaving is safe, once activities are disabled. */
void cupti_leave(void);
