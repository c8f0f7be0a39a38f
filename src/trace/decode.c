// SPDX-License-Identifier: MIT
/* The events of one event chunk after the other. */
#include "trace/codec.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "trace/format.h"

/*
 * One event takes less than this of a column other than the texts, so that a look at the columns'
 * ends after each event is enough: what is read beyond is the next column, or UNPACK_SPARE.
 */
#define EVENT_BYTES_MAX ((VALUE_COUNT + 1) * VARINT_MAX)
_Static_assert(EVENT_BYTES_MAX < UNPACK_SPARE, "an event that is cut off is read to its end");

#define KNOWN_FLAGS                                                                                \
	(CALL_NESTED | CALL_NO_RETURN | CALL_UNFINISHED | CALL_CAPTURED | CALL_FAILED |            \
	 CALL_SIZE_UNKNOWN)

struct numbered_thread {
	const struct process *process; /* NULL: lost */
	uint32_t process_id, tid;
};

struct decoder {
	struct codec codec;
	struct objects *objects;
	struct names *names;
	bool names_lost;
	bool lost;            /* of the event that is read: something that it refers to */
	struct event_ids ids; /* of the same */
	uint64_t first_ns;    /* of the chunk */
	const uint8_t *at[COLUMN_COUNT], *end[COLUMN_COUNT];
	uint32_t events; /* that are left */
	struct numbered_thread *threads;
	size_t n_threads, threads_room;
	const struct numbered_thread *thread; /* of the event before */
	struct call call;
	struct activity activity;
	struct range range;
	struct sample sample;
	struct gpu_metrics_sample metrics;
	struct stall stall;
	struct thread announced;
};

/* What events point at where there are no objects. */
static const struct process any_process;
static const struct function any_function = { .name = "", .lib = "" };

struct decoder *decoder_new(struct objects *objects)
{
	struct decoder *decoder = xcalloc(1, sizeof(*decoder));

	codec_init(&decoder->codec);
	decoder->objects = objects;
	decoder->names = names_new();
	return decoder;
}

void decoder_free(struct decoder *decoder)
{
	if (!decoder)
		return;
	codec_free(&decoder->codec);
	names_free(decoder->names);
	free(decoder->threads);
	free(decoder);
}

bool decoder_names(struct decoder *decoder, const uint8_t *raw, size_t bytes)
{
	decoder->names_lost = false;
	return names_read(decoder->names, raw, bytes);
}

void decoder_lose_names(struct decoder *decoder)
{
	names_read(decoder->names, NULL, 0);
	decoder->names_lost = true;
}

bool decoder_begin(struct decoder *decoder, const struct chunk_head *head, const uint8_t *raw)
{
	const uint8_t *at = raw + 4 * COLUMN_COUNT;
	size_t left = head->raw_bytes - 4 * COLUMN_COUNT;

	if (head->raw_bytes < 4 * COLUMN_COUNT)
		return false;
	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		size_t len = (size_t)get_fixed(raw + 4 * i, 4);

		if (len > left)
			return false;
		left -= len;
		decoder->at[i] = at;
		decoder->end[i] = at += len;
	}
	decoder->events = head->events;
	decoder->first_ns = head->first_ns;
	decoder->n_threads = 0;
	decoder->thread = NULL;
	codec_begin(&decoder->codec, 0);
	return !left;
}

/* ---- what all events have ------------------------------------------------------------------ */

static uint64_t next_number(struct decoder *decoder, enum column column)
{
	uint64_t value;

	decoder->at[column] = get_varint(decoder->at[column], &value);
	return value;
}

