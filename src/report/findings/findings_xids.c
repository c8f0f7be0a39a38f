// SPDX-License-Identifier: MIT
/* Findings about Xids: what the driver said went wrong, and the calls that failed of it. */
#include <stdlib.h>

#include "analysis/xids.h"
#include "cuda/error.h"
#include "cuda/xid.h"
#include "report/findings/findings_rules.h"

/* Xids of one process with one number. */
struct same_xids {
	const struct xid_row *first; /* the earliest of them */
	const struct xid_row *cause; /* the earliest that a call failed of; NULL: none did */
	uint64_t count, failed;
};

static void *make_nothing(void)
{
	return xcalloc(1, 1);
}

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
	finding_count(out, same->failed, "call");
	buf_printf(out, " failed of it, %s%s with ", same->failed == 1 ? "" : "the first ",
	           cause->function->name);
	add_error(out, cause->function, cause->code);
}

static void say(struct finding *finding, const struct same_xids *same, const struct run_info *run,
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
	if (first->text[0])
		buf_printf(&text, "; the driver says: %s", first->text);
	if (more)
		buf_printf(&text, "; %llu more Xids were not kept", (unsigned long long)more);
	finding_say(finding, &text);
}

static void tell(const struct finding_verdicts *verdicts, const struct finding_rule *rule,
                 const struct same_xids *same, uint64_t more)
{
	const struct process *of = same->first->process;
	const struct finding_process *known = finding_process(verdicts, of->id);
	const struct finding_process alone = { .process = of }; /* it made no call of CUDA's */
	const struct xid *xid = xid_find(same->first->number);
	struct finding *finding = findings_add(verdicts, rule, known ? known : &alone);

	finding->count = same->count;
	finding->first_of_all = true;
	finding->example.begin_ns = same->first->time_ns; /* what they are sorted by */
	say(finding, same, verdicts->run, more);
	finding->estimate =
		same->cause
			? "no time: after such an error a context is of no use, and what it had "
			  "computed may be lost"
			: "no time: what it cost is not known";
	finding->suggestion =
		xid ? xid->meaning : "look the number up in NVIDIA's list of Xid errors";
}

static void judge_xids(void *state, const struct finding_rule *rule,
                       const struct finding_verdicts *verdicts)
{
	const struct xid_row *rows;
	struct same_xids same;
	uint64_t more;
	size_t n;

	(void)state;
	if (!verdicts->xids) {
		findings_cannot_judge(verdicts, rule, "needs record --kernel");
		return;
	}
	rows = xids_rows(verdicts->xids, &n, &more);
	for (size_t i = 0; i < n; i++) {
		if (gather(rows, n, i, &same))
			tell(verdicts, rule, &same, more);
	}
}

const struct finding_rule rule_xids = {
	.name = "xids",
	.title = "errors of the GPU that the driver reported",
	.create = make_nothing,
	.judge = judge_xids,
	.free = free,
};
