// SPDX-License-Identifier: MIT
#include "node/config.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "base/xalloc.h"
#include "base/secure_file.h"

#define KEYS_MOST 256
#define LINE_MOST 190 /* libinih's own limit is 199, and it would cut without a word */

static void *field(struct node_settings *settings, const struct config_row *row)
{
	return (char *)settings + row->offset;
}

/* ---- values -------------------------------------------------------------------------------- */

static void list_free(struct config_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->words[i]);
	list->n = 0;
}

static void row_free(struct node_settings *settings, const struct config_row *row)
{
	if (row->type == CONFIG_TEXT)
		free(*(char **)field(settings, row));
	if (row->type == CONFIG_LIST)
		list_free(field(settings, row));
}

static bool set_list(const struct config_row *row, const char *value, struct config_list *list,
                     const char **why)
{
	struct config_list words = { 0 };
	char *copy = xstrdup(value), *rest = copy, *word;

	*why = NULL;
	while (!*why && (word = strsep(&rest, ","))) {
		word += strspn(word, " \t");
		word[strcspn(word, " \t")] = '\0';
		if (!*word && !rest && !words.n)
			break; /* an empty list */
		if (words.n >= row->most || words.n >= CONFIG_LIST_MOST)
			*why = "has too many words";
		else if (row->wrong)
			*why = row->wrong(word);
		if (!*why)
			words.words[words.n++] = xstrdup(word);
	}
	free(copy);
	list_free(*why ? &words : list);
	if (!*why)
		*list = words;
	return !*why;
}

static bool set_word(const struct config_row *row, const char *value, unsigned *word)
{
	for (unsigned i = 0; row->words[i]; i++) {
		if (strcmp(row->words[i], value))
			continue;
		*word = i;
		return true;
	}
	return false;
}

static bool set_number(const struct config_row *row, const char *value, uint64_t *number)
{
	uint64_t parsed;
	bool is = row->type == CONFIG_NUMBER     ? parse_number(value, row->most, &parsed)
	          : row->type == CONFIG_DURATION ? parse_duration_ns(value, &parsed)
	                                         : parse_bytes(value, &parsed);

	if (!is || parsed < row->least || parsed > row->most || (row->wrong && row->wrong(value)))
		return false;
	*number = parsed;
	return true;
}

static bool set_flag(const char *value, bool *flag)
{
	bool yes = !strcmp(value, "yes"), no = !strcmp(value, "no");

	if (yes || no)
		*flag = yes;
	return yes || no;
}

static bool set_text(const struct config_row *row, const char *value, char **text, const char **why)
{
	if (strlen(value) > row->most)
		*why = "is too long";
	else if (row->wrong)
		*why = row->wrong(value);
	if (*why)
		return false;
	free(*text);
	*text = xstrdup(value);
	return true;
}

/* False: `why` says what is wrong, or is NULL where the row's own sentence does. */
static bool set_value(struct node_settings *settings, const struct config_row *row,
                      const char *value, const char **why)
{
	void *at = field(settings, row);

	*why = NULL;
	switch (row->type) {
	case CONFIG_TEXT:
		return set_text(row, value, at, why);
	case CONFIG_LIST:
		return set_list(row, value, at, why);
	case CONFIG_WORD:
		return set_word(row, value, at);
	case CONFIG_FLAG:
		return set_flag(value, at);
	case CONFIG_NUMBER:
	case CONFIG_DURATION:
	case CONFIG_BYTES:
		return set_number(row, value, at);
	}
	return false;
}

/* ---- all of them --------------------------------------------------------------------------- */

static void each_row(struct node_settings *settings,
                     void (*each)(struct node_settings *settings, const struct config_row *row))
{
	for (size_t i = 0; config_tables[i]; i++)
		for (size_t j = 0; j < config_tables[i]->n; j++)
			each(settings, &config_tables[i]->rows[j]);
}

static void set_first(struct node_settings *settings, const struct config_row *row)
{
	const char *why;

	if (row->type == CONFIG_TEXT) /* also one that no check would let pass */
		*(char **)field(settings, row) = xstrdup(row->first);
	else
		set_value(settings, row, row->first, &why);
}

void config_begin(struct node_settings *settings)
{
	memset(settings, 0, sizeof(*settings));
	each_row(settings, set_first);
}

void config_end(struct node_settings *settings)
{
	each_row(settings, row_free);
	memset(settings, 0, sizeof(*settings));
}

static void copy_owned(struct node_settings *settings, const struct config_row *row)
{
	struct config_list *list = field(settings, row);
	char **text = field(settings, row);

	if (row->type == CONFIG_TEXT)
		*text = xstrdup(*text);
	for (size_t i = 0; row->type == CONFIG_LIST && i < list->n; i++)
		list->words[i] = xstrdup(list->words[i]);
}

