/* SPDX-License-Identifier: MIT */
/*
 * The simulated runtime: a thin layer that calls the driver, as the real one does. Built as CUDA
 * 13's and as CUDA 12's libcudart (CUDART_MAJOR), shared and static.
 *
 * RT(name, params, expr) defines an exported function that needs a device's context, its params as
 * in params.h, RT_DRIVER one that only needs the driver, RT_PLAIN one that needs neither. RT_PTSZ
 * and RT_PTDS define the variant for the per-thread default stream too: DRV(function, suffix) in
 * `expr` then calls the driver's.
 */
#ifndef SIMCUDA_RUNTIME_RUNTIME_H
#define SIMCUDA_RUNTIME_RUNTIME_H

#include "../fault.h"
#include "../params.h"
#include "../profiler.h"
#include "../runtime_api.h"
#include "driver.h"

#ifndef CUDART_MAJOR
#define CUDART_MAJOR 13
#endif

/* The driver is loaded and initialised; the thread's device has a context that is current. */
cudaError_t runtime_driver(void);
cudaError_t runtime_context(void);

static inline bool runtime_is_hooked(void)
{
	return profiler_hooks(__atomic_load_n(&runtime_profiler, __ATOMIC_ACQUIRE)) != NULL;
}

/* Remembers an error for cudaGetLastError and passes it on. The driver's codes are
 * the runtime's. */
cudaError_t runtime_result(int result);

#define RT_ENTRY(name, params, ready, variant, ...)                                                \
	__attribute__((visibility("default"))) cudaError_t name(PARAMS_PROTOTYPE params);          \
	cudaError_t name(PARAMS_PROTOTYPE params)                                                  \
	{                                                                                          \
		static struct sim_site rt_site = { #name, SIM_RUNTIME, 0 };                        \
		enum { per_thread = variant };                                                     \
		struct {                                                                           \
			PARAMS_FIELDS params                                                       \
		} rt_params;                                                                       \
		struct sim_call rt_call;                                                           \
		bool rt_told = false;                                                              \
		cudaError_t rt_result;                                                             \
		int result = faults_wanted ? faults_take(__func__) : 0;                            \
		if (__builtin_expect(runtime_is_hooked(), 0)) {                                    \
			rt_params = (__typeof__(rt_params)){ PARAMS_NAMES params };                \
			rt_told = profiler_enter(runtime_profiler, &rt_call, &rt_site, &rt_params, \
			                         &rt_result);                                      \
		}                                                                                  \
		if (result == 0)                                                                   \
			result = ready;                                                            \
		rt_result = runtime_result(result ? result : (int)(__VA_ARGS__));                  \
		if (__builtin_expect(rt_told, 0))                                                  \
			profiler_leave(runtime_profiler, &rt_call);                                \
		return rt_result;                                                                  \
	}

#define RT(name, params, ...)        RT_ENTRY(name, params, runtime_context(), 0, __VA_ARGS__)
#define RT_DRIVER(name, params, ...) RT_ENTRY(name, params, runtime_driver(), 0, __VA_ARGS__)
#define RT_PLAIN(name, params, ...)  RT_ENTRY(name, params, 0, 0, __VA_ARGS__)
#define RT_PTSZ(name, params, ...)                                                                 \
	RT(name, params, __VA_ARGS__)                                                              \
	RT_ENTRY(name##_ptsz, params, runtime_context(), 1, __VA_ARGS__)
#define RT_PTDS(name, params, ...)                                                                 \
	RT(name, params, __VA_ARGS__)                                                              \
	RT_ENTRY(name##_ptds, params, runtime_context(), 1, __VA_ARGS__)

#define DRV(function, suffix) (per_thread ? drv.function##suffix : drv.function)

/* kernel.c: what a kernel argument means, a host stub or a handle. NULL: neither. */
CUfunction kernel_resolve(const void *function);
/* The device address of a registered variable; cudaErrorInvalidSymbol where there is none. */
cudaError_t symbol_resolve(const void *symbol, CUdeviceptr *address, size_t *bytes);

#endif
