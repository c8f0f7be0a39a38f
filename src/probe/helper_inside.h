/* SPDX-License-Identifier: MIT */
/* What helper.c says to the processes of helper_process.c, and they to it. */
#ifndef CUSCOPE_PROBE_HELPER_INSIDE_H
#define CUSCOPE_PROBE_HELPER_INSIDE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/maps.h"

#define HELPER_BYTES 65536u /* in one answer */

enum helper_op {
	HELPER_MEMORY = 1,   /* pid, address, bytes */
	HELPER_MAPS,         /* pid; the first bytes, and a descriptor if that is not all */
	HELPER_MAPS_ON,      /* with that descriptor: the next bytes */
	HELPER_OPEN_MAPPING, /* pid, mapping, path */
	HELPER_OPEN_IN_ROOT, /* pid, path */
	HELPER_PREAD,        /* with a descriptor of O_PATH: address, bytes */
};

struct helper_request {
	uint32_t op;
	int32_t pid;
	uint64_t address, bytes;
	struct mapping mapping;   /* its path is the one below */
	char path[PATH_MAX + 16]; /* what is sent ends with its NUL */
};

struct helper_answer {
	int64_t result;    /* a negative errno, or the bytes of data */
	int32_t by_map;    /* HELPER_OPEN_MAPPING */
	uint16_t is_path;  /* the descriptor is one of O_PATH */
	uint16_t is_users; /* and its file is served by a process of a user's */
	char data[HELPER_BYTES];
};

/* To the process that makes helpers: with a socket, a helper for it; without, the end of one. */
struct helper_order {
	int32_t kill; /* pid; 0: none */
};

/*
 * One message with or without a descriptor. Bytes received, 0 at the end of the other side, or a
 * negative errno; *fd is -1 where none came.
 */
int helper_send(int socket, const void *message, size_t bytes, int fd);
ssize_t helper_receive(int socket, void *message, size_t bytes, int *fd);

/* Never returns. `control`: the socket that orders come by. */
void helper_process_main(int control) __attribute__((noreturn));

/* For tests: a descriptor is from now on one that helper_pread reads aside; the helper there is. */
void helper_note(int fd, pid_t pid);
pid_t helper_now(void);

/* What helpers do, also done here where there is none. `aside`: files that somebody serves are not
 * opened but for their path, *is_path then. */
void helper_do(const struct helper_request *request, int fd, bool aside,
               struct helper_answer *answer, int *fd_out);

#endif
