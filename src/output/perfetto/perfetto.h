/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's trace format: what its parts share. A file is a row of packets, all of one sequence; a
 * packet may refer to names and tracks that packets before it have defined. The numbers of the
 * fields are those of perfetto's protos/, as far as they are used here; tests/schema has the same
 * as a schema. Private to src/output.
 */
#pragma once

#include "output/format.h"
#include "base/protobuf.h"

enum trace_field { TRACE_PACKET = 1 };

enum packet_field {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_SYSTEM_INFO = 45,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
	PACKET_FIRST_ON_SEQUENCE = 87,
};

enum track_event_field {
	EVENT_CATEGORY_IIDS = 3,
	EVENT_ANNOTATIONS = 4,
	EVENT_EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_COUNTER_VALUE = 30,
	EVENT_DOUBLE_COUNTER_VALUE = 44,
	EVENT_FLOW_IDS = 47,
	EVENT_TERMINATING_FLOW_IDS = 48,
	EVENT_CALLSTACK_IID = 56,
	EVENT_CALLSTACK_WEIGHT = 57,
};

enum track_event_type { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };

#define SEQUENCE_ID       1
#define SEQUENCE_CLEARED  1 /* nothing that was defined before counts */
#define SEQUENCE_NEEDS    2 /* the packet refers to what was defined */
#define CLOCK_ID_REALTIME 1
#define CLOCK_ID_MONO     3
#define CLOCK_ID_BOOTTIME 6

/* ---- packets -------------------------------------------------------------------------------- */

struct perfetto {
	struct sink sink;      /* first */
	struct buf packet;     /* an event that is being made */
	struct memory *memory; /* of all calls, shown or not */
	struct perfetto_names *names;
	struct perfetto_tracks *tracks;
	struct perfetto_queue *queue;
	struct perfetto_ranges *ranges;
	struct perfetto_stacks *stacks;
	bool has_activities; /* GPU times were recorded */
};

/* Begins a packet of our sequence without a time; pb_end() ends it. */
size_t packet_begin(struct buf *out, unsigned flags);

struct open_event {
	size_t packet, event;
};

/*
 * An event of a track. Names and tracks have to be asked for before it is begun in lines.pending,
 * since they are packets of their own; in p->packet an event is apart from them.
 */
struct open_event event_begin(struct buf *out, uint64_t time_ns, enum track_event_type type,
                              uint64_t track);
void event_end(struct buf *out, struct open_event open);
void event_add_name(struct buf *out, uint32_t category, uint32_t name);

enum annotation_field {
	ANNOTATION_NAME = 1,
	ANNOTATION_BOOL = 2,
	ANNOTATION_UINT = 3,
	ANNOTATION_INT = 4,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_STRING = 6,
	ANNOTATION_POINTER = 7,
	ANNOTATION_STRING_IID = 17,
};

/* What the event in p->packet is said to have; `name` is that of an annotation. */
void annotate(struct perfetto *p, uint32_t name, enum annotation_field field, uint64_t value);
void annotate_double(struct perfetto *p, uint32_t name, double value);
void annotate_text(struct perfetto *p, uint32_t name, const char *text);
void annotate_u64(struct perfetto *p, const char *name, uint64_t value);
uint32_t annotation(struct perfetto *p, const char *name);

/* ---- parts ---------------------------------------------------------------------------------- */
void perfetto_set_counter(struct perfetto *p, const struct process *process, uint64_t time_ns,
                          enum api_memory kind, int64_t value);

/* perfetto_ranges.c: how much work was asked for and not done. */
struct perfetto_queue *perfetto_queue_new(struct perfetto *p);
void perfetto_queue_free(struct perfetto_queue *queue);
void perfetto_queue_event(struct perfetto_queue *queue, const struct event *event);
/* No activity came for a call: whatever became of it, it is not in the queue any more. */
struct work_call;
void perfetto_queue_gave_up(struct perfetto_queue *queue, const struct work_call *call);
void perfetto_queue_end(struct perfetto_queue *queue); /* writes what still waits */

