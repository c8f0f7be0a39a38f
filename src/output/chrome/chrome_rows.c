// SPDX-License-Identifier: MIT
/*
 * Rows of the Chrome format: the pid and tid that threads, streams and their waits have there.
 * Where a row stands is told before its first event. What it is called can change (exec, a second
 * process on a GPU), and some readers take the first name and others the last: so it is told once,
 * at the end.
 */
#include "output/chrome/chrome.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "output/describe.h"
#include "output/format.h"

/* Kineto's place for GPUs: after all processes. */
#define GPU_SORT_INDEX 5000000

/* Numbers of the further rows of a stream, far from those of streams; of its waits; */
#define ROW_STEP  1000000
#define WAIT_TIDS 500000
#define NOTE_TIDS 750000 /* and of what ranges are on it */
#define NOT_WORK  250000 /* as many streams have rows of these two kinds */

/*
 * Processes that use a GPU have rows of their own in it, those of a process as far from those of
 * the next. Numbers of rows are 32 bits in most readers, so that the last ones share their rows.
 */
#define USER_STEP  100000000
#define USERS_MOST 42

_Static_assert(ROWS_MAX *ROW_STEP <= USER_STEP, "rows of one process stay below those of the next");

/* Kineto's place for what measuring took: before the GPUs. */
#define OVERHEAD_SORT_INDEX (GPU_SORT_INDEX - 1)

struct chrome_row_key {
	uint32_t pid, tid;
};

struct chrome_stream_key {
	uint32_t device, user, stream;
};

/* Of a pid: the last process that has it. */
struct chrome_process_row {
	uint32_t pid;
	const struct process *process;
	const struct run_identity *identity; /* known at the end; NULL: none */
	UT_hash_handle hh;
};

struct chrome_thread_row {
	struct chrome_row_key key;
	uint32_t process; /* the last that has it */
	char comm[16];
	UT_hash_handle hh;
};

struct chrome_stream_row {
	struct chrome_stream_key key;
	unsigned told; /* rows that it has */
	struct rows rows;
	UT_hash_handle hh;
};

/* A GPU, and who uses it, in order of appearance. */
struct chrome_device {
	uint32_t number;
	unsigned n_users;
	struct user {
		uint32_t process, pid;
		char comm[16];
	} users[USERS_MOST];
};

/* Where one is: a file can have any number of them. */
struct chrome_device_place {
	uint32_t number;
	size_t at;
	UT_hash_handle hh;
};

struct chrome_rows {
	struct chrome_writer *writer;
	bool *met; /* processes, by id */
	size_t n_met;
	struct chrome_process_row *processes;
	struct who who;
	struct chrome_thread_row *threads;
	struct chrome_stream_row *streams;
	struct chrome_device *devices;
	struct chrome_device_place *device_places;
	uint32_t *device_numbers;
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

void chrome_rows_free(struct chrome_rows *rows)
{
	MAP_FREE(rows->processes, free);
	MAP_FREE(rows->threads, free);
	MAP_FREE(rows->streams, free);
	contexts_free(rows->contexts);
	free(rows->met);
	who_free(&rows->who);
	MAP_FREE(rows->device_places, free);
	FREE_ALL(rows->devices, rows->device_numbers, rows);
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
	buf_puts(rows->writer->out, "\"labels\": ");
	buf_json_string(rows->writer->out, label);
	buf_puts(rows->writer->out, "}}");
}

/* ---- processes and threads ------------------------------------------------------------------ */

void chrome_rows_process(struct chrome_rows *rows, const struct process *process)
{
	struct chrome_process_row *row;

	rows->met = by_id_room(rows->met, &rows->n_met, sizeof(*rows->met), process->id);
	if (rows->met[process->id])
		return;
	rows->met[process->id] = true;
	who_note(&rows->who, process);
	row = MAP_FIND(rows->processes, &process->pid);
	if (!row) {
		row = MAP_ADD(rows->processes, pid, &process->pid);
		sort_row(rows, "process_sort_index", process->pid, 0, process->pid);
	}
	row->process = process;
}

void chrome_rows_thread(struct chrome_rows *rows, const struct process *process, uint32_t tid,
                        const struct thread *thread)
{
	struct chrome_row_key key = { process->pid, tid };
	const char *comm = thread ? thread->comm : tid == process->pid ? process->comm : "";
	struct chrome_thread_row *row = MAP_FIND(rows->threads, &key);

	if (row && row->process == process->id && !thread)
		return;
	chrome_rows_process(rows, process);
	if (!row) {
		row = MAP_ADD(rows->threads, key, &key);
		sort_row(rows, "thread_sort_index", process->pid, tid, tid);
	}
	row->process = process->id;
	snprintf(row->comm, sizeof(row->comm), "%s", comm);
}

const struct who *chrome_rows_who(const struct chrome_rows *rows)
{
	return &rows->who;
}

/* ---- GPUs and streams ----------------------------------------------------------------------- */

static struct chrome_device *new_device(struct chrome_rows *rows, uint32_t number)
{
	struct chrome_device_place *place = MAP_ADD(rows->device_places, number, &number);
	size_t n = ++rows->n_devices;