static __attribute__((noinline)) bool add_thread(struct decoder *decoder)
{
	uint64_t id = next_number(decoder, COLUMN_HEADS);
	const struct process *process =
		decoder->objects ? objects_process(decoder->objects, id) : &any_process;
	uint32_t tid = (uint32_t)next_number(decoder, COLUMN_HEADS);

	if (decoder->n_threads == decoder->threads_room) {
		decoder->threads_room = decoder->threads_room ? 2 * decoder->threads_room : 64;
		decoder->threads = xrealloc(decoder->threads,
		                            decoder->threads_room * sizeof(*decoder->threads));
	}
	if (!process && !objects_lost(decoder->objects, OBJECT_PROCESS, id))
		return false;
	decoder->threads[decoder->n_threads++] =
		(struct numbered_thread){ process, (uint32_t)id, tid };
	return true;
}

static inline bool read_thread(struct decoder *decoder, uint64_t head, struct event *event)
{
	if (head & HEAD_THREAD) {
		uint64_t index = next_number(decoder, COLUMN_HEADS);

		if (index > decoder->n_threads ||
		    (index == decoder->n_threads && !add_thread(decoder)))
			return false;
		decoder->thread = &decoder->threads[index];
	}
	if (!decoder->thread)
		return false;
	event->process = decoder->thread->process;
	event->tid = decoder->thread->tid;
	decoder->ids.process = decoder->thread->process_id;
	decoder->lost |= !event->process;
	return true;
}

/* The kernel's number and one, 0 for none. */
static inline bool read_kernel(struct decoder *decoder, uint64_t head, struct last_kernel *last,
                               const struct kernel **kernel)
{
	if (head & HEAD_KERNEL)
		last->kernel = (uint32_t)next_number(decoder, COLUMN_HEADS);
	decoder->ids.kernel = last->kernel;
	*kernel = NULL;
	if (!decoder->objects)
		return true;
	*kernel = last->kernel ? objects_kernel(decoder->objects, last->kernel - 1) : NULL;
	if (*kernel || !last->kernel)
		return true;
	decoder->lost = true;
	return objects_lost(decoder->objects, OBJECT_KERNEL, last->kernel - 1);
}

/*
 * By its number and one, 0 for none. One that was lost is none: what it is the stack of is there.
 * False where it is not defined.
 */
static inline bool read_stack(struct decoder *decoder, uint64_t number, const struct stack **stack)
{
	decoder->ids.stack = (uint32_t)number;
	*stack = NULL;
	if (!decoder->objects)
		return true;
	*stack = number ? objects_stack(decoder->objects, number - 1) : NULL;
	if (*stack) /* one of ten thousands, soon asked for its number: that waits for memory */
		__builtin_prefetch(*stack);
	return !number || *stack || objects_lost(decoder->objects, OBJECT_STACK, number - 1);
}

/* The event's time and when it began. Nothing begins after its end. */
static inline bool read_times(struct decoder *decoder, struct event *event, uint64_t *begin_ns)
{
	uint64_t duration_ns;

	decoder->codec.time_ns += unfold(next_number(decoder, COLUMN_TIMES));
	duration_ns = next_number(decoder, COLUMN_TIMES);
	event->time_ns = decoder->codec.time_ns;
	*begin_ns = event->time_ns - duration_ns;
	return event->time_ns < FORMAT_TIME_MAX && duration_ns <= event->time_ns;
}

/* The end, where it is not the event's time. */
static bool read_end(struct decoder *decoder, const struct event *event, uint64_t *end_ns)
{
	*end_ns = event->time_ns + unfold(next_number(decoder, COLUMN_VALUES));
	return *end_ns < FORMAT_TIME_MAX;
}

static bool read_text(struct decoder *decoder, const char **text)
{
	const uint8_t *at = decoder->at[COLUMN_TEXTS];
	const uint8_t *nul = memchr(at, '\0', (size_t)(decoder->end[COLUMN_TEXTS] - at));

	if (!nul)
		return false;
	*text = (const char *)at;
	decoder->at[COLUMN_TEXTS] = nul + 1;
	return true;
}

/* ---- calls --------------------------------------------------------------------------------- */

#define MAY_FOLLOW ((1u << (VALUE_SHMEM + 1)) - (1u << VALUE_HANDLE))

