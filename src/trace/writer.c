// SPDX-License-Identifier: MIT
#include "trace/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "trace/chunk.h"
#include "trace/define.h"
#include "trace/codec.h"
#include "trace/run_record.h"
#include "trace/window.h"

/* ---- file out ------------------------------------------------------------------------------ */

void file_out_init(struct file_out *out, int fd, const char *name)
{
	*out = (struct file_out){ .fd = fd, .name = name };
}

void file_out_free(struct file_out *out)
{
	buf_free(&out->heads);
}

static int out_fail(struct file_out *out, int code, struct err *err)
{
	const char *advice = code == ENOSPC || code == EDQUOT || code == EFBIG
	                             ? "; free some space or choose another place"
	                             : "";

	/* what did not fit is cut off; where that fails too, a reader finds the place itself */
	if (ftruncate(out->fd, (off_t)out->bytes))
		errno = 0;
	err_set(&out->failure, code, "cannot write %s: %s%s (what was written so far is whole)",
	        out->name, strerror(code), advice);
	*err = out->failure;
	return err->code;
}

/* All of it or nothing. */
static int out_add(struct file_out *out, const void *data, size_t bytes, struct err *err)
{
	const char *at = data;
	size_t left = bytes;

	if (out->failure.code) {
		*err = out->failure;
		return err->code;
	}
	while (left) {
		ssize_t n = write(out->fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return out_fail(out, n < 0 ? errno : EIO, err);
		at += n;
		left -= (size_t)n;
	}
	out->bytes += bytes;
	return 0;
}

int file_out_begin(struct file_out *out, struct err *err)
{
	uint8_t header[FORMAT_HEADER_BYTES] = { 0 };

	if (ftruncate(out->fd, 0))
		return out_fail(out, errno, err);
	memcpy(header, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	put_fixed(header + 8, FORMAT_MAJOR, 2);
	put_fixed(header + 10, FORMAT_MINOR, 2);
	return out_add(out, header, sizeof(header), err);
}

int file_out_chunk(struct file_out *out, const void *chunk, size_t bytes, struct err *err)
{
	int r = out_add(out, chunk, bytes, err);

	if (!r)
		buf_add(&out->heads, chunk, FORMAT_CHUNK_BYTES);
	return r;
}

/* Index and trailer. */
static int file_out_end(struct file_out *out, struct packer *packer, struct err *err)
{
	struct chunk_head head = { .type = CHUNK_INDEX };
	uint8_t trailer[FORMAT_TRAILER_BYTES];
	AT_END(buf_free) struct buf chunk = { 0 };
	uint64_t at = out->bytes;

	packer_add(packer, &head, out->heads.data, out->heads.len, &chunk);
	put_fixed(trailer, at, 8);
	put_fixed(trailer + 8, chunk.len, 4);
	put_fixed(trailer + 12, crc32(0, trailer, 12), 4);
	memcpy(trailer + 16, FORMAT_MAGIC, FORMAT_MAGIC_BYTES);
	buf_add(&chunk, trailer, sizeof(trailer));
	return out_add(out, chunk.data, chunk.len, err);
}

/* ---- writer -------------------------------------------------------------------------------- */

/*
 * A chunk ends with this much in it, uncompressed. With 64 KiB files are 12 % larger, with 2 MiB
 * 1 % smaller (docs/results/pipeline.md), and reading a part of one costs more.
 */
#define CHUNK_BYTES (512 << 10)
#define FLUSH_NS    1000000000ull /* what a crash may cost */

/* A window of bytes is dropped from chunk by chunk: it should have several, but none of a call. A
 * shared one is dropped from by user. */
#define WINDOW_CHUNKS        8
#define WINDOW_CHUNKS_SHARED 64
#define WINDOW_CHUNK_LEAST   512

struct writer {
	struct consumer consumer; /* first: what others hold */
	struct file_out out;
	struct writer_window options;
	struct window *window; /* NULL: chunks go straight into the file */
	struct definer *definer;
	struct encoder *encoder;
	struct packer *packer;
	struct buf raw, chunk;
	struct buf opening;   /* the first chunk, until the file is begun */
	size_t chunk_bytes;   /* CHUNK_BYTES, or less */
	struct quota threads; /* that were told of, ever */
	struct writer_stats stats;
	uint64_t flushed_ns;
};

/* ---- chunks -------------------------------------------------------------------------------- */

/* Packs what is in `raw`. */
static void pack_chunk(struct writer *writer, struct chunk_head *head)
{
	buf_reset(&writer->chunk);
	packer_add(writer->packer, head, writer->raw.data, writer->raw.len, &writer->chunk);
}

/*
 * Begins the file, if that is still to be done. begin() does not: a command may turn out not to run
 * after it, and a file that was to be overwritten would be lost for nothing.
 */
static int begin_file(struct writer *writer, struct err *err)
{
	int r;

	if (!writer->opening.len)
		return 0;
	r = file_out_begin(&writer->out, err);
	if (!r)
		r = file_out_chunk(&writer->out, writer->opening.data, writer->opening.len, err);
	buf_free(&writer->opening);
	writer->stats.bytes = writer->out.bytes;
	return r;
}

/* Packs it, and writes or keeps it. */
static int add_chunk(struct writer *writer, struct chunk_head *head, struct err *err)
{
	int r;

	pack_chunk(writer, head);
	if (writer->window) {
		window_add(writer->window, head, &writer->chunk);
		return 0;
	}
	r = begin_file(writer, err);
	return r ? r : file_out_chunk(&writer->out, writer->chunk.data, writer->chunk.len, err);
}

static void count_bytes(struct writer *writer)
{
	const struct window_figures *figures;

	writer->stats.bytes = writer->out.bytes;
	if (!writer->window)
		return;
	figures = window_figures(writer->window);
	writer->stats.bytes = figures->event_bytes;
	writer->stats.held = figures->held_bytes;
	writer->stats.dropped_ns = figures->dropped_ns;
	writer->stats.left_out = figures->events_given;
}

/* What has been gathered: first the definitions, which the events need. */
static int add_gathered(struct writer *writer, struct err *err)
{
	struct chunk_head head = { .type = CHUNK_DEFINITIONS };
	int r = 0;

	if (definer_bytes(writer->definer)) {
		head.definitions = definer_take(writer->definer, &writer->raw);
		writer->stats.defined += writer->raw.len;
		r = add_chunk(writer, &head, err);
	}
	if (!r && encoder_events(writer->encoder)) {
		encoder_take_names(writer->encoder, &writer->raw);
		if (writer->raw.len)
			r = add_chunk(writer, &(struct chunk_head){ .type = CHUNK_NAMES }, err);
		if (r)
			return r;
		encoder_take(writer->encoder, &head, &writer->raw);
		r = add_chunk(writer, &head, err);
		writer->stats.whole += r ? 0 : head.events;
	}
	count_bytes(writer);
	return r;
}

static int write_run(struct writer *writer, struct file_out *out, enum chunk_type type,
                     const struct run_info *run, struct err *err)
{
	struct chunk_head head = { .type = (uint8_t)type };

	run_write(run, &writer->raw);
	pack_chunk(writer, &head);
	return file_out_chunk(out, writer->chunk.data, writer->chunk.len, err);
}

static int write_begin(struct writer *writer, struct file_out *out, const struct run_info *run,
                       struct err *err)
{
	int r = file_out_begin(out, err);

	return r ? r : write_run(writer, out, CHUNK_RUN, run, err);
}

static int write_end(struct writer *writer, struct file_out *out, const struct run_info *run,
                     struct err *err)
{
	int r = write_run(writer, out, CHUNK_END, run, err);

	return r ? r : file_out_end(out, writer->packer, err);
}

/* ---- the window ---------------------------------------------------------------------------- */

/* The run as if it had begun with the first event that is left. */
static int write_window(struct writer *writer, struct file_out *out, const struct run_info *whole,
                        struct err *err)
{
	struct run_info run = *whole;
	int r;

	if (window_begin_ns(writer->window) > run.begin_ns)
		run.begin_ns = window_begin_ns(writer->window);
	r = write_begin(writer, out, &run, err);
	if (!r)
		r = window_write(writer->window, out, err);
	return r ? r : write_end(writer, out, &run, err);
}

int writer_settle(struct consumer *self, uint64_t end_ns, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	int r = 0;

	while (!r && define_parts(writer->definer, CHUNK_BYTES)) /* lines that are known by now */
		r = add_gathered(writer, err);
	if (!r)
		r = add_gathered(writer, err);
	if (!r)
		window_until(writer->window, end_ns);
	count_bytes(writer);
	return r;
}

size_t writer_left_out(const struct consumer *self, struct writer_left_out *left, size_t most)
{
	return window_left_out(((const struct writer *)self)->window, left, most);
}

int writer_snapshot(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	struct writer_window *options = &writer->options;
	struct run_info told = *run;
	struct file_out out;
	const char *name;
	int r = writer_settle(self, run->end_ns, err), fd;

	if (r)
		return r;
	fd = options->open(options->data, &name, err);
	if (fd < 0)
		return fd;
	file_out_init(&out, fd, name);
	if (options->tell)
		options->tell(options->data, &told);
	r = write_window(writer, &out, &told, err);
	if (close(fd) && !r) /* where a network file system tells that its disk is full */
		r = err_set(err, errno, "cannot write %s: %s", name, strerror(errno));
	if (!r && options->written)
		options->written(options->data, &told, window_figures(writer->window)->events,
		                 out.bytes);
	file_out_free(&out);
	return r;
}

void writer_redirect(struct consumer *self,
                     int (*open)(void *data, const char **name, struct err *err),
                     void (*written)(void *data, const struct run_info *run, uint64_t events,
                                     uint64_t bytes),
                     void *data)
{
	struct writer *writer = (struct writer *)self;

	writer->options.open = open;
	writer->options.written = written;
	writer->options.data = data;
}

void writer_shorten(struct consumer *self, uint64_t last_ns)
{
	window_shorten(((struct writer *)self)->window, last_ns);
}

/* ---- the consumer -------------------------------------------------------------------------- */

static int writer_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	struct chunk_head head = { .type = CHUNK_RUN };

	writer->flushed_ns = clock_now_ns();
	if (writer->window)
		return 0;
	run_write(run, &writer->raw);
	packer_add(writer->packer, &head, writer->raw.data, writer->raw.len, &writer->opening);
	return 0;
}

/* Definitions stay for good, and a program can have a thousand threads a second that begin. */
static bool thread_has_room(struct writer *writer, const struct event *event)
{
	if (event->type != EVENT_THREAD || !writer->options.threads ||
	    !quota_take(&writer->threads, event->process->person, 0, 1))
		return true;
	writer->stats.unnamed++;
	return false;
}

static int writer_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	size_t before = writer->options.shared ? encoder_bytes(writer->encoder) : 0, after;
	struct event_ids ids;
	bool full;

	if (event->type == EVENT_CALL_BEGIN || !thread_has_room(writer, event))
		return 0;
	writer->stats.events++;
	define_objects(writer->definer, event, &ids);
	if (event->type == EVENT_PROCESS || event->type == EVENT_THREAD) {
		define_event(writer->definer, event, &ids);
		encode_announced(writer->encoder, event->time_ns);
	} else {
		encode_event(writer->encoder, event, &ids);
	}
	after = encoder_bytes(writer->encoder);
	full = after >= writer->chunk_bytes || definer_bytes(writer->definer) >= CHUNK_BYTES;
	if (writer->options.shared)
		full |= window_count(writer->window, ids.process, event, after - before);
	if (!full)
		return 0;
	writer->flushed_ns = clock_now_ns();
	return add_gathered(writer, err);
}

