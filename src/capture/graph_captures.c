// SPDX-License-Identifier: MIT
#include "capture/graph_captures.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/xalloc.h"

#define MEMBER_BYTES (sizeof(struct member) + sizeof(struct capture))

struct member_key {
	uint64_t handle; /* of a stream or an event */
	uint32_t tgid;
	uint32_t tid; /* of the per-thread stream, else 0 */
};

/* A stream or event that belongs to a capture. */
struct member {
	struct member_key key;
	struct capture *capture;
	struct member **table;
	LIST_ENTRY(member) of_capture;
	UT_hash_handle hh;
};

/* It ends with its last member. */
struct capture {
	struct capturing *process;
	LIST_HEAD(, member) members;
	LIST_ENTRY(capture) of_process;
};

/* A process that has captures. */
struct capturing {
	uint32_t tgid;
	LIST_HEAD(, capture) captures;
	UT_hash_handle hh;
};

struct graph_captures {
	struct budget *budget;
	struct member *streams, *events;
	struct capturing *processes;
};

struct graph_captures *graph_captures_new(struct budget *budget)
{
	struct graph_captures *captures = xcalloc(1, sizeof(*captures));

	captures->budget = budget;
	return captures;
}

static void capture_leave(struct graph_captures *captures, struct member *member)
{
	struct capture *capture = member->capture;
	struct capturing *process = capture->process;

	LIST_REMOVE(member, of_capture);
	if (!LIST_EMPTY(&capture->members))
		return;
	LIST_REMOVE(capture, of_process);
	free(capture);
	if (LIST_EMPTY(&process->captures))
		MAP_DROP(captures->processes, process);
}

static void capture_add(struct capture *capture, struct member *member)
{
	LIST_INSERT_HEAD(&capture->members, member, of_capture);
	member->capture = capture;
}

static void member_drop(struct graph_captures *captures, struct member *member)
{
	budget_give(captures->budget, member->key.tgid, MEMBER_BYTES);
	capture_leave(captures, member);
	MAP_DROP(*member->table, member);
}

static void capture_end(struct graph_captures *captures, struct capture *capture)
{
	struct member *member, *next;

	for (member = LIST_FIRST(&capture->members); member; member = next) {
		next = LIST_NEXT(member, of_capture); /* the capture goes with the last one */
		member_drop(captures, member);
	}
}

static void process_end(struct graph_captures *captures, struct capturing *process)
{
	struct capture *capture, *next;

	for (capture = LIST_FIRST(&process->captures); capture; capture = next) {
		next = LIST_NEXT(capture, of_process);
		capture_end(captures, capture);
	}
}

void graph_captures_free(struct graph_captures *captures)
{
	struct capturing *process, *next;

	if (!captures)
		return;
	HASH_ITER (hh, captures->processes, process, next)
		process_end(captures, process);
	free(captures);
}

static struct member_key stream_key(uint32_t tgid, uint32_t tid, uint64_t stream)
{
	return (struct member_key){ .handle = stream,
		                    .tgid = tgid,
		                    .tid = stream == STREAM_PER_THREAD ? tid : 0 };
}

/* NULL: what targets may keep is full. A launch on that stream counts as one that runs. */
static struct member *member_new(struct graph_captures *captures, struct member **table,
                                 const struct member_key *key)
{
	struct member *member;

	if (!budget_take(captures->budget, key->tgid, MEMBER_BYTES))
		return NULL;
	member = MAP_ADD(*table, key, key);
	member->table = table;
	return member;
}

static void captures_begin(struct graph_captures *captures, const struct member_key *key)
{
	struct member *stream = MAP_FIND(captures->streams, key);
	struct capture *capture;

	if (stream)
		capture_end(captures, stream->capture); /* its end was not seen */
	stream = member_new(captures, &captures->streams, key);
	if (!stream)
		return;
	capture = xcalloc(1, sizeof(*capture));
	capture->process = MAP_MAKE(captures->processes, tgid, &key->tgid);
	LIST_INSERT_HEAD(&capture->process->captures, capture, of_process);
	capture_add(capture, stream);
}

static void captures_join(struct graph_captures *captures, struct member **table,
                          const struct member_key *key, struct capture *capture)
{
	struct member *member = MAP_FIND(*table, key);

	if (member && member->capture == capture)
		return;
	if (member)
		capture_leave(captures, member);
	else
		member = member_new(captures, table, key);
	if (member)
		capture_add(capture, member);
}

void graph_captures_follow(struct graph_captures *captures, uint32_t tgid, uint32_t tid,
                           const struct call *call)
{
	const struct member_key stream = stream_key(tgid, tid, call->args.stream);
	const struct member_key event = { .handle = call->args.event, .tgid = tgid };
	struct member *from, *was;

	switch (call->op) {
	case OP_CAPTURE_BEGIN:
		captures_begin(captures, &stream);
		break;
	case OP_CAPTURE_END:
		from = MAP_FIND(captures->streams, &stream);
		if (from)
			capture_end(captures, from->capture);
		break;
	case OP_EVENT_RECORD:
		from = MAP_FIND(captures->streams, &stream);
		was = MAP_FIND(captures->events, &event);
		if (from)
			captures_join(captures, &captures->events, &event, from->capture);
		else if (was)
			member_drop(captures, was);
		break;
	case OP_EVENT_WAIT:
		from = MAP_FIND(captures->events, &event);
		if (from)
			captures_join(captures, &captures->streams, &stream, from->capture);
		break;
	default:
		break;
	}
}

bool graph_captures_stream(const struct graph_captures *captures, uint32_t tgid, uint32_t tid,
                           uint64_t stream)
{
	const struct member_key key = stream_key(tgid, tid, stream);

	return captures->streams && MAP_FIND(captures->streams, &key);
}

void graph_captures_forget(struct graph_captures *captures, uint32_t tgid)
{
	struct capturing *process = MAP_FIND(captures->processes, &tgid);

	if (process)
		process_end(captures, process);
}
