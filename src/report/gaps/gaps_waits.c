// SPDX-License-Identifier: MIT
/* What the host waited for in gaps, in tables and in a sentence; who had the CPU meanwhile. */
#include "report/gaps/gaps_report.h"

#define WHO_TOLD    5  /* of a GPU */
#define PARTS_TOLD  3  /* in the sentence */
#define TOLD_SHARE  5  /* percent, from which on a part beside the first is told of */
#define LINE_MOSTLY 50 /* percent of what has a stack, from which on a line is named */
#define LINE_STACKS 10 /* fewer tell of a line only where they are most of the part's time */

static bool for_people(const struct report_writer *writer)
{
	return table_options(writer->table)->form == TABLE_FORM_TEXT;
}

/*
 * The line in which most of it was spent, of which waits have stacks by chance, the likelier the
 * longer they are apart; NULL: too few of them tell. Lives as long as `places`.
 */
static const char *line_of(const struct gap_wait_sum *sum, struct stack_places *places)
{
	const struct gap_stacks *lines = &sum->lines;
	const char *line = NULL;
	struct gap_host host;

	if (!places || (lines->known.samples < LINE_STACKS &&
	                gaps_percent(lines->known.blocked_ns, sum->ns) < LINE_MOSTLY))
		return NULL;
	gap_host_sum_up(&lines, 1, places, &host);
	if (host.n &&
	    gaps_percent(gap_place_ns(&host.places[0]), lines->known.blocked_ns) >= LINE_MOSTLY)
		line = gap_place_label(places, &host.places[0]);
	gap_host_free(&host);
	return line;
}

/* "PID 4242 (cc1)", "thread 4243 (loader)" */
static void add_who(struct buf *out, const struct gap_whos *whos, enum gap_wait wait, uint32_t who)
{
	const struct gap_who *of = gap_whos_at(whos, who);

	if (who < GAP_WHO_FIRST)
		buf_puts(out, of->name);
	else
		buf_printf(out, "%s %u (%s)", wait == GAP_WAIT_CPU ? "PID" : "thread", of->number,
		           of->name);
}

/* The one with most of it, where that is half or more; false: nobody in particular. */
static bool add_most_who(struct buf *out, const struct gap_whos *whos,
                         const struct gap_waits *waits, enum gap_wait wait)
{
	const struct gap_wait_sum *sum = &waits->of[wait];
	struct gap_who_sum most;
	uint64_t rest_ns;

	if (!gap_waits_who(sum, &most, 1, &rest_ns) || most.who < GAP_WHO_FIRST ||
	    most.ns < sum->ns / 2)
		return false;
	add_who(out, whos, wait, most.who);
	return true;
}

void gaps_add_wait(struct buf *out, const struct gap_waits *waits, enum gap_wait wait,
                   const struct gap_whos *whos, struct stack_places *places)
{
	const struct gap_wait_sum *sum = &waits->of[wait];
	struct buf who = { 0 };
	const char *line = line_of(sum, places);

	buf_printf(out, "%s for %.0f %%", gap_wait_text(wait),
	           gaps_percent(sum->ns, waits->host_ns));
	if (add_most_who(&who, whos, waits, wait))
		buf_printf(out, wait == GAP_WAIT_CPU ? ", which mostly %s had" : ", mostly %s",
		           who.data);
	if (line)
		buf_printf(out, ", in %s", line);
	buf_free(&who);
}

void gaps_add_wait_of(struct buf *out, const struct gpu_gap *gap)
{
	uint64_t gap_ns = gpu_gap_ns(gap);

	if (gap->wait == GAP_WAIT_PROGRAM || gap->wait == GAP_WAIT_DRIVER ||
	    gap->wait_ns < gap_ns / 10 || !gap->wait_ns)
		return;
	buf_printf(out, ", %s ", gap_wait_text(gap->wait));
	buf_duration(out, gap->wait_ns);
	buf_printf(out, " (%.0f %%)", gaps_percent(gap->wait_ns, gap_ns));
}

void gaps_add_waits(struct buf *out, const struct gap_waits *waits, const struct gap_whos *whos,
                    struct stack_places *places)
{
	enum gap_wait order[GAP_WAITS];
	size_t n = gap_waits_order(waits, order);

	for (size_t i = 0; i < n && i < PARTS_TOLD; i++) {
		if (i && gaps_percent(waits->of[order[i]].ns, waits->host_ns) < TOLD_SHARE)
			break;
		buf_puts(out, i ? "; it " : "in its gaps the host ");
		gaps_add_wait(out, waits, order[i], whos, places);
	}
}

