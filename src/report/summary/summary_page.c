// SPDX-License-Identifier: MIT
/* Text and json have the same parts in the same order; each table is described once. */
#include "report/summary/summary_page.h"

#include <stdlib.h>

#include "analysis/missed.h"
#include "base/array.h"
#include "base/text.h"
#include "cuda/error.h"

/* ---- summary head -------------------------------------------------------------------------- */

/*
 * The first lines of the summary. By hand: each has words of its own around its figures, and is
 * there only where they say something.
 */

#define OVERHEAD_LEAST 1.0 /* percent: less is not worth a line */

void summary_count(struct buf *out, uint64_t n, uint64_t seen)
{
	if (n != seen)
		buf_putc(out, '~');
	buf_u64(out, n);
}

/* ", 3 failed": one of the remarks after a figure, where it is not zero. */
static void head_remark(const struct summary_page *p, uint64_t n, uint64_t seen, const char *text)
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
	buf_printf(p->text, " bytes (%s)", TEXT_BYTES(bytes));
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
	buf_printf(p->text, "Processes with CUDA calls: %lu", t->processes);
	if (t->processes_without_calls)
		buf_printf(p->text, ", %lu without", t->processes_without_calls);
	buf_putc(p->text, '\n');
	if (p->run->holds)
		buf_printf(p->text, "Held while hooking: %lu times, at most %s\n", p->run->holds,
		           TEXT_DURATION(p->run->longest_hold_ns));
	if (p->run->overhead_most_percent >= OVERHEAD_LEAST)
		buf_printf(p->text,
		           "Tracing cost the busiest thread: %.1f %% of its own time, at most "
		           "%.0f %%\n",
		           p->run->overhead_percent, p->run->overhead_most_percent);
	count_line(p, "Total CUDA API calls", t->calls, p->tally->calls);
	head_remark(p, t->failed, p->tally->failed, "failed");
	head_remark(p, t->unfinished, p->tally->unfinished, "unfinished");
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
	head_remark(p, all->freed.count, all->freed.count, "freed");
	head_remark(p, all->untracked.count, all->untracked.count, "not followed");
	if (p->run->estimate_scale > 1)
		buf_puts(p->text, ", in the time that was measured");
	bytes_line(p, "\nTotal memory allocated", all->allocated.bytes, all->allocated.bytes);
	if (all->allocated.count && p->run->estimate_scale <= 1)
		buf_printf(p->text, ", peak %s, live at the end %s", TEXT_BYTES(all->peak_bytes),
		           TEXT_BYTES(all->live.bytes));
	count_line(p, "\nMemory transfers", t->all_copies.count, p->tally->all_copies.count);
	bytes_line(p, "\nTotal data transferred", t->all_copies.bytes, p->tally->all_copies.bytes);
	buf_putc(p->text, '\n');
	optional_line(p, "Memory sets", t->sets.count, p->tally->sets.count);
	count_line(p, "Synchronisations", t->syncs, p->tally->syncs);
	if (t->syncs && p->run->returns)
		buf_printf(p->text, ", %s%s in them", t->sync_ns != p->tally->sync_ns ? "~" : "",
		           TEXT_DURATION(t->sync_ns));
	buf_putc(p->text, '\n');
	if (t->driver_calls)
		buf_printf(p->text, "Driver calls: %lu, %s in them\n", t->driver_calls,
		           TEXT_DURATION(t->driver_ns));
}

/* The head, as lines: figures that are no table. */
static void summary_head(const struct summary_page *p)
{
	if (p->options->apart)
		buf_putc(p->text, '\n');
	buf_puts(p->text, "=== TRACE SUMMARY ===\n");
	add_calls(p);
	if (p->tally->calls + p->tally->nested) /* else a row of zeros */
		add_work(p);
}

/* ---- summary page -------------------------------------------------------------------------- */

#define FORMAT_VERSION 1
#define TOP_DEFAULT    20

const char *summary_title(const struct summary_page *p, size_t n, const char *what, char *title,
                          size_t size)
{
	if (n > p->top)
		snprintf(title, size, "TOP %zu OF %zu %s", p->top, n, what);
	else
		snprintf(title, size, "%s", what);
	return title;
}

int summary_direction(const struct summary_page *p, int i)
{
	return p->text ? (i + 1) % DIRECTION_COUNT : i;
}

