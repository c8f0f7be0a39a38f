// SPDX-License-Identifier: MIT
#include "report/gaps/nonblocking.h"

#include <stdlib.h>

#include "analysis/memory.h"
#include "base/hash.h"
#include "base/xalloc.h"

#define FLAG 1 /* cudaStreamNonBlocking, CU_STREAM_NON_BLOCKING */

struct nonblocking_key {
	uint64_t process, stream;
};

struct nonblocking_stream {
	struct nonblocking_key key;
	UT_hash_handle hh;
};

struct nonblocking {
	struct nonblocking_stream *all;
};

struct nonblocking *nonblocking_new(void)
{
	return xcalloc(1, sizeof(struct nonblocking));
}

void nonblocking_free(struct nonblocking *streams)
{
	struct nonblocking_stream *stream, *next;

	if (!streams)
		return;
	HASH_ITER (hh, streams->all, stream, next) {
		HASH_DELETE(hh, streams->all, stream);
		free(stream);
	}
	free(streams);
}

static struct nonblocking_stream *find(const struct nonblocking *streams, uint64_t process,
                                       uint64_t handle)
{
	struct nonblocking_key key = { process, handle };
	struct nonblocking_stream *found;

	HASH_FIND(hh, streams->all, &key, sizeof(key), found);
	return found;
}

static void add(struct nonblocking *streams, uint64_t process, uint64_t handle)
{
	struct nonblocking_stream *stream;

	if (HASH_COUNT(streams->all) >= NONBLOCKING_MOST)
		return;
	stream = xcalloc(1, sizeof(*stream));
	stream->key.process = process;
	stream->key.stream = handle;
	HASH_ADD(hh, streams->all, key, sizeof(stream->key), stream);
}

/* A handle that is given out again can be of a stream of the other sort. */
void nonblocking_event(struct nonblocking *streams, const struct event *event)
{
	const struct call *call = event->call;
	uint64_t handle = 0, flags = 0;
	const struct api_arg *args;
	struct nonblocking_stream *known;
	bool is;
	size_t n;

	if (event->type != EVENT_CALL || !call_counts(call) ||
	    (call->op != OP_STREAM_CREATE && call->op != OP_STREAM_DESTROY))
		return;
	n = api_args(call->function->api, &args);
	for (size_t i = 0; i < n; i++) {
		if (args[i].type == T_STREAM)
			handle = call->args.arg[i];
		else if (args[i].type == T_HEX)
			flags = call->args.arg[i];
	}
	is = call->op == OP_STREAM_CREATE && handle && flags & FLAG;
	known = find(streams, event->process->id, handle);
	if (is && !known)
		add(streams, event->process->id, handle);
	if (is || !known)
		return;
	HASH_DELETE(hh, streams->all, known);
	free(known);
}

bool nonblocking_has(const struct nonblocking *streams, uint32_t process, uint64_t stream)
{
	return streams->all && find(streams, process, stream);
}
