/* SPDX-License-Identifier: MIT */
/* From when on a diagnosis is made. One table, so that its limits can be weighed together. */
#ifndef CUSCOPE_REPORT_DIAGNOSIS_DIAGNOSIS_LIMITS_H
#define CUSCOPE_REPORT_DIAGNOSIS_DIAGNOSIS_LIMITS_H

/* A GPU that worked for less has not shown what a program does: a step of training takes longer. */
#define LIMIT_GPU_SPAN_NS 1000000

/* Idle for less than 10 %, a GPU is busy enough: the report gaps draws the line there, too. Asking
 * earlier cannot gain more than that. */

/* Percent of the idle time from which a reason stands for all of it in one sentence. */
#define LIMIT_WHOLE_REASON 95

/* Percent of that time from which a second line of code is named beside the first. */
#define LIMIT_SECOND_LINE 10

/* Without GPU times: percent of the launching thread's time, from its first call to its last. One
 * that waits for the GPU for half of it leaves the GPU work meanwhile; one that is outside of CUDA
 * for half of it cannot have kept a queue of 1,024 launches filled with short kernels. */
#define LIMIT_WAITING 50
#define LIMIT_CALLING 50

/* Percent of its time that a finding costs to be told besides: ten times what makes a finding. */
#define LIMIT_BESIDES 10

/* Percent of it that are in one line: more than in all others together. */
#define LIMIT_LINE_BESIDES 50

/* Percent of calls that were lost: what is told is of the rest. */
#define LIMIT_LOST 1

/* Percent of the run before the first work of the GPU, and its length: shorter starts are usual. */
#define LIMIT_START    50
#define LIMIT_START_NS 1000000000

/* Percent of the time that gaps which are apart come to, beside what is judged. */
#define LIMIT_APART 10

#endif