/* ---- the run and its calls: members of the json; the text has them in its head ------------- */

static const struct table_column run_members[] = {
	{ TABLE_JSON(TABLE_AT(struct run_info, holds), "holds") },
	{ TABLE_JSON(TABLE_AT(struct run_info, longest_hold_ns), "longest_hold_ns") },
	{ TABLE_JSON(TABLE_AT(struct run_info, overhead_percent), "overhead_percent"),
	  .decimals = 2 },
	{ TABLE_JSON(TABLE_AT(struct run_info, overhead_most_percent), "overhead_most_percent"),
	  .decimals = 2 },
};

#define OF_ALL(member) TABLE_AT(struct tally, member)

static const struct table_column call_members[] = {
	{ TABLE_JSON(OF_ALL(calls), "calls.total") },
	{ TABLE_JSON(OF_ALL(failed), "calls.failed") },
	{ TABLE_JSON(OF_ALL(unfinished), "calls.unfinished") },
	{ TABLE_JSON(OF_ALL(entry_only), "calls.entry_only") },
	{ TABLE_JSON(OF_ALL(nested), "calls.nested") },
	{ TABLE_JSON(OF_ALL(launches), "launches.kernels") },
	{ TABLE_JSON(OF_ALL(graph_launches), "launches.graphs") },
	{ TABLE_JSON(OF_ALL(host_launches), "launches.host_functions") },
	{ TABLE_JSON(OF_ALL(captured_launches), "launches.captured_kernels") },
	{ TABLE_JSON(OF_ALL(captured_other), "launches.captured_other") },
};

static void add_run(const struct summary_page *p)
{
	const struct run_info *run = p->run;

	json_u64(p->json, "format", FORMAT_VERSION);
	json_fixed(p->json, "duration_seconds", run->end_ns - run->begin_ns, 9);
	json_s64(p->json, "begin_realtime_ns", (int64_t)run->begin_ns + run->realtime_offset_ns);
	json_bool(p->json, "returns", run->returns);
	json_bool(p->json, "estimated", run->estimate_scale > 1);
	json_u64(p->json, "processes", p->tally->processes);
	json_u64(p->json, "processes_without_calls", p->tally->processes_without_calls);
	table_members(p->table, TABLE_COLUMNS(run_members), run);
	table_members(p->table, TABLE_COLUMNS(call_members), &p->told);
}

/* ---- memory -------------------------------------------------------------------------------- */

struct summary_page_memory_line {
	const char *kind;
	struct memory_totals of;
};

#define OF(member) TABLE_AT(struct summary_page_memory_line, of.member)

/* Peaks and what is live are known only where every allocation and free was seen. */
static const struct table_column memory_columns[] = {
	{ "KIND", TABLE_TEXT, TABLE_AT(struct summary_page_memory_line, kind), "", TABLE_MEMBER },
	{ "COUNT", TABLE_NUMBER, OF(allocated.count), "allocated.count" },
	{ "ALLOCATED", TABLE_BYTES, OF(allocated.bytes), "allocated.bytes" },
	{ TABLE_JSON(OF(freed.count), "freed.count") },
	{ "FREED", TABLE_BYTES, OF(freed.bytes), "freed.bytes" },
	{ "PEAK", TABLE_BYTES, OF(peak_bytes), "peak_bytes", TABLE_EXACT },
	{ TABLE_JSON(OF(live.count), "live_count"), TABLE_EXACT },
	{ "LIVE AT END", TABLE_BYTES, OF(live.bytes), "live_bytes", TABLE_EXACT },
	{ "RELEASED BY EXIT", TABLE_BYTES, OF(exit.bytes), NULL, TABLE_EXACT },
	{ TABLE_JSON(OF(exit.count), "released_by_exit.count") },
	{ TABLE_JSON(OF(exit.bytes), "released_by_exit.bytes") },
	{ TABLE_JSON(OF(context.count), "released_with_context.count") },
	{ TABLE_JSON(OF(context.bytes), "released_with_context.bytes") },
	{ TABLE_JSON(OF(replaced.count), "replaced.count") },
	{ TABLE_JSON(OF(replaced.bytes), "replaced.bytes") },
	{ TABLE_JSON(OF(untracked.count), "untracked.count") },
	{ TABLE_JSON(OF(untracked.bytes), "untracked.bytes") },
};

