/* SPDX-License-Identifier: MIT */
/*
 * Handles: objects that programs hold pointers to. Every object begins with struct handle, which is
 * eight bytes long, so that the second member of a CUfunction and of a CUkernel, the kernel's name,
 * is at byte 8 as on driver 580. A handle can be told from any other pointer without reading
 * through it, and a freed one is the first to be used again, so addresses repeat as they do in
 * life.
 */
#ifndef SIMCUDA_DRIVER_HANDLE_H
#define SIMCUDA_DRIVER_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum handle_kind {
	HANDLE_NONE,
	HANDLE_CONTEXT,
	HANDLE_STREAM,
	HANDLE_EVENT,
	HANDLE_MODULE,
	HANDLE_FUNCTION,
	HANDLE_LIBRARY,
	HANDLE_KERNEL,
	HANDLE_POOL,
	HANDLE_PHYSICAL,
	HANDLE_ARRAY,
	HANDLE_GRAPH,
	HANDLE_NODE,
	HANDLE_EXEC,
	HANDLE_KINDS,
};

struct handle {
	uint32_t kind; /* enum handle_kind; HANDLE_NONE once closed */
	uint32_t refs; /* for kinds that outlive their handle: guarded by sim_lock */
};

/* A zeroed object of `bytes`, always the same for one kind; NULL when there is no memory. */
void *handle_new(enum handle_kind kind, size_t bytes);

/* Whether `pointer`, which may be anything, is a live handle of that kind. */
bool handle_is(const void *pointer, enum handle_kind kind);

/* handle_close: handle_is() is false from now on. handle_free: that, and the memory is reused. */
void handle_close(void *object);
void handle_free(void *object, enum handle_kind kind);

#endif
