/* SPDX-License-Identifier: MIT */
/*
 * Stacks of user programs, walked by the eBPF programs: what user space tells them of processes,
 * and what they send. A stack is sent once, under a number that samples and calls then carry.
 */
#pragma once

#include "bpf/wire.h"
#include "bpf/wire_unwind.h"

/* ---- what a process has mapped (map "unwind_code", by tgid) ---------------------------------- */

#define UNWIND_MAPPINGS_MAX  1024 /* executable mappings of a process; a power of two */
#define UNWIND_PROCESSES_MAX 256
#define UNWIND_FILES_MAX     4096
#define UNWIND_NOWHERE       (1ull << 62) /* begin of a mapping that is not used */

/* Numbers of files that have no rows. */
#define UNWIND_FILE_NONE 0 /* its table is not made yet, or cannot be */
#define UNWIND_FILE_BARE 1 /* has none: memory of no file, or a file without tables */

struct wire_mapping {
	__u64 end;
	__u64 bias; /* address in memory minus address as the rows of its file have it */
	__u32 file; /* its number in "unwind_files" */
	__u32 reserved;
};

/* Sorted by begin. Begins stand together: they are what is searched. */
struct wire_code {
	__u32 generation; /* grows when something else may be at an address */
	__u32 count;
	__u64 begin[UNWIND_MAPPINGS_MAX];
	struct wire_mapping mapping[UNWIND_MAPPINGS_MAX];
};

/* ---- where Python keeps its frames (map "unwind_python", by tgid) ---------------------------- */

enum wire_python_style {
	PYTHON_EVERY_FRAME, /* 3.9, 3.10: each frame is an invocation of the evaluator */
	PYTHON_IS_ENTRY,    /* 3.11: a mark in the first frame of an invocation */
	PYTHON_OWNER,       /* 3.12 on: a frame of the C stack's begins an invocation */
};

#define PYTHON_KEY_MADE 1 /* the mark of a key, before its number, that it was made */

/* Offsets in bytes, of the fields that their names say. */
struct wire_python {
	__u64 key_address;  /* of the number of the thread-specific key of the thread's state */
	__u32 specific;     /* from the thread pointer to its first block of such data */
	__u16 state_frame;  /* in the thread's state: top frame, or the struct that points to it */
	__u16 state_cframe; /* the same of the chain of evaluator invocations; 0: none */
	__u16 cframe_frame; /* 0 with has_cframe unset */
	__u16 cframe_previous;
	__u16 frame_code, frame_previous, frame_instruction, frame_owner, frame_entry;
	__u16 code_first_line;
	__u8 style;        /* enum wire_python_style */
	__u8 has_cframe;   /* the top frame is reached through cframe_frame */
	__u8 lasti_short;  /* the instruction is an int, not a pointer */
	__u8 owner_entry;  /* from this owner on, a frame begins an invocation */
	__u16 frame_bytes; /* to the end of the last of these fields: a frame may be little longer
	                    */
	__u16 reserved;
};

#define WAKERS_MAX 16 /* processes that are no targets, and that targets wait for */

/* ---- what is sent ---------------------------------------------------------------------------- */

#define STACK_ENTRIES_MAX 1024 /* a walk of this CPU has to fit into 32 KiB of per-CPU memory */

/* Kinds of an entry, in the highest bits of its second word. */
enum wire_entry_kind {
	ENTRY_NATIVE, /* a: address, b: CFA of its frame, which is where the next one begins; of a
	                 signal's frame where the stack goes on that was interrupted; 0: not known.
	                 With ENTRY_EXACT: a is where it was interrupted, not behind a call */
	ENTRY_PYTHON, /* a: code object, b: instruction in bytes or units, and a check */
	ENTRY_ANCHOR, /* a: an address in the frame of the evaluator that ran those before it */
	ENTRY_KERNEL, /* a: address in the kernel */
};
#define ENTRY_KIND_AT    62
#define ENTRY_VALUE_MASK ((1ull << ENTRY_KIND_AT) - 1)
/* Of ENTRY_NATIVE. */
#define ENTRY_EXACT_AT 61
#define ENTRY_EXACT    (1ull << ENTRY_EXACT_AT)
#define ENTRY_CFA_MASK (ENTRY_EXACT - 1)
/* Of ENTRY_PYTHON: the instruction, then the first line of the code object, to tell whether another
 * one is at that address by now. */
