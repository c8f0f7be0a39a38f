// SPDX-License-Identifier: MIT
/* Events into the columns of one event chunk at a time. */
#include "trace/codec.h"

#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "base/xalloc.h"
#include "trace/chunk.h"

#define EVENT_BYTES_MAX 512 /* in any column but the texts: all values, as long as they get */
#define THREADS         4096

/* Threads are numbered in each chunk. One that loses its place here is numbered once more. */
struct encode_known_thread {
	uint32_t chunk, process, tid, index;
};

struct encoder {
	struct codec codec;
	struct buf column[COLUMN_COUNT];
	uint32_t events, announced;
	uint64_t first_ns, last_ns, begin_ns;
	struct names *names; /* of the ranges of this chunk */
	struct encode_known_thread *threads;
	uint32_t n_threads, thread; /* of this chunk; of the event before */
};

struct encoder *encoder_new(void)
{
	struct encoder *encoder = xcalloc(1, sizeof(*encoder));

	codec_init(&encoder->codec);
	encoder->names = names_new();
	encoder->threads = xcalloc(THREADS, sizeof(*encoder->threads));
	return encoder;
}

void encoder_free(struct encoder *encoder)
{
	if (!encoder)
		return;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		buf_free(&encoder->column[i]);
	codec_free(&encoder->codec);
	names_free(encoder->names);
	free(encoder->threads);
	free(encoder);
}

size_t encoder_bytes(const struct encoder *encoder)
{
	size_t bytes = names_bytes(encoder->names);

	for (size_t i = 0; i < COLUMN_COUNT; i++)
		bytes += encoder->column[i].len;
	return bytes;
}

uint32_t encoder_events(const struct encoder *encoder)
{
	return encoder->events;
}

/* ---- columns ------------------------------------------------------------------------------- */

static uint8_t *column_at(struct encoder *encoder, enum column column)
{
	struct buf *buf = &encoder->column[column];

	if (buf->cap - buf->len <= EVENT_BYTES_MAX)
		buf_reserve(buf, EVENT_BYTES_MAX);
	return (uint8_t *)buf->data + buf->len;
}

static void column_upto(struct encoder *encoder, enum column column, const uint8_t *at)
{
	encoder->column[column].len = (size_t)(at - (uint8_t *)encoder->column[column].data);
}

static void add_text(struct encoder *encoder, const char *text)
{
	size_t len = strnlen(text, FORMAT_TEXT_MAX);

	buf_add(&encoder->column[COLUMN_TEXTS], text, len);
	buf_putc(&encoder->column[COLUMN_TEXTS], '\0');
}

/* ---- what all events have ------------------------------------------------------------------ */

static void count_event(struct encoder *encoder, uint64_t time_ns, uint64_t begin_ns)
{
	if (!encoder->events++) {
		encoder->first_ns = encoder->last_ns = time_ns;
		encoder->begin_ns = begin_ns;
		codec_begin(&encoder->codec, 0);
	}
	if (time_ns < encoder->first_ns)
		encoder->first_ns = time_ns;
	if (time_ns > encoder->last_ns)
		encoder->last_ns = time_ns;
	if (begin_ns < encoder->begin_ns)
		encoder->begin_ns = begin_ns;
}

static struct encode_known_thread *thread_of(struct encoder *encoder, uint32_t process,
                                             uint32_t tid)
{
	uint32_t hash = (tid + process * 0x9e3779b1u) * 0x85ebca6bu;

	return &encoder->threads[hash / (UINT32_MAX / THREADS + 1)];
}

