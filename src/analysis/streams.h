/* SPDX-License-Identifier: MIT */
/*
 * What was put on each stream of each process. A copy or a fill that names no stream is the default
 * stream's. Where GPU times were recorded, an activity counts for the stream of the call that asked
 * for it. One whose call was not seen has a row by the number that CUPTI gave.
 */
#pragma once

#include "analysis/memory.h"
#include "base/buf.h"
#include "trace/event.h"

/* Streams of one process that are told apart; the rest share a row. */
#define STREAMS_MAX 4096

struct stream_row {
	const struct process *process;
	enum stream_kind {
		STREAM_HANDLE, /* id is the handle; if it is given out again, the row is the same */
		STREAM_ACTIVITY, /* id is CUPTI's number */
		STREAM_OTHERS,   /* all beyond STREAMS_MAX */
	} kind;
	uint64_t id;
	uint32_t tid; /* STREAM_HANDLE: the thread whose own stream it is, else 0 */
	uint64_t launches, graph_launches, host_launches;
	struct memory_count copies, sets;
	uint64_t syncs, sync_ns; /* calls that waited for this stream */
	uint64_t first_ns, last_ns;
	uint64_t activities;
	uint64_t busy_ns;  /* in which at least one of them ran, of each context by itself */
	uint64_t short_ns; /* that busy_ns lacks at most: see busy_short_ns() */
};

struct work;
struct consumer *streams_new(struct work *work); /* its window, or NULL: see work_share() */

/* By process, in the order of first use. Owned by `streams`, until the next event. */
const struct stream_row *streams_rows(struct consumer *streams, size_t *n);

/* "default", "legacy", "per-thread 4711" (its thread), "0x55d0..", "GPU stream 13", "others" */
void stream_name(const struct stream_row *row, struct buf *out);

/* The stream that a call is on, 0 also where it names none; per-thread variants say so. */
uint64_t call_stream(const struct call *call);
