// SPDX-License-Identifier: MIT
/*
 * What became of memory: each allocation and each end of one, by a call or without, as an event of
 * Nsight Systems' kind and as a row of our own that says more.
 */
#include "output/sqlite/sqlite.h"

#include "base/xalloc.h"

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
