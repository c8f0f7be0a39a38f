/* SPDX-License-Identifier: MIT */
/*
 * Who the processes of an output are: user, container, pod, job and rank, as the trace has them.
 * That is known at the end, so outputs note which processes they have, and tell then.
 */
#ifndef CUSCOPE_OUTPUT_WHO_H
#define CUSCOPE_OUTPUT_WHO_H

#include "base/buf.h"
#include "base/json.h"
#include "trace/event.h"

/* All 0: none yet. */
struct who {
	uint32_t *pids; /* by the process's id; 0: it is not in the output */
	size_t n;
};

void who_note(struct who *who, const struct process *process);
void who_free(struct who *who); /* what it points to */

/* The next of whom something is known, from *at on, which is 0 at first; NULL: that was all. */
const struct run_identity *who_next(const struct who *who, const struct run_info *run, size_t *at);

/* What is known of it as words: "user alice", "rank 3". False: not this one. */
bool who_label(const struct run_identity *identity, enum run_identity_word word, struct buf *text);

/* The members of an object: "pid", and each word by its name. "own_word": those that the process
 * could have made up. */
void who_json(const struct run_identity *identity, struct json *json);

#endif
