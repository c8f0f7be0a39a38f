/* SPDX-License-Identifier: MIT */
/*
 * Names of the events of managed memory and of the driver, as functions of the layer `kernel` have
 * them in traces: "migration CPU to GPU0 (prefetch)". Sums have the same name with "sum of " before
 * it. Reports read names back, so that a trace file needs no shapes of its own for them.
 */
#pragma once

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

/*
 * Xids: the numbers under which NVIDIA's driver reports what went wrong with a GPU. Meanings in a
 * few words, and which errors of CUDA's a program sees of them.
 */

struct xid {
	uint32_t number;
	const char *name;    /* "GPU memory page fault" */
	const char *meaning; /* a sentence or two */
	bool program;        /* mostly a fault of the program, not of the machine */
};

const struct xid *xid_find(uint32_t number); /* NULL: not known */

/* What the driver says of one, or a line of the kernel's log that has it. */
struct xid_text {
	uint32_t number; /* 0 in what has none */
	uint32_t pid;    /* 0: none is named */
	char device[32]; /* "0000:18:00", as the driver writes it; "": not known */
	char name[32];   /* of the process; "": not known */
	char text[160];  /* what follows these */
};

/* "NVRM: Xid (PCI:0000:18:00): 31, pid=4242, name=train, Ch 00000010, ..."; false: it is none. */
bool xid_parse_line(const char *line, struct xid_text *xid);

/* "pid=4242, name=train, Ch 00000010, ...": number and device are left as they are. */
void xid_parse_text(const char *text, struct xid_text *xid);
