/* SPDX-License-Identifier: MIT */
/* What /proc tells of processes and threads. */
#ifndef CUSCOPE_CAPTURE_PROC_H
#define CUSCOPE_CAPTURE_PROC_H

#include <stdbool.h>
#include <sys/types.h>

/* The present name of a process; where it is gone, `otherwise`, which may be NULL. */
void proc_comm(pid_t pid, char comm[16], const char *otherwise);

/* The same of a thread; where it is gone, its process's. */
void proc_thread_comm(pid_t pid, pid_t tid, char comm[16]);

/* Whether a process has a descriptor whose path begins so. */
bool proc_has_open(pid_t pid, const char *path);

#endif
