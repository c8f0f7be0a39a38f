// SPDX-License-Identifier: MIT
/*
 * Waits of the host for the GPU, and of streams for events. Of those of a process either CUPTI
 * tells, or its calls do: which of them is known at the end. Which event they are for the calls
 * tell, which may come after them. So waits are kept until then, in order of their calls.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/sorter.h"
#include "base/xalloc.h"
#include "output/sqlite/sqlite.h"

#define WAITS_BYTES (4u << 20) /* in memory */

struct wait {
	int64_t begin, end;
	int64_t process;     /* its globalPid */
	int64_t correlation; /* 0: none */
	int64_t waited_for;  /* of a call: the event; 0: none */
	uint32_t device, context, stream;
	bool of_call, has_device;
	int type;
};

/* A process whose waits CUPTI told. */
struct wait_teller {
	int64_t process;
	UT_hash_handle hh;
};

struct sqlite_waits {
	struct sorter *sorter;
	struct wait_teller *tellers;
	int64_t correlation; /* while they are told: of the last call, */
	int64_t waited_for;  /* and its event */
};

/* Of waits of one correlation the call comes first. */
static int call_first(const void *a, const void *b)
{
	return ((const struct wait *)b)->of_call - ((const struct wait *)a)->of_call;
}

static void keep(struct sqlite *sqlite, const struct wait *wait)
{
	struct sqlite_waits *waits = sqlite->waits;

	if (!waits) {
		waits = sqlite->waits = xcalloc(1, sizeof(*waits));
		waits->sorter = sorter_new(WAITS_BYTES, 0);
		sorter_ties(waits->sorter, call_first);
	}
	if (!database_failed(sqlite->db, NULL))
		sorter_add(waits->sorter, (uint64_t)wait->correlation, wait, sizeof(*wait),
		           &sqlite->db->failure);
}

static int64_t correlation_of(const struct event *event, uint64_t number)
{
	struct cell cell = CELL_CORRELATION(event->process, number);

	return cell.kind == CELL_IS_INT ? cell.number : 0;
}

void sqlite_wait_of_gpu(struct sqlite *sqlite, const struct event *event)
{
	const struct range *range = event->range;
	struct wait wait = { .begin = since_begin(sqlite, range->begin_ns),
		             .end = since_begin(sqlite, range->end_ns),
		             .process = global_pid(event->process),
		             .correlation = correlation_of(event, range->correlation),
		             .context = range->context,
		             .stream = range->stream,
		             .type = nsys_enum_of_label("ENUM_CUPTI_SYNC_TYPE", range->name, 0) };

	wait.has_device =
		contexts_device(sqlite->contexts, event->process, range->context, &wait.device);
	keep(sqlite, &wait);
	MAP_MAKE(sqlite->waits->tellers, process, &wait.process);
}

void sqlite_wait_of_call(struct sqlite *sqlite, const struct event *event, int type,
                         uint64_t waited_for)
{
	const struct call *call = event->call;

	keep(sqlite, &(struct wait){ .begin = since_begin(sqlite, call->begin_ns),
	                             .end = since_begin(sqlite, call->end_ns),
	                             .process = global_pid(event->process),
	                             .correlation = correlation_of(event, call->correlation),
	                             .waited_for = (int64_t)waited_for,
	                             .of_call = true,
	                             .type = type });
}

/* Events are waited for by calls of these two kinds. */
static struct cell event_of(const struct sqlite_waits *waits, const struct wait *wait)
{
	bool of_event = wait->type == NSYS_SYNC_EVENT || wait->type == NSYS_SYNC_STREAM_WAIT;
	bool known = of_event && wait->correlation && wait->correlation == waits->correlation;

	return CELL_KNOWN(known ? waits->waited_for : 0);
}

static int add(void *data, const void *record, size_t bytes)
{
	struct sqlite *sqlite = data;
	struct sqlite_waits *waits = sqlite->waits;
	const struct wait *wait = record;

	if (wait->of_call && wait->correlation != waits->correlation) {
		waits->correlation = wait->correlation;
		waits->waited_for = wait->waited_for;
	}
	if (wait->of_call && MAP_FIND(waits->tellers, &wait->process))
		return 0;
	ROW(sqlite->db, TABLE_SYNCHRONIZATION, CELL(wait->begin), CELL(wait->end),
	    CELL_IF(wait->device, wait->has_device), CELL_IF(wait->context, !wait->of_call),
	    CELL_NONE, CELL_IF(wait->stream, !wait->of_call), CELL_KNOWN(wait->correlation),
	    CELL(wait->process), CELL(wait->type), event_of(waits, wait));
	return 0;
}

void sqlite_add_waits(struct sqlite *sqlite)
{
	struct err *failure = &sqlite->db->failure;

	if (sqlite->waits && !failure->code)
		sorter_each(sqlite->waits->sorter, add, sqlite, failure);
}

void sqlite_free_waits(struct sqlite *sqlite)
{
	struct sqlite_waits *waits = sqlite->waits;

	if (!waits)
		return;
	sorter_free(waits->sorter);
	MAP_FREE(waits->tellers, free);
	free(waits);
	sqlite->waits = NULL;
}
