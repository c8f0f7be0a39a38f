/* SPDX-License-Identifier: MIT */
/*
 * Writing what a recorder holds, by a child: fork() gives it the memory as it is at this moment, so
 * the recorder loses no event while a slow disk is waited for. A child that hangs in the disk is
 * left behind, and one that is killed leaves nothing whole.
 */
#ifndef CUSCOPE_NODE_RECORDER_SAVE_H
#define CUSCOPE_NODE_RECORDER_SAVE_H

#include <sys/types.h>

#include "node/recorder_wire.h"
#include "trace/event.h"

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

/* Looks whether the child has ended, and tells of one that could not say how it went. */
void recorder_save_look(struct recorder_saver *saver);

#endif
