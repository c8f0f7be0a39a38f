// SPDX-License-Identifier: MIT
/*
 * What a user may type: lines as the words of a command line, and each as the value of every kind
 * of option. Of the words, getopt_long must say the same as the scan does: it is what runs next.
 */
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/option.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

#define WORDS_MAX   64
#define OPTIONS_MAX 64

/* ---- a command's options ------------------------------------------------------------------- */

static const struct option_row rows[] = { { "output", 'o', "FILE", "" },
	                                  { "verbose", 'v', .help = "" },
	                                  { "duration", 0, "TIME", "" } };
static const struct option_part parts[] = {
	{ &cli_process_options, 0 }, { &cli_start_options, 0 }, { &cli_selection_options, 0 }, { 0 }
};
static const struct option_group group = { OPTION_ROWS(rows), .parts = parts };

/* The same for getopt_long. */
static struct option long_options[OPTIONS_MAX];
static char short_options[2 * OPTIONS_MAX] = "+";
static size_t n_options;

static void add(const char *name, int key, int takes_value)
{
	char letter[] = { (char)key, takes_value ? ':' : '\0', '\0' };

	CHECK(n_options < OPTIONS_MAX - 1);
	long_options[n_options++] =
		(struct option){ .name = name, .has_arg = takes_value, .val = key };
	if (key > ' ' && key < 127 && key != '?')
		strcat(short_options, letter);
}

static void add_all(const struct option_group *of)
{
	for (const struct option_row *row = of->rows; row < of->rows + of->n_rows; row++) {
		if (row->name)
			add(row->name, row->letter ? row->letter : 3000,
			    !row->value     ? no_argument
			    : row->optional ? optional_argument
			                    : required_argument);
	}
	for (const struct option_part *part = of->parts; part && part->group; part++)
		add_all(part->group);
}

static void add_options(void)
{
	add_all(&group);
	add("help", '?', false);
	add("usage", 1000, false);
	add("version", 'V', false);
}

/* ---- the scan ------------------------------------------------------------------------------ */

static bool begins_an_option(const char *name, size_t len)
{
	for (size_t i = 0; i < n_options; i++) {
		if (!strncmp(long_options[i].name, name, len))
			return true;
	}
	return false;
}

enum verdict { GOOD, UNKNOWN, OTHERWISE_WRONG };

/* What getopt_long finds wrong first. It sorts the words that it is given. */
static enum verdict ask_getopt(int argc, char *const *argv, bool command)
{
	char *words[WORDS_MAX + 1];
	int key;

	memcpy(words, argv, (argc + 1) * sizeof(*argv));
	optind = 0; /* begin anew */
	opterr = 0;
	while ((key = getopt_long(argc, words, short_options + !command, long_options, NULL)) !=
	       -1) {
		const char *word = words[optind - 1];

		if (key != '?' || (optopt == '?' && !strncmp(word, "--", 2)))
			continue; /* "--help" has the key '?' as well */
		if (optopt == 0 && !begins_an_option(word + 2, strcspn(word + 2, "=")))
			return UNKNOWN;
		return OTHERWISE_WRONG;
	}
	return GOOD;
}

static void scan(int argc, char *const *argv, bool command)
{
	struct unknown_option unknown = { .near = NULL };
	enum verdict verdict = ask_getopt(argc, argv, command);

	if (scan_options(&group, argc, argv, command, &unknown)) {
		CHECK(verdict != UNKNOWN);
		return;
	}
	CHECK(verdict != GOOD);
	CHECK(memchr(unknown.typed, '\0', sizeof(unknown.typed)));
	CHECK(!unknown.near || begins_an_option(unknown.near, strlen(unknown.near) + 1));
}

/* ---- values -------------------------------------------------------------------------------- */

static void parse_value(const char *word)
{
	double percent = 1;
	uint64_t value = 0;
	size_t count = 0;
	int *pids = NULL;

	parse_duration_ns(word, &value);
	CHECK(value <= 9000000000000000000);
	parse_bytes(word, &value);
	CHECK(value <= 9000000000000000000);
	CHECK(!parse_number(word, 1000, &value) || value <= 1000);
	parse_percent(word, &percent);
	CHECK(percent > 0 && percent <= 10000);
	CHECK(parse_pids(word, &pids, &count) ? count > 0 : count == 0);
	for (size_t i = 0; i < count; i++)
		CHECK(pids[i] > 0);
	free(pids);
}

static void choose(const char *word)
{
	const char *near = suggest(word, (const char **)api_class_names, CLASS_COUNT);
	int cls = 0;

	while (cls < CLASS_COUNT && strcmp(word, api_class_names[cls]))
		cls++;
	CHECK(cls == CLASS_COUNT || !strcmp(near, api_class_names[cls]));
	selection_matches(word, "cuMemcpyHtoD_v2_ptds");
	selection_matches("cuMemcpy*", word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text, *rest, *word, *words[WORDS_MAX + 1] = { "cuscope" };
	int count = 1;

	if (!n_options)
		add_options();
	if (!size)
		return 0;
	text = rest = malloc(size); /* of just this size, for AddressSanitizer */
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	while (count < WORDS_MAX && (word = strsep(&rest, "\n")))
		words[count++] = word;
	words[count] = NULL;
	for (int i = 1; i < count; i++) {
		parse_value(words[i]);
		choose(words[i]);
	}
	scan(count, words, data[0] & 1);
	free(text);
	return 0;
}