static void set_follows(struct slot *slot, unsigned value)
{
	uint8_t argument = argument_like(slot->last, slot->last[value]);

	slot->follows[value - VALUE_HANDLE] = argument;
	slot->following &= ~(1u << value);
	slot->following |= (uint32_t)(argument != FOLLOWS_NONE) << value;
}

/* Brings the slot's values up to this call's. */
static void read_values(struct decoder *decoder, struct slot *slot, uint32_t mask)
{
	const uint8_t *at = decoder->at[COLUMN_VALUES];
	uint64_t *values = slot->last, difference;

	for (uint32_t rest = mask & ((1u << VALUE_HANDLE) - 1); rest; rest &= rest - 1) {
		at = get_varint(at, &difference);
		values[__builtin_ctz(rest)] += unfold(difference);
	}
	for (uint32_t rest = mask & MAY_FOLLOW; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		at = get_varint(at, &difference);
		values[i] += unfold(difference);
		set_follows(slot, i);
	}
	for (uint32_t rest = slot->following & ~mask; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctz(rest);

		values[i] = values[slot->follows[i - VALUE_HANDLE]];
	}
	for (uint32_t rest = mask & ((1u << VALUE_CORRELATION) - (1u << VALUE_GRID)); rest;
	     rest &= rest - 1) {
		at = get_varint(at, &difference);
		values[__builtin_ctz(rest)] += unfold(difference);
	}
	decoder->at[COLUMN_VALUES] = at;
}

static void fill_call(struct call *call, const uint64_t *values, size_t n_args)
{
	uint64_t shape = values[VALUE_SHAPE];
	struct api_call *args = &call->args;

	fields_fill(FIELDS_CALL, call, NULL, values);
	args->n_args = (uint8_t)(SHAPE_ARGS(shape) < n_args ? SHAPE_ARGS(shape) : n_args);
	args->has_stream = SHAPE_HAS_STREAM(shape);
	args->direction = SHAPE_DIRECTION(shape) < DIRECTION_COUNT
	                          ? (enum api_direction)SHAPE_DIRECTION(shape)
	                          : DIRECTION_NONE;
	call->flags = (uint32_t)values[VALUE_FLAGS] & KNOWN_FLAGS;
	call->overhead_ns = values[VALUE_FLAGS] >> FLAGS_OVERHEAD_SHIFT;
}

static struct last_correlation *correlation_of(struct decoder *decoder)
{
	return codec_correlation(&decoder->codec, decoder->thread->process_id);
}

static uint64_t read_correlation(struct decoder *decoder, uint32_t mask, uint64_t *last)
{
	*last += mask >> VALUE_CORRELATION & 1 ? unfold(next_number(decoder, COLUMN_VALUES)) : 1;
	return *last;
}

/* Any stands for one that was lost: how its values are told does not depend on it. */
static const struct function *function_of(struct decoder *decoder, uint64_t id)
{
	const struct function *function;

	decoder->ids.function = (uint32_t)id;
	if (!decoder->objects)
		return &any_function;
	function = objects_function(decoder->objects, id);
	if (function || !objects_lost(decoder->objects, OBJECT_FUNCTION, id))
		return function;
	decoder->lost = true;
	return &any_function;
}

static size_t args_of(const struct decoder *decoder, const struct function *function)
{
	const struct api_arg *args;

	if (!decoder->objects)
		return API_ARGS_MAX;
	return function->api ? api_args(function->api, &args) : 0;
}

static enum decoded read_call(struct decoder *decoder, uint64_t head, struct event *event)
{
	uint64_t id = (head >> HEAD_SHIFT) - CODE_CALL;
	const struct function *function = function_of(decoder, id);
	struct codec *codec = &decoder->codec;
	struct call *call = &decoder->call;
	struct last_kernel *last;
	struct slot *slot;
	uint64_t head_mask;
	uint32_t mask;