/*
 * Flows where it is not known beforehand which calls have work: whether one begins at a call, which
 * is then remembered, and whether one ends at an activity. Asked after perfetto_queue_event() of
 * each.
 */
bool perfetto_queue_flow_begins(struct perfetto_queue *queue, const struct event *event);
bool perfetto_queue_flow_ends(struct perfetto_queue *queue, const struct event *event);
uint64_t perfetto_queue_unjoined(const struct perfetto_queue *queue);

/* perfetto_run.c: clocks, where it was recorded, and what was lost. */
void perfetto_run_begin(struct perfetto *p, const struct run_info *run);
void perfetto_run_end(struct perfetto *p, const struct run_info *run);

/* ---- names ---------------------------------------------------------------------------------- */

/*
 * Strings that packets refer to by number. Each function appends the packet that defines a new one
 * to `out`, so no packet may be open there.
 */
struct perfetto_names;

struct perfetto_names *perfetto_names_new(struct buf *out);
void perfetto_names_free(struct perfetto_names *names);

enum name_kind { NAME_CATEGORY, NAME_EVENT, NAME_ANNOTATION, NAME_VALUE, NAME_KINDS };

/* A new number for a text, made valid UTF-8; the caller remembers the number. */
uint32_t perfetto_name(struct perfetto_names *names, enum name_kind kind, const char *text);

/* Of a category or an annotation: constants, remembered by their text. */
uint32_t perfetto_constant(struct perfetto_names *names, enum name_kind kind, const char *text);

/* What a function's calls have in common. */
struct function_names {
	uint32_t name, category;
	uint32_t args[API_ARGS_MAX]; /* annotations; 0: one that is not shown */
	bool has_status;
};

const struct function_names *perfetto_function(struct perfetto_names *names,
                                               const struct function *function);

/* A kernel's name as the value of an annotation, and as an event. */
uint32_t perfetto_kernel_value(struct perfetto_names *names, const struct kernel *kernel);
uint32_t perfetto_activity_name(struct perfetto_names *names, const struct activity *activity);

/* The name of a range as an event: one of which there may be any number. */
uint32_t perfetto_range_name(struct perfetto_names *names, const char *name);

/* "(196,1,1)", the name of a stream of a call, of a result, of a direction. */
uint32_t perfetto_dims(struct perfetto_names *names, const uint32_t dims[3]);
uint32_t perfetto_stream(struct perfetto_names *names, const struct call *call, uint64_t stream);
uint32_t perfetto_result(struct perfetto_names *names, const struct call *call);
uint32_t perfetto_direction(struct perfetto_names *names, enum api_direction direction);

/* ---- stacks --------------------------------------------------------------------------------- */

/* Callstacks, which events refer to by number. perfetto_stacks.c. */
struct perfetto_stacks;

struct perfetto_stacks *perfetto_stacks_new(struct buf *out);
void perfetto_stacks_free(struct perfetto_stacks *stacks);

/* The number of a stack, which is defined in `out` when it is first asked for. NULL: 0. */
uint64_t perfetto_callstack(struct perfetto_stacks *stacks, const struct stack *stack);

void perfetto_add_sample(struct perfetto *p, const struct event *event);

/* ---- nesting -------------------------------------------------------------------------------- */

/*
 * Calls, and ranges of a thread, end from the inside out, but of two that begin in the same
 * nanosecond the outer one has to stand first. So the inner ones of a thread are held until the one
 * around them has come.
 */
#define NEST_PARTS 32

struct nest {
	struct buf held;
	struct nest_part { /* a call and all in it: the bytes from `at` to the next part */
		size_t at;
		uint64_t begin_ns;
		uint32_t depth;
	} parts[NEST_PARTS];
	unsigned n;
};

