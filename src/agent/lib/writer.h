/* SPDX-License-Identifier: MIT */
/*
 * Who may write into the ring, and when. Callbacks come at any time, on any thread, also while the
 * ring is being taken away: each holds the writer while it writes, and closing waits for them.
 *
 *   writer_open      a ring; nothing is measured yet
 *   writer_measure   kinds; 0: only what CUPTI still holds is to be written
 *   writer_close     waits for those that write
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/ring.h"

#define WRITER_OPEN (1u << 31) /* a bit beside enum agent_kind */

int writer_open(int memfd); /* 0, -EBUSY: a thread is still in the former ring; or as ring_map */
void writer_measure(uint32_t kinds);
int writer_close(void);   /* 0, or -EBUSY: the memory stays until the next writer_open */
void writer_keep(void);   /* somebody else is in the ring for good: its memory stays for ever */
void writer_forked(void); /* in the child: forgets all of it */

/* What of `kinds` is measured now; cheap. */
uint32_t writer_kinds(uint32_t kinds);

/* The ring, if any of `kinds` is measured, to be given back by writer_release; else NULL. */
struct ring *writer_hold(uint32_t kinds);
void writer_release(void);

/* Time of the calling thread that was ours: AGENT_OWN_*, from then until now. */
void writer_own_time(uint32_t kind, uint64_t begin_ns);

/* The ring itself, for the probes. To be used as the next one. */
struct ring *writer_ring(void);

/* The part that both sides see. To be used by the one who opens and closes. */
struct agent_shared *writer_shared(void);

/* A number for a name that no other name has had in this ring. */
uint32_t writer_name_number(void);

/* Grows with each ring: what was said in a former one is to be said again. */
uint32_t writer_generation(void);

/* Of the calling thread, as the process's own pid namespace counts. */
uint32_t writer_tid(void);
