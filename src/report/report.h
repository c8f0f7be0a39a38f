/* SPDX-License-Identifier: MIT */
/*
 * Reports: questions that a trace answers with tables. A report is a row of the table `reports`,
 * whose kind says what it consists of: reports.c makes a consumer of that, which writes the tables
 * at its end, or rows as events come. Names and columns of the cuda_* ones are those of Nsight
 * Systems (docs/report.md).
 *
 * A new report is one file with its struct report_kind, declared in report/reports.h, and one row
 * in report/reports.c.
 */
#pragma once

#include "table/table.h"
#include "trace/event.h"

/* What a kernel is called: cuda_gpu_kern_sum, :base, :mangled. */
enum kernel_names {
	NAMES_FULL,    /* demangled, with template arguments and parameters */
	NAMES_BASE,    /* without them, and without namespaces */
	NAMES_MANGLED, /* as the linker knows it */
};

struct report_options {
	struct table *table; /* where its tables go; its caller frees and finishes it */
	enum kernel_names names;
	bool stacks;             /* report gaps: whole stacks, not only their places */
	bool by_place;           /* rows are split by the place that called: cuda_api_sum:place */
	bool nested;             /* also calls made inside other traced calls */
	uint64_t from_ns, to_ns; /* what is read of the trace, after its begin; to 0: to its end */
	uint64_t gap_ns;         /* gaps from this length on are told of; 0: the default */
	struct work
		*work; /* which calls asked for what ran, fed before the report; NULL: none is */
	struct consumer *why; /* the answer of all reports, fed before them; NULL: there is none */
	bool part;            /* that, or only some processes: what is not there may be elsewhere */
	bool chosen;          /* only some calls or processes, whatever times */
};

/* What columns of the reports can need, see table_of_run(). */
enum { REPORT_RETURNS = 1, REPORT_GPU_TIMES = 2 };

struct report;

/* A table of a report. It is ended behind its write(). */
struct report_part {
	const char *key, *title; /* as for table_begin(); title NULL: that of the report */
	const struct table_column *columns; /* NULL: write() begins it, or there is no table */
	size_t n_columns;
	/* its rows and notes */
	void (*write)(void *report, struct table *table, const struct run_info *run);
};

#define REPORT_PARTS 12 /* at most; all zeros: no more */

/* What a report is made of. All but `parts` may be left out. */
struct report_kind {
	size_t bytes; /* of its struct, which begins with a struct report_writer; 0: that is it */
	void (*init)(void *report);
	void (*begin)(void *report, const struct run_info *run);
	struct consumer *(*analysis)(void);
	bool why;  /* its analysis is the account of time, which reports share */
	bool xids; /* it looks at Xids */
	bool work; /* it asks which calls asked for what ran */
	/* Before the analysis and the Xids are given it. */
	void (*event)(void *report, const struct event *event);
	/* After the end of the analysis, before the first table. */
	void (*conclude)(void *report, const struct run_info *run);
	void (*clear)(void *report); /* frees what its struct points to, beside what all have */
	/* Instead of all that comes after the last event, for one that is no tables. */
	int (*end)(struct consumer *report, const struct run_info *run, struct err *err);
	bool metrics;   /* is given EVENT_METRICS */
	bool stalls;    /* is given EVENT_STALL */
	bool rows_come; /* its one table is begun at the begin, in order of keys: events are rows */
	struct report_part parts[REPORT_PARTS];
};

struct report {
	const char *name;
	const char *help; /* half a line; stands above its table, too */
	const struct report_kind *kind;
	bool gpu_times;    /* empty for a trace without EVENT_ACTIVITY */
	bool kernel_names; /* takes :base and :mangled */
	bool places;       /* takes :place */
	bool parts;        /* writes more than one table, see table_open() */
	bool page;         /* no tables, but text or an object of json: there is no csv of it */
	bool again; /* other reports say the same in another form: the html page leaves it out */
};

extern const struct report reports[]; /* ends with a NULL name */

/* A report as users name it. */
struct report_choice {
	const struct report *report;
	enum kernel_names names;
	bool by_place;
};

/* "cuda_gpu_kern_sum:base" again; the caller frees it. */
char *report_choice_name(const struct report_choice *choice);

