/* SPDX-License-Identifier: MIT */
/*
 * Which memory there is: every allocation with its address, and the device's memory itself, which
 * is host memory in a range of its own, so that its pointers look like a device's and are never
 * those of malloc. Safe to call from any thread.
 */
#ifndef SIMCUDA_DRIVER_BLOCK_H
#define SIMCUDA_DRIVER_BLOCK_H

#include "context.h"

enum block_kind {
	BLOCK_DEVICE = 1 << 0, /* cuMemAlloc, cuMemAllocPitch */
	BLOCK_ASYNC = 1 << 1,  /* from a pool */
	BLOCK_MANAGED = 1 << 2,
	BLOCK_HOST = 1 << 3,       /* pinned host memory that the driver made */
	BLOCK_REGISTERED = 1 << 4, /* the program's own, pinned */
	BLOCK_MAPPED = 1 << 5,     /* a physical allocation mapped into a reserved range */
	BLOCK_RESERVED = 1 << 6,   /* an address range with nothing behind it */
	BLOCK_GLOBAL = 1 << 7,     /* a module's variable */
	BLOCK_ARRAY = 1 << 8,
};

#define BLOCK_ON_DEVICE                                                                            \
	(BLOCK_DEVICE | BLOCK_ASYNC | BLOCK_MANAGED | BLOCK_MAPPED | BLOCK_GLOBAL | BLOCK_ARRAY)
#define BLOCK_PINNED (BLOCK_HOST | BLOCK_REGISTERED)

struct block {
	uint64_t start, bytes;
	enum block_kind kind;
	CUcontext ctx;
	unsigned int flags;
	bool claimed; /* see block_claim */
	void *owner;  /* pool, physical allocation */
};

/* Device memory: takes `bytes` off what the device has; 0 when it has not that much left. */
uint64_t device_memory_take(size_t bytes);
void device_memory_give(uint64_t start, size_t bytes);

/* Only the count, for physical memory that lies elsewhere. */
bool device_memory_count(size_t bytes);
void device_memory_uncount(size_t bytes);
size_t device_memory_used(void);

bool block_add(const struct block *block);

/* The block that holds all of [address, address + bytes), of one of `kinds`. */
bool block_find(uint64_t address, size_t bytes, unsigned int kinds, struct block *found);

/* Claims the block that starts at `start` for a free that runs later: false where there is
 * none of */
/* `kinds`, or another free has claimed it. It stays to be found until block_take. */
bool block_claim(uint64_t start, unsigned int kinds);

/* Removes the block that starts at `start`: false where there is none of `kinds`. */
bool block_take(uint64_t start, unsigned int kinds, struct block *taken);

/* Gives back what is behind a block that block_take removed. */
void block_release(const struct block *block);

#endif
