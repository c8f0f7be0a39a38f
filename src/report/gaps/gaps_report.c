// SPDX-License-Identifier: MIT
/*
 * The report `gaps`: how long GPUs were idle, and why. First what it comes to, then the GPUs, the
 * causes, the longest gaps, and the same for streams.
 */
#include "report/gaps/gaps_report.h"

#include <stdlib.h>

#include "analysis/missed.h"
#include "base/array.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "report/names.h"
#include "report/reports.h"
#include "table/longest.h"
#include "table/words.h"

#define LONGEST_DEFAULT 10
#define THRESHOLD_NS    20000
#define NAME_WIDTH      40 /* columns of a name of a kernel, for people */

static uint64_t threshold_of(const struct report_options *options)
{
	return options->gap_ns ? options->gap_ns : THRESHOLD_NS;
}

static bool for_people(const struct report_writer *writer)
{
	return table_options(writer->table)->form == TABLE_FORM_TEXT;
}

/* ---- what it comes to ---------------------------------------------------------------------- */

static const struct table_column conclusion_columns[] = {
	{ "GPU", TABLE_NUMBER },  { "Verdict", TABLE_TEXT }, { "Conclusion", TABLE_WORDS },
	{ "Apart", TABLE_WORDS }, { "Why", TABLE_WORDS },    { "Try", TABLE_WORDS },
};
static const struct table_column conclusion_lines[] = {
	{ "GPU", TABLE_NUMBER },
	{ "Conclusion", TABLE_WORDS },
};

/* "  64  ", "  GPU  " */
#define BEFORE_WORDS 7

/* The first cell is written: one row for it, and for people as many as the text has lines. */
static void write_words(struct table *table, const char *text)
{
	size_t width = words_width(table, BEFORE_WORDS, SIZE_MAX);
	struct buf line = { 0 };
	bool more;

	for (;;) {
		more = words_line(&text, width, &line);
		table_text(table, line.data);
		table_end_row(table);
		if (!more)
			break;
		table_text(table, "");
	}
	buf_free(&line);
}

static void write_line(struct table *table, const char *what, const char *text)
{
	struct buf line = { 0 };

	if (!text)
		return;
	buf_printf(&line, "%s%s", what, text);
	table_unknown(table);
	write_words(table, line.data);
	buf_free(&line);
}

/* What the host's time in gaps was made of. */
static void write_waited(struct report_writer *writer, const struct gap_line *gpu)
{
	struct buf text = { 0 };

	if (!gaps_whos(writer->analysis) || !gpu->waits->host_ns)
		return;
	gaps_add_waits(&text, gpu->waits, gaps_whos(writer->analysis),
	               gaps_places(writer->analysis));
	write_line(writer->table, "waits: ", text.data);
	buf_free(&text);
}

/* For people. */
static void write_lines(struct report_writer *writer, const struct gap_line *gpu, const char *of,
                        const struct gaps_conclusion *conclusion)
{
	struct table *table = writer->table;
	struct buf first = { 0 };

	buf_printf(&first, "%s%s%s: %s", of, conclusion->mostly ? "mostly " : "",
	           conclusion->verdict, conclusion->busy.data);
	table_u64(table, gpu->device);
	write_words(table, first.data);
	write_line(table, "", conclusion->apart.data);
	write_line(table, "why: ", conclusion->why.data);
	write_waited(writer, gpu);
	write_line(table, "where: ", conclusion->where.data);
	write_line(table, "try: ", conclusion->try);
	buf_free(&first);
}

static void write_row(struct table *table, uint32_t gpu, const char *of,
                      const struct gaps_conclusion *conclusion)
{
	struct buf verdict = { 0 };

	buf_printf(&verdict, "%s%s", of, conclusion->verdict);
	table_u64(table, gpu);
	table_text(table, verdict.data);
	table_text(table, conclusion->busy.data);
	table_text(table, conclusion->apart.data);
	table_text(table, conclusion->why.data);
	table_text(table, conclusion->try);
	table_end_row(table);
	buf_free(&verdict);
}

static void write_conclusion(struct report_writer *writer, const struct run_info *run,
                             const struct gap_line *gpu)
{
	struct gaps_conclusion conclusion = { 0 };
	const char *of = "";

	gaps_conclude(gpu, run->begin_ns, gaps_places(writer->analysis), &conclusion);
	if (report_is_chosen(&writer->options, run)) {
		of = "of what was chosen alone: ";
		conclusion.try = NULL; /* what to do depends on all of it */
	}
	if (for_people(writer))
		write_lines(writer, gpu, of, &conclusion);
	else
		write_row(writer->table, gpu->device, of, &conclusion);
	gaps_conclusion_free(&conclusion);
}

