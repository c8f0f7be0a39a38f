// SPDX-License-Identifier: MIT
#include "output/sqlite/database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
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

#define PAGE_BYTES 8192 /* as the settings say */
#define LOOK_EACH  256  /* rows: asking for the size takes as long as writing one */

#define REMEMBERED_MOST (16u << 20) /* bytes of texts, with what each takes beside */

struct string {
	int64_t id;
	UT_hash_handle hh;
	char text[];
};

/*
 * Rows that are frequent are written several at a time, which is 1.5 to 1.9 times as fast: 16 is
 * where it was fastest, with 8 columns and with 17.
 */
#define BATCH 16

struct database_value {
	enum { IS_NULL, IS_INT, IS_TEXT } kind;
	union {
		int64_t number;
		const char *text; /* static */
	};
};

struct inserter {
	sqlite3_stmt *one, *batch; /* batch NULL: rows are written as they come */
	int columns;
	int64_t rows;
	struct database_value *waiting; /* rows of a batch that is not yet full */
	int n_waiting;
};

struct database {
	sqlite3 *handle;
	struct err failure;
	struct inserter tables[TABLE_COUNT];
	struct inserter *row; /* that is being written, NULL after a failure */
	int column;
	struct buf safe;
	struct string *strings;
	int64_t next_string;
	size_t remembered; /* bytes of `strings` */
	const char *closing;
	sqlite3_stmt *pages;
	uint64_t rows, looked_at, bytes; /* all rows; and when the size was asked for */
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

uint64_t database_bytes(struct database *db)
{
	if (db->rows / LOOK_EACH == db->looked_at / LOOK_EACH || db->failure.code)
		return db->bytes;
	db->looked_at = db->rows;
	if (!db->pages)
		check(db,
		      sqlite3_prepare_v2(db->handle, "PRAGMA page_count", -1, &db->pages, NULL));
	if (db->pages && sqlite3_step(db->pages) == SQLITE_ROW)
		db->bytes = (uint64_t)sqlite3_column_int64(db->pages, 0) * PAGE_BYTES;
	sqlite3_reset(db->pages);
	return db->bytes;
}

static void execute(struct database *db, const char *sql)
{
	if (!db->failure.code)
		check(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int count_columns(const char *columns)
{
	int n = 1;

	while ((columns = strchr(columns, ','))) {
		columns++;
		n++;
	}
	return n;
}

/* A process or a thread that comes again has its last name. */
static sqlite3_stmt *prepare(struct database *db, enum nsys_table table, int rows)
{
	const struct nsys_table_layout *layout = &nsys_tables[table];
	struct buf sql = { 0 };
	sqlite3_stmt *statement = NULL;

	buf_printf(&sql, "INSERT %sINTO %s VALUES ", layout->unique ? "OR REPLACE " : "",
	           layout->name);
	for (int i = 0; i < rows; i++) {
		buf_puts(&sql, i ? ",(?" : "(?");
		for (int column = 1; column < db->tables[table].columns; column++)
			buf_puts(&sql, ",?");
		buf_putc(&sql, ')');
	}
	if (!db->failure.code)
		check(db, sqlite3_prepare_v3(db->handle, sql.data, -1, SQLITE_PREPARE_PERSISTENT,
		                             &statement, NULL));
	buf_free(&sql);
	return statement;
}

static void create_table(struct database *db, enum nsys_table table)
{
	const struct nsys_table_layout *layout = &nsys_tables[table];
	struct inserter *inserter = &db->tables[table];
	struct buf sql = { 0 };

	buf_printf(&sql, "CREATE TABLE %s (\n%s\n);", layout->name, layout->columns);
	if (layout->unique)
		buf_printf(&sql, "CREATE UNIQUE INDEX %s_unique ON %s(%s);", layout->name,
		           layout->name, layout->unique);
	execute(db, sql.data);
	buf_free(&sql);
	inserter->columns = count_columns(layout->columns);
	inserter->one = prepare(db, table, 1);
	if (!layout->frequent)
		return;
	inserter->batch = prepare(db, table, BATCH);
	inserter->waiting =
		xcalloc((size_t)(BATCH * inserter->columns), sizeof(*inserter->waiting));
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

/* ---- rows ------------------------------------------------------------------------------------ */

static void bind(sqlite3_stmt *statement, int column, const struct database_value *value)
{
	switch (value->kind) {
	case IS_NULL:
		sqlite3_bind_null(statement, column);
		break;
	case IS_INT:
		sqlite3_bind_int64(statement, column, value->number);
		break;
	case IS_TEXT:
		sqlite3_bind_text(statement, column, value->text, -1, SQLITE_STATIC);
		break;
	}
}

static void write_row(struct database *db, sqlite3_stmt *statement)
{
	check(db, sqlite3_step(statement));
	sqlite3_reset(statement);
}

static void write_batch(struct database *db, struct inserter *table)
{
	for (int i = 0; i < BATCH * table->columns; i++)
		bind(table->batch, i + 1, &table->waiting[i]);
	write_row(db, table->batch);
	table->n_waiting = 0;
}

/* What waits at the end, row by row. */
static void write_rest(struct database *db, struct inserter *table)
{
	for (int row = 0; row < table->n_waiting && !db->failure.code; row++) {
		for (int i = 0; i < table->columns; i++)
			bind(table->one, i + 1, &table->waiting[row * table->columns + i]);
		write_row(db, table->one);
	}
}

static void put(struct database *db, struct database_value value)
{
	struct inserter *row = db->row;

	if (!row)
		return;
	if (row->batch)
		row->waiting[row->n_waiting * row->columns + db->column++] = value;
	else
		bind(row->one, ++db->column, &value);
}

void row_begin(struct database *db, enum nsys_table table)
{
	db->row = db->failure.code ? NULL : &db->tables[table];
	db->column = 0;
}

void row_int(struct database *db, int64_t value)
{
	put(db, (struct database_value){ .kind = IS_INT, .number = value });
}

void row_null(struct database *db)
{
	put(db, (struct database_value){ .kind = IS_NULL });
}

void row_static(struct database *db, const char *text)
{
	put(db, (struct database_value){ .kind = text ? IS_TEXT : IS_NULL, .text = text });
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
		sqlite3_bind_text(db->row->one, ++db->column, make_safe(db, text), -1,
		                  SQLITE_TRANSIENT);
}

int64_t row_end(struct database *db)
{
	struct inserter *row = db->row;

	while (row && db->column < row->columns)
		row_null(db);
	db->row = NULL;
	if (!row)
		return 0;
	if (!row->batch)
		write_row(db, row->one);
	else if (++row->n_waiting == BATCH)
		write_batch(db, row);
	db->rows++;
	return ++row->rows;
}

static int64_t write_string(struct database *db, const char *text)
{
	struct inserter *row = db->row; /* that the text is for, half written */
	int column = db->column;
	int64_t id = db->next_string++;

	row_begin(db, TABLE_STRING);
	row_int(db, id);
	row_text(db, text);
	row_end(db);
	db->row = db->failure.code ? NULL : row;
	db->column = column;
	return id;
}

static struct string *find_string(struct database *db, const char *text, size_t len)
{
	return MAP_FIND_BYTES(db->strings, text, len);
}

static int64_t add_string(struct database *db, const char *text, size_t len)
{
	struct string *string = xcalloc(1, sizeof(*string) + len + 1);

	string->id = write_string(db, text);
	memcpy(string->text, text, len);
	HASH_ADD(hh, db->strings, text, len, string);
	db->remembered += sizeof(*string) + len + 1;
	return string->id;
}

int64_t database_string(struct database *db, const char *text)
{
	size_t len = strlen(text);
	struct string *string = find_string(db, text, len);

	return string ? string->id : add_string(db, text, len);
}

int64_t database_text(struct database *db, const char *text)
{
	size_t len = strlen(text);
	struct string *string = find_string(db, text, len);

	if (string)
		return string->id;
	return db->remembered < REMEMBERED_MOST ? add_string(db, text, len)
	                                        : write_string(db, text);
}

/* ---- beginning and end -------------------------------------------------------------------- */

struct database *database_open(int fd, struct err *err)
{
	struct database *db = xcalloc(1, sizeof(*db));

	db->next_string = 1;
	check(db, database_file_open(fd, &db->handle));
	execute(db, settings);
	for (enum nsys_table table = 0; table < TABLE_COUNT; table++)
		create_table(db, table);
	add_enums(db);
	if (!db->failure.code)
		return db;
	database_close(db, true, err);
	return NULL;
}

void database_closing(struct database *db, const char *sql)
{
	db->closing = sql;
}

static void close_handle(struct database *db)
{
	for (enum nsys_table table = 0; table < TABLE_COUNT; table++) {
		sqlite3_finalize(db->tables[table].one);
		sqlite3_finalize(db->tables[table].batch);
		free(db->tables[table].waiting);
	}
	sqlite3_finalize(db->pages);
	if (db->handle && sqlite3_close(db->handle) != SQLITE_OK)
		check(db, SQLITE_BUSY);
}

static void drop_empty(struct database *db)
{
	for (enum nsys_table table = 0; table < TABLE_COUNT; table++) {
		char *sql;

		if (!nsys_tables[table].lazy || db->tables[table].rows)
			continue;
		sql = sqlite3_mprintf("DROP TABLE %s", nsys_tables[table].name);
		execute(db, sql);
		sqlite3_free(sql);
	}
}

int database_close(struct database *db, bool drop, struct err *err)
{
	int code;

	if (!drop) {
		for (enum nsys_table table = 0; table < TABLE_COUNT; table++)
			write_rest(db, &db->tables[table]);
		execute(db, nsys_closing_sql);
		if (db->closing)
			execute(db, db->closing);
		drop_empty(db);
		execute(db, "COMMIT");
	}
	close_handle(db);
	code = database_failed(db, err);
	MAP_FREE(db->strings, free);
	buf_free(&db->safe);
	free(db);
	return code;
}
