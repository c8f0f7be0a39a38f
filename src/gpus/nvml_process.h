/* SPDX-License-Identifier: MIT */
/*
 * The process that calls NVML for us: started from memory, listened to on a thread of its own,
 * ended when it is silent or says what cannot be, and started again, less and less often. So a
 * driver that hangs holds nothing up, and a static program has GPU figures. Private to src/gpus.
 */
#pragma once

#include "gpus/nvml_wire.h"

struct nvml_process;

/* Called on the thread that listens, one at a time. */
struct nvml_listener {
	/* One that was checked. */
	void (*take)(void *data, const struct nvml_message *message);
	/* The process is gone, for the reason that `why` says. The next one begins anew. */
	void (*gone)(void *data, const char *why);
	void *data;
};

#define NVML_SILENCE_NS 10000000000ull /* then it is ended */

/* NULL: no thread could be started. */
struct nvml_process *nvml_process_new(enum nvml_wanted wanted, uint64_t interval_ns,
                                      const struct nvml_listener *listener);

/* Ends it; the listener is called no more. Waits for half a second at most. */
void nvml_process_free(struct nvml_process *process);

/* Of all processes so far. Those that are refused said what cannot be. */
void nvml_process_figures(struct nvml_process *process, struct gpu_process_figures *figures);

/* Whether a message of the process that calls NVML can be true. Private to src/gpus. */

/*
 * `bytes`: how long it was, which may be more than there is room for. Every number that anything
 * here counts by is in its bounds then, every text ends, and has no control characters: those
 * become question marks.
 */
bool nvml_check(struct nvml_message *message, size_t bytes, enum nvml_wanted wanted,
                uint64_t now_ns);
