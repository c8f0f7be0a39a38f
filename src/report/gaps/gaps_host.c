// SPDX-License-Identifier: MIT
/* Where the host was while GPUs waited for it: the lines of code, from samples. */
#include "report/gaps/gaps_report.h"

#include "table/words.h"

#define ROWS_DEFAULT 10 /* of a GPU and a cause */
#define TOLD_SHARE   5  /* percent, from which on a place beside the first is told of */
#define MOSTLY       80 /* percent of a place's time that are called all of it */
#define STACKS_WIDTH 110
#define BEFORE_STACK 50 /* columns before it */

static void sum_up(const struct gap_stacks *stacks, unsigned causes, struct stack_places *places,
                   struct gap_host *host)
{
	const struct gap_stacks *tables[GAP_CAUSES];
	size_t n = 0;

	for (size_t i = 0; i < GAP_CAUSES; i++) {
		if (causes & (1u << i))
			tables[n++] = &stacks[i];
	}
	gap_host_sum_up(tables, n, places, host);
}

void gaps_host_of(const struct gap_line *gpu, unsigned causes, struct stack_places *places,
                  struct gap_host *host)
{
	sum_up(gpu->host, causes, places, host);
}

void gaps_calls_of(const struct gap_line *gpu, unsigned causes, struct stack_places *places,
                   struct gap_host *calls)
{
	sum_up(gpu->calls, causes, places, calls);
}

/* ---- in words ------------------------------------------------------------------------------ */

void gaps_add_state(struct buf *out, const struct gap_place *place)
{
	double blocked = gaps_percent(place->blocked_ns, gap_place_ns(place));

	if (blocked >= MOSTLY)
		buf_puts(out, ", blocked");
	else if (blocked <= 100 - MOSTLY)
		buf_puts(out, ", on a CPU");
	else
		buf_printf(out, ", blocked for %.0f %% of it", blocked);
}

void gaps_add_calls(struct buf *out, const struct gap_host *calls,
                    const struct stack_places *places, size_t most)
{
	for (size_t i = 0; i < calls->n && i < most; i++) {
		double share = gap_host_share(calls, gap_place_ns(&calls->places[i]));

		if (i && share < TOLD_SHARE)
			break;
		buf_printf(out, "%s%.0f %% in %s", i ? "; " : "", share,
		           gap_place_label(places, &calls->places[i]));
	}
}

void gaps_add_places(struct buf *out, const struct gap_host *host,
                     const struct stack_places *places, size_t most)
{
	for (size_t i = 0; i < host->n && i < most; i++) {
		const struct gap_place *place = &host->places[i];
		double share = gap_host_share(host, gap_place_ns(place));

		if (i && share < TOLD_SHARE)
			break;
		buf_printf(out, "%s%.0f %% in %s", i ? "; " : "", share,
		           gap_place_label(places, place));
		gaps_add_state(out, place);
	}
}

void gaps_add_trust(struct buf *out, const struct gap_sampling *known)
{
	buf_printf(out, "%s: ", gap_trust_name(gap_host_trust(known)));
	buf_u64(out, known->samples);
	buf_printf(out, " sample%s %.0f %%", known->samples == 1 ? " covers" : "s cover",
	           gap_host_covered(known));
}

void gaps_add_doubt(struct buf *out, const struct gap_host *host, const struct stack_places *places)
{
	if (!host->known.samples) {
		buf_puts(out, "not known, since no sample is of this time");
		return;
	}
	buf_puts(out, "too few samples to tell: ");
	buf_u64(out, host->known.samples);
	buf_printf(out, " cover%s %.0f %% of it, most in %s", host->known.samples == 1 ? "s" : "",
	           gap_host_covered(&host->known), gap_place_label(places, &host->places[0]));
}

/* ---- tables -------------------------------------------------------------------------------- */

/* The causes of a GPU that mean the host and were there, most time first. */
static size_t order_causes(const struct gap_line *gpu, enum gap_cause order[GAP_CAUSES])
{
	size_t n = 0;

	for (size_t i = 0; i < GAP_CAUSES; i++) {
		uint64_t ns = gpu->host[i].known.gap_ns;
		size_t at = n;

		if (!ns || !gap_cause_is_host((enum gap_cause)i))
			continue;
		for (; at && gpu->host[order[at - 1]].known.gap_ns < ns; at--)
			order[at] = order[at - 1];
		order[at] = (enum gap_cause)i;
		n++;
	}
	return n;
}

struct host_table {
	struct report_writer *writer;
	struct stack_places *places;
	size_t most;
	void (*write)(const struct host_table *table, const struct gap_line *gpu,
	              enum gap_cause cause, const struct gap_host *host);
};

