// SPDX-License-Identifier: MIT
#include "report/set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/work.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/secure_file.h"
#include "base/xalloc.h"
#include "report/reports.h"
#include "report/why.h"
#include "trace/event.h"

struct set_member {
	char *name;           /* as it was chosen: "cuda_gpu_kern_sum:base" */
	FILE *out;            /* a file in the folder, a temporary one, or the stream itself */
	struct new_file file; /* in the folder; `out` is its stream */
	struct table *table;
};

#define SET_COMMON 2

struct report_set {
	struct report_set_options options;
	struct set_member *members;
	struct consumer **consumers; /* of members, behind SET_COMMON places for what they share */
	size_t first;                /* of the consumers that are asked for */
	size_t n;
	struct work *work;    /* of all of them, */
	struct consumer *why; /* and what they share of the answer */
	struct lines lines;   /* to the common stream: what is no report's own */
};

/* ---- where a report goes ------------------------------------------------------------------- */

static int open_in_folder(const struct report_set *set, struct set_member *member, struct err *err)
{
	const struct new_file_options options = { .replace = set->options.replace,
		                                  .mode = set->options.mode };
	char *path = xasprintf("%s/%s%s", set->options.folder, member->name,
	                       table_form_ending(set->options.table.form));
	int rc;

	for (char *colon = strrchr(path, '/'); (colon = strchr(colon, ':'));)
		*colon = '_'; /* as nsys names its files */
	rc = new_file_open(&member->file, path, &options, err);
	member->out = member->file.out;
	free(path);
	return rc;
}

static int open_temporary(struct set_member *member, struct err *err)
{
	int fd = temporary_open(err);

	if (fd < 0)
		return fd;
	member->out = fdopen(fd, "w+");
	return 0;
}

static int open_member(const struct report_set *set, size_t i, struct err *err)
{
	struct set_member *member = &set->members[i];

	if (set->options.folder)
		return open_in_folder(set, member, err);
	if (set->n > 1)
		return open_temporary(member, err);
	member->out = set->options.table.out;
	return 0;
}

static int make_member(struct report_set *set, size_t i, const struct report_choice *choice,
                       struct err *err)
{
	struct set_member *member = &set->members[i];
	struct table_options table = set->options.table;
	struct report_options options = { .names = choice->names,
		                          .by_place = choice->by_place,
		                          .nested = set->options.nested,
		                          .stacks = set->options.stacks,
		                          .from_ns = set->options.from_ns,
		                          .to_ns = set->options.to_ns,
		                          .gap_ns = set->options.gap_ns,
		                          .work = set->work,
		                          .why = set->why,
		                          .part = set->options.part,
		                          .chosen = set->options.chosen };
	int rc;

	member->name = report_choice_name(choice);
	rc = open_member(set, i, err);
	if (rc)
		return rc;
	table.out = member->out;
	table.name = member->name;
	options.table = member->table = table_open(&table, choice->report->parts);
	set->consumers[SET_COMMON + i] = report_new(choice->report, &options);
	return 0;
}

/* Nobody needs to feed what none of the members asks for. */
static void add_common(struct report_set *set)
{
	set->first = SET_COMMON;
	if (why_is_shared(set->why))
		set->consumers[--set->first] = why_feeder(set->why);
	if (!set->options.work && work_is_shared(set->work))
		set->consumers[--set->first] = work_consumer(set->work);
}

int report_set_new(const struct report_choice *choices, size_t n,
                   const struct report_set_options *options, struct report_set **set,
                   struct err *err)
{
	struct report_set *s = xcalloc(1, sizeof(*s));
	int rc = 0;

	s->options = *options;
	s->members = xcalloc(n, sizeof(*s->members));
	s->consumers = xcalloc(n + SET_COMMON, sizeof(struct consumer *));
	s->work = options->work ? work_share(options->work) : work_new(WORK_BYTES);
	s->why = why_report_common(&options->table,
	                           &(struct report_options){ .from_ns = options->from_ns,
	                                                     .to_ns = options->to_ns,
	                                                     .part = options->part,
	                                                     .chosen = options->chosen });
	s->n = n;
	if (!options->folder)
		lines_init(&s->lines, options->table.out, "the report");
	for (size_t i = 0; i < n && !rc; i++)
		rc = make_member(s, i, &choices[i], err);
	add_common(s);
	*set = s;
	if (rc) {
		report_set_free(s);
		*set = NULL;
	}
	return rc;
}

void report_set_free(struct report_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n; i++) {
		struct set_member *member = &set->members[i];

		consumer_free(set->consumers[SET_COMMON + i]);
		table_close(member->table);
		if (member->file.out)
			new_file_drop(&member->file);
		else if (member->out && member->out != set->options.table.out)
			fclose(member->out);
		free(member->name);
	}
	work_free(set->work);
	consumer_free(set->why);
	lines_free(&set->lines);
	FREE_ALL(set->members, set->consumers, set);
}

struct consumer *const *report_set_consumers(const struct report_set *set, size_t *n)
{
	*n = SET_COMMON - set->first + set->n;
	return set->consumers + set->first;
}

struct consumer *report_set_why(const struct report_set *set)
{
	return set->why;
}

/* ---- printing ------------------------------------------------------------------------------ */

/* What stands before a report that is one of several. */
static void add_beginning(struct report_set *set, size_t i)
{
	struct buf *out = &set->lines.pending;

	if (table_form_is_json(set->options.table.form))
		buf_printf(out, "%s\"%s\": ", i ? ",\n" : "{\n", set->members[i].name);
	else if (i)
		buf_putc(out, '\n');
}

static int copy_member(struct report_set *set, size_t i, struct err *err)
{
	struct set_member *member = &set->members[i];
	bool json = table_form_is_json(set->options.table.form);
	char piece[1 << 16];
	size_t len;
	int rc = 0;

	add_beginning(set, i);
	rewind(member->out);
	while (!rc && (len = fread(piece, 1, sizeof(piece), member->out)) > 0) {
		if (json && len < sizeof(piece) && piece[len - 1] == '\n')
			len--; /* the end: a comma comes first, or a bracket */
		buf_add(&set->lines.pending, piece, len);
		rc = lines_added(&set->lines, err);
	}
	if (!rc && ferror(member->out))
		rc = err_set(err, EIO, "cannot read a temporary file back: %s", strerror(errno));
	return rc;
}

static int close_in_folder(struct set_member *member, struct err *err)
{
	member->out = NULL;
	return new_file_keep(&member->file, err);
}

int report_set_finish(struct report_set *set, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < set->n && !rc; i++) {
		struct set_member *member = &set->members[i];

		rc = table_finish(member->table, err);
		if (!rc && set->options.folder)
			rc = close_in_folder(member, err);
		else if (!rc && set->n > 1)
			rc = copy_member(set, i, err);
	}
	if (rc || set->options.folder || set->n < 2)
		return rc;
	if (table_form_is_json(set->options.table.form))
		buf_puts(&set->lines.pending, "\n}\n");
	return lines_flush(&set->lines, err);
}
