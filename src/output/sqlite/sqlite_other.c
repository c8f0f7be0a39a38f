// SPDX-License-Identifier: MIT
/*
 * Calls that are no CUDA calls: what a thread asked of the kernel, and what hooks of a user's saw.
 * Nsight Systems has a table for calls of the OS runtime, whose reports (osrt_sum) read these.
 */
#include "base/buf.h"
#include "cuda/error.h"
#include "output/describe.h"
#include "output/sqlite/sqlite.h"

/* What that table has no column for. */
static void add_details(struct sqlite *sqlite, int64_t id, const struct call *call)
{
	struct database *db = sqlite->db;
	struct description about = { 0 };

	describe(call, &about);
	row_begin(db, TABLE_OTHER_CALL);
	row_int(db, id);
	row_static(db, api_layer_name(call->function->layer));
	row_text(db, call->function->lib);
	row_static(db, call_has_end(call) ? cuda_error_name(call->function->layer, call->result)
	                                  : NULL);
	row_text(db, about.words.len ? about.words.data : "");
	row_end(db);
	description_free(&about);
}

void sqlite_add_other_call(struct sqlite *sqlite, const struct event *event)
{
	struct database *db = sqlite->db;
	const struct call *call = event->call;
	int64_t name = database_string(db, call->function->name), id;
	int64_t chain = sqlite_callchain(sqlite, call->stack);

	row_begin(db, TABLE_OSRT);
	row_int(db, since_begin(sqlite, call->begin_ns));
	row_int(db, since_begin(sqlite, call_has_end(call) ? call->end_ns : call->begin_ns));
	row_int(db, NSYS_CLASS_OS_RUNTIME);
	row_int(db, global_tid(event));
	row_null(db);
	row_int(db, name);
	row_int(db, call_has_end(call) ? call->result : 0);
	row_int(db, call->depth);
	add_or_null(db, (uint64_t)chain, chain);
	id = row_end(db);
	add_details(sqlite, id, call);
}