static void note_memory(const struct summary_page *p, const struct memory_count *n,
                        const char *what)
{
	table_note_if(p->table, n->count, "%lu allocation%s (%s) %s", n->count,
	              n->count == 1 ? "" : "s", TEXT_BYTES(n->bytes), what);
}

static void note_count(const struct summary_page *p, const char *before, uint64_t n,
                       const char *behind)
{
	table_note_if(p->table, n, "%s%lu%s", before, n, behind);
}

static void note_all_memory(const struct summary_page *p, const struct memory_totals *all,
                            uint64_t unknown)
{
	note_memory(p, &all->exit, "never freed: released by process exit");
	note_memory(p, &all->context, "released with a context or device reset");
	note_memory(p, &all->replaced, "whose free was not seen: the address was given out again");
	note_memory(p, &all->untracked,
	            "not followed: no address was recorded, or 65,536 others were live");
	note_count(p, "", unknown,
	           unknown == 1 ? " free of memory whose allocation was not recorded"
	                        : " frees of memory whose allocation was not recorded");
}

static void add_memory(const struct summary_page *p)
{
	const struct memory *memory = p->tally->memory;
	struct summary_page_memory_line all = { .of = *memory_totals(memory, MEMORY_NONE) };
	uint64_t unknown = memory_unknown_frees(memory);
	size_t n = ARRAY_SIZE(memory_columns);

	if (p->json) {
		json_open(p->json, "memory", '{');
		table_members(p->table, memory_columns + 1, n - 1, &all);
		json_u64(p->json, "unknown_frees", unknown);
	}
	table_begin(p->table, "kinds", "MEMORY BY KIND", memory_columns, n);
	table_whole(p->table);
	for (int kind = MEMORY_NONE + 1; kind < MEMORY_COUNT; kind++) {
		struct summary_page_memory_line line = { api_memory_name(kind),
			                                 *memory_totals(memory, kind) };

		if (line.of.allocated.count)
			table_row(p->table, &line);
	}
	note_all_memory(p, &all.of, unknown);
	table_end(p->table, NULL);
	if (p->json)
		json_close(p->json, '}');
}

/* ---- transfers ----------------------------------------------------------------------------- */

struct summary_page_transfer_line {
	const char *direction;
	uint64_t count, bytes, average, unsized;
};

#define LINE(member) TABLE_AT(struct summary_page_transfer_line, member)

static const struct table_column transfer_columns[] = {
	{ "DIRECTION", TABLE_TEXT, LINE(direction), "", TABLE_MEMBER },
	{ "COUNT", TABLE_NUMBER, LINE(count), "count", TABLE_SCALED },
	{ "BYTES", TABLE_BYTES, LINE(bytes), "bytes", TABLE_SCALED },
	{ "AVERAGE", TABLE_BYTES, LINE(average) },
	{ TABLE_JSON(LINE(unsized), "unknown_size"), TABLE_SCALED },
};

static const struct table_column sync_members[] = {
	{ TABLE_JSON(OF_ALL(syncs), "syncs.count") },
	{ TABLE_JSON(OF_ALL(sync_ns), "syncs.blocked_ns") },
};

static const struct table_column driver_members[] = {
	{ TABLE_JSON(OF_ALL(driver_calls), "driver_calls.count") },
	{ TABLE_JSON(OF_ALL(driver_ns), "driver_calls.ns") },
};

/* Bytes of calls none of which says them are not known, which is not 0. */
static struct summary_page_transfer_line transfer_line(const char *direction,
                                                       const struct transfer_count *n)
{
	uint64_t sized = n->count - n->unsized;

	return (struct summary_page_transfer_line){
		.direction = direction,
		.count = n->count,
		.bytes = n->count && !sized ? TABLE_NOT_KNOWN : n->bytes,
		.average = sized ? n->bytes / sized : TABLE_NOT_KNOWN,
		.unsized = n->unsized,
	};
}

static bool can_be_scaled(const struct summary_page *p, const struct transfer_count *n)
{
	return recurrence_is(&p->tally->work[n == &p->tally->sets ? OP_SET : OP_COPY]);
}

static void add_transfer(const struct summary_page *p, const char *direction,
                         const struct transfer_count *n)
{
	struct summary_page_transfer_line line = transfer_line(direction, n);

	table_as_seen(p->table, !can_be_scaled(p, n));
	if (line.count)
		table_row(p->table, &line);
}