	if (!function || !read_thread(decoder, head, event))
		return DECODED_DAMAGE;
	last = codec_kernel(codec, KERNEL_OF_FUNCTION((uint32_t)id));
	if (!read_kernel(decoder, head, last, &call->kernel))
		return DECODED_DAMAGE;
	call->function = function;
	call->op = function->api && call_is_cuda(call) ? api_op(function->api) : OP_NONE;
	if (call->op == OP_LAUNCH && !call->kernel && !decoder->lost)
		return DECODED_DAMAGE;
	head_mask = next_number(decoder, COLUMN_HEADS);
	mask = (uint32_t)head_mask;
	if (!read_stack(decoder, head_mask >> MASK_STACK_SHIFT, &call->stack) ||
	    !read_times(decoder, event, &call->begin_ns))
		return DECODED_DAMAGE;
	slot = codec_slot(codec, (uint32_t)id, last->kernel);
	read_values(decoder, slot, mask);
	fill_call(call, slot->last, args_of(decoder, function));
	call->correlation = read_correlation(decoder, mask, &correlation_of(decoder)->call);
	call->end_ns = call_has_end(call) ? event->time_ns : 0;
	if (mask >> VALUE_END & 1 && !read_end(decoder, event, &call->end_ns))
		return DECODED_DAMAGE;
	call->text = NULL;
	if (mask >> VALUE_TEXT & 1 && !read_text(decoder, &call->text))
		return DECODED_DAMAGE;
	event->type = call_event_type(call);
	event->call = call;
	return decoder->lost ? DECODED_LOST : DECODED_EVENT;
}

/* ---- activities, ranges, samples, metrics --------------------------------------------------- */

/* What is told as an activity, after its kind. False: damage. */
struct decoded_kind {
	const uint64_t *values;
	const struct kernel *kernel;
	uint64_t begin_ns, end_ns, correlation;
	uint64_t stack; /* its number and one; 0: none */
};

static bool read_kind(struct decoder *decoder, uint64_t head, uint64_t kind, struct event *event,
                      struct decoded_kind *read)
{
	struct codec *codec = &decoder->codec;
	struct last_kernel *last = codec_kernel(codec, (uint32_t)kind);
	struct slot *slot;
	uint64_t head_mask;
	uint32_t mask;

	if (!read_kernel(decoder, head, last, &read->kernel))
		return false;
	head_mask = next_number(decoder, COLUMN_HEADS);
	mask = (uint32_t)head_mask;
	read->stack = head_mask >> MASK_STACK_SHIFT;
	if (!read_times(decoder, event, &read->begin_ns))
		return false;
	slot = codec_slot(codec, SLOT_OF_KIND(kind), last->kernel);
	for (uint32_t rest = mask & ((1u << ACTIVITY_VALUES) - 1); rest; rest &= rest - 1)
		slot->last[__builtin_ctz(rest)] += unfold(next_number(decoder, COLUMN_VALUES));
	read->values = slot->last;
	read->correlation = read_correlation(decoder, mask, &correlation_of(decoder)->activity);
	read->end_ns = event->time_ns;
	return !(mask >> ACTIVITY_END & 1) || read_end(decoder, event, &read->end_ns);
}
/* The event of a struct that was filled: `whole` where the names in it are there. */
static enum decoded told(const struct decoder *decoder, bool whole)
{
	if (!whole)
		return decoder->names_lost ? DECODED_LOST : DECODED_DAMAGE;
	return decoder->lost ? DECODED_LOST : DECODED_EVENT;
}

/* Whether a kernel has to be there, and is not. */
static bool lacks_kernel(const struct decoder *decoder, const struct decoded_kind *read)
{
	return decoder->objects && !read->kernel && !decoder->lost;
}

