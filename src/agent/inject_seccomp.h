/* SPDX-License-Identifier: MIT */
/*
 * Whether a thread's seccomp filters let it do what a borrowed thread does. A filter may kill its
 * process for a call that it does not know, so the filters are run here before anything is.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* `mode` is "Seccomp:" of /proc/PID/status. The thread is stopped by our ptrace. */
int seccomp_check(pid_t pid, pid_t tid, unsigned mode, struct err *err);

/* Whether it may read its own memory by process_vm_readv: no filter is against it. */
bool seccomp_may_read(pid_t tid, unsigned mode);

/* What one filter answers: SECCOMP_RET_*. SECCOMP_RET_KILL_PROCESS for what is no filter. */
uint32_t seccomp_answer(const struct sock_filter *filter, size_t n,
                        const struct seccomp_data *data);
