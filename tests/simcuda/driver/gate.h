/* SPDX-License-Identifier: MIT */
/*
 * The door that every exported function goes through, and the macros that define them.
 *
 * API(name, params, expr) defines one, its params as in params.h: it fails where the driver is not
 * initialised, where the process was forked after that (as the real driver does) or where
 * SIMCUDA_FAIL asks for it, and is `expr` otherwise; a profiler that hooked the driver is told. All
 * of this costs one comparison together. API_PTSZ and API_PTDS define the variant for the
 * per-thread default stream too; `null` in expr says which of them runs.
 *
 * Exported functions never call each other: a tracer would see calls that nobody made.
 */
#ifndef SIMCUDA_DRIVER_GATE_H
#define SIMCUDA_DRIVER_GATE_H

#include "../driver_types.h"
#include "../fault.h"
#include "../params.h"
#include "../profiler.h"

enum gate {
	GATE_UNINITIALISED = 1,
	GATE_FORKED = 2,
	GATE_FAULTS = 4,
	GATE_HOOKED = 8, /* simcuda_profiler has hooks */
	GATE_COSTS = 16, /* SIMCUDA_CALL_US, see cost.h */
};

extern unsigned int gate; /* enum gate; 0: calls pass */

/* What the gate says when it is not 0; GATE_HOOKED alone lets calls pass. */
CUresult gate_check(const char *function);
CUresult gate_faults(const char *function); /* of functions that need no cuInit */
void gate_open(void);                       /* cuInit succeeded */
void gate_hook(bool hooked);

static inline unsigned int gate_state(void)
{
	return __atomic_load_n(&gate, __ATOMIC_ACQUIRE);
}

/* Which stream a null handle means. */
enum null_stream { NULL_IS_LEGACY, NULL_IS_THREAD };

#define API_ENTRY(name, params, check, which, ...)                                                 \
	__attribute__((visibility("default"))) CUresult name(PARAMS_PROTOTYPE params);             \
	CUresult name(PARAMS_PROTOTYPE params)                                                     \
	{                                                                                          \
		static struct sim_site api_site = { #name, SIM_DRIVER, 0 };                        \
		const enum null_stream null = which;                                               \
		struct {                                                                           \
			PARAMS_FIELDS params                                                       \
		} api_params;                                                                      \
		struct sim_call api_call;                                                          \
		bool api_told = false;                                                             \
		CUresult api_result = CUDA_SUCCESS;                                                \
		(void)null;                                                                        \
		if (__builtin_expect(gate_state() != 0, 0)) {                                      \
			api_params = (__typeof__(api_params)){ PARAMS_NAMES params };              \
			api_told = profiler_enter(&simcuda_profiler, &api_call, &api_site,         \
			                          &api_params, &api_result);                       \
			api_result = check;                                                        \
		}                                                                                  \
		if (__builtin_expect(api_result == CUDA_SUCCESS, 1))                               \
			api_result = __VA_ARGS__;                                                  \
		if (__builtin_expect(api_told, 0))                                                 \
			profiler_leave(&simcuda_profiler, &api_call);                              \
		return api_result;                                                                 \
	}

#define API(name, params, ...)                                                                     \
	API_ENTRY(name, params, gate_check(__func__), NULL_IS_LEGACY, __VA_ARGS__)
#define API_VARIANT(name, params, ...)                                                             \
	API_ENTRY(name, params, gate_check(__func__), NULL_IS_THREAD, __VA_ARGS__)
#define API_PTSZ(name, params, ...)                                                                \
	API(name, params, __VA_ARGS__)                                                             \
	API_VARIANT(name##_ptsz, params, __VA_ARGS__)
#define API_PTDS(name, params, ...)                                                                \
	API(name, params, __VA_ARGS__)                                                             \
	API_VARIANT(name##_ptds, params, __VA_ARGS__)

/* A function that works before cuInit and after fork. */
#define API_ALWAYS(name, params, ...)                                                              \
	API_ENTRY(name, params, gate_faults(__func__), NULL_IS_LEGACY, __VA_ARGS__)

#endif
