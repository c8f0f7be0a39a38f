// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "analysis/calls.h"
#include "table/columns.h"
#include "analysis/missed.h"
#include "analysis/tally.h"
#include "base/number.h"
#include "base/text.h"
#include "cuda/error.h"

#define TOP_DEFAULT      20
#define WIDE_TERMINAL    100 /* has room for all percentiles */
#define NARROW_FUNCTION  22  /* columns of a function's name where there is less */
#define KERNEL_LEAST     40  /* columns of a kernel's name, however narrow the terminal */
#define KERNEL_BESIDE    12  /* blanks and LAUNCHES before it */
#define CAPTURED_COLUMNS 10
#define OVERHEAD_LEAST   1.0 /* percent: less is not worth a line */

struct printer {
	const struct tally *tally;
	const struct run_info *run;
	const struct calls_options *options;
	size_t top;
	struct buf *out;
};

/* ---- pieces -------------------------------------------------------------------------------- */

static bool is_estimated(const struct printer *p)
{
	return p->run->estimate_scale > 1;
}

static uint64_t scaled(const struct printer *p, uint64_t n)
{
	return run_scaled(p->run, n);
}

static void add_count(const struct printer *p, struct buf *out, uint64_t n)
{
	if (is_estimated(p))
		buf_putc(out, '~');
	buf_u64(out, scaled(p, n));
}

static void add_bytes(const struct printer *p, struct buf *out, uint64_t bytes)
{
	if (is_estimated(p))
		buf_putc(out, '~');
	buf_bytes(out, scaled(p, bytes));
}

static void count_cell(const struct printer *p, struct columns *table, uint64_t n)
{
	add_count(p, &table->cells, n);
	columns_end_cell(table);
}

static void bytes_cell(const struct printer *p, struct columns *table, uint64_t bytes)
{
	add_bytes(p, &table->cells, bytes);
	columns_end_cell(table);
}

/* What is live is known only where every allocation and free was seen. */
static void exact_bytes_cell(const struct printer *p, struct columns *table, uint64_t bytes)
{
	if (is_estimated(p))
		buf_putc(&table->cells, '?');
	else
		buf_bytes(&table->cells, bytes);
	columns_end_cell(table);
}

static bool is_narrow(const struct printer *p)
{
	return p->options->width && p->options->width < WIDE_TERMINAL;
}

