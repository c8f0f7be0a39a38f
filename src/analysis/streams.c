// SPDX-License-Identifier: MIT
#include "analysis/streams.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "analysis/busy.h"
#include "analysis/by_id.h"
#include "base/buf.h"

/* Handles that are no pointers: cudaStreamLegacy and cudaStreamPerThread, the same in the driver.
 */
#define HANDLE_LEGACY     1
#define HANDLE_PER_THREAD 2

/* Calls of a process whose activities are still expected; a power of two. */
#define EXPECTED 4096

/* The stream that an activity is of, in its process. */
#define ACTIVITY_ID(activity) ((uint64_t)(activity)->context << 32 | (activity)->stream)

struct key {
	uint64_t kind, id;
};

struct stream {
	struct key key;
	struct stream_row row;
	struct busy busy;
	UT_hash_handle hh;
};

/* CUPTI's number of a stream, and the stream by its handle where a call told it. */
struct gpu_stream {
	uint64_t id;
	struct stream *stream;
	UT_hash_handle hh;
};

struct expected {
	uint64_t correlation;
	struct stream *stream;
};

struct process_streams {
	struct stream *streams, *last;
	struct gpu_stream *gpu;
	struct expected *expected; /* by correlation; made when a first call has one */
};

struct streams {
	struct process_streams **processes; /* by id */
	size_t n_processes;
	struct stream_row *rows;
};

struct streams *streams_new(void)
{
	return xcalloc(1, sizeof(struct streams));
}

