/* SPDX-License-Identifier: MIT */
/*
 * What eBPF programs and user space share where calls are summed up in the kernel. The plan of a
 * hook says where in a recorded call its address, bytes or grid are. Then come the keys and values
 * of the maps that sums are kept in; values are counters of 64 bits throughout.
 *
 * A process is known by its id and by when it was first seen: an exec or a reused id is another.
 */
#pragma once

#include "bpf/wire.h"

/* wire_settings.fold: which sums are wanted; 0: none, every call is sent. */
enum fold_tool {
	FOLD_TOOL_MEMORY = 1 << 0,
	FOLD_TOOL_LAUNCHES = 1 << 1,
	FOLD_TOOL_COPIES = 1 << 2,
	FOLD_TOOL_RESULTS = 1 << 3,
	FOLD_TOOL_NO_KERNELS = 1 << 4, /* launches of a process are one row, whichever they are */
	FOLD_TOOL_HOOKS = 1 << 5,      /* what hooks of one's own saw: see wire_hooks.h */
};

enum fold_op {
	FOLD_SEND, /* the call is sent, as without folding */
	FOLD_ALLOC,
	FOLD_FREE,
	FOLD_CONTEXT_DESTROY,
	FOLD_LAUNCH,
	FOLD_GRAPH_LAUNCH,
	FOLD_COPY,
	FOLD_SET,
	FOLD_CAPTURE_BEGIN,
	FOLD_CAPTURE_END,
	FOLD_EVENT_RECORD,
	FOLD_EVENT_WAIT,
	FOLD_SYNC,
	FOLD_MAPS,
	FOLD_UNMAPS,
	FOLD_RETAINS,
};

enum fold_flags {
	FOLD_ASYNC = 1 << 0,
	FOLD_SIZED = 1 << 1,  /* the bytes can be known */
	FOLD_SPARE = 1 << 2,  /* the first factor is an output, and FOLD_AT_SPARE its stand-in */
	FOLD_ARRAY = 1 << 3,  /* bytes of an array: extents, levels, bits of an element */
	FOLD_FORMAT = 1 << 4, /* its bits are those of a CUarray_format */
	FOLD_COPY_TYPES = 1 << 5,  /* the ends of a copy have a CUmemorytype each */
	FOLD_COPY_ARRAYS = 1 << 6, /* an array may stand for either end's pointer */
	FOLD_FLAT = 1 << 7,        /* a launch without a grid: 1 by 1 by 1 */
};

/* The values of a call; what is not there is 0, as an index into fold_plan.at. */
enum fold_value {
	FOLD_AT_ADDRESS, /* allocated or freed; destination of a copy */
	FOLD_AT_SOURCE,
	FOLD_AT_STREAM,
	FOLD_AT_EVENT,
	FOLD_AT_HANDLE, /* of a kernel or graph */
	FOLD_AT_KIND,   /* cudaMemcpyKind */
	FOLD_AT_FACTOR, /* three: the bytes are their product */
	FOLD_AT_SPARE = FOLD_AT_FACTOR + 3,
	FOLD_AT_DIM,                    /* three */
	FOLD_AT_BITS = FOLD_AT_DIM + 3, /* four, summed up; the first may be a format */
	FOLD_AT_LEVELS = FOLD_AT_BITS + 4,
	FOLD_AT_GRID,                      /* three */
	FOLD_AT_BLOCK = FOLD_AT_GRID + 3,  /* three */
	FOLD_AT_FROM = FOLD_AT_BLOCK + 3,  /* type, host, device, array of the source */
	FOLD_AT_TO = FOLD_AT_FROM + 4,     /* the same of the destination */
	FOLD_AT_LAUNCHES = FOLD_AT_TO + 4, /* kernels that a call launches; 0: one */
	FOLD_VALUES,
};

