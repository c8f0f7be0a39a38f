// SPDX-License-Identifier: MIT
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "trace/writer.h"

struct record_options {
	struct target_choice choice;
	struct selection selection;
	struct capture_options capture;
	const char *output;
	bool force, verbose;
	char **command;
};

/* ---- options ------------------------------------------------------------------------------- */

enum { OPT_FORCE = 3000 };

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "What is kept, and where:", 3 },
	{ "output", 'o', "FILE", 0, "the file (default: the command's name or pid, .cuscope)", 0 },
	{ "force", OPT_FORCE, 0, 0, "overwrite files that exist", 0 },
	{ "verbose", 'v', 0, 0, "also the durations of driver calls that runtime calls make", 0 },
	{ 0 }
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->choice;
		state->child_inputs[1] = &o->choice;
		state->child_inputs[2] = &o->selection;
		state->child_inputs[3] = &o->capture;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case ARGP_KEY_ARGS: /* what stands after -- or begins with the first word */
		o->command = state->argv + state->next;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &cli_process_argp, 0, NULL, 0 },
	                                      { &cli_start_argp, 0, NULL, 0 },
	                                      { &cli_selection_argp, 0, NULL, 0 },
	                                      { &cli_limits_argp, 0, NULL, 0 },
	                                      { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[-- COMMAND [ARG...]]",
	.doc = "Keeps every CUDA call of a program in a file, for report, timeline and export."
	       "\vExamples:\n"
	       "  sudo cuscope record -o run.cuscope -- ./app\n"
	       "  sudo cuscope record -p 1234 --duration 10s\n",
	.children = children,
};

/* ---- recording ----------------------------------------------------------------------------- */

/* "app.cuscope", "1234.cuscope"; what else is traced has no name of its own. */
static char *default_name(const struct target *target, char *const *command)
{
	const char *slash;

	if (target->kind == TARGET_PIDS)
		return xasprintf("%d.cuscope", target->pids[0]);
	if (target->kind != TARGET_COMMAND)
		return xstrdup("trace.cuscope");
	slash = strrchr(command[0], '/');
	return xasprintf("%s.cuscope", slash && slash[1] ? slash + 1 : command[0]);
}

static int record(struct record_options *o, const char *path, struct err *err)
{
	int fd = cli_create(path, o->force, err), status;
	struct writer_stats stats;
	struct consumer *writer;

	if (fd < 0)
		return EXIT_FAILURE;
	writer = writer_new(fd, path);
	o->capture.target = o->choice.target;
	o->capture.selection = o->selection;
	o->capture.nested_returns = o->verbose;
	o->capture.consumers = &writer;
	o->capture.n_consumers = 1;
	status = cli_capture(&o->capture, err);
	writer_stats(writer, &stats);
	writer->ops->free(writer);
	close(fd);
	if (!stats.bytes) { /* it never began */
		unlink(path);
		return status;
	}
	cli_say("%s: %llu events, %llu bytes; 'cuscope report %s' shows them", path,
	        (unsigned long long)stats.events, (unsigned long long)stats.bytes, path);
	return status;
}

int cli_record(int argc, char **argv)
{
	struct record_options o = { .capture = { .returns = true } };
	struct origin origin;
	struct err err = { 0 };
	char *name = NULL;
	int status;

	origin_save(&origin);
	cli_parse(&argp, argc, argv, true, &o);
	o.choice.target.command.origin = &origin;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* ignored, the command would leave no status */
	if (cli_target_settle(&o.choice, o.command, &err)) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return EXIT_USAGE;
	}
	if (!o.output)
		o.output = name = default_name(&o.choice.target, o.command);
	status = record(&o, o.output, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	free(name);
	free(o.choice.pids);
	free(o.selection.only);
	free(o.selection.skip);
	return status;
}
