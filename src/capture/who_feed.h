/* SPDX-License-Identifier: MIT */
/*
 * Who the processes of a trace are: user, container, pod, job and rank. Read while they run, on a
 * thread of its own (identity/process_identities.h), and told of at the end. Nobody waits for it
 * but a program of the command that cuscope began, which may be over before it has been met.
 */
#pragma once

#include <sys/types.h>

#include "gpus/gpus.h"
#include "trace/event.h"

struct who_feed;

/*
 * After helper_begin(). NULL: it cannot be read. `command`: no process is older than the trace.
 * `newest`: where there are more than
 * RUN_IDENTITIES_MAX, those that have ended give way to new ones, the first first; else who is met
 * later is left out.
 */
struct who_feed *who_feed_new(bool command, bool newest);
void who_feed_free(struct who_feed *feed);

/* A process was met. Of those that there is no room for their number is told. */
void who_feed_process(struct who_feed *feed, const struct process *process, uint64_t now_ns);

/* A program begins, and waits for us; it does so for 20 ms at most. On any thread. */
void who_feed_held(struct who_feed *feed, pid_t pid, uint64_t now_ns);

/* Takes what is known by now; looks ten times a second at most. */
void who_feed_turn(struct who_feed *feed, uint64_t now_ns);

/* Which of the machine's GPUs processes use now, and how much of their memory. */
void who_feed_gpus(struct who_feed *feed, const struct gpus_sample *sample);

/* Fills in what is known; it is the feed's, until it changes. */
void who_feed_fill(struct who_feed *feed, struct run_info *run);
