// SPDX-License-Identifier: MIT
#include "output/parquet/parquet_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "output/parquet/parquet_file.h"

#define PACKED_MOST (32u << 20) /* bytes, of all tables of all ranks, */
#define RAW_MOST    (64u << 20) /* and of pages that are not full: eight ranks have half of it */
#define GROUP_ROWS  (1u << 20)
#define LOOK_EACH   256 /* rows: at how much is held */
#define KEY_COLUMNS 2

/* A row that a later one with the same key takes the place of. */
struct kept_row {
	int64_t key[KEY_COLUMNS];
	struct cell *cells; /* with texts of its own */
	UT_hash_handle hh;
};

struct parquet_table {
	const char *name;
	struct nsys_column columns[NSYS_COLUMNS_MOST];
	size_t n, first;           /* columns; 1 where the number of the row stands before them */
	struct parquet_file *file; /* NULL: no row so far */
	bool begun;                /* its file is there */
	struct kept_row *kept;
};

struct parquet_tables {
	struct database db; /* first */
	struct new_folder *folder;
	struct parquet_share *share;
	struct parquet_table tables[TABLE_COUNT];
	struct buf safe;
	uint64_t written, held; /* bytes, the latter when that was last looked at */
};

struct parquet_share {
	struct parquet_packer *packer;
	struct parquet_tables **all;
	size_t n;
	uint64_t rows; /* since what is held was looked at */
};

/* ---- what is shared ------------------------------------------------------------------------ */

struct parquet_share *parquet_share_new(void)
{
	struct parquet_share *share = xcalloc(1, sizeof(*share));

	share->packer = parquet_packer_new();
	return share;
}

void parquet_share_free(struct parquet_share *share)
{
	if (!share)
		return;
	parquet_packer_free(share->packer);
	free(share->all);
	free(share);
}

static void share_leave(struct parquet_share *share, const struct parquet_tables *tables)
{
	for (size_t i = 0; i < share->n; i++) {
		if (share->all[i] == tables) {
			share->all[i] = share->all[--share->n];
			return;
		}
	}
}

/* ---- files --------------------------------------------------------------------------------- */

static struct parquet_file *file_of_columns(struct parquet_table *table,
                                            struct parquet_packer *packer)
{
	struct parquet_column columns[NSYS_COLUMNS_MOST + 1] = { { "rowid", PARQUET_NUMBER,
		                                                   true } };
	static const enum parquet_type types[] = { [NSYS_INTEGER] = PARQUET_NUMBER,
		                                   [NSYS_REAL] = PARQUET_REAL,
		                                   [NSYS_TEXT] = PARQUET_TEXT };

	for (size_t i = 0; i < table->n; i++) {
		const struct nsys_column *column = &table->columns[i];

		columns[table->first + i] =
			(struct parquet_column){ column->name, types[column->type],
			                         column->not_null };
	}
	return parquet_file_new(columns, table->first + table->n, packer);
}

static void describe_table(struct parquet_table *table, const struct nsys_table_layout *layout)
{
	table->name = layout->name;
	table->n = nsys_columns(layout->columns, table->columns);
	table->first = layout->numbered;
}

static int open_file(struct parquet_tables *tables, struct parquet_table *table, struct err *err)
{
	AT_END(buf_free) struct buf name = { 0 };
	int fd;

	buf_printf(&name, "%s.parquet", table->name);
	fd = new_folder_file(tables->folder, name.data, table->begun, err);
	table->begun = table->begun || fd >= 0;
	return fd;
}

/* A row group, or the end of the file. */
static void write_table(struct parquet_tables *tables, struct parquet_table *table,
                        int (*write)(struct parquet_file *, int, struct err *))
{
	struct err *failure = &tables->db.failure;
	int fd = failure->code ? -1 : open_file(tables, table, failure);
	uint64_t before = parquet_file_bytes(table->file);

	if (fd < 0)
		return;
	if (write(table->file, fd, failure))
		err_prefix(failure, "%s", table->name);
	tables->written += parquet_file_bytes(table->file) - before;
	if (close(fd) && !failure->code)
		err_set(failure, errno, "cannot write %s: %s", table->name, strerror(errno));
}

