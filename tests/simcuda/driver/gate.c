// SPDX-License-Identifier: MIT
#include "gate.h"

#include <pthread.h>

#include "cost.h"

unsigned int gate = GATE_UNINITIALISED;

CUresult gate_check(const char *function)
{
	if (gate_state() & (GATE_UNINITIALISED | GATE_FORKED))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (gate_state() & GATE_COSTS)
		cost_pay(function);
	return (CUresult)faults_take(function);
}

CUresult gate_faults(const char *function)
{
	return (CUresult)faults_take(function);
}

void gate_open(void)
{
	if (faults_wanted)
		__atomic_or_fetch(&gate, GATE_FAULTS, __ATOMIC_RELEASE);
	if (costs_wanted)
		__atomic_or_fetch(&gate, GATE_COSTS, __ATOMIC_RELEASE);
	__atomic_and_fetch(&gate, ~(unsigned int)GATE_UNINITIALISED, __ATOMIC_RELEASE);
}

void gate_hook(bool hooked)
{
	if (hooked)
		__atomic_or_fetch(&gate, GATE_HOOKED, __ATOMIC_RELEASE);
	else
		__atomic_and_fetch(&gate, ~(unsigned int)GATE_HOOKED, __ATOMIC_RELEASE);
}

/* The child of a process that used CUDA cannot: the real driver answers 3 there, and here the */
/* threads of the streams do not exist any more. Nor is there anyone who profiles it. */
static void forked(void)
{
	simcuda_profiler.install(NULL);
	if (!(gate & GATE_UNINITIALISED))
		gate |= GATE_FORKED;
}

__attribute__((constructor)) static void gate_prepare(void)
{
	faults_read();
	costs_read();
	pthread_atfork(NULL, NULL, forked);
}
