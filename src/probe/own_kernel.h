/* SPDX-License-Identifier: MIT */
/*
 * Hooks of the kernel that users ask for: functions, by kprobes, and tracepoints. What there is,
 * and whether this kernel lets it be hooked, is found out before anything is attached.
 */
#pragma once

#include "probe/own_hooks.h"
#include "probe/own_symbols.h"

/* A function of the kernel, or a tracepoint, that a hook names. */
struct own_target {
	char *name;      /* "nvidia_open", "sched_switch" */
	char *module;    /* "vmlinux", "nvidia"; the group of a tracepoint */
	const char *why; /* it cannot be hooked; NULL: it can. Static */
};

struct own_targets {
	struct own_target *list;
	size_t n;
	size_t left_out; /* beyond the limit */
};

/* The same for who only wants to know: with what cannot be hooked, the first `limit` of them. */
int own_kernel_list(const struct hook_spec *spec, const struct own_symbols *symbols, size_t limit,
                    struct own_targets *targets, struct hook_mistake *mistake);
void own_targets_free(struct own_targets *targets);

/* Fields of a tracepoint, of its format. The number of them, or a negative errno. */
#define OWN_FIELDS_MAX 64
int own_tracepoint_fields(const char *group, const char *name, struct own_place *fields);
int own_tracepoint_parse(const char *format, struct own_place *fields); /* the text of one */

/* Looks at all hooks of the kernel, and says the first mistake in several lines. 0 or -EINVAL. */
int own_kernel_check(const struct hook_list *list, struct buf *wrong);

/* ---- attached ------------------------------------------------------------------------------ */

struct own_kernel;

/* Attaches what there is; what cannot be hooked is told to `miss`. */
struct own_kernel *own_kernel_new(struct own_hooks *own, own_miss_fn miss, void *data);
void own_kernel_free(struct own_kernel *kernel); /* detaches */

/* Whether a hook waits for a module that is not loaded; and looks for it again. */
void own_kernel_look_again(struct own_kernel *kernel, own_miss_fn miss, void *data);