static void write_each(const struct host_table *table)
{
	const struct gap_line *const *gpus;
	enum gap_cause order[GAP_CAUSES];
	size_t n, n_causes;

	gpus = gaps_devices(table->writer->analysis, &n);
	for (size_t i = 0; i < n; i++) {
		n_causes = order_causes(gpus[i], order);
		for (size_t k = 0; k < n_causes; k++) {
			struct gap_host host;

			gaps_host_of(gpus[i], 1u << order[k], table->places, &host);
			table->write(table, gpus[i], order[k], &host);
			gap_host_free(&host);
		}
	}
}

/* ---- how far it is known ------------------------------------------------------------------- */

static const struct table_column sampling_columns[] = {
	{ "GPU", TABLE_NUMBER },      { "Cause", TABLE_TEXT },      { "Time", TABLE_DURATION },
	{ "Sampled", TABLE_PERCENT }, { "On CPU", TABLE_DURATION }, { "Blocked", TABLE_DURATION },
	{ "Samples", TABLE_NUMBER },  { "PID", TABLE_NUMBER },      { "TID", TABLE_NUMBER },
	{ "Trust", TABLE_TEXT },
};

static void write_sampling(const struct host_table *host_table, const struct gap_line *gpu,
                           enum gap_cause cause, const struct gap_host *host)
{
	struct table *table = host_table->writer->table;
	const struct gap_sampling *known = &host->known;
	bool one = known->process && !known->several;

	table_u64(table, gpu->device);
	table_text(table, gap_cause_name(cause));
	table_u64(table, known->gap_ns);
	table_real(table, gap_host_covered(known));
	table_u64(table, known->cpu_ns);
	table_u64(table, known->blocked_ns);
	table_u64(table, known->samples);
	table_known(table, one, one ? known->process->pid : 0);
	table_known(table, one, known->tid);
	table_text(table, gap_trust_name(gap_host_trust(known)));
	table_end_row(table);
}

static int write_samplings(struct host_table *host, struct err *err)
{
	struct table *table = host->writer->table;

	table_begin(table, "host_samples", "How much is known of the host meanwhile",
	            TABLE_COLUMNS(sampling_columns));
	table_whole(table);
	host->write = write_sampling;
	write_each(host);
	table_note(table,
	           "Sampled: of the time of these gaps, without those that are apart; of the "
	           "thread that asked for the next work, or of the one that gave it work");
	table_note(table, "Trust: sure from 30 samples and 80 %% on, or with 80 %% measured as "
	                  "blocked; likely from 10 and 50 %% on; partly: of less, the lines are "
	                  "right, and of the rest nothing is known; a guess: below 10 samples");
	return table_end(table, err);
}

/* ---- places -------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{ "GPU", TABLE_NUMBER },     { "Cause", TABLE_TEXT },      { "Time", TABLE_DURATION },
	{ "Share", TABLE_PERCENT },  { "On CPU", TABLE_DURATION }, { "Blocked", TABLE_DURATION },
	{ "Samples", TABLE_NUMBER }, { "Line", TABLE_TEXT },
};

static void write_place(const struct host_table *host_table, const struct gap_line *gpu,
                        enum gap_cause cause, const struct gap_host *host)
{
	struct table *table = host_table->writer->table;

	for (size_t i = 0; i < host->n && i < host_table->most; i++) {
		const struct gap_place *place = &host->places[i];

		table_u64(table, gpu->device);
		table_text(table, gap_cause_name(cause));
		table_u64(table, gap_place_ns(place));
		table_real(table, gap_host_share(host, gap_place_ns(place)));
		table_u64(table, place->cpu_ns);
		table_u64(table, place->blocked_ns);
		table_u64(table, place->samples);
		table_text(table, gap_place_label(host_table->places, place));
		table_end_row(table);
	}
}

static int write_places(struct host_table *host, struct err *err)
{
	struct table *table = host->writer->table;

	table_begin(table, "host", "Where the host was meanwhile", TABLE_COLUMNS(columns));
	table_whole(table);
	host->write = write_place;
	write_each(host);
	table_note(table, "Share: of the time of all gaps of this cause, in samples or not");
	return table_end(table, err);
}

/* ---- calls --------------------------------------------------------------------------------- */

static const struct table_column call_columns[] = {
	{ "GPU", TABLE_NUMBER },    { "Cause", TABLE_TEXT },  { "Time", TABLE_DURATION },
	{ "Share", TABLE_PERCENT }, { "Gaps", TABLE_NUMBER }, { "Line", TABLE_TEXT },
};

static void write_call(const struct host_table *host_table, const struct gap_line *gpu,
                       enum gap_cause cause, const struct gap_host *host)
{
	struct table *table = host_table->writer->table;
	struct gap_host calls;

