// SPDX-License-Identifier: MIT
/* The report `ranks`: which rank comes last to collectives, how long others wait for it, and why;
 * of a job that stands still, which rank has not come. */
#include "account/ranks.h"

#include <math.h>
#include <stdlib.h>

#include "account/answer.h"
#include "report/reports.h"
#include "report/why.h"
#include "report/why_words.h"

#define FRAMES 3

struct ranks_report {
	struct report_writer writer; /* first: what callers hold */
	const struct answer *answer;
	struct ranks ranks;
};

static const struct table_column rank_columns[] = {
	{ "Comm", TABLE_FIGURE },  { "Rank", TABLE_FIGURE },    { "PID", TABLE_NUMBER },
	{ "Count", TABLE_NUMBER }, { "Late", TABLE_PERCENT },   { "Med Late", TABLE_DURATION },
	{ "Held", TABLE_PERCENT }, { "Waited", TABLE_PERCENT }, { "Process", TABLE_TEXT },
};

static const struct table_column late_columns[] = {
	{ "Comm", TABLE_FIGURE },        { "Rank", TABLE_FIGURE },
	{ "Last", TABLE_PERCENT },       { "MAD Late", TABLE_DURATION },
	{ "99 % Late", TABLE_DURATION }, { "Held", TABLE_DURATION },
	{ "Beside", TABLE_DURATION },    { "Waited", TABLE_DURATION },
	{ "For Longer", TABLE_WORDS },
};

static const struct table_column standing_columns[] = {
	{ "Comm", TABLE_FIGURE },     { "Rank", TABLE_FIGURE },   { "PID", TABLE_NUMBER },
	{ "Launched", TABLE_NUMBER }, { "Behind", TABLE_NUMBER }, { "Still", TABLE_DURATION },
	{ "Function", TABLE_TEXT },   { "Process", TABLE_TEXT },  { "Does", TABLE_WORDS },
};

static const struct table_column kind_columns[] = {
	{ "Comm", TABLE_FIGURE },       { "Ranks", TABLE_NUMBER },     { "Size", TABLE_NUMBER },
	{ "Count", TABLE_NUMBER },      { "Measured", TABLE_NUMBER },  { "Med Bytes", TABLE_BYTES },
	{ "Transfer", TABLE_DURATION }, { "Waiting", TABLE_DURATION }, { "Waiting", TABLE_PERCENT },
	{ "Mostly", TABLE_WORDS },      { "Function", TABLE_TEXT },
};

/* ---- words ----------------------------------------------------------------------------------- */

static void comm_cell(const struct ranks_report *report, uint32_t number)
{
	AT_END(buf_free) struct buf text = { 0 };

	why_words_comm(report->answer->facts, number, &text);
	table_text(report->writer.table, text.data);
}

