/* SPDX-License-Identifier: MIT */
/*
 * Which process holds which channels of a GPU, from the calls to the driver that were recorded
 * (--kernel): groups of channels (TSGs), channels and context shares, from the call that made each
 * to the one that freed it, what it was made in, or its process's end.
 *
 * All numbers are what the process's memory had when a call returned, so a process can lie about
 * its own, and only about these.
 */
#pragma once

#include "trace/event.h"

#define CHANNELS_KEPT       16384 /* of all processes; further ones are counted */
#define CHANNELS_OF_PROCESS 4096  /* so that no process takes the room of others */

enum channel_kind { CHANNEL_GROUP, CHANNEL_CONTEXT, CHANNEL_CHANNEL, CHANNEL_KINDS };
enum channel_end { CHANNEL_HELD, CHANNEL_FREED, CHANNEL_EXITED };

struct channel_row {
	const struct process *process;
	enum channel_kind kind;
	enum channel_end end;    /* CHANNEL_HELD: at the end of the trace it was still there */
	const char *class_name;  /* as the driver's headers call it */
	uint32_t client, handle; /* the driver's names for it; and what it was made in: */
	uint32_t parent;         /* of a channel its group, if it has one */
	uint32_t engine;         /* 0: not known */
	uint32_t id, token;      /* of the hardware channel; and what its doorbell is rung with */
	uint64_t timeslice_us;
	uint32_t level;             /* of interleaving: 0 low, 1 medium, 2 high */
	uint32_t compute, graphics; /* how its work is preempted */
	bool knows_id, knows_token, knows_timeslice, knows_level, knows_compute, knows_graphics;
	uint64_t begin_ns, end_ns; /* end_ns: 0 with CHANNEL_HELD */
	uint32_t next[2], pending; /* private */
};

struct consumer *channels_new(void);

struct channels_left_out {
	uint64_t no_room; /* that there was no room for */
	uint64_t unknown; /* calls about channels whose making was not recorded */
};

/* As they were made. */
const struct channel_row *channels_rows(const struct consumer *channels, size_t *n,
                                        struct channels_left_out *left_out);