/* An object that is open by its key, or the one around it. */
static void transfer_members(const struct summary_page *p, const char *key,
                             const struct transfer_count *n)
{
	struct summary_page_transfer_line line = transfer_line(NULL, n);

	json_open(p->json, key, '{');
	table_as_seen(p->table, !can_be_scaled(p, n));
	table_members(p->table, transfer_columns + 1, ARRAY_SIZE(transfer_columns) - 1, &line);
}

static void add_transfers(const struct summary_page *p)
{
	const struct tally *t = p->tally;

	if (p->json)
		transfer_members(p, "transfers", &t->all_copies);
	table_begin(p->table, "directions", "TRANSFERS BY DIRECTION",
	            TABLE_COLUMNS(transfer_columns));
	table_whole(p->table);
	for (int i = 0; i < DIRECTION_COUNT; i++) {
		int d = summary_direction(p, i);

		add_transfer(p, d ? api_direction_name(d) : "unknown", &t->copies[d]);
	}
	if (p->text)
		add_transfer(p, "set", &t->sets);
	note_count(p, "calls that do not say how many bytes, in COUNT only: ",
	           p->told.all_copies.unsized + p->told.sets.unsized, "");
	table_end(p->table, NULL);
	if (!p->json)
		return;
	json_close(p->json, '}');
	transfer_members(p, "sets", &t->sets);
	json_close(p->json, '}');
	table_members(p->table, TABLE_COLUMNS(sync_members), &p->told);
	if (p->tally->driver_calls)
		table_members(p->table, TABLE_COLUMNS(driver_members), t);
}

/* ---- errors and kernels -------------------------------------------------------------------- */

struct error_line {
	const char *function, *name;
	int64_t code;
	uint64_t count;
	struct buf shown; /* "cudaErrorMemoryAllocation (2)" */
};

static const struct table_column error_columns[] = {
	{ "FUNCTION", TABLE_TEXT, TABLE_AT(struct error_line, function), "function" },
	{ TABLE_JSON(TABLE_AT(struct error_line, code), "code") },
	{ TABLE_JSON(TABLE_AT(struct error_line, name), "error") },
	{ "COUNT", TABLE_NUMBER, TABLE_AT(struct error_line, count), "count", TABLE_SCALED },
	{ "ERROR", TABLE_TEXT, TABLE_AT(struct error_line, shown) },
};

static void add_error(const struct summary_page *p, const struct error_row *row)
{
	const struct function *function = row->function;
	const char *name = cuda_error_name(function->layer, row->code);
	struct error_line line = {
		.function = function->name,
		.name = name ? name : "",
		.code = row->code,
		.count = row->count,
	};

	buf_printf(&line.shown, "%s (%d)", name ? name : "unknown error", row->code);
	table_as_seen(p->table, !tally_is_error_scalable(p->tally, row));
	table_row(p->table, &line);
	buf_free(&line.shown);
}

static void add_errors(const struct summary_page *p)
{
	size_t n;
	const struct error_row *rows = errors_rows(p->tally->errors, &n);

	table_begin(p->table, "errors", "ERRORS", TABLE_COLUMNS(error_columns));
	table_whole(p->table);
	for (size_t i = 0; i < n; i++)
		add_error(p, &rows[i]);
	note_count(p, "harmless: ", p->tally->after_shutdown,
	           " that came at the end of the process, when CUDA was shut down already");
	table_end(p->table, NULL);
}

#define KERNEL(member) TABLE_AT(struct kernel_tally, member)

static const struct table_column kernel_columns[] = {
	{ TABLE_JSON(KERNEL(name), "name") },
	{ TABLE_JSON(KERNEL(resolved), "resolved") },
	{ "LAUNCHES", TABLE_NUMBER, KERNEL(launches), "launches", TABLE_SCALED },
	{ "CAPTURED", TABLE_NUMBER, KERNEL(captured), "captured", .needs = SUMMARY_CAPTURED },
	{ "KERNEL", TABLE_TEXT, KERNEL(name) },
};

