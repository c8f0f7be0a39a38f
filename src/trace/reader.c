// SPDX-License-Identifier: MIT
#include "trace/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "trace/event.h"
#include "trace/filter.h"
#include "trace/codec.h"
#include "trace/chunk.h"
#include "trace/objects.h"
#include "trace/run_record.h"

/*
 * Events of recordings pack to half (2.0 and 2.2 times in two of 1.2 and 2 million events). A file
 * that was made to can hold two thousand a byte, and keep its reader busy for minutes.
 */
#define RAW_LEAST (64ull << 20)
#define RAW_TIMES 100

struct trace_file {
	struct file_in in;
	char *path;
	struct kept_run run;
	uint64_t events;
	uint64_t damaged_at; /* the first damage; 0: none so far */
	uint64_t opened_damaged_at;
	uint64_t raw_bytes; /* unpacked so far */
	struct objects *objects;
	struct decoder *decoder;
	struct kept_rows *rows;
};

/* ---- opening ------------------------------------------------------------------------------- */

/* Where the first damage is; 0 is the header's place and stands for none. */
static void note_damage(struct trace_file *file, uint64_t offset, uint64_t events)
{
	if (!file->damaged_at || offset < file->damaged_at)
		file->damaged_at = offset;
	file->run.info.damaged_chunks++;
	file->run.info.damaged_events += events;
}

static int tell_damage(const struct trace_file *file, struct err *err)
{
	const struct run_info *run = &file->run.info;

	if (run->over_budget)
		return err_set(
			err, EBADMSG,
			"%s holds more than is kept of one file: at least %lu of its processes, "
			"functions, kernels, threads, streams and other rows, and "
			"%lu event%s, were left out, all else was read",
			file->path, run->over_budget, run->damaged_events,
			run->damaged_events == 1 ? "" : "s");
	if (run->too_dense)
		return err_set(err, EBADMSG,
		               "%s unpacks to more than is read of a file of its size, 64 MiB and "
		               "%d times itself: at least %lu events were left out from byte %lu "
		               "on; `report` and `export` read others with --from and --to",
		               file->path, RAW_TIMES, run->damaged_events, file->damaged_at);
	return err_set(err, EBADMSG,
	               "%s is damaged at byte %lu: %lu part%s of it and at least %lu event%s "
	               "were left out, all else was read",
	               file->path, file->damaged_at, run->damaged_chunks,
	               run->damaged_chunks == 1 ? "" : "s", run->damaged_events,
	               run->damaged_events == 1 ? "" : "s");
}

static const struct chunk_at *last_of_type(const struct trace_file *file, enum chunk_type type)
{
	for (size_t i = file->in.n_chunks; i-- > 0;) {
		if (file->in.chunks[i].head.type == type)
			return &file->in.chunks[i];
	}
	return NULL;
}

static bool read_run(struct trace_file *file, const struct chunk_at *chunk)
{
	const uint8_t *raw = chunk ? file_in_chunk(&file->in, chunk) : NULL;

	return raw && run_read(&file->run, raw, chunk->head.raw_bytes);
}

/* A file that was ended by its writer has a damaged end, or had it where bytes are damaged. */
static bool has_damaged_end(const struct trace_file *file, const struct chunk_at *end)
{
	const struct file_in *in = &file->in;

	return end || ((in->has_trailer || in->complete) && in->has_gaps);
}

/* Of a file whose end was not written or cannot be read: until its last event. */
static void guess_end(struct trace_file *file)
{
	struct run_info *run = &file->run.info;

	run->end_ns = run->begin_ns;
	for (size_t i = 0; i < file->in.n_chunks; i++) {
		const struct chunk_head *head = &file->in.chunks[i].head;

		if (head->type == CHUNK_EVENTS && head->last_ns > run->end_ns)
			run->end_ns = head->last_ns;
	}
}

static int take_run(struct trace_file *file, struct err *err)
{
	const struct chunk_at *end = last_of_type(file, CHUNK_END);

	if (read_run(file, end)) {
		if (file->run.over_budget)
			note_damage(file, end->offset, 0);
		file->opened_damaged_at = file->damaged_at;
		return 0;
	}
	if (read_run(file, last_of_type(file, CHUNK_RUN))) {
		guess_end(file);
		file->run.info.end_damaged = has_damaged_end(file, end);
		file->run.info.cut_short = !file->run.info.end_damaged;
		if (end)
			note_damage(file, end->offset, 0);
		file->opened_damaged_at = file->damaged_at;
		return 0;
	}
	if (file->in.n_chunks || file->in.damaged_at)
		return err_set(err, EBADMSG, "%s is damaged at its very beginning", file->path);
	return err_set(err, ENODATA, "%s ends before its first chunk: nothing was recorded in it",
	               file->path);
}

