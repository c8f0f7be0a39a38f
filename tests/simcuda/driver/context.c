// SPDX-License-Identifier: MIT
#include "context.h"

#include <stdatomic.h>
#include <string.h>

#include "stream.h"
#include "trace.h"

#define STACK_MAX 64

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

/* The contexts that a thread pushed; the last is current. */
static __thread struct {
	CUcontext ctx[STACK_MAX];
	int n;
} stack;

static CUcontext primary[DEVICES_MAX]; /* guarded by sim_lock */
static unsigned int primary_flags[DEVICES_MAX];

uint64_t thread_number(void)
{
	static atomic_ulong last;
	static __thread uint64_t mine;
	if (mine == 0)
		mine = atomic_fetch_add(&last, 1) + 1;
	return mine;
}

CUcontext context_current(void)
{
	CUcontext ctx = stack.n ? stack.ctx[stack.n - 1] : NULL;
	return ctx && handle_is(ctx, HANDLE_CONTEXT) ? ctx : NULL;
}

CUresult context_need(CUcontext *ctx)
{
	*ctx = context_current();
	if (*ctx)
		return CUDA_SUCCESS;
	return stack.n && stack.ctx[stack.n - 1] ? CUDA_ERROR_CONTEXT_IS_DESTROYED
	                                         : CUDA_ERROR_INVALID_CONTEXT;
}

static bool device_exists(CUdevice device)
{
	return device >= 0 && device < device_count();
}

static CUcontext context_new(CUdevice device, unsigned int flags)
{
	static atomic_ullong last_id;
	CUcontext ctx = handle_new(HANDLE_CONTEXT, sizeof(*ctx));
	if (!ctx)
		return NULL;
	ctx->device = device;
	ctx->flags = flags;
	ctx->limit = 1024;
	ctx->id = atomic_fetch_add(&last_id, 1) + 1;
	ctx->legacy = stream_new(ctx, STREAM_LEGACY, 0, 0);
	if (ctx->legacy) {
		trace_context_made(ctx);
		return ctx;
	}
	handle_free(ctx, HANDLE_CONTEXT);
	return NULL;
}

/* Waits for the context's work and frees what belongs to it. Not under sim_lock. */
static void context_free(CUcontext ctx)
{
	trace_context_ends(ctx);
	handle_close(ctx);
	streams_destroy_all(ctx);
	modules_destroy_all(ctx);
	blocks_free_all(ctx);
	handle_free(ctx, HANDLE_CONTEXT);
}

