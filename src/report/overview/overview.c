// SPDX-License-Identifier: MIT
/*
 * The report `overview`: one page on a trace. First what `why` says, then facts, one of each: for
 * people below each other, for programs one row; then the first rows of what other reports tell in
 * full.
 */
#include "report/overview/overview.h"

#include <stdlib.h>
#include <time.h>

#include "report/summary/summary.h"
#include "analysis/missed.h"
#include "base/buf.h"
#include "base/number.h"
#include "cuda/error.h"
#include "report/reports.h"
#include "report/sums.h"
#include "trace/event.h"

#define NS_PER_SECOND 1000000000

/* ---- counting ------------------------------------------------------------------------------ */

static void see_overview(void *self, const struct event *event)
{
	struct overview *overview = self;
	struct err err; /* they only count */

	if (event->type == EVENT_CALL && !(event->call->flags & CALL_NESTED))
		overview->calls_ns += call_duration_ns(event->call);
	consumers_event(overview->counts, OVERVIEW_COUNTS, event, &err);
}

/* ---- where the time goes ------------------------------------------------------------------- */

static void add_why(const void *why, struct json *json, const char *key)
{
	why_add_json(why, json, key);
}

static void write_why(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	struct consumer *why = overview->counts[COUNT_WHY];
	AT_END(buf_free) struct buf text = { 0 };
	char title[160];

	report_title(overview->writer.report, title, sizeof(title));
	why_add_text(why, &text);
	table_passage(table,
	              &(struct table_passage){ .key = "why",
	                                       .title = title,
	                                       .column = "Why",
	                                       .lines = text.data,
	                                       .add = add_why,
	                                       .data = why },
	              NULL);
}

/* ---- facts --------------------------------------------------------------------------------- */

struct fact {
	struct table_column column;
	enum { FACT_TEXT, FACT_NUMBER, FACT_SHARE, FACT_UNKNOWN } kind;
	const char *text;
	uint64_t number;
	double share; /* percent */
};

#define FACTS_MAX   24
#define FACTS_TITLE "The recording"

struct facts {
	struct fact fact[FACTS_MAX];
	size_t n;
};

static void add_text(struct facts *facts, const char *name, const char *text)
{
	facts->fact[facts->n++] = (struct fact){ .column = { name, TABLE_TEXT },
		                                 .kind = text ? FACT_TEXT : FACT_UNKNOWN,
		                                 .text = text };
}

static void add_number(struct facts *facts, const char *name, enum table_type type, uint64_t number)
{
	facts->fact[facts->n++] =
		(struct fact){ .column = { name, type }, .kind = FACT_NUMBER, .number = number };
}

static void add_known(struct facts *facts, const char *name, enum table_type type, bool known,
                      uint64_t number)
{
	add_number(facts, name, type, number);
	if (!known)
		facts->fact[facts->n - 1].kind = FACT_UNKNOWN;
}

static void add_share(struct facts *facts, const char *name, uint64_t part, uint64_t whole)
{
	facts->fact[facts->n++] = (struct fact){
		.column = { name, TABLE_PERCENT },
		.kind = whole ? FACT_SHARE : FACT_UNKNOWN,
		.share = whole ? 100 * (double)part / (double)whole : 0,
	};
}

static void wall_clock(const struct run_info *run, char *text, size_t size)
{
	time_t seconds =
		(time_t)(((int64_t)run->begin_ns + run->realtime_offset_ns) / NS_PER_SECOND);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, size, "%Y-%m-%d %H:%M:%S UTC", &tm);
}

