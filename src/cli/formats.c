// SPDX-License-Identifier: MIT
/* The formats of src/output as the options --format and --output offer them. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/suggest.h"
#include "output/sink.h"

#define FORMATS_MAX 16

static const char *nearest(const char *typed)
{
	const char *names[FORMATS_MAX];
	size_t count = 0;

	for (const struct sink_format *f = sink_formats; f->name && count < FORMATS_MAX; f++)
		names[count++] = f->name;
	return suggest(typed, names, count);
}

bool cli_take_format(const struct argp_state *state, void *to, const char *name)
{
	const struct sink_format **format = to;
	const char *near = nearest(name);
	struct buf what = { 0 };

	*format = sink_format_by_name(name);
	if (*format)
		return true;
	buf_puts(&what, "format (");
	sink_format_names(&what);
	buf_puts(&what, ")");
	if (near)
		buf_printf(&what, "; did you mean '%s'?", near);
	option_bad_value(state, "--format", name, what.data);
}

/* What is there and no regular file has no ending that says anything: a pipe, /dev/stdout. */
static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

const struct sink_format *cli_format_of(const char *path, struct err *err)
{
	const struct sink_format *format = sink_format_by_ending(path);
	struct buf known = { 0 };

	if (format)
		return format;
	if (is_special(path))
		return sink_format_by_name("table");
	sink_format_endings(&known);
	err_set(err, EINVAL, "'%s' has the ending of no format (%s): --format chooses one", path,
	        known.data);
	buf_free(&known);
	return NULL;
}

char *cli_help_formats(void)
{
	struct buf text = { 0 };

	for (const struct sink_format *format = sink_formats; format->name; format++) {
		buf_printf(&text, "%s%s", text.len ? "; " : "", format->name);
		for (const char *const *ending = format->endings; *ending; ending++)
			buf_printf(&text, "%s%s", ending == format->endings ? " (" : ", ", *ending);
		buf_printf(&text, "%s: %s", format->endings[0] ? ")" : "", format->help);
	}
	return text.data;
}

void cli_say_unjoined(const struct consumer *sink, const char *advice)
{
	uint64_t unjoined = sink_unjoined(sink);

	if (unjoined)
		cli_say("%llu times the file does not say that a call and its work on a GPU belong "
		        "together, because they came too far apart or in another order: %s",
		        (unsigned long long)unjoined, advice);
}

int cli_check_stdout(const struct sink_format *format, struct err *err)
{
	const char *ending = format->endings[0] ? format->endings[0] : "";

	if (format->whole_file)
		return err_set(err, EINVAL, "%s is written to a file only: -o FILE%s", format->name,
		               ending);
	if (format->binary && isatty(STDOUT_FILENO))
		return err_set(err, EINVAL,
		               "%s is no text and would garble the terminal: -o FILE%s writes it "
		               "to a file",
		               format->name, ending);
	return 0;
}
