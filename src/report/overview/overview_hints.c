// SPDX-License-Identifier: MIT
/* What to look at next: rows that apply or do not, the most urgent first. Where the time goes and
 * what to change is the account's to say, above. */
#include "analysis/missed.h"
#include "base/array.h"
#include "base/buf.h"
#include "report/overview/overview.h"

static void add_count(struct buf *out, uint64_t n, const char *what)
{
	buf_u64(out, n);
	buf_printf(out, " %s%s", what, n == 1 ? "" : "s");
}

/* Each appends why, or nothing where it does not apply. */

static void if_lost(const struct overview *o, const struct run_info *run, struct buf *why)
{
	uint64_t lost = missed_of(run->lost, MISSED_FOR_RINGS); /* that can be helped */

	if (!lost)
		return;
	add_count(why, lost, "event");
	buf_puts(why, lost == 1 ? " was" : " were");
	buf_puts(why, " lost, so what is counted here is too little: more memory for the rings");
}

static void if_failed(const struct overview *o, const struct run_info *run, struct buf *why)
{
	uint64_t failed = o->tally->failed - o->tally->after_shutdown;

	if (!failed)
		return;
	add_count(why, failed, "call");
	buf_puts(why, " failed: which, how and when");
}

/* Where it is not known when the GPU was idle. */
static void if_launching(const struct overview *o, const struct run_info *run, struct buf *why)
{
	if (!gpu_tally_measured_ns(o->tally->gpu) &&
	    o->tally->launches + o->tally->graph_launches >= 2)
		buf_puts(why, "which kernels, how often, and of what sizes");
}

static void if_kept(const struct overview *o, const struct run_info *run, struct buf *why)
{
	const struct memory_totals *all = memory_totals(o->tally->memory, MEMORY_NONE);
	bool exited = all->exit.bytes > 0;

	if ((!exited && !all->live.bytes) || run->estimate_scale > 1)
		return;
	buf_bytes(why, exited ? all->exit.bytes : all->live.bytes);
	buf_puts(why, exited ? " were kept until the process ended, as is usual for caching "
	                       "allocators: the biggest, and who made them"
	                     : " were allocated when the trace ended: the biggest, and who made "
	                       "them");
}

static void findings(const struct overview *o, const struct run_info *run, struct buf *why)
{
	if (run->returns && o->tally->calls)
		buf_puts(why, "what costs time, with evidence and what to try");
}

static void timeline(const struct overview *o, const struct run_info *run, struct buf *why)
{
	buf_puts(why, "what each thread did, and when");
}

static void slowest(const struct overview *o, const struct run_info *run, struct buf *why)
{
	if (run->returns)
		buf_puts(why, "the longest calls, with their arguments");
}

static void functions(const struct overview *o, const struct run_info *run, struct buf *why)
{
	buf_puts(why, run->returns ? "all functions by time" : "all functions by calls");
}

/* Where there are no longest calls. */
static void threads(const struct overview *o, const struct run_info *run, struct buf *why)
{
	if (!run->returns)
		buf_puts(why, "how many calls and launches each thread made");
}

static const struct {
	const char *command;
	void (*why)(const struct overview *overview, const struct run_info *run, struct buf *why);
} hints[] = {
	{ "cuscope record --ring-size=SIZE", if_lost },
	{ "cuscope report FILE errors", if_failed },
	{ "cuscope report FILE launches", if_launching },
	{ "cuscope report FILE memory", if_kept },
	{ "cuscope report FILE findings", findings },
	{ "cuscope timeline FILE", timeline },
	{ "cuscope report FILE slowest", slowest },
	{ "cuscope report FILE cuda_api_sum", functions },
	{ "cuscope report FILE threads", threads },
};

const struct table_column overview_hint_columns[OVERVIEW_HINT_COLUMNS] = {
	{ "Command", TABLE_TEXT },
	{ "Why", TABLE_WORDS },
};

void overview_hints(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	AT_END(buf_free) struct buf why = { 0 };
	size_t n = 0;

	table_whole(table);
	for (size_t i = 0; i < ARRAY_SIZE(hints) && n < HINTS_MOST; i++) {
		buf_reset(&why);
		hints[i].why(overview, run, &why);
		if (!why.len)
			continue;
		n++;
		TABLE_LAST(table, hints[i].command, why.data);
	}
}
