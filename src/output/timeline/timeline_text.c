// SPDX-License-Identifier: MIT
/*
 * A timeline as text:
 *
 *                      0.0 ms       5.0 ms       10.0 ms
 *                      |            |            |
 *   train (pid 4242)
 *     4242             IIIIIMM....TTTkkkkSSSSSSSSSSSSSS    61.2 %
 *
 * then what each stage took, the longest calls, and all calls with bars where they are few.
 */
#include "output/timeline/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "output/describe.h"
#include "table/table.h"

#define TIME_COLUMNS     10
#define DURATION_COLUMNS 10
#define STAGE_BAR        20 /* columns of the longest bar in the table of stages */
#define LIST_BAR         16 /* of the list's axis, in a terminal of 100 columns */

/* ---- what the pieces share ----------------------------------------------------------------- */

/* As the lines of `trace` are coloured, and a few more. */
static const char *const category_styles[CATEGORY_COUNT] = {
	[CATEGORY_INIT] = "\033[1m",      [CATEGORY_MEMORY] = "\033[36m",
	[CATEGORY_TRANSFER] = "\033[34m", [CATEGORY_KERNEL] = "\033[32m",
	[CATEGORY_SYNC] = "\033[33m",     [CATEGORY_MODULE] = "\033[35m",
};

int64_t timeline_since(const struct timeline_printer *p, uint64_t time_ns)
{
	return (int64_t)(time_ns - p->run->begin_ns);
}

void timeline_style(const struct timeline_printer *p, const char *code)
{
	if (p->options->color && code)
		buf_puts(p->out, code);
}

void timeline_category_style(const struct timeline_printer *p, enum category category)
{
	timeline_style(p, category_styles[category]);
}

void timeline_style_off(const struct timeline_printer *p)
{
	timeline_style(p, "\033[0m");
}

static void timeline_title(const struct timeline_printer *p, const char *text)
{
	buf_putc(p->out, '\n');
	timeline_style(p, "\033[1m");
	buf_puts(p->out, text);
	timeline_style_off(p);
	buf_putc(p->out, '\n');
}

/* `length` of `columns`, in eighths where there are such characters; at least a trace of it. */
static void timeline_add_bar(const struct timeline_printer *p, struct buf *out, double length,
                             double columns)
{
	static const char *const parts[] = { "",       "\u258f", "\u258e", "\u258d",
		                             "\u258c", "\u258b", "\u258a", "\u2589" };
	int eighths = length > 0 ? (int)((length < columns ? length : columns) * 8 + 0.5) : 0;

	if (eighths < 1)
		eighths = 1;
	if (!p->options->utf8)
		eighths = eighths < 8 ? 8 : (eighths + 4) / 8 * 8;
	for (; eighths >= 8; eighths -= 8)
		buf_puts(out, p->options->utf8 ? "\u2588" : "#");
	buf_puts(out, parts[eighths]);
}

static void add_ms(const struct timeline_printer *p, struct buf *out, uint64_t time_ns)
{
	int64_t ns = timeline_since(p, time_ns);

	if (ns < 0)
		buf_putc(out, '-');
	buf_fixed(out, (uint64_t)(ns < 0 ? -ns : ns) / 1000, 3);
}

/* ---- stages -------------------------------------------------------------------------------- */

struct stage {
	const char *what; /* "", "GPU " */
	enum category category;
	const struct timeline_sum *sum;
	uint64_t all_ns; /* of its kind */
	bool known;      /* durations were recorded */
};

static size_t gather(const struct timeline_sum sums[CATEGORY_COUNT], const char *what, bool known,
                     struct stage *stages)
{
	uint64_t all = 0;
	size_t n = 0;

	for (int c = 0; c < CATEGORY_COUNT; c++)
		all += sums[c].ns;
	for (int c = 0; c < CATEGORY_COUNT; c++) {
		size_t at = n;

		if (!sums[c].calls)
			continue;
		while (at && sums[c].ns > stages[at - 1].sum->ns) {
			stages[at] = stages[at - 1];
			at--;
		}
		stages[at] = (struct stage){ what, c, &sums[c], all, known };
		n++;
	}
	return n;
}

static const struct table_column stage_columns[] = {
	{ "STAGE", TABLE_WORDS }, { "CALLS", TABLE_NUMBER },     { "TIME", TABLE_DURATION },
	{ "%", TABLE_PERCENT },   { "AVERAGE", TABLE_DURATION }, { "LONGEST", TABLE_DURATION },
	{ "SHARE", TABLE_TEXT },
};

