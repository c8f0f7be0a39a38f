/* SPDX-License-Identifier: MIT */
/*
 * What a test program did, in its own words: one line of JSON for each thing, appended to the file
 * named by SAMPLE_COUNTS. check.py adds the lines up and compares them with what cuscope saw.
 *
 * Lines are written by one write() to a file opened for appending, so that threads and processes
 * may share it. "times" stands for that many alike. Programs of C and of CUDA C++ include this.
 */
#ifndef COUNTS_H
#define COUNTS_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct shape {
	unsigned grid[3], block[3];
	unsigned shmem; /* dynamic, bytes */
};

__attribute__((format(printf, 1, 2))) static inline void count_line(const char *format, ...)
{
	const char *path = getenv("SAMPLE_COUNTS");
	static int fd = -1;
	char line[1024];
	va_list args;

	if (fd < 0)
		fd = open(path ? path : "/dev/stdout", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		          0644);
	va_start(args, format);
	int n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (write(fd, line, n) != n) {
		perror("counts");
		exit(2);
	}
}

/* A kernel by its demangled name. `stream`: 0 for the default one, which layers
 * name differently. */
static inline void count_launches(int times, const char *kernel, struct shape s, const void *stream,
                                  bool captured)
{
	count_line("{\"what\": \"launch\", \"times\": %d, \"kernel\": \"%s\", "
	           "\"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shmem\": %u, "
	           "\"stream\": %llu, \"tid\": %ld, \"captured\": %s}\n",
	           times, kernel, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1],
	           s.block[2], s.shmem, (unsigned long long)(uintptr_t)stream,
	           (long)syscall(SYS_gettid), captured ? "true" : "false");
}

static inline void count_graph_launches(int times)
{
	count_line("{\"what\": \"graph_launch\", \"times\": %d}\n", times);
}

static inline void count_host_launches(int times)
{
	count_line("{\"what\": \"host_launch\", \"times\": %d}\n", times);
}

/* Directions: H2D D2H D2D H2H P2P default. */
static inline void count_copies(int times, const char *direction, size_t bytes, bool captured)
{
	count_line("{\"what\": \"copy\", \"times\": %d, \"direction\": \"%s\", \"bytes\": %zu, "
	           "\"captured\": %s}\n",
	           times, direction, bytes, captured ? "true" : "false");
}

static inline void count_sets(int times, size_t bytes, bool captured)
{
	count_line("{\"what\": \"set\", \"times\": %d, \"bytes\": %zu, \"captured\": %s}\n", times,
	           bytes, captured ? "true" : "false");
}

/* What ran as a node of a graph. */
static inline void count_kernel_nodes(int times, const char *kernel)
{
	count_line("{\"what\": \"node\", \"times\": %d, \"kernel\": \"%s\"}\n", times, kernel);
}

static inline void count_copy_nodes(int times, const char *direction, size_t bytes)
{
	count_line(
		"{\"what\": \"copy_node\", \"times\": %d, \"direction\": \"%s\", \"bytes\": %zu}\n",
		times, direction, bytes);
}

/* Kinds: device async managed host array vmm. `address` also stands for a handle. */
static inline void count_alloc(const char *kind, uint64_t address, size_t bytes)
{
	count_line("{\"what\": \"alloc\", \"kind\": \"%s\", \"address\": %llu, \"bytes\": %zu}\n",
	           kind, (unsigned long long)address, bytes);
}

static inline void count_free(const char *kind, uint64_t address)
{
	count_line("{\"what\": \"free\", \"kind\": \"%s\", \"address\": %llu}\n", kind,
	           (unsigned long long)address);
}

static inline void count_error(const char *function, int code, const char *name)
{
	count_line("{\"what\": \"error\", \"function\": \"%s\", \"code\": %d, \"error\": \"%s\"}\n",
	           function, code, name);
}

/* All calls of a function that the program made. */
static inline void count_calls(int times, const char *function)
{
	count_line("{\"what\": \"calls\", \"times\": %d, \"function\": \"%s\"}\n", times, function);
}

#endif
