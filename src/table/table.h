/* SPDX-License-Identifier: MIT */
/*
 * Writing tables. One description of the columns serves all forms:
 *
 *   table  for people: aligned, durations and sizes with units, a title above and notes below
 *   csv    RFC 4180: numbers as they are, their unit in the heading, "Total Time (ns)"
 *   json   an array of objects with those headings as keys, numbers as numbers, null for unknown
 *
 *   html   a list of tables in JSON, each with its columns, their types, its rows and its notes
 *
 *   page   a part of a text, or of an object of json whose members have short keys, "total_ns"
 *
 * Rows are written as they come, or in an order (table_in_order). The first ones decide how wide
 * the columns of the text are, so a table of any length needs no memory.
 *
 *     static const struct table_column columns[] = {
 *             { "Calls", TABLE_NUMBER, TABLE_AT(struct function_row, calls) },
 *             { "Share", TABLE_PERCENT },
 *             { "Name", TABLE_TEXT, TABLE_AT(struct function_row, name) },
 *     };
 *
 *     table_begin(table, NULL, "CUDA API calls", TABLE_COLUMNS(columns));
 *     table_fields(table, row);     the cells up to the next column that is at no place of a row
 *     table_real(table, 12.5);      a cell by hand
 *     table_row(table, row);        the others, and the row's end
 *     table_end(table);
 *
 * A failure to write is kept: nothing more is written then, and table_end() returns it. Who writes
 * rows as long as events come asks table_failed().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/each.h"
#include "base/err.h"
#include "base/json.h"

enum table_form {
	TABLE_FORM_TEXT,
	TABLE_FORM_CSV,
	TABLE_FORM_JSON,
	TABLE_FORM_HTML, /* for the script of a page (src/page): no user's choice */
	TABLE_FORM_COUNT
};

extern const char *const table_form_names[];         /* "table", "csv", "json", NULL */
const char *table_form_ending(enum table_form form); /* ".txt", ".csv", ".json" */

/* What is no table is an object of JSON then. */
static inline bool table_form_is_json(enum table_form form)
{
	return form == TABLE_FORM_JSON || form == TABLE_FORM_HTML;
}

enum table_type {
	TABLE_TEXT,   /* a name where it is the last column: what is in brackets gives way first */
	TABLE_WORDS,  /* text whose end gives way */
	TABLE_FIGURE, /* text that stands right, as numbers do: "20000+" */
	TABLE_NUMBER, /* a count, an id */
	TABLE_DURATION, /* ns */
	TABLE_TIME,     /* ns since the trace's begin */
	TABLE_BYTES,
	TABLE_RATE,    /* bytes a second */
	TABLE_MB,      /* bytes, as nsys shows them: in millions */
	TABLE_MB_RATE, /* bytes a second, the same */
	TABLE_PERCENT,
	TABLE_CHANGE, /* percent, with its sign */
	TABLE_REAL,   /* anything else */
	TABLE_TRIPLE, /* grid and block sizes */
	TABLE_TYPES,
};

/* What stands at a place of a row. */
enum table_field {
	FIELD_NONE, /* the cell is written by hand */
	FIELD_U64,
	FIELD_U32,
	FIELD_S64,
	FIELD_S32,
	FIELD_REAL,
	FIELD_BOOL,
	FIELD_TEXT,
	FIELD_CHARS,
	FIELD_BUF,
	FIELD_TRIPLE,
};

/* A number that is not known; of real ones NAN, of texts NULL. */
#define TABLE_NOT_KNOWN UINT64_MAX

enum {
	TABLE_SCALED = 1,   /* by options->scale where that is above 1, with a ~ in the text */
	TABLE_EXACT = 2,    /* not known where counts are scaled: ? in the text */
	TABLE_ZERO = 4,     /* 0: not known */
	TABLE_NO_ZERO = 32, /* the text has - for 0 */
	/* in a page's json: */
	TABLE_ABSENT = 8, /* no member where it is not known; else null */
	TABLE_MEMBER = 16 /* of the first column: rows are members of an object with this as key */
};

