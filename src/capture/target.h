/* SPDX-License-Identifier: MIT */
/* What is to be traced, and which running processes that is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/wire.h"
#include "probe/hold.h"

enum target_kind { TARGET_COMMAND, TARGET_PIDS, TARGET_NAME, TARGET_CGROUP, TARGET_ALL };

struct target {
	enum target_kind kind;
	const pid_t *pids;
	size_t n_pids;
	const char *glob;       /* TARGET_NAME: of the process's name or its program's file name */
	const char *cgroup;     /* TARGET_CGROUP: a folder, absolute or below the cgroup2 mount */
	struct command command; /* TARGET_COMMAND */
	bool follow;            /* children too */
	bool family;            /* TARGET_PIDS: also what is below them already */
	/* TARGET_PIDS: those that cannot be traced are told of and passed over, while one is left;
	 * NULL: that is a failure. */
	void (*pass)(const char *why);
	const char **libraries; /* to be hooked before a process maps them */
	size_t n_libraries;
};

/*
 * Calls `each` for every process that the target names at this moment (not for commands). Fails
 * when a pid does not exist or the cgroup cannot be read.
 */
int target_each(const struct target *target, int (*each)(void *data, pid_t pid), void *data,
                struct err *err);

/* The glob of TARGET_NAME, as the eBPF programs take it. */
int target_glob(const struct target *target, struct wire_glob *glob, struct err *err);

/* Whether a process's present name matches it. */
bool target_name_matches(const struct target *target, pid_t pid);

/* Opens the cgroup's folder; the caller closes it. */
int target_cgroup_open(const struct target *target, struct err *err);

/* Whether it runs under valgrind, which takes a breakpoint for the program's own and ends it. */
bool target_is_valgrind(pid_t pid);
#define TARGET_VALGRIND                                                                            \
	"process %d runs under valgrind, which breakpoints in its libraries would end (SIGTRAP): " \
	"it is not traced"

/* 2 when the process is under a seccomp filter, as /proc/PID/status says; 0 when unknown. */
int target_seccomp_mode(pid_t pid);
