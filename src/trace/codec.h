/* SPDX-License-Identifier: MIT */
/*
 * How calls are told by what differs. Writer and reader keep the same state, and both expect each
 * value of a call to be what it was in the last call of the same function (and, for launches, of
 * the same kernel). A value that equalled one of the call's arguments is expected to do so again.
 * Only what is not as expected is in the file. The state begins anew with each chunk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/chunk.h"
#include "trace/event.h"
#include "trace/fields.h"
#include "trace/format.h"
#include "trace/objects.h"

/* Bits of a call's mask beyond its values. A set bit says that what it stands for differs from what
 * was expected. */
enum {
	VALUE_CORRELATION = CALL_VALUES, /* expected: one more than the last of the process */
	VALUE_END,  /* expected: the event's time, or 0 where the flags say "no end" */
	VALUE_TEXT, /* expected: none */
	VALUE_COUNT,
};

#define SHAPE(n_args, direction, has_stream)                                                       \
	((uint64_t)(n_args) | (uint64_t)(direction) << 8 | (uint64_t)(has_stream) << 16)
#define SHAPE_ARGS(shape)       ((shape)&0xff)
#define SHAPE_DIRECTION(shape)  ((shape) >> 8 & 0xff)
#define SHAPE_HAS_STREAM(shape) ((shape) >> 16 & 1)

/* Above the flags of a call: its overhead_ns; since 1.2. Older readers leave it out. */
#define FLAGS_OVERHEAD_SHIFT 16
#define FLAGS_OVERHEAD_MOST  (UINT64_MAX >> FLAGS_OVERHEAD_SHIFT)

/* Bits of the mask of an activity that are no values of its slot. */
#define ACTIVITY_CORRELATION VALUE_CORRELATION
#define ACTIVITY_END         VALUE_END
#define KEPT_MOST            VALUE_CORRELATION /* values of what is told as an activity, at most */
_Static_assert((int)METRICS_VALUES <= KEPT_MOST && (int)ACTIVITY_VALUES <= KEPT_MOST &&
                       (int)SAMPLE_VALUES <= KEPT_MOST && (int)RANGE_VALUES <= KEPT_MOST &&
                       (int)STALL_VALUES <= KEPT_MOST,
               "they have bits in the mask");

/*
 * Above the mask of a call, since 1.3, and of an activity, since 1.6: the number of its stack and
 * one, 0 for none. Older readers take 32 bits of the mask and leave it out.
 */
#define MASK_STACK_SHIFT 32

#define FOLLOWERS    (VALUE_SHMEM - VALUE_HANDLE + 1)
#define FOLLOWS_NONE 255

/* What was last seen of one function with one kernel. */
struct slot {
	uint32_t chunk; /* older ones are void */
	uint32_t function, kernel;
	uint8_t follows[FOLLOWERS]; /* an argument, or FOLLOWS_NONE */
	uint32_t following;         /* a reader's: a bit for each value that follows one */
	uint64_t args_number;       /* a writer's: of the arguments in `last` */
	uint64_t last[VALUE_CORRELATION];
};

#define SLOTS                                                                                      \
	4096 /* a new owner of a slot throws the old one out: fixed memory, a few bytes lost */

struct codec {
	uint32_t chunk; /* counts them, from 1 */
	uint64_t time_ns;
	struct slot *slots;
	struct last_kernel { /* by function: of its last call */
		uint32_t chunk, kernel;
	} * kernels;
	size_t n_kernels;
	struct last_correlation { /* by process */
		uint32_t chunk;
		uint64_t call, activity;
	} * correlations;
	size_t n_correlations;
};

void codec_init(struct codec *codec);
void codec_free(struct codec *codec);
void codec_begin(struct codec *codec, uint64_t time_ns); /* of a chunk */

/* Kinds of activities have slots like functions, with numbers that no function gets. */
#define SLOT_OF_KIND(kind) (UINT32_MAX - (uint32_t)(kind))
#define KINDS_MAX          8
_Static_assert(ACTIVITY_COUNT <= FORMAT_KIND_STALL && FORMAT_KIND_RANGE < KINDS_MAX, "kinds");

struct slot *codec_slot_anew(struct codec *codec, struct slot *slot, uint32_t function,
                             uint32_t kernel);

static inline struct slot *codec_slot(struct codec *codec, uint32_t function, uint32_t kernel)
{
	uint32_t hash = function * 0x9e3779b1u + kernel * 0x85ebca6bu;
	struct slot *slot = &codec->slots[hash / (UINT32_MAX / SLOTS + 1)];

	if (slot->chunk == codec->chunk && slot->function == function && slot->kernel == kernel)
		return slot;
	return codec_slot_anew(codec, slot, function, kernel);
}

/* `kernel` of both is the kernel's number and one, 0 for none. */
struct last_kernel *codec_kernel_grown(struct codec *codec, uint32_t index);
struct last_correlation *codec_correlation_grown(struct codec *codec, uint32_t process);

