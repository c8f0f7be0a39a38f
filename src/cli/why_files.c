// SPDX-License-Identifier: MIT
/* Recordings that `why` is given: which are told together, and the answers of each. */
#include "cli/why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/xalloc.h"
#include "cli/cli.h"
#include "trace/together.h"

/* A recording that was named. */
struct why_file {
	const char *path;
	size_t group;
	bool failed; /* it is in none */
};

struct why_files {
	const struct why_options *form;
	struct why_file *files;
	size_t n;
	struct together *groups;
	size_t n_groups;
	bool said; /* some answer was given */
	int status;
};

static void files_failed(struct why_files *all, const struct err *err)
{
	cli_say_failure(err);
	all->status = EXIT_FAILURE;
}

static int file_open(const char *path, struct trace_file **file, struct err *err)
{
	int rc = trace_open(path, file, err);

	if (rc == -EINVAL && !access(path, X_OK))
		return err_set(err, EINVAL, "%s is no recording: to start it, put -- before it",
		               path);
	return rc;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Why it is not in the account of those before. */
static void files_say_apart(const struct why_files *all, const char *path, enum together_how how)
{
	static const char *const why[] = {
		[TOGETHER_NO_CLOCK] = "which clock its times are of was not recorded",
		[TOGETHER_OTHER_CLOCK] =
			"its times are of another clock, of another machine or another start of it",
		[TOGETHER_OTHER_TIME] = "it was recorded at another time",
		[TOGETHER_TOO_MANY] = "there are more than are told together",
	};

	cli_say("%s is told apart from %s: %s", path, all->files[0].path, why[how]);
}

static void files_add(struct why_files *all, const char *path, const struct run_info *run)
{
	enum together_how how = TOGETHER, first = TOGETHER;
	struct why_file *file = &all->files[all->n++];

	file->path = path;
	for (file->group = 0; file->group < all->n_groups; file->group++) {
		how = together_join(&all->groups[file->group], run);
		if (how == TOGETHER)
			return;
		if (!file->group)
			first = how;
	}
	all->groups[all->n_groups++] = together_of(run);
	if (first != TOGETHER)
		files_say_apart(all, path, first);
}

static void files_group(struct why_files *all, char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct trace_file *file;
		struct err err = { 0 };

		if (file_open(paths[i], &file, &err)) {
			files_failed(all, &err);
			continue;
		}
		files_add(all, paths[i], trace_run(file));
		trace_close(file);
	}
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Of several: the answer itself does not go by the stream's buffer. */
static void group_print_heading(const struct why_files *all, const struct together *group,
                                const char *const *paths, bool part)
{
	struct buf text = { 0 };

	if (all->said)
		putchar('\n');
	for (size_t i = 0; i < group->n; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", paths[i]);
	if (part) {
		buf_puts(&text, ", the ");
		buf_duration(&text, group->end_ns - group->begin_ns);
		buf_puts(&text, " that all were recorded in");
	}
	cli_print_line("%s:", text.data);
	fflush(stdout);
	buf_free(&text);
}

static int group_read(const struct together *group, struct trace_file *const *files,
                      struct consumer *consumer, struct err *errs, struct err *err)
{
	const struct trace_read_options all = { 0 };

	return group->n == 1 ? trace_read(files[0], &all, &consumer, 1, err)
	                     : together_read(group, files, consumer, errs, err);
}

static void group_answer(struct why_files *all, const struct together *group,
                         struct trace_file *const *files, const char *const *paths)
{
	const struct cli_range range = { 0 };
	struct why_options options = *all->form;
	struct err err = { 0 }, errs[TOGETHER_MAX] = { 0 };
	struct consumer *consumer;

	options.part = group->end_ns - group->begin_ns < group->longest_ns / 10 * 9;
	if (group->n == 1)
		options.part = false;
	options.files = paths;
	options.n_files = group->n > 1 || all->n > 1 ? group->n : 0;
	cli_bound_output(&range, paths[0]);
	if (options.n_files && options.text)
		group_print_heading(all, group, paths, options.part);
	all->said = true;
	consumer = why_new(&options);
	group_read(group, files, consumer, errs, &err);
	consumer->ops->free(consumer);
	if (err.text[0])
		files_failed(all, &err);
	for (size_t i = 0; i < group->n; i++) {
		if (errs[i].text[0] && errs[i].code != err.code)
			files_failed(all, &errs[i]);
		if (!errs[i].text[0] && !err.text[0] &&
		    cli_say_missed(paths[i], trace_run(files[i]), &errs[i]))
			files_failed(all, &errs[i]);
	}
}

static void files_answer(struct why_files *all, size_t number)
{
	struct together *group = &all->groups[number];
	struct trace_file *files[TOGETHER_MAX];
	const char *paths[TOGETHER_MAX];
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct err err = { 0 };

		if (all->files[i].group != number)
			continue;
		if (file_open(all->files[i].path, &files[n], &err))
			files_failed(all, &err);
		else
			paths[n++] = all->files[i].path;
	}
	group->n = n;
	if (n)
		group_answer(all, group, files, paths);
	while (n)
		trace_close(files[--n]);
}

/* It is opened once: it may be what can be read once. */
static void files_answer_one(struct why_files *all, const char *path)
{
	struct trace_file *file;
	struct err err = { 0 };

	if (file_open(path, &file, &err)) {
		files_failed(all, &err);
		return;
	}

	const struct together group = together_of(trace_run(file));

	group_answer(all, &group, &file, &path);
	trace_close(file);
}

struct why_options cli_why_form(bool json, const char *color)
{
	return (struct why_options){ .text = json ? NULL : stdout,
		                     .json = json ? stdout : NULL,
		                     .color = cli_color(color, stdout),
		                     .width = cli_width(stdout) };
}

int cli_why_files(const struct why_options *form, char *const *paths, size_t n)
{
	struct why_files all = { .form = form,
		                 .files = xcalloc(n + 1, sizeof(*all.files)),
		                 .groups = xcalloc(n + 1, sizeof(*all.groups)) };

	if (n == 1)
		files_answer_one(&all, paths[0]);
	else
		files_group(&all, paths, n);
	for (size_t i = 0; i < all.n_groups; i++)
		files_answer(&all, i);
	free(all.files);
	free(all.groups);
	return all.status;
}
