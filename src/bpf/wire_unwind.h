/* SPDX-License-Identifier: MIT */
/*
 * What the programs know of code to walk stacks by it: for each address of a file a rule that leads
 * from a frame to the one that called it. Compiled from .eh_frame by src/unwind.
 */
#pragma once

#ifndef __bpf__
#include <stdint.h>
#include <linux/types.h>
#endif

/* Where the frame's CFA is: on x86-64 and AArch64 the stack pointer before the call. */
enum unwind_cfa {
	CFA_NONE,  /* no code here, or code that no table tells of */
	CFA_SP,    /* sp + cfa */
	CFA_FP,    /* fp + cfa; fp: rbp, x29 */
	CFA_AT_SP, /* *(sp + cfa) + add */
	CFA_AT_FP, /* *(fp + cfa) + add */
	CFA_PLT, /* x86-64: sp + 8, and 8 more where the address's last four bits are >= cfa: behind
	            the push in an entry of 16 bytes */
	CFA_R10, /* x86-64: r10 + cfa, in prologues that align the stack; of the innermost frame */
	CFA_SIGNAL, /* the frame of a signal's handler is above it: registers are in the kernel's
	               struct */
	CFA_STOP,   /* the outermost frame */
	CFA_OTHER,  /* a table tells of it, in a way that no rule can say */
};

/* Where the caller's frame pointer is. */
enum unwind_fp {
	FP_SAME,  /* not touched */
	FP_CFA,   /* *(CFA + fp) */
	FP_AT_FP, /* *(fp + fp), of a frame that aligned its stack */
	FP_GONE,  /* lost */
};

/* Where its return address is: x86-64 always *(CFA - 8). */
enum unwind_ra {
	RA_CFA, /* *(CFA + ra) */
	RA_LR,  /* AArch64: in the link register still; of the innermost frame */
};

struct wire_rule {
	__s32 cfa;
	__s32 fp;
	__s32 ra;
	__s16 add;
	__u8 cfa_kind : 4, fp_kind : 4; /* enum unwind_cfa, enum unwind_fp */
	__u8 ra_kind;                   /* enum unwind_ra */
};

/*
 * From this address on, which rule. An address is that of the file (p_vaddr) above `base` of the
 * table, so that files that are linked at high addresses have room.
 */
struct wire_row {
	__u32 address;
	__u32 rule; /* its number; in the upper nodes of a tree: the number of the node below */
};

/*
 * A file's rows are a tree of nodes of one size: node 0 is the root, then the middle ones, then the
 * leaves; every path has three. In the upper nodes a place that is not used has UNWIND_UNUSED for
 * its address.
 */
#define UNWIND_FAN        256 /* a power of two */
#define UNWIND_UNUSED     0xffffffffu
#define UNWIND_LEAVES_MAX (UNWIND_FAN * UNWIND_FAN)
#define UNWIND_ROWS_MAX   (UNWIND_FAN * UNWIND_FAN * UNWIND_FAN)
#define UNWIND_RULES_MAX  16384 /* over all files; a whole desktop has some 10,000 */

/*
 * Rows of 4 bytes: how far behind the leaf's first row each begins, and its rule. So a leaf spans
 * 64 KiB of code at most. Offsets stand together: they are what is searched. Places that are not
 * used are as the last row.
 */
#define UNWIND_LEAF_ROWS 512 /* a power of two */
#define UNWIND_LEAF_SPAN 0xffffu

struct wire_leaf {
	__u16 offset[UNWIND_LEAF_ROWS];
	__u16 rule[UNWIND_LEAF_ROWS];
};

struct wire_node {
	union {
		struct wire_row row[UNWIND_FAN];
		struct wire_leaf leaf;
	};
};
