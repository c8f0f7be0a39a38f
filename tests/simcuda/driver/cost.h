/* SPDX-License-Identifier: MIT */
/*
 * What a call takes of its thread: SIMCUDA_CALL_US="cuMemAlloc_v2=2000,cuLaunchKernel=8" makes each
 * call of cuMemAlloc_v2 compute for two milliseconds before it does anything. Without it calls take
 * next to nothing.
 */
#ifndef SIMCUDA_DRIVER_COST_H
#define SIMCUDA_DRIVER_COST_H

#include <stdbool.h>

/* True where SIMCUDA_CALL_US names any function. */
extern bool costs_wanted;

/* Reads SIMCUDA_CALL_US; what it cannot understand is ignored. */
void costs_read(void);
void cost_pay(const char *function);

#endif