static uint8_t *put_head(struct encoder *encoder, uint8_t *at, const struct event *event,
                         const struct event_ids *ids, uint64_t code, bool kernel_differs)
{
	struct encode_known_thread *thread = thread_of(encoder, ids->process, event->tid);
	bool is_new = thread->chunk != encoder->codec.chunk || thread->process != ids->process ||
	              thread->tid != event->tid;
	bool differs = is_new || thread->index != encoder->thread;

	at = put_varint(at, code << HEAD_SHIFT | (kernel_differs ? HEAD_KERNEL : 0) |
	                            (differs ? HEAD_THREAD : 0));
	if (is_new) {
		*thread = (struct encode_known_thread){ encoder->codec.chunk, ids->process,
			                                event->tid, encoder->n_threads++ };
		at = put_varint(at, thread->index);
		at = put_varint(at, ids->process);
		at = put_varint(at, event->tid);
	} else if (differs) {
		at = put_varint(at, thread->index);
	}
	encoder->thread = thread->index;
	return at;
}

/* Two numbers: since the event before, and since the begin of this one. */
static void put_times(struct encoder *encoder, uint64_t time_ns, uint64_t begin_ns)
{
	uint8_t *at = column_at(encoder, COLUMN_TIMES);

	at = put_varint(at, fold(time_ns - encoder->codec.time_ns));
	at = put_varint(at, begin_ns < time_ns ? time_ns - begin_ns : 0); /* else unreadable */
	column_upto(encoder, COLUMN_TIMES, at);
	encoder->codec.time_ns = time_ns;
}

void encode_announced(struct encoder *encoder, uint64_t time_ns)
{
	uint8_t *at;

	count_event(encoder, time_ns, time_ns);
	encoder->announced++;
	at = column_at(encoder, COLUMN_HEADS);
	column_upto(encoder, COLUMN_HEADS, put_varint(at, CODE_ANNOUNCED << HEAD_SHIFT));
}

/* ---- calls --------------------------------------------------------------------------------- */

static uint64_t flags_value(const struct call *call)
{
	uint64_t overhead =
		call->overhead_ns < FLAGS_OVERHEAD_MOST ? call->overhead_ns : FLAGS_OVERHEAD_MOST;

	return call->flags | overhead << FLAGS_OVERHEAD_SHIFT;
}

static void list_values(const struct call *call, uint64_t values[VALUE_CORRELATION])
{
	const struct api_call *args = &call->args;

	fields_list(FIELDS_CALL, call, NULL, 0, values);
	values[VALUE_FLAGS] = flags_value(call);
	values[VALUE_SHAPE] = SHAPE(args->n_args, args->direction, args->has_stream);
}

/* Whether all values are those of the call before: as it is with a function that is called all the
 * time. */
static bool is_as_before(const struct slot *slot, const struct call *call)
{
	return call->args_number && call->args_number == slot->args_number &&
	       flags_value(call) == slot->last[VALUE_FLAGS] &&
	       call->depth == slot->last[VALUE_DEPTH] &&
	       (uint64_t)(int64_t)call->result == slot->last[VALUE_RESULT];
}

/* Which values are not as expected. Follows what the reader will know of them. */
static uint32_t compare(struct slot *slot, const uint64_t *values)
{
	uint32_t mask = 0;

	/* what followed an argument when they were told last does so now */
	if (!memcmp(values, slot->last, VALUE_CORRELATION * sizeof(*values)))
		return 0;
	for (unsigned i = 0; i < VALUE_HANDLE; i++)
		mask |= (uint32_t)(values[i] != slot->last[i]) << i;
	for (unsigned i = VALUE_HANDLE; i <= VALUE_SHMEM; i++) {
		uint8_t *follows = &slot->follows[i - VALUE_HANDLE];
		uint64_t expected = *follows == FOLLOWS_NONE ? slot->last[i] : values[*follows];

		if (values[i] == expected)
			continue;
		mask |= 1u << i;
		*follows = argument_like(values, values[i]);
	}
	for (unsigned i = VALUE_GRID; i < VALUE_CORRELATION; i++)
		mask |= (uint32_t)(values[i] != slot->last[i]) << i;
	return mask;
}

