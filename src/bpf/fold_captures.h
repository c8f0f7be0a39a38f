/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Streams that record into a graph: what is put on them does not run. A capture spreads to other
 * streams through events that are recorded on one of its streams and waited for on another. The
 * same rules as in src/capture/captures.c, which serves what is not folded.
 */
#pragma once

#include "bpf/fold.h"

#define STREAM_PER_THREAD   2   /* cudaStreamPerThread, CU_STREAM_PER_THREAD */
#define CAPTURE_INVALIDATED 901 /* with these results the end of a capture fails, and ends it */
#define CAPTURE_UNJOINED    904

static __always_inline void capture_stream_key(const struct folded *f, struct fold_capture_key *key)
{
	__u64 own = fold_is(FOLD_VALUE(f, FOLD_AT_STREAM)) ^ 1; /* stream 0 */

	key->handle =
		FOLD_VALUE(f, FOLD_AT_STREAM) + (own & f->plan->per_thread) * STREAM_PER_THREAD;
	key->born_ns = f->born_ns;
	key->tgid = f->tgid;
	key->tid = key->handle == STREAM_PER_THREAD ? f->call->head.tid : 0;
}

static __always_inline void capture_event_key(const struct folded *f, struct fold_capture_key *key)
{
	key->handle = FOLD_VALUE(f, FOLD_AT_EVENT);
	key->born_ns = f->born_ns;
	key->tgid = f->tgid;
	key->tid = ~0u;
}

/* The capture that a stream or event belongs to, 0 for none; one that has ended is none. */
static __always_inline __u64 capture_of(const struct fold_capture_key *key)
{
	__u64 *number = bpf_map_lookup_elem(&fold_captures, key), capture;

	if (!number)
		return 0;
	capture = *number;
	return bpf_map_lookup_elem(&fold_open_captures, &capture) ? capture : 0;
}

/* Whether this call is recorded rather than run. */
static __always_inline int is_captured(const struct folded *f)
{
	struct fold_capture_key key;

	if (!state.open_captures)
		return 0;
	capture_stream_key(f, &key);
	return capture_of(&key) != 0;
}

static __always_inline void capture_close(const struct fold_capture_key *stream)
{
	__u64 capture = capture_of(stream);

	if (capture && !bpf_map_delete_elem(&fold_open_captures, &capture))
		__sync_fetch_and_add(&state.open_captures, -1ull);
}

static __always_inline void capture_begun(const struct folded *f)
{
	struct fold_open_capture open = { .born_ns = f->born_ns, .tgid = f->tgid };
	__u64 capture = f->call->head.time_ns; /* unique enough: two would begin in one ns */
	struct fold_capture_key stream;

	capture_stream_key(f, &stream);
	capture_close(&stream); /* its end was not seen */
	if (bpf_map_update_elem(&fold_open_captures, &capture, &open, BPF_NOEXIST) ||
	    bpf_map_update_elem(&fold_captures, &stream, &capture, BPF_ANY)) {
		fold_lost_row();
		return;
	}
	__sync_fetch_and_add(&state.open_captures, 1);
}

static __always_inline void capture_ended(const struct folded *f)
{
	struct fold_capture_key stream;
	int result = f->call->result;

	if (fold_failed(f) && result != CAPTURE_INVALIDATED && result != CAPTURE_UNJOINED)
		return;
	capture_stream_key(f, &stream);
	capture_close(&stream);
	bpf_map_delete_elem(&fold_captures, &stream);
}

/* From a stream to an event, or from an event to a stream. */
static __always_inline void capture_spread(const struct fold_capture_key *from,
                                           const struct fold_capture_key *to, int leave)
{
	__u64 capture = capture_of(from);

	if (capture)
		bpf_map_update_elem(&fold_captures, to, &capture, BPF_ANY);
	else if (leave)
		bpf_map_delete_elem(&fold_captures, to);
}

static __always_inline void capture_event(const struct folded *f, int waits)
{
	struct fold_capture_key stream, event;

	if (!state.open_captures || fold_failed(f))
		return;
	capture_stream_key(f, &stream);
	capture_event_key(f, &event);
	if (waits)
		capture_spread(&event, &stream, 0);
	else
		capture_spread(&stream, &event, 1);
}

static __always_inline void fold_capture(const struct folded *f)
{
	switch (f->plan->op) {
	case FOLD_CAPTURE_BEGIN:
		if (!fold_failed(f))
			capture_begun(f);
		break;
	case FOLD_CAPTURE_END:
		capture_ended(f);
		break;
	case FOLD_EVENT_RECORD:
		capture_event(f, 0);
		break;
	case FOLD_EVENT_WAIT:
		capture_event(f, 1);
		break;
	}
}
