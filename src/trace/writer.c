// SPDX-License-Identifier: MIT
#include "trace/writer.h"

#include <stdlib.h>
#include <time.h>

#include "base/xalloc.h"
#include "trace/define.h"
#include "trace/encode.h"
#include "trace/file_out.h"
#include "trace/run_record.h"

/*
 * A chunk ends with this much in it, uncompressed. Larger ones pack hardly better: from 64 KiB to
 * 1 MiB a call takes 5 % less (docs/results/pipeline.md), and reading a part of a file costs more.
 */
#define CHUNK_BYTES (512 << 10)
#define FLUSH_NS    1000000000ull /* what a crash may cost */

struct writer {
	struct consumer consumer; /* first: what others hold */
	struct file_out out;
	struct definer *definer;
	struct encoder *encoder;
	struct packer *packer;
	struct buf raw, chunk;
	struct writer_stats stats;
	uint64_t flushed_ns;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* Packs what is in `raw` and writes it. */
static int write_chunk(struct writer *writer, struct chunk_head *head, struct err *err)
{
	buf_reset(&writer->chunk);
	packer_add(writer->packer, head, writer->raw.data, writer->raw.len, &writer->chunk);
	return file_out_chunk(&writer->out, writer->chunk.data, writer->chunk.len, err);
}

/* What has been gathered: first the definitions, which the events need. */
static int write_gathered(struct writer *writer, struct err *err)
{
	struct chunk_head head = { .type = CHUNK_DEFINITIONS };
	int r = 0;

	if (definer_bytes(writer->definer)) {
		head.definitions = definer_take(writer->definer, &writer->raw);
		r = write_chunk(writer, &head, err);
	}
	if (!r && encoder_events(writer->encoder)) {
		encoder_take(writer->encoder, &head, &writer->raw);
		r = write_chunk(writer, &head, err);
	}
	writer->stats.bytes = writer->out.bytes;
	return r;
}

static int write_run(struct writer *writer, enum chunk_type type, const struct run_info *run,
                     struct err *err)
{
	struct chunk_head head = { .type = (uint8_t)type };

	run_write(run, &writer->raw);
	return write_chunk(writer, &head, err);
}

/* ---- the consumer -------------------------------------------------------------------------- */

static int writer_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	int r = file_out_begin(&writer->out, err);

	if (!r)
		r = write_run(writer, CHUNK_RUN, run, err);
	writer->stats.bytes = writer->out.bytes;
	writer->flushed_ns = now_ns();
	return r;
}

static int writer_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	struct event_ids ids;

	if (event->type == EVENT_CALL_BEGIN)
		return 0;
	writer->stats.events++;
	writer->stats.calls += event->type == EVENT_CALL;
	define_objects(writer->definer, event, &ids);
	if (event->type == EVENT_PROCESS || event->type == EVENT_THREAD) {
		define_event(writer->definer, event, &ids);
		encode_announced(writer->encoder, event->time_ns);
	} else {
		encode_event(writer->encoder, event, &ids);
	}
	if (encoder_bytes(writer->encoder) < CHUNK_BYTES &&
	    definer_bytes(writer->definer) < CHUNK_BYTES)
		return 0;
	writer->flushed_ns = now_ns();
	return write_gathered(writer, err);
}

static int writer_flush(struct consumer *self, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	uint64_t now = now_ns();

	if (now - writer->flushed_ns < FLUSH_NS)
		return 0;
	writer->flushed_ns = now;
	return write_gathered(writer, err);
}

static int writer_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct writer *writer = (struct writer *)self;
	int r = write_gathered(writer, err);

	if (!r)
		r = write_run(writer, CHUNK_END, run, err);
	if (!r)
		r = file_out_end(&writer->out, writer->packer, err);
	writer->stats.bytes = writer->out.bytes;
	return r;
}

static void writer_free(struct consumer *self)
{
	struct writer *writer = (struct writer *)self;

	definer_free(writer->definer);
	encoder_free(writer->encoder);
	packer_free(writer->packer);
	file_out_free(&writer->out);
	buf_free(&writer->raw);
	buf_free(&writer->chunk);
	free(writer);
}

static const struct consumer_ops writer_ops = {
	.begin = writer_begin,
	.event = writer_event,
	.flush = writer_flush,
	.end = writer_end,
	.free = writer_free,
};

struct consumer *writer_new(int fd, const char *name)
{
	struct writer *writer = xcalloc(1, sizeof(*writer));

	writer->consumer.ops = &writer_ops;
	file_out_init(&writer->out, fd, name);
	writer->definer = definer_new();
	writer->encoder = encoder_new();
	writer->packer = packer_new();
	return &writer->consumer;
}

void writer_stats(const struct consumer *consumer, struct writer_stats *stats)
{
	*stats = ((const struct writer *)consumer)->stats;
}