/* It keeps `options->table` and copies the rest. */
struct consumer *report_new(const struct report *report, const struct report_options *options);

/* Reads such a word; a sentence with the nearest name where there is no such report. */
int report_choose(const char *word, struct report_choice *choice, struct err *err);

/* ---- what reports share -------------------------------------------------------------------- */

/* "cuda_api_sum: CUDA calls by total time" */
void report_title(const struct report *report, char *title, size_t size);

/* What every report begins with. Most count what comes, and write their tables in end(). */
struct report_writer {
	struct consumer consumer; /* first: what callers hold */
	const struct report *report;
	struct report_options options;
	struct table *table;       /* of the options */
	struct consumer *analysis; /* of its kind, or from init() on; NULL: none */
	struct xids *xids;         /* the same */
	struct work *work;         /* the same */
	struct consumer_ops ops;   /* of its kind */
	uint64_t begin_ns;         /* of the trace, from report_begin() on */
	bool open;                 /* a table is */
	bool ran;                  /* something, on a GPU */
};

/* Zeroed, of `size` bytes, of which a struct report_writer is the first member. */
void *report_make(size_t size, const struct consumer_ops *ops, const struct report *report,
                  const struct report_options *options);

/* Begins a table below the report's title; `key` as for table_begin(). */
void report_begin(struct report_writer *writer, const struct run_info *run, const char *key,
                  const struct table_column *columns, size_t n);

/* The same below a title of its own. */
void report_table(struct report_writer *writer, const char *key, const char *title,
                  const struct table_column *columns, size_t n);

/*
 * The same of a table of `rows` rows. False: it is left out, as an empty one says nothing to
 * people; programs find it at its place.
 */
bool report_table_of(struct report_writer *writer, size_t rows, const char *key, const char *title,
                     const struct table_column *columns, size_t n);

/* A cell, after report_begin(): a time of the trace, as it is in tables. */
void report_time(const struct report_writer *writer, uint64_t time_ns);

/*
 * The note of a report that needs GPU times and saw none: that they were not recorded, or that
 * nothing ran. `run`: NULL where it is not known whether they were.
 */
void report_note_no_gpu_times(struct table *table, bool part, const struct run_info *run);

/* Whether only some calls were recorded or read: what else there was may change what is judged. */
bool report_is_chosen(const struct report_options *options, const struct run_info *run);

/* Graph launches that were recorded as wholes, in a report of kernels; nothing of 0. */
void report_note_whole_graphs(struct table *table, uint64_t count);

/* The note on calls made by other calls, which are shown with --nested. None for 0. */
void report_note_nested(struct table *table, uint64_t left_out);

/* How long what was read lasted. */
uint64_t report_duration_ns(const struct report_options *options, const struct run_info *run);

/* The note on failed calls that are none to worry about: cuda_error_is_shutdown(). None for 0. */
void report_note_shutdown(struct table *table, uint64_t calls);

/* The note of a table by place on `calls` that have no stack, of `all`. None for 0. */
void report_note_no_stacks(struct table *table, const struct run_info *run, uint64_t calls,
                           uint64_t all);

/* The note on rows that stand for several: of the longest `n` calls or gaps. */
void report_note_grouped(struct table *table, const char *what, size_t n);

/* Five cells: average, median, least, most and deviation, which are not known of no values. */
struct spread;
void report_spread(struct table *table, struct spread *values);

/* The note on medians of more values than are kept. */
void report_note_median(struct table *table);

/* The notes on activities that were lost, and on processes whose GPU times are not whole: what is
 * not there looks idle. None where all is there. */
void report_note_gpu_lost(struct table *table, const struct run_info *run);

/* The note on busy times that lack this at most: see busy_short_ns(). None for 0. */
void report_note_busy_short(struct table *table, uint64_t short_ns);

/* The note on work whose call was forgotten for want of room; nothing where none was. */
void report_note_unjoined(const struct report_options *options);

/* The note of a report with durations where none were recorded. */
void report_note_durations(struct table *table, const struct run_info *run);

/* Of tables that have launches, or calls that failed: that refused ones were not looked at. */
void report_note_refused(struct table *table, const struct run_info *run);

/* The note that figures are of a part of the time, where they are. */
void report_note_estimated(struct table *table, const struct run_info *run);
