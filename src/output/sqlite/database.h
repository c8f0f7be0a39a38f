/* SPDX-License-Identifier: MIT */
/*
 * Rows of nsys_tables, written once, from front to back: into an SQLite file (database_sqlite.c),
 * or into a Parquet file for each table (output/parquet). The cells of a row are in the order of
 * nsys_tables. Private to src/output.
 *
 * A failure stays: after it nothing more is written, and database_close() tells it.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "output/sqlite/nsys_tables.h"

struct cell;
struct database;

/* What is different of where rows go. */
struct database_ops {
	/* Columns that are left are NULL. What fails stands in db->failure then. */
	void (*row)(struct database *db, enum nsys_table table, const struct cell *cells, int n);
	uint64_t (*bytes)(struct database *db);
	int (*close)(struct database *db, bool drop, struct err *err);
};

/* The first member of each kind's own. */
struct database {
	const struct database_ops *ops;
	struct err failure;
	int64_t rows[TABLE_COUNT];
	struct string *strings;
	int64_t next_string;
	size_t remembered;      /* bytes of `strings` */
	uint64_t sample_frames; /* that SAMPLING_CALLCHAINS would have; 0: it has none */
};

/*
 * Makes the tables in the file behind `fd`, which is empty, can be read and stays the caller's: an
 * SQLite file in one transaction, with no journal, nothing forced to disk, since one that was not
 * finished is thrown away. NULL and a sentence on failure.
 */
struct database *database_open(int fd, struct err *err);

/* For other kinds: of a zeroed one. */
void database_init(struct database *db, const struct database_ops *ops);

/* How large the file is, or will be; of rows that are written. */
uint64_t database_bytes(struct database *db);

/* The first failure so far: 0 or its negative errno, with a sentence. */
int database_failed(const struct database *db, struct err *err);

/* Indices, views, and the end. After a failure, and with `drop`, what is in the file is no
 * database.
 */
int database_close(struct database *db, bool drop, struct err *err);

/* ---- rows ------------------------------------------------------------------------------------ */

struct cell {
	enum { CELL_IS_NULL, CELL_IS_INT, CELL_IS_TEXT, CELL_IS_SAFE } kind;
	union {
		int64_t number;
		const char *text; /* static, or with CELL_IS_SAFE the caller's; NULL: NULL */
	};
};

#define CELL(value)           ((struct cell){ CELL_IS_INT, .number = (value) })
#define CELL_IF(value, known) ((known) ? CELL((int64_t)(value)) : CELL_NONE)
#define CELL_KNOWN(value)     CELL_IF(value, (value) != 0) /* 0: NULL */
#define CELL_NONE             ((struct cell){ .kind = CELL_IS_NULL })
#define CELL_TEXT(words)      ((struct cell){ CELL_IS_TEXT, .text = (words) }) /* must stay */
/* Escapes made harmless; not in tables with a row for each event. */
#define CELL_SAFE(words) ((struct cell){ CELL_IS_SAFE, .text = (words) })

/* The row's number; 0 after a failure. Columns that are left are NULL. */
int64_t database_row(struct database *db, enum nsys_table table, const struct cell *cells, int n);
#define ROW(db, table, ...)                                                                        \
	database_row(db, table, (const struct cell[]){ __VA_ARGS__ },                              \
	             sizeof((const struct cell[]){ __VA_ARGS__ }) / sizeof(struct cell))

/*
 * The id that StringIds gives a text, written there when it is seen first. The memory that this
 * takes grows with the number of different texts.
 */
int64_t database_string(struct database *db, const char *text);

/*
 * The same for texts that a program makes up as it runs, of which there may be any number. Once 16
 * MiB of texts are remembered, further ones are written each time, under an id of their own.
 */
int64_t database_text(struct database *db, const char *text);

/* ---- database file -------------------------------------------------------------------------- */

/*
 * Opens the regular file behind `fd`, which stays the caller's, as a database without a journal and
 * without locks. What sqlite3_open_v2() returns; *handle is to be closed either way.
 */
int database_file_open(int fd, sqlite3 **handle);
