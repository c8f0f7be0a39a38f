// SPDX-License-Identifier: MIT
/*
 * The report `findings`: what `why` tells, as tables. What to change, the most gain first, each
 * with how sure it is and what to try; the whole account of each GPU; and facts beside it.
 */
#include "report/findings/findings.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/xids.h"
#include "base/buf.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "cuda/driver_words.h"
#include "report/who_columns.h"
#include "report/reports.h"
#include "report/why_words.h"
#include "table/table_text.h"

/* ---- findings xids ------------------------------------------------------------------------- */

/* Findings about Xids: what the driver said went wrong, and the calls that failed of it. */

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
static bool xids_gather(const struct xid_row *rows, size_t n, size_t at, struct same_xids *same)
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

static void xids_say(struct finding *row, const struct same_xids *same, const struct run_info *run,
                     uint64_t more)
{
	const struct xid_row *first = same->first;
	const struct xid *xid = xid_find(first->number);
	uint64_t at_ns = first->time_ns > run->begin_ns ? first->time_ns - run->begin_ns : 0;
	struct buf text = { 0 };

	buf_printf(&text, "Xid %u (%s) ", first->number, xid ? xid->name : "of unknown meaning");
	if (same->count > 1)
		buf_printf(&text, "%lu times, first ", same->count);
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
		buf_printf(&text, "; %lu more Xids were not kept", more);
	row->seen = text.data;
}

void findings_add_xids(struct findings *findings, const struct xids *xids,
                       const struct run_info *run)
{
	struct same_xids same;
	uint64_t more;
	size_t n;
	const struct xid_row *rows = xids_rows(xids, &n, &more);

	for (size_t i = 0; i < n; i++) {
		const struct xid *xid = xid_find(rows[i].number);
		struct finding *row;

		if (!xids_gather(rows, n, i, &same))
			continue;
		row = findings_add(findings, "xids");
		row->pid = same.first->process->pid;
		row->count = same.count;
		row->title = xstrdup("errors of the GPU that the driver reported");
		xids_say(row, &same, run, more);
		row->hint =
			xid ? xid->meaning : "look the number up in NVIDIA's list of Xid errors";
	}
}

/* ---- findings ------------------------------------------------------------------------------ */

#define WIDTH       100  /* of text that is not for a terminal */
#define BEFORE_TEXT 16   /* columns before it: "  12  through  " and one to spare */
#define LEAST       0.01 /* of an account: less of it has no row */

struct findings_report {
	struct report_writer writer; /* first: what callers hold; its analysis is the answer */
	struct findings facts;       /* those of Xids first: a program fails of them */
	size_t n_xids;
	bool kernel_side; /* something of it was recorded */
	size_t n;         /* rows so far */
};

static struct why *why_of_report(const struct findings_report *report)
{
	return (struct why *)report->writer.analysis;
}

/* Whether the row of that number is told. */
static bool is_told(const struct findings_report *report, size_t number)
{
	size_t top = table_options(report->writer.table)->top;

	return !top || number < top;
}

/* ---- what to change ------------------------------------------------------------------------ */

static const struct table_column columns[] = {
	{ "No", TABLE_NUMBER },        { "Time", TABLE_DURATION }, { "Of Time", TABLE_PERCENT },
	{ "Of Step", TABLE_DURATION }, { "Faster", TABLE_REAL },   { "Count", TABLE_NUMBER },
	{ "PID", TABLE_NUMBER },       { "Device", TABLE_NUMBER }, { "TID", TABLE_NUMBER },
	{ "Sure", TABLE_TEXT },        { "Cause", TABLE_TEXT },    { "Finding", TABLE_WORDS },
};

static uint64_t ns_of_step(const struct why *why, const struct answer_change *change)
{
	return (uint64_t)(why_part(change) * (double)why_step_ns(why_steps(why, change->account)));
}