static void add_kernels(const struct summary_page *p)
{
	char title[80];
	size_t n;
	AT_END(at_end_free) const struct kernel_tally **rows = tally_kernels(p->tally, &n);

	table_begin(p->table, "kernels",
	            summary_title(p, n, "KERNELS BY LAUNCHES", title, sizeof(title)),
	            TABLE_COLUMNS(kernel_columns));
	for (size_t i = 0; i < n; i++) {
		table_as_seen(p->table, !recurrence_is(&rows[i]->seen));
		table_row(p->table, rows[i]);
	}
	table_end(p->table, NULL);
}

/* ---- what was missed, and the whole -------------------------------------------------------- */

static void add_missed_text(const struct summary_page *p, const struct memory_count *unresolved)
{
	buf_printf(p->text, p->options->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n",
	           "WHAT WAS MISSED");
	if (p->run->estimate_scale > 1)
		buf_printf(p->text,
		           "  counts marked ~ are estimates: multiplied by %.2f. All others are "
		           "what was seen: of memory and of other calls that come in pairs, and "
		           "of what was seen at fewer than %d times\n",
		           p->run->estimate_scale, RECURRENCE_TIMES);
	missed_text(p->text, p->run);
	if (unresolved->count)
		buf_printf(p->text, "  kernel names not resolved: %lu (launches: %lu)\n",
		           unresolved->count, unresolved->bytes);
}

static void add_missed(const struct summary_page *p)
{
	struct memory_count unresolved = tally_unresolved(p->tally);

	if (p->text) {
		add_missed_text(p, &unresolved);
		return;
	}
	json_open(p->json, "missed", '{');
	missed_json(p->json, p->run);
	json_u64(p->json, "unresolved_kernels", unresolved.count);
	json_u64(p->json, "unresolved_launches", unresolved.bytes);
	json_close(p->json, '}');
}

static unsigned what_there_is(const struct summary_page *p)
{
	const struct tally *t = p->tally;
	bool wide = !p->options->width || p->options->width >= SUMMARY_ROOM;
	bool ranks = p->run->returns && HASH_COUNT(t->functions) <= p->top;

	if (p->json)
		return ~0u;
	return (p->run->returns && wide ? SUMMARY_WIDE : 0) |
	       (p->run->returns && (wide || !ranks) ? SUMMARY_P95 : 0) |
	       (p->run->returns ? SUMMARY_RETURNS : 0) | (ranks ? SUMMARY_RANKS : 0) |
	       (t->nested ? SUMMARY_NESTED : 0) | (t->captured_launches ? SUMMARY_CAPTURED : 0) |
	       (summary_has_nccl(t) ? SUMMARY_NCCL : 0);
}

static void add_all(const struct summary_page *p)
{
	if (p->text)
		summary_head(p);
	else
		add_run(p);
	add_memory(p);
	add_transfers(p);
	add_errors(p);
	if (p->json)
		json_fixed(p->json, "percentile_error", (uint64_t)(SKETCH_ERROR * 1e6), 6);
	summary_functions(p);
	add_kernels(p);
	summary_gpu(p);
	add_missed(p);
}

static int write_page(struct summary_page *p, struct err *err)
{
	struct table_options table = {
		.page = p->text,
		.json = p->json,
		.width = p->options->width,
		.color = p->options->color,
		.top = p->top,
		.scale = p->run->estimate_scale,
		.has = what_there_is(p),
	};
	int rc;

	p->told = tally_estimated(p->tally, p->run->estimate_scale);
	p->missed = missed_functions_new(p->run);
	p->table = table_open(&table, false);
	add_all(p);
	rc = table_failed(p->table, err);
	table_close(p->table);
	missed_functions_free(p->missed);
	return rc;
}

int summary_text(const struct tally *tally, const struct run_info *run,
                 const struct summary_options *options, struct buf *out, struct err *err)
{
	struct summary_page page = { .tally = tally, .run = run, .options = options, .text = out };
	size_t from = out->len;
	int rc;

	page.top = options->top ? options->top : TOP_DEFAULT;
	rc = write_page(&page, err);
	text_wrap_lines(out, from, options->width);
	return rc;
}

int summary_json(const struct tally *tally, const struct run_info *run, struct buf *out,
                 struct err *err)
{
	static const struct summary_options options;
	struct json json = { .out = out, .lines = 2 };
	struct summary_page page = {
		.tally = tally, .run = run, .options = &options, .json = &json
	};
	int rc;

	json_open(&json, NULL, '{');
	rc = write_page(&page, err);
	json_close(&json, '}');
	buf_putc(out, '\n');
	return rc;
}
