// SPDX-License-Identifier: MIT
/*
 * NVTX ranges with their texts in the rows, since there may be any number of them, and with numbers
 * for their domains; waits; and what measuring took.
 */
#include "output/sqlite/sqlite.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"

#define DOMAINS_MOST 4096 /* others are as if they had none */

struct sqlite_domain {
	char *key; /* process, a blank, name */
	int64_t id;
	UT_hash_handle hh;
};

void sqlite_free_domains(struct sqlite *sqlite)
{
	struct sqlite_domain *domain, *next;

	HASH_ITER (hh, sqlite->domains, domain, next) {
		HASH_DEL(sqlite->domains, domain);
		free(domain->key);
		free(domain);
	}
}

/* ---- NVTX ----------------------------------------------------------------------------------- */

/*
 * What follows the text: the thread, the text's number, the domain, and values that no range has.
 * Of readers some take the text, some its number: they get both.
 */
static void end_nvtx(struct database *db, const struct event *event, int64_t text, int64_t domain)
{
	row_int(db, global_tid(event));
	row_null(db); /* another thread that ended it */
	row_int(db, text);
	row_int(db, domain);
	row_end(db);
}

static void begin_nvtx(struct sqlite *sqlite, uint64_t begin_ns)
{
	row_begin(sqlite->db, TABLE_NVTX);
	row_int(sqlite->db, since_begin(sqlite, begin_ns));
}

/* After the times; rangeId has no value. */
static void add_kind(struct database *db, int type, const struct range *range, const char *text)
{
	row_int(db, type);
	row_null(db);
	add_or_null(db, range->category, range->category);
	add_or_null(db, range->color, range->color);
	row_text(db, text);
}

/* A domain stands in the table, too, before its first range. */
static int64_t domain_id(struct sqlite *sqlite, const struct event *event)
{
	const char *name = event->range->domain;
	struct sqlite_domain *found;
	struct buf key = { 0 };
	int64_t text;

	if (!name || !*name)
		return 0;
	buf_printf(&key, "%u %s", event->process->id, name);
	found = MAP_FIND_TEXT(sqlite->domains, key.data);
	if (found || HASH_COUNT(sqlite->domains) >= DOMAINS_MOST) {
		buf_free(&key);
		return found ? found->id : 0;
	}
	found = xcalloc(1, sizeof(*found));
	found->key = key.data;
	found->id = HASH_COUNT(sqlite->domains) + 1;
	HASH_ADD_KEYPTR(hh, sqlite->domains, found->key, strlen(found->key), found);
	text = database_text(sqlite->db, name);
	begin_nvtx(sqlite, event->range->begin_ns);
	row_null(sqlite->db);
	add_kind(sqlite->db, NSYS_NVTX_DOMAIN, &(struct range){ 0 }, name);
	end_nvtx(sqlite->db, event, text, found->id);
	return found->id;
}

static void add_nvtx(struct sqlite *sqlite, const struct event *event)
{
	static const int types[RANGE_COUNT] = {
		[RANGE_PUSHPOP] = NSYS_NVTX_PUSHPOP,
		[RANGE_STARTEND] = NSYS_NVTX_STARTEND,
		[RANGE_MARK] = NSYS_NVTX_MARK,
	};
	const struct range *range = event->range;
	int64_t domain = domain_id(sqlite, event);
	struct database *db = sqlite->db;
	int64_t text = database_text(db, range->name);

	begin_nvtx(sqlite, range->begin_ns);
	if (range->kind == RANGE_MARK)
		row_null(db);
	else
		row_int(db, since_begin(sqlite, range->end_ns));
	add_kind(db, types[range->kind], range, range->name);
	end_nvtx(db, event, text, domain);
}

/* ---- waits and overhead --------------------------------------------------------------------- */

static void add_wait(struct sqlite *sqlite, const struct event *event)
{
	const struct range *range = event->range;
	struct database *db = sqlite->db;
	uint32_t device = 0;
	bool known = contexts_device(sqlite->contexts, event->process, range->context, &device);
	row_begin(db, TABLE_SYNCHRONIZATION);
	row_int(db, since_begin(sqlite, range->begin_ns));
	row_int(db, since_begin(sqlite, range->end_ns));
	add_or_null(db, device, known);
	row_int(db, range->context);
	row_null(db);
	row_int(db, range->stream);
	add_correlation(db, event->process, range->correlation);
	row_int(db, global_pid(event->process));
	row_int(db, nsys_enum_of_label("ENUM_CUPTI_SYNC_TYPE", range->name, 0));
	row_end(db); /* its event is told by its call, at the end */
}

/*
 * In both tables that Nsight Systems has for it: the second is its own, where older versions have
 * CUPTI's, too.
 */
static void add_overhead(struct sqlite *sqlite, const struct event *event)
{
	const struct range *range = event->range;
	struct database *db = sqlite->db;
	int type = nsys_enum_of_label("ENUM_CUPTI_OVERHEAD_TYPE", range->name, 1);
	int64_t name = database_text(db, range->name);

	row_begin(db, TABLE_OVERHEAD);
	row_int(db, since_begin(sqlite, range->begin_ns));
	row_int(db, since_begin(sqlite, range->end_ns));
	row_null(db);
	row_int(db, global_tid(event));
	row_null(db);
	row_null(db);
	row_int(db, type);
	row_end(db);
	row_begin(db, TABLE_PROFILER_OVERHEAD);
	row_int(db, since_begin(sqlite, range->begin_ns));
	row_int(db, since_begin(sqlite, range->end_ns));
	row_int(db, global_tid(event));
	row_int(db, name);
	row_int(db, 0);
	row_int(db, type);
	row_end(db);
}

static void add_not_measured(struct sqlite *sqlite, const struct event *event)
{
	row_begin(sqlite->db, TABLE_NOT_MEASURED);
	row_int(sqlite->db, since_begin(sqlite, event->range->begin_ns));
	row_int(sqlite->db, since_begin(sqlite, event->range->end_ns));
	row_int(sqlite->db, global_pid(event->process));
	row_end(sqlite->db);
}

void sqlite_add_range(struct sqlite *sqlite, const struct event *event)
{
	if (event->range->kind == RANGE_SYNC)
		add_wait(sqlite, event);
	else if (event->range->kind == RANGE_NOT_MEASURED)
		add_not_measured(sqlite, event);
	else if (event->range->kind == RANGE_OVERHEAD)
		add_overhead(sqlite, event);
	else
		add_nvtx(sqlite, event);
}
