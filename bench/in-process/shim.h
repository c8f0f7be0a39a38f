/* SPDX-License-Identifier: MIT */
/* The agent's recorder as a library that is loaded late, as it is in a program. */
#ifndef CUSCOPE_BENCH_SHIM_H
#define CUSCOPE_BENCH_SHIM_H

#include <stdint.h>

/* As a cookie of cuLaunchKernel has it: six registers and five words of the stack. */
#define SHIM_WORDS 13

int shim_open(int memfd, uint32_t clock); /* enum agent_clock */
int shim_close(void);
const void *shim_thunk(uint32_t slot, const void *function, uint32_t does);
uint64_t shim_waits(void); /* bytes that are not read yet */

#endif
