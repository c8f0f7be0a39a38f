/* SPDX-License-Identifier: MIT */
/* What tells a process from another one that had its number. */
#ifndef CUSCOPE_BASE_PROCESS_H
#define CUSCOPE_BASE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * When it began, in clock ticks since boot (proc(5), the 22nd field of stat); 0: it is gone. Does
 * not wait for the process's memory.
 */
uint64_t process_start_time(pid_t pid);

#endif
