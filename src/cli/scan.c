// SPDX-License-Identifier: MIT
#include "cli/scan.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

/* Those of argp. */
static const struct option_row own_rows[] = {
	{ "help", '?', .help = "" },
	{ "usage", .help = "" },
	{ "version", 'V', .help = "" },
};
static const struct option_group own = { OPTION_ROWS(own_rows) };

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
	scan_collect(&own, known);
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
static void describe(const struct scan_known *known, const char *name, size_t len,
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

bool scan_options(const struct option_group *group, int argc, char **argv, bool command,
                  struct unknown_option *unknown)
{
	static char help[] = "--help";
	struct scan_known known = { .count = 0 };

	scan_known_of(group, &known);
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		const char *name = argv[i] + 2;
		const struct option_row *option;
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
		if (argv[i][1] != '-') {
			i += scan_short_takes_next(&known, argv[i]) != NULL;
			continue;
		}
		len = strcspn(name, "=");
		option = scan_find_long(&known, name, len);
		if (!option) {
			describe(&known, name, len, unknown);
			return false;
		}
		if (option->value && !option->optional && !name[len])
			i++;
	}
	return true;
}
