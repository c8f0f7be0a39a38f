/* SPDX-License-Identifier: MIT */
/* A made /proc in a folder of its own, for tests of who a process is. */
#ifndef CUSCOPE_TESTS_MADE_PROC_H
#define CUSCOPE_TESTS_MADE_PROC_H

#include <stddef.h>
#include <sys/types.h>

struct made_process {
	pid_t pid;
	unsigned long start_time;
	unsigned uid;
	const char *comm, *cgroup;
	const char *environ, *cmdline; /* words between '|'; NULL: none */
};

/* The folder, which holds a file "passwd" as well. */
const char *made_proc_begin(void);
void made_proc_end(void);

void made_proc_add(const struct made_process *process);
void made_proc_remove(pid_t pid);

/* A file under it, with the folders that it needs; `bytes` of `data`. */
void made_proc_write(const char *path, const void *data, size_t bytes);

#endif