/* Whether a call came before or after a gap's begin is what tells its cause. */
static void note_clock(struct table *table, const struct run_info *run)
{
	struct buf error = { 0 };

	if (!run->gpu_clock_error_ns)
		return;
	buf_duration(&error, run->gpu_clock_error_ns);
	table_note(table,
	           "times of the GPU can be off by %s against those of calls, so causes of gaps "
	           "that are not longer can be wrong",
	           error.data);
	buf_free(&error);
}

static void note_limits(struct report_writer *writer, const struct run_info *run, bool any)
{
	struct gaps_limits limits = gaps_limits(writer->analysis);
	struct table *table = writer->table;
	uint64_t lost = missed_of(run->lost, MISSED_GPU_WORK);

	if (!any) {
		report_note_no_gpu_times(table, writer->options.part, run);
		return;
	}
	report_note_chosen(&writer->options, run);
	if (lost)
		table_note(table, "%llu activities were lost: gaps are counted where they ran",
		           (unsigned long long)lost);
	if (limits.no_call)
		table_note(table,
		           "cause unknown of %llu gap%s: the call that asked for the next work was "
		           "not recorded, or is more than %u calls back",
		           (unsigned long long)limits.no_call, limits.no_call == 1 ? "" : "s",
		           GAP_CALLS_KEPT);
	if (limits.late)
		table_note(table,
		           "idle times are too long: %llu activities became known after the gaps "
		           "that they fill had been counted",
		           (unsigned long long)limits.late);
	if (limits.left_out)
		table_note(table,
		           "the tables of streams leave %llu activities out: those of streams "
		           "beyond the first %d, and of GPUs beyond %d",
		           (unsigned long long)limits.left_out, GAPS_STREAMS, GAPS_DEVICES);
	report_note_unjoined(&writer->options);
	note_clock(table, run);
	report_note_estimated(table, run);
}

static int write_conclusions(struct report_writer *writer, const struct run_info *run,
                             struct err *err)
{
	struct table *table = writer->table;
	const struct gap_line *const *gpus;
	size_t n;

	gpus = gaps_devices(writer->analysis, &n);
	if (for_people(writer))
		report_begin(writer, run, "conclusion", TABLE_COLUMNS(conclusion_lines));
	else
		report_begin(writer, run, "conclusion", TABLE_COLUMNS(conclusion_columns));
	table_whole(table);
	for (size_t i = 0; i < n; i++)
		write_conclusion(writer, run, gpus[i]);
	note_limits(writer, run, n > 0);
	return table_end(table, err);
}

/* ---- GPUs and their processes -------------------------------------------------------------- */

static const struct table_column gpu_columns[] = {
	{ "GPU", TABLE_NUMBER },
	{ "Activities", TABLE_NUMBER },
	{ "First", TABLE_TIME },
	{ "Last", TABLE_TIME },
	{ "Busy", TABLE_DURATION },
	{ "Busy", TABLE_PERCENT },
	{ "Idle", TABLE_DURATION },
	{ "Gaps", TABLE_NUMBER },
	{ "In Gaps", TABLE_DURATION },
	{ "Longest", TABLE_DURATION },
	{ "Shorter", TABLE_NUMBER },
	{ "In Shorter", TABLE_DURATION },
	{ "Not Measured", TABLE_DURATION },
	{ "Apart", TABLE_NUMBER },
	{ "In Apart", TABLE_DURATION },
	{ "Else Busy", TABLE_PERCENT },
};

static int write_gpus(struct report_writer *writer, struct err *err)
{
	struct table *table = writer->table;
	const struct gap_line *const *gpus;
	bool windows = false, apart = false;
	struct buf threshold = { 0 };
	size_t n;

	gpus = gaps_devices(writer->analysis, &n);
	table_begin(table, "gpus", "GPUs", TABLE_COLUMNS(gpu_columns));
	table_whole(table);
	for (size_t i = 0; i < n; i++) {
		const struct gap_line *gpu = gpus[i];
		struct gap_sum all = gaps_all_causes(gpu);

		table_u64(table, gpu->device);
		table_u64(table, gpu->activities);
		report_time(writer, gpu->first_ns);
		report_time(writer, gpu->last_ns);
		table_u64(table, gpu->busy_ns);
		table_real(table, gaps_percent(gpu->busy_ns, gap_line_span_ns(gpu)));
		table_u64(table, gpu->idle_ns);
		table_u64(table, all.count);
		table_u64(table, all.ns);
		table_u64(table, all.longest_ns);
		table_u64(table, all.short_count);
		table_u64(table, all.short_ns);
		table_u64(table, gpu->not_measured_ns);
		table_u64(table, gpu->n_apart);
		table_u64(table, gpu->apart_ns);
		table_real(table, gaps_percent(gpu->busy_ns, gaps_steady_ns(gpu)));
		table_end_row(table);
		apart |= gpu->n_apart > 0;
		windows |= gpu->not_measured_ns > 0;
	}
	buf_duration(&threshold, threshold_of(&writer->options));
	table_note(table,
	           "idle: nothing ran, from the first activity to the last; Gaps: of %s and more "
	           "(--gap)",
	           threshold.data);
	if (apart)
		table_note(table, "Apart: few, and so long that they say nothing of the rest, such "
		                  "as the program's start; Else Busy: without them");
	if (windows)
		table_note(table, "Not Measured: between windows, neither busy nor idle");
	buf_free(&threshold);
	return table_end(table, err);
}

