// SPDX-License-Identifier: MIT
/* The tracks of a Perfetto trace: processes, threads, streams and counters. */
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/owned.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "output/describe.h"
#include "output/perfetto/perfetto.h"
#include "output/who.h"

/* ---- perfetto nest ------------------------------------------------------------------------- */

/* Keeps the slices of a row nested, as Perfetto wants them. */

/* More than this is written as it is: the call around it may never return. */
#define HELD_MOST (64 * 1024)

void nest_flush(struct nest *nest, struct buf *out)
{
	if (nest->held.len)
		buf_add(out, nest->held.data, nest->held.len);
	buf_reset(&nest->held);
	nest->n = 0;
}

void nest_free(struct nest *nest)
{
	buf_free(&nest->held);
}

/* Where those begin that are inside of this one. */
static size_t inner_parts(struct nest *nest, uint64_t begin_ns, uint32_t depth)
{
	size_t at = nest->held.len;

	while (nest->n) {
		const struct nest_part *last = &nest->parts[nest->n - 1];

		if (last->depth <= depth || last->begin_ns < begin_ns)
			break;
		at = last->at;
		nest->n--;
	}
	return at;
}

static void nest_insert(struct buf *into, size_t at, const char *data, size_t len)
{
	buf_reserve(into, len);
	memmove(into->data + at + len, into->data + at, into->len - at);
	memcpy(into->data + at, data, len);
	into->len += len;
}

void nest_add(struct nest *nest, uint64_t begin_ns, uint32_t depth, const struct buf *packets,
              size_t begin_len, struct buf *out)
{
	size_t at;

	if (!depth && !nest->n) { /* nearly all */
		buf_add(out, packets->data, packets->len);
		return;
	}
	at = inner_parts(nest, begin_ns, depth);
	nest_insert(&nest->held, at, packets->data, begin_len);
	buf_add(&nest->held, packets->data + begin_len, packets->len - begin_len);
	nest->parts[nest->n++] = (struct nest_part){ at, begin_ns, depth };
	if (!depth || nest->n == NEST_PARTS || nest->held.len > HELD_MOST)
		nest_flush(nest, out);
}

/* ---- perfetto tracks ----------------------------------------------------------------------- */

enum track_field {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
};

enum process_field { PROCESS_PID = 1, PROCESS_NAME = 6, PROCESS_LABELS = 8 };
enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum counter_field { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6 };
enum counter_unit { UNIT_COUNT = 2, UNIT_SIZE_BYTES = 3 };

struct track_thread_key {
	uint32_t process, tid;
};

struct thread_track {
	struct perfetto_thread thread;
	struct track_thread_key key;
	struct owned owned;
	UT_hash_handle hh;
};

struct track_stream_key {
	uint32_t process, device, context, stream;
};

struct stream_tracks {
	struct track_stream_key key;
	uint64_t parent;
	uint64_t uuid[ROWS_MAX];
	struct rows rows;
	struct owned owned;
	UT_hash_handle hh;
};

/* A device as one process sees it. */
struct device_track {
	struct track_stream_key key; /* context and stream 0 */
	uint64_t uuid;
	struct owned owned;
	UT_hash_handle hh;
};

struct perfetto_tracks {
	struct buf *out;
	struct buf text; /* scratch */
	uint64_t last_uuid;
	uint64_t own;
	struct perfetto_process *processes; /* by id */
	size_t n_processes;
	struct who who;
	struct thread_track *threads, *last_thread;
	struct stream_tracks *streams, *last_stream;
	struct device_track *devices;
	struct owner *of_threads, *of_streams, *of_devices; /* by processes' ids */
	struct {
		uint64_t uuid, metrics[GPU_METRICS_DRAWN];
	} gpus[RUN_GPUS_MAX]; /* of the machine */
};

struct perfetto_tracks *perfetto_tracks_new(struct buf *out)
{
	struct perfetto_tracks *tracks = xcalloc(1, sizeof(*tracks));

	tracks->out = out;
	return tracks;
}

static struct thread_track *thread_add(struct perfetto_tracks *tracks, struct track_thread_key key)
{
	struct thread_track *thread = MAP_ADD(tracks->threads, key, &key);

