// SPDX-License-Identifier: MIT
#include "cli/option.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "cli/cli.h"

/* ---- scan ---------------------------------------------------------------------------------- */

/* Those of argp. */
static const struct option_row own_rows[] = {
	{ "help", '?', .help = "" },
	{ "usage", .help = "" },
	{ "version", 'V', .help = "" },
};
static const struct option_group scan_own = { OPTION_ROWS(own_rows) };

static void scan_collect(const struct option_group *group, struct scan_known *known)
{
	for (size_t i = 0; i < group->n_rows; i++) {
		if (!group->rows[i].name || known->count == SCAN_OPTIONS_MAX)
			continue;
		known->option[known->count] = &group->rows[i];
		known->name[known->count++] = group->rows[i].name;
	}
	for (const struct option_part *part = group->parts; part && part->group; part++)
		scan_collect(part->group, known);
}

void scan_known_of(const struct option_group *group, struct scan_known *known)
{
	scan_collect(group, known);
	scan_collect(&scan_own, known);
}

const struct option_row *scan_find_long(const struct scan_known *known, const char *name,
                                        size_t len)
{
	const struct option_row *found = NULL;
	size_t hits = 0;

	for (size_t i = 0; i < known->count; i++) {
		if (strncmp(known->name[i], name, len))
			continue;
		if (!known->name[i][len])
			return known->option[i];
		found = known->option[i];
		hits++;
	}
	return hits ? found : NULL; /* an ambiguous one is getopt's to complain about */
}

const struct option_row *scan_short_takes_next(const struct scan_known *known, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		for (size_t i = 0; i < known->count; i++) {
			if (known->option[i]->letter == *c && known->option[i]->value)
				return c[1] == '\0' ? known->option[i] : NULL;
		}
	}
	return NULL;
}

/* Names that --help does not show are not suggested either. */
static void scan_describe(const struct scan_known *known, const char *name, size_t len,
                          struct unknown_option *unknown)
{
	const char *shown[SCAN_OPTIONS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < known->count; i++)
		if (known->option[i]->help || known->option[i]->tell)
			shown[n++] = known->name[i];
	snprintf(unknown->typed, sizeof(unknown->typed), "%.*s", (int)len, name);
	unknown->near = suggest(unknown->typed, shown, n);
}

/* Whether an option has its value in the next word. */
static bool scan_takes_next(const struct scan_known *known, const char *word)
{
	const struct option_row *option;
	size_t len;

	if (word[1] != '-')
		return scan_short_takes_next(known, word) != NULL;
	len = strcspn(word + 2, "=");
	option = scan_find_long(known, word + 2, len);
	return option && option->value && !option->optional && !word[2 + len];
}

int scan_first_word(const struct option_group *group, int argc, char **argv)
{
	struct scan_known known = { .count = 0 };

	scan_known_of(group, &known);
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (argv[i][0] != '-' || !argv[i][1])
			return i;
		i += scan_takes_next(&known, argv[i]);
	}
	return argc;
}

bool scan_options(const struct option_group *group, int argc, char **argv, bool command,
                  struct unknown_option *unknown)
{
	static char help[] = "--help";
	struct scan_known known = { .count = 0 };

	scan_known_of(group, &known);
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		const char *name = argv[i] + 2;
		size_t len;

		if (argv[i][0] != '-' || !argv[i][1]) {
			if (command)
				return true;
			continue;
		}
		if (!strcmp(argv[i], "-h")) {
			argv[i] = help;
			continue;
		}
		len = strcspn(name, "=");
		if (argv[i][1] == '-' && !scan_find_long(&known, name, len)) {
			scan_describe(&known, name, len, unknown);
			return false;
		}
		i += scan_takes_next(&known, argv[i]);
	}
	return true;
}

/* ---- option -------------------------------------------------------------------------------- */

#define FIRST_KEY 1000 /* of options without a letter: the row's index on top */

/* A group as argp has it. */
struct option_parser {
	struct argp argp;
	struct argp_option *options;
	struct argp_child *children;
	struct option_parser *parts;
	size_t n_parts;
	const struct option_group *group;
	char *into;
};

/* ---- messages ------------------------------------------------------------------------------ */

void option_bad_value(const struct argp_state *state, const char *option, const char *value,
                      const char *is_no)
{
	fprintf(stderr, "%s: %s: '%s' is no %s\n", state->name, option, value, is_no);
	exit(EXIT_USAGE);
}

void option_bad_usage(const struct argp_state *state, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", state->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(EXIT_USAGE);
}