static const struct table_column process_columns[] = {
	{ "GPU", TABLE_NUMBER },    { "PID", TABLE_NUMBER },   { "Activities", TABLE_NUMBER },
	{ "Busy", TABLE_DURATION }, { "Busy", TABLE_PERCENT }, { "Process", TABLE_TEXT },
};

static uint64_t span_of_device(const struct gap_line *const *gpus, size_t n, uint32_t device)
{
	for (size_t i = 0; i < n; i++) {
		if (gpus[i]->device == device)
			return gap_line_span_ns(gpus[i]);
	}
	return 0;
}

static int write_processes(struct report_writer *writer, struct err *err)
{
	struct table *table = writer->table;
	const struct gap_line *const *gpus, *const *rows;
	size_t n, n_gpus;

	gpus = gaps_devices(writer->analysis, &n_gpus);
	rows = gaps_processes(writer->analysis, &n);
	if (for_people(writer) && n == n_gpus) /* each GPU has one */
		return 0;
	table_begin(table, "processes", "Processes on them", TABLE_COLUMNS(process_columns));
	for (size_t i = 0; i < n; i++) {
		table_u64(table, rows[i]->device);
		table_u64(table, rows[i]->process->pid);
		table_u64(table, rows[i]->activities);
		table_u64(table, rows[i]->busy_ns);
		table_real(table, gaps_percent(rows[i]->busy_ns,
		                               span_of_device(gpus, n_gpus, rows[i]->device)));
		table_text(table, rows[i]->process->comm);
		table_end_row(table);
	}
	table_note(table, "Busy (%%): of the GPU's time; the GPU's own is the union of them");
	return table_end(table, err);
}

/* ---- the longest --------------------------------------------------------------------------- */

static const struct table_column long_columns[] = {
	{ "Count", TABLE_NUMBER }, { "Begin", TABLE_TIME }, { "Gap", TABLE_DURATION },
	{ "GPU", TABLE_NUMBER },   { "PID", TABLE_NUMBER }, { "TID", TABLE_NUMBER },
	{ "Strm", TABLE_NUMBER },  { "Cause", TABLE_TEXT }, { "Host", TABLE_TEXT },
	{ "Before", TABLE_TEXT },  { "After", TABLE_TEXT }, { "In Line", TABLE_PERCENT },
	{ "Line", TABLE_TEXT },
};

#define LINE_COLUMNS 2 /* the last, which gaps of GPUs have where there were samples */

static void add_part(struct buf *out, const char *what, uint64_t ns, uint64_t whole_ns)
{
	buf_printf(out, "%s ", what);
	buf_duration(out, ns);
	buf_printf(out, " (%.0f %%)", gaps_percent(ns, whole_ns));
}

/* "waited in cudaFree 80.00 us (80 %), not in CUDA 20.00 us (20 %)" */
static void add_late(struct buf *out, const struct gap_verdict *verdict, uint64_t gap_ns)
{
	bool longest = verdict->longest && verdict->longest_ns >= gap_ns / 100;

	if (verdict->by)
		buf_printf(out, "waited in %s", verdict->by->name);
	if (longest && verdict->longest != verdict->by)
		buf_printf(out, "%sin %s", verdict->by ? ", " : "", verdict->longest->name);
	if (longest)
		add_part(out, "", verdict->longest_ns, gap_ns);
	if (verdict->by || longest)
		buf_puts(out, ", ");
	add_part(out, "not in CUDA", verdict->host_ns - verdict->cuda_ns, gap_ns);
}

