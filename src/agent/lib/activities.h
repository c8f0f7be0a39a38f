/* SPDX-License-Identifier: MIT */
/* What CUPTI says of the GPU's work, turned into our records. */
#pragma once

#include <stdbool.h>
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

/* ---- buffers ------------------------------------------------------------------------------- */

/*
 * The memory that CUPTI fills with activity records: 16 MiB at most. The buffer that was used last
 * is used first, so a process that launches little touches little memory. Where a CUPTI holds one
 * for each thread, small ones are there for 256 threads more than the large ones do for.
 *
 * A CUPTI that has to have one is given scrap where none is left: memory that others may be writing
 * to as well, and that nobody reads.
 */

int buffers_open(void); /* 0 or a negative errno; those still with CUPTI stay there */

/* CUPTI has forgotten all of them, and they are given back to the system. */
void buffers_close(void);

/* NULL, or scrap: none is left. */
uint8_t *buffers_take(size_t *bytes, bool scrap);
bool buffers_is_scrap(const uint8_t *buffer);
void buffers_return(uint8_t *buffer);

void buffers_forked(void); /* in the child */