/* By its path where `fd` is -1. */
static int open_trace(int fd, const char *path, struct trace_file **result, struct err *err)
{
	struct trace_file *file = xcalloc(1, sizeof(*file));
	int r;

	file->path = xstrdup(path);
	r = fd < 0 ? file_in_open(&file->in, file->path, err)
	           : file_in_open_fd(&file->in, fd, file->path, err);
	if (!r)
		r = take_run(file, err);
	if (r) {
		trace_close(file);
		return r;
	}
	for (size_t i = 0; i < file->in.n_chunks; i++) {
		if (file->in.chunks[i].head.type == CHUNK_EVENTS)
			file->events += file->in.chunks[i].head.events;
	}
	*result = file;
	return 0;
}

int trace_open(const char *path, struct trace_file **result, struct err *err)
{
	return open_trace(-1, path, result, err);
}

int trace_open_fd(int fd, const char *called, struct trace_file **result, struct err *err)
{
	return open_trace(fd, called, result, err);
}

void trace_close(struct trace_file *file)
{
	if (!file)
		return;
	decoder_free(file->decoder);
	objects_free(file->objects);
	rows_free(file->rows);
	run_free(&file->run);
	file_in_close(&file->in);
	free(file->path);
	free(file);
}

const struct run_info *trace_run(const struct trace_file *file)
{
	return &file->run.info;
}

uint64_t trace_events(const struct trace_file *file)
{
	return file->events;
}

#define SAME_PIECE (64u << 10)
#define SAME_HOLES (64u << 20) /* bytes of holes that are read */

bool trace_begins_as(const struct trace_file *whole, const struct trace_file *part)
{
	AT_END(at_end_free) char *pieces = xmalloc(2 * SAME_PIECE);
	const struct file_in *a = &whole->in, *b = &part->in;
	uint64_t at = 0;

	if (b->bytes > a->bytes || b->bytes > b->data_bytes + SAME_HOLES)
		return false;
	while (at < b->bytes) {
		size_t n = b->bytes - at < SAME_PIECE ? (size_t)(b->bytes - at) : SAME_PIECE;

		if (pread(a->fd, pieces, n, (off_t)at) != (ssize_t)n ||
		    pread(b->fd, pieces + SAME_PIECE, n, (off_t)at) != (ssize_t)n ||
		    memcmp(pieces, pieces + SAME_PIECE, n) != 0)
			return false;
		at += n;
	}
	return true;
}

void trace_shape(const struct trace_file *file, struct trace_shape *shape)
{
	*shape = (struct trace_shape){ .major = file->in.major,
		                       .minor = file->in.minor,
		                       .writer = file->run.writer,
		                       .bytes = file->in.bytes };
	for (size_t i = 0; i < file->in.n_chunks; i++) {
		const struct chunk_head *head = &file->in.chunks[i].head;

		if (head->type == CHUNK_EVENTS) {
			shape->event_chunks++;
			shape->raw_bytes += head->raw_bytes;
		} else {
			shape->other_chunks++;
		}
	}
}

/* ---- reading ------------------------------------------------------------------------------- */

struct chunk_reading {
	struct trace_file *file;
	struct trace_read_options options;
	struct consumer *const *consumers;
	size_t n_consumers;
	bool all; /* events are wanted, whatever they are */
	bool stopped;
};

static bool of_process(const struct trace_read_options *o, const struct process *process)
{
	for (size_t i = 0; i < o->n_pids; i++) {
		if (o->pids[i] == process->pid)
			return true;
	}
	return !o->n_pids;
}

static bool is_wanted(const struct chunk_reading *reading, const struct event *event)
{
	const struct trace_read_options *o = &reading->options;
	bool early = event->time_ns < o->from_ns && event->type != EVENT_PROCESS &&
	             event->type != EVENT_THREAD;
	uint64_t late_ns = o->cut ? cut_begin_ns(event) : event->time_ns;
	bool whole = o->hooks_whole && event->type == EVENT_OTHER_CALL &&
	             event->call->function->layer == LAYER_HOOK;

	if (!whole && (early || late_ns > o->to_ns))
		return false;
	return (event->type == EVENT_METRICS || of_process(o, event->process)) &&
	       (!o->filter || filter_wants(o->filter, event));
}

