// SPDX-License-Identifier: MIT
#include "analysis/streams.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/busy.h"
#include "analysis/by_id.h"
#include "analysis/work.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/order.h"

/* The stream that an activity is of, in its process. */
#define ACTIVITY_ID(activity) ((uint64_t)(activity)->context << 32 | (activity)->stream)
#define ACTIVITY_OTHERS       UINT64_MAX

struct stream_key_here {
	uint64_t kind, id, tid; /* tid: of a thread's own stream, else 0 */
};

struct tracked_stream {
	struct stream_key_here key;
	struct stream_row row;
	size_t at; /* in the rows, while they are made */
	UT_hash_handle hh;
};

/* A stream as CUPTI counts them, and the one that calls know, once one of them has told. */
struct gpu_stream {
	uint64_t id;
	struct tracked_stream *stream; /* NULL: not known */
	const struct process *process;
	uint64_t activities, first_ns, last_ns;
	struct busy busy;
	UT_hash_handle hh;
};

struct process_streams {
	struct tracked_stream *streams, *last;
	struct gpu_stream *gpu;
};

struct streams {
	struct consumer consumer; /* first: what callers hold */
	struct work *work;
	struct process_streams **processes; /* by id */
	size_t n_processes;
	struct stream_row *rows;
};

uint64_t call_stream(const struct call *call)
{
	if (call->args.stream)
		return call->args.stream;
	return api_is_per_thread(call->function->name) ? STREAM_PER_THREAD : 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct process_streams *process_of(struct streams *streams, const struct process *process)
{
	struct process_streams **of = BY_ID(streams->processes, streams->n_processes, process->id);

	if (!*of)
		*of = xcalloc(1, sizeof(**of));
	return *of;
}

static struct tracked_stream *find(struct process_streams *process, struct stream_key_here key)
{
	return MAP_FIND(process->streams, &key);
}

static struct tracked_stream *add(struct process_streams *process, const struct event *event,
                                  struct stream_key_here key)
{
	struct tracked_stream *made = MAP_ADD(process->streams, key, &key);

	made->row.process = event->process;
	made->row.kind = (enum stream_kind)key.kind;
	made->row.id = key.id;
	made->row.tid = (uint32_t)key.tid;
	made->row.first_ns = UINT64_MAX;
	return made;
}

static struct tracked_stream *stream_of(struct process_streams *process, const struct event *event,
                                        enum stream_kind kind, uint64_t id)
{
	struct tracked_stream *stream = process->last;
	struct stream_key_here key = { kind, id, id == STREAM_PER_THREAD ? event->tid : 0 };

	if (stream && stream->key.kind == key.kind && stream->key.id == key.id &&
	    stream->key.tid == key.tid)
		return stream;
	stream = find(process, key);
	if (!stream && HASH_COUNT(process->streams) >= STREAMS_MAX) {
		key = (struct stream_key_here){ STREAM_OTHERS, 0, 0 };
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
		memory_count_add(&row->copies, call->args.bytes);
		break;
	case OP_SET:
		memory_count_add(&row->sets, call->args.bytes);
		break;
	case OP_SYNC:
		row->syncs++;
		row->sync_ns += call_duration_ns(call);
		break;
	default:
		break;
	}
}

static void count_call(struct streams *streams, const struct event *event)
{
	const struct call *call = event->call;
	struct process_streams *process;
	struct tracked_stream *stream;

	if (!call->args.has_stream && call->op != OP_COPY && call->op != OP_SET)
		return;
	if (!call_counts(call))
		return;
	process = process_of(streams, event->process);
	stream = stream_of(process, event, STREAM_HANDLE, call_stream(call));
	used(&stream->row, call->begin_ns, event->time_ns);
	count_work(&stream->row, call);
}

/* ---- activities ---------------------------------------------------------------------------- */

static struct gpu_stream *find_gpu(struct process_streams *process, uint64_t id)
{
	return MAP_FIND(process->gpu, &id);
}

static struct gpu_stream *gpu_of(struct process_streams *process, const struct event *event)
{
	uint64_t id = ACTIVITY_ID(event->activity);
	struct gpu_stream *gpu = find_gpu(process, id);

	if (!gpu && HASH_COUNT(process->gpu) >= STREAMS_MAX) {
		id = ACTIVITY_OTHERS;
		gpu = find_gpu(process, id);
	}
	if (gpu)
		return gpu;
	gpu = MAP_ADD(process->gpu, id, &id);
	gpu->process = event->process;
	gpu->first_ns = UINT64_MAX;
	return gpu;
}

static void count_activity(struct streams *streams, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct process_streams *process = process_of(streams, event->process);
	struct gpu_stream *gpu = gpu_of(process, event);

	gpu->activities++;
	if (activity->begin_ns < gpu->first_ns)
		gpu->first_ns = activity->begin_ns;
	if (activity->end_ns > gpu->last_ns)
		gpu->last_ns = activity->end_ns;
	busy_add(&gpu->busy, activity->begin_ns, activity->end_ns);
}

/* One call tells of which stream all is that has the same number at CUPTI's. */
static void tie(void *data, const struct work_done *done, const struct work_call *call)
{
	struct process_streams *process = process_of(data, done->process);
	struct gpu_stream *gpu = find_gpu(process, ACTIVITY_ID(done->activity));
	struct stream_key_here key;

	if (!gpu || gpu->stream || !call)
		return;
	key = (struct stream_key_here){ STREAM_HANDLE, call->stream,
		                        call->stream == STREAM_PER_THREAD ? call->tid : 0 };
	gpu->stream = find(process, key);
	if (!gpu->stream)
		gpu->stream = find(process, (struct stream_key_here){ STREAM_OTHERS, 0, 0 });
}

static int streams_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct streams *streams = (struct streams *)self;

	if (event->type == EVENT_CALL)
		count_call(streams, event);
	else if (event->type == EVENT_ACTIVITY)
		count_activity(streams, event);
	work_join(streams->work, event, tie, streams);
	return 0;
}

