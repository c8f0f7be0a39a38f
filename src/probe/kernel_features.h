/* SPDX-License-Identifier: MIT */
/*
 * What this kernel can do, found by trying it, not by its version: distributions carry features
 * back, and clouds build kernels without them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum feature {
	FEATURE_BTF,          /* /sys/kernel/btf/vmlinux: CO-RE */
	FEATURE_PIDS,         /* cuscope is in the first pid namespace, whose ids programs see */
	FEATURE_RINGBUF,      /* 5.8 */
	FEATURE_UPROBE,       /* perf uprobes: CONFIG_UPROBE_EVENTS */
	FEATURE_COOKIE,       /* 5.15: one program for all functions */
	FEATURE_MULTI,        /* 6.6: one link for all functions of a file */
	FEATURE_SESSION,      /* 6.13: one program for entry and return */
	FEATURE_SECCOMP_SAFE, /* returns do not kill threads under seccomp (see below) */
	FEATURE_TRACEFS,      /* syscalls:sys_enter_mmap can be attached */
	FEATURE_COUNT,
};

/*
 * FEATURE_SECCOMP_SAFE: 6.11 made return probes enter the kernel by a system call of their own,
 * which a seccomp filter then refuses, and the thread dies of SIGSYS or SIGILL; 6.14 and some
 * stable kernels exempt it. A child under a filter that kills on that call, hooked with a return
 * probe, tells.
 */
struct kernel_features; /* what is known so far; each feature is tried when it is first asked for */

struct feature_info {
	const char *name; /* for --without */
	const char *gives;
	const char *instead; /* what is used where it is missing, or that it is required */
};

const struct feature_info *feature_info(enum feature feature);

/*
 * `without` is a comma-separated list of names to treat as missing, for tests and for working
 * around a kernel's bug (NULL: none). The caller frees the result.
 */
int kernel_features_new(const char *without, struct kernel_features **features, struct err *err);
void kernel_features_free(struct kernel_features *features);

/* Whether the kernel has it: tried now or before. */
bool kernel_has(struct kernel_features *features, enum feature feature);

/* Whether this process may not do what tracing takes: then nothing is known of the kernel. */
bool kernel_refuses(struct kernel_features *features);

/* Why not: a negative errno, 0 where it is there or was named in `without`. */
int kernel_lacks_because(struct kernel_features *features, enum feature feature);

/*
 * A function of cuscope itself to try probes on: features of the kernel are found, and the cost of
 * a hit is measured, by hooking it.
 */

/* Does nothing. Its first instruction is one that kernels emulate (push on x86-64). */
long self_target(long a, long b);

/* Its offset in /proc/self/exe, 0 if the program headers do not tell. */
uint64_t self_target_offset(void);
