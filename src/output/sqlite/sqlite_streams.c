// SPDX-License-Identifier: MIT
/*
 * Contexts and streams of processes: those on which something ran, since a call has a handle of a
 * stream and CUPTI a number. Readers find by them which process a device's work was of.
 */
#include <stdlib.h>

#include "base/map.h"
#include "output/sqlite/sqlite.h"

#define STREAMS_MOST 65536

struct sqlite_stream_key {
	uint32_t pid, context, stream;
};

struct sqlite_stream {
	struct sqlite_stream_key key;
	uint32_t device;
	UT_hash_handle hh;
};

void sqlite_free_streams(struct sqlite *sqlite)
{
	MAP_FREE(sqlite->streams, free);
}

void sqlite_note_stream(struct sqlite *sqlite, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct sqlite_stream_key key = { event->process->pid, activity->context, activity->stream };
	struct sqlite_stream *stream = MAP_FIND(sqlite->streams, &key);

	if (stream || HASH_COUNT(sqlite->streams) >= STREAMS_MOST)
		return;
	stream = MAP_ADD(sqlite->streams, key, &key);
	stream->device = activity->device;
}

/* By process and context; of one the default stream comes first. */
static int in_order(const struct sqlite_stream *a, const struct sqlite_stream *b)
{
	if (a->key.pid != b->key.pid)
		return a->key.pid < b->key.pid ? -1 : 1;
	if (a->key.context != b->key.context)
		return a->key.context < b->key.context ? -1 : 1;
	return a->key.stream < b->key.stream ? -1 : 1;
}

static void add_context(struct database *db, const struct sqlite_stream *first)
{
	row_begin(db, TABLE_CUDA_CONTEXT);
	add_or_null(db, first->key.stream, first->key.stream == CUPTI_FIRST_NULL_STREAM);
	row_int(db, 0);
	row_int(db, MACHINE);
	row_int(db, first->key.pid);
	row_int(db, first->device);
	row_int(db, first->key.context);
	row_end(db); /* its parent, and whether it is a green one, CUPTI does not tell of kernels */
}

static void add_stream(struct database *db, const struct sqlite_stream *stream)
{
	row_begin(db, TABLE_CUDA_STREAM);
	row_int(db, stream->key.stream);
	row_int(db, 0);
	row_int(db, MACHINE);
	row_int(db, stream->key.pid);
	row_int(db, stream->key.context);
	row_null(db);
	add_or_null(db, NSYS_STREAM_NULL, stream->key.stream == CUPTI_FIRST_NULL_STREAM);
	row_end(db);
}

void sqlite_add_streams(struct sqlite *sqlite)
{
	const struct sqlite_stream *before = NULL;
	struct sqlite_stream *stream, *next;

	HASH_SORT(sqlite->streams, in_order);
	HASH_ITER (hh, sqlite->streams, stream, next) {
		if (!before || before->key.pid != stream->key.pid ||
		    before->key.context != stream->key.context)
			add_context(sqlite->db, stream);
		add_stream(sqlite->db, stream);
		before = stream;
	}
}