/* A static row of a description. */
struct table_column {
	const char *name; /* NULL: a page's json has it alone */
	enum table_type type;
	enum table_field field;
	unsigned offset;
	unsigned via; /* a pointer to what the offset is in, and 1; 0: it is in the row itself */
	/* For pages: */
	const char *key;        /* "total_ns"; "freed.count" and "freed.bytes" are one object; */
				/* NULL: the text has it alone */
	unsigned char flags;    /* TABLE_SCALED... */
	unsigned char decimals; /* of a real number; of a whole one in json, which has as many */
	unsigned needs;         /* bits of options->has without which a page has no such column */
};

/* Of a pointer to it. */
#define TABLE_FIELD_OF(pointer)                                                                    \
	_Generic(pointer, const uint64_t *: FIELD_U64, const uint32_t *: FIELD_U32,                \
	         const int64_t *: FIELD_S64, const int32_t *: FIELD_S32,                           \
	         const double *: FIELD_REAL, const bool *: FIELD_BOOL,                             \
	         char *const *: FIELD_TEXT, const char *const *: FIELD_TEXT,                       \
	         const char (*)[16]: FIELD_CHARS, const struct buf *: FIELD_BUF,                   \
	         const uint32_t (*)[3]: FIELD_TRIPLE)

/* The place of a column: `member` of `row`, a struct. */
#define TABLE_AT(row, member) TABLE_FIELD_OF(&((const row *)0)->member), offsetof(row, member), 0

/* `member` of the struct that a pointer of the row leads to; NULL: it is not known. */
#define TABLE_VIA(row, pointer, member)                                                            \
	TABLE_FIELD_OF((const __typeof__(((row *)0)->pointer->member) *)0),                        \
		offsetof(__typeof__(*((row *)0)->pointer), member), offsetof(row, pointer) + 1

/* A column that a page's json has alone: its place, and its key. */
#define TABLE_JSON(place, key) NULL, TABLE_NUMBER, place, key

/* An array of them, and how many they are. */
#define TABLE_COLUMNS(columns) columns, ARRAY_SIZE(columns)

struct table_options {
	enum table_form form;
	FILE *out;    /* not closed */
	size_t width; /* text: columns of the terminal, to which the last column is cut; 0: not */
	bool color;   /* text: titles in bold */
	size_t top;   /* rows of a table at most, the rest is counted in a note; 0: all */
	const char
		*sort; /* "Total Time", "calls:asc": the column by which rows are put in order, */
	/* of tables that have it; NULL: as the report says. Kept, not copied */
	/* csv and json have no place for notes: they are told here instead. May be NULL. */
	void (*note)(void *data, const char *name, const char *text);
	void *data;
	const char *name; /* passed to note(), kept */
	/*
	 * Pages: one of the two is set, `form` and `out` are not. The text leaves out a table
	 * without rows, and those beyond `top`; the json has all.
	 */
	struct buf *page;  /* the text so far; stays the caller's */
	struct json *json; /* its object that is open */
	unsigned has;      /* see table_column.needs */
	double scale;      /* above 1: counts are of a part of the time */
};

struct table;

/* `parts`: several tables will be written. In json they are then members of one object. */
struct table *table_open(const struct table_options *options, bool parts);
void table_close(struct table *table);
const struct table_options *table_options(const struct table *table);

/*
 * `key` names the table among the parts (json only; "gaps"), `title` stands above it in the text.
 * The columns' names are kept, not copied. At most 40 columns.
 */
void table_begin(struct table *table, const char *key, const char *title,
                 const struct table_column *columns, size_t n);

/* Whether counts from now on are as they were seen, whatever `scale` of the options says. */
void table_as_seen(struct table *table, bool as_seen);

/* The table that is open is shown whole, whatever `top` says. */
void table_whole(struct table *table);

/*
 * Of the rows of reports: `has` as in the options, where what a column needs and is not there is
 * not known, and the begin that times of TABLE_TIME count from.
 */
