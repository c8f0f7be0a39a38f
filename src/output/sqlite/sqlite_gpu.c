// SPDX-License-Identifier: MIT
/* CUPTI's kinds of activity: kernels, copies, sets, graph launches as wholes. */
#include "output/sqlite/sqlite.h"

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
