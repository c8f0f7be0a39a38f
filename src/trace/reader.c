// SPDX-License-Identifier: MIT
#include "trace/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "trace/consumers.h"
#include "trace/decode.h"
#include "trace/file_in.h"
#include "trace/objects.h"
#include "trace/run_record.h"

struct trace_file {
	struct file_in in;
	char *path;
	struct kept_run run;
	uint64_t events;
	struct objects *objects;
	struct decoder *decoder;
};

/* ---- opening ------------------------------------------------------------------------------- */

static int damaged(const struct trace_file *file, uint64_t offset, struct err *err)
{
	return err_set(err, EBADMSG, "%s is damaged at byte %llu: what comes before that was read",
	               file->path, (unsigned long long)offset);
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

/* Of a file that was cut short: until its last event. */
static void guess_end(struct trace_file *file)
{
	struct run_info *run = &file->run.info;

	run->cut_short = true;
	run->end_ns = run->begin_ns;
	for (size_t i = 0; i < file->in.n_chunks; i++) {
		const struct chunk_head *head = &file->in.chunks[i].head;

		if (head->type == CHUNK_EVENTS && head->last_ns > run->end_ns)
			run->end_ns = head->last_ns;
	}
}

static int take_run(struct trace_file *file, struct err *err)
{
	if (read_run(file, last_of_type(file, CHUNK_END)))
		return 0;
	if (read_run(file, last_of_type(file, CHUNK_RUN))) {
		guess_end(file);
		return 0;
	}
	if (file->in.n_chunks || file->in.damaged_at)
		return err_set(err, EBADMSG, "%s is damaged at its very beginning", file->path);
	return err_set(err, ENODATA, "%s ends before its first chunk: nothing was recorded in it",
	               file->path);
}

int trace_open(const char *path, struct trace_file **result, struct err *err)
{
	struct trace_file *file = xcalloc(1, sizeof(*file));
	int r;

	file->path = xstrdup(path);
	r = file_in_open(&file->in, file->path, err);
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
	file->objects = objects_new();
	file->decoder = decoder_new(file->objects);
	*result = file;
	return 0;
}

void trace_close(struct trace_file *file)
{
	if (!file)
		return;
	decoder_free(file->decoder);
	objects_free(file->objects);
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

struct reading {
	struct trace_file *file;
	struct trace_read_options options;
	struct consumer *const *consumers;
	size_t n_consumers;
};

static bool is_wanted(const struct reading *reading, const struct event *event)
{
	const struct trace_read_options *o = &reading->options;
	bool early = event->time_ns < o->from_ns && event->type != EVENT_PROCESS &&
	             event->type != EVENT_THREAD;

	if (early || event->time_ns > o->to_ns)
		return false;
	for (size_t i = 0; i < o->n_pids; i++) {
		if (o->pids[i] == event->process->pid)
			return true;
	}
	return !o->n_pids;
}

/*
 * A range that is open for hours does not make the run of the last ten seconds (--last) longer: it
 * is shown from the begin of the run.
 */
static int pass_on_range(struct reading *reading, const struct event *event, struct err *err)
{
	uint64_t from_ns = reading->file->run.info.begin_ns;
	struct range range = *event->range;
	struct event cut = *event;

	cut.range = &range;
	if (range.begin_ns < from_ns)
		range.begin_ns = from_ns < range.end_ns ? from_ns : range.end_ns;
	return consumers_event(reading->consumers, reading->n_consumers, &cut, err);
}

static int pass_on(struct reading *reading, const struct event *event, struct err *err)
{
	if (!is_wanted(reading, event))
		return 0;
	if (event->type == EVENT_RANGE)
		return pass_on_range(reading, event, err);
	return consumers_event(reading->consumers, reading->n_consumers, event, err);
}

/*
 * Events of the definitions whose places are in event chunks that are not read: skipped for their
 * time, or not in the file, which a recording with --last leaves out.
 */
static int pass_on_waiting(struct reading *reading, size_t but, struct err *err)
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

/* The names for the events at `index`: the chunk before it, or none. */
static int read_names(struct reading *reading, size_t index, struct err *err)
{
	struct file_in *in = &reading->file->in;
	const struct chunk_at *chunk = index ? &in->chunks[index - 1] : NULL;
	const uint8_t *raw;

	if (!chunk || chunk->head.type != CHUNK_NAMES)
		return decoder_names(reading->file->decoder, NULL, 0) ? 0 : -EBADMSG;
	raw = file_in_chunk(in, chunk);
	if (!raw || !decoder_names(reading->file->decoder, raw, chunk->head.raw_bytes))
		return damaged(reading->file, chunk->offset, err);
	return 0;
}

static int read_events(struct reading *reading, size_t index, struct err *err)
{
	const struct chunk_at *chunk = &reading->file->in.chunks[index];
	struct decoder *decoder = reading->file->decoder;
	const uint8_t *raw;
	struct event event;
	int r = read_names(reading, index, err);

	if (r)
		return r;
	raw = file_in_chunk(&reading->file->in, chunk);
	if (!raw || !decoder_begin(decoder, &chunk->head, raw))
		return damaged(reading->file, chunk->offset, err);
	r = pass_on_waiting(reading, chunk->head.announced, err);
	while (!r) {
		switch (decoder_next(decoder, &event)) {
		case DECODED_EVENT:
			r = pass_on(reading, &event, err);
			break;
		case DECODED_NOTHING:
			break;
		case DECODED_END:
			return 0;
		case DECODED_DAMAGE:
			return damaged(reading->file, chunk->offset, err);
		}
	}
	return r;
}

static int read_definitions(struct reading *reading, const struct chunk_at *chunk, struct err *err)
{
	const uint8_t *raw = file_in_chunk(&reading->file->in, chunk);

	if (!raw || !objects_read(reading->file->objects, raw, chunk->head.raw_bytes))
		return damaged(reading->file, chunk->offset, err);
	return 0;
}

static int read_chunk(struct reading *reading, size_t index, struct err *err)
{
	const struct chunk_at *chunk = &reading->file->in.chunks[index];
	const struct chunk_head *head = &chunk->head;

	if (head->type == CHUNK_DEFINITIONS)
		return read_definitions(reading, chunk, err);
	if (head->type != CHUNK_EVENTS)
		return 0;
	if (head->last_ns < reading->options.from_ns || head->first_ns > reading->options.to_ns)
		return pass_on_waiting(reading, 0, err);
	return read_events(reading, index, err);
}

static bool is_stopped(const struct reading *reading, uint64_t offset)
{
	const struct trace_read_options *o = &reading->options;

	return o->progress &&
	       !o->progress(o->data, (double)offset / (double)reading->file->in.bytes);
}

static int read_chunks(struct reading *reading, struct err *err)
{
	const struct file_in *in = &reading->file->in;
	int r = 0;

	for (size_t i = 0; i < in->n_chunks && !r; i++) {
		if (is_stopped(reading, in->chunks[i].offset))
			return 0;
		r = read_chunk(reading, i, err);
	}
	if (!r && in->damaged_at)
		r = damaged(reading->file, in->damaged_at, err);
	if (!r)
		is_stopped(reading, in->bytes);
	return r;
}

int trace_read(struct trace_file *file, const struct trace_read_options *options,
               struct consumer *const *consumers, size_t n_consumers, struct err *err)
{
	struct reading reading = { .file = file,
		                   .consumers = consumers,
		                   .n_consumers = n_consumers };
	struct err at_end = { 0 };
	int r, end;

	if (options)
		reading.options = *options;
	if (!reading.options.to_ns)
		reading.options.to_ns = UINT64_MAX;
	r = consumers_begin(consumers, n_consumers, &file->run.info, err);
	if (r)
		return r;
	r = read_chunks(&reading, err);
	end = consumers_end(consumers, n_consumers, &file->run.info, &at_end);
	if (r || !end)
		return r;
	*err = at_end;
	return end;
}
