// SPDX-License-Identifier: MIT
#include "output/database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/xalloc.h"

/*
 * The page cache is all that grows with the file, so it is bounded: negative numbers are KiB. Its
 * size also bounds what building an index sorts in memory; the rest of it goes to temporary files.
 */
static const char settings[] = "PRAGMA page_size = 8192;"
			       "PRAGMA journal_mode = OFF;"
			       "PRAGMA synchronous = OFF;"
			       "PRAGMA locking_mode = EXCLUSIVE;"
			       "PRAGMA cache_size = -16384;"
			       "BEGIN;";

struct string {
	int64_t id;
	UT_hash_handle hh;
	char text[];
};

struct database {
	sqlite3 *handle;
	char *path;
	struct err failure;
	sqlite3_stmt *insert[TABLE_COUNT];
	sqlite3_stmt *row; /* that is being written, NULL after a failure */
	int column;
	struct buf safe;
	struct string *strings;
	int64_t next_string;
};

/* ---- failures -------------------------------------------------------------------------------- */

/* What the system said, where SQLite keeps it: a full disk is its own code with no errno. */
static int code_of(const struct database *db, int rc)
{
	int code = db->handle ? sqlite3_system_errno(db->handle) : 0;

	if (rc == SQLITE_FULL)
		return ENOSPC;
	if (rc == SQLITE_CANTOPEN || rc == SQLITE_IOERR)
		return code ? code : EIO;
	return EIO;
}

static void check(struct database *db, int rc)
{
	int code;

	if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW || db->failure.code)
		return;
	code = code_of(db, rc & 0xff);
	if (code == EIO)
		err_set(&db->failure, code, "cannot write the database: %s",
		        db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc));
	else
		err_set(&db->failure, code, "cannot write the database: %s", strerror(code));
}

int database_failed(const struct database *db, struct err *err)
{
	if (db->failure.code && err)
		*err = db->failure;
	return db->failure.code;
}

static void execute(struct database *db, const char *sql)
{
	if (!db->failure.code)
		check(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void prepare(struct database *db, enum nsys_table table)
{
	const struct nsys_table_layout *layout = &nsys_tables[table];
	struct buf sql = { 0 };

	buf_printf(&sql, "CREATE TABLE %s (\n%s\n);", layout->name, layout->columns);
	if (layout->unique)
		buf_printf(&sql, "CREATE UNIQUE INDEX %s_unique ON %s(%s);", layout->name,
		           layout->name, layout->unique);
	execute(db, sql.data);
	buf_reset(&sql);
	/* a process or a thread that comes again has its last name */
	buf_printf(&sql, "INSERT %sINTO %s VALUES (?", layout->unique ? "OR REPLACE " : "",
	           layout->name);
	for (const char *at = strchr(layout->columns, ','); at; at = strchr(at + 1, ','))
		buf_puts(&sql, ",?");
	buf_putc(&sql, ')');
	if (!db->failure.code)
		check(db, sqlite3_prepare_v3(db->handle, sql.data, -1, SQLITE_PREPARE_PERSISTENT,
		                             &db->insert[table], NULL));
	buf_free(&sql);
}

static void add_enums(struct database *db)
{
	const char *table = NULL;
	char *sql;

	for (size_t i = 0; i < n_nsys_enums; i++) {
		const struct nsys_enum_row *row = &nsys_enums[i];

		if (row->table) {
			table = row->table;
			sql = sqlite3_mprintf("CREATE TABLE %s (id INTEGER NOT NULL PRIMARY KEY, "
			                      "name TEXT, label TEXT)",
			                      table);
			execute(db, sql);
			sqlite3_free(sql);
		}
		sql = sqlite3_mprintf("INSERT INTO %s VALUES (%d, %Q, %Q)", table, row->id,
		                      row->name, row->label);
		execute(db, sql);
		sqlite3_free(sql);
	}
}

struct database *database_open(const char *path, struct err *err)
{
	struct database *db = xcalloc(1, sizeof(*db));

	db->path = xstrdup(path);
	db->next_string = 1;
	check(db, sqlite3_open_v2(path, &db->handle,
	                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
	                          NULL));
	execute(db, settings);
	for (enum nsys_table table = 0; table < TABLE_COUNT; table++)
		prepare(db, table);
	add_enums(db);
	if (!db->failure.code)
		return db;
	database_close(db, true, err);
	return NULL;
}

static void close_handle(struct database *db)
{
	for (enum nsys_table table = 0; table < TABLE_COUNT; table++)
		sqlite3_finalize(db->insert[table]);
	if (db->handle && sqlite3_close(db->handle) != SQLITE_OK)
		check(db, SQLITE_BUSY);
}

int database_close(struct database *db, bool drop, struct err *err)
{
	struct string *string, *next;
	int code;

	if (!drop) {
		execute(db, nsys_closing_sql);
		execute(db, "COMMIT");
	}
	close_handle(db);
	code = database_failed(db, err);
	if (drop || code)
		unlink(db->path);
	HASH_ITER (hh, db->strings, string, next) {
		HASH_DELETE(hh, db->strings, string);
		free(string);
	}
	buf_free(&db->safe);
	free(db->path);
	free(db);
	return code;
}

/* ---- rows ------------------------------------------------------------------------------------ */

void row_begin(struct database *db, enum nsys_table table)
{
	db->row = db->failure.code ? NULL : db->insert[table];
	db->column = 0;
}

void row_int(struct database *db, int64_t value)
{
	if (db->row)
		sqlite3_bind_int64(db->row, ++db->column, value);
}

void row_null(struct database *db)
{
	if (db->row)
		sqlite3_bind_null(db->row, ++db->column);
}

void row_static(struct database *db, const char *text)
{
	if (db->row)
		sqlite3_bind_text(db->row, ++db->column, text, -1, SQLITE_STATIC);
}

static const char *make_safe(struct database *db, const char *text)
{
	buf_reset(&db->safe);
	text_add_safe(&db->safe, text);
	return db->safe.data ? db->safe.data : "";
}

void row_text(struct database *db, const char *text)
{
	if (!text)
		row_null(db);
	else if (db->row)
		sqlite3_bind_text(db->row, ++db->column, make_safe(db, text), -1, SQLITE_TRANSIENT);
}

int64_t row_end(struct database *db)
{
	sqlite3_stmt *row = db->row;

	if (!row)
		return 0;
	check(db, sqlite3_step(row));
	sqlite3_reset(row);
	db->row = NULL;
	return sqlite3_last_insert_rowid(db->handle);
}

static struct string *add_string(struct database *db, const char *text, size_t len)
{
	struct string *string = xcalloc(1, sizeof(*string) + len + 1);
	sqlite3_stmt *row = db->row; /* that the text is for, half written */
	int column = db->column;

	string->id = db->next_string++;
	memcpy(string->text, text, len);
	HASH_ADD(hh, db->strings, text, len, string);
	row_begin(db, TABLE_STRING);
	row_int(db, string->id);
	row_text(db, text);
	row_end(db);
	db->row = db->failure.code ? NULL : row;
	db->column = column;
	return string;
}

int64_t database_string(struct database *db, const char *text)
{
	size_t len = strlen(text);
	struct string *string;

	HASH_FIND(hh, db->strings, text, len, string);
	return (string ? string : add_string(db, text, len))->id;
}