static void add_host(struct buf *out, const struct gpu_gap *gap)
{
	const struct gap_verdict *verdict = &gap->verdict;
	uint64_t ns = gap->end_ns - gap->begin_ns;

	if (!verdict->asked) {
		buf_puts(out, "the call is not known");
	} else if (verdict->late) {
		add_late(out, verdict, ns);
	} else if (verdict->by) {
		buf_printf(out, "asked in time, after %s", verdict->by->name);
	} else if (verdict->in_graph) {
		buf_printf(out, "asked in time, within one %s", verdict->ask->name);
	} else {
		if (verdict->host_ns)
			add_part(out, "asked after", verdict->host_ns, ns);
		else
			buf_puts(out, "asked in time");
		buf_printf(out, ", in %s", verdict->ask->name);
		add_part(out, "", verdict->asking_ns, ns);
	}
	gaps_add_wait_of(out, gap);
}

static void write_work(struct report_writer *writer, const struct gap_work *work)
{
	struct activity activity = { .kind = work->kind, .direction = work->direction };
	const char *operation = operation_name(&activity);
	struct buf name = { 0 }, cut = { 0 };

	if (work->kernel)
		add_kernel_name(&name, work->kernel, writer->options.names);
	else if (work->kind == ACTIVITY_GRAPH_RUN)
		buf_puts(&name, "[CUDA graph]");
	else
		buf_puts(&name, operation ? operation : "(not known)");
	if (for_people(writer))
		text_add_name(&cut, name.data, NAME_WIDTH);
	table_text(writer->table, cut.data ? cut.data : name.data);
	buf_free(&name);
	buf_free(&cut);
}

static bool is_same_work(const struct gap_work *a, const struct gap_work *b)
{
	return a->process == b->process && a->kernel == b->kernel && a->kind == b->kind &&
	       a->direction == b->direction && a->stream == b->stream;
}

/* But for how long they took. */
static bool are_alike(const void *left, const void *right)
{
	const struct gpu_gap *a = left, *b = right;
	const struct gap_verdict *one = &a->verdict, *other = &b->verdict;

	return a->device == b->device && one->cause == other->cause && one->asked == other->asked &&
	       one->late == other->late && one->in_graph == other->in_graph &&
	       one->tid == other->tid && one->ask == other->ask && one->by == other->by &&
	       one->longest == other->longest && is_same_work(&a->before, &b->before) &&
	       is_same_work(&a->after, &b->after);
}

/* `count`: of those that are alike; 0: without that column. */
static void write_place(struct table *table, const struct gpu_gap *gap)
{
	if (gap->place)
		table_real(table, gaps_percent(gap->place_ns, gpu_gap_ns(gap)));
	else
		table_unknown(table);
	table_text(table, gap->place);
}

static void write_long(struct report_writer *writer, const struct gpu_gap *gap, uint64_t count,
                       bool lines)
{
	struct table *table = writer->table;
	struct buf host = { 0 };

	add_host(&host, gap);
	if (count)
		table_u64(table, count);
	report_time(writer, gap->begin_ns);
	table_u64(table, gap->end_ns - gap->begin_ns);
	table_u64(table, gap->device);
	table_u64(table, gap->after.process->pid);
	table_known(table, gap->verdict.asked, gap->verdict.tid);
	table_u64(table, gap->after.stream);
	table_text(table, gap_cause_name(gap->verdict.cause));
	table_text(table, host.data);
	write_work(writer, &gap->before);
	write_work(writer, &gap->after);
	if (lines)
		write_place(table, gap);
	table_end_row(table);
	buf_free(&host);
}

static int write_longest(struct report_writer *writer, const char *key, const char *title,
                         struct gpu_gap *gaps, size_t n, bool lines, struct err *err)
{
	struct table *table = writer->table;
	size_t top = table_options(table)->top, most = top ? top : LONGEST_DEFAULT, n_groups;
	size_t n_columns = ARRAY_SIZE(long_columns) - (lines ? 0 : LINE_COLUMNS);
	uint64_t *counts = xcalloc(n + 1, sizeof(*counts));
	bool single;

	n_groups = longest_group(gaps, n, sizeof(*gaps), are_alike, counts);
	n_groups = n_groups < most ? n_groups : most;
	single = for_people(writer) && longest_all_single(counts, n_groups);
	table_begin(table, key, title, long_columns + single, n_columns - single);
	for (size_t i = 0; i < n_groups; i++)
		write_long(writer, &gaps[i], single ? 0 : counts[i], lines);
	if (!longest_all_single(counts, n_groups))
		report_note_grouped(table, "gaps", n);
	free(counts);
	return table_end(table, err);
}

/* ---- streams ------------------------------------------------------------------------------- */