static void add_facts(struct facts *facts, const struct overview *overview,
                      const struct run_info *run, const char *recorded)
{
	const struct tally *tally = overview->tally;
	const struct memory_totals *memory = memory_totals(tally->memory, MEMORY_NONE);
	uint64_t calls_ns = overview->calls_ns;
	bool all = run->estimate_scale <= 1; /* else what is live is not known */

	add_text(facts, "Recorded", recorded);
	add_text(facts, "Host", run->hostname);
	add_text(facts, "Kernel", run->kernel_release);
	add_text(facts, "Driver", run->driver_version);
	add_text(facts, "Command", run->command);
	if (run->reason)
		add_text(facts, "Reason", run->reason);
	add_number(facts, "Duration", TABLE_DURATION, overview->duration_ns);
	add_number(facts, "Processes", TABLE_NUMBER, tally->processes);
	add_number(facts, "Calls", TABLE_NUMBER, tally->calls);
	add_number(facts, "Failed Calls", TABLE_NUMBER, tally->failed);
	add_number(facts, "Failed At Exit", TABLE_NUMBER, tally->after_shutdown);
	add_known(facts, "In CUDA Calls", TABLE_DURATION, run->returns, calls_ns);
	add_share(facts, "Of That Waiting", tally->sync_ns, run->returns ? calls_ns : 0);
	add_number(facts, "Kernel Launches", TABLE_NUMBER, tally->launches);
	add_number(facts, "Graph Launches", TABLE_NUMBER, tally->graph_launches);
	add_known(facts, "Memory Peak", TABLE_BYTES, all, memory->peak_bytes);
	add_known(facts, "Live At The End", TABLE_BYTES, all, memory->live.bytes);
	add_known(facts, "Released By Exit", TABLE_BYTES, all, memory->exit.bytes);
	add_number(facts, "Copied", TABLE_BYTES, tally->all_copies.bytes);
	add_share(facts, "GPU Busy", gpu_tally_busy_ns(tally->gpu),
	          gpu_tally_measured_ns(tally->gpu));
	add_known(facts, "GPU Queue Median", TABLE_DURATION, tally->gpu->queue.count > 0,
	          sketch_percentile(&tally->gpu->queue, 0.5));
	add_known(facts, "GPU Queue 99 %", TABLE_DURATION, tally->gpu->queue.count > 0,
	          sketch_percentile(&tally->gpu->queue, 0.99));
	add_known(facts, "GPU Clock Error", TABLE_DURATION, gpu_tally_any(tally->gpu),
	          run->gpu_clock_error_ns);
}

static void write_value(struct table *table, const struct fact *fact)
{
	if (fact->kind == FACT_UNKNOWN)
		table_unknown(table);
	else if (fact->kind == FACT_TEXT)
		table_text(table, fact->text);
	else if (fact->kind == FACT_SHARE)
		table_real(table, fact->share);
	else
		table_u64(table, fact->number);
}

/* One row for programs. */
static void write_facts_row(struct overview *overview, const struct facts *facts)
{
	struct table_column columns[FACTS_MAX];
	struct table *table = overview->writer.table;

	for (size_t i = 0; i < facts->n; i++)
		columns[i] = facts->fact[i].column;
	report_table(&overview->writer, "trace", FACTS_TITLE, columns, facts->n);
	for (size_t i = 0; i < facts->n; i++)
		write_value(table, &facts->fact[i]);
	table_end_row(table);
}

static void add_words(struct buf *out, const struct fact *fact)
{
	if (fact->kind == FACT_TEXT)
		buf_puts(out, fact->text);
	else if (fact->kind == FACT_SHARE)
		buf_printf(out, "%.1f %%", fact->share);
	else if (fact->column.type == TABLE_DURATION)
		buf_duration(out, fact->number);
	else if (fact->column.type == TABLE_BYTES)
		buf_bytes(out, fact->number);
	else
		buf_u64(out, fact->number);
}

/* A column for people, without what is not known or did not happen. */
static void write_facts_column(struct overview *overview, const struct facts *facts)
{
	static const struct table_column columns[] = { { "What", TABLE_TEXT },
		                                       { "Value", TABLE_WORDS } };
	struct table *table = overview->writer.table;
	AT_END(buf_free) struct buf words = { 0 };

	report_table(&overview->writer, "trace", FACTS_TITLE, TABLE_COLUMNS(columns));
	table_whole(table);
	for (size_t i = 0; i < facts->n; i++) {
		const struct fact *fact = &facts->fact[i];

		if (fact->kind == FACT_UNKNOWN || (fact->kind == FACT_NUMBER && !fact->number))
			continue;
		buf_reset(&words);
		add_words(&words, fact);
		TABLE_LAST(table, fact->column.name, words.data);
	}
}