static void write_change(struct findings_report *report, const struct answer_change *change)
{
	static const char *const sure[] = { "yes", "mostly", "no" };
	struct why *why = why_of_report(report);
	bool has_step = why_has_step(why, change->account);
	struct table *table = report->writer.table;
	AT_END(buf_free) struct buf text = { 0 };

	TABLE_CELLS(table, ++report->n, (uint64_t)change->gain_ns, 100 * why_part(change),
	            TABLE_IF(has_step, ns_of_step(why, change)),
	            change->account->device != FACTS_NONE ? why_factor(change) : NAN, change->count,
	            change->account->process->pid,
	            TABLE_IF(change->account->device != FACTS_NONE, change->account->device),
	            TABLE_IF(change->thread != FACTS_NONE, why->facts.threads[change->thread].tid),
	            sure[change->sure], account_cause_name(change->cause));
	why->out = &text;
	why_what(why, change);
	TABLE_LAST(table, text.data);
}

static void write_fact(struct findings_report *report, const struct finding *fact)
{
	struct table *table = report->writer.table;

	table_u64(table, ++report->n);
	for (int i = 0; i < 4; i++)
		table_unknown(table);
	TABLE_LAST(table, fact->count, TABLE_IF(fact->pid, fact->pid),
	           TABLE_IF(fact->device != FACTS_NONE, fact->device), TABLE_UNKNOWN, TABLE_UNKNOWN,
	           fact->cause, fact->title);
}

static void note_nothing(struct findings_report *report)
{
	struct why *why = why_of_report(report);
	AT_END(buf_free) struct buf text = { 0 };

	why->out = &text;
	if (why->accounts.n)
		why_nothing(why, why_of(why));
	else
		buf_puts(&text, why_words_none(&why->facts, &why->options));
	table_note(report->writer.table, "%s", text.data);
}

static void write_findings(void *self, struct table *table, const struct run_info *run)
{
	struct findings_report *report = self;
	const struct answer *answer = &why_of_report(report)->answer;

	for (size_t i = 0; i < report->n_xids; i++)
		write_fact(report, &report->facts.rows[i]);
	for (size_t i = 0; i < answer->n_changes; i++)
		write_change(report, &answer->changes[i]);
	for (size_t i = report->n_xids; i < report->facts.n; i++)
		write_fact(report, &report->facts.rows[i]);
	if (answer->n_changes)
		table_note(table, "Time: of that GPU or thread; Faster: about how many times as "
		                  "fast it would be without it. Two can have the same time to "
		                  "gain, so that they do not add up");
	else
		note_nothing(report);
	report_note_estimated(table, run);
}

/* ---- what is known of each ----------------------------------------------------------------- */

static const struct table_column detail_columns[] = {
	{ "No", TABLE_NUMBER },
	{ "About", TABLE_TEXT },
	{ "Text", TABLE_WORDS },
};

/* One row; for people as many as the text has lines. */
static void write_detail(struct table *table, size_t number, const char *about, const char *text)
{
	size_t width = words_width(table, BEFORE_TEXT, WIDTH - BEFORE_TEXT);
	AT_END(buf_free) struct buf line = { 0 };
	bool more = text && *text;

	TABLE_CELLS(table, number, about);
	while (more) {
		more = words_line(&text, width, &line);
		TABLE_LAST(table, line.data);
		if (!more)
			break;
		TABLE_CELLS(table, "", "");
	}
}

static void add_longest_name(const struct answer_change *change, struct buf *out)
{
	static const char *const classes[FACT_CLASSES] = {
		[FACT_KERNEL] = "a kernel",
		[FACT_COMMUNICATION] = "a kernel of communication",
		[FACT_COPY] = "a copy",
	};

	if (change->call)
		add_function_name(out, change->call->function);
	else if (change->work && change->work->sampled)
		buf_puts(out, "what the GPU ran at a stretch");
	else
		buf_puts(out, change->work ? classes[change->work->class] : "a wait");
}

