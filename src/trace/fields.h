/* SPDX-License-Identifier: MIT */
/*
 * The fields of each kind of event: what they are called, of which type they are, and where they
 * are in the model's struct.
 *
 * A field's number is that of its first value in the trace file (docs/trace-format.md), and its bit
 * in the mask of an event. So a row that is added comes at the end of its list, and no row is moved
 * or taken away. What a file tells in another way (times, the kernel, the correlation of calls and
 * activities, flags) is told by hand, in encode.c and decode.c.
 */
#pragma once

#include "trace/event.h"

enum member_type {
	MEMBER_NONE, /* told by hand: it is not in the struct as it is in the file */
	MEMBER_U32,
	MEMBER_U64,
	MEMBER_S32,
	MEMBER_WORD,    /* of an enum: below field.words; a number that is not is 0 */
	MEMBER_MEASURE, /* int64_t, -1: not known; in the file one more */
	MEMBER_TEXT,    /* NULL: none; in the file a number of its NAMES, 0: none */
	MEMBER_STACK,   /* NULL: none; in the file its number and one, 0: none */
};

struct field {
	const char *name; /* of the member */
	enum member_type type;
	uint8_t number, count; /* of the first value; values of it, 3 of a size */
	uint16_t offset;
	uint32_t words; /* MEMBER_WORD */
};

/* ---- the lists: number, member, type, and what else is not 0 of its row --------------- */

/* Those from VALUE_HANDLE to VALUE_SHMEM may follow an argument, see codec.h. */
#define CALL_FIELDS(F)                                                                             \
	F(call, VALUE_ARG, args.arg, U64)                                                          \
	F(call, VALUE_HANDLE, args.handle, U64)                                                    \
	F(call, VALUE_STREAM, args.stream, U64)                                                    \
	F(call, VALUE_EVENT, args.event, U64)                                                      \
	F(call, VALUE_ADDRESS, args.address, U64)                                                  \
	F(call, VALUE_SOURCE, args.source, U64)                                                    \
	F(call, VALUE_BYTES, args.bytes, U64)                                                      \
	F(call, VALUE_SHMEM, args.shmem_bytes, U64)                                                \
	F(call, VALUE_GRID, args.grid, U32)                                                        \
	F(call, VALUE_BLOCK, args.block, U32)                                                      \
	F(call, VALUE_FLAGS, flags, NONE)                                                          \
	F(call, VALUE_DEPTH, depth, U32)                                                           \
	F(call, VALUE_RESULT, result, S32)                                                         \
	F(call, VALUE_SHAPE, args.direction, NONE)

#define ACTIVITY_FIELDS(F)                                                                         \
	F(activity, ACTIVITY_DEVICE, device, U32)                                                  \
	F(activity, ACTIVITY_CONTEXT, context, U32)                                                \
	F(activity, ACTIVITY_STREAM, stream, U32)                                                  \
	F(activity, ACTIVITY_GRID, grid, U32)                                                      \
	F(activity, ACTIVITY_BLOCK, block, U32)                                                    \
	F(activity, ACTIVITY_REGISTERS, registers, U32)                                            \
	F(activity, ACTIVITY_SHMEM_STATIC, shmem_static, U32)                                      \
	F(activity, ACTIVITY_SHMEM_DYNAMIC, shmem_dynamic, U32)                                    \
	F(activity, ACTIVITY_GRAPH, graph, U64)                                                    \
	F(activity, ACTIVITY_GRAPH_NODE, graph_node, U64)                                          \
	F(activity, ACTIVITY_BYTES, bytes, U64)                                                    \
	F(activity, ACTIVITY_DIRECTION, direction, WORD, .words = DIRECTION_COUNT)                 \
	F(activity, ACTIVITY_SOURCE, source, WORD, .words = ACTIVITY_MEMORIES)                     \
	F(activity, ACTIVITY_DESTINATION, destination, WORD, .words = ACTIVITY_MEMORIES)           \
	F(activity, ACTIVITY_PEER, peer_device, U32)

/* A range's correlation is a value like others: few have one, and that of activities is to stay as
 * it is expected. */
#define RANGE_FIELDS(F)                                                                            \
	F(range, RANGE_VALUE_KIND, kind, WORD, .words = RANGE_COUNT)                               \
	F(range, RANGE_VALUE_NAME, name, TEXT)                                                     \
	F(range, RANGE_VALUE_DOMAIN, domain, TEXT)                                                 \
	F(range, RANGE_VALUE_DEPTH, depth, U32)                                                    \
	F(range, RANGE_VALUE_CONTEXT, context, U32)                                                \
	F(range, RANGE_VALUE_STREAM, stream, U32)                                                  \
	F(range, RANGE_VALUE_CORRELATION, correlation, U64)                                        \
	F(range, RANGE_VALUE_CATEGORY, category, U32) /* since 1.2 */                              \
	F(range, RANGE_VALUE_COLOR, color, U32)