uint64_t call_stream(const struct call *call)
{
	const char *name = call->function->name;
	size_t len;

	if (call->args.stream)
		return call->args.stream;
	len = strlen(name);
	if (len > 5 && (!strcmp(name + len - 5, "_ptsz") || !strcmp(name + len - 5, "_ptds")))
		return HANDLE_PER_THREAD;
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct process_streams *process_of(struct streams *streams, const struct process *process)
{
	streams->processes = by_id_room(streams->processes, &streams->n_processes,
	                                sizeof(*streams->processes), process->id);
	if (!streams->processes[process->id])
		streams->processes[process->id] = xcalloc(1, sizeof(struct process_streams));
	return streams->processes[process->id];
}

static struct stream *find(struct process_streams *process, struct key key)
{
	struct stream *found;

	HASH_FIND(hh, process->streams, &key, sizeof(key), found);
	return found;
}

static struct stream *add(struct process_streams *process, const struct event *event,
                          struct key key)
{
	struct stream *made = xcalloc(1, sizeof(*made));

	made->key = key;
	made->row.process = event->process;
	made->row.kind = (enum stream_kind)key.kind;
	made->row.id = key.id;
	made->row.first_ns = UINT64_MAX;
	HASH_ADD(hh, process->streams, key, sizeof(made->key), made);
	return made;
}

static struct stream *stream_of(struct process_streams *process, const struct event *event,
                                enum stream_kind kind, uint64_t id)
{
	struct stream *stream = process->last;
	struct key key = { kind, id };

	if (stream && stream->key.kind == key.kind && stream->key.id == key.id)
		return stream;
	stream = find(process, key);
	if (!stream && HASH_COUNT(process->streams) >= STREAMS_MAX) {
		key = (struct key){ STREAM_OTHERS, 0 };
		stream = find(process, key);
	}
	if (!stream)
		stream = add(process, event, key);
	return process->last = stream;
}

static void used(struct stream_row *row, uint64_t begin_ns, uint64_t end_ns)
{
	if (begin_ns < row->first_ns)
		row->first_ns = begin_ns;
	if (end_ns > row->last_ns)
		row->last_ns = end_ns;
}

/* ---- calls --------------------------------------------------------------------------------- */

static void count(struct memory_count *into, uint64_t bytes)
{
	into->count++;
	into->bytes += bytes;
}

static void count_work(struct stream_row *row, const struct call *call)
{
	switch (call->op) {
	case OP_LAUNCH:
		row->launches++;
		break;
	case OP_GRAPH_LAUNCH:
		row->graph_launches++;
		break;
	case OP_HOST_LAUNCH:
		row->host_launches++;
		break;
	case OP_COPY:
		count(&row->copies, call->args.bytes);
		break;
	case OP_SET:
		count(&row->sets, call->args.bytes);
		break;
	case OP_SYNC:
		row->syncs++;
		row->sync_ns += call_duration_ns(call);
		break;
	default:
		break;
	}
}

static void expect(struct process_streams *process, uint64_t correlation, struct stream *stream)
{
	if (!correlation)
		return;
	if (!process->expected)
		process->expected = xcalloc(EXPECTED, sizeof(*process->expected));
	process->expected[correlation % EXPECTED] = (struct expected){ correlation, stream };
}

static void count_call(struct streams *streams, const struct event *event)
{
	const struct call *call = event->call;
	struct process_streams *process;
	struct stream *stream;

	if (!call->args.has_stream && call->op != OP_COPY && call->op != OP_SET)
		return;
	if (!call_counts(call) && !(call->flags & CALL_NESTED)) /* a nested one may be what */
		return;                                         /* an activity refers to */
	process = process_of(streams, event->process);
	stream = stream_of(process, event, STREAM_HANDLE, call_stream(call));
	expect(process, call->correlation, stream);
	if (call->flags & CALL_NESTED)
		return;
	used(&stream->row, call->begin_ns, event->time_ns);
	count_work(&stream->row, call);
}

/* ---- activities ---------------------------------------------------------------------------- */

/* The stream of the call that asked for it: found once, it is known for all that follow. */
static struct stream *stream_of_activity(struct process_streams *process, const struct event *event)
{
	const struct activity *activity = event->activity;
	uint64_t id = ACTIVITY_ID(activity);
	const struct expected *expected =
		process->expected ? &process->expected[activity->correlation % EXPECTED] : NULL;
	struct gpu_stream *gpu;

	HASH_FIND(hh, process->gpu, &id, sizeof(id), gpu);
	if (gpu)
		return gpu->stream;
	if (!activity->correlation || !expected || expected->correlation != activity->correlation)
		return stream_of(process, event, STREAM_ACTIVITY, activity->stream);
	gpu = xcalloc(1, sizeof(*gpu));
	gpu->id = id;
	gpu->stream = expected->stream;
	HASH_ADD(hh, process->gpu, id, sizeof(gpu->id), gpu);
	return gpu->stream;
}

static void count_activity(struct streams *streams, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct stream *stream = stream_of_activity(process_of(streams, event->process), event);

	stream->row.activities++;
	used(&stream->row, activity->begin_ns, activity->end_ns);
	busy_add(&stream->busy, activity->begin_ns, activity->end_ns);
}

void streams_event(struct streams *streams, const struct event *event)
{
	if (event->type == EVENT_CALL)
		count_call(streams, event);
	else if (event->type == EVENT_ACTIVITY)
		count_activity(streams, event);
}

/* ---- the outside --------------------------------------------------------------------------- */

static int by_first_use(const void *left, const void *right)
{
	const struct stream_row *a = left, *b = right;

	if (a->process->id != b->process->id)
		return a->process->id < b->process->id ? -1 : 1;
	if (a->first_ns != b->first_ns)
		return a->first_ns < b->first_ns ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

const struct stream_row *streams_rows(struct streams *streams, size_t *n)
{
	size_t room = 1;

	for (size_t i = 0; i < streams->n_processes; i++)
		room += streams->processes[i] ? HASH_COUNT(streams->processes[i]->streams) : 0;
	free(streams->rows);
	streams->rows = xcalloc(room, sizeof(*streams->rows));
	*n = 0;
	for (size_t i = 0; i < streams->n_processes; i++) {
		struct stream *stream, *next;

		if (!streams->processes[i])
			continue;
		HASH_ITER (hh, streams->processes[i]->streams, stream, next) {
			if (!stream->row.last_ns) /* only a nested call named it */
				continue;
			streams->rows[*n] = stream->row;
			streams->rows[(*n)++].busy_ns = busy_ns(&stream->busy);
		}
	}
	qsort(streams->rows, *n, sizeof(*streams->rows), by_first_use);
	return streams->rows;
}

void stream_name(const struct stream_row *row, struct buf *out)
{
	if (row->kind == STREAM_OTHERS)
		buf_puts(out, "others");
	else if (row->kind == STREAM_ACTIVITY)
		buf_printf(out, "GPU stream %llu", (unsigned long long)row->id);
	else if (!row->id)
		buf_puts(out, "default");
	else if (row->id == HANDLE_LEGACY)
		buf_puts(out, "legacy");
	else if (row->id == HANDLE_PER_THREAD)
		buf_puts(out, "per-thread");
	else
		buf_hex(out, row->id);
}

static void free_process(struct process_streams *process)
{
	struct gpu_stream *gpu, *next_gpu;
	struct stream *stream, *next;

	if (!process)
		return;
	HASH_ITER (hh, process->gpu, gpu, next_gpu) {
		HASH_DELETE(hh, process->gpu, gpu);
		free(gpu);
	}
	HASH_ITER (hh, process->streams, stream, next) {
		HASH_DELETE(hh, process->streams, stream);
		free(stream);
	}
	free(process->expected);
	free(process);
}

void streams_free(struct streams *streams)
{
	if (!streams)
		return;
	for (size_t i = 0; i < streams->n_processes; i++)
		free_process(streams->processes[i]);
	free(streams->processes);
	free(streams->rows);
	free(streams);
}
