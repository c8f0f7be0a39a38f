// SPDX-License-Identifier: MIT
/*
 * The tables of the sqlite format as Parquet files: a folder for each host and rank, named as Hive
 * names parts of a table, so that DuckDB, Spark and others read all of them as one:
 * docs/parquet.md.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "output/format.h"
#include "output/parquet/parquet_tables.h"
#include "output/sqlite/sqlite.h"

/* Hive's name for NULL, which its readers know. */
#define NOT_KNOWN "__HIVE_DEFAULT_PARTITION__"

#define HOST_BYTES 200 /* of a name in the path; hosts have 64 at most */
#define RANKS_MOST 256 /* others are as if they had none: cuscope_process says their rank */

/* A folder, and what makes its rows. */
struct parquet_rank {
	bool known; /* it has a number */
	unsigned number;
	struct sqlite *rows;
	uint64_t bytes; /* that its tables take */
};

struct parquet {
	struct sink sink; /* first */
	const struct run_info *run;
	struct parquet_share *share;
	struct buf host;
	struct parquet_rank *ranks;
	size_t n_ranks;
	uint16_t *of_process; /* by process id: the place of its rank and one; 0: not looked up */
	size_t n_processes;
	bool one; /* all that the file has is of one rank: that of the options */
};

/* ---- names --------------------------------------------------------------------------------- */

/* What a path could take for something else, by its number. */
static void add_host(struct buf *name, const char *host)
{
	buf_puts(name, "host=");
	if (!host || !*host) {
		buf_puts(name, NOT_KNOWN);
		return;
	}
	for (; *host && name->len < HOST_BYTES; host++) {
		unsigned char c = (unsigned char)*host;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		             (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';

		if (plain)
			buf_putc(name, (char)c);
		else
			buf_printf(name, "%%%02X", c);
	}
}

static void add_rank_name(struct buf *name, const struct parquet_rank *rank)
{
	if (rank->known)
		buf_printf(name, "rank=%u", rank->number);
	else
		buf_puts(name, "rank=" NOT_KNOWN);
}

/* ---- ranks --------------------------------------------------------------------------------- */

static int begin_rank(struct parquet *parquet, struct parquet_rank *rank, struct err *err)
{
	AT_END(buf_free) struct buf name = { 0 };
	struct new_folder *folder;
	int rc;

	add_rank_name(&name, rank);
	rc = new_tree_add(parquet->sink.options.tree, parquet->host.data, name.data, &folder, err);
	if (rc)
		return rc;
	rank->rows =
		sqlite_rows_new(&parquet->sink.options, parquet_tables_new(folder, parquet->share));
	rank->rows->sink.begin_ns = parquet->sink.begin_ns;
	return rank->rows->sink.format->begin(&rank->rows->sink.consumer, parquet->run, err);
}

/* The place of a rank, which is made where it is the first time. */
static uint16_t place_of(struct parquet *parquet, bool known, unsigned number)
{
	for (size_t i = 0; i < parquet->n_ranks; i++) {
		const struct parquet_rank *rank = &parquet->ranks[i];

		if (rank->known == known && (!known || rank->number == number))
			return (uint16_t)i;
	}
	if (known && parquet->n_ranks >= RANKS_MOST)
		return place_of(parquet, false, 0);
	parquet->ranks = vec_room(parquet->ranks, parquet->n_ranks, sizeof(*parquet->ranks));
	parquet->ranks[parquet->n_ranks] =
		(struct parquet_rank){ .known = known, .number = known ? number : 0 };
	return (uint16_t)parquet->n_ranks++;
}

static uint16_t look_up(struct parquet *parquet, const struct event *event)
{
	unsigned number = parquet->sink.options.rank;
	bool known = parquet->sink.options.has_rank;

	if (!parquet->one)
		known = event && event->type != EVENT_METRICS &&
		        who_rank_of(parquet->run, event->process->pid, event->time_ns, &number);
	return place_of(parquet, known, number);
}

/* That of its process; what is the machine's goes to those that have none. */
static struct parquet_rank *rank_of(struct parquet *parquet, const struct event *event)
{
	uint32_t process = event->process->id;
	uint16_t place;

	if (parquet->one || event->type == EVENT_METRICS) {
		place = look_up(parquet, event);
		return &parquet->ranks[place];
	}
	parquet->of_process = by_id_room(parquet->of_process, &parquet->n_processes,
	                                 sizeof(*parquet->of_process), process);
	if (!parquet->of_process[process])
		parquet->of_process[process] = (uint16_t)(look_up(parquet, event) + 1);
	return &parquet->ranks[parquet->of_process[process] - 1];
}

/* ---- the format ---------------------------------------------------------------------------- */

static int parquet_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct parquet *parquet = (struct parquet *)self;

	parquet->run = run;
	parquet->one = parquet->sink.options.has_rank;
	add_host(&parquet->host, run->hostname);
	return 0;
}

static int parquet_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct parquet *parquet = (struct parquet *)self;
	struct parquet_rank *rank = rank_of(parquet, event);
	struct sink *sink;
	int rc = rank->rows ? 0 : begin_rank(parquet, rank, err);

	if (rc)
		return rc;
	sink = &rank->rows->sink;
	sink->wanted = parquet->sink.wanted;
	rc = sink->format->event(&sink->consumer, event, err);
	if (sink->wanted)
		stack_counts_event(&sink->stacks, event);
	parquet->sink.lines.written += sink->lines.written - rank->bytes;
	rank->bytes = sink->lines.written;
	return rc;
}

/* Each folder says how the whole was recorded, and what that missed. */
static int parquet_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct parquet *parquet = (struct parquet *)self;
	int rc = 0;

	if (!parquet->n_ranks)
		look_up(parquet, NULL);
	for (size_t i = 0; i < parquet->n_ranks && !rc; i++) {
		struct parquet_rank *rank = &parquet->ranks[i];

		rc = rank->rows ? 0 : begin_rank(parquet, rank, err);
		if (!rc)
			rc = rank->rows->sink.format->end(&rank->rows->sink.consumer, run, err);
	}
	return rc;
}

static void parquet_free(struct consumer *self)
{
	struct parquet *parquet = (struct parquet *)self;

	for (size_t i = 0; i < parquet->n_ranks; i++) {
		struct sqlite *rows = parquet->ranks[i].rows;

		if (rows)
			rows->sink.consumer.ops->free(&rows->sink.consumer);
	}
	parquet_share_free(parquet->share);
	free(parquet->ranks);
	free(parquet->of_process);
	buf_free(&parquet->host);
	free(parquet);
}

static const struct consumer_ops parquet_ops = {
	.metrics = true,
	.begin = parquet_begin,
	.event = parquet_event,
	.end = parquet_end,
	.free = parquet_free,
};

struct consumer *parquet_new(const struct sink_options *options)
{
	struct parquet *parquet = xcalloc(1, sizeof(*parquet));

	parquet->sink.gpu = true;
	parquet->sink.samples = true;
	parquet->share = parquet_share_new();
	return sink_init(&parquet->sink, &parquet_ops, options);
}
