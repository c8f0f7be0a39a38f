// SPDX-License-Identifier: MIT
/* What to look at next: rows that apply or do not, the most urgent first. */
#include <string.h>

#include "analysis/missed.h"
#include "base/array.h"
#include "base/buf.h"
#include "report/overview/overview.h"

#define MANY_COPIES 1000
#define SMALL_COPY  (64 << 10) /* below, a copy's time is mostly that of asking for it */

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

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

static void if_waiting(const struct overview *o, const struct run_info *run, struct buf *why)
{
	double waiting = share(o->tally->sync_ns, overview_call_ns(o));

	if (waiting >= 0.25)
		buf_printf(why,
		           "%.0f %% of the time in CUDA calls is waiting for the GPU: which "
		           "streams",
		           100 * waiting);
}

static void if_idle(const struct overview *o, const struct run_info *run, struct buf *why)
{
	uint64_t all = gpu_tally_measured_ns(o->tally->gpu);
	double busy = share(gpu_tally_busy_ns(o->tally->gpu), all);

	if (all && busy < 0.5)
		buf_printf(why, "GPUs were busy %.0f %% of the time: when they were idle, and why",
		           100 * busy);
}

/* Where it is not known when the GPU was idle. */
static void if_launching(const struct overview *o, const struct run_info *run, struct buf *why)
{
	if (!gpu_tally_measured_ns(o->tally->gpu) &&
	    o->tally->launches + o->tally->graph_launches >= 2)
		buf_puts(why, "which kernels, how often, and what happened between launches");
}

static void if_allocating(const struct overview *o, const struct run_info *run, struct buf *why)
{
	double allocating = share(o->class_ns[CLASS_MEMORY], overview_call_ns(o));

	if (allocating >= 0.1)
		buf_printf(why,
		           "%.0f %% of the time in CUDA calls is allocating and freeing: memory "
		           "that is kept, or a pool, saves it",
		           100 * allocating);
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

static void if_small_copies(const struct overview *o, const struct run_info *run, struct buf *why)
{
	const struct transfer_count *copies = &o->tally->all_copies;
	uint64_t sized = copies->count - copies->unsized;

	if (sized < MANY_COPIES || copies->bytes / sized >= SMALL_COPY)
		return;
	buf_u64(why, sized);
	buf_puts(why, " copies of ");
	buf_bytes(why, copies->bytes / sized);
	buf_puts(why, " on average: fewer and larger ones cost less");
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
	{ "cuscope report FILE streams", if_waiting },
	{ "cuscope report FILE gaps", if_idle },
	{ "cuscope report FILE launches", if_launching },
	{ "cuscope report FILE cuda_api_sum", if_allocating },
	{ "cuscope report FILE streams", if_small_copies },
	{ "cuscope report FILE memory", if_kept },
	{ "cuscope report FILE findings", findings },
	{ "cuscope timeline FILE", timeline },
	{ "cuscope report FILE slowest", slowest },
	{ "cuscope report FILE cuda_api_sum", functions },
	{ "cuscope report FILE threads", threads },
};

static const struct table_column columns[] = {
	{ "Command", TABLE_TEXT },
	{ "Why", TABLE_WORDS },
};

/* One command is told once, for the more urgent reason. */
static bool told_before(const char *const *told, size_t n, const char *command)
{
	while (n--) {
		if (!strcmp(told[n], command))
			return true;
	}
	return false;
}

int overview_hints(struct overview *overview, const struct run_info *run, struct err *err)
{
	struct table *table = overview->writer.table;
	const char *told[HINTS_MOST];
	struct buf why = { 0 };
	size_t n = 0;

	table_begin(table, "next", "What to look at next", TABLE_COLUMNS(columns));
	table_whole(table);
	for (size_t i = 0; i < ARRAY_SIZE(hints) && n < HINTS_MOST; i++) {
		buf_reset(&why);
		if (!told_before(told, n, hints[i].command))
			hints[i].why(overview, run, &why);
		if (!why.len)
			continue;
		told[n++] = hints[i].command;
		table_text(table, hints[i].command);
		table_text(table, why.data);
		table_end_row(table);
	}
	buf_free(&why);
	return table_end(table, err);
}
