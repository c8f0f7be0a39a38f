/* SPDX-License-Identifier: MIT */
/* A session of the agent that records calls: what cuscope asks of it, and functions to be diverted.
 * No code is changed: thunks are called by pointer, and moved code is a jump to a function. */
#ifndef CUSCOPE_TESTS_ORDERS_SCENE_H
#define CUSCOPE_TESTS_ORDERS_SCENE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/wire.h"
#include "host.h"

#define KIB(n)   ((uint64_t)(n) << 10)
#define ROUNDS   1000
#define PAGE     4096u
#define CODE     32   /* bytes, of one function's moved code */
#define OFF_MOST 3000 /* ms, of which a thread that stays in the recording takes 2000 */

int cuscope_agent_enter(int socket);

static inline uint64_t plain(void)
{
	return cookie_with_hook(7) | cookie_with_words(WIRE_AT_STACK) |
	       cookie_with_out0(COOKIE_NONE) | cookie_with_out1(COOKIE_NONE) |
	       cookie_with_blob(COOKIE_NONE) | cookie_with_string(COOKIE_NONE) |
	       cookie_with_kernel(COOKIE_NONE) | cookie_with_name_key(COOKIE_NONE);
}

/* TSan makes no threads in a child of fork, and finds a lock of before it held. */
#ifdef __SANITIZE_THREAD__
#define NOT_UNDER_TSAN() skip()
#else
#define NOT_UNDER_TSAN() ((void)0)
#endif

/* ---- a session ---- */

static inline struct host *begin_with(uint64_t ring, uint32_t kinds, uint32_t probes)
{
	struct host *host = host_new(ring);
	int code;

	host->probes = AGENT_PROBES | probes;
	for (int i = 0; (code = cuscope_agent_enter(dup(host->theirs))) && i < OFF_MOST; i++)
		host_sleep(1); /* the one before has not quite gone */
	close(host->theirs);
	assert_int_equal(code, 0);
	host_hello(host, kinds);
	if (kinds)
		return host;
	assert_int_equal(host_wait(host, AGENT_RUNNING), AGENT_RUNNING);
	return host;
}

static inline struct host *begin(void)
{
	return begin_with(KIB(256), 0, AGENT_PROBES_TICKS | AGENT_PROBES_READS);
}

static inline void end(struct host *host)
{
	host_tell(host, AGENT_STOP);
	assert_int_equal(host_wait(host, AGENT_OFF), AGENT_OFF);
	host_free(host);
}

static inline int ask_area(struct host *host, uint64_t near, uint32_t bytes)
{
	return host_ask(host,
	                (struct agent_message){ .type = AGENT_PROBES_AREA,
	                                        .area = { .near = near, .bytes = bytes } },
	                -1);
}

static inline int ask_set(struct host *host, const struct agent_slot *slots, uint32_t n,
                          size_t bytes)
{
	int fd = memfd_create("slots", MFD_CLOEXEC), code;

	assert_int_equal(write(fd, slots, bytes), bytes);
	code = host_ask(host, (struct agent_message){ .type = AGENT_PROBES_SET, .slots.n = n }, fd);
	close(fd);
	return code;
}

static inline int set_one(struct host *host, struct agent_slot slot)
{
	return ask_set(host, &slot, 1, sizeof(slot));
}

/* Slots of these tests count from the first one that no earlier session has set. */
static inline uint32_t fresh(const struct host *host, uint32_t slot)
{
	return host->shared->probe_used + slot;
}

static inline uint32_t slot_of(const struct host *host, const struct agent_probed *call)
{
	return call->head.lane - host->shared->probe_used;
}

static inline int ask_turn(struct host *host, uint32_t first, uint32_t n, uint32_t does)
{
	return host_ask(host,
	                (struct agent_message){
				.type = AGENT_PROBES_TURN,
				.slots = { .first = fresh(host, first), .n = n, .does = does } },
	                -1);
}

static inline uint64_t thunk_of(const struct host *host, uint32_t slot)
{
	return host->shared->probe_thunks +
	       (uint64_t)fresh(host, slot) * host->shared->probe_thunk_bytes;
}

/* ---- functions ---- */

typedef int (*function)(int);

static inline int nothing(int value)
{
	return value;
}

static inline int twice(int value)
{
	return 2 * value;
}

/* As cuscope writes what was moved: here all of it is a jump to the function. */
static inline void write_code(uint64_t at, function to)
{
	uint8_t code[CODE] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0 };
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	memcpy(code + 10, &to, sizeof(to));
	assert_int_equal(pwrite(memory, code, sizeof(code), (off_t)at), sizeof(code));
	close(memory);
}

/* Memory for `n` functions, where they all are `to`. */
static inline uint64_t area_of(struct host *host, uint32_t n, function to)
{
	uint64_t at;

	assert_int_equal(ask_area(host, (uint64_t)nothing, n * CODE), 0);
	at = host->shared->answer.area;
	for (uint32_t i = 0; i < n; i++)
		write_code(at + i * CODE, to);
	return at;
}

static inline function divert(struct host *host, uint32_t slot, function to, uint32_t does)
{
	assert_int_equal(set_one(host, (struct agent_slot){ .slot = fresh(host, slot),
	                                                    .cookie = plain(),
	                                                    .original = area_of(host, 1, to),
	                                                    .does = does }),
	                 0);
	return (function)thunk_of(host, slot);
}

static inline const struct agent_probed *call_at(struct host *host, size_t which)
{
	return host_get(host, AGENT_PROBED, which);
}

static inline size_t calls_told(struct host *host)
{
	host_read(host);
	return host_count(host, AGENT_PROBED);
}

#endif
