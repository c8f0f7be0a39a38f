/* SPDX-License-Identifier: MIT */
/* A session of probes in the test's own process: no code is changed, thunks are called by pointer.
 */
#ifndef CUSCOPE_TESTS_PROBES_SCENE_H
#define CUSCOPE_TESTS_PROBES_SCENE_H

#include <errno.h>

#include "agent/lib/probes.h"
#include "agent/lib/thunks.h"
#include "bpf/wire.h"
#include "host.h"

#define RING ((uint64_t)1 << 20)

/* TSan delivers signals late, makes forks of vforks, and knows no thread that it did not see made.
 */
#ifdef __SANITIZE_THREAD__
#define NOT_UNDER_TSAN() skip()
#else
#define NOT_UNDER_TSAN() ((void)0)
#endif

static struct host *host;
static struct ring ring;

static inline uint64_t cookie_plain(uint32_t words, uint32_t stack)
{
	return cookie_with_hook(7) | cookie_with_words(words) | cookie_with_stack(stack) |
	       cookie_with_out0(COOKIE_NONE) | cookie_with_out1(COOKIE_NONE) |
	       cookie_with_blob(COOKIE_NONE) | cookie_with_string(COOKIE_NONE) |
	       cookie_with_kernel(COOKIE_NONE) | cookie_with_name_key(COOKIE_NONE);
}

/* In the place of a field of cookie_plain, which is all ones there. */
#define COOKIE_SET(cookie, field, value)                                                           \
	(((cookie) & ~cookie_with_##field(~0ull)) | cookie_with_##field(value))

/* A slot's thunk for a function, as a pointer to such a function. */
static inline const void *divert(uint32_t slot, const void *function, uint64_t cookie,
                                 uint32_t stack_words)
{
	probes_set(slot, &(struct probe_plan){ function, cookie, stack_words });
	probes_turn(slot, PROBE_CALL);
	return probes_thunk(slot);
}

#define DIVERT(slot, function, cookie, words)                                                      \
	((__typeof__(&(function)))divert(slot, (const void *)(function), cookie, words))

static inline int begin_probes(uint64_t bytes, const struct probes_options *options)
{
	host = host_new(bytes);
	assert_int_equal(ring_map(&ring, host->memfd), 0);
	return probes_open(&ring, options);
}

static inline int open_probes(void **state)
{
	return begin_probes(
		RING, &(struct probes_options){ .clock = AGENT_CLOCK_TICKS, .may_read = true });
}

static inline int close_probes(void **state)
{
	int code = probes_close();

	for (uint32_t i = 0; i < THUNKS; i++)
		probes_turn(i, PROBE_PASSES_ON);
	ring_unmap(&ring);
	host_free(host);
	return code;
}

/* The last record of a call; it is the test's until the next host_read. */
static inline const struct agent_probed *last_call(void)
{
	size_t n;

	host_read(host);
	n = host_count(host, AGENT_PROBED);
	assert_true(n > 0);
	return host_get(host, AGENT_PROBED, n - 1);
}

static inline size_t calls_told(void)
{
	host_read(host);
	return host_count(host, AGENT_PROBED);
}

/* Since the last time it was asked. */
static inline uint64_t lost_now(uint32_t reason)
{
	static uint64_t before[AGENT_PROBE_LOSTS];
	uint64_t now, was = before[reason];

	probes_look();
	now = before[reason] = host->shared->probe_lost[reason];
	return now - was;
}

#endif