/* ---- how much is held ---------------------------------------------------------------------- */

/* The table that holds most of something. */
struct holder {
	size_t sum, most; /* of all tables, of this one */
	struct parquet_tables *tables;
	struct parquet_table *table;
};

static void add_holder(struct holder *holder, size_t bytes, struct parquet_tables *tables,
                       struct parquet_table *table)
{
	holder->sum += bytes;
	if (bytes <= holder->most)
		return;
	holder->most = bytes;
	holder->tables = tables;
	holder->table = table;
}

static void look_at_held(struct parquet_share *share)
{
	struct holder packed = { 0 }, raw = { 0 };

	share->rows = 0;
	for (size_t i = 0; i < share->n; i++) {
		struct parquet_tables *tables = share->all[i];

		tables->held = 0;
		for (size_t k = 0; k < TABLE_COUNT; k++) {
			struct parquet_table *table = &tables->tables[k];
			struct parquet_held held = table->file ? parquet_file_held(table->file)
			                                       : (struct parquet_held){ 0 };

			tables->held += held.packed + held.raw / 8; /* about, when it is packed */
			add_holder(&packed, held.packed, tables, table);
			add_holder(&raw, held.raw, tables, table);
		}
	}
	if (packed.sum > PACKED_MOST)
		write_table(packed.tables, packed.table, parquet_file_write);
	else if (raw.sum > RAW_MOST)
		write_table(raw.tables, raw.table, parquet_file_write);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void add_text(struct parquet_tables *tables, struct parquet_file *file, size_t column,
                     const struct cell *cell)
{
	const char *text = cell->text;

	if (!text) {
		parquet_file_null(file, column);
		return;
	}
	if (cell->kind == CELL_IS_SAFE) {
		buf_reset(&tables->safe);
		buf_puts(&tables->safe, "");
		text_add_safe(&tables->safe, text);
		text = tables->safe.data;
	}
	parquet_file_text(file, column, text, strlen(text));
}

static void add_cell(struct parquet_tables *tables, struct parquet_table *table, size_t i,
                     const struct cell *cell)
{
	bool is_text = cell->kind == CELL_IS_TEXT || cell->kind == CELL_IS_SAFE;

	if (cell->kind == CELL_IS_NULL)
		parquet_file_null(table->file, table->first + i);
	else if (is_text && table->columns[i].type == NSYS_TEXT)
		add_text(tables, table->file, table->first + i, cell);
	else if (!is_text && table->columns[i].type == NSYS_INTEGER)
		parquet_file_number(table->file, table->first + i, cell->number);
	else
		err_set(&tables->db.failure, EINVAL, "%s.%s is of another type", table->name,
		        table->columns[i].name);
}

static void write_cells(struct parquet_tables *tables, struct parquet_table *table,
                        const struct cell *cells, size_t n)
{
	if (!table->file)
		table->file = file_of_columns(table, tables->share->packer);
	if (table->first)
		parquet_file_number(table->file, 0, (int64_t)parquet_file_rows(table->file) + 1);
	for (size_t i = 0; i < table->n; i++)
		add_cell(tables, table, i, i < n ? &cells[i] : &CELL_NONE);
	parquet_file_row(table->file);
	if (parquet_file_held_rows(table->file) >= GROUP_ROWS)
		write_table(tables, table, parquet_file_write);
}

/* ---- rows that are told again ---------------------------------------------------------------- */

static void free_kept(struct kept_row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (row->cells[i].kind == CELL_IS_SAFE)
			free((char *)row->cells[i].text);
	}
	free(row->cells);
	free(row);
}

/* The columns of the key are numbers, named "a" or "a, b". */
static void key_of(const struct parquet_table *table, const char *unique, const struct cell *cells,
                   int64_t key[KEY_COLUMNS])
{
	for (size_t k = 0; k < KEY_COLUMNS; k++) {
		size_t len = strcspn(unique, ", ");

		for (size_t i = 0; len && i < table->n; i++) {
			if (strlen(table->columns[i].name) == len &&
			    !memcmp(table->columns[i].name, unique, len))
				key[k] = cells[i].number;
		}
		unique += len + strspn(unique + len, ", ");
	}
}

