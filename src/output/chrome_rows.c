// SPDX-License-Identifier: MIT
#include "output/chrome.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "analysis/by_id.h"
#include "base/xalloc.h"
#include "output/activity.h"
#include "output/contexts.h"

/* Kineto's place for GPUs: after all processes. */
#define GPU_SORT_INDEX 5000000

/* Numbers of the further rows of a stream, far from those of streams; and of its waits. */
#define ROW_STEP  1000000
#define WAIT_TIDS 500000

/* Kineto's place for what measuring took: before the GPUs. */
#define OVERHEAD_SORT_INDEX (GPU_SORT_INDEX - 1)

struct row_key {
	uint32_t process, tid; /* or device, stream */
};

struct thread_row {
	struct row_key key;
	UT_hash_handle hh;
};

struct stream_row {
	struct row_key key;
	unsigned told; /* rows that have a name */
	struct rows rows;
	UT_hash_handle hh;
};

struct chrome_rows {
	struct chrome_writer *writer;
	bool *processes; /* by id: told of */
	size_t n_processes;
	struct thread_row *threads;
	struct stream_row *streams;
	uint32_t *devices;
	size_t n_devices;
	struct contexts *contexts;
	struct rows overheads;
	unsigned overheads_told; /* rows that have a name */
};

struct chrome_rows *chrome_rows_new(struct chrome_writer *writer)
{
	struct chrome_rows *rows = xcalloc(1, sizeof(*rows));

	rows->writer = writer;
	rows->contexts = contexts_new();
	return rows;
}

static void forget_threads(struct chrome_rows *rows, uint32_t process, bool all)
{
	struct thread_row *thread, *next;

	HASH_ITER (hh, rows->threads, thread, next) {
		if (all || thread->key.process == process) {
			HASH_DEL(rows->threads, thread);
			free(thread);
		}
	}
}

void chrome_rows_free(struct chrome_rows *rows)
{
	struct stream_row *stream, *next;

	forget_threads(rows, 0, true);
	HASH_ITER (hh, rows->streams, stream, next) {
		HASH_DEL(rows->streams, stream);
		free(stream);
	}
	contexts_free(rows->contexts);
	free(rows->processes);
	free(rows->devices);
	free(rows);
}

/* ---- metadata events ------------------------------------------------------------------------ */

void chrome_begin_event(struct chrome_writer *writer)
{
	buf_puts(writer->out, writer->comma ? ",\n  {" : "  {");
	writer->comma = true;
}

void chrome_add_time(struct chrome_writer *writer, uint64_t time_ns)
{
	buf_fixed(writer->out, time_ns - writer->base_ns, 3);
}

static void begin_metadata(struct chrome_rows *rows, const char *name, int64_t pid, uint32_t tid)
{
	struct buf *out = rows->writer->out;

	chrome_begin_event(rows->writer);
	buf_printf(out,
	           "\"name\": \"%s\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": %lld, \"tid\": %u, ",
	           name, (long long)pid, tid);
	buf_puts(out, "\"args\": {");
}

static void name_row(struct chrome_rows *rows, const char *what, int64_t pid, uint32_t tid,
                     const char *name)
{
	begin_metadata(rows, what, pid, tid);
	buf_puts(rows->writer->out, "\"name\": ");
	buf_json_string(rows->writer->out, name);
	buf_puts(rows->writer->out, "}}");
}

static void sort_row(struct chrome_rows *rows, const char *what, int64_t pid, uint32_t tid,
                     uint32_t index)
{
	begin_metadata(rows, what, pid, tid);
	buf_printf(rows->writer->out, "\"sort_index\": %u}}", index);
}

static void label_process(struct chrome_rows *rows, int64_t pid, const char *label)
{
	begin_metadata(rows, "process_labels", pid, 0);
	buf_printf(rows->writer->out, "\"labels\": \"%s\"}}", label);
}

/* ---- processes and threads ------------------------------------------------------------------ */

void chrome_rows_process(struct chrome_rows *rows, const struct process *process)
{
	rows->processes = by_id_room(rows->processes, &rows->n_processes, sizeof(*rows->processes),
	                             process->id);
	if (rows->processes[process->id])
		return;
	rows->processes[process->id] = true;
	name_row(rows, "process_name", process->pid, 0, process->comm);
	label_process(rows, process->pid, "CPU");
	sort_row(rows, "process_sort_index", process->pid, 0, process->pid);
}