static CUresult context_set(CUcontext ctx)
{
	if (ctx && !handle_is(ctx, HANDLE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx && stack.n)
		stack.n--;
	if (ctx) {
		if (stack.n == 0)
			stack.n = 1;
		stack.ctx[stack.n - 1] = ctx;
	}
	return CUDA_SUCCESS;
}

static CUresult context_push(CUcontext ctx)
{
	if (!handle_is(ctx, HANDLE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.n == STACK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	stack.ctx[stack.n++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult context_pop(CUcontext *ctx)
{
	if (stack.n == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.n--;
	if (ctx)
		*ctx = stack.ctx[stack.n];
	return CUDA_SUCCESS;
}

static CUresult context_create(CUcontext *ctx, unsigned int flags, CUdevice device)
{
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ctx = context_new(device, flags);
	return *ctx ? context_push(*ctx) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult context_destroy(CUcontext ctx)
{
	if (!handle_is(ctx, HANDLE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.n && stack.ctx[stack.n - 1] == ctx)
		stack.n--;
	context_free(ctx);
	return CUDA_SUCCESS;
}

static CUresult context_device(CUdevice *device, CUcontext ctx)
{
	if (!ctx)
		ctx = context_current();
	if (!ctx || !handle_is(ctx, HANDLE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = ctx->device;
	return CUDA_SUCCESS;
}

static CUresult primary_retain(CUcontext *ctx, CUdevice device)
{
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	/* Made outside the lock, which creating its stream takes. */
	CUcontext fresh = NULL;
	sim_enter();
	bool missing = !primary[device];
	sim_leave();
	if (missing)
		fresh = context_new(device, primary_flags[device]);
	sim_enter();
	if (!primary[device]) {
		primary[device] = fresh;
		fresh = NULL;
	}
	*ctx = primary[device];
	if (*ctx)
		(*ctx)->retains++;
	sim_leave();
	if (fresh)
		context_free(fresh);
	return *ctx ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Gives back one retain, or all of them. */
static CUresult primary_release(CUdevice device, bool all)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	sim_enter();
	CUcontext ctx = primary[device];
	if (!ctx && !all) {
		sim_leave();
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	bool last = ctx && (all || --ctx->retains == 0);
	if (last)
		primary[device] = NULL;
	sim_leave();
	if (last)
		context_free(ctx);
	return CUDA_SUCCESS;
}

static CUresult primary_state(CUdevice device, unsigned int *flags, int *active)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	*active = primary[device] != NULL;
	*flags = primary[device] ? primary[device]->flags : primary_flags[device];
	sim_leave();
	return CUDA_SUCCESS;
}

static CUresult primary_set_flags(CUdevice device, unsigned int flags)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	primary_flags[device] = flags;
	return CUDA_SUCCESS;
}

/* The two words of a getter that needs a context. */
static CUresult context_get_flags(unsigned int *flags)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result == CUDA_SUCCESS && flags)
		*flags = ctx->flags;
	return flags ? result : CUDA_ERROR_INVALID_VALUE;
}

static CUresult context_set_flags(unsigned int flags)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result == CUDA_SUCCESS)
		ctx->flags = flags;
	return result;
}

static CUresult context_limit(size_t *get, const size_t *set)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (get)
		*get = ctx->limit;
	if (set)
		ctx->limit = *set;
	return get || set ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult context_get_id(CUcontext ctx, unsigned long long *id)
{
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	if (ctx && !handle_is(ctx, HANDLE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx && context_need(&ctx) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

static CUresult context_synchronize(CUcontext ctx)
{
	if (ctx && !handle_is(ctx, HANDLE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult result = ctx ? CUDA_SUCCESS : context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t begin = trace_now();
	uint32_t number = (uint32_t)ctx->id;
	result = streams_wait_all(ctx);
	trace_waited(SIM_WAIT_CONTEXT, begin, number, SIM_NONE, SIM_NONE, result);
	return result;
}

static CUresult context_int(unsigned int *value, unsigned int is)
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result == CUDA_SUCCESS)
		*value = is;
	return result;
}

static CUresult priority_range(int *least, int *greatest)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

static CUresult context_peer(CUcontext peer)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	return handle_is(peer, HANDLE_CONTEXT) && peer != ctx ? CUDA_SUCCESS
	                                                      : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult context_get_current(CUcontext *ctx)
{
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = context_current();
	return CUDA_SUCCESS;
}

API(cuCtxCreate_v2, (CUcontext *, ctx, unsigned int, flags, CUdevice, device),
    context_create(ctx, flags, device))
API(cuCtxCreate_v3,
    (CUcontext *, ctx, CUexecAffinityParam *, params, int, count, unsigned int, flags, CUdevice,
     device),
    context_create(ctx, flags, device))
API(cuCtxCreate_v4,
    (CUcontext *, ctx, CUctxCreateParams *, params, unsigned int, flags, CUdevice, device),
    context_create(ctx, flags, device))
API(cuCtxDestroy, (CUcontext, ctx), context_destroy(ctx))
API(cuCtxDestroy_v2, (CUcontext, ctx), context_destroy(ctx))
API(cuCtxSetCurrent, (CUcontext, ctx), context_set(ctx))
API(cuCtxGetCurrent, (CUcontext *, ctx), context_get_current(ctx))
API(cuCtxPushCurrent, (CUcontext, ctx), context_push(ctx))
API(cuCtxPushCurrent_v2, (CUcontext, ctx), context_push(ctx))
API(cuCtxPopCurrent, (CUcontext *, ctx), context_pop(ctx))
API(cuCtxPopCurrent_v2, (CUcontext *, ctx), context_pop(ctx))
API(cuCtxGetDevice, (CUdevice *, device), context_device(device, NULL))
API(cuCtxGetDevice_v2, (CUdevice *, device, CUcontext, ctx), context_device(device, ctx))
API(cuCtxGetApiVersion, (CUcontext, ctx, unsigned int *, version), context_int(version, 3020))
API(cuCtxGetFlags, (unsigned int *, flags), context_get_flags(flags))
API(cuCtxSetFlags, (unsigned int, flags), context_set_flags(flags))
API(cuCtxGetId, (CUcontext, ctx, unsigned long long *, id), context_get_id(ctx, id))
API(cuCtxGetLimit, (size_t *, value, CUlimit, limit), context_limit(value, NULL))
API(cuCtxSetLimit, (CUlimit, limit, size_t, value), context_limit(NULL, &value))
API(cuCtxGetCacheConfig, (CUfunc_cache *, config), context_int((unsigned int *)config, 0))
API(cuCtxSetCacheConfig, (CUfunc_cache, config), context_int(&(unsigned int){ 0 }, 0))
API(cuCtxGetStreamPriorityRange, (int *, least, int *, greatest), priority_range(least, greatest))
API(cuCtxResetPersistingL2Cache, (), context_int(&(unsigned int){ 0 }, 0))
API(cuCtxEnablePeerAccess, (CUcontext, peer, unsigned int, flags), context_peer(peer))
API(cuCtxDisablePeerAccess, (CUcontext, peer), context_peer(peer))
API(cuCtxSynchronize, (), context_synchronize(NULL))
API(cuCtxSynchronize_v2, (CUcontext, ctx), context_synchronize(ctx))
API(cuDevicePrimaryCtxRetain, (CUcontext *, ctx, CUdevice, device), primary_retain(ctx, device))
API(cuDevicePrimaryCtxRelease, (CUdevice, device), primary_release(device, false))
API(cuDevicePrimaryCtxRelease_v2, (CUdevice, device), primary_release(device, false))
API(cuDevicePrimaryCtxReset, (CUdevice, device), primary_release(device, true))
API(cuDevicePrimaryCtxReset_v2, (CUdevice, device), primary_release(device, true))
API(cuDevicePrimaryCtxGetState, (CUdevice, device, unsigned int *, flags, int *, active),
    primary_state(device, flags, active))
API(cuDevicePrimaryCtxSetFlags, (CUdevice, device, unsigned int, flags),
    primary_set_flags(device, flags))
API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice, device, unsigned int, flags),
    primary_set_flags(device, flags))
