/* SPDX-License-Identifier: MIT */
/*
 * Names of the events of managed memory and of the driver, as functions of the layer `kernel` have
 * them in traces: "migration CPU to GPU0 (prefetch)". Sums have the same name with "sum of " before
 * it. Reports read names back, so that a trace file needs no shapes of its own for them.
 */
#ifndef CUSCOPE_CUDA_MANAGED_H
#define CUSCOPE_CUDA_MANAGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum managed_kind {
	MANAGED_CPU_FAULT,
	MANAGED_GPU_FAULT,
	MANAGED_MIGRATION,
	MANAGED_REVOCATION,
	MANAGED_THRASHING,
	MANAGED_THROTTLING,
	MANAGED_FATAL_FAULT,
	MANAGED_FAULT_BATCH,
	MANAGED_INTERRUPT,
	MANAGED_WAIT,
	MANAGED_XID,
	MANAGED_KINDS
};

#define MANAGED_NOT_KNOWN 255
#define MANAGED_SUM       "sum of "
#define MANAGED_SIZES     12 /* classes: 4 KiB (or 4 ms) and less, each the double of the last */

/* Of an event: processors are 0 for the host, else a GPU's index + 1. */
struct managed {
	uint8_t kind, cause, src, dst;
	bool sum;
	uint32_t xid;
};

#define MANAGED_NAME 80

/* Writes the name of its function; the arguments that the function has, as cuda/row.h wants them.
 */
const char *managed_name(const struct managed *event, char name[MANAGED_NAME]);
const char *managed_arguments(const struct managed *event);
const char *managed_library(const struct managed *event); /* "nvidia-uvm" or "nvidia" */

/* What a name means; false: it is none of these. */
bool managed_parse(const char *name, struct managed *event);

const char *managed_cause_name(uint8_t cause); /* of a migration; "" where it is not known */

/* Where values are among the arguments: of sums, of single ones, of Xids. */
enum { SUM_COUNT, SUM_BYTES, SUM_FIRST, SUM_LAST, SUM_TIME };
enum { SINGLE_ADDRESS, SINGLE_BYTES };
enum { WAIT_TO_INTERRUPT, WAIT_TO_EVENT, WAIT_TO_RUN };
enum { XID_NUMBER, XID_PID };

#endif