/* "cudaMemcpy took 1.200 ms, at 35.123 ms": of calls, work or waits the longest; nothing of others.
 */
static void add_longest(const struct findings_report *report, const struct answer_change *change,
                        struct buf *out)
{
	uint64_t begin_ns, end_ns;

	if (change->call)
		begin_ns = change->call->begin_ns, end_ns = change->call->end_ns;
	else if (change->work)
		begin_ns = change->work->begin_ns, end_ns = change->work->end_ns;
	else if (change->longest)
		begin_ns = change->longest->begin_ns, end_ns = change->longest->end_ns;
	else
		return;
	add_longest_name(change, out);
	buf_printf(out, " took %s, at ", TEXT_DURATION(end_ns - begin_ns));
	buf_fixed(out,
	          (begin_ns > report->writer.begin_ns ? begin_ns - report->writer.begin_ns + 500
	                                              : 0) /
	                  1000,
	          3);
	buf_puts(out, " ms");
}

static void write_change_details(struct findings_report *report, size_t number,
                                 const struct answer_change *change)
{
	struct why *why = why_of_report(report);
	struct table *table = report->writer.table;
	const char *hint = why_words_try(change, why->facts.chains);
	AT_END(buf_free) struct buf text = { 0 };

	why->out = &text;
	if (change->via) {
		why_through(why, change->via);
		write_detail(table, number, "through", text.data);
		buf_reset(&text);
	}
	if (change->rival) {
		why_rival(why, change);
		write_detail(table, number, "rival", text.data);
		buf_reset(&text);
	}
	why_gain(why, change);
	write_detail(table, number, "gain", text.data);
	buf_reset(&text);
	why_words_sure(change, &why->facts, &text);
	write_detail(table, number, "sure", text.data);
	buf_reset(&text);
	add_longest(report, change, &text);
	if (text.len)
		write_detail(table, number, "longest", text.data);
	if (hint)
		write_detail(table, number, "try", hint);
}

static void write_fact_details(struct findings_report *report, size_t *number, size_t from,
                               size_t to)
{
	for (size_t i = from; i < to && is_told(report, *number); i++) {
		const struct finding *fact = &report->facts.rows[i];

		write_detail(report->writer.table, ++*number, "seen", fact->seen);
		write_detail(report->writer.table, *number, "try", fact->hint);
	}
}

static void write_details(void *self, struct table *table, const struct run_info *run)
{
	struct findings_report *report = self;
	const struct answer *answer = &why_of_report(report)->answer;
	size_t number = 0;

	if (!report_table_of(&report->writer, report->n, "details",
	                     "What is known of each, and what to try",
	                     TABLE_COLUMNS(detail_columns)))
		return;
	table_whole(table);
	write_fact_details(report, &number, 0, report->n_xids);
	for (size_t i = 0; i < answer->n_changes && is_told(report, number); i++)
		write_change_details(report, ++number, &answer->changes[i]);
	write_fact_details(report, &number, report->n_xids, report->facts.n);
}

/* ---- accounts ------------------------------------------------------------------------------ */

static const struct table_column account_columns[] = {
	{ "PID", TABLE_NUMBER },    { "Device", TABLE_NUMBER },   { "TID", TABLE_NUMBER },
	{ "Time", TABLE_DURATION }, { "Of Time", TABLE_PERCENT }, { "Cause", TABLE_TEXT },
	{ "What", TABLE_WORDS },
};

static void write_part(struct findings_report *report, const struct account *account,
                       const struct answer_line *line)
{
	struct why *why = why_of_report(report);
	struct table *table = report->writer.table;
	bool rest = line->cause == ACCOUNT_CAUSES;
	AT_END(buf_free) struct buf text = { 0 };

	TABLE_CELLS(table, account->process->pid,
	            TABLE_IF(account->device != FACTS_NONE, account->device),
	            TABLE_IF(line->thread != FACTS_NONE, why->facts.threads[line->thread].tid),
	            (uint64_t)line->ns, 100 * line->ns / account->ns,
	            rest ? "rest" : account_cause_name(line->cause));
	why->out = &text;
	if (rest)
		buf_puts(&text, "all else");
	else
		why_where(why, account, line);
	TABLE_LAST(table, text.data);
}

