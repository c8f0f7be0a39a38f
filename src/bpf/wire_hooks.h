/* SPDX-License-Identifier: MIT */
/*
 * Hooks that users ask for (--hook): what their programs are told to record, and what they send. A
 * hook's cookie has its number and that of its plan, which is looked up at each hit.
 */
#pragma once

#include "bpf/wire.h"

#define WIRE_HOOK_PLANS  2048  /* a power of two; a cookie's bits have room for more */
#define WIRE_HOOK_VALUES 16    /* SPEC_VALUES_MAX */
#define WIRE_HOOK_LOADS  4     /* SPEC_LOADS_MAX, and one for a word of the stack */
#define WIRE_HOOK_STEPS  32    /* SPEC_FILTER_MAX */
#define WIRE_HOOK_TEXT   256   /* with its NUL */
#define WIRE_HOOK_DEPTH  16    /* calls inside calls of a thread, of hooks alone */
#define WIRE_HOOK_FRAMES 16384 /* calls that all threads are in */

#define HOOK_COOKIE(id, plan)    ((__u64)(id) | (__u64)(plan) << 16)
#define hook_cookie_id(cookie)   ((__u32)(cookie)&0x3fff)
#define hook_cookie_plan(cookie) ((__u32)((cookie) >> 16) & (WIRE_HOOK_PLANS - 1))

/* A value: what is at `at` in what the program is given (registers, a tracepoint's record), and
 * memory read from there on. */
struct wire_hook_value {
	__u16 at;
	__u8 first_bytes; /* there: 1, 2, 4 or 8 */
	__u8 bytes;       /* of the value, once memory was read */
	__u8 n_loads;
	__u8 flags;  /* enum hook_value_flags */
	__u8 chars;  /* of a text without an end; 0: it has one */
	__u8 kernel; /* enum hook_value_memory */
	__s32 offset[WIRE_HOOK_LOADS];
};

enum hook_value_flags {
	VALUE_SIGNED = 1 << 0,
	VALUE_ON_RETURN = 1 << 1, /* the memory is read then */
	VALUE_OF_RETURN = 1 << 2, /* it begins with what the function returns */
	VALUE_TEXT = 1 << 3,      /* it is the address of text, which is sent */
	VALUE_ADDRESS = 1 << 4,   /* the last offset is added, and not read at */
	VALUE_CONSTANT = 1 << 5,  /* it is offset[0] */
	VALUE_DATA_LOC = 1 << 6,  /* of a tracepoint: where in the record the text is */
	VALUE_IN_RECORD = 1 << 7, /* the text is at `at` itself */
};

/*
 * Whose memory is read, a bit for each read; that of others is the process's. Never both: a process
 * may have chosen the address, and would have memory of the kernel copied.
 */
enum hook_value_memory { KERNEL_LOAD = 1 << 0, /* << n: the nth */ KERNEL_TEXT = 1 << 7 };

/*
 * A comparison, or what joins the truths before it. `passes` has a bit each for a value that is
 * less, equal, and more; so no kind of comparison is a way of its own through the programs.
 */
struct wire_hook_step {
	__u8 op; /* enum hook_step_op */
	__u8 value;
	__u8 passes;
	__u8 unused[5];
	__u64 flip; /* signed: the highest bit, in both, makes an unsigned comparison of it */
	__u64 mask; /* of the value; of a test of bits these, and what is not 0 is more */
	__u64 with; /* flipped already */
};

enum hook_step_op { STEP_COMPARE, STEP_AND, STEP_OR, STEP_NOT };
enum { PASSES_LESS = 1, PASSES_EQUAL = 2, PASSES_MORE = 4 };
#define WIRE_HOOK_DURATION 255 /* in place of a value */

struct wire_hook_plan {
	__u8 n_values, n_steps;
	__u8 flags; /* enum hook_plan_flags */
	/* Where calls are summed up: 1 and the index of the value that is, and of the one that says
	 * which number of "fold_hook_tables" it is multiplied by; 0: there is none. */
	__u8 sum, factor;
	__u8 gate; /* 1 + a step that has to be true, of a value known on entry; 0: none is */
	__u8 unused[2];
	struct wire_hook_value value[WIRE_HOOK_VALUES];
	struct wire_hook_step step[WIRE_HOOK_STEPS];
};

enum hook_plan_flags {
	PLAN_RETURNS = 1 << 0,         /* it is sent when the function returns */
	PLAN_FILTER_ON_ENTRY = 1 << 1, /* all that the filter asks for is known by then */
	PLAN_REL_LOC = 1 << 2,         /* texts are found from behind where that is said */
	PLAN_MOMENT = 1 << 3,          /* it returns, and is a moment all the same: its return */
	PLAN_READS = 1 << 4,           /* values are in memory, or text */
};

/* Map "fold_hook_tables", by plan. */
#define WIRE_HOOK_TABLE 64 /* SPEC_TABLE_MAX */
struct wire_hook_table {
	__u64 number[WIRE_HOOK_TABLE];
};

/* Of head: words is how many values there are, bytes the text with its NUL. */
struct wire_hook {
	struct wire_head head; /* time_ns: the end; of a moment, when it was */
	__u64 begin_ns;
	__u64 stack; /* of a span: number of the one that it was called by; 0: not walked */
	__u64 value[WIRE_HOOK_VALUES];
	char text[WIRE_HOOK_TEXT];
};
#define WIRE_HOOK_BYTES(words) (40 + 8 * (words)) /* without text */

/* A call that a thread is in. */
struct wire_hook_frame {
	__u64 sp, cookie;
	__u64 truths; /* while its filter is asked */
	__u64 ctx;    /* what its program was given, while that runs */
	struct wire_hook hook;
};