static int writer_flush(struct consumer *self, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	uint64_t now = clock_now_ns();
	int r = begin_file(writer, err);

	if (r || now - writer->flushed_ns < FLUSH_NS)
		return r;
	writer->flushed_ns = now;
	return add_gathered(writer, err);
}

static int writer_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	int r = 0;

	if (writer->window)
		return writer_snapshot(self, run, err);
	while (!r && define_parts(writer->definer, CHUNK_BYTES))
		r = add_gathered(writer, err);
	if (r)
		return r;
	r = begin_file(writer, err);
	if (!r)
		r = add_gathered(writer, err);
	if (!r)
		r = write_end(writer, &writer->out, run, err);
	count_bytes(writer);
	writer->stats.ended = !r;
	return r;
}

static void writer_free(struct consumer *self)
{
	struct writer *writer = (struct writer *)self;

	definer_free(writer->definer);
	encoder_free(writer->encoder);
	packer_free(writer->packer);
	file_out_free(&writer->out);
	window_free(writer->window);
	quota_free(&writer->threads);
	buf_free(&writer->raw);
	buf_free(&writer->chunk);
	buf_free(&writer->opening);
	free(writer);
}

static const struct consumer_ops writer_ops = {
	.begin = writer_begin,
	.metrics = true,
	.stalls = true,
	.event = writer_event,
	.flush = writer_flush,
	.end = writer_end,
	.free = writer_free,
};