/* Where a value is: byte of wire_call.word, whether it has 8 bytes, and a factor of 1, 2 or 4. */
#define FOLD_WHERE(byte, wide, shift) (0x8000u | (wide) << 14 | (shift) << 12 | (byte))
#define FOLD_WHERE_BYTE(at)           ((at)&0xfffu)
#define FOLD_WHERE_WIDE(at)           ((at) >> 14 & 1u)
#define FOLD_WHERE_SHIFT(at)          ((at) >> 12 & 3u)

/* Map "fold_plans", by hook. */
struct fold_plan {
	__u8 op;         /* enum fold_op */
	__u8 memory;     /* enum api_memory */
	__u8 direction;  /* enum api_direction */
	__u8 space;      /* of addresses: see struct fold_memory_key */
	__u8 flags;      /* enum fold_flags */
	__u8 pinned;     /* an allocation: FOLD_HOST_PINNED or FOLD_HOST_MANAGED, else 0 */
	__u8 per_thread; /* its stream 0 is the thread's own */
	__u8 spare;
	__u16 at[FOLD_VALUES];
};

/* Numbers of src/cuda/api.h that the programs compare with. */
enum {
	FOLD_H2D = 1,
	FOLD_D2H = 2,
	FOLD_TYPE_HOST = 1, /* CU_MEMORYTYPE_HOST */
	FOLD_LAUNCHES_MOST = 64,
};
#define FOLD_VMM    6 /* memory of handles */
#define FOLD_VMM_VA 7 /* address space without memory behind it: in no total */

/* Map "fold_directions", of enum api_direction: by cudaMemcpyKind, by CUmemorytype of both ends. */
#define FOLD_BY_KIND(kind)      ((kind)&7u)
#define FOLD_BY_TYPES(from, to) (64u | ((from)&7u) << 3 | ((to)&7u))
#define FOLD_DIRECTIONS         128

/* ---- keys and values ----------------------------------------------------------------------- */

struct fold_process_key {
	__u64 born_ns;
	__u32 tgid;
	__u32 memory; /* enum api_memory in "fold_totals", else 0 */
};

/* Map "fold_processes". */
struct fold_process {
	__u64 context_ns; /* when a context of it was last destroyed */
	__u64 live_bytes; /* of addresses; and of handles, which outlive a context */
	__u64 handle_bytes;
	__u64 peak_bytes;
	__u64 unknown_frees;
	__u64 failed;       /* allocations */
	__u64 pinned_epoch; /* grows when pinned memory went with a context */
	__u64 pinned_sizes; /* bit k: something of at most 2^k bytes was pinned in this epoch */
};

/*
 * Of a map of all processes one alone may fill a part: rows that a process has, in map
 * "fold_shares". With shapes it may have fewer launches than without, so that each kernel has a
 * row.
 */
enum fold_share_of {
	FOLD_SHARE_LIVE,
	FOLD_SHARE_FAILURES,
	FOLD_SHARE_LAUNCHES,
	FOLD_SHARE_PINNED,
	FOLD_SHARE_RESULTS,
	FOLD_SHARE_HOOKS,
	FOLD_SHARE_SHAPES, /* counted among the launches */
	FOLD_SHARE_ROOM,   /* of live allocations: of all processes */
};
_Static_assert(FOLD_SHARE_ROOM < WIRE_SHARES, "as many as settings have");

struct fold_share {
	__s64 rows[FOLD_SHARE_SHAPES];
};

struct fold_count {
	__u64 count, bytes;
};

/* Map "fold_born": when a process was first seen, and in whose share it is. */
#define FOLD_BORN_ROOM 16384
struct fold_born {
	__u64 born_ns;
	__u32 user, reserved;
};

/* Map "fold_totals". */
struct fold_totals {
	struct fold_count allocated, freed, replaced, context, untracked;
};

/* Map "fold_live". Handles of cuMemCreate and reserved ranges are numbers of their own.
 * FOLD_SPACE_MAPPED is of addresses that have a handle's memory, FOLD_SPACE_GRAPH of those that a
 * graph allocates when it runs: no allocations. */
