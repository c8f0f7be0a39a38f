// SPDX-License-Identifier: MIT
/* How a trace was recorded, and what it missed. */
#include "output/sqlite/sqlite.h"

#include <time.h>

#include "analysis/missed.h"
#include "base/array.h"

#define NS 1000000000ll

static void add_pair(struct database *db, enum nsys_table table, const char *name,
                     const char *value)
{
	if (!value)
		return;
	row_begin(db, table);
	row_static(db, name);
	row_text(db, value);
	row_end(db);
}

static void add_start(struct database *db, const struct run_info *run)
{
	int64_t ns = (int64_t)run->begin_ns + run->realtime_offset_ns;
	time_t seconds = ns / NS;
	char utc[40], local[40];
	struct tm tm;

	strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
	strftime(local, sizeof(local), "%Y-%m-%dT%H:%M:%S%z", localtime_r(&seconds, &tm));
	row_begin(db, TABLE_START_TIME);
	row_int(db, ns);
	row_text(db, utc);
	row_text(db, local);
	row_end(db);
	row_begin(db, TABLE_SESSION);
	row_int(db, MACHINE);
	row_int(db, (int64_t)(run->end_ns - run->begin_ns));
	row_int(db, 0);
	row_int(db, (int64_t)(run->end_ns - run->begin_ns));
	row_end(db);
}

static void add_versions(struct database *db)
{
	static const struct {
		const char *name;
		int number;
	} parts[] = { { "EXPORT_SCHEMA_VERSION_MAJOR", NSYS_SCHEMA_MAJOR },
		      { "EXPORT_SCHEMA_VERSION_MINOR", NSYS_SCHEMA_MINOR },
		      { "EXPORT_SCHEMA_VERSION_MICRO", NSYS_SCHEMA_MICRO } };
	char text[48];

	add_pair(db, TABLE_EXPORT, "EXPORT_PRODUCT_NAME", "cuscope");
	add_pair(db, TABLE_EXPORT, "EXPORT_PRODUCT_VERSION", CUSCOPE_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(text, sizeof(text), "%d", parts[i].number);
		add_pair(db, TABLE_EXPORT, parts[i].name, text);
	}
	snprintf(text, sizeof(text), "%d.%d.%d", NSYS_SCHEMA_MAJOR, NSYS_SCHEMA_MINOR,
	         NSYS_SCHEMA_MICRO);
	add_pair(db, TABLE_EXPORT, "EXPORT_SCHEMA_VERSION", text);
}

/* What is to be known before the rest is believed, at the end of the trace's time. */
static void add_diagnostic(struct database *db, const struct run_info *run, int severity,
                           uint32_t pid, const char *text)
{
	row_begin(db, TABLE_DIAGNOSTIC);
	row_int(db, (int64_t)(run->end_ns - run->begin_ns));
	row_int(db, NSYS_TIME_OF_TARGET);
	row_int(db, NSYS_SOURCE_ANALYSIS);
	row_int(db, severity);
	row_text(db, text);
	add_or_null(db, (uint64_t)(MACHINE | (int64_t)(pid & LOW_24) << PID_SHIFT), pid);
	row_end(db);
}

static void add_lost(struct database *db, const struct run_info *run, enum lost_reason reason)
{
	struct buf text = { 0 };

	row_begin(db, TABLE_LOST);
	row_static(db, missed_lost_key(reason));
	row_static(db, lost_reason_text(reason));
	row_int(db, (int64_t)run->lost[reason]);
	row_end(db);
	buf_printf(&text, "%llu events: %s", (unsigned long long)run->lost[reason],
	           lost_reason_text(reason));
	add_diagnostic(db, run, NSYS_SEVERITY_WARNING, 0, text.data);
	buf_free(&text);
}

static void add_miss(struct database *db, const struct run_info *run, const struct miss *miss)
{
	struct buf text = { 0 };

	row_begin(db, TABLE_MISSED);
	row_static(db, missed_kind_key(miss->kind));
	row_text(db, miss->name);
	row_text(db, miss->lib);
	add_or_null(db, miss->pid, miss->pid);
	row_text(db, miss->why);
	row_end(db);
	buf_puts(&text, missed_kind_key(miss->kind));
	if (miss->name)
		buf_printf(&text, " %s", miss->name);
	if (miss->lib)
		buf_printf(&text, " (%s)", miss->lib);
	if (miss->why)
		buf_printf(&text, ": %s", miss->why);
	add_diagnostic(db, run, NSYS_SEVERITY_WARNING, miss->pid, text.data);
	buf_free(&text);
}

static void add_stack_count(struct database *db, const char *kind, const char *text, uint64_t count)
{
	if (!count)
		return;
	row_begin(db, TABLE_STACK_COUNT);
	row_static(db, kind);
	row_static(db, text);
	row_int(db, (int64_t)count);
	row_end(db);
}

/* What is missing beside stacks that end early: a warning each. */
static void add_stacks_missed(struct database *db, const struct run_info *run)
{
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++) {
		uint64_t n = run->stacks.missed[i];
		const char *text = stacks_missed_text((enum stacks_missed)i, n);
		struct buf line = { 0 };

		if (!n)
			continue;
		add_stack_count(db, missed_stacks_key((enum stacks_missed)i), text, n);
		buf_printf(&line, "%llu %s", (unsigned long long)n, text);
		add_diagnostic(db, run, NSYS_SEVERITY_WARNING, 0, line.data);
		buf_free(&line);
	}
}

static void add_stacks(struct sqlite *sqlite, const struct run_info *run)
{
	const struct stack_counts *counts = &sqlite->sink.stacks;
	struct database *db = sqlite->db;
	struct buf line = { 0 };

	add_stack_count(db, "whole", "whole", stack_counts_whole(counts));
	for (int end = STACK_WHOLE + 1; end < STACK_END_COUNT; end++)
		add_stack_count(db, "cut", stack_end_text((enum stack_end)end), counts->ends[end]);
	add_stack_count(db, "python_cut", "lack frames of Python", counts->python_cut);
	add_stack_count(db, "without", "are not known", counts->without);
	stack_counts_text(counts, &line);
	if (line.len)
		add_diagnostic(db, run,
		               stack_counts_whole(counts) == stack_counts_all(counts)
		                       ? NSYS_SEVERITY_INFO
		                       : NSYS_SEVERITY_WARNING,
		               0, line.data);
	buf_free(&line);
	add_stacks_missed(db, run);
}

static void add_missed(struct database *db, const struct run_info *run)
{
	struct buf file = { 0 };

	if (missed_of_file(run, &file))
		add_diagnostic(db, run, NSYS_SEVERITY_ERROR, 0, file.data);
	buf_free(&file);
	for (size_t i = 0; i < LOST_COUNT; i++) {
		if (run->lost[i])
			add_lost(db, run, i);
	}
	for (size_t i = 0; i < run->n_misses; i++)
		add_miss(db, run, &run->misses[i]);
}

void sqlite_add_run(struct sqlite *sqlite, const struct run_info *run)
{
	struct database *db = sqlite->db;

	add_start(db, run);
	sqlite_add_target(sqlite, run);
	add_pair(db, TABLE_CAPTURE, "COMMAND", run->command);
	add_pair(db, TABLE_CAPTURE, "RETURNS", run->returns ? "1" : "0");
	add_pair(db, TABLE_CAPTURE, "CUT_SHORT", run->cut_short ? "1" : "0");
	add_pair(db, TABLE_CAPTURE, "DAMAGED", run->damaged_chunks ? "1" : "0");
	add_versions(db);
	add_missed(db, run);
	add_stacks(sqlite, run);
}
