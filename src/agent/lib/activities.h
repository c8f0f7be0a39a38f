/* SPDX-License-Identifier: MIT */
/* What CUPTI says of the GPU's work, turned into our records. */
#ifndef CUSCOPE_AGENT_LIB_ACTIVITIES_H
#define CUSCOPE_AGENT_LIB_ACTIVITIES_H

#include <stddef.h>
#include <stdint.h>

/* For a new ring: nothing was said in it yet. 0 or -ENOMEM. */
int activities_open(void);
void activities_close(void);
void activities_forked(void); /* in the child */

/* From which kinds and versions records are, and since when; the bound of the clock's error. */
void activities_configure(uint32_t kinds, uint32_t cupti_version, uint64_t enabled_ns);
void activities_clock_error(uint64_t ns);

/*
 * The records of one of CUPTI's buffers, by cuptiActivityGetNextRecord. May be called on several
 * threads. After activities_close nothing is done with them.
 */
struct cupti_record;
void activities_write(uint8_t *buffer, size_t valid_bytes,
                      uint32_t (*next)(uint8_t *, size_t, struct cupti_record **));

#endif
