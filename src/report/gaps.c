// SPDX-License-Identifier: MIT
/*
 * The report `gaps`: how long GPUs were idle, and why. A view of the account of time: what `why`
 * gives to GPUs that run nothing, or nothing but waits for each other, by its causes and places;
 * and when the longest pauses were.
 */
#include <math.h>
#include <stdlib.h>

#include "account/answer.h"
#include "account/pauses.h"
#include "base/order.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "report/who_columns.h"
#include "report/reports.h"
#include "report/why.h"
#include "report/why_words.h"
#include "table/longest.h"

#define PAUSES_DEFAULT 10
#define PAUSE_NS       20000
#define PLACE_FRAMES   3
#define PLACE_LEAST    0.001 /* of the account: what is less has no row of places for people */
#define NAME_WIDTH     40    /* columns of a name of a kernel, for people */
#define ALSO_LEAST     0.05  /* of a pause: another cause that is worth a word */
#define ALSO_MOST      3

/* Idle time of one cause, or of one at one place: whose it mostly is. */
struct idle {
	const struct account *account;
	const struct account_part *most;
	double ns;
};

struct gaps {
	struct report_writer writer; /* first: what callers hold */
	const struct answer *answer;
	const struct account **accounts; /* by the numbers of their GPUs */
	size_t n;
	struct account_pauses pauses;
	uint64_t least_ns; /* of a gap */
	size_t most;       /* of the longest that are told */
	bool people;
};

/* ---- idle time ------------------------------------------------------------------------------- */

static bool part_is_idle(const struct account_part *part)
{
	return part->cause < ACCOUNT_KERNELS || part->cause > ACCOUNT_GPU_WAIT;
}

static uint64_t whole(double ns)
{
	return ns > 0 ? (uint64_t)llround(ns) : 0;
}

static double percent(double ns, const struct account *account)
{
	return account->ns > 0 ? 100 * ns / account->ns : 0;
}

ORDER_POINTERS_BY(idle_by_place, struct account_part, UP(cause), UP(chain), DOWN(ns));

ORDER_BY(idle_by_time, struct idle, DOWN(ns), UP(most->cause));

/* Its idle time by cause, and by place where that is asked for: most first. The caller frees it. */
static struct idle *idle_of(const struct account *account, bool places, size_t *n)
{
	const struct account_part **parts = xcalloc(account->n_parts + 1, sizeof(*account->parts));
	struct idle *rows = xcalloc(account->n_parts + 1, sizeof(*rows));
	size_t n_parts = 0;