static uint8_t *put_values(uint8_t *at, struct slot *slot, const uint64_t *values, size_t count,
                           uint32_t mask)
{
	uint32_t rest = mask & ((1u << count) - 1);

	if (!rest) /* they are those of the slot, and may not even be listed */
		return at;
	for (; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		at = put_varint(at, fold(values[i] - slot->last[i]));
	}
	words_copy(slot->last, values, count * sizeof(*values));
	return at;
}

static void encode_call(struct encoder *encoder, const struct event *event,
                        const struct event_ids *ids)
{
	const struct call *call = event->call;
	struct codec *codec = &encoder->codec;
	struct last_kernel *kernel = codec_kernel(codec, KERNEL_OF_FUNCTION(ids->function));
	struct last_correlation *correlation = codec_correlation(codec, ids->process);
	struct slot *slot = codec_slot(codec, ids->function, ids->kernel);
	uint64_t end_ns = call_has_end(call) ? event->time_ns : 0;
	uint64_t values[VALUE_CORRELATION];
	uint8_t *at = column_at(encoder, COLUMN_HEADS);
	uint32_t mask = 0;

	if (!is_as_before(slot, call)) {
		list_values(call, values);
		mask = compare(slot, values);
		slot->args_number = call->args_number;
	}
	mask |= (uint32_t)(call->correlation != correlation->call + 1) << VALUE_CORRELATION;
	mask |= (uint32_t)(call->end_ns != end_ns) << VALUE_END;
	mask |= (uint32_t)(call->text != NULL) << VALUE_TEXT;
	at = put_head(encoder, at, event, ids, CODE_CALL + (uint64_t)ids->function,
	              kernel->kernel != ids->kernel);
	if (kernel->kernel != ids->kernel)
		at = put_varint(at, ids->kernel);
	kernel->kernel = ids->kernel;
	at = put_varint(at, mask | (uint64_t)ids->stack << MASK_STACK_SHIFT);
	column_upto(encoder, COLUMN_HEADS, at);

	put_times(encoder, event->time_ns, call->begin_ns);
	if (mask) {
		at = put_values(column_at(encoder, COLUMN_VALUES), slot, values, VALUE_CORRELATION,
		                mask);
		if (mask >> VALUE_CORRELATION & 1)
			at = put_varint(at, fold(call->correlation - correlation->call));
		if (mask >> VALUE_END & 1)
			at = put_varint(at, fold(call->end_ns - event->time_ns));
		column_upto(encoder, COLUMN_VALUES, at);
	}
	correlation->call = call->correlation;
	if (call->text)
		add_text(encoder, call->text);
}

/* ---- activities, ranges, samples, metrics --------------------------------------------------- */

/* An event that is told as an activity. */
struct encode_as {
	uint32_t kind;
	enum fields fields;
	const void *record; /* its struct */
	uint64_t begin_ns, end_ns;
};

/* The kernel and the correlation are those of an activity: others have none, and count as if they
 * had the number that is expected, as a reader of 1.0 counts. */
static void encode_as_kind(struct encoder *encoder, const struct event *event,
                           const struct event_ids *ids, const struct encode_as *as)
{
	struct codec *codec = &encoder->codec;
	struct last_kernel *kernel = codec_kernel(codec, as->kind);
	struct last_correlation *last = codec_correlation(codec, ids->process);
	struct slot *slot = codec_slot(codec, SLOT_OF_KIND(as->kind), ids->kernel);
	uint64_t correlation = event->activity ? event->activity->correlation : last->activity + 1;
	size_t n_values = fields_of[as->fields].count;
	uint8_t *at = column_at(encoder, COLUMN_HEADS);
	uint64_t values[KEPT_MOST];
	uint32_t mask = 0;

	fields_list(as->fields, as->record, encoder->names, ids->stack, values);
	for (unsigned i = 0; i < n_values; i++)
		mask |= (uint32_t)(values[i] != slot->last[i]) << i;
	mask |= (uint32_t)(correlation != last->activity + 1) << ACTIVITY_CORRELATION;
	mask |= (uint32_t)(as->end_ns != event->time_ns) << ACTIVITY_END;
	at = put_head(encoder, at, event, ids, CODE_ACTIVITY, kernel->kernel != ids->kernel);
	at = put_varint(at, as->kind);
	if (kernel->kernel != ids->kernel)
		at = put_varint(at, ids->kernel);
	kernel->kernel = ids->kernel;
	at = put_varint(at,
	                mask | (event->activity ? (uint64_t)ids->stack << MASK_STACK_SHIFT : 0));
	column_upto(encoder, COLUMN_HEADS, at);

	put_times(encoder, event->time_ns, as->begin_ns);
	at = put_values(column_at(encoder, COLUMN_VALUES), slot, values, n_values, mask);
	if (mask >> ACTIVITY_CORRELATION & 1)
		at = put_varint(at, fold(correlation - last->activity));
	if (mask >> ACTIVITY_END & 1)
		at = put_varint(at, fold(as->end_ns - event->time_ns));
	column_upto(encoder, COLUMN_VALUES, at);
	last->activity = correlation;
}

