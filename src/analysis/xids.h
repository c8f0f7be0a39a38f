/* SPDX-License-Identifier: MIT */
/*
 * Xids that were recorded (--kernel), each with the calls of its process that failed with it: from
 * a second before the driver told of it, with an error that a context does not get over.
 */
#pragma once

#include "trace/event.h"

#define XIDS_KEPT 256 /* further ones are counted */

struct xid_row {
	uint32_t number, pid;          /* pid: as the driver names it; 0: none */
	const struct process *process; /* that it is of; "[driver]": of none that is traced */
	uint64_t time_ns;
	char text[192];
	uint64_t failed;                 /* calls */
	const struct function *function; /* of the first; NULL: none failed */
	int32_t code;
};

/* A plain part of its owner: see memory.h. */
struct xids;

struct xids *xids_new(void);
void xids_free(struct xids *xids);
void xids_event(struct xids *xids, const struct event *event);

const struct xid_row *xids_rows(const struct xids *xids, size_t *n, uint64_t *more);
