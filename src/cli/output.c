// SPDX-License-Identifier: MIT
/* The files that commands write while something is traced, and who may read them. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "output/sink.h"

/* ---- formats ------------------------------------------------------------------------------- */

/* The formats of src/output as the options --format and --output offer them. */

#define FORMATS_MAX 16

static const char *formats_nearest(const char *typed)
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
	const char *near = formats_nearest(name);
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
	AT_END(buf_free) struct buf known = { 0 };

	if (format)
		return format;
	if (is_special(path))
		return sink_format_by_name("table");
	sink_format_endings(&known);
	err_set(err, EINVAL, "'%s' has the ending of no format (%s): --format chooses one", path,
	        known.data);
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
		cli_say("%lu times the file does not say that a call and its work on a GPU belong "
		        "together, because they came too far apart or in another order: %s",
		        unjoined, advice);
}

int cli_check_stdout(const struct sink_format *format, struct err *err)
{
	const char *ending = format->endings[0] ? format->endings[0] : "";

	if (format->many_files)
		return err_set(err, EINVAL, "%s is written to a folder only: -o DIR", format->name);
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

/* ---- screen -------------------------------------------------------------------------------- */

/* What a stream is written to. */

const char *const cli_whens[] = { "auto", "always", "never", NULL };

bool cli_color(const char *when, FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	if (when && strcmp(when, "auto"))
		return !strcmp(when, "always");
	return out && isatty(fileno(out)) && !(no_color && *no_color);
}

size_t cli_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	unsigned long most = UINT16_MAX, asked;
	struct winsize size;

	if (out && isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size))
		return size.ws_col;
	asked = out && columns ? strtoul(columns, NULL, 10) : 0;
	return asked < most ? asked : most;
}

/* ---- output -------------------------------------------------------------------------------- */

#define MODE_MOST 0777

void cli_ignore_signals(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* ignored, a command would leave no status */
}

int cli_refuse(const char *program, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", program, err->text);
	return EXIT_USAGE;
}

bool cli_take_mode(const struct argp_state *state, void *to, const char *value)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);

	*(mode_t *)to = (mode_t)mode;
	return *value && !*end && value[0] != '-' && mode <= MODE_MOST && mode & S_IRUSR;
}

bool cli_is_stdout(FILE *out)
{
	struct stat st, own;

	return out == stdout || (!fstat(fileno(out), &st) && !fstat(STDOUT_FILENO, &own) &&
	                         st.st_dev == own.st_dev && st.st_ino == own.st_ino);
}

void cli_part_command(FILE *out, struct target *target)
{
	static const int parted[] = { STDIN_FILENO, STDERR_FILENO, STDERR_FILENO };

	if (target->kind == TARGET_COMMAND && cli_is_stdout(out))
		target->command.streams = parted;
}

int cli_create(struct new_file *file, const char *path, bool force, mode_t mode, struct err *err)
{
	const struct new_file_options options = { .replace = force, .grows = true, .mode = mode };

	return new_file_open(file, path, &options, err);
}

int cli_settle(struct new_file *file, bool keep, struct err *err)
{
	struct stat st;
	bool empty;

	if (!file->out)
		return 0;
	fflush(file->out);
	empty = !fstat(fileno(file->out), &st) && S_ISREG(st.st_mode) && !st.st_size;
	if (keep || (file->begun && !empty))
		return new_file_keep(file, err);
	new_file_drop(file);
	return 0;
}

/* ---- when a file takes the place of another -------------------------------------------------- */

struct placer {
	struct consumer consumer; /* first: what others hold */
	struct new_file *file;
};

static int place(struct consumer *self, struct err *err)
{
	return new_file_place(((struct placer *)self)->file, err);
}

static int placer_event(struct consumer *self, const struct event *event, struct err *err)
{
	return place(self, err);
}

static int placer_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	return place(self, err);
}

static void placer_free(struct consumer *self)
{
	free(self);
}

static const struct consumer_ops placer_ops = {
	.event = placer_event,
	.flush = place,
	.end = placer_end,
	.free = placer_free,
};

struct consumer *cli_placer(struct new_file *file)
{
	struct placer *placer = xcalloc(1, sizeof(*placer));

	placer->consumer.ops = &placer_ops;
	placer->file = file;
	return &placer->consumer;
}
