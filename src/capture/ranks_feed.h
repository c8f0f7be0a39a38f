/* SPDX-License-Identifier: MIT */
/*
 * Which ranks processes are, while they are recorded: NCCL's RAS is asked in their network
 * namespaces, on a thread, a few times from when a process was met. Consumers get what it says as
 * calls of two functions of LAYER_HOOK:
 *
 *   ras.rank          a rank of a job: communicator, number, process, and how many collectives it
 *                     has launched, at a time between begin and end
 *   ras.communicator  a handle of a process: which communicator it is, as which rank
 *
 * The second is known where the communicator's struct, which the handle is the address of, has
 * hash, rank, size and devices beside each other, as RAS said they are. What RAS says of a process
 * counts where the same user answered, or root.
 */
#pragma once

#include "capture/pipeline.h"

struct ranks_feed;

struct ranks_feed *ranks_feed_new(void);
void ranks_feed_free(struct ranks_feed *feed); /* NULL: nothing */

/* A process that consumers know of; a call of a hook, which may name a communicator. */
void ranks_feed_process(struct ranks_feed *feed, const struct process *process);
void ranks_feed_call(struct ranks_feed *feed, uint32_t pid, const struct call *call);

/* Asks once more, where there was an answer before, and waits for it: half a second at most. */
void ranks_feed_settle(struct ranks_feed *feed);

/* Asks anew as in the beginning, where that is over. */
void ranks_feed_again(struct ranks_feed *feed);

/* Passes on what was told since. */
int ranks_feed_turn(struct ranks_feed *feed, struct pipeline *pipeline, struct err *err);

/* Appends what was left out of what RAS could tell, for want of room or of a user's share: half a
 * sentence; nothing: all is there. */
void ranks_feed_left(struct ranks_feed *feed, struct buf *out);