static bool begins_before_run(const struct chunk_reading *reading, const struct event *event)
{
	return event->type == EVENT_RANGE &&
	       event->range->begin_ns < reading->file->run.info.begin_ns;
}

/*
 * A range that is open for hours does not make the run of the last ten seconds (--last) longer: it
 * is shown from the begin of the run. Few are: what they need stays out of the way of the others.
 */
static __attribute__((noinline)) int pass_on_cut(struct chunk_reading *reading,
                                                 const struct event *event, struct err *err)
{
	uint64_t from_ns = reading->file->run.info.begin_ns;
	struct range range = *event->range;
	struct event cut = *event;

	cut.range = &range;
	range.begin_ns = from_ns < range.end_ns ? from_ns : range.end_ns;
	return consumers_event(reading->consumers, reading->n_consumers, &cut, err);
}

/* Of what lies across the borders of the part that is asked for. */
static __attribute__((noinline)) int pass_on_inside(struct chunk_reading *reading,
                                                    const struct event *event, struct err *err)
{
	const struct trace_read_options *o = &reading->options;
	uint64_t begin_ns = reading->file->run.info.begin_ns; /* later than the first, for --last */
	struct cut_event cut;

	event = cut_to_part(event, o->from_ns > begin_ns ? o->from_ns : begin_ns, o->to_ns, &cut);
	return event ? consumers_event(reading->consumers, reading->n_consumers, event, err) : 0;
}

static bool wants_all(const struct trace_read_options *o)
{
	return !o->from_ns && o->to_ns == UINT64_MAX && !o->n_pids && !o->filter;
}

static int pass_on(struct chunk_reading *reading, const struct event *event, struct err *err)
{
	if (!event->process) { /* which was defined in a chunk that is damaged */
		reading->file->run.info.damaged_events++;
		return 0;
	}
	if (!reading->all && !is_wanted(reading, event))
		return 0;
	if (!rows_take(reading->file->rows, event)) {
		reading->file->run.info.damaged_events++;
		return 0;
	}
	if (begins_before_run(reading, event))
		return pass_on_cut(reading, event, err);
	if (reading->options.cut && (event->type == EVENT_ACTIVITY || event->type == EVENT_SAMPLE))
		return pass_on_inside(reading, event, err);
	return consumers_event(reading->consumers, reading->n_consumers, event, err);
}

/*
 * All that wait but `but`. Events of the definitions whose places are in event chunks that are not
 * read: skipped for their time, or not in the file, which a recording with --last leaves out.
 */
static int pass_on_waiting(struct chunk_reading *reading, size_t but, struct err *err)
{
	struct objects *objects = reading->file->objects;
	struct thread thread;
	struct event event;
	int r = 0;

	while (!r && objects_waiting(objects) > but && objects_take(objects, &event, &thread)) {
		if (event.time_ns < reading->file->run.info.begin_ns) /* --last */
			event.time_ns = reading->file->run.info.begin_ns;
		r = pass_on(reading, &event, err);
	}
	return r;
}

/*
 * A chunk's payload; NULL where it is damaged, or is more than is read of a file of that size. What
 * is packed is read as well. A hole is no byte of the file's.
 */
static const uint8_t *unpack(struct trace_file *file, const struct chunk_at *chunk)
{
	const struct chunk_head *head = &chunk->head;
	uint64_t bytes =
		head->raw_bytes > head->stored_bytes ? head->raw_bytes : head->stored_bytes;

	if (bytes > RAW_LEAST + RAW_TIMES * file->in.data_bytes - file->raw_bytes) {
		file->run.info.too_dense = true;
		return NULL;
	}
	file->raw_bytes += bytes;
	return file_in_chunk(&file->in, chunk);
}

/* The names for the events at `index`: the chunk before it, or none. */
static void read_names(struct chunk_reading *reading, size_t index)
{
	struct decoder *decoder = reading->file->decoder;
	struct file_in *in = &reading->file->in;
	const struct chunk_at *chunk = index ? &in->chunks[index - 1] : NULL;
	const uint8_t *raw;

	if (!chunk || chunk->head.type != CHUNK_NAMES || in->chunks[index].gap) {
		decoder_names(decoder, NULL, 0);
		if (in->chunks[index].gap) /* they may have been there */
			decoder_lose_names(decoder);
		return;
	}
	raw = unpack(reading->file, chunk);
	if (raw && decoder_names(decoder, raw, chunk->head.raw_bytes))
		return;
	decoder_lose_names(decoder);
	note_damage(reading->file, chunk->offset, 0);
}