void chrome_rows_thread(struct chrome_rows *rows, const struct process *process, uint32_t tid,
                        const struct thread *thread)
{
	struct row_key key = { process->id, tid };
	const char *comm = thread ? thread->comm : tid == process->pid ? process->comm : "";
	struct thread_row *found;
	char name[64];

	HASH_FIND(hh, rows->threads, &key, sizeof(key), found);
	if (found && !thread)
		return;
	chrome_rows_process(rows, process);
	if (!found) {
		found = xcalloc(1, sizeof(*found));
		found->key = key;
		HASH_ADD(hh, rows->threads, key, sizeof(key), found);
	}
	snprintf(name, sizeof(name), "thread %u (%s)", tid, comm);
	name_row(rows, "thread_name", process->pid, tid, name);
	sort_row(rows, "thread_sort_index", process->pid, tid, tid);
}

void chrome_rows_ended(struct chrome_rows *rows, const struct process *process)
{
	forget_threads(rows, process->id, false);
}

/* ---- GPUs and streams ----------------------------------------------------------------------- */

static void tell_device(struct chrome_rows *rows, const struct process *process, uint32_t device)
{
	char label[32];

	for (size_t i = 0; i < rows->n_devices; i++) {
		if (rows->devices[i] == device)
			return;
	}
	rows->devices = xrealloc(rows->devices, (rows->n_devices + 1) * sizeof(*rows->devices));
	rows->devices[rows->n_devices++] = device;
	snprintf(label, sizeof(label), "GPU %u", device);
	name_row(rows, "process_name", device, 0, process->comm);
	label_process(rows, device, label);
	sort_row(rows, "process_sort_index", device, 0, GPU_SORT_INDEX + device);
}

static uint32_t row_tid(uint32_t stream, unsigned row)
{
	return stream + row * ROW_STEP;
}

static void add_row_name(struct buf *name, uint32_t stream, unsigned row)
{
	bool wait = stream >= WAIT_TIDS;

	if (stream == WAIT_TIDS)
		buf_puts(name, "context (sync)");
	else
		buf_printf(name, wait ? "stream %u (sync)" : "stream %u",
		           wait ? stream - WAIT_TIDS : stream);
	if (row)
		buf_printf(name, " (row %u)", row + 1);
}

static void tell_row(struct chrome_rows *rows, uint32_t device, uint32_t stream, unsigned row)
{
	uint32_t tid = row_tid(stream, row);
	struct buf name = { 0 };

	add_row_name(&name, stream, row);
	name_row(rows, "thread_name", device, tid, name.data);
	sort_row(rows, "thread_sort_index", device, tid, tid);
	buf_free(&name);
}

static uint32_t choose_row(struct chrome_rows *rows, const struct process *process, uint32_t device,
                           uint32_t stream, uint64_t begin_ns, uint64_t end_ns)
{
	struct row_key key = { device, stream };
	struct stream_row *found;
	unsigned row;

	HASH_FIND(hh, rows->streams, &key, sizeof(key), found);
	if (!found) {
		tell_device(rows, process, device);
		found = xcalloc(1, sizeof(*found));
		found->key = key;
		HASH_ADD(hh, rows->streams, key, sizeof(key), found);
	}
	row = rows_choose_span(&found->rows, begin_ns, end_ns);
	while (found->told <= row)
		tell_row(rows, device, stream, found->told++);
	return row_tid(stream, row);
}

uint32_t chrome_rows_activity(struct chrome_rows *rows, const struct process *process,
                              const struct activity *activity)
{
	contexts_note(rows->contexts, process, activity);
	return choose_row(rows, process, activity->device, activity->stream, activity->begin_ns,
	                  activity->end_ns);
}

uint32_t chrome_rows_wait(struct chrome_rows *rows, const struct process *process,
                          const struct range *range, uint32_t *device)
{
	*device = 0; /* the first, where nothing tells */
	contexts_device(rows->contexts, process, range->context, device);
	return choose_row(rows, process, *device, WAIT_TIDS + range->stream % WAIT_TIDS,
	                  range->begin_ns, range->end_ns);
}

uint32_t chrome_rows_overhead(struct chrome_rows *rows, const struct range *range)
{
	unsigned row = rows_choose_span(&rows->overheads, range->begin_ns, range->end_ns);

	if (!rows->overheads_told) {
		name_row(rows, "process_name", -1, 0, "CUPTI Overhead");
		sort_row(rows, "process_sort_index", -1, 0, OVERHEAD_SORT_INDEX);
	}
	for (; rows->overheads_told <= row; rows->overheads_told++) {
		name_row(rows, "thread_name", -1, rows->overheads_told, "overhead");
		sort_row(rows, "thread_sort_index", -1, rows->overheads_told, rows->overheads_told);
	}
	return row;
}

const uint32_t *chrome_rows_devices(const struct chrome_rows *rows, size_t *n)
{
	*n = rows->n_devices;
	return rows->devices;
}
