/* SPDX-License-Identifier: MIT */
/*
 * Who the processes of a machine are. A thread of its own reads that, since a target can make who
 * reads it wait; whoever asks gets what is known by now, and waits only where that is said.
 *
 * What was read is kept by pid and incarnation, of a bounded number of processes: those that were
 * asked for last. It is read again when name or cgroups of a process have changed, which is looked
 * at every some seconds.
 *
 * On any thread.
 */
#pragma once

#include "base/err.h"
#include "identity/process_identity.h"
#include "identity/process_read.h"

#define PROCESS_IDENTITIES_MAX 1024  /* processes, some 3.5 KiB each */
#define PROCESS_AGAIN_MS       10000 /* how often each is looked at again */

struct process_identities;

struct process_identities_options {
	struct process_reader_options reader;
	unsigned most, again_ms; /* 0: these above */
};

/* After helper_begin(). Copies the options, but not the strings in them. */
struct process_identities *process_identities_new(const struct process_identities_options *options,
                                                  struct err *err);

/* Waits for the read that is under way: 2 s at most. */
void process_identities_free(struct process_identities *identities);

/*
 * What is known of a process that runs. False: nothing yet. It is read then, unless there is no
 * room. `incarnation` is any number by which the caller tells processes apart that have one pid,
 * one after the other, and the programs that one process begins. Who began later than an
 * incarnation was first asked for is not it.
 */
bool process_identities_get(struct process_identities *identities, pid_t pid, uint64_t incarnation,
                            struct process_identity *identity);

/* The same of one that has ended, or begun another program: what is known of it is known, nothing
 * is read, and its place is the first to be another's. */
bool process_identities_end(struct process_identities *identities, pid_t pid, uint64_t incarnation,
                            struct process_identity *identity);

/*
 * The same of one that waits for us, and is not asked for again: waits for `ms` until it is read.
 * False at once where others wait to be read, as while a shell begins programs without end.
 */
bool process_identities_get_soon(struct process_identities *identities, pid_t pid,
                                 uint64_t incarnation, unsigned ms,
                                 struct process_identity *identity);

/*
 * Only has it read, so that it is known when it is asked for, maybe after its end. Of what is read
 * so, nobody but root has more than `share` places (`person`: probe/person.h). False: no room.
 */
bool process_identities_expect(struct process_identities *identities, pid_t pid,
                               uint64_t incarnation, uint64_t person, unsigned share);

/* Other variables become labels from now on, and all processes are read again. */
void process_identities_choose(struct process_identities *identities,
                               const struct process_label_choice *choice);

struct process_identities_counts {
	uint64_t kept, waiting; /* now */
	uint64_t reads, gone;   /* ever: that were made, and found nobody */
	uint64_t refused;       /* ever: questions about a process for which there was no room */
	uint64_t over_share;    /* ever: of process_identities_expect, for the share alone */
	uint64_t unread;        /* ever: environments that could not be read */
};

void process_identities_count(struct process_identities *identities,
                              struct process_identities_counts *counts);

/* For tests: until all that was asked for is read. False: not within `ms`. */
bool process_identities_settle(struct process_identities *identities, unsigned ms);
