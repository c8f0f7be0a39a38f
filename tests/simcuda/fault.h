/* SPDX-License-Identifier: MIT */
/*
 * Errors on demand. SIMCUDA_FAIL="cuMemAlloc_v2:3=2,cudaMemcpy:*=1" makes the third call of
 * cuMemAlloc_v2 return 2 and every call of cudaMemcpy return 1, without doing anything. Each
 * library that uses this holds its own copy and takes the functions that it defines.
 */
#ifndef SIMCUDA_FAULT_H
#define SIMCUDA_FAULT_H

#include <stdbool.h>

/* True where SIMCUDA_FAIL names any function; false costs a caller one comparison. */
extern bool faults_wanted;

/* Reads SIMCUDA_FAIL; what it cannot understand is ignored. */
void faults_read(void);

/* The code that this call of `function` is to fail with, 0 for none. Counts the call. */
int faults_take(const char *function);

#endif
