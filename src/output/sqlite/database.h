/* SPDX-License-Identifier: MIT */
/*
 * An SQLite file that is written once, from front to back: one transaction, no journal, nothing
 * forced to disk, since a file that was not finished is thrown away. Rows are written column by
 * column, in the order of nsys_tables. Private to src/output.
 *
 * A failure stays: after it nothing more is written, and database_close() tells it.
 */
#ifndef CUSCOPE_OUTPUT_SQLITE_DATABASE_H
#define CUSCOPE_OUTPUT_SQLITE_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "output/sqlite/nsys_tables.h"

struct database;

/*
 * Makes the tables in the file behind `fd`, which is empty, can be read and stays the caller's.
 * NULL and a sentence on failure.
 */
struct database *database_open(int fd, struct err *err);

/* How large the file is, or will be; of rows that are written. */
uint64_t database_bytes(struct database *db);

/* The first failure so far: 0 or its negative errno, with a sentence. */
int database_failed(const struct database *db, struct err *err);

/* What is to be done after the indices and views that all have; kept, not copied. */
void database_closing(struct database *db, const char *sql);

/* Indices, views, and the end. After a failure, and with `drop`, what is in the file is no
 * database.
 */
int database_close(struct database *db, bool drop, struct err *err);

/* ---- rows ------------------------------------------------------------------------------------ */

void row_begin(struct database *db, enum nsys_table table);
void row_int(struct database *db, int64_t value);
void row_null(struct database *db);
void row_text(struct database *db, const char *text);   /* NULL: NULL; escapes made harmless; not */
							/* in tables with a row for each event */
void row_static(struct database *db, const char *text); /* as it is; must stay; may be NULL */
int64_t row_end(struct database *db); /* the row's number; columns that are left are NULL */

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

#endif
