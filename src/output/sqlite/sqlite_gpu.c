// SPDX-License-Identifier: MIT
/* CUPTI's kinds of activity: kernels, copies, sets, graph launches as wholes. */
#include "output/sqlite/sqlite.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/xalloc.h"

/* ---- sqlite memory ------------------------------------------------------------------------- */

/*
 * What became of memory: each allocation and each end of one, by a call or without, as an event of
 * Nsight Systems' kind and as a row of our own that says more.
 */

void sqlite_note_change(void *data, const struct memory_change *change)
{
	struct sqlite *sqlite = data;
	const struct memory_allocation *a = change->allocation;

	if (sqlite->n_changes == sqlite->max_changes) {
		sqlite->max_changes = 2 * sqlite->max_changes + 16;
		sqlite->changes =
			xrealloc(sqlite->changes, sqlite->max_changes * sizeof(*sqlite->changes));
	}
	sqlite->changes[sqlite->n_changes++] = (struct sqlite_change){
		.allocation = *a,
		.fate = change->fate,
		.kind_live = change->live_bytes,
		.live = memory_live_bytes(sqlite->memory, a->process),
	};
}

static int memory_kind(enum api_memory kind)
{
	switch (kind) {
	case MEMORY_MANAGED:
		return NSYS_MEMORY_MANAGED;
	case MEMORY_HOST:
		return NSYS_MEMORY_PINNED;
	case MEMORY_ARRAY:
		return NSYS_MEMORY_ARRAY;
	default:
		return NSYS_MEMORY_DEVICE;
	}
}

static void add_usage(struct sqlite *sqlite, const struct event *event,
                      const struct sqlite_change *change)
{
	struct database *db = sqlite->db;
	const struct memory_allocation *a = &change->allocation;

	row_begin(db, TABLE_MEMORY_USAGE);
	row_int(db, since_begin(sqlite, event->time_ns));
	row_int(db, global_pid(a->process));
	row_null(db); /* device and context */
	row_null(db);
	row_int(db, (int64_t)a->address);
	row_null(db); /* pc */
	row_int(db, (int64_t)a->bytes);
	row_int(db, memory_kind(a->kind));
	row_int(db, change->fate != MEMORY_MADE);
	row_null(db); /* name */
	add_correlation(db, event->process, event->call ? event->call->correlation : 0);
	/* Not known: the stream's number, see cuscope_call; and where a pool lies and how large it
	 * is, which is a handle to calls. */
	row_end(db);
}

static void add_memory(struct sqlite *sqlite, const struct event *event, int64_t id,
                       const char *operation, const struct sqlite_change *change)
{
	struct database *db = sqlite->db;
	const struct memory_allocation *a = &change->allocation;

	row_begin(db, TABLE_MEMORY);
	row_int(db, since_begin(sqlite, event->time_ns));
	row_int(db, global_pid(a->process));
	add_or_null(db, (uint64_t)id, id);
	row_static(db, operation);
	row_static(db, api_memory_name(a->kind));
	add_or_null(db, a->address, a->address);
	row_int(db, (int64_t)a->bytes);
	row_int(db, (int64_t)change->kind_live);
	row_int(db, (int64_t)change->live);
	row_end(db);
}

static void add_failure(struct sqlite *sqlite, const struct event *event, int64_t id)
{
	enum api_memory kind = api_memory(event->call->function->api);

	add_memory(sqlite, event, id, "failed",
	           &(struct sqlite_change){
			   .allocation = { .process = event->process,
	                                   .kind = kind,
	                                   .bytes = event->call->args.bytes },
			   .kind_live = memory_live_of_kind(sqlite->memory, event->process, kind),
			   .live = memory_live_bytes(sqlite->memory, event->process),
		   });
}

void sqlite_add_memory(struct sqlite *sqlite, const struct event *event, int64_t id)
{
	static const char *const operations[] = {
		[MEMORY_MADE] = "alloc",
		[MEMORY_FREED] = "free",
		[MEMORY_REPLACED] = "replaced",
		[MEMORY_WENT_WITH_CONTEXT] = "context",
		[MEMORY_WENT_WITH_PROCESS] = "exit",
	};
	const struct call *call = event->call;

	for (size_t i = 0; i < sqlite->n_changes; i++) {
		const struct sqlite_change *change = &sqlite->changes[i];

		add_memory(sqlite, event, id, operations[change->fate], change);
		if (change->allocation.kind != MEMORY_VMM_VA)
			add_usage(sqlite, event, change);
	}
	if (call && call->op == OP_ALLOC &&
	    (call->flags & (CALL_FAILED | CALL_NESTED)) == CALL_FAILED)
		add_failure(sqlite, event, id);
}

/* ---- sqlite streams ------------------------------------------------------------------------ */

/*
 * Contexts and streams of processes: those on which something ran, since a call has a handle of a
 * stream and CUPTI a number. Readers find by them which process a device's work was of.
 */

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

static void sqlite_note_stream(struct sqlite *sqlite, const struct event *event)
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