/* ---- the outside --------------------------------------------------------------------------- */

ORDER_BY(by_first_use, struct stream_row, UP(process->id), UP(first_ns), UP(id));

/* The rows that calls know. */
static void add_streams(struct streams *streams, struct process_streams *process, size_t *n)
{
	struct tracked_stream *stream, *next;

	HASH_ITER (hh, process->streams, stream, next) {
		stream->at = *n;
		streams->rows[(*n)++] = stream->row;
	}
}

static void add_gpu_streams(struct streams *streams, struct process_streams *process, size_t *n)
{
	struct gpu_stream *gpu, *next;

	HASH_ITER (hh, process->gpu, gpu, next) {
		struct stream_row *row;

		if (gpu->stream) {
			row = &streams->rows[gpu->stream->at];
		} else {
			row = &streams->rows[(*n)++];
			row->process = gpu->process;
			row->kind = gpu->id == ACTIVITY_OTHERS ? STREAM_OTHERS : STREAM_ACTIVITY;
			row->id = (uint32_t)gpu->id;
			row->first_ns = UINT64_MAX;
		}
		row->activities += gpu->activities;
		row->busy_ns += busy_ns(&gpu->busy);
		row->short_ns += busy_short_ns(&gpu->busy);
		used(row, gpu->first_ns, gpu->last_ns);
	}
}

const struct stream_row *streams_rows(struct consumer *self, size_t *n)
{
	struct streams *streams = (struct streams *)self;
	size_t room = 1;

	for (size_t i = 0; i < streams->n_processes; i++) {
		if (streams->processes[i])
			room += HASH_COUNT(streams->processes[i]->streams) +
			        HASH_COUNT(streams->processes[i]->gpu);
	}
	free(streams->rows);
	streams->rows = xcalloc(room, sizeof(*streams->rows));
	*n = 0;
	for (size_t i = 0; i < streams->n_processes; i++) {
		if (!streams->processes[i])
			continue;
		add_streams(streams, streams->processes[i], n);
		add_gpu_streams(streams, streams->processes[i], n);
	}
	SORT(streams->rows, *n, by_first_use);
	return streams->rows;
}

void stream_name(const struct stream_row *row, struct buf *out)
{
	if (row->kind == STREAM_OTHERS)
		buf_puts(out, "others");
	else if (row->kind == STREAM_ACTIVITY)
		buf_printf(out, "GPU stream %lu", row->id);
	else if (!row->id)
		buf_puts(out, "default");
	else if (row->id == STREAM_LEGACY)
		buf_puts(out, "legacy");
	else if (row->id == STREAM_PER_THREAD)
		buf_printf(out, "per-thread %u", row->tid);
	else
		buf_hex(out, row->id);
}

static void free_process(struct process_streams *process)
{
	struct gpu_stream *gpu, *next_gpu;

	if (!process)
		return;
	HASH_ITER (hh, process->gpu, gpu, next_gpu) {
		HASH_DELETE(hh, process->gpu, gpu);
		busy_free(&gpu->busy);
		free(gpu);
	}
	MAP_FREE(process->streams, free);
	free(process);
}

static void streams_free(struct consumer *self)
{
	struct streams *streams = (struct streams *)self;

	for (size_t i = 0; i < streams->n_processes; i++)
		free_process(streams->processes[i]);
	work_free(streams->work);
	FREE_ALL(streams->processes, streams->rows, streams);
}

static const struct consumer_ops streams_ops = { .event = streams_event, .free = streams_free };

struct consumer *streams_new(struct work *work)
{
	struct streams *streams = xcalloc(1, sizeof(*streams));

	streams->consumer.ops = &streams_ops;
	streams->work = work_share(work);
	return &streams->consumer;
}
