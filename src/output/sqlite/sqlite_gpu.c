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
	const struct memory_allocation *a = &change->allocation;

	/* Not known: the stream's number, see cuscope_call; and where a pool lies and how large it
	 * is, which is a handle to calls. */
	ROW(sqlite->db, TABLE_MEMORY_USAGE, CELL(since_begin(sqlite, event->time_ns)),
	    CELL(global_pid(a->process)), CELL_NONE, CELL_NONE /* device and context */,
	    CELL((int64_t)a->address), CELL_NONE /* pc */, CELL((int64_t)a->bytes),
	    CELL(memory_kind(a->kind)), CELL(change->fate != MEMORY_MADE), CELL_NONE /* name */,
	    CELL_CORRELATION(event->process, event->call ? event->call->correlation : 0));
}

static void add_memory(struct sqlite *sqlite, const struct event *event, int64_t id,
                       const char *operation, const struct sqlite_change *change)
{
	const struct memory_allocation *a = &change->allocation;

	ROW(sqlite->db, TABLE_MEMORY, CELL(since_begin(sqlite, event->time_ns)),
	    CELL(global_pid(a->process)), CELL_KNOWN(id), CELL_TEXT(operation),
	    CELL_TEXT(api_memory_name(a->kind)), CELL_KNOWN(a->address), CELL((int64_t)a->bytes),
	    CELL((int64_t)change->kind_live), CELL((int64_t)change->live));
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
	/* Its parent, and whether it is a green one, CUPTI does not tell of kernels. */
	ROW(db, TABLE_CUDA_CONTEXT,
	    CELL_IF(first->key.stream, first->key.stream == CUPTI_FIRST_NULL_STREAM), CELL(0),
	    CELL(MACHINE), CELL(first->key.pid), CELL(first->device), CELL(first->key.context));
}

static void add_stream_row(struct database *db, const struct sqlite_stream *stream)
{
	ROW(db, TABLE_CUDA_STREAM, CELL(stream->key.stream), CELL(0), CELL(MACHINE),
	    CELL(stream->key.pid), CELL(stream->key.context), CELL_NONE,
	    CELL_IF(NSYS_STREAM_NULL, stream->key.stream == CUPTI_FIRST_NULL_STREAM));
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

/* The columns that all kinds begin with; the one after the context is a green context. */
#define ACTIVITY_ROW(sqlite, event, table, ...)                                                    \
	ROW((sqlite)->db, table, CELL(since_begin(sqlite, (event)->activity->begin_ns)),           \
	    CELL(since_begin(sqlite, (event)->activity->end_ns)), CELL((event)->activity->device), \
	    CELL((event)->activity->context), CELL_NONE, CELL((event)->activity->stream),          \
	    CELL_CORRELATION((event)->process, (event)->activity->correlation),                    \
	    CELL(global_pid((event)->process)), __VA_ARGS__)

static void add_kernel(struct sqlite *sqlite, const struct event *event)
{
	static const struct kernel unnamed = { .name = "unknown" };
	const struct activity *a = event->activity;
	struct kernel_ids ids = sqlite_kernel_ids(sqlite, a->kernel ? a->kernel : &unnamed);

	ACTIVITY_ROW(sqlite, event, TABLE_KERNEL, CELL(ids.demangled), CELL(ids.base),
	             CELL_KNOWN(ids.mangled), CELL_NONE,
	             CELL_NONE /* launch type, cache configuration */, CELL(a->registers),
	             CELL_THREE(a->grid, true), CELL_THREE(a->block, true), CELL(a->shmem_static),
	             CELL(a->shmem_dynamic), CELL_NONE, CELL_NONE, CELL_NONE,
	             CELL_NONE /* local memory, grid id, shared memory as the driver set it */,
	             CELL_KNOWN(a->graph_node));
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
	const struct activity *a = event->activity;
	bool peer = a->direction == DIRECTION_P2P;

	ACTIVITY_ROW(sqlite, event, TABLE_MEMCPY, CELL((int64_t)a->bytes), CELL(copy_kind(a)),
	             CELL_NONE, CELL(activity_memory_kind(a->source)),
	             CELL(activity_memory_kind(a->destination)), CELL_IF(a->device, peer),
	             CELL_NONE, CELL_IF(a->peer_device, peer), CELL_NONE,
	             CELL_NONE /* migration cause */, CELL_KNOWN(a->graph_node),
	             CELL_NONE /* virtual address */, CELL(1));
}

static void add_set(struct sqlite *sqlite, const struct event *event)
{
	const struct activity *a = event->activity;

	ACTIVITY_ROW(sqlite, event, TABLE_MEMSET, CELL_NONE /* value */, CELL((int64_t)a->bytes),
	             CELL_KNOWN(a->graph_node), CELL(activity_memory_kind(a->destination)));
}

static void add_graph(struct sqlite *sqlite, const struct event *event)
{
	ACTIVITY_ROW(sqlite, event, TABLE_GRAPH_TRACE, CELL((int64_t)event->activity->graph));
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