static void write_facts(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	struct facts facts = { 0 };
	char recorded[64];

	wall_clock(run, recorded, sizeof(recorded));
	add_facts(&facts, overview, run, recorded);
	report_note_durations(table, run);
	report_note_estimated(table, run);
	table_note_if(table, !overview->tally->calls, "there were no CUDA calls");
	if (table_options(table)->form == TABLE_FORM_TEXT)
		write_facts_column(overview, &facts);
	else
		write_facts_row(overview, &facts);
}

/* ---- the first rows of other reports ------------------------------------------------------- */

/* A note where a table goes on in another report. */
static void overview_note_more(struct table *table, size_t n, const char *report)
{
	table_note_if(table, n > OVERVIEW_ROWS, "%zu more: cuscope report FILE %s",
	              n - OVERVIEW_ROWS, report);
}

static void write_processes(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = {
		{ "PID", TABLE_NUMBER }, { "Calls", TABLE_NUMBER }, { "Launches", TABLE_NUMBER },
		{ "Peak", TABLE_BYTES }, { "Copied", TABLE_BYTES }, { "Errors", TABLE_NUMBER },
		{ "Name", TABLE_TEXT },
	};
	size_t n;
	const struct process_row *rows = processes_rows(overview->counts[COUNT_PROCESSES], &n);

	if (!report_table_of(&overview->writer, n, "processes", "Processes",
	                     TABLE_COLUMNS(columns)))
		return;
	for (size_t i = 0; i < FIRST_ROWS(n); i++)
		TABLE_LAST(table, rows[i].process->pid, rows[i].calls, rows[i].launches,
		           rows[i].peak_bytes, rows[i].copies.bytes, rows[i].failed,
		           rows[i].process->comm);
	overview_note_more(table, n, "processes");
}

static void write_function(struct table *table, const struct sums_row *row)
{
	bool known = row->values.count > 0;

	TABLE_LAST(table, TABLE_IF(known, row->values.sum), row->count,
	           TABLE_IF(known, number_rounded(spread_average(&row->values))),
	           TABLE_IF(known, row->values.max), row->name);
}

static void write_functions(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = {
		{ "Total", TABLE_DURATION },   { "Calls", TABLE_NUMBER },
		{ "Average", TABLE_DURATION }, { "Max", TABLE_DURATION },
		{ "Function", TABLE_TEXT },
	};
	size_t n;
	const struct sums_row *rows = sums_rows(overview->counts[COUNT_FUNCTIONS], &n);

	if (!report_table_of(&overview->writer, n, "functions",
	                     run->returns ? "Functions by time" : "Functions by calls",
	                     TABLE_COLUMNS(columns)))
		return;
	for (size_t i = 0; i < FIRST_ROWS(n); i++)
		write_function(table, &rows[i]);
	overview_note_more(table, n, "cuda_api_sum");
}

static void write_kernels(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = {
		{ "Launches", TABLE_NUMBER },
		{ "Kernel", TABLE_TEXT },
	};
	size_t n;
	AT_END(at_end_free) const struct kernel_tally **rows = tally_kernels(overview->tally, &n);

	if (report_table_of(&overview->writer, n, "kernels", "Kernels by launches",
	                    TABLE_COLUMNS(columns))) {
		table_fit(table, OVERVIEW_NAMES_WIDTH);
		for (size_t i = 0; i < FIRST_ROWS(n); i++)
			TABLE_LAST(table, rows[i]->launches, rows[i]->name);
		overview_note_more(table, n, "launches");
	}
}

static void transfer_row(struct table *table, const char *name, const struct transfer_count *count)
{
	uint64_t sized = count->count - count->unsized;

	if (!count->count)
		return;
	TABLE_LAST(table, name, count->count, TABLE_IF(sized, count->bytes),
	           TABLE_IF(sized, count->bytes / sized));
}

