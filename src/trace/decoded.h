/* SPDX-License-Identifier: MIT */
/*
 * What the values of an event in a file mean (format.h lists them). They are what the file says: a
 * number that this version has no word for is one that is not known.
 */
#ifndef CUSCOPE_TRACE_DECODED_H
#define CUSCOPE_TRACE_DECODED_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"
#include "trace/names.h"

void decoded_activity(struct activity *activity, const uint64_t *values);

/* False where a name is not there. Number 0 is that of a range without one. */
bool decoded_range(struct range *range, const struct names *names, const uint64_t *values);
bool decoded_sample(struct sample *sample, const struct names *names, const uint64_t *values);

#endif
