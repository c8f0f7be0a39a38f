// SPDX-License-Identifier: MIT
/* cuda_api_trace: every call, in the order in which they began. */
#include <stdlib.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/owned.h"
#include "report/who_columns.h"
#include "report/reports.h"

static const struct table_column columns[] = {
	{ "Start", TABLE_TIME },
	{ "Duration", TABLE_DURATION },
	{ "Name", TABLE_TEXT },
	{ "Result", TABLE_NUMBER },
	{ "CorrID", TABLE_NUMBER, TABLE_VIA(struct event, call, correlation), .flags = TABLE_ZERO },
	{ "Pid", TABLE_NUMBER, TABLE_VIA(struct event, process, pid) },
	{ "Tid", TABLE_NUMBER, TABLE_AT(struct event, tid) },
	{ "T-Pri", TABLE_NUMBER },
	{ "Thread Name", TABLE_TEXT },
};

/* ---- what threads are called ----------------------------------------------------------------- */

struct named_thread {
	uint64_t key; /* process id and tid */
	struct thread thread;
	struct owned owned; /* by the process's id */
	UT_hash_handle hh;
};

struct thread_names {
	struct named_thread *entries;
	struct owner *owners;
	const struct named_thread *last; /* found: most calls follow one of their own thread */
};

static uint64_t thread_names_key(const struct process *process, uint32_t tid)
{
	return (uint64_t)process->id << 32 | tid;
}

static void thread_names_drop(struct thread_names *threads, struct named_thread *entry)
{
	owned_remove(&threads->owners, &entry->owned);
	MAP_DROP(threads->entries, entry);
}

static void thread_names_forget(struct thread_names *threads, const struct process *process)
{
	struct owned *owned = owned_first(threads->owners, process->id), *next;

	threads->last = NULL;
	for (; owned; owned = next) {
		next = owned_next(owned);
		thread_names_drop(threads, OWNED_ENTRY(owned, struct named_thread));
	}
}

static void thread_names_clear(struct thread_names *threads)
{
	struct named_thread *entry, *next;

	HASH_ITER (hh, threads->entries, entry, next)
		thread_names_drop(threads, entry);
}

static void thread_names_event(struct thread_names *threads, const struct event *event)
{
	struct named_thread *entry;
	uint64_t key;

	if (event->type == EVENT_EXIT)
		thread_names_forget(threads, event->process);
	if (event->type != EVENT_THREAD)
		return;
	key = thread_names_key(event->process, event->tid);
	entry = MAP_FIND(threads->entries, &key);
	if (!entry) {
		entry = MAP_ADD(threads->entries, key, &key);
		owned_add(&threads->owners, event->process->id, &entry->owned);
	}
	entry->thread = *event->thread;
}

/* As it was called last; NULL where nothing told, or its process has ended. */
static const struct thread *thread_names_find(struct thread_names *threads,
                                              const struct process *process, uint32_t tid)
{
	uint64_t key = thread_names_key(process, tid);

	if (!threads->last || threads->last->key != key) {
		const struct named_thread *entry = MAP_FIND(threads->entries, &key);

		if (!entry)
			return NULL;
		threads->last = entry;
	}
	return &threads->last->thread;
}

/* ---- the report ------------------------------------------------------------------------------ */

struct api_trace {
	struct report_writer writer; /* first: what callers hold */
	struct thread_names threads;
	char **names; /* of functions, by id */
	size_t n_names;
	uint64_t nested; /* left out */
};

static const char *name_of(struct api_trace *trace, const struct function *function)
{
	char **known = BY_ID(trace->names, trace->n_names, function->id);

	if (!*known) {
		struct buf name = { 0 };

		add_function_name(&name, function);
		*known = name.data;
	}
	return *known;
}

static void add_row(struct api_trace *trace, const struct event *event)
{
	const struct thread *thread =
		thread_names_find(&trace->threads, event->process, event->tid);
	struct table *table = trace->writer.table;
	const struct call *call = event->call;

	table_s64(table, (int64_t)(call->begin_ns - trace->writer.begin_ns));
	TABLE_CELLS(table, TABLE_IF(call_has_end(call), call_duration_ns(call)),
	            name_of(trace, call->function));
	if (call_has_end(call))
		table_s64(table, call->result);
	else
		table_unknown(table);
	table_fields(table, event);
	if (thread && thread->priority)
		table_s64(table, thread->priority);
	else
		table_unknown(table);
	table_text(table, thread ? thread->comm : NULL);
	table_key(table, call->begin_ns);
	table_end_row(table);
}

static void api_trace_event(void *self, const struct event *event)
{
	struct api_trace *trace = self;

	thread_names_event(&trace->threads, event);
	if (event->type != EVENT_CALL)
		return;
	if ((event->call->flags & CALL_NESTED) && !trace->writer.options.nested)
		trace->nested++;
	else
		add_row(trace, event);
}

static void api_trace_notes(void *self, struct table *table, const struct run_info *run)
{
	struct api_trace *trace = self;

	report_note_nested(table, trace->nested);
	report_note_estimated(table, run);
}

static void api_trace_clear(void *self)
{
	struct api_trace *trace = self;

	for (size_t i = 0; i < trace->n_names; i++)
		free(trace->names[i]);
	free(trace->names);
	thread_names_clear(&trace->threads);
}

const struct report_kind api_trace_report = {
	.bytes = sizeof(struct api_trace),
	.event = api_trace_event,
	.clear = api_trace_clear,
	.rows_come = true,
	.parts = { { NULL, NULL, TABLE_COLUMNS(columns), api_trace_notes } },
};