/* What is less than a row is worth is of all else; the first line, which has most, stays. */
static size_t fold_small(const struct account *account, struct answer_line *lines, size_t n)
{
	size_t kept = n && lines[n - 1].cause == ACCOUNT_CAUSES ? n - 1 : n, before = kept;
	double told = 0;

	while (kept > 1 && lines[kept - 1].ns < LEAST * account->ns)
		kept--;
	if (kept == before)
		return n;
	for (size_t i = 0; i < kept; i++)
		told += lines[i].ns;
	lines[kept] = (struct answer_line){ .cause = ACCOUNT_CAUSES,
		                            .thread = FACTS_NONE,
		                            .ns = account->ns - told };
	return kept + 1;
}

static void write_accounts(void *self, struct table *table, const struct run_info *run)
{
	struct findings_report *report = self;
	struct why *why = why_of_report(report);
	struct answer_line lines[4 * ACCOUNT_CAUSES];

	if (!report_table_of(&report->writer, why->accounts.n, "account",
	                     "What the time of each GPU consists of",
	                     TABLE_COLUMNS(account_columns)))
		return;
	table_whole(table);
	for (size_t i = 0; i < why->accounts.n; i++) {
		const struct account *account = &why->accounts.of[i];
		size_t n = answer_lines(&why->answer, account, lines, 4 * ACCOUNT_CAUSES);

		n = fold_small(account, lines, n);
		for (size_t k = 0; k < n; k++)
			write_part(report, account, &lines[k]);
	}
}

/* ---- what is not known --------------------------------------------------------------------- */

static const struct table_column unknown_columns[] = { { "What", TABLE_WORDS } };

static void write_unknown(void *self, struct table *table, const struct run_info *run)
{
	struct findings_report *report = self;
	struct why *why = why_of_report(report);
	const char *const *sentence = why_words_missing(&why->facts, &why->accounts, &why->options);
	size_t n;

	table_whole(table);
	for (; *sentence; sentence++) {
		TABLE_LAST(table, *sentence);
	}
	metrics_use_gpus(why->metrics, &n);
	if (!n) {
		TABLE_LAST(table, "what bounds kernels: metrics of GPUs were not recorded (record "
		                  "--gpu-metrics)");
	}
	if (!report->kernel_side) {
		TABLE_LAST(table, "errors that the driver reports: they were not recorded (record "
		                  "--kernel)");
	}
	report_note_gpu_lost(table, run);
}

/* ---- the report ---------------------------------------------------------------------------- */

static void findings_see(void *self, const struct event *event)
{
	struct findings_report *report = self;

	if (event->type == EVENT_OTHER_CALL)
		report->kernel_side |= event->call->function->layer == LAYER_KERNEL;
}

static void findings_conclude(void *self, const struct run_info *run)
{
	struct findings_report *report = self;
	const struct why *why = why_of_report(report);

	findings_add_xids(&report->facts, report->writer.xids, run);
	report->n_xids = report->facts.n;
	findings_add_bounds(&report->facts, why->metrics);
	findings_add_small_copies(&report->facts, &why->facts);
}

static void findings_free(void *self)
{
	findings_clear(&((struct findings_report *)self)->facts);
}

const struct report_kind findings_report = {
	.bytes = sizeof(struct findings_report),
	.why = true,
	.xids = true,
	.metrics = true,
	.event = findings_see,
	.conclude = findings_conclude,
	.clear = findings_free,
	.parts = { { "findings", NULL, TABLE_COLUMNS(columns), write_findings },
	           { .write = write_details },
	           { .write = write_accounts },
	           { "not_known", "Not known", TABLE_COLUMNS(unknown_columns), write_unknown } },
};
