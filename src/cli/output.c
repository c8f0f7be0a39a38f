// SPDX-License-Identifier: MIT
/* The files that commands write while something is traced, and who may read them. */
#include "cli/cli.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

#define MODE_MOST 0777

void cli_ignore_signals(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
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