static void add_stream_row(struct database *db, const struct sqlite_stream *stream)
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
		add_stream_row(sqlite->db, stream);
		before = stream;
	}
}

/* ---- sqlite gpu ---------------------------------------------------------------------------- */

/* The columns that all kinds begin with. */
static void begin_activity(struct sqlite *sqlite, const struct event *event, enum nsys_table table)
{
	struct database *db = sqlite->db;
	const struct activity *a = event->activity;

	row_begin(db, table);
	row_int(db, since_begin(sqlite, a->begin_ns));
	row_int(db, since_begin(sqlite, a->end_ns));
	row_int(db, a->device);
	row_int(db, a->context);
	row_null(db); /* green context */
	row_int(db, a->stream);
	add_correlation(db, event->process, a->correlation);
	row_int(db, global_pid(event->process));
}

static void add_kernel(struct sqlite *sqlite, const struct event *event)
{
	static const struct kernel unnamed = { .name = "unknown" };
	struct database *db = sqlite->db;
	const struct activity *a = event->activity;
	struct kernel_ids ids = sqlite_kernel_ids(sqlite, a->kernel ? a->kernel : &unnamed);

	begin_activity(sqlite, event, TABLE_KERNEL);
	row_int(db, ids.demangled);
	row_int(db, ids.base);
	add_or_null(db, (uint64_t)ids.mangled, ids.mangled);
	row_null(db); /* launch type, cache configuration */
	row_null(db);
	row_int(db, a->registers);
	add_three(db, a->grid, true);
	add_three(db, a->block, true);
	row_int(db, a->shmem_static);
	row_int(db, a->shmem_dynamic);
	for (int i = 0; i < 4; i++)
		row_null(db); /* local memory, grid id, shared memory as the driver set it */
	add_or_null(db, a->graph_node, a->graph_node);
	row_end(db);
}

/* CUPTI's copy kinds tell arrays apart, the directions of a call do not. */
static int copy_kind(const struct activity *a)
{
	bool from = a->source == ACTIVITY_MEMORY_ARRAY,
	     to = a->destination == ACTIVITY_MEMORY_ARRAY;

	switch (a->direction) {
	case DIRECTION_H2D:
		return to ? 3 : 1;
	case DIRECTION_D2H:
		return from ? 4 : 2;
	case DIRECTION_D2D:
		return from && to ? 5 : from ? 6 : to ? 7 : 8;
	case DIRECTION_H2H:
		return 9;
	case DIRECTION_P2P:
		return 10;
	default:
		return 0;
	}
}

static int activity_memory_kind(enum activity_memory kind)
{
	return kind == ACTIVITY_MEMORY_UNKNOWN ? NSYS_MEMORY_UNKNOWN : (int)kind - 1;
}

static void add_copy(struct sqlite *sqlite, const struct event *event)
{
	struct database *db = sqlite->db;
	const struct activity *a = event->activity;
	bool peer = a->direction == DIRECTION_P2P;

	begin_activity(sqlite, event, TABLE_MEMCPY);
	row_int(db, (int64_t)a->bytes);
	row_int(db, copy_kind(a));
	row_null(db);
	row_int(db, activity_memory_kind(a->source));
	row_int(db, activity_memory_kind(a->destination));
	add_or_null(db, a->device, peer);
	row_null(db);
	add_or_null(db, a->peer_device, peer);
	row_null(db);
	row_null(db); /* migration cause */
	add_or_null(db, a->graph_node, a->graph_node);
	row_null(db); /* virtual address */
	row_int(db, 1);
	row_end(db);
}

static void add_set(struct sqlite *sqlite, const struct event *event)
{
	struct database *db = sqlite->db;
	const struct activity *a = event->activity;

	begin_activity(sqlite, event, TABLE_MEMSET);
	row_null(db); /* value */
	row_int(db, (int64_t)a->bytes);
	add_or_null(db, a->graph_node, a->graph_node);
	row_int(db, activity_memory_kind(a->destination));
	row_end(db);
}

static void add_graph(struct sqlite *sqlite, const struct event *event)
{
	begin_activity(sqlite, event, TABLE_GRAPH_TRACE);
	row_int(sqlite->db, (int64_t)event->activity->graph);
	row_end(sqlite->db);
}

void sqlite_add_activity(struct sqlite *sqlite, const struct event *event)
{
	sqlite_note_device(sqlite, event);
	sqlite_note_stream(sqlite, event);
	contexts_note(sqlite->contexts, event->process, event->activity);
	switch (event->activity->kind) {
	case ACTIVITY_KERNEL:
		add_kernel(sqlite, event);
		break;
	case ACTIVITY_COPY:
		add_copy(sqlite, event);
		break;
	case ACTIVITY_SET:
		add_set(sqlite, event);
		break;
	case ACTIVITY_GRAPH_RUN:
		add_graph(sqlite, event);
		break;
	case ACTIVITY_COUNT:
		break;
	}
}
