// SPDX-License-Identifier: MIT
#include "cli/scan.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

static const struct argp_option own_options[] = { { "help", '?', 0, 0, 0, 0 },
	                                          { "usage", 1000, 0, 0, 0, 0 },
	                                          { "version", 'V', 0, 0, 0, 0 },
	                                          { 0 } };

static void collect(const struct argp_option *options, struct scan_known *known)
{
	for (; options && (options->name || options->key || options->doc); options++) {
		if (!options->name || known->count == SCAN_OPTIONS_MAX)
			continue;
		known->option[known->count] = options;
		known->name[known->count++] = options->name;
	}
}

static void collect_all(const struct argp *argp, struct scan_known *known)
{
	collect(argp->options, known);
	for (const struct argp_child *c = argp->children; c && c->argp; c++)
		collect_all(c->argp, known);
}

void scan_known_of(const struct argp *argp, struct scan_known *known)
{
	collect_all(argp, known);
	collect(own_options, known);
}

const struct argp_option *scan_find_long(const struct scan_known *known, const char *name,
                                         size_t len)
{
	const struct argp_option *found = NULL;
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

const struct argp_option *scan_short_takes_next(const struct scan_known *known, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		for (size_t i = 0; i < known->count; i++) {
			if (known->option[i]->key == *c && known->option[i]->arg)
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
		if (!(known->option[i]->flags & OPTION_HIDDEN))
			shown[n++] = known->name[i];
	snprintf(unknown->typed, sizeof(unknown->typed), "%.*s", (int)len, name);
	unknown->near = suggest(unknown->typed, shown, n);
}

bool scan_options(const struct argp *argp, int argc, char **argv, bool command,
                  struct unknown_option *unknown)
{
	static char help[] = "--help";
	struct scan_known known = { .count = 0 };

	scan_known_of(argp, &known);
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		const char *name = argv[i] + 2;
		const struct argp_option *option;
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
		if (option->arg && !name[len])
			i++;
	}
	return true;
}
