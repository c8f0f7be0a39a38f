// SPDX-License-Identifier: MIT
/* Rows in an SQLite file. */
#include "output/sqlite/database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

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

#define PAGE_BYTES 8192 /* as the settings say */
#define LOOK_EACH  256  /* rows: asking for the size takes as long as writing one */

/*
 * Rows that are frequent are written several at a time, which is 1.5 to 1.9 times as fast: 16 is
 * where it was fastest, with 8 columns and with 17.
 */
#define BATCH 16

struct inserter {
	sqlite3_stmt *one, *batch; /* batch NULL: rows are written as they come */
	int columns;
	struct cell *waiting; /* rows of a batch that is not yet full */
	int n_waiting;
};

struct sqlite_file {
	struct database db; /* first */
	sqlite3 *handle;
	struct inserter tables[TABLE_COUNT];
	struct buf safe;
	sqlite3_stmt *pages;
	uint64_t rows, looked_at, bytes; /* all rows; and when the size was asked for */
};

/* ---- failures -------------------------------------------------------------------------------- */

/* What the system said, where SQLite keeps it: a full disk is its own code with no errno. It keeps
 * none of a commit that fails, which is the first to write where there is little. */
static int code_of(const struct sqlite_file *db, int rc)
{
	bool no_room = errno == EFBIG || errno == EDQUOT;
	int code = no_room ? errno : db->handle ? sqlite3_system_errno(db->handle) : 0;

	if (rc == SQLITE_FULL)
		return ENOSPC;
	if (rc == SQLITE_CANTOPEN || rc == SQLITE_IOERR)
		return code ? code : EIO;
	return EIO;
}

static void check(struct sqlite_file *db, int rc)
{
	int code;

	if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW || db->db.failure.code)
		return;
	code = code_of(db, rc & 0xff);
	if (code == EIO)
		err_set(&db->db.failure, code, "cannot write the database: %s",
		        db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc));
	else
		err_set(&db->db.failure, code, "cannot write the database: %s", strerror(code));
}