/* What it does while others wait for it. */
static void add_why(const struct ranks_report *report, const struct rank_row *row, struct buf *out)
{
	const struct account_part *why = row->why;

	if (!why)
		return;
	buf_puts(out, account_cause_text(why->cause));
	if (why->chain) {
		buf_puts(out, " in ");
		chains_label(report->answer->facts->chains, why->chain, FRAMES, out);
	}
	if (row->why_ns < 0.95 * row->why_of_ns)
		buf_printf(out, " (%.0f %%)", 100 * row->why_ns / row->why_of_ns);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* What all tables of ranks begin with. */
static void who_cells(const struct ranks_report *report, const struct rank_row *row)
{
	AT_END(buf_free) struct buf text = { 0 };

	comm_cell(report, row->rank->comm);
	why_words_rank_of(report->answer->facts, row->rank, &text);
	table_text(report->writer.table, text.len ? text.data : NULL);
}

static void write_row(const struct ranks_report *report, const struct rank_row *row)
{
	struct table *table = report->writer.table;
	const char *host = why_words_host(report->answer->facts, row->rank->process);
	AT_END(buf_free) struct buf name = { 0 };

	who_cells(report, row);
	TABLE_CELLS(table, row->rank->process->pid, row->n);
	table_share(table, row->n_late, row->n);
	table_known(table, row->n_late, rank_late_ns(row, 0.5));
	table_real(table, row->n ? 100 * rank_held(row) : NAN);
	table_real(table, row->n ? 100 * rank_waited(row) : NAN);
	if (host) {
		why_words_name(&name, host);
		buf_puts(&name, ": ");
	}
	why_words_name(&name, why_words_process(report->answer->facts, row->rank->process));
	table_text(table, name.data);
	table_end_row(table);
}

static void write_late_row(const struct ranks_report *report, const struct rank_row *row)
{
	struct table *table = report->writer.table;
	AT_END(buf_free) struct buf text = { 0 };

	who_cells(report, row);
	table_share(table, row->n_last, row->n);
	table_known(table, row->n_late, rank_late_deviation_ns(row));
	table_known(table, row->n_late, rank_late_ns(row, 0.99));
	TABLE_CELLS(table, row->held_ns);
	table_known(table, row->by_gpu, row->beside_ns);
	TABLE_CELLS(table, row->waited_ns);
	add_why(report, row, &text);
	table_text(table, text.len ? text.data : NULL);
	table_end_row(table);
}

static void write_standing_row(const struct ranks_report *report, const struct standing *standing,
                               const struct standing_rank *rank)
{
	struct table *table = report->writer.table;
	AT_END(buf_free) struct buf does = { 0 }, number = { 0 }, comm = { 0 };
	uint64_t launched = rank->told.counts[standing->kind];

	why_words_comm_of(standing->id[0], standing->person, standing->claimed, &comm);
	table_text(table, comm.data);
	buf_printf(&number, "%d", rank->told.number);
	table_text(table, number.data);
	table_known(table, rank->pid, rank->pid);
	TABLE_CELLS(table, launched, standing->most - launched, standing->still_ns);
	table_text(table, collective_kind_name(standing->kind));
	table_text(table, rank->name);
	why_words_does(rank, &does);
	table_text(table, does.data);
	table_end_row(table);
}

static void note_unmatched(const struct ranks_report *report)
{
	bool partly = false;
	const struct collectives *of = &report->answer->facts->collectives;
	struct table *table = report->writer.table;

	table_note_if(table, !of->n_calls && !of->n_told,
	              "no collectives: libnccl was not used, or was not hooked (why and record "
	              "--gpu do; --hooks nccl)");
	table_note_if(table, of->lost,
	              "calls were lost: only those are matched between which NCCL's RAS counted as "
	              "many as were seen, in all of their ranks");
	table_note_if(table, of->unknown,
	              "%lu calls are of communicators that were made before the recording began "
	              "and that NCCL's RAS does not know, and are matched with none",
	              of->unknown);
	table_note_if(table, of->uncounted,
	              "%lu calls are matched with none: how many of their communicators came "
	              "before is not known for certain by NCCL's RAS",
	              of->uncounted);
	table_note_if(table, of->unpaired,
	              "%lu calls to send and receive have no number, and are left out",
	              of->unpaired);
	for (size_t i = 0; i < of->n_comms; i++)
		partly |= of->comms[i].partly;
	table_note_if(
		table, of->alone, "%lu collectives were seen in one rank alone%s", of->alone,
		partly ? ", or not in all ranks where some of their calls are matched with none"
		       : "");
	table_note_if(table, report->answer->facts->n_talks_alone,
	              "%zu kernels of communication are of no collective that is matched: of CUDA "
	              "graphs, of other libraries, or of the calls above",
	              report->answer->facts->n_talks_alone);
	for (size_t i = 0; i < of->n_comms; i++)
		table_note_if(table, of->comms[i].unlike,
		              "communicator %08lx is left out: its ranks do not say the same of "
		              "%lu collectives, so some of its calls were not seen",
		              of->comms[i].id[0] >> 32, of->comms[i].unlike);
}

/* Nobody waits for the one that was late before as long as for who has not come. */
static void note_standing(const struct ranks_report *report, const struct standings *standings)
{
	for (size_t i = 0; i < standings->n; i++) {
		AT_END(buf_free) struct buf text = { 0 };

		why_words_standing(&standings->of[i], &text);
		table_note(report->writer.table, "%s", text.data);
	}
	table_note_if(report->writer.table, standings->n_more, "%zu more communicators stand still",
	              standings->n_more);
}

static void note_person(void *data, const char *sentence)
{
	table_note(data, "%s", sentence);
}

static void note_late(const struct ranks_report *report, const struct rank_row *late)
{
	AT_END(buf_free) struct buf text = { 0 };

	why_words_late(report->answer->facts, late, &text);
	if (late->why)
		buf_puts(&text, late->beside ? "; longer than the others: " : "; meanwhile: ");
	add_why(report, late, &text);
	table_note(report->writer.table, "%s", text.data);
}

/* What lateness of ranks on different machines is worth. */
static void note_clocks(const struct ranks_report *report)
{
	AT_END(buf_free) struct buf text = { 0 };

	why_words_clocks(report->answer->facts, &text);
	if (!text.len)
		return;
	table_note(report->writer.table, "%s", text.data);
	table_note_if(report->writer.table, report->ranks.n_unclear,
	              "inconclusive, and not counted as late: the last ranks of %lu collectives, "
	              "which are less behind than clocks are good for",
	              report->ranks.n_unclear);
}

static bool any_by_calls(const struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->n_rows; i++)
		if (ranks->rows[i].n && !ranks->rows[i].by_gpu)
			return true;
	return false;
}