static void add_stage(const struct timeline_printer *p, struct table *table,
                      const struct stage *stage)
{
	const struct timeline_sum *sum = stage->sum;
	double share = stage->all_ns ? (double)sum->ns / (double)stage->all_ns : 0;
	AT_END(buf_free) struct buf name = { 0 }, bar = { 0 };

	buf_printf(&name, "%s%s", stage->what, category_name(stage->category));
	buf_puts(&bar, "");
	if (sum->ns)
		timeline_add_bar(p, &bar, share * STAGE_BAR, STAGE_BAR);
	TABLE_LAST(table, name.data, sum->calls, TABLE_IF(stage->known, sum->ns),
	           stage->known ? 100 * share : NAN, TABLE_IF(stage->known, sum->ns / sum->calls),
	           TABLE_IF(stage->known, sum->longest_ns), bar.data);
}

static void add_stages(const struct timeline_printer *p)
{
	struct table *table = table_open(
		&(struct table_options){ .page = p->out, .width = p->options->width }, false);
	struct stage stages[2 * CATEGORY_COUNT];
	size_t n = gather(p->view->calls, "", p->run->returns, stages);

	n += gather(p->view->gpu, "GPU ", true, stages + n);
	timeline_title(p, "PIPELINE SUMMARY");
	table_begin(table, NULL, NULL, TABLE_COLUMNS(stage_columns));
	for (size_t i = 0; i < n; i++)
		add_stage(p, table, &stages[i]);
	if (!p->run->returns)
		table_note(table, "(no durations: this trace was recorded without returns)");
	table_end(table, NULL);
	table_close(table);
}

/* ---- calls --------------------------------------------------------------------------------- */

#define SUBJECT_LEAST 16
#define CALL_LEAST    20 /* columns of a call's words, where a terminal leaves less */
#define INDENT_MOST   8

static size_t columns_of(const struct buf *text)
{
	return text->len ? text_columns(text->data) + 1 : 0; /* with the blank before */
}

static void add_word(struct buf *out, const struct buf *word)
{
	if (!word->len)
		return;
	buf_putc(out, ' ');
	buf_add(out, word->data, word->len);
}

/* "    cuLaunchKernel tick() grid=(1,1,1) ...": a kernel's name gives way before the rest. */
static void add_call(const struct slow_call *slow, struct buf *out, size_t room)
{
	AT_END(description_free) struct description d = { 0 };
	AT_END(buf_free) struct buf line = { 0 };
	uint32_t depth = slow->call.depth < INDENT_MOST ? slow->call.depth : INDENT_MOST;
	size_t others;

	describe(&slow->call, &d);
	buf_fill(&line, ' ', 2 * depth);
	text_add_safe(&line, slow->call.function->name);
	others = text_columns(line.data) + columns_of(&d.words) + columns_of(&d.result) + 1;
	if (d.subject.len) {
		buf_putc(&line, ' ');
		text_add_name(&line, d.subject.data,
		              room > others + SUBJECT_LEAST ? room - others : SUBJECT_LEAST);
	}
	add_word(&line, &d.words);
	add_word(&line, &d.result);
	text_add_cut(out, line.data, room);
}

static void add_duration(const struct slow_call *slow, struct buf *out)
{
	if (slow->call.flags & CALL_UNFINISHED)
		buf_puts(out, "unfinished");
	else if (slow->call.flags & CALL_NO_RETURN)
		buf_putc(out, '-');
	else
		buf_duration(out, call_duration_ns(&slow->call));
}

/* The bar of one call on the list's axis. */
static void add_call_bar(const struct timeline_printer *p, const struct call *call, size_t columns)
{
	double column_ns = (double)(p->view->to_ns - p->view->from_ns) / (double)columns;
	int64_t to_end = (int64_t)(call->end_ns - p->view->from_ns);
	double begin = (double)(int64_t)(call->begin_ns - p->view->from_ns) / column_ns;
	double end = call_has_end(call) ? (double)to_end / column_ns : begin;
	AT_END(buf_free) struct buf bar = { 0 };
	size_t before = begin < (double)columns ? (size_t)number_u64(begin) : columns - 1;

	begin = begin > 0 ? begin : 0;
	timeline_add_bar(p, &bar, end - begin, (double)(columns - before));
	buf_fill(p->out, ' ', before);
	timeline_category_style(p, category_of(call->function));
	buf_puts(p->out, bar.data);
	timeline_style_off(p);
	buf_fill(p->out, ' ', columns - before - text_columns(bar.data));
}