void settings_copy(struct node_settings *into, const struct node_settings *from)
{
	*into = *from;
	each_row(into, copy_owned);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static const struct config_table *find_table(const char *section)
{
	for (size_t i = 0; config_tables[i]; i++) {
		if (!strcmp(config_tables[i]->section, section))
			return config_tables[i];
	}
	return NULL;
}

static const struct config_row *find_row(const struct config_table *table, const char *key)
{
	for (size_t i = 0; i < table->n; i++) {
		if (!strcmp(table->rows[i].key, key))
			return &table->rows[i];
	}
	return NULL;
}

static void add_name(struct buf *list, const char *name, const char **names, size_t *n)
{
	buf_printf(list, "%s%s", *n ? ", " : "", name);
	if (*n < KEYS_MOST)
		names[(*n)++] = name;
}

static int no_such(const char *what, const char *typed, struct buf *allowed, const char **names,
                   size_t n, struct err *err)
{
	const char *near = suggest(typed, names, n);
	int r = err_set(err, EINVAL, "there is no %s '%s' (%s)%s%s%s", what, typed, allowed->data,
	                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");

	buf_free(allowed);
	return r;
}

static int no_section(const char *section, struct err *err)
{
	const char *names[KEYS_MOST];
	struct buf allowed = { 0 };
	size_t n = 0;

	for (size_t i = 0; config_tables[i]; i++)
		add_name(&allowed, config_tables[i]->section, names, &n);
	return no_such("section", section, &allowed, names, n, err);
}

static int no_key(const struct config_table *table, const char *key, struct err *err)
{
	const char *names[KEYS_MOST];
	struct buf allowed = { 0 }, what = { 0 };
	size_t n = 0;
	int r;

	for (size_t i = 0; i < table->n; i++)
		add_name(&allowed, table->rows[i].key, names, &n);
	buf_printf(&what, "key of [%s]", table->section);
	r = no_such(what.data, key, &allowed, names, n, err);
	buf_free(&what);
	return r;
}

static int set_row(struct node_settings *settings, const struct config_row *row, const char *value,
                   struct err *err)
{
	const char *why;

	if (set_value(settings, row, value, &why))
		return 0;
	return err_set(err, EINVAL, "%s = %.64s%s%s: %s", row->key, value, why ? " " : "",
	               why ? why : "", row->help);
}

int config_set(struct node_settings *settings, const char *section, const char *key,
               const char *value, struct err *err)
{
	const struct config_table *table = find_table(section);
	const struct config_row *row = table ? find_row(table, key) : NULL;

	return row ? set_row(settings, row, value, err) : err_set(err, EINVAL, "no such key");
}

/* ---- files --------------------------------------------------------------------------------- */

struct reading {
	struct node_settings *settings;
	const struct config_row *seen[KEYS_MOST];
	size_t n_seen;
	bool failed;
	struct err err;
};

static int take_key(struct reading *reading, const char *section, const char *key,
                    const char *value)
{
	const struct config_table *table = find_table(section);
	const struct config_row *row;

	if (!*section)
		return err_set(&reading->err, EINVAL,
		               "'%s' stands before the first section, such as [agent]", key);
	if (!table)
		return no_section(section, &reading->err);
	row = find_row(table, key);
	if (!row)
		return no_key(table, key, &reading->err);
	for (size_t i = 0; i < reading->n_seen; i++) {
		if (reading->seen[i] == row)
			return err_set(&reading->err, EINVAL, "%s of [%s] is there twice", key,
			               section);
	}
	if (reading->n_seen < KEYS_MOST)
		reading->seen[reading->n_seen++] = row;
	return set_row(reading->settings, row, value, &reading->err);
}

/* libinih knows the line of the first that fails, so only that one is told. */
static int on_key(void *data, const char *section, const char *key, const char *value)
{
	struct reading *reading = data;

	if (!reading->failed && take_key(reading, section, key, value ? value : ""))
		reading->failed = true;
	return !reading->failed;
}

/* What libinih would read otherwise than it looks. */
static int check_lines(const char *path, const char *text, struct err *err)
{
	unsigned number = 1;

	for (const char *line = text; *line; number++) {
		size_t bytes = strcspn(line, "\n");

		if (bytes > LINE_MOST)
			return err_set(err, EINVAL, "%s:%u: the line is longer than %d bytes", path,
			               number, LINE_MOST);
		if ((*line == ' ' || *line == '\t') && line[strspn(line, " \t\r")] != '\n')
			return err_set(err, EINVAL,
			               "%s:%u: the line begins with a blank; a value has one line",
			               path, number);
		line += bytes + (line[bytes] == '\n');
	}
	return 0;
}

int config_read_text(struct node_settings *settings, const char *path, const char *text,
                     struct err *err)
{
	struct node_settings now;
	struct reading reading = { .settings = &now };
	int line;

	if (check_lines(path, text, err))
		return err->code;
	settings_copy(&now, settings);
	line = ini_parse_string(text, on_key, &reading);
	if (!line) {
		config_end(settings);
		*settings = now;
		return 0;
	}
	config_end(&now);
	return err_set(err, EINVAL, "%s:%d: %s", path, line,
	               reading.failed ? reading.err.text
	                              : "is no '[section]', 'key = value' or '; comment'");
}

int config_read_file(struct node_settings *settings, const char *path, struct err *err)
{
	AT_END(buf_free) struct buf text = { 0 };
	int r = secure_file_read(path, SECURE_FILE_PUBLIC, &text, err);

	if (!r && strlen(text.data) != text.len)
		r = err_set(err, EINVAL, "%s has a byte 0 in it: it is no text", path);
	if (!r)
		r = config_read_text(settings, path, text.data, err);
	return r;
}

void config_write_example(struct buf *out)
{
	for (size_t i = 0; config_tables[i]; i++) {
		const struct config_table *table = config_tables[i];

		buf_printf(out, "%s[%s]\n", i ? "\n" : "", table->section);
		for (size_t j = 0; j < table->n; j++)
			buf_printf(out, "; %s\n; %s = %s\n", table->rows[j].help,
			           table->rows[j].key, table->rows[j].first);
	}
}
