/* SPDX-License-Identifier: MIT */
/* A process that records (recorder_process.h), as who started it sees it. */
#ifndef CUSCOPE_NODE_RECORDER_CHILD_H
#define CUSCOPE_NODE_RECORDER_CHILD_H

#include "base/worker.h"
#include "node/recorder_wire.h"

struct recorder_child {
	struct worker worker; /* socket -1: it was told to end */
	bool ready;           /* it records */
	uint64_t ready_ns, end_by_ns;
	uint64_t heard_ns;           /* it said something last: its loop does each second */
	struct recorder_state state; /* as it told last */
};

/* 0 or a negative errno. It gets the settings and a descriptor of the spool. */
int recorder_child_start(struct recorder_child *child, const struct recorder_settings *settings,
                         int spool, struct err *err);

/* Asks it to end: it has so long for that. */
void recorder_child_stop(struct recorder_child *child, uint64_t now_ns);

/* Whether it has ended, which is forgotten then; one that does not obey is killed. */
bool recorder_child_ended(struct recorder_child *child, uint64_t now_ns);

#endif
