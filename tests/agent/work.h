/* SPDX-License-Identifier: MIT */
/* What a program does with the GPU, in a few words; on the simulated driver and runtime. */
#ifndef CUSCOPE_TESTS_AGENT_WORK_H
#define CUSCOPE_TESTS_AGENT_WORK_H

#include <stdbool.h>
#include <stdint.h>

#define WORK_KERNEL "_Z9vectorAddPKfS0_Pfi"

void work_begin(void);   /* a context, which the calling thread uses from then on */
void work_runtime(void); /* loads the runtime as well */
void work_thread(void);  /* this thread uses the same context */

void work_launch(uint32_t grid); /* cuLaunchKernel of WORK_KERNEL, by 128 threads */
void work_launch_ex(uint32_t grid);
void work_copy(uint32_t bytes); /* cuMemcpyHtoD_v2 */
void work_set(uint32_t bytes);  /* cuMemsetD8Async */
void work_runtime_copy(uint32_t bytes);
void work_graph(int launches); /* of two kernels */
void work_graph_once(void);    /* again, by one call */
/* A context of its own, in which a kernel runs, and which is destroyed then. */
void work_other_context(void);
void work_sync(void);
void work_query(void); /* cuCtxGetCurrent: a call that nobody follows */

#endif
