// SPDX-License-Identifier: MIT
#include "gate.h"

#include <pthread.h>

unsigned int gate = GATE_UNINITIALISED;

CUresult gate_check(const char *function)
{
	unsigned int state = __atomic_load_n(&gate, __ATOMIC_ACQUIRE);
	if (state & (GATE_UNINITIALISED | GATE_FORKED))
		return CUDA_ERROR_NOT_INITIALIZED;
	return (CUresult)faults_take(function);
}

void gate_open(void)
{
	__atomic_store_n(&gate, faults_wanted ? GATE_FAULTS : 0, __ATOMIC_RELEASE);
}

/* The child of a process that used CUDA cannot: the real driver answers 3 there, and here the */
/* threads of the streams do not exist any more. */
static void forked(void)
{
	if (!(gate & GATE_UNINITIALISED))
		gate |= GATE_FORKED;
}

__attribute__((constructor)) static void gate_prepare(void)
{
	faults_read();
	pthread_atfork(NULL, NULL, forked);
}
