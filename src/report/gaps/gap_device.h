/* SPDX-License-Identifier: MIT */
/*
 * What is remembered of one GPU while its gaps are judged: the work that ended last, on whatever
 * stream, and when it was not measured.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_DEVICE_H
#define CUSCOPE_REPORT_GAPS_GAP_DEVICE_H

#include "report/gaps/gap_cause.h"

struct gap_device;

struct gap_device *gap_device_new(void);
void gap_device_free(struct gap_device *device);

/* Work that ended; all work of the GPU comes in the order of its ends. */
void gap_device_end(struct gap_device *device, const struct gap_work *work, bool nonblocking);

/*
 * What released a stream: work of another stream that ended when the gap from `begin_ns` to the
 * stream's next `work` did. Of enum gap_release; 0: nothing. `nonblocking` is the stream of `work`.
 */
unsigned gap_device_release(const struct gap_device *device, const struct gap_work *work,
                            bool nonblocking, uint64_t begin_ns);

/* A range of kind RANGE_NOT_MEASURED; they come in the order of their ends. */
void gap_device_not_measured(struct gap_device *device, const struct range *range);

/* Whether all of a time was measured, as far as that is remembered. */
bool gap_device_was_measured(const struct gap_device *device, uint64_t begin_ns, uint64_t end_ns);

#endif
