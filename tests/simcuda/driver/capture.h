/* SPDX-License-Identifier: MIT */
/*
 * Stream capture: work that is given to a capturing stream becomes nodes of a graph and does not
 * run. A capture spreads to another stream that waits for an event which was recorded in a
 * capturing one, and must have come back to the stream where it began when it ends.
 */
#ifndef SIMCUDA_DRIVER_CAPTURE_H
#define SIMCUDA_DRIVER_CAPTURE_H

#include "stream.h"

struct capture;

/* Whether a call such as cuMemAlloc is forbidden now, in which case it ends the captures. */
CUresult capture_forbids_unsafe(void);

/* The rest is called with sim_lock held. */

/* Whether a capture forbids new work of this stream, or work that the caller will wait for. */
CUresult capture_check(CUstream stream, bool wait);
/* Whether a capture forbids to wait for the stream, or for its whole context. */
CUresult capture_check_wait(CUstream stream);
CUresult capture_check_context(CUcontext ctx);

CUresult capture_add(CUstream stream, const struct task *task);

/* The stream is destroyed. */
void capture_abandon(CUstream stream);

/* What an event remembers of the capture that it was recorded in. */
struct capture *capture_get(struct capture *capture);
void capture_put(struct capture *capture);
CUresult capture_join(CUstream stream, struct capture *capture, const struct node_list *after);

#endif
