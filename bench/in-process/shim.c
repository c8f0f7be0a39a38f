// SPDX-License-Identifier: MIT
#include "shim.h"

#include "agent/lib/probes.h"
#include "bpf/wire.h"

#define SHIM __attribute__((visibility("default")))

static struct ring ring;

SHIM int shim_open(int memfd, uint32_t clock)
{
	int code = ring.shared ? 0 : ring_map(&ring, memfd);

	return code ? code
	            : probes_open(&ring,
	                          &(struct probes_options){ .clock = clock, .may_read = true });
}

SHIM int shim_close(void)
{
	return probes_close();
}

SHIM const void *shim_thunk(uint32_t slot, const void *function, uint32_t does)
{
	const uint64_t none = COOKIE_NONE;
	const struct probe_plan plan = {
		.original = function,
		.cookie = cookie_with_hook(1) | cookie_with_words(SHIM_WORDS) |
		          cookie_with_stack(5) | cookie_with_out0(none) | cookie_with_out1(none) |
		          cookie_with_blob(none) | cookie_with_string(none) |
		          cookie_with_kernel(none) | cookie_with_name_key(none),
		.stack_words = 5,
	};

	probes_set(slot, &plan);
	probes_turn(slot, does);
	return probes_thunk(slot);
}

SHIM uint64_t shim_waits(void)
{
	if (!ring.shared)
		return 0;
	return ((__atomic_load_n(&ring.shared->head, __ATOMIC_RELAXED) & AGENT_HEAD_MASK) -
	        __atomic_load_n(&ring.shared->tail, __ATOMIC_RELAXED)) &
	       AGENT_HEAD_MASK;
}
