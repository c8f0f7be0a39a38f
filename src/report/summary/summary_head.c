// SPDX-License-Identifier: MIT
/*
 * The first lines of the summary. By hand: each has words of its own around its figures, and is
 * there only where they say something.
 */
#include "report/summary/summary_page.h"

#define OVERHEAD_LEAST 1.0 /* percent: less is not worth a line */

void summary_count(struct buf *out, uint64_t n, uint64_t seen)
{
	if (n != seen)
		buf_putc(out, '~');
	buf_u64(out, n);
}

/* ", 3 failed": one of the remarks after a figure, where it is not zero. */
static void remark(const struct summary_page *p, uint64_t n, uint64_t seen, const char *text)
{
	if (!n)
		return;
	buf_puts(p->text, ", ");
	summary_count(p->text, n, seen);
	buf_printf(p->text, " %s", text);
}

/* "Label: 12 bytes (12 B)" */
static void bytes_line(const struct summary_page *p, const char *label, uint64_t bytes,
                       uint64_t seen)
{
	buf_printf(p->text, "%s: ", label);
	summary_count(p->text, bytes, seen);
	buf_puts(p->text, " bytes (");
	buf_bytes(p->text, bytes);
	buf_putc(p->text, ')');
}

static void count_line(const struct summary_page *p, const char *label, uint64_t n, uint64_t seen)
{
	buf_printf(p->text, "%s: ", label);
	summary_count(p->text, n, seen);
}

/* A line that is there only where there is something to say. */
static void optional_line(const struct summary_page *p, const char *label, uint64_t n,
                          uint64_t seen)
{
	if (!n)
		return;
	count_line(p, label, n, seen);
	buf_putc(p->text, '\n');
}

static void add_calls(const struct summary_page *p)
{
	const struct tally *t = &p->told;

	buf_printf(p->text, "Total trace duration: %.3f seconds\n",
	           (double)(p->run->end_ns - p->run->begin_ns) / 1e9);
	buf_printf(p->text, "Processes with CUDA calls: %llu", (unsigned long long)t->processes);
	if (t->processes_without_calls)
		buf_printf(p->text, ", %llu without",
		           (unsigned long long)t->processes_without_calls);
	buf_putc(p->text, '\n');
	if (p->run->holds) {
		buf_printf(p->text, "Held while hooking: %llu times, at most ",
		           (unsigned long long)p->run->holds);
		buf_duration(p->text, p->run->longest_hold_ns);
		buf_putc(p->text, '\n');
	}
	if (p->run->overhead_most_percent >= OVERHEAD_LEAST)
		buf_printf(p->text,
		           "Tracing cost the busiest thread: %.1f %% of its own time, at most "
		           "%.0f %%\n",
		           p->run->overhead_percent, p->run->overhead_most_percent);
	count_line(p, "Total CUDA API calls", t->calls, p->tally->calls);
	remark(p, t->failed, p->tally->failed, "failed");
	remark(p, t->unfinished, p->tally->unfinished, "unfinished");
	buf_putc(p->text, '\n');
	if (!t->calls && !t->nested)
		return;
	optional_line(p, "Driver calls nested in them", t->nested, p->tally->nested);
	count_line(p, "Kernel launches", t->launches, p->tally->launches);
	buf_putc(p->text, '\n');
	optional_line(p, "Kernels captured into graphs, not run", t->captured_launches,
	              p->tally->captured_launches);
	optional_line(p, "Other calls captured into graphs", t->captured_other,
	              p->tally->captured_other);
	optional_line(p, "Graph launches", t->graph_launches, p->tally->graph_launches);
	optional_line(p, "Host functions launched", t->host_launches, p->tally->host_launches);
}

static void add_work(const struct summary_page *p)
{
	const struct memory_totals *all = memory_totals(p->tally->memory, MEMORY_NONE);
	const struct tally *t = &p->told;

	count_line(p, "Memory allocations", all->allocated.count, all->allocated.count);
	remark(p, all->freed.count, all->freed.count, "freed");
	remark(p, all->untracked.count, all->untracked.count, "not followed");
	if (p->run->estimate_scale > 1)
		buf_puts(p->text, ", in the time that was measured");
	bytes_line(p, "\nTotal memory allocated", all->allocated.bytes, all->allocated.bytes);
	if (all->allocated.count && p->run->estimate_scale <= 1) {
		buf_puts(p->text, ", peak ");
		buf_bytes(p->text, all->peak_bytes);
		buf_puts(p->text, ", live at the end ");
		buf_bytes(p->text, all->live.bytes);
	}
	count_line(p, "\nMemory transfers", t->all_copies.count, p->tally->all_copies.count);
	bytes_line(p, "\nTotal data transferred", t->all_copies.bytes, p->tally->all_copies.bytes);
	buf_putc(p->text, '\n');
	optional_line(p, "Memory sets", t->sets.count, p->tally->sets.count);
	count_line(p, "Synchronisations", t->syncs, p->tally->syncs);
	if (t->syncs && p->run->returns) {
		buf_puts(p->text, t->sync_ns != p->tally->sync_ns ? ", ~" : ", ");
		buf_duration(p->text, t->sync_ns);
		buf_puts(p->text, " in them");
	}
	buf_putc(p->text, '\n');
	if (!t->driver_calls)
		return;
	buf_printf(p->text, "Driver calls: %llu, ", (unsigned long long)t->driver_calls);
	buf_duration(p->text, t->driver_ns);
	buf_puts(p->text, " in them\n");
}

void summary_head(const struct summary_page *p)
{
	if (p->options->apart)
		buf_putc(p->text, '\n');
	buf_puts(p->text, "=== TRACE SUMMARY ===\n");
	add_calls(p);
	if (p->tally->calls + p->tally->nested) /* else a row of zeros */
		add_work(p);
}