/* ---- events -------------------------------------------------------------------------------- */

static void encode_exit(struct encoder *encoder, const struct event *event,
                        const struct event_ids *ids)
{
	uint8_t *at = column_at(encoder, COLUMN_HEADS);

	at = put_head(encoder, at, event, ids, CODE_EXIT, false);
	column_upto(encoder, COLUMN_HEADS, at);
	put_times(encoder, event->time_ns, event->time_ns);
}

#define AS_KIND(kind, fields, record)                                                              \
	encode_as_kind(                                                                            \
		encoder, event, ids,                                                               \
		&(struct encode_as){ kind, fields, record, (record)->begin_ns, (record)->end_ns })

void encode_event(struct encoder *encoder, const struct event *event, const struct event_ids *ids)
{
	count_event(encoder, event->time_ns,
	            event->call                     ? event->call->begin_ns
	            : event->type == EVENT_ACTIVITY ? event->activity->begin_ns
	                                            : event->time_ns);
	switch (event->type) {
	case EVENT_CALL:
	case EVENT_OTHER_CALL:
		encode_call(encoder, event, ids);
		break;
	case EVENT_ACTIVITY:
		AS_KIND(event->activity->kind, FIELDS_ACTIVITY, event->activity);
		break;
	case EVENT_RANGE:
		AS_KIND(FORMAT_KIND_RANGE, FIELDS_RANGE, event->range);
		break;
	case EVENT_METRICS:
		AS_KIND(FORMAT_KIND_METRICS, FIELDS_METRICS, event->metrics);
		break;
	case EVENT_STALL:
		AS_KIND(FORMAT_KIND_STALL, FIELDS_STALL, event->stall);
		break;
	case EVENT_SAMPLE:
		encode_as_kind(encoder, event, ids,
		               &(struct encode_as){ FORMAT_KIND_SAMPLE, FIELDS_SAMPLE,
		                                    event->sample, event->time_ns,
		                                    event->time_ns });
		break;
	default:
		encode_exit(encoder, event, ids);
	}
}

void encoder_take_names(struct encoder *encoder, struct buf *raw)
{
	names_take(encoder->names, raw);
}

void encoder_take(struct encoder *encoder, struct chunk_head *head, struct buf *raw)
{
	uint8_t lengths[4 * COLUMN_COUNT], *at = lengths;

	*head = (struct chunk_head){ .type = CHUNK_EVENTS,
		                     .events = encoder->events,
		                     .announced = encoder->announced,
		                     .first_ns = encoder->first_ns,
		                     .last_ns = encoder->last_ns,
		                     .begin_ns = encoder->begin_ns };
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		at = put_fixed(at, encoder->column[i].len, 4);
	buf_reset(raw);
	buf_add(raw, lengths, sizeof(lengths));
	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		buf_add(raw, encoder->column[i].data, encoder->column[i].len);
		buf_reset(&encoder->column[i]);
	}
	encoder->events = encoder->announced = 0;
	encoder->n_threads = encoder->thread = 0;
}