	place->at = n - 1;
	rows->devices = xrealloc(rows->devices, n * sizeof(*rows->devices));
	rows->devices[n - 1] = (struct chrome_device){ .number = number };
	rows->device_numbers = xrealloc(rows->device_numbers, n * sizeof(*rows->device_numbers));
	rows->device_numbers[n - 1] = number;
	sort_row(rows, "process_sort_index", number, 0, GPU_SORT_INDEX + number);
	return &rows->devices[n - 1];
}

static struct chrome_device *find_device(struct chrome_rows *rows, uint32_t number)
{
	struct chrome_device_place *place = MAP_FIND(rows->device_places, &number);

	return place ? &rows->devices[place->at] : new_device(rows, number);
}

static uint32_t row_tid(const struct chrome_stream_key *key, unsigned row)
{
	return key->stream + row * ROW_STEP + key->user * USER_STEP;
}

/* "stream 7 (row 2)"; whose it is where the GPU has more than one user. */
static void add_row_name(struct buf *name, const struct chrome_device *device,
                         const struct chrome_stream_key *key, unsigned row)
{
	const struct user *user = &device->users[key->user];

	if (key->stream == WAIT_TIDS)
		buf_puts(name, "context (sync)");
	else if (key->stream >= NOTE_TIDS)
		buf_printf(name, "stream %u (annotations)", key->stream - NOTE_TIDS);
	else if (key->stream > WAIT_TIDS)
		buf_printf(name, "stream %u (sync)", key->stream - WAIT_TIDS);
	else
		buf_printf(name, "stream %u", key->stream);
	if (row)
		buf_printf(name, " (row %u)", row + 1);
	if (device->n_users > 1 && key->user == USERS_MOST - 1)
		buf_puts(name, " of other processes");
	else if (device->n_users > 1)
		buf_printf(name, " of %s %u", user->comm, user->pid);
}

static uint32_t find_user(struct chrome_device *device, const struct process *process)
{
	struct user *user;

	for (unsigned i = 0; i < device->n_users; i++) {
		if (device->users[i].process == process->id)
			return i;
	}
	if (device->n_users == USERS_MOST)
		return USERS_MOST - 1;
	user = &device->users[device->n_users++];
	user->process = process->id;
	user->pid = process->pid;
	snprintf(user->comm, sizeof(user->comm), "%s", process->comm);
	return device->n_users - 1;
}

static uint32_t choose_row(struct chrome_rows *rows, const struct process *process, uint32_t number,
                           uint32_t stream, uint64_t begin_ns, uint64_t end_ns)
{
	struct chrome_device *device = find_device(rows, number);
	struct chrome_stream_key key = { number, find_user(device, process), stream };
	struct chrome_stream_row *found = MAP_MAKE(rows->streams, key, &key);
	unsigned row = rows_choose_span(&found->rows, begin_ns, end_ns);

	for (; found->told <= row; found->told++) {
		uint32_t tid = row_tid(&key, found->told);

		sort_row(rows, "thread_sort_index", number, tid, tid);
	}
	return row_tid(&key, row);
}

uint32_t chrome_rows_activity(struct chrome_rows *rows, const struct process *process,
                              const struct activity *activity)
{
	contexts_note(rows->contexts, process, activity);
	return choose_row(rows, process, activity->device, activity->stream % WAIT_TIDS,
	                  activity->begin_ns, activity->end_ns);
}

uint32_t chrome_rows_wait(struct chrome_rows *rows, const struct process *process,
                          const struct range *range, uint32_t *device)
{
	*device = 0; /* the first, where nothing tells */
	contexts_device(rows->contexts, process, range->context, device);
	return choose_row(rows, process, *device, WAIT_TIDS + range->stream % NOT_WORK,
	                  range->begin_ns, range->end_ns);
}

uint32_t chrome_rows_annotation(struct chrome_rows *rows, const struct process *process,
                                uint32_t device, uint32_t stream, uint64_t begin_ns,
                                uint64_t end_ns)
{
	return choose_row(rows, process, device, NOTE_TIDS + stream % NOT_WORK, begin_ns, end_ns);
}

void chrome_rows_look_ahead(struct chrome_rows *rows, const struct event *event)
{
	if (event->type == EVENT_ACTIVITY)
		contexts_note(rows->contexts, event->process, event->activity);
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
	return rows->device_numbers;
}

/* ---- names, at the end ----------------------------------------------------------------------- */

/* Readers split labels at commas, and add them to those that there are. */
static void label_row(struct chrome_rows *rows, const struct chrome_process_row *row)
{
	AT_END(buf_free) struct buf labels = { 0 }, one = { 0 };

	buf_puts(&labels, "CPU");
	for (int i = 0; row->identity && i < RUN_IDENTITY_WORDS; i++) {
		buf_reset(&one);
		if (!who_label(row->identity, i, &one))
			continue;
		for (size_t c = 0; c < one.len; c++)
			one.data[c] = one.data[c] == ',' ? ' ' : one.data[c];
		buf_printf(&labels, ",%s", one.data);
	}
	label_process(rows, row->pid, labels.data);
}

static void name_processes(struct chrome_rows *rows, const struct run_info *run)
{
	const struct run_identity *identity;
	struct chrome_process_row *row, *next;
	size_t at = 0;

	while ((identity = who_next(&rows->who, run, &at))) {
		row = MAP_FIND(rows->processes, &identity->pid);
		if (row)
			row->identity = identity;
	}
	HASH_ITER (hh, rows->processes, row, next) {
		name_row(rows, "process_name", row->pid, 0, row->process->comm);
		label_row(rows, row);
	}
}

static void name_threads(struct chrome_rows *rows)
{
	struct chrome_thread_row *row, *next;
	char name[64];

	HASH_ITER (hh, rows->threads, row, next) {
		snprintf(name, sizeof(name), "thread %u (%s)", row->key.tid, row->comm);
		name_row(rows, "thread_name", row->key.pid, row->key.tid, name);
	}
}

static void name_devices(struct chrome_rows *rows)
{
	struct chrome_stream_row *stream, *next;
	AT_END(buf_free) struct buf name = { 0 };

	for (size_t i = 0; i < rows->n_devices; i++) {
		buf_reset(&name);
		buf_printf(&name, "GPU %u", rows->device_numbers[i]);
		name_row(rows, "process_name", rows->device_numbers[i], 0, name.data);
		label_process(rows, rows->device_numbers[i], name.data);
	}
	HASH_ITER (hh, rows->streams, stream, next) {
		for (unsigned row = 0; row < stream->told; row++) {
			buf_reset(&name);
			add_row_name(&name, find_device(rows, stream->key.device), &stream->key,
			             row);
			name_row(rows, "thread_name", stream->key.device,
			         row_tid(&stream->key, row), name.data);
		}
	}
}

void chrome_rows_end(struct chrome_rows *rows, const struct run_info *run)
{
	name_processes(rows, run);
	name_threads(rows);
	name_devices(rows);
}