	for (size_t i = 0; i < account->n_parts; i++)
		if (part_is_idle(&account->parts[i]) && account->parts[i].ns > 0)
			parts[n_parts++] = &account->parts[i];
	SORT(parts, n_parts, idle_by_place);
	*n = 0;
	for (size_t i = 0; i < n_parts; i++) {
		struct idle *last = *n ? &rows[*n - 1] : NULL;

		if (!last || last->most->cause != parts[i]->cause ||
		    (places && last->most->chain != parts[i]->chain)) {
			rows[(*n)++] = (struct idle){ account, parts[i], parts[i]->ns };
			continue;
		}
		last->ns += parts[i]->ns;
		if (parts[i]->ns > last->most->ns)
			last->most = parts[i];
	}
	SORT(rows, *n, idle_by_time);
	free(parts);
	return rows;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static const struct table_column gpu_columns[] = {
	{ "GPU", TABLE_NUMBER },         { "PID", TABLE_NUMBER },
	{ "First", TABLE_TIME },         { "Time", TABLE_DURATION },
	{ "Busy", TABLE_DURATION },      { "Busy", TABLE_PERCENT },
	{ "Idle", TABLE_DURATION },      { "Gaps", TABLE_NUMBER },
	{ "In Gaps", TABLE_DURATION },   { "Longest", TABLE_DURATION },
	{ "Shorter", TABLE_NUMBER },     { "In Shorter", TABLE_DURATION },
	{ "For Peers", TABLE_DURATION }, { "Not Measured", TABLE_DURATION },
	{ "Process", TABLE_TEXT },
};

static void write_gpu(struct gaps *gaps, const struct account *account)
{
	const struct accounts *all = gaps->answer->accounts;
	const struct account_pause_sum *sum = &gaps->pauses.sums[account - all->of];
	struct table *table = gaps->writer.table;
	double idle = 0, peers = 0;

	for (size_t i = 0; i < account->n_parts; i++) {
		const struct account_part *part = &account->parts[i];

		idle += part_is_idle(part) ? part->ns : 0;
		peers += part_is_idle(part) &&
		                         account_part_is_for_peers(gaps->answer->accounts, part)
		                 ? part->ns
		                 : 0;
	}
	if (idle > account->ns) /* summed up in another order */
		idle = account->ns;
	TABLE_CELLS(table, account->device, account->process->pid);
	report_time(&gaps->writer, account->begin_ns);
	TABLE_LAST(table, whole(account->ns), whole(account->ns) - whole(idle),
	           100 - percent(idle, account), whole(idle), sum->count, sum->ns, sum->longest_ns,
	           sum->short_count, sum->short_ns, whole(peers), account->not_measured_ns,
	           account->process->comm);
}

/* Whether a call came before or after a gap's begin is what tells its cause. */
static void note_clock(struct table *table, const struct run_info *run)
{
	table_note_if(table, run->gpu_clock_error_ns,
	              "times of the GPU can be off by %s against those of calls, so causes of gaps "
	              "that are not longer can be wrong",
	              TEXT_DURATION(run->gpu_clock_error_ns));
}

static void note_sampled(struct gaps *gaps)
{
	table_note_if(gaps->writer.table, gaps->answer->facts->resolution_ns,
	              "GPUs were seen from outside: when they were busy is known within %s, what "
	              "ran is not",
	              TEXT_DURATION(gaps->answer->facts->resolution_ns));
}

static void note_gpus(struct gaps *gaps, const struct run_info *run)
{
	struct table *table = gaps->writer.table;
	const char *none = why_none(gaps->writer.analysis);

	if (!gaps->n) {
		if (none && report_is_chosen(&gaps->writer.options, run))
			table_note(table, "%s", none);
		else
			report_note_no_gpu_times(table, gaps->writer.options.part, run);
		return;
	}
	table_note(table,
	           "Time: from a GPU's first work on; Gaps: in which nothing ran, of %s and more "
	           "(--gap); For Peers: idle in kernels of communication",
	           TEXT_DURATION(gaps->least_ns));
	note_clock(table, run);
	note_sampled(gaps);
	report_note_gpu_lost(table, run);
	report_note_estimated(table, run);
	table_note_if(table, gaps->answer->accounts->left_out,
	              "left out, those with least work: %zu GPUs",
	              gaps->answer->accounts->left_out);
}

static void write_gpus(void *self, struct table *table, const struct run_info *run)
{
	struct gaps *gaps = self;

	for (size_t i = 0; i < gaps->n; i++)
		write_gpu(gaps, gaps->accounts[i]);
	note_gpus(gaps, run);
}

/* ---- causes and places ----------------------------------------------------------------------- */

static const struct table_column cause_columns[] = {
	{ "GPU", TABLE_NUMBER },    { "PID", TABLE_NUMBER }, { "Time", TABLE_DURATION },
	{ "Share", TABLE_PERCENT }, { "Cause", TABLE_TEXT }, { "Meaning", TABLE_TEXT },
};

static void write_causes(void *self, struct table *table, const struct run_info *run)
{
	struct gaps *gaps = self;
	size_t n;

	if (!report_table_of(&gaps->writer, gaps->n, "causes", "Why they were idle",
	                     TABLE_COLUMNS(cause_columns)))
		return;
	for (size_t i = 0; i < gaps->n; i++) {
		AT_END(at_end_free) struct idle *rows = idle_of(gaps->accounts[i], false, &n);

		for (size_t k = 0; k < n; k++) {
			TABLE_LAST(table, rows[k].account->device, rows[k].account->process->pid,
			           whole(rows[k].ns), percent(rows[k].ns, rows[k].account),
			           account_cause_name(rows[k].most->cause),
			           account_cause_text(rows[k].most->cause));
		}
	}
	table_note_if(table, gaps->n,
	              "Share: of busy and idle time together, as 'cuscope report FILE why' has it");
}

/* From the GPU on: "a pipe is waited for in train.py:91 loop, there ...". */
static void add_through(const struct gaps *gaps, const struct account_via *vias, uint32_t via,
                        struct buf *out)
{
	if (!via)
		return;
	if (vias[via].before) {
		add_through(gaps, vias, vias[via].before, out);
		buf_puts(out, ", there ");
	}
	why_words_wait(&vias[via], gaps->answer->facts->chains, out);
}

/* Which call it was, or who had the CPU. */
static void write_by(struct table *table, const struct account_part *part)
{
	AT_END(buf_free) struct buf text = { 0 };

	if (part->call && part->call->function)
		buf_puts(&text, part->call->function->name);
	else if (part->rival && part->longest) {
		why_words_name(&text, part->longest->rival);
		buf_printf(&text, " (%u)", part->rival);
	}
	table_text(table, text.data);
}

/* Which, whose time, where, and through which waits. */
static void write_place(struct gaps *gaps, const struct account_part *part,
                        const struct account_via *vias)
{
	const struct fact_thread *thread = NULL;
	const struct facts *facts = gaps->answer->facts;
	size_t most = gaps->writer.options.stacks ? CHAINS_DEPTH_MAX : PLACE_FRAMES;
	struct table *table = gaps->writer.table;
	AT_END(buf_free) struct buf place = { 0 }, through = { 0 };

	if (part->thread != FACTS_NONE)
		thread = &facts->threads[part->thread];
	if (part->chain)
		chains_label(facts->chains, part->chain, most, &place);
	add_through(gaps, vias, part->via, &through);
	write_by(table, part);
	TABLE_CELLS(table, TABLE_IF(thread, thread->process->pid),
	            TABLE_IF(thread && thread->tid, thread ? thread->tid : 0), place.data,
	            through.data);
}

static const struct table_column place_columns[] = {
	{ "GPU", TABLE_NUMBER },    { "PID", TABLE_NUMBER }, { "Time", TABLE_DURATION },
	{ "Share", TABLE_PERCENT }, { "Cause", TABLE_TEXT }, { "By", TABLE_TEXT },
	{ "In PID", TABLE_NUMBER }, { "TID", TABLE_NUMBER }, { "Place", TABLE_TEXT },
	{ "Through", TABLE_TEXT },
};

static void write_places(void *self, struct table *table, const struct run_info *run)
{
	struct gaps *gaps = self;
	size_t n, left_out = 0;

	if (!report_table_of(&gaps->writer, gaps->n, "places", "Where, and in which thread",
	                     TABLE_COLUMNS(place_columns)))
		return;
	for (size_t i = 0; i < gaps->n; i++) {
		AT_END(at_end_free) struct idle *rows = idle_of(gaps->accounts[i], true, &n);

		for (size_t k = 0; k < n; k++) {
			const struct account_part *part = rows[k].most;

			if (gaps->people && rows[k].ns < PLACE_LEAST * rows[k].account->ns) {
				left_out++;
				continue;
			}
			TABLE_CELLS(table, rows[k].account->device, rows[k].account->process->pid,
			            whole(rows[k].ns), percent(rows[k].ns, rows[k].account),
			            account_cause_name(part->cause));
			write_place(gaps, part, gaps->answer->accounts->vias);
			table_end_row(table);
		}
	}
	table_note_if(table, left_out,
	              "left out, below 0.1 %% of the time each: %zu (csv and json have them)",
	              left_out);
}

/* ---- the longest ----------------------------------------------------------------------------- */

static const struct table_column long_columns[] = {
	{ "Count", TABLE_NUMBER }, { "Begin", TABLE_TIME },    { "Gap", TABLE_DURATION },
	{ "GPU", TABLE_NUMBER },   { "PID", TABLE_NUMBER },    { "Before", TABLE_TEXT },
	{ "After", TABLE_TEXT },   { "Share", TABLE_PERCENT }, { "Cause", TABLE_TEXT },
	{ "Also", TABLE_TEXT },    { "By", TABLE_TEXT },       { "In PID", TABLE_NUMBER },
	{ "TID", TABLE_NUMBER },   { "Place", TABLE_TEXT },    { "Through", TABLE_TEXT },
};

static void write_work(struct gaps *gaps, const struct fact_work *work)
{
	const struct kernel *kernel;
	struct activity activity;
	const char *operation;
	struct buf name = { 0 }, cut = { 0 };

	if (!work) {
		table_unknown(gaps->writer.table);
		return;
	}
	activity = (struct activity){ .kind = work->kind, .direction = work->direction };
	kernel = work->kernel ? gaps->answer->facts->kernels[work->kernel - 1] : NULL;
	operation = operation_name(&activity);
	if (kernel)
		add_kernel_name(&name, kernel, gaps->writer.options.names);
	else /* of a GPU that is seen from outside it is not known what ran */
		buf_puts(&name, operation ? operation : "(not known)");
	if (gaps->people)
		text_add_name(&cut, name.data, NAME_WIDTH);
	table_text(gaps->writer.table, cut.data ? cut.data : name.data);
	buf_free(&name);
	buf_free(&cut);
}

/* "computing 20 %, ready, without a CPU 10 %" */
static void write_also(struct table *table, const struct account *pause, enum account_cause but)
{
	AT_END(buf_free) struct buf text = { 0 };
	size_t n, told = 0;
	AT_END(at_end_free) struct idle *rows = idle_of(pause, false, &n);

	for (size_t i = 0; i < n && told < ALSO_MOST; i++) {
		if (rows[i].most->cause == but || rows[i].ns < ALSO_LEAST * pause->ns)
			continue;
		buf_printf(&text, "%s%s %.0f %%", told++ ? ", " : "",
		           account_cause_name(rows[i].most->cause), percent(rows[i].ns, pause));
	}
	table_text(table, text.data);
}

/* A row of the longest: what most of it was. */
struct pause_row {
	const struct account_pause *pause;
	const struct account_part *most; /* the largest of the cause that has most of it */
	double ns;                       /* of that cause */
};

static struct pause_row pause_row_of(const struct account_pause *pause)
{
	static const struct account_part nothing = { .thread = FACTS_NONE };
	size_t n;
	AT_END(at_end_free) struct idle *rows = idle_of(&pause->of, false, &n);
	struct pause_row row = { pause, n ? rows[0].most : &nothing, n ? rows[0].ns : 0 };

