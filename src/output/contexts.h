/* SPDX-License-Identifier: MIT */
/* Which device a context is of: activities say it, waits do not. Private to src/output. */
#ifndef CUSCOPE_OUTPUT_CONTEXTS_H
#define CUSCOPE_OUTPUT_CONTEXTS_H

#include "trace/event.h"

struct contexts;

struct contexts *contexts_new(void);
void contexts_free(struct contexts *contexts);

void contexts_note(struct contexts *contexts, const struct process *process,
                   const struct activity *activity);

/* False where no activity of that context was noted. */
bool contexts_device(const struct contexts *contexts, const struct process *process,
                     uint32_t context, uint32_t *device);

#endif