	gaps_calls_of(gpu, 1u << cause, host_table->places, &calls);
	for (size_t i = 0; i < calls.n && i < host_table->most; i++) {
		const struct gap_place *place = &calls.places[i];

		table_u64(table, gpu->device);
		table_text(table, gap_cause_name(cause));
		table_u64(table, gap_place_ns(place));
		table_real(table, gap_host_share(&calls, gap_place_ns(place)));
		table_u64(table, place->samples);
		table_text(table, gap_place_label(host_table->places, place));
		table_end_row(table);
	}
	gap_host_free(&calls);
}

static int write_calls(struct host_table *host, struct err *err)
{
	struct table *table = host->writer->table;

	table_begin(table, "host_calls", "Calls that it waited in, or that asked too late",
	            TABLE_COLUMNS(call_columns));
	table_whole(table);
	host->write = write_call;
	write_each(host);
	table_note(table, "Time: of the gaps that these calls ended or caused; Share: of all gaps "
	                  "of this cause, with calls whose stack was not recorded");
	return table_end(table, err);
}

/* ---- whole stacks -------------------------------------------------------------------------- */

static const struct table_column stack_columns[] = {
	{ "GPU", TABLE_NUMBER },    { "Cause", TABLE_TEXT },     { "Time", TABLE_DURATION },
	{ "Share", TABLE_PERCENT }, { "Samples", TABLE_NUMBER }, { "Stack", TABLE_WORDS },
};

static void add_stack(struct buf *out, const struct stack *stack)
{
	if (!stack)
		buf_puts(out, PLACE_NO_STACK);
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		buf_puts(out, i ? " < " : "");
		place_label(stack->frames[i], out);
	}
	if (stack && stack->end != STACK_WHOLE)
		buf_printf(out, " < (%s)", stack_end_text(stack->end));
}

static void write_words(struct table *table, const char *text)
{
	size_t width = words_width(table, BEFORE_STACK, STACKS_WIDTH - BEFORE_STACK);
	struct buf line = { 0 };
	bool more;

	for (;;) {
		more = words_line(&text, width, &line);
		table_text(table, line.data);
		table_end_row(table);
		if (!more)
			break;
		table_unknown(table);
		table_text(table, "");
		for (int i = 0; i < 3; i++)
			table_unknown(table);
	}
	buf_free(&line);
}

static void write_stack(const struct host_table *host_table, const struct gap_line *gpu,
                        enum gap_cause cause, const struct gap_host *host)
{
	struct table *table = host_table->writer->table;
	struct buf text = { 0 };

	for (size_t i = 0; i < host->n_stacks && i < host_table->most; i++) {
		const struct gap_stack_row *row = &host->stacks[i];
		uint64_t ns = row->cpu_ns + row->blocked_ns;

		buf_reset(&text);
		add_stack(&text, row->stack);
		table_u64(table, gpu->device);
		table_text(table, gap_cause_name(cause));
		table_u64(table, ns);
		table_real(table, gap_host_share(host, ns));
		table_u64(table, row->samples);
		write_words(table, text.data);
	}
	buf_free(&text);
}

static int write_stacks(struct host_table *host, struct err *err)
{
	struct table *table = host->writer->table;

	if (!host->writer->options.stacks)
		return 0;
	table_begin(table, "host_stacks", "Stacks of the host meanwhile, innermost frame first",
	            TABLE_COLUMNS(stack_columns));
	table_whole(table);
	host->write = write_stack;
	write_each(host);
	return table_end(table, err);
}

/* How many tables of a GPU and a cause have something. */
static size_t count_tables(struct consumer *gaps, bool calls)
{
	const struct gap_line *const *gpus;
	size_t n, any = 0;

	gpus = gaps_devices(gaps, &n);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < GAP_CAUSES; k++)
			any += calls ? gpus[i]->calls[k].known.samples > 0
			             : gpus[i]->host[k].known.gap_ns > 0;
	}
	return any;
}

int gaps_write_host(struct report_writer *writer, struct err *err)
{
	size_t top = table_options(writer->table)->top;
	struct host_table host = { .writer = writer,
		                   .places = gaps_places(writer->analysis),
		                   .most = top ? top : ROWS_DEFAULT };
	bool for_people = table_options(writer->table)->form == TABLE_FORM_TEXT;
	int rc;

	if (!host.places || (for_people && !count_tables(writer->analysis, false)))
		return 0;
	rc = write_samplings(&host, err);
	rc = rc ? rc : write_places(&host, err);
	if (!rc && (!for_people || count_tables(writer->analysis, true)))
		rc = write_calls(&host, err);
	return rc ? rc : write_stacks(&host, err);
}