static void write_ranks(void *self, struct table *table, const struct run_info *run)
{
	struct ranks_report *report = self;
	struct ranks *ranks = &report->ranks;
	const struct standings *standings = why_standings(report->writer.analysis);

	report->answer = why_answer(report->writer.analysis);
	ranks_make(ranks, report->answer->facts, report->answer->accounts);
	for (size_t i = 0; i < ranks->n_rows; i++)
		if (ranks->rows[i].rank->n_calls)
			write_row(report, &ranks->rows[i]);
	if (standings->n)
		note_standing(report, standings);
	for (size_t i = 0; i < ranks->n_late; i++)
		if (!standings_are_of(standings, ranks->late[i]->rank->person))
			note_late(report, ranks->late[i]);
	table_note_if(table, !ranks->n_late && ranks->held_ns && !standings->n,
	              "no rank is waited for much more than others");
	note_clocks(report);
	note_unmatched(report);
	why_words_persons(report->answer->facts, note_person, table);
	table_note_if(table, report->answer->facts->collectives.n_all,
	              "Held: the others waited for it alone, while their GPUs ran nothing else; "
	              "Late: came last to those that are nine tenths of that, and how long they "
	              "waited; Waited: for others");
	table_note_if(table, any_by_calls(ranks),
	              "ranks whose kernels were not measured come by their calls: what their GPUs "
	              "ran while they waited is not known, and all of it counts");
	report_note_estimated(table, run);
}

static void write_standing(void *self, struct table *table, const struct run_info *run)
{
	struct ranks_report *report = self;
	const struct standings *standings = why_standings(report->writer.analysis);

	for (size_t i = 0; i < standings->n; i++)
		for (uint32_t k = 0; k < standings->of[i].n; k++)
			write_standing_row(report, &standings->of[i], standings->of[i].ranks[k]);
	table_note_if(table, standings->n,
	              "Behind: launches that others have and it has not; Still: for how long at "
	              "least no rank has launched any; Does: its first thread, at the end");
}

static void write_late(void *self, struct table *table, const struct run_info *run)
{
	struct ranks_report *report = self;
	bool any = false;

	for (size_t i = 0; i < report->ranks.n_rows; i++) {
		if (!report->ranks.rows[i].n_last)
			continue;
		write_late_row(report, &report->ranks.rows[i]);
		any = true;
	}
	table_note_if(table, any,
	              "Last: came last by more than 10 us; MAD, 99 %%: of Late above; Beside: "
	              "others' GPUs ran other kernels while these waited for it; For Longer: what "
	              "it does for longer than the others, and of what share of all such time; "
	              "while others wait for it, where no other was recorded");
}

static void write_kinds(void *self, struct table *table, const struct run_info *run)
{
	static const char *const classes[] = { [RANKS_UNCLEAR] = "not clear",
		                               [RANKS_TRANSFER] = "transfer",
		                               [RANKS_WAITING] = "waiting",
		                               [RANKS_MIXED] = "both" };
	struct ranks_report *report = self;

	for (size_t i = 0; i < report->ranks.n_kinds; i++) {
		struct rank_kind *kind = &report->ranks.kinds[i];
		uint32_t size = report->answer->facts->collectives.comms[kind->comm].size;

		comm_cell(report, kind->comm);
		table_u64(table, kind->most);
		table_known(table, size, size);
		TABLE_CELLS(table, kind->n, kind->n_gpu,
		            (uint64_t)llround(spread_median(&kind->bytes)));
		table_known(table, kind->n_gpu, kind->transfer_ns);
		table_known(table, kind->n_gpu, kind->waiting_ns);
		table_share(table, kind->waiting_ns, kind->waiting_ns + kind->transfer_ns);
		TABLE_LAST(table, classes[rank_kind_class(kind)], collective_kind_name(kind->kind));
	}
	table_note_if(table, report->ranks.n_kinds,
	              "Ranks: that were recorded; Measured: those whose kernels were; Transfer: "
	              "from the last rank's begin to the end; Waiting: of all others before that, "
	              "on average, whatever their GPUs ran beside it");
}

static void ranks_report_clear(void *self)
{
	ranks_clear(&((struct ranks_report *)self)->ranks);
}

const struct report_kind ranks_report = {
	.bytes = sizeof(struct ranks_report),
	.why = true,
	.metrics = true,
	.clear = ranks_report_clear,
	.parts = { { "ranks", NULL, TABLE_COLUMNS(rank_columns), write_ranks },
	           { "standing", "Standing still", TABLE_COLUMNS(standing_columns),
	             write_standing },
	           { "late", "How late, and why", TABLE_COLUMNS(late_columns), write_late },
	           { "collectives", "Collectives by function", TABLE_COLUMNS(kind_columns),
	             write_kinds } },
};
