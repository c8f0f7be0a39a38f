/* SPDX-License-Identifier: MIT */
/*
 * The memory that CUPTI fills with activity records: 16 MiB at most. The buffer that was used last
 * is used first, so a process that launches little touches little memory. Where a CUPTI holds one
 * for each thread, small ones are there for 256 threads more than the large ones do for.
 */
#ifndef CUSCOPE_AGENT_LIB_BUFFERS_H
#define CUSCOPE_AGENT_LIB_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

int buffers_open(void); /* 0 or a negative errno; those still with CUPTI stay there */

/* CUPTI has forgotten all of them, and they are given back to the system. */
void buffers_close(void);

/* NULL: none is left. */
uint8_t *buffers_take(size_t *bytes);
void buffers_return(uint8_t *buffer);

void buffers_forked(void); /* in the child */

#endif
