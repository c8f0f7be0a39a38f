/* SPDX-License-Identifier: MIT */
/*
 * One thread that loads NVML, and one for each GPU, which reads it at an interval and sends what it
 * read. A call into the driver of a GPU that hangs holds up no other. Where NVML is not there yet,
 * it is tried again. The threads end with the process.
 */
#pragma once

#include "gpus/nvml_wire.h"

struct gpu_threads;

/* `folders`: where the library is looked for first, with colons between them. NULL when no thread
 * could be started. */
struct gpu_threads *gpu_threads_start(enum nvml_wanted wanted, uint64_t interval_ns,
                                      const char *folders);

/* Nothing comes of them any more: the process is to end, for another one. */
bool gpu_threads_are_stuck(struct gpu_threads *threads);

/* How they are, all but what the process takes. */
void gpu_threads_beat(struct gpu_threads *threads, struct nvml_beat *beat);

/* Messages to cuscope. */

/* Sets the magic number, and waits where cuscope is slow. Ends the process where cuscope is gone.
 * Any thread may. */
void send_message(struct nvml_message *message);