	owned_add(&tracks->of_threads, key.process, &thread->owned);
	return thread;
}

static void thread_drop(struct perfetto_tracks *tracks, struct thread_track *thread)
{
	owned_remove(&tracks->of_threads, &thread->owned);
	nest_flush(&thread->thread.nest, tracks->out);
	nest_free(&thread->thread.nest);
	MAP_DROP(tracks->threads, thread);
}

static void stream_drop(struct perfetto_tracks *tracks, struct stream_tracks *stream)
{
	owned_remove(&tracks->of_streams, &stream->owned);
	MAP_DROP(tracks->streams, stream);
}

static void device_drop(struct perfetto_tracks *tracks, struct device_track *device)
{
	owned_remove(&tracks->of_devices, &device->owned);
	MAP_DROP(tracks->devices, device);
}

void perfetto_tracks_flush(struct perfetto_tracks *tracks)
{
	struct thread_track *thread, *next_thread;
	struct stream_tracks *stream, *next_stream;
	struct device_track *device, *next_device;

	tracks->last_thread = NULL;
	tracks->last_stream = NULL;
	HASH_ITER (hh, tracks->threads, thread, next_thread)
		thread_drop(tracks, thread);
	HASH_ITER (hh, tracks->streams, stream, next_stream)
		stream_drop(tracks, stream);
	HASH_ITER (hh, tracks->devices, device, next_device)
		device_drop(tracks, device);
}

void perfetto_process_ended(struct perfetto_tracks *tracks, const struct process *process)
{
	struct owned *owned;

	tracks->last_thread = NULL;
	tracks->last_stream = NULL;
	while ((owned = owned_first(tracks->of_threads, process->id)))
		thread_drop(tracks, OWNED_ENTRY(owned, struct thread_track));
	while ((owned = owned_first(tracks->of_streams, process->id)))
		stream_drop(tracks, OWNED_ENTRY(owned, struct stream_tracks));
	while ((owned = owned_first(tracks->of_devices, process->id)))
		device_drop(tracks, OWNED_ENTRY(owned, struct device_track));
}