static uint64_t sqlite_file_bytes(struct database *self)
{
	struct sqlite_file *db = (struct sqlite_file *)self;

	if (db->rows / LOOK_EACH == db->looked_at / LOOK_EACH || db->db.failure.code)
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

static void execute(struct sqlite_file *db, const char *sql)
{
	if (!db->db.failure.code)
		check(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A process or a thread that comes again has its last name. */
static sqlite3_stmt *prepare(struct sqlite_file *db, enum nsys_table table, int rows)
{
	const struct nsys_table_layout *layout = &nsys_tables[table];
	AT_END(buf_free) struct buf sql = { 0 };
	sqlite3_stmt *statement = NULL;

	buf_printf(&sql, "INSERT %sINTO %s VALUES ", layout->unique ? "OR REPLACE " : "",
	           layout->name);
	for (int i = 0; i < rows; i++) {
		buf_puts(&sql, i ? ",(?" : "(?");
		for (int column = 1; column < db->tables[table].columns; column++)
			buf_puts(&sql, ",?");
		buf_putc(&sql, ')');
	}
	if (!db->db.failure.code)
		check(db, sqlite3_prepare_v3(db->handle, sql.data, -1, SQLITE_PREPARE_PERSISTENT,
		                             &statement, NULL));
	return statement;
}

static void create(struct sqlite_file *db, const char *name, const char *columns, const char *edge)
{
	AT_END(buf_free) struct buf sql = { 0 };

	buf_printf(&sql, "CREATE TABLE %s (%s", name, edge);
	nsys_columns_sql(columns, &sql);
	buf_printf(&sql, "%s)", edge);
	execute(db, sql.data);
}

static void create_table(struct sqlite_file *db, enum nsys_table table)
{
	const struct nsys_table_layout *layout = &nsys_tables[table];
	struct inserter *inserter = &db->tables[table];
	struct nsys_column columns[NSYS_COLUMNS_MOST];
	AT_END(buf_free) struct buf sql = { 0 };

	create(db, layout->name, layout->columns, "\n");
	if (layout->unique) {
		buf_printf(&sql, "CREATE UNIQUE INDEX %s_unique ON %s(%s);", layout->name,
		           layout->name, layout->unique);
		execute(db, sql.data);
	}
	inserter->columns = (int)nsys_columns(layout->columns, columns);
	inserter->one = prepare(db, table, 1);
	if (!layout->frequent)
		return;
	inserter->batch = prepare(db, table, BATCH);
	inserter->waiting =
		xcalloc((size_t)(BATCH * inserter->columns), sizeof(*inserter->waiting));
}

static void add_enums(struct sqlite_file *db)
{
	const char *table = NULL;
	char *sql;

	for (size_t i = 0; i < n_nsys_enums; i++) {
		const struct nsys_enum_row *row = &nsys_enums[i];

		if (row->table) {
			table = row->table;
			create(db, table, nsys_enum_columns, "");
		}
		sql = sqlite3_mprintf("INSERT INTO %s VALUES (%d, %Q, %Q)", table, row->id,
		                      row->name, row->label);
		execute(db, sql);
		sqlite3_free(sql);
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void bind(struct sqlite_file *db, sqlite3_stmt *statement, int column,
                 const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_IS_INT:
		sqlite3_bind_int64(statement, column, cell->number);
		break;
	case CELL_IS_TEXT: /* NULL makes it NULL */
		sqlite3_bind_text(statement, column, cell->text, -1, SQLITE_STATIC);
		break;
	case CELL_IS_SAFE:
		buf_reset(&db->safe);
		buf_puts(&db->safe, "");
		if (cell->text)
			text_add_safe(&db->safe, cell->text);
		sqlite3_bind_text(statement, column, cell->text ? db->safe.data : NULL, -1,
		                  SQLITE_TRANSIENT);
		break;
	case CELL_IS_NULL:
		sqlite3_bind_null(statement, column);
		break;
	}
}

static void write_row(struct sqlite_file *db, sqlite3_stmt *statement)
{
	check(db, sqlite3_step(statement));
	sqlite3_reset(statement);
}

static void write_batch(struct sqlite_file *db, struct inserter *table)
{
	for (int i = 0; i < BATCH * table->columns; i++)
		bind(db, table->batch, i + 1, &table->waiting[i]);
	write_row(db, table->batch);
	table->n_waiting = 0;
}

/* What waits at the end, row by row. */
static void write_rest(struct sqlite_file *db, struct inserter *table)
{
	for (int row = 0; row < table->n_waiting && !db->db.failure.code; row++) {
		for (int i = 0; i < table->columns; i++)
			bind(db, table->one, i + 1, &table->waiting[row * table->columns + i]);
		write_row(db, table->one);
	}
}

static void sqlite_file_row(struct database *self, enum nsys_table table, const struct cell *cells,
                            int n)
{
	struct sqlite_file *db = (struct sqlite_file *)self;
	struct inserter *row = &db->tables[table];
	struct cell *waiting = row->batch ? &row->waiting[row->n_waiting * row->columns] : NULL;

	for (int i = 0; i < row->columns; i++) {
		if (waiting)
			waiting[i] = i < n ? cells[i] : CELL_NONE;
		else
			bind(db, row->one, i + 1, i < n ? &cells[i] : &CELL_NONE);
	}
	if (!waiting)
		write_row(db, row->one);
	else if (++row->n_waiting == BATCH)
		write_batch(db, row);
	db->rows++;
}

/* ---- beginning and end -------------------------------------------------------------------- */

static void close_handle(struct sqlite_file *db)
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

static void drop_empty(struct sqlite_file *db)
{
	for (enum nsys_table table = 0; table < TABLE_COUNT; table++) {
		char *sql;

		if (!nsys_tables[table].lazy || db->db.rows[table])
			continue;
		sql = sqlite3_mprintf("DROP TABLE %s", nsys_tables[table].name);
		execute(db, sql);
		sqlite3_free(sql);
	}
}

/* Beyond that SAMPLING_CALLCHAINS is no table, but a view that gives the same rows. */
#define SAMPLE_FRAMES_MOST 1000000

static int sqlite_file_close(struct database *self, bool drop, struct err *err)
{
	struct sqlite_file *db = (struct sqlite_file *)self;
	int code;

	if (!drop) {
		for (enum nsys_table table = 0; table < TABLE_COUNT; table++)
			write_rest(db, &db->tables[table]);
		execute(db, nsys_closing_sql);
		if (db->db.sample_frames > SAMPLE_FRAMES_MOST) {
			execute(db, nsys_sampling_view);
		} else if (db->db.sample_frames) {
			create(db, "SAMPLING_CALLCHAINS", nsys_tables[TABLE_CALLCHAIN].columns,
			       "\n");
			execute(db, nsys_sampling_rows);
		}
		drop_empty(db);
		execute(db, "COMMIT");
	}
	close_handle(db);
	code = database_failed(self, err);
	buf_free(&db->safe);
	free(db);
	return code;
}

static const struct database_ops sqlite_file_ops = {
	.row = sqlite_file_row,
	.bytes = sqlite_file_bytes,
	.close = sqlite_file_close,
};

struct database *database_open(int fd, struct err *err)
{
	struct sqlite_file *db = xcalloc(1, sizeof(*db));

	database_init(&db->db, &sqlite_file_ops);
	check(db, database_file_open(fd, &db->handle));
	execute(db, settings);
	for (enum nsys_table table = 0; table < TABLE_COUNT; table++)
		create_table(db, table);
	add_enums(db);
	if (!db->db.failure.code)
		return &db->db;
	database_close(&db->db, true, err);
	return NULL;
}