/* "auto, driver, runtime or both" */
static void option_add_words(struct buf *out, const char *const *words)
{
	for (size_t i = 0; words[i]; i++)
		buf_printf(out, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

static void option_add_bounds(struct buf *out, const struct option_row *row,
                              void (*add)(struct buf *out, uint64_t number))
{
	if (row->most == OPTION_ANY) {
		buf_puts(out, " from ");
		add(out, row->least);
		buf_puts(out, " on");
		return;
	}
	buf_puts(out, row->least ? " from " : " up to ");
	if (row->least) {
		add(out, row->least);
		buf_puts(out, " to ");
	}
	add(out, row->most);
}

static void option_add_number(struct buf *out, uint64_t number)
{
	buf_printf(out, "%lu", number);
}

/* "100ms", as it would be typed. */
static void option_add_time(struct buf *out, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {
		{ 3600000000000, "h" }, { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" }
	};
	size_t i = 0;

	while (i < 3 && ns % units[i].ns)
		i++;
	buf_printf(out, "%lu%s", ns / units[i].ns, units[i].unit);
}

static void option_refuse(const struct argp_state *state, const struct option_row *row,
                          const char *value)
{
	struct buf is_no = { 0 }, name = { 0 };

	if (row->words)
		buf_printf(&is_no, "%s (", row->is_no ? row->is_no : "choice");
	else if (row->is_no)
		buf_puts(&is_no, row->is_no);
	else if (row->kind == OPTION_TIME && row->most == OPTION_ANY)
		buf_puts(&is_no, "duration (10us, 1.5ms, 2s, 3m)");
	else
		buf_puts(&is_no, row->kind == OPTION_TIME ? "time" : "number");
	if (row->words) {
		option_add_words(&is_no, row->words);
		buf_putc(&is_no, ')');
	} else if (!row->is_no && (row->kind != OPTION_TIME || row->most != OPTION_ANY)) {
		option_add_bounds(&is_no, row,
		                  row->kind == OPTION_TIME ? option_add_time : option_add_number);
	}
	buf_printf(&name, "--%s", row->name);
	option_bad_value(state, name.data, value, is_no.data);
}

/* ---- values -------------------------------------------------------------------------------- */

static size_t option_count(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

/* The index of a word; their number where it is none. */
static size_t option_find(const char *const *words, const char *word)
{
	size_t i = 0;

	while (words[i] && strcmp(words[i], word))
		i++;
	return i;
}

static void option_bad_word(const struct argp_state *state, const struct option_row *row,
                            const char *word)
{
	const char *near = suggest(word, (const char **)row->words, option_count(row->words));
	struct buf known = { 0 };

	option_add_words(&known, row->words);
	if (near)
		option_bad_usage(state, "--%s: there is no %s '%s'; did you mean '%s'?", row->name,
		                 row->is_no, word, near);
	option_bad_usage(state, "--%s: there is no %s '%s' (%s)", row->name, row->is_no, word,
	                 known.data);
}

static uint32_t option_take_set(const struct argp_state *state, const struct option_row *row,
                                const char *list)
{
	char *copy = xstrdup(list), *rest = copy, *word;
	uint32_t set = 0;

	while ((word = strsep(&rest, ","))) {
		size_t i = option_find(row->words, word);

		if (!row->words[i])
			option_bad_word(state, row, word);
		set |= 1u << i;
	}
	free(copy);
	return set;
}

void option_add_text(const char ***texts, size_t *count, const char *text)
{
	*texts = vec_room(*texts, *count, sizeof(**texts));
	(*texts)[(*count)++] = text;
}

static bool option_take_number(const struct option_row *row, const char *value, uint64_t *to)
{
	uint64_t number;
	bool good = row->kind == OPTION_TIME    ? parse_duration_ns(value, &number)
	            : row->kind == OPTION_BYTES ? parse_bytes(value, &number)
	                                        : parse_number(value, row->most, &number);

	if (!good || number < row->least || number > row->most)
		return false;
	*to = number;
	return true;
}

static bool option_is_good_text(const struct option_row *row, const char *value)
{
	if (row->words)
		return row->words[option_find(row->words, value)];
	return !row->is_no || *value;
}

/* False: the value is none. */
static bool option_store(const struct argp_state *state, const struct option_row *row, char *into,
                         const char *value)
{
	void *at = into + row->at;

	switch (row->kind) {
	case OPTION_YES:
	case OPTION_NO:
		*(bool *)at = row->kind == OPTION_YES;
		return true;
	case OPTION_TEXT:
		if (value && !option_is_good_text(row, value))
			return false;
		*(const char **)at = value;
		return true;
	case OPTION_TEXTS:
		option_add_text(at, (size_t *)(into + row->with - 1), value);
		return true;
	case OPTION_NUMBER:
	case OPTION_TIME:
	case OPTION_BYTES:
		return option_take_number(row, value, at);
	case OPTION_WORD:
		*(unsigned *)at = (unsigned)option_find(row->words, value);
		return row->words[*(unsigned *)at];
	case OPTION_SET:
		*(uint32_t *)at |=
			value ? option_take_set(state, row, value) : (uint32_t)row->least;
		return true;
	case OPTION_TAKE:
		return row->take(state, at, value);
	case OPTION_REFUSED:
		option_bad_usage(state, "there is no option '--%s' here%s", row->name, row->is_no);
	}
	return false;
}

/* "--gpu kernels": the word would be taken for the command. A program of that name follows "--". */
static void option_check_next(const struct argp_state *state, const struct option_row *row)
{
	const char *word = state->argv[state->next];
	size_t length;

	for (size_t i = 0; word && row->words && row->words[i]; i++) {
		length = strlen(row->words[i]);
		if (strncmp(word, row->words[i], length) || (word[length] && word[length] != ','))
			continue;
		option_bad_usage(state, "--%s: its list follows '=': --%s=%.60s", row->name,
		                 row->name, word);
	}
}

static void option_take(const struct argp_state *state, const struct option_row *row, char *into,
                        const char *value)
{
	if (row->optional && !value)
		option_check_next(state, row);
	if (!option_store(state, row, into, value))
		option_refuse(state, row, value);
	if (row->with && row->kind != OPTION_TEXTS)
		*(bool *)(into + row->with - 1) = true;
}

/* ---- argp ---------------------------------------------------------------------------------- */

static const struct option_row *option_row_of(const struct option_group *group, int key)
{
	if (key >= FIRST_KEY && (size_t)(key - FIRST_KEY) < group->n_rows)
		return &group->rows[key - FIRST_KEY];
	for (size_t i = 0; key > 0 && i < group->n_rows; i++) {
		if (group->rows[i].letter == key)
			return &group->rows[i];
	}
	return NULL;
}

static error_t option_parse_key(int key, char *arg, struct argp_state *state)
{
	struct option_parser *parser = state->input;
	const struct option_group *group = parser->group;
	const struct option_row *row = option_row_of(group, key);

	if (row) {
		option_take(state, row, parser->into, arg);
		return 0;
	}
	switch (key) {
	case ARGP_KEY_INIT:
		for (size_t i = 0; i < parser->n_parts; i++)
			state->child_inputs[i] = &parser->parts[i];
		if (group->begin)
			group->begin(parser->into);
		return 0;
	case ARGP_KEY_ARG:
		return group->word && group->word(state, parser->into, arg) ? 0 : ARGP_ERR_UNKNOWN;
	case ARGP_KEY_ARGS:
		if (!group->words)
			return ARGP_ERR_UNKNOWN;
		group->words(parser->into, state->argv + state->next,
		             (size_t)(state->argc - state->next));
		return 0;
	case ARGP_KEY_END:
		if (group->end)
			group->end(state, parser->into);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static struct argp_option option_of_row(const struct option_row *row, size_t index)
{
	const bool hidden = !row->help && !row->tell;

	if (!row->name)
		return (struct argp_option){ .doc = row->title, .group = row->order };
	return (struct argp_option){
		.name = row->name,
		.key = row->letter ? row->letter : FIRST_KEY + (int)index,
		.arg = row->value,
		.flags = (row->optional ? OPTION_ARG_OPTIONAL : 0) | (hidden ? OPTION_HIDDEN : 0),
		.doc = row->tell ? row->tell() : row->help,
		.group = row->order,
	};
}

static void option_parser_begin(struct option_parser *parser, const struct option_group *group,
                                char *into)
{
	while (group->parts && group->parts[parser->n_parts].group)
		parser->n_parts++;
	parser->group = group;
	parser->into = into;
	parser->options = xcalloc(group->n_rows + 1, sizeof(*parser->options));
	parser->parts = xcalloc(parser->n_parts + 1, sizeof(*parser->parts));
	parser->children = xcalloc(parser->n_parts + 1, sizeof(*parser->children));
	for (size_t i = 0; i < group->n_rows; i++)
		parser->options[i] = option_of_row(&group->rows[i], i);
	for (size_t i = 0; i < parser->n_parts; i++) {
		option_parser_begin(&parser->parts[i], group->parts[i].group,
		                    into + group->parts[i].at);
		parser->children[i].argp = &parser->parts[i].argp;
	}
	parser->argp = (struct argp){ .options = parser->options,
		                      .parser = option_parse_key,
		                      .children = parser->children };
}

static void option_parser_end(struct option_parser *parser)
{
	for (size_t i = 0; i < parser->group->n_rows; i++) {
		if (parser->group->rows[i].tell)
			free((char *)parser->options[i].doc);
	}
	for (size_t i = 0; i < parser->n_parts; i++)
		option_parser_end(&parser->parts[i]);
	FREE_ALL(parser->options, parser->parts, parser->children);
}

static void option_refuse_unknown(const char *program, const struct unknown_option *unknown)
{
	fprintf(stderr, "%s: there is no option '--%s'", program, unknown->typed);
	if (unknown->near)
		fprintf(stderr, "; did you mean '--%s'?\n", unknown->near);
	else
		fprintf(stderr, "; see '%s --help'\n", program);
	exit(EXIT_USAGE);
}

void option_parse(const struct option_command *of, int argc, char **argv, bool command, void *into)
{
	struct option_parser parser = { .n_parts = 0 };
	struct unknown_option unknown;

	completion_answer(of);
	if (!scan_options(&of->group, argc, argv, command, &unknown))
		option_refuse_unknown(argv[0], &unknown);
	option_parser_begin(&parser, &of->group, into);
	parser.argp.args_doc = of->operands;
	parser.argp.doc = of->doc;
	argp_err_exit_status = EXIT_USAGE;
	if (argp_parse(&parser.argp, argc, argv, command ? ARGP_IN_ORDER : 0, NULL, &parser))
		exit(EXIT_USAGE);
	option_parser_end(&parser);
}
