// SPDX-License-Identifier: MIT
/* Findings about Xids: what the driver said went wrong, and the calls that failed of it. */
#include <stdlib.h>

#include "analysis/xids.h"
#include "cuda/error.h"
#include "cuda/xid.h"
#include "base/xalloc.h"
#include "report/findings/findings.h"

/* Xids of one process with one number. */
struct same_xids {
	const struct xid_row *first; /* the earliest of them */
	const struct xid_row *cause; /* the earliest that a call failed of; NULL: none did */
	uint64_t count, failed;
};

static bool is_same(const struct xid_row *a, const struct xid_row *b)
{
	return a->number == b->number && a->process == b->process;
}

/* False where an earlier row stands for it. */
static bool gather(const struct xid_row *rows, size_t n, size_t at, struct same_xids *same)
{
	*same = (struct same_xids){ .first = &rows[at] };
	for (size_t i = 0; i < n; i++) {
		const struct xid_row *row = &rows[i];

		if (!is_same(row, &rows[at]))
			continue;
		if (i < at)
			return false;
		same->count++;
		same->failed += row->failed;
		if (row->failed && !same->cause)
			same->cause = row;
	}
	return true;
}

static void add_error(struct buf *out, const struct function *function, int32_t code)
{
	const char *name = cuda_error_name(function->layer, code);

	if (name)
		buf_printf(out, "%s (%d)", name, code);
	else
		buf_printf(out, "error %d", code);
}

/* "; 3 calls failed of it, the first cuStreamSynchronize with CUDA_ERROR_ILLEGAL_ADDRESS (700)" */
static void add_failed(struct buf *out, const struct same_xids *same)
{
	const struct xid_row *cause = same->cause;

	if (!cause) {
		buf_puts(out, "; no call that was recorded failed of it");
		return;
	}
	buf_puts(out, "; ");
	buf_u64(out, same->failed);
	buf_printf(out, " %s failed of it, %s%s with ", same->failed == 1 ? "call" : "calls",
	           same->failed == 1 ? "" : "the first ", cause->function->name);
	add_error(out, cause->function, cause->code);
}

static void say(struct finding *row, const struct same_xids *same, const struct run_info *run,
                uint64_t more)
{
	const struct xid_row *first = same->first;
	const struct xid *xid = xid_find(first->number);
	uint64_t at_ns = first->time_ns > run->begin_ns ? first->time_ns - run->begin_ns : 0;
	struct buf text = { 0 };

	buf_printf(&text, "Xid %u (%s) ", first->number, xid ? xid->name : "of unknown meaning");
	if (same->count > 1)
		buf_printf(&text, "%llu times, first ", (unsigned long long)same->count);
	buf_puts(&text, "at ");
	buf_fixed(&text, (at_ns + 500) / 1000, 3);
	buf_puts(&text, " ms");
	if (!first->process->pid)
		buf_puts(&text, ", of no process that was traced");
	add_failed(&text, same);
	if (same->cause)
		buf_puts(&text, "; after such an error a context is of no use, and what it had "
		                "computed may be lost");
	if (first->text[0])
		buf_printf(&text, "; the driver says: %s", first->text);
	if (more)
		buf_printf(&text, "; %llu more Xids were not kept", (unsigned long long)more);
	row->seen = text.data;
}

void findings_add_xids(struct findings *findings, const struct xids *xids,
                       const struct run_info *run)
{
	const struct xid_row *rows;
	struct same_xids same;
	uint64_t more;
	size_t n;

	rows = xids_rows(xids, &n, &more);
	for (size_t i = 0; i < n; i++) {
		const struct xid *xid = xid_find(rows[i].number);
		struct finding *row;

		if (!gather(rows, n, i, &same))
			continue;
		row = findings_add(findings, "xids");
		row->pid = same.first->process->pid;
		row->count = same.count;
		row->title = xstrdup("errors of the GPU that the driver reported");
		say(row, &same, run, more);
		row->hint =
			xid ? xid->meaning : "look the number up in NVIDIA's list of Xid errors";
	}
}
