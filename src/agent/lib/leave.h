/* SPDX-License-Identifier: MIT */
/*
 * The moment at which CUPTI can be left. NVIDIA has cuptiFinalize called from the end of a call of
 * CUDA's, in CUPTI's own callback; from elsewhere it crashes (pytorch/kineto#686).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From here on the next end of an outermost call is the moment. The agent's thread is woken when
 * CUPTI was left. */
void leave_begin(void);

bool leave_wanted(void);
bool leave_done(void);
uint64_t leave_took_ns(void);

/* No moment is waited for any more. False: it has come already. */
bool leave_cancel(void);

/* A call of the driver's or the runtime's; `data` is a struct cupti_callback_data. */
void leave_callback(uint32_t domain, const void *data);

/* Makes a call of the driver's ourselves, that ends as any other: for a process that makes none. */
void leave_by_own_call(void);

void leave_forked(void); /* in the child */