/* Of a chunk of events, `left` of which were not read. Those that were announced are there. */
static int lose_events(struct chunk_reading *reading, const struct chunk_at *chunk, uint64_t left,
                       struct err *err)
{
	size_t announced = objects_waiting(reading->file->objects);

	note_damage(reading->file, chunk->offset, left > announced ? left - announced : 0);
	return pass_on_waiting(reading, 0, err);
}

static bool is_stopped(struct chunk_reading *reading, uint64_t offset)
{
	const struct trace_read_options *o = &reading->options;

	if (o->progress && !reading->stopped)
		reading->stopped =
			!o->progress(o->data, (double)offset / (double)reading->file->in.bytes);
	return reading->stopped;
}

/* So many events are dear to some consumers, and a chunk can have a million. */
#define ASK_EVENTS 16384

/* Passes on what is in the chunk that the decoder has begun; `left` of it are not read. */
static int read_event_chunk(struct chunk_reading *reading, const struct chunk_at *chunk,
                            uint64_t *left, struct err *err)
{
	struct event event;
	int r = 0;

	for (; !r; --*left) {
		if (*left % ASK_EVENTS == 0 && is_stopped(reading, chunk->offset))
			return 0;
		switch (decoder_next(reading->file->decoder, &event)) {
		case DECODED_EVENT:
			r = pass_on(reading, &event, err);
			break;
		case DECODED_LOST:
			reading->file->run.info.damaged_events++;
			break;
		case DECODED_NOTHING:
			break;
		case DECODED_END:
			return 0;
		case DECODED_DAMAGE:
			return -EBADMSG;
		}
	}
	return r;
}

static int read_events(struct chunk_reading *reading, size_t index, struct err *err)
{
	const struct chunk_at *chunk = &reading->file->in.chunks[index];
	uint64_t left = chunk->head.events;
	const uint8_t *raw;
	int r;

	read_names(reading, index);
	raw = unpack(reading->file, chunk);
	if (!raw || !decoder_begin(reading->file->decoder, &chunk->head, raw))
		return lose_events(reading, chunk, left, err);
	r = pass_on_waiting(reading, chunk->head.announced, err);
	if (!r)
		r = read_event_chunk(reading, chunk, &left, err);
	return r == -EBADMSG ? lose_events(reading, chunk, left, err) : r;
}

static int read_definitions(struct chunk_reading *reading, const struct chunk_at *chunk,
                            struct err *err)
{
	struct objects *objects = reading->file->objects;
	const uint8_t *raw = unpack(reading->file, chunk);
	struct bytes in = bytes_of(raw, raw ? chunk->head.raw_bytes : 0);
	int r = 0;

	while (!r && raw && objects_read(objects, &in)) {
		if (in.at == in.end)
			return 0;
		r = pass_on_waiting(reading, OBJECTS_WAITING_MAX / 2, err);
	}
	if (r)
		return r;
	objects_lose(objects, chunk->head.definitions);
	note_damage(reading->file, chunk->offset, 0);
	return 0;
}

/* Bytes that are no chunk, in a file without an index: what was there is not known. */
static void pass_gap(struct chunk_reading *reading, const struct chunk_at *chunk)
{
	if (!chunk->gap)
		return;
	objects_lose(reading->file->objects, UINT64_MAX);
	note_damage(reading->file, chunk->offset - chunk->gap, 0);
}

static uint64_t over_budget(const struct trace_file *file)
{
	return objects_over_budget(file->objects) + rows_refused(file->rows);
}

/* What there was no room for is a part that is left out. */
static void note_over_budget(struct trace_file *file, const struct chunk_at *chunk)
{
	uint64_t before = file->run.info.over_budget;

	file->run.info.over_budget = file->run.over_budget + over_budget(file);
	if (file->run.info.over_budget != before)
		note_damage(file, chunk->offset, 0);
}