static void title(const struct printer *p, const char *text)
{
	buf_printf(p->out, p->options->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

/* "TOP 20 OF 133 FUNCTIONS BY CALL COUNT", "KERNELS BY LAUNCHES" where all are shown */
static void top_title(const struct printer *p, size_t n, const char *what)
{
	struct buf text = { 0 };

	if (n > p->top)
		buf_printf(&text, "TOP %zu OF %zu ", p->top, n);
	buf_puts(&text, what);
	title(p, text.data);
	buf_free(&text);
}

/* ", 3 failed": one of the remarks after a figure, where it is not zero. */
static void remark(const struct printer *p, uint64_t n, const char *text)
{
	if (!n)
		return;
	buf_puts(p->out, ", ");
	add_count(p, p->out, n);
	buf_printf(p->out, " %s", text);
}

/* "Label: 12 bytes (12 B)" */
static void bytes_line(const struct printer *p, const char *label, uint64_t bytes)
{
	buf_printf(p->out, "%s: ", label);
	add_count(p, p->out, bytes);
	buf_puts(p->out, " bytes (");
	buf_bytes(p->out, scaled(p, bytes));
	buf_putc(p->out, ')');
}

static void count_line(const struct printer *p, const char *label, uint64_t n)
{
	buf_printf(p->out, "%s: ", label);
	add_count(p, p->out, n);
}

/* ---- the head ------------------------------------------------------------------------------ */

/* A line that is there only where there is something to say. */
static void optional_line(const struct printer *p, const char *label, uint64_t n)
{
	if (!n)
		return;
	count_line(p, label, n);
	buf_putc(p->out, '\n');
}

static void print_calls(const struct printer *p)
{
	const struct tally *t = p->tally;

	buf_printf(p->out, "Total trace duration: %.3f seconds\n",
	           (double)(p->run->end_ns - p->run->begin_ns) / 1e9);
	buf_printf(p->out, "Processes with CUDA calls: %llu\n", (unsigned long long)t->processes);
	if (p->run->holds) {
		buf_printf(p->out, "Held while hooking: %llu times, at most ",
		           (unsigned long long)p->run->holds);
		buf_duration(p->out, p->run->longest_hold_ns);
		buf_putc(p->out, '\n');
	}
	if (p->run->overhead_most_percent >= OVERHEAD_LEAST)
		buf_printf(p->out,
		           "Tracing cost the busiest thread: %.1f %% of its own time, at most "
		           "%.0f %%\n",
		           p->run->overhead_percent, p->run->overhead_most_percent);
	count_line(p, "Total CUDA API calls", t->calls);
	remark(p, t->failed, "failed");
	remark(p, t->unfinished, "unfinished");
	buf_putc(p->out, '\n');
	if (!t->calls && !t->nested)
		return;
	optional_line(p, "Driver calls nested in them", t->nested);
	count_line(p, "Kernel launches", t->launches);
	buf_putc(p->out, '\n');
	optional_line(p, "Kernels captured into graphs, not run", t->captured_launches);
	optional_line(p, "Other calls captured into graphs", t->captured_other);
	optional_line(p, "Graph launches", t->graph_launches);
	optional_line(p, "Host functions launched", t->host_launches);
}

static void print_work(const struct printer *p)
{
	const struct memory_totals *all = memory_totals(p->tally->memory, MEMORY_NONE);
	const struct tally *t = p->tally;

	count_line(p, "Memory allocations", all->allocated.count);
	remark(p, all->freed.count, "freed");
	bytes_line(p, "\nTotal memory allocated", all->allocated.bytes);
	if (all->allocated.count && !is_estimated(p)) {
		buf_puts(p->out, ", peak ");
		buf_bytes(p->out, all->peak_bytes);
		buf_puts(p->out, ", live at the end ");
		buf_bytes(p->out, all->live.bytes);
	}
	count_line(p, "\nMemory transfers", t->all_copies.count);
	bytes_line(p, "\nTotal data transferred", t->all_copies.bytes);
	buf_putc(p->out, '\n');
	optional_line(p, "Memory sets", t->sets.count);
	count_line(p, "Synchronisations", t->syncs);
	if (t->syncs && p->run->returns) {
		buf_puts(p->out, is_estimated(p) ? ", ~" : ", ");
		buf_duration(p->out, scaled(p, t->sync_ns));
		buf_puts(p->out, " in them");
	}
	buf_putc(p->out, '\n');
}

/* ---- memory and transfers ------------------------------------------------------------------ */

static void note(const struct printer *p, const struct memory_count *n, const char *text)
{
	if (!n->count)
		return;
	buf_puts(p->out, "  ");
	add_count(p, p->out, n->count);
	buf_printf(p->out, " allocation%s (", n->count == 1 ? "" : "s");
	add_bytes(p, p->out, n->bytes);
	buf_printf(p->out, ") %s\n", text);
}

static void print_memory_notes(const struct printer *p)
{
	const struct memory_totals *all = memory_totals(p->tally->memory, MEMORY_NONE);
	uint64_t unknown = memory_unknown_frees(p->tally->memory);

	note(p, &all->exit, "never freed: released by process exit");
	note(p, &all->context, "released with a context or device reset");
	note(p, &all->replaced, "whose free was not seen: the address was given out again");
	note(p, &all->untracked,
	     "not followed: no address was recorded, or 65,536 others were live");
	if (unknown) {
		buf_puts(p->out, "  ");
		add_count(p, p->out, unknown);
		buf_printf(p->out, " free%s of memory whose allocation was not recorded\n",
		           unknown == 1 ? "" : "s");
	}
}

static void print_memory(const struct printer *p)
{
	struct columns table;

	if (!memory_totals(p->tally->memory, MEMORY_NONE)->allocated.count &&
	    !memory_totals(p->tally->memory, MEMORY_VMM_VA)->allocated.count &&
	    !memory_unknown_frees(p->tally->memory))
		return;
	title(p, "MEMORY BY KIND");
	columns_init(&table, "lrrrrrr",
	             "KIND|COUNT|ALLOCATED|FREED|PEAK|LIVE AT END|RELEASED BY EXIT");
	for (int kind = MEMORY_NONE + 1; kind < MEMORY_COUNT; kind++) {
		const struct memory_totals *m = memory_totals(p->tally->memory, kind);

		if (!m->allocated.count)
			continue;
		columns_text(&table, api_memory_name(kind));
		count_cell(p, &table, m->allocated.count);
		bytes_cell(p, &table, m->allocated.bytes);
		bytes_cell(p, &table, m->freed.bytes);
		exact_bytes_cell(p, &table, m->peak_bytes);
		exact_bytes_cell(p, &table, m->live.bytes);
		exact_bytes_cell(p, &table, m->exit.bytes);
	}
	table.screen = p->options->width;
	columns_print(&table, p->out);
	print_memory_notes(p);
}

static void transfer_row(const struct printer *p, struct columns *table, const char *name,
                         const struct transfer_count *n)
{
	uint64_t sized = n->count - n->unsized;

	if (!n->count)
		return;
	columns_text(table, name);
	count_cell(p, table, n->count);
	if (!sized) {
		columns_text(table, "-");
		columns_text(table, "-");
		return;
	}
	bytes_cell(p, table, n->bytes);
	buf_bytes(&table->cells, n->bytes / sized);
	columns_end_cell(table);
}

static void print_transfers(const struct printer *p)
{
	uint64_t unsized = p->tally->all_copies.unsized + p->tally->sets.unsized;
	struct columns table;

	if (!p->tally->all_copies.count && !p->tally->sets.count)
		return;
	title(p, "TRANSFERS BY DIRECTION");
	columns_init(&table, "lrrr", "DIRECTION|COUNT|BYTES|AVERAGE");
	for (int d = DIRECTION_NONE + 1; d < DIRECTION_COUNT; d++)
		transfer_row(p, &table, api_direction_name(d), &p->tally->copies[d]);
	transfer_row(p, &table, "unknown", &p->tally->copies[DIRECTION_NONE]);
	transfer_row(p, &table, "set", &p->tally->sets);
	table.screen = p->options->width;
	columns_print(&table, p->out);
	if (unsized) {
		buf_puts(p->out, "  calls that do not say how many bytes, in COUNT only: ");
		add_count(p, p->out, unsized);
		buf_putc(p->out, '\n');
	}
}

static void print_errors(const struct printer *p)
{
	const struct error_tally **rows;
	struct columns table;
	size_t n;

	if (!p->tally->failed)
		return;
	title(p, "ERRORS");
	columns_init(&table, "lrl", "FUNCTION|COUNT|ERROR");
	rows = tally_errors(p->tally, &n);
	for (size_t i = 0; i < n; i++) {
		const struct function *function = rows[i]->key.function->function;
		const char *name = cuda_error_name(function->layer, (int)rows[i]->key.code);

		columns_text(&table, function->name);
		count_cell(p, &table, rows[i]->count);
		buf_printf(&table.cells, "%s (%d)", name ? name : "unknown error",
		           (int)rows[i]->key.code);
		columns_end_cell(&table);
	}
	table.screen = p->options->width;
	columns_print(&table, p->out);
	free(rows);
	if (p->tally->after_shutdown) {
		buf_puts(p->out, "  harmless: ");
		add_count(p, p->out, p->tally->after_shutdown);
		buf_puts(p->out,
		         " that came at the end of the process, when CUDA was shut down already\n");
	}
}

/* ---- functions and kernels ----------------------------------------------------------------- */

static void duration_cell(struct columns *table, const struct sketch *durations, uint64_t ns)
{
	if (durations->count)
		buf_duration(&table->cells, ns);
	else
		buf_putc(&table->cells, '-');
	columns_end_cell(table);
}

static void total_cell(const struct printer *p, struct columns *table,
                       const struct sketch *durations)
{
	if (durations->count && is_estimated(p))
		buf_putc(&table->cells, '~');
	duration_cell(table, durations, scaled(p, durations->sum));
}

static void duration_cells(const struct printer *p, struct columns *table,
                           const struct sketch *durations)
{
	static const double all[] = { 0.50, 0.95, 0.99 }, few[] = { 0.95 };
	const double *shares = is_narrow(p) ? few : all;
	size_t n = is_narrow(p) ? 1 : 3;

	total_cell(p, table, durations);
	duration_cell(table, durations, number_rounded(sketch_average(durations)));
	for (size_t i = 0; i < n; i++)
		duration_cell(table, durations, sketch_percentile(durations, shares[i]));
	duration_cell(table, durations, durations->max);
}

/* The columns: always FUNCTION and CALLS; NESTED and the durations where there are any. */
static void begin_function_table(const struct printer *p, struct columns *table)
{
	static const struct {
		const char *align, *headings;
	} forms[2][3] = {
		{ { "lr", "FUNCTION|CALLS" },
		  { "lrrrrr", "FUNCTION|CALLS|TOTAL|AVERAGE|P95|MAX" },
		  { "lrrrrrrr", "FUNCTION|CALLS|TOTAL|AVERAGE|P50|P95|P99|MAX" } },
		{ { "lrr", "FUNCTION|CALLS|NESTED" },
		  { "lrrrrrr", "FUNCTION|CALLS|NESTED|TOTAL|AVERAGE|P95|MAX" },
		  { "lrrrrrrrr", "FUNCTION|CALLS|NESTED|TOTAL|AVERAGE|P50|P95|P99|MAX" } },
	};
	size_t form = !p->run->returns ? 0 : is_narrow(p) ? 1 : 2;
	bool nested = p->tally->nested > 0;

	columns_init(table, forms[nested][form].align, forms[nested][form].headings);
}

static void function_name_cell(const struct printer *p, struct columns *table, const char *name)
{
	text_add_cut(&table->cells, name, is_narrow(p) ? NARROW_FUNCTION : (size_t)-1);
	columns_end_cell(table);
}

/* "20000+": there were more after the function was unhooked. */
static void calls_cell(const struct printer *p, struct columns *table,
                       const struct function_tally *row)
{
	add_count(p, &table->cells, row->calls);
	if (missed_partly(p->run, row->function))
		buf_putc(&table->cells, '+');
	columns_end_cell(table);
}

static void print_functions(const struct printer *p, enum function_order by, const char *what)
{
	const struct function_tally **rows;
	struct columns table;
	size_t n;

	rows = tally_functions(p->tally, by, &n);
	if (n) {
		top_title(p, n, what);
		begin_function_table(p, &table);
		for (size_t i = 0; i < n && i < p->top; i++) {
			function_name_cell(p, &table, rows[i]->function->name);
			calls_cell(p, &table, rows[i]);
			if (p->tally->nested)
				count_cell(p, &table, rows[i]->nested);
			if (p->run->returns)
				duration_cells(p, &table, &rows[i]->durations);
		}
		table.screen = p->options->width;
		columns_print(&table, p->out);
	}
	free(rows);
}

static void print_all_functions(const struct printer *p)
{
	print_functions(p, BY_CALLS, "FUNCTIONS BY CALL COUNT");
	if (p->run->returns) {
		print_functions(p, BY_TOTAL_TIME, "FUNCTIONS BY TOTAL TIME");
		print_functions(p, BY_AVERAGE_TIME, "FUNCTIONS BY AVERAGE TIME PER CALL");
		if (p->tally->functions)
			buf_printf(p->out, "  (%s within %.1f %%)\n",
			           is_narrow(p) ? "P95" : "P50, P95 and P99", SKETCH_ERROR * 100);
	} else if (p->tally->calls) {
		buf_puts(p->out, "  (no durations: only the calls' beginnings were recorded)\n");
	}
}

/* Names of templates can take a screen each: on a terminal they are cut to its width. */
static size_t kernel_columns(const struct printer *p)
{
	size_t beside = KERNEL_BESIDE + (p->tally->captured_launches ? CAPTURED_COLUMNS : 0);

	if (!p->options->width)
		return (size_t)-1;
	return p->options->width > KERNEL_LEAST + beside ? p->options->width - beside
	                                                 : KERNEL_LEAST;
}

static void kernel_name_cell(const struct printer *p, struct columns *table, const char *name)
{
	struct buf safe = { 0 };

	buf_puts(&safe, ""); /* an empty name is a name too */
	text_add_safe(&safe, name);
	text_add_name(&table->cells, safe.data, kernel_columns(p));
	columns_end_cell(table);
	buf_free(&safe);
}

static void print_kernels(const struct printer *p)
{
	bool captured = p->tally->captured_launches > 0;
	const struct kernel_tally **rows;
	struct columns table;
	size_t n;

	rows = tally_kernels(p->tally, &n);
	if (n) {
		top_title(p, n, "KERNELS BY LAUNCHES");
		columns_init(&table, captured ? "rrl" : "rl",
		             captured ? "LAUNCHES|CAPTURED|KERNEL" : "LAUNCHES|KERNEL");
		for (size_t i = 0; i < n && i < p->top; i++) {
			count_cell(p, &table, rows[i]->launches);
			if (captured)
				count_cell(p, &table, rows[i]->captured);
			kernel_name_cell(p, &table, rows[i]->name);
		}
		table.screen = p->options->width;
		columns_print(&table, p->out);
	}
	free(rows);
}

/* ---- what was missed ----------------------------------------------------------------------- */

static void print_missed(const struct printer *p)
{
	struct memory_count unresolved = tally_unresolved(p->tally);

	title(p, "WHAT WAS MISSED");
	if (is_estimated(p))
		buf_printf(p->out, "  counts marked ~ are estimates: multiplied by %.2f\n",
		           p->run->estimate_scale);
	missed_text(p->out, p->run);
	if (unresolved.count)
		buf_printf(p->out, "  kernel names not resolved: %llu (launches: %llu)\n",
		           (unsigned long long)unresolved.count,
		           (unsigned long long)unresolved.bytes);
}

void summary_text(const struct tally *tally, const struct run_info *run,
                  const struct calls_options *options, struct buf *out)
{
	const struct printer p = {
		.tally = tally,
		.run = run,
		.options = options,
		.top = options->top ? options->top : TOP_DEFAULT,
		.out = out,
	};

	size_t from = out->len;

	buf_puts(out, options->apart ? "\n=== TRACE SUMMARY ===\n" : "=== TRACE SUMMARY ===\n");
	print_calls(&p);
	if (tally->calls + tally->nested) /* else a row of zeros */
		print_work(&p);
	print_memory(&p);
	print_transfers(&p);
	print_errors(&p);
	print_all_functions(&p);
	print_kernels(&p);
	summary_gpu_text(tally, run, options, out);
	print_missed(&p);
	text_wrap_lines(out, from, options->width);
}