void table_of_run(struct table *table, unsigned has, uint64_t begin_ns);

/* Its last column is cut, as a terminal of that width would do it; a real one has its own width. */
void table_fit(struct table *table, size_t width);

/*
 * From a struct that the columns tell of: the cells up to the next column without a place in it,
 * and, table_row(), the end of the row.
 */
void table_fields(struct table *table, const void *row);
void table_row(struct table *table, const void *row);

/* What stands at a column's place, as a number; NAN: it is not known, or none. */
double table_number_at(const struct table_column *column, const void *row);

/* A whole table of rows that lie one behind the other. */
void table_rows(struct table *table, const void *rows, size_t n, size_t row_bytes);

/* In a page's json: members of the object that is open, without a table. In a text nothing. */
void table_members(struct table *table, const struct table_column *columns, size_t n,
                   const void *row);

/*
 * One cell each, also for columns that the form at hand does not have. What a type cannot show is
 * the caller's mistake.
 */
void table_u64(struct table *table, uint64_t value);
void table_s64(struct table *table, int64_t value);
void table_difference(struct table *table, int64_t value); /* the text shows a + */
void table_real(struct table *table, double value);
void table_share(struct table *table, uint64_t part, uint64_t whole); /* percent */
void table_text(struct table *table, const char *text);               /* NULL: unknown */
void table_triple(struct table *table, const uint32_t value[3]);
void table_unknown(struct table *table);
void table_known(struct table *table, bool known, uint64_t value); /* or table_unknown() */
void table_bool(struct table *table, bool value);                  /* the text: yes, no */

/* Several, each by the type of its value: a real number, a text, TABLE_IF; all others are u64. */
#define TABLE_CELLS(table, ...) (EACH(TABLE_CELL, table, __VA_ARGS__)(void) 0)
#define TABLE_CELL(table, value)                                                                   \
	_Generic((value), double: table_real, char *: table_text, const char *: table_text,        \
	         struct table_maybe: table_maybe, default: table_u64)(table, value),
#define TABLE_IF(known, value) ((struct table_maybe){ known, (known) ? (value) : 0 })
#define TABLE_UNKNOWN          TABLE_IF(false, 0)
/* And the row's end. */
#define TABLE_LAST(table, ...) (EACH(TABLE_CELL, table, __VA_ARGS__) table_end_row(table))

struct table_maybe {
	bool known;
	uint64_t value;
};

void table_maybe(struct table *table, struct table_maybe cell);

/*
 * The next cell alone is of another type than its column: for tables whose rows are of different
 * kinds. Only the text shows it; csv and json have the number as it is.
 */
void table_as(struct table *table, enum table_type type);

/* A row that has other cells than the table has columns is a failure, and is not written. */
void table_end_row(struct table *table);

/*
 * After table_begin(): rows are written at the end, in the order of their keys, the smallest
 * first, and those with the same key as they came. table_key() comes before table_end_row().
 * Memory is bounded, however many rows there are: what does not fit goes to a temporary file.
 */
void table_in_order(struct table *table); /* but options->sort is stronger */
void table_key(struct table *table, uint64_t key);

/*
 * A text between the tables: whole lines, as they are, below its title. csv has them as the rows of
 * one column, json what `add` makes with the key.
 */
struct table_passage {
	const char *key, *title;
	const char *column; /* csv */
	const char *lines;
	void (*add)(const void *data, struct json *json, const char *key);
	const void *data;
};

int table_passage(struct table *table, const struct table_passage *passage, struct err *err);

/* A sentence below the table that is open or will be next. */
void table_note(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same where something is so. What the sentence is made of has to be there in any case. */
void table_note_if(struct table *table, bool is, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* 0, or the failure so far: no row will be written any more. */
int table_failed(const struct table *table, struct err *err);

/* 0 or a negative errno. */
int table_end(struct table *table, struct err *err);

/* After the last table: closes what is open in json. 0 or a negative errno. */
int table_finish(struct table *table, struct err *err);