static enum decoded tell_activity(struct decoder *decoder, const struct decoded_kind *read,
                                  uint64_t kind, struct event *event)
{
	struct activity *activity = &decoder->activity;

	if (kind == ACTIVITY_KERNEL && lacks_kernel(decoder, read))
		return DECODED_DAMAGE;
	if (!read_stack(decoder, read->stack, &activity->stack))
		return DECODED_DAMAGE;
	if (kind >= ACTIVITY_COUNT)
		return DECODED_NOTHING;
	fields_fill(FIELDS_ACTIVITY, activity, NULL, read->values);
	activity->kind = (enum activity_kind)kind;
	activity->kernel = read->kernel;
	activity->correlation = read->correlation;
	activity->begin_ns = read->begin_ns;
	activity->end_ns = read->end_ns;
	event->type = EVENT_ACTIVITY;
	event->activity = activity;
	return told(decoder, true);
}

static enum decoded tell_sample(struct decoder *decoder, const struct decoded_kind *read,
                                struct event *event)
{
	struct sample *sample = &decoder->sample;
	bool whole;

	if (read->values[SAMPLE_VALUE_WEIGHT] >= FORMAT_TIME_MAX ||
	    !read_stack(decoder, read->values[SAMPLE_VALUE_STACK], &sample->stack))
		return DECODED_DAMAGE;
	if (read->values[SAMPLE_VALUE_KIND] >= SAMPLE_KIND_COUNT)
		return DECODED_NOTHING;
	whole = fields_fill(FIELDS_SAMPLE, sample, decoder->names, read->values);
	if (sample->runnable_ns > sample->weight_ns)
		sample->runnable_ns = sample->weight_ns;
	event->type = EVENT_SAMPLE;
	event->sample = sample;
	return told(decoder, whole);
}

static enum decoded tell_metrics(struct decoder *decoder, const struct decoded_kind *read,
                                 struct event *event)
{
	struct gpu_metrics_sample *metrics = &decoder->metrics;

	if (read->values[METRICS_VALUE_GPU] >= RUN_GPUS_MAX)
		return DECODED_DAMAGE;
	if (read->values[METRICS_VALUE_SOURCE] >= GPU_METRICS_SOURCES)
		return DECODED_NOTHING;
	for (unsigned i = 0; i < GPU_METRICS; i++) {
		if (read->values[METRICS_VALUE_FIRST + i] >
		    (gpu_metric_info(i)->is_rate ? GPU_RATE_MOST : GPU_SHARE_WHOLE) + 1)
			return DECODED_DAMAGE;
	}
	fields_fill(FIELDS_METRICS, metrics, NULL, read->values);
	metrics->begin_ns = read->begin_ns;
	metrics->end_ns = read->end_ns;
	event->type = EVENT_METRICS;
	event->metrics = metrics;
	return told(decoder, true);
}

/* One with a reason is of a kernel, and one without of its window. */
static enum decoded tell_stall(struct decoder *decoder, const struct decoded_kind *read,
                               struct event *event)
{
	struct stall *stall = &decoder->stall;
	bool whole;

	if (read->values[STALL_VALUE_SAMPLES] > STALL_SAMPLES_MOST ||
	    read->values[STALL_VALUE_DROPPED] > STALL_SAMPLES_MOST ||
	    read->values[STALL_VALUE_FOREIGN] > STALL_SAMPLES_MOST ||
	    read->values[STALL_VALUE_COST] > FORMAT_TIME_MAX ||
	    (read->values[STALL_VALUE_REASON] && lacks_kernel(decoder, read)))
		return DECODED_DAMAGE;
	whole = fields_fill(FIELDS_STALL, stall, decoder->names, read->values);
	stall->kernel = read->kernel;
	if (stall->kernel && !stall->reason)
		stall->reason = "";
	stall->begin_ns = read->begin_ns;
	stall->end_ns = read->end_ns;
	event->type = EVENT_STALL;
	event->stall = stall;
	return told(decoder, whole);
}

static enum decoded tell_range(struct decoder *decoder, const struct decoded_kind *read,
                               struct event *event)
{
	struct range *range = &decoder->range;
	bool whole;

