// SPDX-License-Identifier: MIT
/* Calls that are under way in functions of --hook when the trace ends. */
#include <stdlib.h>
#include <time.h>

#include <bpf/bpf.h>

#include "base/xalloc.h"
#include "probe/own_hooks.h"

#define CALLS_MAX (2 * WIRE_HOOK_FRAMES) /* a key that goes away makes the map begin anew */

void own_hooks_open_calls(struct programs *programs, programs_record_fn each, void *data)
{
	int map = programs_map(programs, "hook_frames");
	uint64_t *keys = xcalloc(CALLS_MAX, sizeof(*keys)), now_ns;
	struct wire_hook_frame frame;
	struct timespec now;
	size_t n = 0;

	while (n < CALLS_MAX && !bpf_map_get_next_key(map, n ? &keys[n - 1] : NULL, &keys[n]))
		n++;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (size_t i = 0; i < n; i++) {
		struct wire_hook *hook = &frame.hook;

		/* one that cannot be taken away has returned meanwhile, or was told of already */
		if (bpf_map_lookup_elem(map, &keys[i], &frame) ||
		    bpf_map_delete_elem(map, &keys[i]) || hook->begin_ns > now_ns)
			continue;
		hook->head.flags |= WIRE_UNFINISHED;
		hook->head.time_ns = now_ns;
		each(data, &hook->head, sizeof(*hook));
	}
	free(keys);
}
