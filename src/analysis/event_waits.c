// SPDX-License-Identifier: MIT
#include "analysis/event_waits.h"

#include <stdlib.h>

#include "analysis/streams.h"
#include "analysis/work.h"
#include "base/map.h"
#include "base/xalloc.h"

/* Each takes 100 to 150 bytes. */
#define STREAMS_MOST 16384
#define EVENTS_MOST  65536
#define WAITS_MOST   65536

#define PATIENCE 4096 /* launches on a stream until the one whose work did not come is given up */

/* All are known by a process and a number of its own: no padding. */
struct waits_key {
	uint64_t number;       /* handle or correlation */
	uint32_t process, tid; /* tid: of a thread's own stream, else 0 */
};

struct waits_stream {
	struct waits_key key, awaited; /* awaited: a call whose work tells the number; 0: none */
	uint32_t number;               /* 0: not known */
	bool several;                  /* it has more than one */
	uint32_t launches;             /* since it is awaited */
	UT_hash_handle hh, hh_awaited;
};

struct waits_event {
	struct waits_key key;
	uint64_t number, record;
	struct waits_stream *stream; /* NULL: not known */
	UT_hash_handle hh;
};

struct waits_wait {
	struct waits_key key;
	uint64_t event, record;
	const struct waits_stream *stream;
	UT_hash_handle hh;
};

struct event_waits {
	struct waits_stream *streams, *awaited;
	struct waits_event *events;
	struct waits_wait *waits;
};

struct event_waits *event_waits_new(void)
{
	return xcalloc(1, sizeof(struct event_waits));
}

void event_waits_free(struct event_waits *waits)
{
	if (!waits)
		return;
	HASH_CLEAR(hh_awaited, waits->awaited);
	MAP_FREE(waits->streams, free);
	MAP_FREE(waits->events, free);
	MAP_FREE(waits->waits, free);
	free(waits);
}

/* ---- numbers of streams ---------------------------------------------------------------------- */

/* NULL: there is no room. */
static struct waits_stream *stream_of(struct event_waits *waits, const struct event *event)
{
	struct waits_key key = { call_stream(event->call), event->process->id, 0 };
	struct waits_stream *stream;

	if (key.number == STREAM_PER_THREAD)
		key.tid = event->tid;
	stream = MAP_FIND(waits->streams, &key);
	if (stream || HASH_COUNT(waits->streams) >= STREAMS_MOST)
		return stream;
	return MAP_ADD(waits->streams, key, &key);
}

/* One call of a stream at a time: what it has run tells the number, and whether that stays. */
static void await(struct event_waits *waits, const struct event *event)
{
	struct waits_stream *stream = stream_of(waits, event), *other;

	if (!stream || stream->several)
		return;
	if (stream->awaited.number && stream->launches++ < PATIENCE)
		return;
	if (stream->awaited.number)
		HASH_DELETE(hh_awaited, waits->awaited, stream);
	stream->awaited = (struct waits_key){ event->call->correlation, event->process->id, 0 };
	stream->launches = 0;
	HASH_FIND(hh_awaited, waits->awaited, &stream->awaited, sizeof(stream->awaited), other);
	if (other) /* a damaged file has a number twice */
		stream->awaited.number = 0;
	else
		HASH_ADD(hh_awaited, waits->awaited, awaited, sizeof(stream->awaited), stream);
}

static void learn(struct event_waits *waits, const struct event *event)
{
	struct waits_key key = { event->activity->correlation, event->process->id, 0 };
	uint32_t number = event->activity->stream;
	struct waits_stream *stream;

	HASH_FIND(hh_awaited, waits->awaited, &key, sizeof(key), stream);
	if (!stream)
		return;
	HASH_DELETE(hh_awaited, waits->awaited, stream);
	stream->awaited.number = 0;
	stream->several |= stream->number && stream->number != number;
	stream->number = number;
}

static void note_streams(struct event_waits *waits, const struct event *event)
{
	if (event->type == EVENT_CALL && event->call->correlation &&
	    event->call->op != OP_GRAPH_LAUNCH && call_asks_for_work(event->call))
		await(waits, event);
	else if (event->type == EVENT_ACTIVITY && !event->activity->graph)
		learn(waits, event);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct waits_event *event_of(struct event_waits *waits, const struct event *event)
{
	struct waits_key key = { event->call->args.event, event->process->id, 0 };
	struct waits_event *found = MAP_FIND(waits->events, &key);

	if (found || HASH_COUNT(waits->events) >= EVENTS_MOST)
		return found;
	found = xcalloc(1, sizeof(*found));
	found->key = key;
	found->number = HASH_COUNT(waits->events) + 1ull;
	HASH_ADD(hh, waits->events, key, sizeof(found->key), found);
	return found;
}

/* The oldest makes room: its wait has been told of, or never is. */
static void forget_oldest(struct event_waits *waits)
{
	struct waits_wait *oldest = waits->waits;

	MAP_DROP(waits->waits, oldest);
}

static void note_wait(struct event_waits *waits, const struct event *event,
                      const struct waits_event *on)
{
	struct waits_key key = { event->call->correlation, event->process->id, 0 };
	struct waits_wait *wait = MAP_FIND(waits->waits, &key);

	if (wait)
		return;
	if (HASH_COUNT(waits->waits) >= WAITS_MOST)
		forget_oldest(waits);
	wait = MAP_ADD(waits->waits, key, &key);
	wait->event = on->number;
	wait->record = on->record;
	wait->stream = on->stream;
}

void event_waits_event(struct event_waits *waits, const struct event *event)
{
	const struct call *call = event->call;
	struct waits_event *on;

	note_streams(waits, event);
	if (event->type != EVENT_CALL || !call->args.event || !call->correlation ||
	    !call_counts(call))
		return;
	if (call->op != OP_EVENT_RECORD && call->op != OP_EVENT_WAIT && call->op != OP_SYNC)
		return;
	on = event_of(waits, event);
	if (on && call->op == OP_EVENT_RECORD) {
		on->record = call->correlation;
		on->stream = stream_of(waits, event);
	} else if (on) {
		note_wait(waits, event, on);
	}
}

void event_waits_rewind(struct event_waits *waits)
{
	struct waits_event *event, *next;

	HASH_ITER (hh, waits->events, event, next) {
		event->record = 0;
		event->stream = NULL;
	}
}

bool event_waits_find(const struct event_waits *waits, const struct process *process,
                      uint64_t correlation, struct event_wait *found)
{
	struct waits_key key = { correlation, process->id, 0 };
	struct waits_wait *wait = MAP_FIND(waits->waits, &key);

	if (!wait)
		return false;
	found->event = wait->event;
	found->record = wait->record;
	found->stream =
		wait->record && wait->stream && !wait->stream->several ? wait->stream->number : 0;
	return true;
}
