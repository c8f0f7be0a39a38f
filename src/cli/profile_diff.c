// SPDX-License-Identifier: MIT
/* `cuscope profile --diff`: two profiles that were written as folded stacks. */
#include "cli/profile_notes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "profile/profile_write.h"
#include "profile/folded.h"
#include "trace/format.h"

/* A FIFO would be waited for, and may have no end. NULL, with a sentence, for what is no file. */
static FILE *open_file(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	FILE *file;

	if (fd < 0 || fstat(fd, &st))
		err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		err_set(err, EISDIR, "cannot read %s: it is a folder", path);
	else if (!S_ISREG(st.st_mode))
		err_set(err, EINVAL, "%s is not a regular file: copy what it gives into one first",
		        path);
	else if ((file = fdopen(fd, "r")))
		return file;
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int read_profile(const char *path, struct profile **profile, struct err *err)
{
	AT_END(at_end_fclose) FILE *in = open_file(path, err);

	*profile = NULL;
	if (!in)
		return -EINVAL;
	*profile = profile_new(NULL);
	return profile_read_folded(*profile, in, path, err);
}

static int write_text(const struct profile_pair *pair, struct err *err)
{
	const struct table_options table = { .out = stdout,
		                             .width = cli_width(stdout),
		                             .color = cli_color(NULL, stdout) };

	return profile_diff_functions(pair, 0, &table, err);
}

static int write_file(const struct profile_diff_options *o, const struct profile_pair *pair,
                      struct err *err)
{
	struct new_file file = { 0 };
	int r = cli_create(&file, o->output, o->force, o->output_mode, err);

	if (r)
		return r;
	r = profile_diff_write(pair, profile_format_of(o->output), file.out, o->output, err);
	if (!r)
		return cli_settle(&file, true, err);
	cli_settle(&file, false, NULL);
	return r;
}

bool profile_begins_as_trace(const char *path)
{
	AT_END(at_end_fclose) FILE *file = open_file(path, NULL);
	char begin[FORMAT_MAGIC_BYTES];

	return file && fread(begin, sizeof(begin), 1, file) == 1 &&
	       !memcmp(begin, FORMAT_MAGIC, sizeof(begin));
}

int profile_diff_check(const struct profile_diff_options *o, struct err *err)
{
	if (!o->after)
		return err_set(
			err, EINVAL,
			"--diff %s: compared with what? cuscope profile --diff BEFORE.folded "
			"AFTER.folded",
			o->before);
	for (int i = 0; i < 2; i++) {
		const char *path = i ? o->after : o->before;

		if (profile_begins_as_trace(path))
			return err_set(err, EINVAL,
			               "--diff: %s is a trace file: 'cuscope profile %s -o "
			               "x.folded' makes what is compared of it",
			               path, path);
	}
	if (o->output && !profile_diff_has(profile_format_of(o->output)))
		return err_set(err, EINVAL, "--diff writes .svg and .folded, not '%s'", o->output);
	return 0;
}

int profile_diff_run(const struct profile_diff_options *o, struct err *err)
{
	const struct profile_info before_info = { .subject = o->before };
	const struct profile_info after_info = { .subject = o->after };
	struct profile *before, *after = NULL;
	int r = read_profile(o->before, &before, err);

	if (!r)
		r = read_profile(o->after, &after, err);
	if (!r) {
		const struct profile_pair pair = { before, after, &before_info, &after_info };

		r = o->output ? write_file(o, &pair, err) : write_text(&pair, err);
	}
	profile_free(before);
	profile_free(after);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
