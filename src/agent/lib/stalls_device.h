/* SPDX-License-Identifier: MIT */
/*
 * What sampling asks of the driver, in a context that is made the thread's own meanwhile: how much
 * memory is free, and which GPU it is.
 */
#ifndef CUSCOPE_AGENT_LIB_STALLS_DEVICE_H
#define CUSCOPE_AGENT_LIB_STALLS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device {
	size_t free_bytes, needed_bytes;
	size_t buffer_bytes;  /* that CUPTI takes of the device for samples */
	bool buffer_is_fixed; /* by CUPTI, and so is the period */
};

bool device_open(void); /* whether the driver has what is called */

bool device_enter(void *context);
void device_leave(void);

/* Of the context that was entered. */
bool device_look(struct device *device);

/* Whether all work of a context that was entered is done, or gets done until then. No stream may be
 * in a capture: it would be ended. An event of the context's: made where *event is NULL. */
bool device_is_idle(void *context, void **event, uint64_t until_ns);
void device_forget(void **event);

#endif
