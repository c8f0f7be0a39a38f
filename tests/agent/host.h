/* SPDX-License-Identifier: MIT */
/*
 * The other side of src/agent/wire.h in a test's own process: a memfd, a socket, and a reader that
 * keeps what it was told. One thread uses it.
 */
#ifndef CUSCOPE_TESTS_AGENT_HOST_H
#define CUSCOPE_TESTS_AGENT_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/wire.h"

#define HOST_NAMES  4096
#define HOST_SHAPES (1 << 16)
#define HOST_LANES  2048

struct host {
	int socket;  /* ours; -1: closed */
	int theirs;  /* for cuscope_agent_enter */
	int bell[2]; /* ours, theirs */
	int memfd;
	uint32_t abi; /* what hello says */
	uint32_t probes;
	uint32_t asked; /* requests */
	struct agent_shared *shared;
	char *records;
	uint64_t bytes;
	/* what was said */
	char *names[HOST_NAMES];
	struct agent_shape *shapes[HOST_SHAPES];
	struct agent_lane lanes[HOST_LANES];
	/* records, in order; definitions are not among them */
	struct agent_head **kept;
	size_t n_kept;
	uint64_t names_said, shapes_said;
};

struct host *host_new(uint64_t ring_bytes); /* with a pair of sockets */
void host_free(struct host *host);

/* A listening socket instead, whose address goes into CUSCOPE_AGENT; then who came. */
int host_listen(void);
void host_accept(struct host *host, int listening);

/* With the libcupti that TEST_LIBCUPTI names, if there is one. */
void host_hello(struct host *host, uint32_t kinds);
void host_tell(struct host *host, uint32_t type);

/* Whether its bell rang since the last time. */
bool host_bell_rang(struct host *host);

/* A request and its code; -ETIMEDOUT: no answer in five seconds. The message's number is filled in.
 * `fd` goes along, where it is not -1. */
int host_ask(struct host *host, struct agent_message message, int fd);

/* Until the agent is in that state, or has failed; five seconds. Returns the state. */
uint32_t host_wait(struct host *host, uint32_t state);

/* Reads the ring; returns how many records there were. What cannot be right fails the test. */
size_t host_read(struct host *host);
void host_forget(struct host *host); /* records, not definitions */

/* How many records of that type are kept; and one of them. */
size_t host_count(const struct host *host, uint8_t type);
const void *host_get(const struct host *host, uint8_t type, size_t which);

/* The call of a correlation; NULL: none. */
const struct agent_call *host_call(const struct host *host, uint32_t correlation);
const char *host_kernel_name(const struct host *host, const struct agent_kernel *kernel);

uint64_t host_now(void);
void host_sleep(unsigned ms);

/* Of this process: to see that nothing is left behind. */
size_t count_fds(void);
size_t count_threads(void);
size_t count_mappings(const char *named); /* whose line has that in it */

#endif
