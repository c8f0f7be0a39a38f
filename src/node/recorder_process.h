/* SPDX-License-Identifier: MIT */
/*
 * The process that records: a capture of its own of all processes, whose last seconds of calls it
 * holds in memory. It judges the rules about calls, and tells the node agent when one fires. When
 * it is told to, it forks a child that writes what is held (recorder_save.h), and goes on.
 *
 * It is a process for the agent's sake. It pays for every call, may be overrun by them or run out
 * of memory, and its capture has to be started anew now and then, since what a capture knows of
 * processes that ended has a bound. The agent's sums notice nothing of that. It ends when its
 * socket does, and the kernel then takes its probes away.
 */
#ifndef CUSCOPE_NODE_RECORDER_PROCESS_H
#define CUSCOPE_NODE_RECORDER_PROCESS_H

#include "base/worker.h"

#define RECORDER_NAME  "cuscope-flight"    /* argv[0] of it */
#define RECORDER_SPOOL (WORKER_SOCKET + 1) /* the folder that it writes to */

/* The process itself; its exit status. */
int recorder_process_main(void);

#endif