	return row;
}

static bool works_are_alike(const struct fact_work *a, const struct fact_work *b)
{
	if (!a || !b)
		return a == b;
	return a->kernel == b->kernel && a->kind == b->kind && a->direction == b->direction;
}

/* But for how long they took. */
static bool pauses_are_alike(const void *left, const void *right)
{
	const struct pause_row *a = left, *b = right;

	return a->pause->of.gpu == b->pause->of.gpu && a->most->cause == b->most->cause &&
	       a->most->chain == b->most->chain && a->most->thread == b->most->thread &&
	       works_are_alike(a->pause->before, b->pause->before) &&
	       works_are_alike(a->pause->after, b->pause->after);
}

static void write_pause(struct gaps *gaps, const struct pause_row *row, uint64_t count)
{
	const struct account_pause *pause = row->pause;
	struct table *table = gaps->writer.table;

	table_u64(table, count);
	report_time(&gaps->writer, pause->begin_ns);
	TABLE_CELLS(table, pause->end_ns - pause->begin_ns, pause->of.device,
	            pause->of.process->pid);
	write_work(gaps, pause->before);
	write_work(gaps, pause->after);
	TABLE_CELLS(table, percent(row->ns, &pause->of), account_cause_name(row->most->cause));
	write_also(table, &pause->of, row->most->cause);
	write_place(gaps, row->most, gaps->pauses.vias);
	table_end_row(table);
}

static void write_longest(void *self, struct table *table, const struct run_info *run)
{
	struct gaps *gaps = self;
	size_t n = gaps->pauses.n, n_rows;
	struct pause_row *rows;
	uint64_t *counts;

	if (!report_table_of(&gaps->writer, gaps->n, "longest", "Longest gaps",
	                     TABLE_COLUMNS(long_columns)))
		return;
	rows = xcalloc(n + 1, sizeof(*rows));
	counts = xcalloc(n + 1, sizeof(*counts));
	for (size_t i = 0; i < n; i++)
		rows[i] = pause_row_of(&gaps->pauses.longest[i]);
	n_rows = longest_group(rows, n, sizeof(*rows), pauses_are_alike, counts);
	for (size_t i = 0; i < n_rows && i < gaps->most; i++)
		write_pause(gaps, &rows[i], counts[i]);
	if (!longest_all_single(counts, n_rows))
		report_note_grouped(table, "gaps", n);
	free(rows);
	free(counts);
}

/* ---- all of it ------------------------------------------------------------------------------- */

ORDER_POINTERS_BY(account_order, struct account, UP(device), UP(process->id));

static void find_accounts(struct gaps *gaps)
{
	const struct accounts *all = gaps->answer->accounts;

	gaps->accounts = xcalloc(all->n + 1, sizeof(*gaps->accounts));
	for (size_t i = 0; i < all->n; i++)
		if (all->of[i].gpu != FACTS_NONE)
			gaps->accounts[gaps->n++] = &all->of[i];
	SORT(gaps->accounts, gaps->n, account_order);
}

static void init_gaps(void *self)
{
	struct gaps *gaps = self;
	const struct table_options *table = table_options(gaps->writer.table);
	uint64_t gap_ns = gaps->writer.options.gap_ns;

	gaps->people = table->form == TABLE_FORM_TEXT;
	gaps->least_ns = gap_ns ? gap_ns : PAUSE_NS;
	gaps->most = !table->top                 ? PAUSES_DEFAULT
	             : table->top < LONGEST_MOST ? table->top
	                                         : LONGEST_MOST;
}

static void conclude_gaps(void *self, const struct run_info *run)
{
	struct gaps *gaps = self;

	gaps->answer = why_answer(gaps->writer.analysis);
	find_accounts(gaps);
	account_pauses_make(&gaps->pauses, gaps->answer->facts, gaps->answer->accounts,
	                    gaps->least_ns, longest_looked_at(gaps->most));
}

static void clear_gaps(void *self)
{
	struct gaps *gaps = self;

	account_pauses_clear(&gaps->pauses);
	free(gaps->accounts);
}

const struct report_kind gaps_report = {
	.bytes = sizeof(struct gaps),
	.init = init_gaps,
	.why = true,
	.metrics = true,
	.conclude = conclude_gaps,
	.clear = clear_gaps,
	.parts = { { "gpus", NULL, TABLE_COLUMNS(gpu_columns), write_gpus },
	           { .write = write_causes },
	           { .write = write_places },
	           { .write = write_longest } },
};
