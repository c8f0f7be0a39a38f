/* SPDX-License-Identifier: MIT */
/*
 * The trace file's outer form, as docs/trace-format.md describes it: a header, then chunks one
 * after the other, each compressed by itself and with checksums of its own, then a trailer that
 * leads to the index. All numbers are little-endian.
 *
 * What is written here is a promise: numbers are never given another meaning. What an older reader
 * can pass over (a new definition, a new field at the end of one) makes the minor version larger,
 * all else the major one.
 */
#pragma once

#include <stdint.h>

#define FORMAT_MAGIC                                                                               \
	"\x89"                                                                                     \
	"CUSCOPE" /* the first byte tells it from text */
#define FORMAT_MAGIC_BYTES 8
#define FORMAT_MAJOR       1
#define FORMAT_MINOR       7

#define FORMAT_MINOR_STACKS 3 /* since which there are stacks */

#define FORMAT_HEADER_BYTES  16          /* magic, u16 major, u16 minor, u32 0 */
#define FORMAT_CHUNK_BYTES   64          /* struct chunk_head, as chunk.c writes it */
#define FORMAT_CHUNK_MAGIC   0x4b4e4843u /* "CHNK" */
#define FORMAT_TRAILER_BYTES 24 /* u64 offset of the index chunk, u32 its bytes, u32 crc, magic */

/* Bounds that a reader checks before it believes a length. */
#define FORMAT_RAW_MAX        (8u << 20)   /* of a chunk that is not the index, uncompressed */
#define FORMAT_TEXT_MAX       (256u << 10) /* of one string */
#define FORMAT_FRAMES_MAX     1024         /* of a stack */
#define FORMAT_PARTS_MAX      64           /* of a frame */
#define FORMAT_FRAME_TEXT_MAX 4096         /* of a function, a module, a file on one */
#define FORMAT_CHUNKS_MAX                                                                          \
	(4u << 20) /* of a file, 72 bytes each in memory: three weeks of a recording */
#define FORMAT_TIME_MAX (1ull << 62) /* ns, so that sums and differences of two do not overflow */

enum chunk_type {
	CHUNK_RUN = 1,     /* what is known of the run at its begin */
	CHUNK_DEFINITIONS, /* what the next event chunks refer to */
	CHUNK_EVENTS,
	CHUNK_END,   /* the run as it went: like CHUNK_RUN, and complete */
	CHUNK_INDEX, /* the heads of all chunks before it */
	CHUNK_NAMES, /* of the ranges in the event chunk that follows it; since 1.1 */
};

/* Records of CHUNK_DEFINITIONS: tag, length, body. */
enum definition {
	DEFINE_PROCESS = 1,
	DEFINE_FUNCTION,
	DEFINE_KERNEL,
	DEFINE_EVENT_PROCESS, /* an event; its place in time is marked in the next event chunk */
	DEFINE_EVENT_THREAD,
	DEFINE_FRAME, /* these two: since 1.3 */
	DEFINE_STACK,
	DEFINE_PARTS, /* of a frame that was defined; since 1.3 */
};

#define FRAME_INLINED      1u /* flags of a frame */
#define FRAME_HAS_FUNCTION 1u /* texts that it has */
#define FRAME_HAS_MODULE   2u
#define FRAME_HAS_FILE     4u
#define FRAME_HAS_BUILD_ID 8u
#define STACK_PYTHON_CUT   1u /* flags of a stack */

/* Records of CHUNK_RUN and CHUNK_END: tag, length, body. */
enum run_field {
	RUN_BEGIN = 1,
	RUN_END,
	RUN_REALTIME_OFFSET,
	RUN_LOST, /* reason, count */
	RUN_MISS,
	RUN_SCALE,
	RUN_RETURNS,
	RUN_HOLDS, /* count, longest */
	RUN_HOSTNAME,
	RUN_KERNEL_RELEASE,
	RUN_DRIVER_VERSION,
	RUN_COMMAND,
	RUN_WRITER,          /* "cuscope 0.1.0" */
	RUN_GPU,             /* whether there were GPU times, error of their clock; since 1.1 */
	RUN_MACHINE,         /* architecture, CPUs, memory; since 1.2 */
	RUN_DEVICE,          /* a GPU of the machine; since 1.2 */
	RUN_BOOTTIME_OFFSET, /* since 1.2 */
	RUN_OVERHEAD,        /* of the busiest thread, in hundredths of a percent: on average, most;
	                        since 1.2 */
	RUN_STACKS,  /* which stacks were asked for, and what is missing in them; since 1.3 */
	RUN_BLOCKED, /* blocked time was asked for; below how many ns it was added up; since 1.3 */
	RUN_CHOSEN,  /* the options that left calls out; since 1.3 */
	RUN_REASON,  /* why a flight recorder wrote it; since 1.4 */
	RUN_METRICS, /* how metrics of GPUs were taken; since 1.4 */
	RUN_IDENTITY = 25,   /* who a process is; since 1.5 */
	RUN_IDENTITIES_LOST, /* how many had no room; since 1.5 */
	RUN_HOST_WAITS, /* what threads waited for; below how many ns it was added up; since 1.5 */
	RUN_STRETCHES,  /* how it was told when GPUs were busy; since 1.5 */
	RUN_BOOT,       /* which boot of which machine it was; since 1.5 */
	RUN_IDENTITY_GPUS,   /* which of the machine's GPUs a process used; since 1.7 */
	RUN_IDENTITY_MEMORY, /* NVML's figure of its memory at moments; since 1.7 */
};

/* The columns of an event chunk. */
enum column {
	COLUMN_HEADS,  /* what each event is, whose, and which values differ */
	COLUMN_TIMES,  /* two numbers an event */
	COLUMN_VALUES, /* what differs from what was expected */
	COLUMN_TEXTS,  /* strings with their NUL */
	COLUMN_COUNT,
};

/* What stands in the heads, above two bits. */
enum event_code {
	CODE_ANNOUNCED, /* the next event of the definitions has its place here */
	CODE_EXIT,
	CODE_ACTIVITY,
	CODE_RESERVED,
	CODE_CALL, /* and every larger number: of function number code - CODE_CALL */
};

/*
 * A range is an activity of this kind: what a reader of 1.0 does not know and leaves out. It is the
 * last one that such a reader takes for a kind.
 */
#define FORMAT_KIND_RANGE 7

/* A sample is one of this kind, since 1.3: it is left out in the same way. */
#define FORMAT_KIND_SAMPLE 6

/* Metrics of a GPU are one of this kind, since 1.4. */
#define FORMAT_KIND_METRICS 5

/* Stalls are one of this kind, since 1.7. It was the last one that was free. */
#define FORMAT_KIND_STALL 4

#define HEAD_THREAD 1u /* not the thread of the event before: its index follows */
#define HEAD_KERNEL 2u /* not the kernel of this function's last call: its number follows */
#define HEAD_SHIFT  2