/* What began then, inside of `depth` others: two packets, the first of `begin_len` bytes. What is
 * whole goes to `out`. */
void nest_add(struct nest *nest, uint64_t begin_ns, uint32_t depth, const struct buf *packets,
              size_t begin_len, struct buf *out);
void nest_flush(struct nest *nest, struct buf *out);
void nest_free(struct nest *nest);

/* ---- tracks --------------------------------------------------------------------------------- */

/*
 * Rows of the timeline, each with a number: processes, their threads, counters, and a tree CUDA,
 * device, stream. Described in `out` when they are first asked for, as above.
 */
struct perfetto_tracks;

struct perfetto_tracks *perfetto_tracks_new(struct buf *out);
void perfetto_tracks_free(struct perfetto_tracks *tracks);

/* A counter of a GPU of the machine, of fewer than RUN_GPUS_MAX. */
uint64_t perfetto_metric_track(struct perfetto_tracks *tracks, uint32_t gpu,
                               enum gpu_metric metric);

/* A track of no process: for what is said of the trace. */
uint64_t perfetto_own_track(struct perfetto_tracks *tracks);

struct perfetto_thread {
	uint64_t uuid;
	struct nest nest;
	uint64_t blocked_uuid;     /* its row of the time that it was blocked; 0: none yet */
	uint64_t blocked_until_ns; /* the end of the last of its slices */
};

/* `thread`: EVENT_THREAD's, which begins a new thread of that number; else NULL. */
struct perfetto_thread *perfetto_thread(struct perfetto_tracks *tracks,
                                        const struct process *process, uint32_t tid,
                                        const struct thread *thread);

/* One in which nothing else runs at that time; has to be asked for each activity in turn. */
uint64_t perfetto_stream_row(struct perfetto_tracks *tracks, const struct process *process,
                             const struct activity *activity);

/* Live bytes of a kind of memory, or with MEMORY_NONE the depth of the queue. */
struct perfetto_counter {
	uint64_t uuid; /* 0: not described yet */
	int64_t value; /* the last that was written */
};

struct perfetto_process {
	uint64_t uuid; /* 0: not described yet */
	uint32_t pid;
	uint64_t cuda_uuid;
	int64_t queued;      /* work asked for and not done */
	bool has_activities; /* so that `queued` means something */
	struct perfetto_counter counters[MEMORY_COUNT];
};

struct perfetto_process *perfetto_process(struct perfetto_tracks *tracks,
                                          const struct process *process);
/* Who processes are, as their labels. */
void perfetto_tracks_who(struct perfetto_tracks *tracks, const struct run_info *run);
uint64_t perfetto_counter_track(struct perfetto_tracks *tracks, const struct process *process,
                                enum api_memory kind);

/* ---- ranges --------------------------------------------------------------------------------- */

/*
 * Rows of a process for ranges that need not nest, by what they say; of two at a time there may be
 * two. perfetto_ranges.c.
 */
struct perfetto_ranges;

struct perfetto_ranges *perfetto_ranges_new(struct perfetto *p);
void perfetto_ranges_free(struct perfetto_ranges *ranges);
void perfetto_add_range(struct perfetto_ranges *ranges, const struct event *event);
void perfetto_ranges_ended(struct perfetto_ranges *ranges, const struct process *process);
void perfetto_ranges_flush(struct perfetto_ranges *ranges);

/* A track of that name below another one; a new one with each call. */
uint64_t perfetto_named_track(struct perfetto_tracks *tracks, uint64_t parent, const char *name);

/* The process's row for all of CUDA. */
uint64_t perfetto_cuda_track(struct perfetto_tracks *tracks, const struct process *process);

/* Its threads and streams are not asked for again; of all processes. */
void perfetto_process_ended(struct perfetto_tracks *tracks, const struct process *process);
void perfetto_tracks_flush(struct perfetto_tracks *tracks);
