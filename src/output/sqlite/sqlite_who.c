// SPDX-License-Identifier: MIT
/* Who processes are: a table of cuscope's own, with a column for each word that there is. */
#include "output/sqlite/sqlite.h"

static void add_own_words(struct database *db, const struct run_identity *identity)
{
	struct buf text = { 0 };

	for (int i = 0; i < RUN_IDENTITY_WORDS; i++) {
		if (identity->words[i] && identity->own_word >> i & 1)
			buf_printf(&text, "%s%s", text.len ? "," : "", run_identity_name(i));
	}
	row_text(db, text.data);
	buf_free(&text);
}

void sqlite_add_who(struct sqlite *sqlite, const struct run_info *run)
{
	struct database *db = sqlite->db;
	const struct run_identity *identity;
	size_t at = 0;

	while ((identity = who_next(&sqlite->who, run, &at))) {
		row_begin(db, TABLE_WHO);
		row_int(db, MACHINE | (int64_t)(identity->pid & LOW_24) << PID_SHIFT);
		row_int(db, identity->pid);
		row_int(db, since_begin(sqlite, identity->since_ns));
		for (int i = 0; i < RUN_IDENTITY_WORDS; i++)
			row_text(db, identity->words[i]);
		add_own_words(db, identity);
		row_end(db);
	}
}
