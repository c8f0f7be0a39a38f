/* SPDX-License-Identifier: MIT */
/*
 * Who the processes of an output are: user, container, pod, job and rank, as the trace has them.
 * That is known at the end, so outputs note which processes they have, and tell then.
 */
#pragma once

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

/*
 * Which rank of a distributed program processes are: those with these numbers, or with n 0 all that
 * the file has. False where they are of several ranks, or none is known. *size is 0 where it is not
 * known. Known before end() of a trace that is read from a file.
 */
bool who_rank(const struct run_info *run, const int *pids, size_t n, unsigned *rank,
              unsigned *size);

/* The rank of the process with this number whose first event was then. False: none is known. */
bool who_rank_of(const struct run_info *run, uint32_t pid, uint64_t begin_ns, unsigned *rank);

/* The members of an object: "pid", and each word by its name. "own_word": those that the process
 * could have made up. */
void who_json(const struct run_identity *identity, struct json *json);