static inline struct last_kernel *codec_kernel(struct codec *codec, uint32_t index)
{
	if (index < codec->n_kernels && codec->kernels[index].chunk == codec->chunk)
		return &codec->kernels[index];
	return codec_kernel_grown(codec, index);
}

/* Kinds of activities come first. */
#define KERNEL_OF_FUNCTION(function) ((function) + KINDS_MAX)

static inline struct last_correlation *codec_correlation(struct codec *codec, uint32_t process)
{
	if (process < codec->n_correlations && codec->correlations[process].chunk == codec->chunk)
		return &codec->correlations[process];
	return codec_correlation_grown(codec, process);
}

/* After a value came out other than expected: the argument that it is to follow from now on. */
static inline uint8_t argument_like(const uint64_t *values, uint64_t value)
{
	for (uint8_t i = 0; i < API_ARGS_MAX; i++) {
		if (values[i] == value)
			return i;
	}
	return FOLLOWS_NONE;
}

/*
 * The names of the ranges of one event chunk, each once, numbered from 1; 0 is none. They go into a
 * chunk of their own before it, and are forgotten after it. A program can have any number of them
 * ("step 41", "step 42"), and what is thrown away with its events takes no room.
 */

struct names;

/* Agents cut names at fewer bytes. Ten million ranges of one name are a few KiB of a file, and each
 * is compared with those before. */
#define NAMES_TEXT_MAX 256

struct names *names_new(void);
void names_free(struct names *names);

/* The number of a text, which is given one if it is new. NULL is 0. */
uint32_t names_number(struct names *names, const char *text);

size_t names_bytes(const struct names *names);

/* Their payload, and begins anew. */
void names_take(struct names *names, struct buf *raw);

/* ---- reading ------------------------------------------------------------------------------- */

/* Takes a payload in place of the names before; none with 0 bytes. False where it is damaged. */
bool names_read(struct names *names, const uint8_t *raw, size_t bytes);

/* Valid until the next names_read(). NULL for 0 and for numbers that are not there. */
const char *names_text(const struct names *names, uint64_t number);

/* ---- encode --------------------------------------------------------------------------------- */

struct encoder;

struct encoder *encoder_new(void);
void encoder_free(struct encoder *encoder);

/* The numbers that the file gives what an event points at; `kernel` is one more, 0 for none. */
struct event_ids {
	uint32_t process, function, kernel;
	uint32_t stack; /* one more as well */
};

/* An event that goes into this chunk: a call that ended, an activity, a range, a sample, an
 * exit. */
void encode_event(struct encoder *encoder, const struct event *event, const struct event_ids *ids);

/* The place in time of an event that is in the definitions. */
void encode_announced(struct encoder *encoder, uint64_t time_ns);

size_t encoder_bytes(const struct encoder *encoder); /* of the columns so far */
uint32_t encoder_events(const struct encoder *encoder);

/*
 * What goes into the chunk of names before this one; to be asked for before the chunk is ended.
 * Nothing where no range has a name.
 */
void encoder_take_names(struct encoder *encoder, struct buf *raw);

/* Ends the chunk: what goes into its payload, and its head but for the sizes. Begins the next. */
void encoder_take(struct encoder *encoder, struct chunk_head *head, struct buf *raw);

/* ---- decode --------------------------------------------------------------------------------- */

struct decoder;

/*
 * Without objects, NULL, all events point at one process and one function, and at no kernel and no
 * stack: decoder_ids() has their numbers, by which encode_event() makes the same event anew. Who is
 * announced is an EVENT_PROCESS, for encode_announced().
 */
struct decoder *decoder_new(struct objects *objects);
void decoder_free(struct decoder *decoder);

/* The names that the next chunk refers to; none with 0 bytes. False where they are damaged. */
bool decoder_names(struct decoder *decoder, const uint8_t *raw, size_t bytes);

/* The names that the next chunk refers to are damaged: ranges that have one are lost. */
void decoder_lose_names(struct decoder *decoder);

/*
 * Begins a chunk. `raw` is its payload with UNPACK_SPARE readable bytes behind it, and stays until
 * the next. False where it is damaged.
 */
bool decoder_begin(struct decoder *decoder, const struct chunk_head *head, const uint8_t *raw);

enum decoded { DECODED_EVENT, DECODED_NOTHING, DECODED_LOST, DECODED_END, DECODED_DAMAGE };

/*
 * The next event; what it points at is valid until the next call. DECODED_NOTHING: one of a kind
 * that this program does not know. DECODED_LOST: one that refers to what a damaged chunk defined.
 */
enum decoded decoder_next(struct decoder *decoder, struct event *event);

/* The numbers that the file gives what that event points at. */
const struct event_ids *decoder_ids(const struct decoder *decoder);

/* ---- rows ----------------------------------------------------------------------------------- */

#define ROWS_OF_FILE (512u << 10)

struct kept_rows;

struct kept_rows *rows_new(uint32_t most);
void rows_free(struct kept_rows *rows);

/* False, and counted, for an event that asks for a row beyond the most. */
bool rows_take(struct kept_rows *rows, const struct event *event);

uint64_t rows_refused(const struct kept_rows *rows);
