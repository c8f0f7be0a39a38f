/* SPDX-License-Identifier: MIT */
/*
 * What simulated GPUs were busy with, in a file that all programs write together (SIMCUDA_BUSY),
 * for whoever looks at a GPU from outside, as counters of the hardware do. The last of many stay.
 */
#ifndef SIMCUDA_BUSY_LOG_H
#define SIMCUDA_BUSY_LOG_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUSY_ENTRIES 65536u

struct busy_entry {
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; an end of 0: not written yet */
	uint32_t device, copies;   /* 1: an engine for copies */
};

struct busy_log {
	uint64_t n; /* so far */
	struct busy_entry entries[BUSY_ENTRIES];
};

/* NULL where SIMCUDA_BUSY names none. */
static inline struct busy_log *busy_log_open(void)
{
	const char *path = getenv("SIMCUDA_BUSY");
	int fd = path && *path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
	void *log = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, sizeof(struct busy_log)))
		log = mmap(NULL, sizeof(struct busy_log), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		           0);
	if (fd >= 0)
		close(fd);
	return log == MAP_FAILED ? NULL : log;
}

#endif
