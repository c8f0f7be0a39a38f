/* SPDX-License-Identifier: MIT */
/*
 * The tables of a database, as rows of one table. Those of Nsight Systems have its names and
 * columns, so that queries written for its export run. Those of cuscope have what that has no
 * column for. Private to src/output. nsys_tables.c has what is done to them at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum nsys_table {
	TABLE_STRING,
	TABLE_PROCESS,
	TABLE_THREAD,
	TABLE_RUNTIME,
	TABLE_OSRT,
	TABLE_KERNEL,
	TABLE_MEMCPY,
	TABLE_MEMSET,
	TABLE_GRAPH_TRACE,
	TABLE_SYNCHRONIZATION,
	TABLE_OVERHEAD,
	TABLE_PROFILER_OVERHEAD,
	TABLE_GRAPH_NODE,
	TABLE_NVTX,
	TABLE_MEMORY_USAGE,
	TABLE_CALLCHAIN,
	TABLE_COMPOSITE,
	TABLE_SCHED,
	TABLE_START_TIME,
	TABLE_SYSTEM,
	TABLE_GPU,
	TABLE_GPU_METRIC,
	TABLE_GPU_METRIC_NAME,
	TABLE_CUDA_DEVICE,
	TABLE_CUDA_CONTEXT,
	TABLE_CUDA_STREAM,
	TABLE_NVTX_DEVICE,
	TABLE_DIAGNOSTIC,
	TABLE_SESSION,
	TABLE_CAPTURE,
	TABLE_EXPORT,
	TABLE_CALL,
	TABLE_FUNCTION,
	TABLE_RESULT,
	TABLE_MEMORY,
	TABLE_OTHER_CALL,
	TABLE_WHO,
	TABLE_LOST,
	TABLE_MISSED,
	TABLE_NOT_MEASURED,
	TABLE_SAMPLE,
	TABLE_STACK,
	TABLE_FRAME,
	TABLE_STACK_COUNT,
	TABLE_COUNT,
};

struct nsys_table_layout {
	const char *name;
	const char *columns; /* names, see nsys_columns() */
	const char *unique;  /* columns that make a row the same; NULL: none do */
	bool frequent;       /* a row for each event, about */
	bool numbered;       /* rows of other tables name its rows by their number, from 1 */
	bool lazy;           /* not there where it has no row: readers take that for an answer */
};

extern const struct nsys_table_layout nsys_tables[TABLE_COUNT];

struct nsys_column {
	char name[40];
	enum { NSYS_INTEGER, NSYS_REAL, NSYS_TEXT } type;
	bool not_null, is_key;
};

#define NSYS_COLUMNS_MOST 48 /* of a table */

/*
 * The columns of a table, in their order; returns how many. Behind a name `$` stands for a text,
 * `%` for a real number (else it is an integer), then `!` for NOT NULL, `*` for a primary key,
 * which is that, too.
 */
size_t nsys_columns(const char *names, struct nsys_column columns[NSYS_COLUMNS_MOST]);

/* The same as CREATE TABLE has them, one a line. */
struct buf;
void nsys_columns_sql(const char *names, struct buf *sql);

/* Tables of names for numbers: id, name, label. */
struct nsys_enum_row {
	const char *table; /* NULL: the same as the row before */
	int id;
	const char *name, *label;
};

extern const struct nsys_enum_row nsys_enums[];
extern const size_t n_nsys_enums;
extern const char nsys_enum_columns[]; /* of each of these tables */

/* The number that such a table has for a label; `unknown` where it has none. */
int nsys_enum_of_label(const char *table, const char *label, int unknown);

/* Indices and views, each ended by a semicolon; for when all rows are there. */
extern const char nsys_closing_sql[];

/*
 * SAMPLING_CALLCHAINS, after these: the frames of each sample on a CPU, from those of its stack.
 * As a view it takes no room, however many samples have a stack.
 */
extern const char nsys_sampling_rows[], nsys_sampling_view[];
#define NSYS_CHAIN_OF_NONE 0 /* in CUDA_CALLCHAINS: of samples without a stack */

/* The version of Nsight Systems' schema that these are. */
#define NSYS_SCHEMA_MAJOR 3
#define NSYS_SCHEMA_MINOR 16
#define NSYS_SCHEMA_MICRO 1

/* ENUM_NSYS_EVENT_CLASS, as CUPTI_ACTIVITY_KIND_RUNTIME and OSRT_API have it. */
enum { NSYS_CLASS_RUNTIME = 0, NSYS_CLASS_DRIVER = 1, NSYS_CLASS_OS_RUNTIME = 27 };

/* eventType of NVTX_EVENTS. */
enum {
	NSYS_NVTX_MARK = 34,
	NSYS_NVTX_PUSHPOP = 59,
	NSYS_NVTX_STARTEND = 60,
	NSYS_NVTX_DOMAIN = 75,
};

enum { NSYS_SEVERITY_INFO = 1, NSYS_SEVERITY_WARNING, NSYS_SEVERITY_ERROR };
enum { NSYS_SOURCE_ANALYSIS = 3 };
enum { NSYS_TIME_OF_TARGET = 1 };

/* ENUM_SAMPLING_THREAD_STATE. */
enum { NSYS_THREAD_RUNNING = 1, NSYS_THREAD_UNSCHEDULED = 6, NSYS_THREAD_WAITING = 7 };

/* Frames that Nsight Systems adds where a stack ends early, which its readers know. */
#define NSYS_FRAME_BROKEN   "[Broken backtraces]"
#define NSYS_FRAME_TOO_DEEP "[Max depth]"
#define NSYS_MODULE_UNKNOWN "[Unknown]"

/* ENUM_CUPTI_SYNC_TYPE, CUPTI's numbers. */
enum { NSYS_SYNC_EVENT = 1, NSYS_SYNC_STREAM_WAIT, NSYS_SYNC_STREAM, NSYS_SYNC_CONTEXT };

/* ENUM_CUPTI_STREAM_TYPE: a context's default stream, which is 7 in a program's first one. */
enum { NSYS_STREAM_NULL = 3 };
#define CUPTI_FIRST_NULL_STREAM 7

/* ENUM_CUDA_MEM_KIND: CUPTI's numbers less one, and what is not known at the end. */
enum { NSYS_MEMORY_PINNED = 1, NSYS_MEMORY_DEVICE, NSYS_MEMORY_ARRAY, NSYS_MEMORY_MANAGED };
#define NSYS_MEMORY_UNKNOWN 7