/* `bar`: columns of the axis, 0: none. */
static void add_row(const struct timeline_printer *p, const struct slow_call *slow,
                    size_t tid_columns, size_t bar)
{
	size_t used = 2 + TIME_COLUMNS + 2 + DURATION_COLUMNS + 2 + tid_columns + 2;
	AT_END(buf_free) struct buf cell = { 0 };

	add_ms(p, &cell, slow->call.begin_ns);
	buf_printf(p->out, "  %*s", TIME_COLUMNS, cell.data);
	buf_reset(&cell);
	add_duration(slow, &cell);
	buf_printf(p->out, "  %*s  %*u  ", DURATION_COLUMNS, cell.data, (int)tid_columns,
	           slow->tid);
	if (bar) {
		add_call_bar(p, &slow->call, bar);
		buf_puts(p->out, "  ");
		used += bar + 2;
	}
	add_call(slow, p->out,
	         p->options->width > used + CALL_LEAST ? p->options->width - used : CALL_LEAST);
	buf_putc(p->out, '\n');
}

static void add_rows(const struct timeline_printer *p, const char *title,
                     const struct slow_call *rows, size_t n, size_t bar)
{
	size_t tid_columns = strlen("TID");

	for (size_t i = 0; i < n; i++) {
		size_t columns = (size_t)snprintf(NULL, 0, "%u", rows[i].tid);

		tid_columns = columns > tid_columns ? columns : tid_columns;
	}
	timeline_title(p, title);
	buf_printf(p->out, "  %*s  %*s  %*s  ", TIME_COLUMNS, "BEGIN(ms)", DURATION_COLUMNS,
	           "DURATION", (int)tid_columns, "TID");
	buf_fill(p->out, ' ', bar ? bar + 2 : 0);
	buf_puts(p->out, "CALL\n");
	for (size_t i = 0; i < n; i++)
		add_row(p, &rows[i], tid_columns, bar);
}

static void add_longest(const struct timeline_printer *p)
{
	char title[64];

	if (!p->view->n_longest)
		return;
	snprintf(title, sizeof(title), "LONGEST CALLS (%zu)", p->view->n_longest);
	add_rows(p, title, p->view->longest, p->view->n_longest, 0);
}

static void add_list(const struct timeline_printer *p)
{
	add_rows(p, "CALLS", p->view->list, p->view->n_list, LIST_BAR * p->options->width / 100);
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* "run.cuscope: 7.027 ms to 11.507 ms of 101.033 ms, a column is 63.10 us" */
static void add_head(const struct timeline_printer *p)
{
	const struct timeline_view *view = p->view;

	timeline_style(p, "\033[1m");
	text_add_safe(p->out, p->options->file);
	timeline_style_off(p);
	buf_puts(p->out, ": ");
	add_ms(p, p->out, view->from_ns);
	buf_puts(p->out, " ms to ");
	add_ms(p, p->out, view->to_ns);
	buf_puts(p->out, " ms of ");
	buf_duration(p->out, p->run->end_ns - p->run->begin_ns);
	buf_puts(p->out, ", a column is ");
	buf_duration(p->out, (view->to_ns - view->from_ns) / view->columns);
	buf_puts(p->out, "\n\n");
}

/* A call can have begun before a trace that was cut out of a longer one; an option cannot. */
static void add_option_ms(const struct timeline_printer *p, uint64_t time_ns)
{
	uint64_t begin_ns = p->run->begin_ns;

	buf_fixed(p->out, time_ns > begin_ns ? time_ns - begin_ns : 0, 6);
}

static void add_how_to_narrow(const struct timeline_printer *p)
{
	const struct timeline_view *view = p->view;

	buf_printf(p->out,
	           "\n%lu calls are in this window, too many to list (%d at most). To see some:\n"
	           "  --tid, or --from=",
	           view->all_calls, TIMELINE_LIST);
	add_option_ms(p, view->narrow_from_ns);
	buf_puts(p->out, "ms --to=");
	add_option_ms(p, view->narrow_to_ns);
	buf_puts(p->out, "ms\n");
}

void timeline_text(const struct timeline_view *view, const struct run_info *run,
                   const struct timeline_text_options *options, struct buf *out)
{
	struct timeline_printer p = { view, run, options, out };

	if (!view->n_lanes) {
		text_add_safe(out, options->file);
		buf_puts(out, ": no CUDA calls in this window\n");
		return;
	}
	add_head(&p);
	timeline_chart(&p);
	add_stages(&p);
	add_longest(&p);
	if (view->unfinished)
		buf_printf(out, "\n%lu call%s never returned: shown where they began\n",
		           view->unfinished, view->unfinished == 1 ? "" : "s");
	if (view->n_list)
		add_list(&p);
	else if (view->all_calls)
		add_how_to_narrow(&p);
}
