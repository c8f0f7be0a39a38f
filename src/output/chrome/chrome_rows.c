// SPDX-License-Identifier: MIT
/* Rows of the Chrome format: the pid and tid that threads, streams and their waits have there. */
#include "output/chrome/chrome.h"

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
	uint32_t process, tid; /* or device, stream */
};

struct chrome_stream_key {
	uint32_t device, user, stream;
};

struct chrome_thread_row {
	struct chrome_row_key key;
	UT_hash_handle hh;
};

struct chrome_stream_row {
	struct chrome_stream_key key;
	unsigned told; /* rows that have a name */
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

struct chrome_rows {
	struct chrome_writer *writer;
	bool *processes; /* by id: told of */
	size_t n_processes;
	struct who who;
	struct chrome_thread_row *threads;
	struct chrome_stream_row *streams;
	struct chrome_device *devices;
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

static void forget_threads(struct chrome_rows *rows, uint32_t process, bool all)
{
	struct chrome_thread_row *thread, *next;

	HASH_ITER (hh, rows->threads, thread, next) {
		if (all || thread->key.process == process) {
			HASH_DEL(rows->threads, thread);
			free(thread);
		}
	}
}

void chrome_rows_free(struct chrome_rows *rows)
{
	struct chrome_stream_row *stream, *next;

	forget_threads(rows, 0, true);
	HASH_ITER (hh, rows->streams, stream, next) {
		HASH_DEL(rows->streams, stream);
		free(stream);
	}
	contexts_free(rows->contexts);
	free(rows->processes);
	who_free(&rows->who);
	free(rows->devices);
	free(rows->device_numbers);
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
	who_note(&rows->who, process);
	name_row(rows, "process_name", process->pid, 0, process->comm);
	label_process(rows, process->pid, "CPU");
	sort_row(rows, "process_sort_index", process->pid, 0, process->pid);
}

void chrome_rows_thread(struct chrome_rows *rows, const struct process *process, uint32_t tid,
                        const struct thread *thread)
{
	struct chrome_row_key key = { process->id, tid };
	const char *comm = thread ? thread->comm : tid == process->pid ? process->comm : "";
	struct chrome_thread_row *found;
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

/* Readers split labels at commas, and add them to those that there are. */
void chrome_rows_label(struct chrome_rows *rows, const struct run_info *run)
{
	struct buf labels = { 0 }, one = { 0 };
	const struct run_identity *identity;
	size_t at = 0;

	while ((identity = who_next(&rows->who, run, &at))) {
		buf_reset(&labels);
		for (int i = 0; i < RUN_IDENTITY_WORDS; i++) {
			buf_reset(&one);
			if (!who_label(identity, i, &one))
				continue;
			for (size_t c = 0; c < one.len; c++)
				one.data[c] = one.data[c] == ',' ? ' ' : one.data[c];
			buf_printf(&labels, "%s%s", labels.len ? "," : "", one.data);
		}
		begin_metadata(rows, "process_labels", identity->pid, 0);
		buf_puts(rows->writer->out, "\"labels\": ");
		buf_json_string(rows->writer->out, labels.data);
		buf_puts(rows->writer->out, "}}");
	}
	buf_free(&labels);
	buf_free(&one);
}

const struct who *chrome_rows_who(const struct chrome_rows *rows)
{
	return &rows->who;
}

/* ---- GPUs and streams ----------------------------------------------------------------------- */

static struct chrome_device *new_device(struct chrome_rows *rows, uint32_t number)
{
	size_t n = ++rows->n_devices;
	char name[32];

	rows->devices = xrealloc(rows->devices, n * sizeof(*rows->devices));
	rows->devices[n - 1] = (struct chrome_device){ .number = number };
	rows->device_numbers = xrealloc(rows->device_numbers, n * sizeof(*rows->device_numbers));
	rows->device_numbers[n - 1] = number;
	snprintf(name, sizeof(name), "GPU %u", number);
	name_row(rows, "process_name", number, 0, name);
	label_process(rows, number, name);
	sort_row(rows, "process_sort_index", number, 0, GPU_SORT_INDEX + number);
	return &rows->devices[n - 1];
}

static struct chrome_device *find_device(struct chrome_rows *rows, uint32_t number)
{
	for (size_t i = 0; i < rows->n_devices; i++) {
		if (rows->devices[i].number == number)
			return &rows->devices[i];
	}
	return new_device(rows, number);
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

static void name_stream_row(struct chrome_rows *rows, const struct chrome_device *device,
                            const struct chrome_stream_key *key, unsigned row)
{
	struct buf name = { 0 };

	add_row_name(&name, device, key, row);
	name_row(rows, "thread_name", device->number, row_tid(key, row), name.data);
	buf_free(&name);
}

static void tell_row(struct chrome_rows *rows, const struct chrome_device *device,
                     const struct chrome_stream_key *key, unsigned row)
{
	uint32_t tid = row_tid(key, row);

	name_stream_row(rows, device, key, row);
	sort_row(rows, "thread_sort_index", device->number, tid, tid);
}

/* With the second user it has to be said whose the rows of the first are: the last name counts. */
static void name_again(struct chrome_rows *rows, const struct chrome_device *device)
{
	struct chrome_stream_row *stream, *next;

	HASH_ITER (hh, rows->streams, stream, next) {
		for (unsigned row = 0; stream->key.device == device->number && row < stream->told;
		     row++)
			name_stream_row(rows, device, &stream->key, row);
	}
}

static uint32_t find_user(struct chrome_rows *rows, struct chrome_device *device,
                          const struct process *process)
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
	if (device->n_users == 2)
		name_again(rows, device);
	return device->n_users - 1;
}

static uint32_t choose_row(struct chrome_rows *rows, const struct process *process, uint32_t number,
                           uint32_t stream, uint64_t begin_ns, uint64_t end_ns)
{
	struct chrome_device *device = find_device(rows, number);
	struct chrome_stream_key key = { number, find_user(rows, device, process), stream };
	struct chrome_stream_row *found;
	unsigned row;

	HASH_FIND(hh, rows->streams, &key, sizeof(key), found);
	if (!found) {
		found = xcalloc(1, sizeof(*found));
		found->key = key;
		HASH_ADD(hh, rows->streams, key, sizeof(key), found);
	}
	row = rows_choose_span(&found->rows, begin_ns, end_ns);
	while (found->told <= row)
		tell_row(rows, device, &key, found->told++);
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
	return rows->device_numbers;
}
