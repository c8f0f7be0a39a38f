/* SPDX-License-Identifier: MIT */
/* The DETAILS of a line in the three parts that the table fits into a line. Private
 * to src/output. */
#ifndef CUSCOPE_OUTPUT_DESCRIBE_H
#define CUSCOPE_OUTPUT_DESCRIBE_H

#include "base/buf.h"
#include "output/delays.h"
#include "trace/event.h"

/* Each may be empty; describe_call() is those that are not with a blank between. */
struct description {
	struct buf subject; /* "vectorAdd(float const*)", a range's name: may be shortened */
	struct buf words;   /* "grid=(196,1,1) block=(256,1,1) shmem=0 stream=0" */
	struct buf result;  /* "= cudaErrorMemoryAllocation (2)": never cut off */
};

/* Replaces what was there; a zeroed description is an empty one. */
void describe(const struct call *call, struct description *description);
void describe_activity(const struct activity *activity, const struct delay *delay,
                       struct description *description);
void describe_range(const struct range *range, struct description *description);
/* What a thread waited for, and who ended or prolonged it: of `record --host-waits`. */
void describe_wait(const struct sample *sample, struct description *description);
void description_free(struct description *description);

#endif
