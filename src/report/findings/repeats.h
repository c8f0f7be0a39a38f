/* SPDX-License-Identifier: MIT */
/*
 * Whether a row of things repeats itself: how far back the same REPEATS_LENGTH things came last.
 * The memory is the same for any row.
 */
#ifndef CUSCOPE_REPORT_FINDINGS_REPEATS_H
#define CUSCOPE_REPORT_FINDINGS_REPEATS_H

#include <stddef.h>
#include <stdint.h>

#define REPEATS_LENGTH 8

struct repeats;

struct repeats *repeats_new(void);
void repeats_free(struct repeats *repeats);

void repeats_add(struct repeats *repeats, uint64_t thing);

uint64_t repeats_seen(const struct repeats *repeats);

/* The distance at which most repeat, 0 where there is none, and at least how many do. */
uint64_t repeats_distance(const struct repeats *repeats, uint64_t *repeated);

#endif