static void write_transfers(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = {
		{ "Direction", TABLE_TEXT },
		{ "Copies", TABLE_NUMBER },
		{ "Bytes", TABLE_BYTES },
		{ "Average", TABLE_BYTES },
	};
	const struct tally *tally = overview->tally;

	if (!report_table_of(&overview->writer, tally->all_copies.count + tally->sets.count,
	                     "transfers", "Transfers", TABLE_COLUMNS(columns)))
		return;
	table_whole(table);
	for (int d = DIRECTION_NONE + 1; d < DIRECTION_COUNT; d++)
		transfer_row(table, api_direction_name(d), &tally->copies[d]);
	transfer_row(table, "unknown", &tally->copies[DIRECTION_NONE]);
	transfer_row(table, "set", &tally->sets);
}

static void write_errors(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = {
		{ "Count", TABLE_NUMBER },
		{ "Function", TABLE_TEXT },
		{ "Code", TABLE_NUMBER },
		{ "Error", TABLE_TEXT },
	};
	size_t n;
	const struct error_row *rows = errors_rows(overview->tally->errors, &n);

	if (!report_table_of(&overview->writer, n, "errors", "Errors", TABLE_COLUMNS(columns)))
		return;
	for (size_t i = 0; i < FIRST_ROWS(n); i++) {
		const struct function *function = rows[i].function;
		int code = rows[i].code;

		TABLE_LAST(table, rows[i].count, function->name, (uint32_t)code,
		           cuda_error_name(function->layer, code));
	}
	report_note_shutdown(table, overview->tally->after_shutdown);
	overview_note_more(table, n, "errors");
}

static void write_missed(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = { { "Finding", TABLE_WORDS } };
	AT_END(buf_free) struct buf text = { 0 };
	char *line, *rest;

	missed_text(&text, run);
	report_table(&overview->writer, "missed", "What was missed", TABLE_COLUMNS(columns));
	table_whole(table);
	rest = text.data;
	while ((line = strsep(&rest, "\n")) && *line)
		TABLE_LAST(table, line + strspn(line, " "));
}

/* ---- GPUs ---------------------------------------------------------------------------------- */

static void write_gpus(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = {
		{ "GPU", TABLE_NUMBER },          { "Busy", TABLE_DURATION },
		{ "Busy", TABLE_PERCENT },        { "Kernels", TABLE_NUMBER },
		{ "Copies", TABLE_NUMBER },       { "Sets", TABLE_NUMBER },
		{ "Graphs", TABLE_NUMBER },       { "NCCL", TABLE_DURATION },
		{ "NCCL Hidden", TABLE_PERCENT },
	};
	uint64_t short_ns = 0;
	size_t n;
	const struct gpu_line *lines = gpu_tally_lines(overview->tally->gpu, &n);

	if (!report_table_of(&overview->writer, n, "gpus", "GPUs", TABLE_COLUMNS(columns)))
		return;
	for (size_t i = 0; i < n; i++) {
		TABLE_CELLS(table, lines[i].device, lines[i].busy_ns);
		table_share(table, lines[i].busy_ns, gpu_line_measured_ns(&lines[i]));
		TABLE_CELLS(table, lines[i].ran[ACTIVITY_KERNEL], lines[i].ran[ACTIVITY_COPY],
		            lines[i].ran[ACTIVITY_SET], lines[i].ran[ACTIVITY_GRAPH_RUN],
		            lines[i].communication_ns);
		table_share(table, lines[i].beside_ns, lines[i].communication_ns);
		short_ns += lines[i].short_ns;
		table_end_row(table);
	}
	table_note_if(table, n,
	              "Busy (%%): from its first work to its last, where it was measured");
	report_note_busy_short(table, short_ns);
}

