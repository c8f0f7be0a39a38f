/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* Maps of the programs that walk stacks. Without STACKS the calls' programs do without them. */
#pragma once

#include "bpf/maps.h"
#include "bpf/wire_stacks.h"

MAP(HASH, UNWIND_PROCESSES_MAX, __u32 /* tgid */, struct wire_code) unwind_code SEC(".maps");

MAP(HASH, UNWIND_PROCESSES_MAX, __u32 /* tgid */, struct wire_python) unwind_python SEC(".maps");

/* By numbers and not by a type: libbpf 1.1 finds no size for a type that only a template names. */
struct unwind_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct wire_node));
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, UNWIND_FILES_MAX);
	__type(key, __u32); /* the file's number */
	__array(values, struct unwind_table);
} unwind_files SEC(".maps");

MAP(ARRAY, UNWIND_RULES_MAX, __u32, struct wire_rule) unwind_rules SEC(".maps");

/*
 * Rules that were found lately: most frames of a stack were in the one before. An entry is a number
 * of 14 bits under a mark of where it was found, written at once, so that it is never half another.
 */
#define MEMO_ENTRIES   1024 /* a power of two */
#define MEMO_MARK_MASK (~0xffffull)

MAP(PERCPU_ARRAY, MEMO_ENTRIES, __u32, __u64) walk_memo SEC(".maps");

/* A kernel of 6.18 lets programs of different attach types not share one, though nothing is in it.
 */
MAP(PROG_ARRAY, 1, __u32, __u32) backward_exit SEC(".maps");

/*
 * Stacks that were sent lately, by number; a bounded memory, so one is sent again at times. With
 * the generation of the process's code, and wire_state.stacks_turn above it.
 */
MAP(LRU_HASH, 65536, __u64, __u64) stacks_sent SEC(".maps");

/*
 * A walk under way. Several a CPU: a sample may come while a thread's call is being walked, and
 * since 6.0 a probe's program may be preempted by another thread's.
 */
#define WALK_SLOTS         4
#define PYTHON_FRAME_BYTES 128 /* what is read of a frame at once; a power of two */

struct walk {
	__u64 busy;
	__u64 pc, sp, fp;
	__u64 extra;         /* r10, or the link register */
	__u64 returns;       /* struct return_instance that is next */
	__u64 python_frame;  /* the next; 0: none */
	__u64 python_cframe; /* of the invocation that the next belongs to */
	__u64 hash;
	__u32 tgid;
	__u8 innermost; /* registers are as they are, not as before a call */
	__u8 returns_known;
	__u8 blocked;                       /* of a thread that is switched away from */
	__u8 by_pointers;                   /* 1: some frames were found so; 2: the last one was */
	__u8 frame[PYTHON_FRAME_BYTES + 8]; /* a field at its last byte may be a word */
	struct wire_stack_entries out;
	__u64 kernel[64];
};

MAP(PERCPU_ARRAY, WALK_SLOTS, __u32, struct walk) walks SEC(".maps");