static void keep_row(struct parquet_table *table, const char *unique, const struct cell *cells,
                     size_t n)
{
	int64_t key[KEY_COLUMNS] = { 0 };
	struct kept_row *row;

	key_of(table, unique, cells, key);
	HASH_FIND(hh, table->kept, key, sizeof(key), row);
	if (row) {
		HASH_DEL(table->kept, row);
		free_kept(row, table->n);
	}
	row = MAP_ADD(table->kept, key, &key);
	row->cells = xcalloc(table->n, sizeof(*row->cells)); /* NULL, all of them */
	for (size_t i = 0; i < n && i < table->n; i++) {
		row->cells[i] = cells[i];
		if (cells[i].kind == CELL_IS_SAFE && cells[i].text)
			row->cells[i].text = xstrdup(cells[i].text);
	}
}

static void write_kept(struct parquet_tables *tables, struct parquet_table *table, bool drop)
{
	struct kept_row *row, *next;

	HASH_ITER (hh, table->kept, row, next) {
		if (!drop)
			write_cells(tables, table, row->cells, table->n);
		HASH_DEL(table->kept, row);
		free_kept(row, table->n);
	}
}

/* ---- the database -------------------------------------------------------------------------- */

static void tables_row(struct database *db, enum nsys_table number, const struct cell *cells, int n)
{
	struct parquet_tables *tables = (struct parquet_tables *)db;
	struct parquet_table *table = &tables->tables[number];
	struct parquet_share *share = tables->share;

	if (nsys_tables[number].unique)
		keep_row(table, nsys_tables[number].unique, cells, (size_t)n);
	else
		write_cells(tables, table, cells, (size_t)n);
	if (++share->rows >= LOOK_EACH * share->n)
		look_at_held(share);
}

static uint64_t tables_bytes(struct database *db)
{
	const struct parquet_tables *tables = (const struct parquet_tables *)db;

	return tables->written + tables->held;
}

/* The file of a table; of one without a row, too, where readers do not take that for an answer. */
static void end_table(struct parquet_tables *tables, struct parquet_table *table, bool lazy)
{
	if (!table->file && lazy)
		return;
	if (!table->file)
		table->file = file_of_columns(table, tables->share->packer);
	write_table(tables, table, parquet_file_end);
	parquet_file_free(table->file);
	table->file = NULL;
}

static void add_enums(struct parquet_tables *tables)
{
	struct nsys_table_layout layout = { .columns = nsys_enum_columns };
	struct parquet_table table = { 0 };

	for (size_t i = 0; i < n_nsys_enums; i++) {
		const struct nsys_enum_row *row = &nsys_enums[i];
		const struct cell cells[] = { CELL(row->id), CELL_TEXT(row->name),
			                      CELL_TEXT(row->label) };

		if (row->table) {
			end_table(tables, &table, true);
			layout.name = row->table;
			table = (struct parquet_table){ 0 };
			describe_table(&table, &layout);
		}
		write_cells(tables, &table, cells, ARRAY_SIZE(cells));
	}
	end_table(tables, &table, true);
}

static int tables_close(struct database *db, bool drop, struct err *err)
{
	struct parquet_tables *tables = (struct parquet_tables *)db;
	int code;

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		write_kept(tables, &tables->tables[i], drop);
		if (!drop)
			end_table(tables, &tables->tables[i], nsys_tables[i].lazy);
		parquet_file_free(tables->tables[i].file);
	}
	if (!drop)
		add_enums(tables);
	code = database_failed(db, err);
	share_leave(tables->share, tables);
	buf_free(&tables->safe);
	free(tables);
	return code;
}

static const struct database_ops tables_ops = {
	.row = tables_row,
	.bytes = tables_bytes,
	.close = tables_close,
};

struct database *parquet_tables_new(struct new_folder *folder, struct parquet_share *share)
{
	struct parquet_tables *tables = xcalloc(1, sizeof(*tables));

	database_init(&tables->db, &tables_ops);
	tables->folder = folder;
	tables->share = share;
	for (size_t i = 0; i < TABLE_COUNT; i++)
		describe_table(&tables->tables[i], &nsys_tables[i]);
	*VEC_ADD(share->all, share->n) = tables;
	return &tables->db;
}
