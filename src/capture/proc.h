/* SPDX-License-Identifier: MIT */
/* What /proc tells of processes and threads. */
#ifndef CUSCOPE_CAPTURE_PROC_H
#define CUSCOPE_CAPTURE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The present name of a process; where it is gone, `otherwise`, which may be NULL. */
void proc_comm(pid_t pid, char comm[16], const char *otherwise);

/* As top shows it: 20 for a thread with nice 0; 0 where it is not known. */
int32_t proc_priority(uint32_t pid, uint32_t tid);

/* Whether a process has a descriptor whose path begins so. */
bool proc_has_open(pid_t pid, const char *path);

#endif