#define SAMPLE_FIELDS(F)                                                                           \
	F(sample, SAMPLE_VALUE_KIND, kind, WORD, .words = SAMPLE_KIND_COUNT)                       \
	F(sample, SAMPLE_VALUE_WEIGHT, weight_ns, U64)                                             \
	F(sample, SAMPLE_VALUE_STACK, stack, STACK)                                                \
	F(sample, SAMPLE_VALUE_BLOCKED, blocked, WORD, .words = BLOCKED_COUNT)                     \
	F(sample, SAMPLE_VALUE_WAKER, waker, TEXT)                                                 \
	F(sample, SAMPLE_VALUE_WAKER_TID, waker_tid, U32)                                          \
	F(sample, SAMPLE_VALUE_COUNT, count, U64)                                                  \
	F(sample, SAMPLE_VALUE_WAIT, wait, WORD,                                                   \
	  .words = WAIT_COUNT) /* this and the next: since 1.5 */                                  \
	F(sample, SAMPLE_VALUE_RUNNABLE, runnable_ns, U64)                                         \
	F(sample, SAMPLE_VALUE_RIVAL, rival, TEXT)                                                 \
	F(sample, SAMPLE_VALUE_RIVAL_PID, rival_pid, U32)

#define METRICS_FIELDS(F)                                                                          \
	F(gpu_metrics_sample, METRICS_VALUE_GPU, gpu, U32)                                         \
	F(gpu_metrics_sample, METRICS_VALUE_SOURCE, source, WORD, .words = GPU_METRICS_SOURCES)    \
	F(gpu_metrics_sample, METRICS_VALUE_FIRST, value, MEASURE)

/* A stall's kernel is told as that of an activity. */
#define STALL_FIELDS(F)                                                                            \
	F(stall, STALL_VALUE_REASON, reason, TEXT)                                                 \
	F(stall, STALL_VALUE_OFFSET, offset, U64)                                                  \
	F(stall, STALL_VALUE_SAMPLES, samples, U64)                                                \
	F(stall, STALL_VALUE_CUBIN, cubin, U64)                                                    \
	F(stall, STALL_VALUE_FILE, file, TEXT)                                                     \
	F(stall, STALL_VALUE_LINE, line, U32)                                                      \
	F(stall, STALL_VALUE_DROPPED, dropped, U64)                                                \
	F(stall, STALL_VALUE_FOREIGN, foreign, U64)                                                \
	F(stall, STALL_VALUE_COST, cost_ns, U64)

/* ---- numbers ------------------------------------------------------------------------------- */

/* Of one value in the struct. */
enum {
	MEMBER_BYTES_NONE = 4,
	MEMBER_BYTES_U32 = 4,
	MEMBER_BYTES_S32 = 4,
	MEMBER_BYTES_WORD = 4,
	MEMBER_BYTES_U64 = 8,
	MEMBER_BYTES_MEASURE = 8,
	MEMBER_BYTES_TEXT = 8,
	MEMBER_BYTES_STACK = 8,
};
#define FIELD_VALUES(record, member, type)                                                         \
	((int)(sizeof(((struct record *)0)->member) / MEMBER_BYTES_##type))
#define FIELD_NUMBER(record, id, member, type, ...)                                                \
	id, id##_LAST = id + FIELD_VALUES(record, member, type) - 1,

enum call_value { CALL_FIELDS(FIELD_NUMBER) CALL_VALUES };
enum activity_value { ACTIVITY_FIELDS(FIELD_NUMBER) ACTIVITY_VALUES };
enum range_value { RANGE_FIELDS(FIELD_NUMBER) RANGE_VALUES };
enum sample_value { SAMPLE_FIELDS(FIELD_NUMBER) SAMPLE_VALUES };
enum metrics_value { METRICS_FIELDS(FIELD_NUMBER) METRICS_VALUES };
enum stall_value { STALL_FIELDS(FIELD_NUMBER) STALL_VALUES };

/* By number; each value of a field has its row, with the number of the first. */
extern const struct field call_fields[CALL_VALUES], activity_fields[ACTIVITY_VALUES],
	range_fields[RANGE_VALUES], sample_fields[SAMPLE_VALUES], metrics_fields[METRICS_VALUES],
	stall_fields[STALL_VALUES];

/* ---- kinds of events ----------------------------------------------------------------------- */

/* The lists of values. Those from FIELDS_ACTIVITY on are told in a file as kinds of activities. */
enum fields {
	FIELDS_CALL,
	FIELDS_ACTIVITY,
	FIELDS_RANGE,
	FIELDS_SAMPLE,
	FIELDS_METRICS,
	FIELDS_STALL,
	FIELDS
};

struct fields_of {
	const char *name; /* "activity" */
	const struct field *field;
	unsigned count; /* values */
};

extern const struct fields_of fields_of[FIELDS];

struct names;

/*
 * All values of a struct as a file has them, those of MEMBER_NONE left alone. Texts get their
 * numbers of `names`; `stack` is what a MEMBER_STACK is told by.
 */
void fields_list(enum fields of, const void *record, struct names *names, uint32_t stack,
                 uint64_t *values);

/*
 * And back, but for MEMBER_NONE and MEMBER_STACK. A number that has no word here becomes 0. False
 * where a name is not there.
 */
bool fields_fill(enum fields of, void *record, const struct names *names, const uint64_t *values);
