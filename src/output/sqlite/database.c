// SPDX-License-Identifier: MIT
#include "output/sqlite/database.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"

#define REMEMBERED_MOST (16u << 20) /* bytes of texts, with what each takes beside */

struct string {
	int64_t id;
	UT_hash_handle hh;
	char text[];
};

void database_init(struct database *db, const struct database_ops *ops)
{
	db->ops = ops;
	db->next_string = 1;
}

int database_failed(const struct database *db, struct err *err)
{
	if (db->failure.code && err)
		*err = db->failure;
	return db->failure.code;
}

uint64_t database_bytes(struct database *db)
{
	return db->ops->bytes(db);
}

int database_close(struct database *db, bool drop, struct err *err)
{
	MAP_FREE(db->strings, free);
	return db->ops->close(db, drop, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

int64_t database_row(struct database *db, enum nsys_table table, const struct cell *cells, int n)
{
	if (db->failure.code)
		return 0;
	db->ops->row(db, table, cells, n);
	return ++db->rows[table];
}

static int64_t write_string(struct database *db, const char *text)
{
	int64_t id = db->next_string++;

	ROW(db, TABLE_STRING, CELL(id), CELL_SAFE(text));
	return id;
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
	struct string *string = MAP_FIND_BYTES(db->strings, text, len);

	return string ? string->id : add_string(db, text, len);
}

int64_t database_text(struct database *db, const char *text)
{
	size_t len = strlen(text);
	struct string *string = MAP_FIND_BYTES(db->strings, text, len);

	if (string)
		return string->id;
	return db->remembered < REMEMBERED_MOST ? add_string(db, text, len)
	                                        : write_string(db, text);
}