#define ENTRY_LINE_AT 32

struct wire_entry {
	__u64 a, b;
};

/* As enum stack_end of trace/stack.h. */
enum wire_stack_end {
	END_WHOLE,
	END_TOO_DEEP,
	END_NO_MAPPING,
	END_NO_TABLE,
	END_NO_RULE,
	END_UNREADABLE,
	END_BAD,
	END_BY_POINTERS,
};

/* WIRE_STACK_ENTRIES: sent before the first record that carries its number. */
struct wire_stack_entries {
	struct wire_head head;
	__u64 id;     /* of these entries, in this process; never 0 */
	__u64 end_at; /* the address at which it came to its end */
	__u64 sp;     /* where the innermost native frame begins */
	__u32 generation;
	__u16 n;
	__u8 end;        /* enum wire_stack_end */
	__u8 python_cut; /* frames of Python are missing */
	/* head.flags: STACK_OF_BLOCKED */
	struct wire_entry entry[STACK_ENTRIES_MAX];
};
#define WIRE_STACK_ENTRIES_BYTES(n) (56 + 16 * (n))

/* WIRE_CALL_STACK: before the record of the call, with the same thread and begin. */
struct wire_call_stack {
	struct wire_head head; /* time_ns: the call's begin */
	__u64 stack;           /* 0: there was no room to walk it */
	__u64 walk; /* not 0: wire_walk of a call that an agent records; time_ns is before its begin
	             */
};

/* WIRE_NODE: a node of a CUDA graph was made, as the agent in the process says. */
struct wire_node_stack {
	struct wire_head head;
	__u64 stack; /* 0: there was no room to walk it */
	__u64 node;
};

#define STACK_OF_BLOCKED 1 /* its innermost frames are the scheduler's, and ours */

/* WIRE_SAMPLE */
struct wire_sample {
	struct wire_head head;
	__u64 stack; /* 0: there was no room to walk it */
	__u64 weight_ns;
};

/* As enum blocked of trace/stack.h. */
enum wire_blocked_how {
	WIRE_BLOCKED_UNKNOWN,
	WIRE_BLOCKED_WOKEN,
	WIRE_BLOCKED_INTERRUPT,
	WIRE_BLOCKED_STILL,
	WIRE_BLOCKED_BEFORE,
	WIRE_BLOCKED_BRIEF,
	WIRE_BLOCKED_SKIPPED,
	WIRE_BLOCKED_PREEMPTED,
};

/* What is known of what a thread waits for (settings.host_waits). */
enum wire_wait_flags {
	WIRE_WAIT_KNOWN = 1 << 0,    /* `call` is told */
	WIRE_WAIT_IO = 1 << 1,       /* for a disk, as the kernel counts it */
	WIRE_WAIT_FILE = 1 << 2,     /* the call is about one file: `mode` */
	WIRE_WAIT_NO_FILES = 1 << 3, /* poll() of no file: it sleeps */
	WIRE_WAIT_STOPPED = 1 << 4,
	WIRE_WAIT_CPU = 1 << 5,       /* a sum of times without a CPU */
	WIRE_WAIT_TIMED_OUT = 1 << 6, /* a timer ended it */
};

/* WIRE_BLOCKED: a thread goes on, or what has been added up of it. */
struct wire_blocked {
	struct wire_head head; /* time_ns: when it went on */
	__u64 stack;           /* 0: none was walked */
	__u64 weight_ns;
	__u64 count;     /* of stretches that it is the sum of */
	__u32 how;       /* enum wire_blocked_how */
	__u32 waker_tid; /* of WIRE_BLOCKED_WOKEN */
	char waker[16];
	/* with settings.host_waits */
	__u64 runnable_ns; /* of weight_ns, at its end: it could have run */
	struct wire_wait wait;
	__u32 rival_pid; /* who ran until it went on; 0: the CPU was idle */
	char rival[16];
	__u32 waker_tgid; /* the process of waker_tid */
};