enum {
	FOLD_SPACE_ADDRESS,
	FOLD_SPACE_HANDLE,
	FOLD_SPACE_RANGE,
	FOLD_SPACE_MAPPED,
	FOLD_SPACE_GRAPH
};

struct fold_memory_key {
	__u64 address;
	__u64 born_ns;
	__u32 tgid;
	__u32 space;
};

struct fold_allocation {
	__u64 bytes;
	__u64 time_ns;
	__u64 stack; /* 0: none */
	__u16 hook;
	__u16 user; /* whose row it is: users.h */
	__u32 memory;
	/* FOLD_SPACE_HANDLE: handles given out, and mappings; FOLD_SPACE_MAPPED: the handle */
	__u64 held;
};

/* Map "fold_failures": allocations that failed. */
struct fold_failure_key {
	__u64 born_ns;
	__u32 tgid;
	__s32 result;
	__u32 hook;
	__u32 reserved;
};

/* Map "fold_results": calls that failed, and those that wait for the GPU; by struct
 * fold_failure_key. */
struct fold_result {
	__u64 count, ns;
};

#define FOLD_RESULT_MOST 65535 /* what is above, or below 0, is one row: no library has it */

/* Map "fold_launches". A kernel's row without a grid takes the shapes that found no room. */
struct fold_launch_key {
	__u64 born_ns;
	__u64 handle;
	__u32 tgid;
	__u32 grid[3], block[3];
	__u16 generation; /* low bits of wire_kernels_generation: handles may be reused */
	__u16 graph;
};

#define FOLD_LOGS 40

struct fold_launch {
	__u64 count, captured, failed;
	__u64 timed, ns, max_ns;
	__u64 duration[FOLD_LOGS];
};

/* Map "fold_hooks". */
struct fold_hook_key {
	__u64 born_ns;
	__u32 tgid;
	__u32 hook;
};

struct fold_hook {
	__u64 calls;      /* that the filter let through */
	__u64 unfinished; /* of these: they will not return */
	__u64 timed, ns, max_ns;
	__u64 bytes; /* of what wire_hook_plan.sum says */
};

enum { FOLD_HOST_NONE, FOLD_HOST_UNKNOWN, FOLD_HOST_PINNED, FOLD_HOST_MANAGED };

/* Map "fold_copies". */
struct fold_copies_key {
	__u64 born_ns;
	__u32 tgid;
	__u8 set, direction, async, host;
};

struct fold_copies {
	__u64 calls, captured, failed;
	__u64 timed, ns, max_ns;
	__u64 bytes, unsized;
	__u64 sizes[FOLD_LOGS];
};

/*
 * Map "fold_pinned": an address lies in pinned memory. Let 2^size be the least power of two that a
 * range fits in. The range is entered under the one or two aligned blocks of 2^size bytes that it
 * touches. No such block is touched by more than three such ranges, since they do not overlap and
 * are longer than half of it.
 */
struct fold_pinned_key {
	__u64 block; /* address >> size */
	__u64 born_ns;
	__u32 tgid;
	__u16 size;
	__u16 epoch;
};

#define FOLD_PINNED_RANGES 3
struct fold_pinned {
	struct fold_range {
		__u64 begin, end; /* 0, 0: none */
		__u32 host;       /* FOLD_HOST_PINNED, FOLD_HOST_MANAGED */
		__u32 size;
	} range[FOLD_PINNED_RANGES];
};

/* Map "fold_captures": streams and events that belong to a capture, by its number. */
struct fold_capture_key {
	__u64 handle;
	__u64 born_ns;
	__u32 tgid;
	__u32 tid; /* of the stream that each thread has of its own; ~0 for an event; else 0 */
};

/* Map "fold_open_captures", by number. */
struct fold_open_capture {
	__u64 born_ns;
	__u64 tgid;
};