void perfetto_tracks_free(struct perfetto_tracks *tracks)
{
	perfetto_tracks_flush(tracks);
	free(tracks->processes);
	who_free(&tracks->who);
	buf_free(&tracks->text);
	free(tracks);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

struct descriptor {
	size_t packet, track;
	uint64_t uuid;
};

static struct descriptor open_track(struct perfetto_tracks *tracks, uint64_t parent,
                                    const char *name)
{
	struct descriptor d = { .uuid = ++tracks->last_uuid };

	d.packet = packet_begin(tracks->out, SEQUENCE_NEEDS);
	d.track = pb_begin(tracks->out, PACKET_TRACK_DESCRIPTOR);
	pb_varint(tracks->out, TRACK_UUID, d.uuid);
	if (parent)
		pb_varint(tracks->out, TRACK_PARENT, parent);
	if (name)
		pb_string(tracks->out, TRACK_NAME, name);
	return d;
}

static uint64_t close_track(struct perfetto_tracks *tracks, const struct descriptor *d)
{
	pb_end(tracks->out, d->track);
	pb_end(tracks->out, d->packet);
	return d->uuid;
}

uint64_t perfetto_named_track(struct perfetto_tracks *tracks, uint64_t parent, const char *name)
{
	struct descriptor d = open_track(tracks, parent, name);

	return close_track(tracks, &d);
}

static void add_comm(struct perfetto_tracks *tracks, uint32_t field, const char *comm)
{
	buf_reset(&tracks->text);
	text_add_safe(&tracks->text, comm);
	if (tracks->text.len)
		pb_string(tracks->out, field, tracks->text.data);
}

uint64_t perfetto_own_track(struct perfetto_tracks *tracks)
{
	if (!tracks->own)
		tracks->own = perfetto_named_track(tracks, 0, "cuscope");
	return tracks->own;
}

/* ---- processes ------------------------------------------------------------------------------ */

static void describe_process(struct perfetto_tracks *tracks, struct perfetto_process *into,
                             const struct process *process)
{
	struct descriptor d = open_track(tracks, 0, NULL);
	size_t message = pb_begin(tracks->out, TRACK_PROCESS);

	pb_varint(tracks->out, PROCESS_PID, process->pid);
	add_comm(tracks, PROCESS_NAME, process->comm);
	pb_end(tracks->out, message);
	into->uuid = close_track(tracks, &d);
	into->pid = process->pid;
	who_note(&tracks->who, process);
}

static void label_process(struct perfetto_tracks *tracks, uint64_t uuid,
                          const struct run_identity *identity)
{
	size_t packet = packet_begin(tracks->out, SEQUENCE_NEEDS);
	size_t track = pb_begin(tracks->out, PACKET_TRACK_DESCRIPTOR), message;

	pb_varint(tracks->out, TRACK_UUID, uuid);
	message = pb_begin(tracks->out, TRACK_PROCESS);
	pb_varint(tracks->out, PROCESS_PID, identity->pid);
	for (int i = 0; i < RUN_IDENTITY_WORDS; i++) {
		buf_reset(&tracks->text);
		if (who_label(identity, i, &tracks->text))
			pb_string(tracks->out, PROCESS_LABELS, tracks->text.data);
	}
	pb_end(tracks->out, message);
	pb_end(tracks->out, track);
	pb_end(tracks->out, packet);
}

/* The last program that a process ran has the number's last identity. */
void perfetto_tracks_who(struct perfetto_tracks *tracks, const struct run_info *run)
{
	const struct run_identity *identity;
	size_t at = 0;

	while ((identity = who_next(&tracks->who, run, &at))) {
		for (size_t i = 0; i < tracks->n_processes; i++) {
			const struct perfetto_process *process = &tracks->processes[i];

			if (process->uuid && process->pid == identity->pid)
				label_process(tracks, process->uuid, identity);
		}
	}
}

struct perfetto_process *perfetto_process(struct perfetto_tracks *tracks,
                                          const struct process *process)
{
	tracks->processes = by_id_room(tracks->processes, &tracks->n_processes,
	                               sizeof(*tracks->processes), process->id);
	if (!tracks->processes[process->id].uuid)
		describe_process(tracks, &tracks->processes[process->id], process);
	return &tracks->processes[process->id];
}

uint64_t perfetto_counter_track(struct perfetto_tracks *tracks, const struct process *process,
                                enum api_memory kind)
{
	struct perfetto_process *p = perfetto_process(tracks, process);
	struct perfetto_counter *counter = &p->counters[kind];
	struct descriptor d;
	char name[64];
	size_t message;

	if (counter->uuid)
		return counter->uuid;
	if (kind == MEMORY_NONE)
		snprintf(name, sizeof(name), "GPU work asked for and not done");
	else
		snprintf(name, sizeof(name), "live memory: %s", api_memory_name(kind));
	d = open_track(tracks, p->uuid, name);
	message = pb_begin(tracks->out, TRACK_COUNTER);
	pb_varint(tracks->out, COUNTER_UNIT, kind == MEMORY_NONE ? UNIT_COUNT : UNIT_SIZE_BYTES);
	pb_end(tracks->out, message);
	counter->uuid = close_track(tracks, &d);
	return counter->uuid;
}

static uint64_t metric_parent(struct perfetto_tracks *tracks, uint32_t gpu)
{
	char name[32];

	if (!tracks->gpus[gpu].uuid) {
		snprintf(name, sizeof(name), "GPU %u", gpu);
		tracks->gpus[gpu].uuid = perfetto_named_track(tracks, 0, name);
	}
	return tracks->gpus[gpu].uuid;
}

uint64_t perfetto_metric_track(struct perfetto_tracks *tracks, uint32_t gpu, enum gpu_metric metric)
{
	const struct gpu_metric_info *info = gpu_metric_info(metric);
	uint64_t *uuid = &tracks->gpus[gpu].metrics[metric];
	struct descriptor d;
	char name[64];
	size_t message;

	if (*uuid)
		return *uuid;
	snprintf(name, sizeof(name), "GPU %u: %s", gpu, info->name);
	d = open_track(tracks, metric_parent(tracks, gpu), name);
	message = pb_begin(tracks->out, TRACK_COUNTER);
	pb_string(tracks->out, COUNTER_UNIT_NAME, info->is_rate ? "bytes/s" : "%");
	pb_end(tracks->out, message);
	*uuid = close_track(tracks, &d);
	return *uuid;
}

/* ---- threads -------------------------------------------------------------------------------- */

static uint64_t describe_thread(struct perfetto_tracks *tracks, const struct process *process,
                                uint32_t tid, const char *comm)
{
	uint64_t parent = perfetto_process(tracks, process)->uuid;
	struct descriptor d = open_track(tracks, parent, NULL);
	size_t message = pb_begin(tracks->out, TRACK_THREAD);

	pb_varint(tracks->out, THREAD_PID, process->pid);
	pb_varint(tracks->out, THREAD_TID, tid);
	add_comm(tracks, THREAD_NAME, comm);
	pb_end(tracks->out, message);
	return close_track(tracks, &d);
}

struct perfetto_thread *perfetto_thread(struct perfetto_tracks *tracks,
                                        const struct process *process, uint32_t tid,
                                        const struct thread *thread)
{
	struct track_thread_key key = { process->id, tid };
	struct thread_track *found = tracks->last_thread;
	const char *comm = thread ? thread->comm : tid == process->pid ? process->comm : "";

	if (!found || found->key.process != key.process || found->key.tid != key.tid)
		found = MAP_FIND(tracks->threads, &key);
	if (found && !thread) {
		tracks->last_thread = found;
		return &found->thread;
	}
	if (!found)
		found = thread_add(tracks, key);
	nest_flush(&found->thread.nest, tracks->out); /* of the one before it of that number */
	found->thread.blocked_uuid = 0;
	found->thread.uuid = describe_thread(tracks, process, tid, comm);
	tracks->last_thread = found;
	return &found->thread;
}

/* ---- streams -------------------------------------------------------------------------------- */

uint64_t perfetto_cuda_track(struct perfetto_tracks *tracks, const struct process *process)
{
	struct perfetto_process *p = perfetto_process(tracks, process);

	if (!p->cuda_uuid)
		p->cuda_uuid = perfetto_named_track(tracks, p->uuid, "CUDA");
	return p->cuda_uuid;
}

static uint64_t device_track(struct perfetto_tracks *tracks, const struct process *process,
                             uint32_t device)
{
	struct track_stream_key key = { .process = process->id, .device = device };
	char name[32];
	struct device_track *found = MAP_FIND(tracks->devices, &key);

	if (found)
		return found->uuid;
	found = MAP_ADD(tracks->devices, key, &key);
	owned_add(&tracks->of_devices, key.process, &found->owned);
	snprintf(name, sizeof(name), "device %u", device);
	found->uuid = perfetto_named_track(tracks, perfetto_cuda_track(tracks, process), name);
	return found->uuid;
}

static struct stream_tracks *stream_tracks(struct perfetto_tracks *tracks,
                                           const struct process *process,
                                           const struct activity *activity)
{
	struct track_stream_key key = { process->id, activity->device, activity->context,
		                        activity->stream };
	struct stream_tracks *found = tracks->last_stream;

	if (!found || memcmp(&found->key, &key, sizeof(key)))
		found = MAP_FIND(tracks->streams, &key);
	if (!found) {
		found = MAP_ADD(tracks->streams, key, &key);
		owned_add(&tracks->of_streams, key.process, &found->owned);
		found->parent = device_track(tracks, process, activity->device);
	}
	tracks->last_stream = found;
	return found;
}

/* Tracks of the same name and parent are drawn as one; what overlaps in it gets a second row. */
uint64_t perfetto_stream_row(struct perfetto_tracks *tracks, const struct process *process,
                             const struct activity *activity)
{
	struct stream_tracks *stream = stream_tracks(tracks, process, activity);
	uint64_t *uuid = &stream->uuid[rows_choose(&stream->rows, activity)];
	char name[64];

	if (*uuid)
		return *uuid;
	/* a program with more than one context is rare: only then it is part of the name */
	if (activity->context > 1)
		snprintf(name, sizeof(name), "stream %u (context %u)", activity->stream,
		         activity->context);
	else
		snprintf(name, sizeof(name), "stream %u", activity->stream);
	return *uuid = perfetto_named_track(tracks, stream->parent, name);
}
