/* SPDX-License-Identifier: MIT */
/*
 * The process that records: a capture of its own of all processes, whose last seconds of calls it
 * holds in memory. It judges the rules about calls, and tells the node agent when one fires. When
 * it is told to, it forks a child that writes what is held (recorder_process.h), and goes on.
 *
 * It is a process for the agent's sake. It pays for every call, may be overrun by them or run out
 * of memory, and its capture has to be started anew now and then, since what a capture knows of
 * processes that ended has a bound. The agent's sums notice nothing of that. It ends when its
 * socket does, and the kernel then takes its probes away.
 */
#ifndef CUSCOPE_NODE_RECORDER_PROCESS_H
#define CUSCOPE_NODE_RECORDER_PROCESS_H

#include "base/worker.h"

#include <sys/types.h>

#include "node/recorder.h"
#include "trace/event.h"

#define RECORDER_NAME  "cuscope-flight"    /* argv[0] of it */
#define RECORDER_SPOOL (WORKER_SOCKET + 1) /* the folder that it writes to */

/* The process itself; its exit status. */
int recorder_process_main(void);

/* ---- recorder save ------------------------------------------------------------------------- */

/*
 * Writing what a recorder holds, by a child: fork() gives it the memory as it is at this moment, so
 * the recorder loses no event while a slow disk is waited for. A child that hangs in the disk is
 * left behind, and one that is killed leaves nothing whole.
 */

struct recorder_saver {
	int socket, spool;
	const struct recorder_settings *settings;
	struct consumer *writer; /* with a window */
	pid_t child;             /* 0: none writes */
	uint64_t ticket;         /* of what it writes */
};

/* Begins. What goes wrong is told as RECORDER_SAVED, too. */
void recorder_save(struct recorder_saver *saver, const struct recorder_save *save,
                   const struct run_info *run);

#endif
