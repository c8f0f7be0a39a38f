/* SPDX-License-Identifier: MIT */
/*
 * Thread ids that a process says its threads have, as the initial pid namespace counts. It may be
 * in one of its own (a container): then they are learnt from /proc/PID/task, so of threads that
 * still run. It may lie, and name other processes' threads: those are none of its own.
 */
#pragma once

#include <stdint.h>

struct tids;

struct tids *tids_new(void);
void tids_free(struct tids *tids);

/* The thread that `pid` itself knows as `tid`; 0 where it is not known. */
uint32_t tids_host(struct tids *tids, uint32_t pid, uint32_t tid, uint64_t now_ns);

void tids_forget(struct tids *tids, uint32_t pid);