static struct writer *make(void)
{
	struct writer *writer = xcalloc(1, sizeof(*writer));

	writer->consumer.ops = &writer_ops;
	writer->definer = definer_new();
	writer->encoder = encoder_new();
	writer->packer = packer_new();
	writer->chunk_bytes = CHUNK_BYTES;
	return writer;
}

struct consumer *writer_new(int fd, const char *name)
{
	struct writer *writer = make();

	file_out_init(&writer->out, fd, name);
	return &writer->consumer;
}

static size_t window_chunk_bytes(uint64_t last_bytes, bool shared)
{
	uint64_t bytes = last_bytes / (shared ? WINDOW_CHUNKS_SHARED : WINDOW_CHUNKS);

	if (!last_bytes || bytes > CHUNK_BYTES)
		return CHUNK_BYTES;
	return bytes < WINDOW_CHUNK_LEAST ? WINDOW_CHUNK_LEAST : bytes;
}

struct consumer *writer_new_window(const struct writer_window *window)
{
	struct writer *writer = make();

	writer->chunk_bytes = window_chunk_bytes(window->last_bytes, window->shared);
	writer->options = *window;
	writer->threads = (struct quota){ .user = { .most = window->threads / 2 },
		                          .all = { .most = window->threads } };
	writer->window = window_new(window->last_ns, window->last_bytes, window->shared);
	return &writer->consumer;
}

void writer_stats(const struct consumer *consumer, struct writer_stats *stats)
{
	*stats = ((const struct writer *)consumer)->stats;
}
