// SPDX-License-Identifier: MIT
#include "analysis/xids.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "cuda/driver_words.h"

#define BEFORE_NS  1000000000ull /* a call may return before the driver has written its line */
#define FAILED_MAX 64            /* failed calls that an Xid may still come for */

struct failed {
	const struct process *process;
	const struct function *function;
	int32_t code;
	uint64_t time_ns;
};

struct xids {
	struct xid_row rows[XIDS_KEPT];
	size_t n;
	uint64_t more;
	struct failed failed[FAILED_MAX]; /* the last ones, in a circle */
	uint64_t n_failed;
};

struct xids *xids_new(void)
{
	return xcalloc(1, sizeof(struct xids));
}

void xids_free(struct xids *xids)
{
	free(xids);
}

/*
 * Errors of the GPU's work, after which a context is of no use: illegal address and instruction,
 * ECC, launch timeout, NVLink, misaligned address, hardware stack and the like.
 */
static bool is_of_gpu(int32_t code)
{
	return (code >= 700 && code <= 702) || code == 214 || code == 220 || code == 221 ||
	       code == 226 || (code >= 714 && code <= 719) || code == 999;
}

static void join(struct xid_row *row, const struct failed *failed)
{
	if (!row->failed++) {
		row->function = failed->function;
		row->code = failed->code;
	}
}

static void take_failed(struct xids *xids, const struct event *event)
{
	struct failed failed = { event->process, event->call->function, event->call->result,
		                 event->time_ns };
	struct xid_row *last = NULL;

	if (!is_of_gpu(failed.code))
		return;
	xids->failed[xids->n_failed++ % FAILED_MAX] = failed;
	for (size_t i = 0; i < xids->n; i++) {
		if (xids->rows[i].process == event->process)
			last = &xids->rows[i];
	}
	if (last)
		join(last, &failed);
}

static void take_xid(struct xids *xids, const struct event *event)
{
	const struct call *call = event->call;
	uint64_t first = xids->n_failed > FAILED_MAX ? xids->n_failed - FAILED_MAX : 0;
	struct xid_row *row;

	if (xids->n == XIDS_KEPT) {
		xids->more++;
		return;
	}
	row = &xids->rows[xids->n++];
	*row = (struct xid_row){ .number = (uint32_t)call->args.arg[XID_NUMBER],
		                 .pid = (uint32_t)call->args.arg[XID_PID],
		                 .process = event->process,
		                 .time_ns = event->time_ns };
	snprintf(row->text, sizeof(row->text), "%s", call->text ? call->text : "");
	for (uint64_t i = first; i < xids->n_failed; i++) {
		const struct failed *failed = &xids->failed[i % FAILED_MAX];

		if (failed->process == event->process &&
		    failed->time_ns + BEFORE_NS >= row->time_ns)
			join(row, failed);
	}
}

void xids_event(struct xids *xids, const struct event *event)
{
	struct managed what;

	if (event->type == EVENT_CALL &&
	    (event->call->flags & (CALL_FAILED | CALL_NESTED)) == CALL_FAILED)
		take_failed(xids, event);
	else if (event->type == EVENT_OTHER_CALL && event->call->function->layer == LAYER_KERNEL &&
	         managed_parse(event->call->function->name, &what) && what.kind == MANAGED_XID &&
	         !what.sum)
		take_xid(xids, event);
}

const struct xid_row *xids_rows(const struct xids *xids, size_t *n, uint64_t *more)
{
	*n = xids->n;
	*more = xids->more;
	return xids->rows;
}