/* ---- tables -------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{ "GPU", TABLE_NUMBER },    { "Host", TABLE_TEXT },    { "Time", TABLE_DURATION },
	{ "Share", TABLE_PERCENT }, { "Waits", TABLE_NUMBER }, { "Longest", TABLE_DURATION },
	{ "Who", TABLE_TEXT },      { "Line", TABLE_TEXT },    { "Meaning", TABLE_WORDS },
};

static void write_part(struct report_writer *writer, const struct gap_line *gpu, enum gap_wait wait)
{
	const struct gap_wait_sum *sum = &gpu->waits->of[wait];
	struct table *table = writer->table;
	struct buf who = { 0 };

	add_most_who(&who, gaps_whos(writer->analysis), gpu->waits, wait);
	table_u64(table, gpu->device);
	table_text(table, gap_wait_name(wait));
	table_u64(table, sum->ns);
	table_real(table, gaps_percent(sum->ns, gpu->waits->host_ns));
	table_known(table, sum->count > 0, sum->count);
	table_known(table, sum->count > 0, sum->longest_ns);
	table_text(table, who.data);
	table_text(table, line_of(sum, gaps_places(writer->analysis)));
	table_text(table, gap_wait_text(wait));
	table_end_row(table);
	buf_free(&who);
}

/* Times that were only added up are in no gap in particular. */
static void note_short(struct table *table, const struct run_info *run)
{
	struct buf least = { 0 };

	buf_duration(&least, run->stacks.blocked_ns);
	table_note(table,
	           "Share: of the host's time in all gaps that are due to it and not apart; waits "
	           "below %s are in program, and in driver within calls of CUDA",
	           least.data);
	buf_free(&least);
}

static int write_parts(struct report_writer *writer, const struct run_info *run, struct err *err)
{
	struct table *table = writer->table;
	const struct gap_line *const *gpus;
	enum gap_wait order[GAP_WAITS];
	size_t n, n_parts;

	gpus = gaps_devices(writer->analysis, &n);
	table_begin(table, "host_waits", "What the host waited for", TABLE_COLUMNS(columns));
	table_whole(table);
	for (size_t i = 0; i < n; i++) {
		n_parts = gap_waits_order(gpus[i]->waits, order);
		for (size_t k = 0; k < n_parts; k++)
			write_part(writer, gpus[i], order[k]);
	}
	note_short(table, run);
	return table_end(table, err);
}

static const struct table_column who_columns[] = {
	{ "GPU", TABLE_NUMBER },   { "Time", TABLE_DURATION }, { "Share", TABLE_PERCENT },
	{ "Waits", TABLE_NUMBER }, { "PID", TABLE_NUMBER },    { "Name", TABLE_TEXT },
};

static void write_rivals(struct report_writer *writer, const struct gap_line *gpu)
{
	const struct gap_wait_sum *sum = &gpu->waits->of[GAP_WAIT_CPU];
	struct table *table = writer->table;
	struct gap_who_sum rows[WHO_TOLD];
	uint64_t rest_ns;
	size_t n = gap_waits_who(sum, rows, WHO_TOLD, &rest_ns);

	for (size_t i = 0; i < n; i++) {
		const struct gap_who *who = gap_whos_at(gaps_whos(writer->analysis), rows[i].who);

		table_u64(table, gpu->device);
		table_u64(table, rows[i].ns);
		table_real(table, gaps_percent(rows[i].ns, sum->ns));
		table_u64(table, rows[i].count);
		table_known(table, who->number > 0, who->number);
		table_text(table, who->name);
		table_end_row(table);
	}
}

static int write_all_rivals(struct report_writer *writer, struct err *err)
{
	const struct gap_line *const *gpus;
	uint64_t any_ns = 0;
	size_t n;

	gpus = gaps_devices(writer->analysis, &n);
	for (size_t i = 0; i < n; i++)
		any_ns += gpus[i]->waits->of[GAP_WAIT_CPU].ns;
	if (!any_ns && for_people(writer))
		return 0;
	table_begin(writer->table, "cpu_rivals", "Who had the CPU that it waited for",
	            TABLE_COLUMNS(who_columns));
	table_whole(writer->table);
	for (size_t i = 0; i < n; i++)
		write_rivals(writer, gpus[i]);
	table_note(writer->table, "the five with most time of each GPU's host; (nobody): the CPU "
	                          "was idle, or the thread's group had used up its time");
	return table_end(writer->table, err);
}

int gaps_write_waits(struct report_writer *writer, const struct run_info *run, struct err *err)
{
	const struct gap_line *const *gpus;
	uint64_t any_ns = 0;
	size_t n;
	int rc;

	gpus = gaps_devices(writer->analysis, &n);
	for (size_t i = 0; i < n; i++)
		any_ns += gpus[i]->waits->host_ns;
	if (!gaps_whos(writer->analysis) || (!any_ns && for_people(writer)))
		return 0;
	rc = write_parts(writer, run, err);
	return rc ? rc : write_all_rivals(writer, err);
}