	if (read->values[RANGE_VALUE_KIND] >= RANGE_COUNT)
		return DECODED_NOTHING;
	whole = fields_fill(FIELDS_RANGE, range, decoder->names, read->values);
	if (!range->name) /* it has none, or that is not there */
		range->name = "";
	range->begin_ns = read->begin_ns;
	range->end_ns = read->end_ns;
	event->type = EVENT_RANGE;
	event->range = range;
	return told(decoder, whole);
}

/* ---- events -------------------------------------------------------------------------------- */

static enum decoded read_exit(struct decoder *decoder, uint64_t head, struct event *event)
{
	uint64_t begin_ns;

	event->type = EVENT_EXIT;
	if (!read_thread(decoder, head, event) || !read_times(decoder, event, &begin_ns))
		return DECODED_DAMAGE;
	return decoder->lost ? DECODED_LOST : DECODED_EVENT;
}

static enum decoded read_of_kind(struct decoder *decoder, uint64_t head, struct event *event)
{
	struct decoded_kind read;
	uint64_t kind;

	if (!read_thread(decoder, head, event))
		return DECODED_DAMAGE;
	kind = next_number(decoder, COLUMN_HEADS);
	if (kind >= KINDS_MAX)
		return DECODED_DAMAGE;
	if (kind >= FORMAT_KIND_METRICS && head & HEAD_KERNEL)
		return DECODED_DAMAGE;
	if (!read_kind(decoder, head, kind, event, &read))
		return DECODED_DAMAGE;
	switch (kind) {
	case FORMAT_KIND_RANGE:
		return tell_range(decoder, &read, event);
	case FORMAT_KIND_SAMPLE:
		return tell_sample(decoder, &read, event);
	case FORMAT_KIND_METRICS:
		return tell_metrics(decoder, &read, event);
	case FORMAT_KIND_STALL:
		return tell_stall(decoder, &read, event);
	default:
		return tell_activity(decoder, &read, kind, event);
	}
}

static enum decoded read_announced(struct decoder *decoder, struct event *event)
{
	if (!decoder->objects) {
		event->type = EVENT_PROCESS;
		event->process = &any_process;
		event->time_ns =
			decoder->codec.time_ns ? decoder->codec.time_ns : decoder->first_ns;
		return DECODED_EVENT;
	}
	if (objects_take(decoder->objects, event, &decoder->announced))
		return event->process ? DECODED_EVENT : DECODED_LOST;
	return objects_lost_any(decoder->objects) ? DECODED_LOST : DECODED_DAMAGE;
}

static enum decoded read_event(struct decoder *decoder, struct event *event)
{
	uint64_t head = next_number(decoder, COLUMN_HEADS);

	switch (head >> HEAD_SHIFT) {
	case CODE_ANNOUNCED:
		return read_announced(decoder, event);
	case CODE_EXIT:
		return read_exit(decoder, head, event);
	case CODE_ACTIVITY:
		return read_of_kind(decoder, head, event);
	case CODE_RESERVED:
		return DECODED_DAMAGE;
	default:
		return read_call(decoder, head, event);
	}
}

enum decoded decoder_next(struct decoder *decoder, struct event *event)
{
	enum decoded decoded;
	bool beyond = false;

	if (!decoder->events) {
		for (size_t i = 0; i < COLUMN_COUNT; i++) {
			if (decoder->at[i] != decoder->end[i])
				return DECODED_DAMAGE;
		}
		return DECODED_END;
	}
	decoder->events--;
	*event = (struct event){ 0 };
	decoder->lost = false;
	decoder->ids = (struct event_ids){ 0 };
	decoded = read_event(decoder, event);
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		beyond |= decoder->at[i] > decoder->end[i];
	return beyond ? DECODED_DAMAGE : decoded;
}

const struct event_ids *decoder_ids(const struct decoder *decoder)
{
	return &decoder->ids;
}
