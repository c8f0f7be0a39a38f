/* SPDX-License-Identifier: MIT */
/*
 * What reports have in common that count first and write their tables in the end: the consumer
 * around an analysis. Private to the reports.
 */
#ifndef CUSCOPE_REPORT_AT_END_H
#define CUSCOPE_REPORT_AT_END_H

#include "report/report.h"

struct at_end {
	struct consumer consumer; /* first */
	const struct report *report;
	struct report_options options;
	const struct at_end_ops *ops;
	void *analysis;
};

struct at_end_ops {
	void *(*make)(const struct report_options *options);
	void (*event)(void *analysis, const struct event *event);
	/* Writes whole tables. 0 or a negative errno. */
	int (*write)(struct at_end *self, const struct run_info *run, struct err *err);
	void (*free)(void *analysis);
};

struct consumer *at_end_new(const struct report *report, const struct report_options *options,
                            const struct at_end_ops *ops);

/* make, event and free of an analysis with NAME_new(void), NAME_event() and NAME_free(). */
#define AT_END_ANALYSIS(name) AT_END_MADE_BY(name, name##_new())

/* The same with NAME_new(struct work *): one that asks which calls asked for what ran. */
#define AT_END_WORK(name) AT_END_MADE_BY(name, name##_new(options->work))

#define AT_END_MADE_BY(name, made)                                                                 \
	static void *make_##name(const struct report_options *options)                             \
	{                                                                                          \
		return made;                                                                       \
	}                                                                                          \
	static void see_##name(void *analysis, const struct event *event)                          \
	{                                                                                          \
		name##_event(analysis, event);                                                     \
	}                                                                                          \
	static void free_##name(void *analysis)                                                    \
	{                                                                                          \
		name##_free(analysis);                                                             \
	}

/* Begins the only table of a report, whose title is the report's, or one of its parts. */
void at_end_begin(struct at_end *self, const struct table_column *columns, size_t n);

/* A cell: a time of the trace, as it is in tables. */
void at_end_time(struct at_end *self, const struct run_info *run, uint64_t time_ns);

/* The notes that any table with counts, or with durations, may need. */
void at_end_note_counts(struct at_end *self, const struct run_info *run);
void at_end_note_durations(struct at_end *self, const struct run_info *run);

#endif
