/* SPDX-License-Identifier: MIT */
/* Devices and contexts, and the lock that guards streams, events, captures and graphs. */
#ifndef SIMCUDA_DRIVER_CONTEXT_H
#define SIMCUDA_DRIVER_CONTEXT_H

#include <pthread.h>

#include "gate.h"
#include "handle.h"

#define DEVICES_MAX 16

/* One lock for everything that a stream's order depends on: obviously right, and held briefly. */
extern pthread_mutex_t sim_lock;

static inline void sim_enter(void)
{
	pthread_mutex_lock(&sim_lock);
}

static inline void sim_leave(void)
{
	pthread_mutex_unlock(&sim_lock);
}

struct CUctx_st {
	struct handle handle;
	CUdevice device;
	unsigned int flags;
	unsigned int retains; /* of a primary context */
	unsigned long long id;
	uint32_t last_stream; /* number of the latest stream: guarded by sim_lock */
	CUstream legacy;      /* the default stream */
	CUstream streams;     /* all of them, linked by `next`: guarded by sim_lock */
	CUmodule modules;
	CUresult sticky; /* a kernel failed: every later call that waits says so */
	size_t limit;    /* cuCtxSetLimit, kept and given back */
};

/* Number of devices: SIMCUDA_DEVICES, 1 without it. */
int device_count(void);
size_t device_memory_bytes(void); /* SIMCUDA_MEMORY, 16 GiB without it */
void device_read_settings(void);

/* The calling thread's context; NULL: none, or it was destroyed. */
CUcontext context_current(void);

/* An error if a context is needed and there is none. */
CUresult context_need(CUcontext *ctx);

/* A number for the calling thread that no other thread of this process ever had. */
uint64_t thread_number(void);

/* Parts of a context's end that live elsewhere. */
void streams_destroy_all(CUcontext ctx);
void modules_destroy_all(CUcontext ctx);
void blocks_free_all(CUcontext ctx);

#endif