static const struct table_column stream_columns[] = {
	{ "GPU", TABLE_NUMBER },         { "PID", TABLE_NUMBER },
	{ "Ctx", TABLE_NUMBER },         { "Strm", TABLE_NUMBER },
	{ "Handle", TABLE_TEXT },        { "Activities", TABLE_NUMBER },
	{ "Busy", TABLE_DURATION },      { "Busy", TABLE_PERCENT },
	{ "Idle", TABLE_DURATION },      { "Gaps", TABLE_NUMBER },
	{ "In Gaps", TABLE_DURATION },   { "Longest", TABLE_DURATION },
	{ "host_wait", TABLE_DURATION }, { "kernel_wait", TABLE_DURATION },
	{ "other", TABLE_DURATION },
};

static void write_handle(struct table *table, const struct gap_line *stream)
{
	struct buf name = { 0 };

	if (!stream->knows_handle) {
		table_unknown(table);
		return;
	}
	if (!stream->handle)
		buf_puts(&name, "default");
	else
		buf_hex(&name, stream->handle);
	table_text(table, name.data);
	buf_free(&name);
}

static void write_stream(struct table *table, const struct gap_line *stream)
{
	struct gap_sum all = gaps_all_causes(stream);

	table_u64(table, stream->device);
	table_u64(table, stream->process->pid);
	table_u64(table, stream->context);
	table_u64(table, stream->stream);
	write_handle(table, stream);
	table_u64(table, stream->activities);
	table_u64(table, stream->busy_ns);
	table_real(table, gaps_percent(stream->busy_ns, gap_line_span_ns(stream)));
	table_u64(table, stream->idle_ns);
	table_u64(table, all.count);
	table_u64(table, all.ns);
	table_u64(table, all.longest_ns);
	for (size_t i = 0; i < GAP_HTA_COUNT; i++)
		table_u64(table, stream->hta_ns[i]);
	table_end_row(table);
}

static int write_streams(struct report_writer *writer, struct err *err)
{
	struct table *table = writer->table;
	const struct gap_line *const *rows;
	size_t n;

	rows = gaps_streams(writer->analysis, &n);
	table_begin(table, "streams", "Streams", TABLE_COLUMNS(stream_columns));
	for (size_t i = 0; i < n; i++)
		write_stream(table, rows[i]);
	if (n)
		table_note(table, "host_wait, kernel_wait, other: the idle time as Holistic Trace "
		                  "Analysis divides it, all gaps, kernel_wait below 30 us");
	return table_end(table, err);
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* A GPU with one stream has been told of already; programs find all parts in any case. */
static int write_parts_of_streams(struct report_writer *writer, struct err *err)
{
	struct gpu_gap *gaps;
	size_t n, n_streams, n_gpus;
	int rc = write_streams(writer, err);

	gaps_streams(writer->analysis, &n_streams);
	gaps_devices(writer->analysis, &n_gpus);
	if (rc || (for_people(writer) && n_streams == n_gpus))
		return rc;
	rc = gaps_write_causes_of_streams(writer, err);
	gaps = gaps_longest_of_streams(writer->analysis, &n);
	return rc ? rc
	          : write_longest(writer, "longest_of_streams", "Longest gaps of streams", gaps, n,
	                          false, err);
}

static int write_gaps(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct report_writer *writer = (struct report_writer *)self;
	struct gpu_gap *gaps;
	size_t n, n_gpus;
	int rc;

	gaps_finish(writer->analysis);
	rc = write_conclusions(writer, run, err);
	gaps_devices(writer->analysis, &n_gpus);
	if (rc || (for_people(writer) && !n_gpus))
		return rc;
	rc = write_gpus(writer, err);
	rc = rc ? rc : write_processes(writer, err);
	rc = rc ? rc : gaps_write_causes(writer, err);
	rc = rc ? rc : gaps_write_waits(writer, run, err);
	rc = rc ? rc : gaps_write_host(writer, err);
	gaps = gaps_longest(writer->analysis, &n);
	rc = rc ? rc
	        : write_longest(writer, "longest", "Longest gaps", gaps, n,
	                        gaps_places(writer->analysis) != NULL, err);
	return rc ? rc : write_parts_of_streams(writer, err);
}

static const struct consumer_ops ops = { .event = report_feed,
	                                 .end = write_gaps,
	                                 .free = report_free };

struct consumer *gaps_report_new(const struct report *report, const struct report_options *options)
{
	size_t top = table_options(options->table)->top;
	struct gaps_options gaps = { .threshold_ns = threshold_of(options),
		                     .work = options->work,
		                     .longest = top > LONGEST_GROUPED ? top : LONGEST_GROUPED };

	return report_of(gaps_new(&gaps), &ops, report, options);
}