static void write_gpu_kernels(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = {
		{ "GPU Time", TABLE_DURATION },
		{ "Runs", TABLE_NUMBER },
		{ "Kernel", TABLE_TEXT },
	};
	size_t n;
	const struct gpu_kernel *rows = gpu_tally_kernels(overview->tally->gpu, &n);

	if (!report_table_of(&overview->writer, n, "gpu_kernels", "Kernels by time on the GPU",
	                     TABLE_COLUMNS(columns)))
		return;
	table_fit(table, OVERVIEW_NAMES_WIDTH);
	for (size_t i = 0; i < FIRST_ROWS(n); i++)
		TABLE_LAST(table, rows[i].ns, rows[i].count, rows[i].name);
	overview_note_more(table, n, "cuda_gpu_kern_sum");
}

static void gpu_copies_row(struct table *table, const char *name, const struct gpu_copies *copies)
{
	if (!copies->count)
		return;
	TABLE_CELLS(table, name, copies->count, copies->bytes, copies->ns);
	if (copies->ns)
		table_real(table, gpu_copies_rate(copies) * 1e9);
	else
		table_unknown(table);
	table_end_row(table);
}

static void write_gpu_copies(void *self, struct table *table, const struct run_info *run)
{
	struct overview *overview = self;
	static const struct table_column columns[] = {
		{ "Direction", TABLE_TEXT },  { "Copies", TABLE_NUMBER },
		{ "Bytes", TABLE_BYTES },     { "GPU Time", TABLE_DURATION },
		{ "Throughput", TABLE_RATE },
	};
	const struct gpu_tally *gpu = overview->tally->gpu;
	uint64_t any = gpu->sets.count;

	for (int d = 0; d < DIRECTION_COUNT; d++)
		any += gpu->copies[d].count;
	if (!report_table_of(&overview->writer, any, "gpu_transfers", "Transfers on the GPU",
	                     TABLE_COLUMNS(columns)))
		return;
	table_whole(table);
	for (int d = DIRECTION_NONE + 1; d < DIRECTION_COUNT; d++)
		gpu_copies_row(table, api_direction_name(d), &gpu->copies[d]);
	gpu_copies_row(table, "unknown", &gpu->copies[DIRECTION_NONE]);
	gpu_copies_row(table, "set", &gpu->sets);
}

/* ---- the page ------------------------------------------------------------------------------ */

static void init_overview(void *self)
{
	struct overview *overview = self;
	const struct report_options *options = &overview->writer.options;

	overview->counts[COUNT_CALLS] =
		summary_new(&(struct summary_options){ .work = options->work });
	overview->counts[COUNT_FUNCTIONS] =
		sums_new(sums_kind("cuda_api_sum", false), NAMES_FULL, false);
	overview->counts[COUNT_PROCESSES] = processes_new();
	overview->counts[COUNT_WHY] = why_report_kept(options);
	overview->tally = summary_tally(overview->counts[COUNT_CALLS]);
}

static void conclude_overview(void *self, const struct run_info *run)
{
	struct overview *overview = self;
	struct err err; /* they only count */

	consumers_end(overview->counts, OVERVIEW_COUNTS, run, &err);
	overview->duration_ns = report_duration_ns(&overview->writer.options, run);
}

static void clear_overview(void *self)
{
	struct overview *overview = self;

	for (size_t i = 0; i < OVERVIEW_COUNTS; i++)
		consumer_free(overview->counts[i]);
}

const struct report_kind overview_report = {
	.bytes = sizeof(struct overview),
	.init = init_overview,
	.event = see_overview,
	.conclude = conclude_overview,
	.clear = clear_overview,
	.parts = { { .write = write_why },
	           { .write = write_facts },
	           { .write = write_processes },
	           { .write = write_functions },
	           { .write = write_kernels },
	           { .write = write_gpus },
	           { .write = write_gpu_kernels },
	           { .write = write_transfers },
	           { .write = write_gpu_copies },
	           { .write = write_errors },
	           { .write = write_missed },
	           { "next", "What to look at next", TABLE_COLUMNS(overview_hint_columns),
	             overview_hints } },
};