static int read_chunk_of_type(struct chunk_reading *reading, size_t index, struct err *err)
{
	const struct chunk_at *chunk = &reading->file->in.chunks[index];
	const struct chunk_head *head = &chunk->head;

	if (head->type == CHUNK_DEFINITIONS)
		return read_definitions(reading, chunk, err);
	if (head->type != CHUNK_EVENTS)
		return 0;
	if ((head->last_ns < reading->options.from_ns && !reading->options.hooks_whole) ||
	    (head->first_ns > reading->options.to_ns && !reading->options.cut))
		return pass_on_waiting(reading, 0, err);
	return read_events(reading, index, err);
}

static int read_chunk(struct chunk_reading *reading, size_t index, struct err *err)
{
	const struct chunk_at *chunk = &reading->file->in.chunks[index];
	int r;

	pass_gap(reading, chunk);
	r = read_chunk_of_type(reading, index, err);
	note_over_budget(reading->file, chunk);
	return r;
}

/*
 * What frames are in their source comes at the end of a file, behind the stacks that need it, so
 * the frames of the whole file come first: from its definitions, which are a small part of it.
 * Damage is told of when it is met again.
 */
static void look_ahead(struct chunk_reading *reading)
{
	struct objects *objects = reading->file->objects;
	struct file_in *in = &reading->file->in;

	if (in->minor < FORMAT_MINOR_STACKS)
		return;
	for (size_t i = 0; i < in->n_chunks; i++) {
		const struct chunk_at *chunk = &in->chunks[i];
		struct bytes payload;
		const uint8_t *raw;

		if (chunk->gap)
			objects_lose(objects, UINT64_MAX);
		if (chunk->head.type != CHUNK_DEFINITIONS)
			continue;
		if (is_stopped(reading, 0)) /* read_chunks asks again */
			return;
		raw = unpack(reading->file, chunk);
		payload = bytes_of(raw, raw ? chunk->head.raw_bytes : 0);
		if (!raw || !objects_look_ahead(objects, &payload))
			objects_lose(objects, chunk->head.definitions);
		note_over_budget(reading->file, chunk);
	}
	objects_know_frames(objects);
	reading->file->raw_bytes = 0; /* they are unpacked again */
}

static int read_chunks(struct chunk_reading *reading, struct err *err)
{
	const struct file_in *in = &reading->file->in;
	int r = 0;

	for (size_t i = 0; i < in->n_chunks && !r; i++) {
		if (is_stopped(reading, in->chunks[i].offset))
			return 0;
		r = read_chunk(reading, i, err);
	}
	if (!r && in->damaged_at) /* and no chunk after it */
		note_damage(reading->file, in->damaged_at, 0);
	if (!r)
		is_stopped(reading, in->bytes);
	return r;
}

static void forget_objects(struct trace_file *file, const struct objects_numbers *numbers)
{
	decoder_free(file->decoder);
	objects_free(file->objects);
	file->objects = objects_new();
	if (numbers)
		objects_number(file->objects, numbers);
	file->decoder = decoder_new(file->objects);
	rows_free(file->rows);
	file->rows = rows_new(ROWS_OF_FILE);
}

/* Of a reading before: what opening the file has found stays. */
static void forget_damage(struct trace_file *file)
{
	file->damaged_at = file->opened_damaged_at;
	file->run.info.damaged_chunks = file->damaged_at != 0;
	file->run.info.damaged_events = 0;
	file->run.info.too_dense = false;
	file->raw_bytes = 0;
	file->run.info.over_budget = file->run.over_budget;
}

int trace_read(struct trace_file *file, const struct trace_read_options *options,
               struct consumer *const *consumers, size_t n_consumers, struct err *err)
{
	struct chunk_reading reading = { .file = file,
		                         .consumers = consumers,
		                         .n_consumers = n_consumers };
	struct err at_end = { 0 };
	int r, end;

	if (options)
		reading.options = *options;
	if (!reading.options.to_ns)
		reading.options.to_ns = UINT64_MAX;
	reading.all = wants_all(&reading.options);
	forget_objects(file, reading.options.numbers);
	forget_damage(file);
	r = consumers_begin(consumers, n_consumers, &file->run.info, err);
	if (r)
		return r;
	look_ahead(&reading);
	r = read_chunks(&reading, err);
	if (reading.options.numbers)
		objects_numbers_pass(reading.options.numbers, file->objects);
	end = consumers_end(consumers, n_consumers, &file->run.info, &at_end);
	if (r)
		return r;
	if (end) {
		*err = at_end;
		return end;
	}
	return file->damaged_at ? tell_damage(file, err) : 0;
}
