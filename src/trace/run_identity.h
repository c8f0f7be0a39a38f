/* SPDX-License-Identifier: MIT */
/* Who processes are, in CHUNK_RUN and CHUNK_END. Private to src/trace. */
#pragma once

#include "base/buf.h"
#include "trace/chunk.h"
#include "trace/event.h"

void run_identities_add(struct buf *raw, const struct run_info *run);

/* One more. Of those beyond RUN_IDENTITIES_MAX nothing is kept. */
void run_identity_read(struct run_info *run, struct bytes *body);

/* Which GPUs the last one used, and NVML's figure of its memory. */
void run_identity_read_gpus(struct run_info *run, struct bytes *body);
void run_identity_read_memory(struct run_info *run, struct bytes *body);

/* Of those that were read. */
void run_identities_free(struct run_info *run);
