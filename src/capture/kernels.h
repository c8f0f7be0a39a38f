/* SPDX-License-Identifier: MIT */
/*
 * Names of kernels, resolved when first seen. They come from the calls that made a handle and
 * carried its name, from the handle itself, or from the host stub's symbol. Others are shown as
 * what they are, and counted. A kernel is one object however many processes and handles lead to it.
 * What a process tells beyond its budget is one kernel, KERNELS_OTHERS.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "trace/event.h"

#define KERNELS_OTHERS "[kernels beyond what is kept]"

struct budget;
struct kernels;

/* Texts and handles are taken from the budget; it may be NULL. */
struct kernels *kernels_new(struct budget *budget);
void kernels_free(struct kernels *kernels);

/* A name arrived. Names that the program gave win over those read through a handle. */
void kernels_named(struct kernels *kernels, const struct wire_name *name);

/* `handle` names the same kernel as `known` (a handle or a host stub): cuKernelGetFunction. */
void kernels_alias(struct kernels *kernels, uint32_t tgid, uint64_t handle, uint64_t known);

/* The kernel of a launch; made as unresolved when nothing is known. Never NULL. */
const struct kernel *kernels_find(struct kernels *kernels, uint32_t tgid, uint64_t handle);

/* The same where nothing can be known any more: its process has ended. */
const struct kernel *kernels_unknown(struct kernels *kernels, uint64_t handle);

/* The kernel of this mangled name, which a process told; never NULL. */
const struct kernel *kernels_by_name(struct kernels *kernels, uint32_t tgid, const char *mangled);

/* Names read through handles may be stale from now on: a module was unloaded. */
void kernels_expire(struct kernels *kernels, uint32_t tgid);

/* The process is gone, or another program. */
void kernels_forget(struct kernels *kernels, uint32_t tgid);

/*
 * Whether a handle holds its name where we look: compares with a name that a call gave, and looks
 * for another place when it does not. Returns the offset to use, or UINT64_MAX where the handle
 * leads to no name; the one passed in when the process cannot be read.
 */
uint64_t kernels_calibrate(uint32_t tgid, uint64_t handle, const char *name, uint64_t offset);
