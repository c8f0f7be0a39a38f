// SPDX-License-Identifier: MIT
#include "capture/graph_captures.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/xalloc.h"

struct graph_captures_key {
	uint64_t handle; /* of a stream or an event */
	uint32_t tgid;
	uint32_t tid; /* of the per-thread stream, else 0 */
};

/* A stream or event that belongs to a capture. */
struct graph_captures_member {
	struct graph_captures_key key;
	uint64_t capture; /* number of the capture */
	UT_hash_handle hh;
};

struct graph_captures {
	struct graph_captures_member *streams, *events;
	uint64_t next;
};

struct graph_captures *graph_captures_new(void)
{
	return xcalloc(1, sizeof(struct graph_captures));
}

static void drop(struct graph_captures_member **table, uint32_t tgid, uint64_t capture)
{
	struct graph_captures_member *member, *next;

	HASH_ITER (hh, *table, member, next) {
		if (tgid ? member->key.tgid == tgid : !capture || member->capture == capture)
			MAP_DROP(*table, member);
	}
}

void graph_captures_free(struct graph_captures *captures)
{
	if (!captures)
		return;
	drop(&captures->streams, 0, 0);
	drop(&captures->events, 0, 0);
	free(captures);
}

static struct graph_captures_key stream_key(uint32_t tgid, uint32_t tid, uint64_t stream)
{
	return (struct graph_captures_key){ .handle = stream,
		                            .tgid = tgid,
		                            .tid = stream == STREAM_PER_THREAD ? tid : 0 };
}

static struct graph_captures_member *find(struct graph_captures_member *table,
                                          struct graph_captures_key key)
{
	return MAP_FIND(table, &key);
}

static void join(struct graph_captures_member **table, struct graph_captures_key key,
                 uint64_t capture)
{
	struct graph_captures_member *member = find(*table, key);

	if (!member)
		member = MAP_ADD(*table, key, &key);
	member->capture = capture;
}

static void leave(struct graph_captures_member **table, struct graph_captures_key key)
{
	struct graph_captures_member *member = find(*table, key);

	if (member)
		MAP_DROP(*table, member);
}

static void end_capture(struct graph_captures *captures, struct graph_captures_key key)
{
	const struct graph_captures_member *stream = find(captures->streams, key);
	uint64_t capture;

	if (!stream)
		return;
	capture = stream->capture;
	drop(&captures->streams, 0, capture);
	drop(&captures->events, 0, capture);
}

void graph_captures_follow(struct graph_captures *captures, uint32_t tgid, uint32_t tid,
                           const struct call *call)
{
	struct graph_captures_key stream = stream_key(tgid, tid, call->args.stream);
	struct graph_captures_key event = { .handle = call->args.event, .tgid = tgid };
	const struct graph_captures_member *from;

	switch (call->op) {
	case OP_CAPTURE_BEGIN:
		end_capture(captures, stream); /* its end was not seen */
		join(&captures->streams, stream, ++captures->next);
		break;
	case OP_CAPTURE_END:
		end_capture(captures, stream);
		break;
	case OP_EVENT_RECORD:
		from = find(captures->streams, stream);
		if (from)
			join(&captures->events, event, from->capture);
		else
			leave(&captures->events, event);
		break;
	case OP_EVENT_WAIT:
		from = find(captures->events, event);
		if (from)
			join(&captures->streams, stream, from->capture);
		break;
	default:
		break;
	}
}

bool graph_captures_stream(const struct graph_captures *captures, uint32_t tgid, uint32_t tid,
                           uint64_t stream)
{
	return captures->streams && find(captures->streams, stream_key(tgid, tid, stream));
}

void graph_captures_forget(struct graph_captures *captures, uint32_t tgid)
{
	drop(&captures->streams, tgid, 0);
	drop(&captures->events, tgid, 0);
}
