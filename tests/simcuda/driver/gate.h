/* SPDX-License-Identifier: MIT */
/*
 * The door that every exported function goes through, and the macros that define them.
 *
 * API(name, params, expr) defines one: it fails where the driver is not initialised, where the
 * process was forked after that (as the real driver does) or where SIMCUDA_FAIL asks for it, and is
 * `expr` otherwise. All three cost one comparison together. API_PTSZ and API_PTDS define the
 * variant for the per-thread default stream too; `null` in expr says which of them runs.
 *
 * Exported functions never call each other: a tracer would see calls that nobody made.
 */
#ifndef SIMCUDA_DRIVER_GATE_H
#define SIMCUDA_DRIVER_GATE_H

#include "../driver_types.h"
#include "../fault.h"

enum gate {
	GATE_UNINITIALISED = 1,
	GATE_FORKED = 2,
	GATE_FAULTS = 4,
};

extern unsigned int gate; /* enum gate; 0: calls pass */

CUresult gate_check(const char *function);
void gate_open(void); /* cuInit succeeded */

static inline CUresult gate_pass(const char *function)
{
	if (__builtin_expect(__atomic_load_n(&gate, __ATOMIC_ACQUIRE) == 0, 1))
		return CUDA_SUCCESS;
	return gate_check(function);
}

/* Which stream a null handle means. */
enum null_stream { NULL_IS_LEGACY, NULL_IS_THREAD };

#define API_ENTRY(name, params, check, which, ...)                                                 \
	__attribute__((visibility("default"))) CUresult name params;                               \
	CUresult name params                                                                       \
	{                                                                                          \
		const enum null_stream null = which;                                               \
		(void)null;                                                                        \
		CUresult gate_result = check;                                                      \
		if (gate_result != CUDA_SUCCESS)                                                   \
			return gate_result;                                                        \
		return __VA_ARGS__;                                                                \
	}

#define API(name, params, ...)                                                                     \
	API_ENTRY(name, params, gate_pass(__func__), NULL_IS_LEGACY, __VA_ARGS__)
#define API_VARIANT(name, params, ...)                                                             \
	API_ENTRY(name, params, gate_pass(__func__), NULL_IS_THREAD, __VA_ARGS__)
#define API_PTSZ(name, params, ...)                                                                \
	API(name, params, __VA_ARGS__)                                                             \
	API_VARIANT(name##_ptsz, params, __VA_ARGS__)
#define API_PTDS(name, params, ...)                                                                \
	API(name, params, __VA_ARGS__)                                                             \
	API_VARIANT(name##_ptds, params, __VA_ARGS__)

/* A function that works before cuInit and after fork. */
#define API_ALWAYS(name, params, ...)                                                              \
	API_ENTRY(name, params, faults_wanted ? (CUresult)faults_take(__func__) : CUDA_SUCCESS,    \
	          NULL_IS_LEGACY, __VA_ARGS__)

#endif
