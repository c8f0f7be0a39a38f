// SPDX-License-Identifier: MIT
/* `cuscope why`: where the time goes, and what to change first; of recordings, or of what runs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account/standing.h"
#include "analysis/machines.h"
#include "base/buf.h"
#include "base/xalloc.h"
#include "cli/cli.h"
#include "cli/recording.h"
#include "report/why.h"
#include "trace/reader.h"
#include "trace/together.h"

#define FILES_COMPARED 64 /* more, and clocks of machines are not */

/* Recordings that `why` is given: which are told together, and the answers of each. */

/* A recording that was named. */
struct why_file {
	const char *path;
	size_t group;
	struct together_clock clock;
};

struct why_files {
	const struct why_options *form;
	const char *rank; /* of one file: which is asked for; NULL: all */
	struct why_file *files;
	size_t n;
	struct together *groups;
	size_t n_groups;
	struct standings standings; /* of all groups, where they are several */
	bool said;                  /* some answer was given */
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
static void files_say_apart(const struct why_files *all, const char *path, enum together_how how,
                            const char *of_clock)
{
	static const char *const why[] = {
		[TOGETHER_NO_CLOCK] = "which clock its times are of was not recorded",
		[TOGETHER_TWIN] = "it says that it began in the nanosecond in which another one "
				  "did, which it is no copy of",
		[TOGETHER_OTHER_TIME] = "it was recorded at another time",
		[TOGETHER_TOO_MANY] = "there are more than are told together",
	};

	cli_say("%s is told apart from %s: %s", path, all->files[0].path,
	        how == TOGETHER_OTHER_CLOCK ? of_clock : why[how]);
}

static void files_add(struct why_files *all, const char *path, const struct trace_file *trace,
                      const struct machines *machines, size_t number)
{
	const struct together_clock *clock = machines ? machines_clock(machines, number) : NULL;
	enum together_how how = TOGETHER, first = TOGETHER;
	struct why_file *file = &all->files[all->n];

	file->path = path;
	if (clock)
		file->clock = *clock;
	for (file->group = 0; file->group < all->n_groups; file->group++) {
		how = together_join(&all->groups[file->group], trace_run(trace), trace, clock);
		if (how == TOGETHER_SAME) {
			cli_say("%s is told once: it is a recording that another file has", path);
			return;
		}
		if (how == TOGETHER) {
			all->n++;
			return;
		}
		if (!file->group)
			first = how;
	}
	all->n++;
	all->groups[all->n_groups++] = together_of(trace_run(trace), trace, clock);
	if (first != TOGETHER)
		files_say_apart(all, path, first,
		                machines ? machines_why(machines, number)
		                         : "its times are of another machine's clock, and there "
		                           "are too many files to compare it");
}

static void files_group(struct why_files *all, char *const *paths, size_t n)
{
	struct trace_file **files = xcalloc(n + 1, sizeof(struct trace_file *));
	const char **named = xcalloc(n + 1, sizeof(char *));
	struct machines machines = { 0 };
	size_t opened = 0;

	for (size_t i = 0; i < n; i++) {
		struct err err = { 0 };

		if (file_open(paths[i], &files[opened], &err))
			files_failed(all, &err);
		else
			named[opened++] = paths[i];
	}
	if (opened <= FILES_COMPARED)
		machines_align(&machines, files, opened);
	for (size_t i = 0; i < opened; i++)
		files_add(all, named[i], files[i], opened <= FILES_COMPARED ? &machines : NULL, i);
	while (opened)
		trace_close(files[--opened]);
	machines_clear(&machines);
	free(named);
	free(files);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Of several: the answer itself does not go by the stream's buffer. */
static void group_print_heading(const struct why_files *all, const struct together *group,
                                const char *const *paths, bool part)
{
	AT_END(buf_free) struct buf text = { 0 };

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
}

static int group_read(const struct why_files *all, const struct together *group,
                      struct trace_file *const *files, struct consumer *consumer, struct err *errs,
                      struct err *err)
{
	const struct cli_range range = { .rank = all->rank };

	return group->n == 1 ? cli_read(files[0], &range, &consumer, 1, err)
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
		options.part = all->rank;
	options.standings = all->n_groups > 1 ? &all->standings : NULL;
	options.files = paths;
	options.n_files = group->n > 1 || all->n > 1 ? group->n : 0;
	cli_bound_outputs(&range, paths, group->n);
	if (options.n_files && options.text)
		group_print_heading(all, group, paths, options.part);
	all->said = true;
	consumer = why_new(&options);
	group_read(all, group, files, consumer, errs, &err);
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
		else {
			paths[n] = all->files[i].path;
			group->clocks[n++] = all->files[i].clock;
		}
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

	const struct together group = together_of(trace_run(file), file, NULL);

	group_answer(all, &group, &file, &path);
	trace_close(file);
}

/* How an answer is to look. */
static struct why_options cli_why_form(bool json, const char *color)
{
	return (struct why_options){ .text = json ? NULL : stdout,
		                     .json = json ? stdout : NULL,
		                     .color = cli_color(color, stdout),
		                     .width = cli_width(stdout) };
}

/*
 * One answer for all that were recorded at the same time by clocks that are one, or go by one; what
 * is wrong with a file keeps nobody from the others. Returns the exit status.
 */
static int cli_why_files(const struct why_options *form, const char *rank, char *const *paths,
                         size_t n)
{
	struct why_files all = { .form = form,
		                 .rank = rank,
		                 .files = xcalloc(n + 1, sizeof(*all.files)),
		                 .groups = xcalloc(n + 1, sizeof(*all.groups)) };
	struct err err = { 0 };

	if (n == 1)
		files_answer_one(&all, paths[0]);
	else
		files_group(&all, paths, n);
	for (size_t i = 0; i < all.n_groups; i++)
		files_answer(&all, i);
	if (all.n_groups > 1 && why_write_standing(&all.standings, form, &err))
		files_failed(&all, &err);
	standings_clear(&all.standings);
	free(all.files);
	free(all.groups);
	return all.status;
}

#define WATCH_NS 10000000000ull /* without --duration */

/* GPU times are of a part of the time where they cost more than this, or than --max-overhead. */
#define WINDOW_PERCENT 2.0
#define WINDOW_NS      1000000000ull

/* Stacks of copies and sets: 100 a second of each thread, since walking one takes some 15 us. */
#define COPY_STACKS_NS 10000000ull
#define UNNAMED        "the recording"

struct why_command {
	struct cli_attach attach;
	struct cli_stacks stacks;
	struct cli_metrics metrics;
	char **files;
	size_t n_files;
	const char *output, *color;
	mode_t mode;
	bool force, gpu, no_gpu, no_ras;
	enum { WHY_TEXT, WHY_JSON } form;
};

/* What is watched, and recorded for it. */
struct watching {
	struct recording recording; /* first: what callbacks get */
	const struct why_command *command;
	int rc; /* of the answer */
	struct err err;
};

/* ---- options ------------------------------------------------------------------------------- */

static const char *const forms[] = { "text", "json", NULL };

static bool why_take_busy(const struct argp_state *state, void *to, const char *value)
{
	*(uint64_t *)to = CLI_GPU_BUSY_NS;
	return true;
}

static void why_words(void *into, char **words, size_t count)
{
	struct why_command *o = into;

	o->files = words;
	o->n_files = count;
}

static const struct option_row rows[] = {
	{ .title = "Output:", .order = 3 },
	{ "format", 0, "NAME", "text (default) or json", OPTION_WORD,
	  offsetof(struct why_command, form), .words = forms, .is_no = "format" },
	CLI_COLOR_ROW(struct why_command, color),
	{ "output", 'o', "FILE",
	  "keep the recording that the answer is made from; FILE.html: a page of it for a browser",
	  OPTION_TEXT, offsetof(struct why_command, output) },
	CLI_FORCE_ROW(struct why_command, force, "overwrite FILE"),
	CLI_MODE_ROW(struct why_command, mode),
	{ .title = "What ran on the GPU:", .order = 4 },
	{ "gpu", 0, NULL,
	  "GPU times all the time; without it of parts of the time where they cost more than 2 %",
	  OPTION_YES, offsetof(struct why_command, gpu) },
	{ "no-gpu", 0, NULL, "without GPU times: by what threads do alone", OPTION_YES,
	  offsetof(struct why_command, no_gpu) },
	{ "gpu-busy", 0, NULL,
	  "by samples of GPUs' counters, with nothing in the programs: whether one was busy, not "
	  "with what",
	  OPTION_TAKE, offsetof(struct why_command, metrics.busy_ns), .take = why_take_busy },
	CLI_NO_RAS_ROW(struct why_command, no_ras),
	{ "cupti", 0, "PATH", "the libcupti.so to use; by default one is looked for", OPTION_TEXT,
	  offsetof(struct why_command, attach.gpu.settings.cupti) },
};

static const struct option_part parts[] = {
	{ &cli_process_options, offsetof(struct why_command, attach.choice) },
	{ &cli_start_options, offsetof(struct why_command, attach.choice) },
	{ &cli_bounds_options, offsetof(struct why_command, attach.capture) },
	{ &cli_stalls_options, offsetof(struct why_command, attach.gpu) },
	{ 0 }
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .parts = parts, .words = why_words },
	.operands = "[-- COMMAND [ARG...]]\nFILE...",
	.doc = "Watches programs for ten seconds, and says where the time goes, what to change "
	       "first, in which line, and how much that would gain. Of recordings it says the "
	       "same."
	       "\vExamples:\n"
	       "  sudo cuscope why -p 1234\n"
	       "  sudo cuscope why --duration 1m -o run.cuscope -- python3 train.py\n"
	       "  cuscope why run.cuscope --format json\n",
};

/* The first option that was given and is for watching alone; NULL: none was. */
static const char *given_for_watching(const struct why_command *o)
{
	const struct target_choice *choice = &o->attach.choice;
	const struct capture_options *capture = &o->attach.capture;

	return choice->n_pids                         ? "-p"
	       : choice->given & 1u << TARGET_NAME    ? "--name"
	       : choice->given & 1u << TARGET_CGROUP  ? "--cgroup"
	       : choice->given & 1u << TARGET_ALL     ? "--all"
	       : choice->whose.job                    ? "--job"
	       : choice->whose.container              ? "--container"
	       : choice->whose.pod                    ? "--pod"
	       : choice->whose.gpu                    ? "--gpu-of"
	       : o->attach.command                    ? "a command after --"
	       : choice->target.command.user          ? "--user"
	       : choice->n_env                        ? "--env"
	       : o->output && !cli_is_page(o->output) ? "--output"
	       : o->gpu                               ? "--gpu"
	       : o->no_gpu                            ? "--no-gpu"
	       : o->metrics.busy_ns                   ? "--gpu-busy"
	       : o->attach.gpu.stalls                 ? "--stalls"
	       : o->no_ras                            ? "--no-ras"
	       : o->attach.gpu.settings.cupti         ? "--cupti"
	       : capture->duration_ns                 ? "--duration"
	       : capture->timeout_ns                  ? "--timeout"
	       : capture->max_overhead > 0            ? "--max-overhead"
	       : capture->ring_bytes                  ? "--ring-size"
	       : capture->without                     ? "--without"
	                                              : NULL;
}

static int check_options(struct why_command *o, struct err *err)
{
	const char *given = given_for_watching(o);

	if (o->n_files && given)
		return err_set(err, EINVAL,
		               "%s is for watching what runs: %s was recorded ('cuscope report "
		               "FILE why' answers of a part of it)",
		               given, o->files[0]);
	if (o->n_files > 1 && o->attach.choice.whose.rank)
		return err_set(err, EINVAL, "--rank is of one file: of several all is read");
	if (o->n_files > 1 && o->output)
		return err_set(err, EINVAL,
		               "a page of why is of one recording: '%s' is a second one "
		               "('cuscope diff A B -o FILE.html' makes one of two)",
		               o->files[1]);
	if (o->n_files)
		return 0;
	if (!o->attach.choice.given && !o->attach.command)
		return err_set(err, EINVAL,
		               "of what? A recording, a command after --, -p PID, --name GLOB, "
		               "--cgroup PATH, --rank N, --job ID, --container ID, --pod NAME, "
		               "--gpu-of GPU or --all");
	if (o->metrics.busy_ns && (o->gpu || o->no_gpu || o->attach.gpu.settings.cupti))
		return err_set(err, EINVAL, "--gpu-busy goes without %s",
		               o->gpu      ? "--gpu"
		               : o->no_gpu ? "--no-gpu"
		                           : "--cupti");
	if (o->attach.gpu.stalls && (o->no_gpu || o->metrics.busy_ns))
		return err_set(err, EINVAL, "--stalls is for GPU times, which %s leaves out",
		               o->no_gpu ? "--no-gpu" : "--gpu-busy");
	if (o->no_gpu && (o->gpu || o->attach.gpu.settings.cupti))
		return err_set(err, EINVAL, "%s is for GPU times, which --no-gpu leaves out",
		               o->gpu ? "--gpu" : "--cupti");
	if (o->force && !o->output)
		return err_set(err, EINVAL, "--force goes with --output");
	if (cli_target_settle(&o->attach.choice, o->attach.command, err))
		return err->code;
	return cli_metrics_check(&o->metrics, &o->attach.choice.target, err);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static struct cli_page why_page(const struct why_command *o)
{
	return (struct cli_page){ .path = o->output, .force = o->force, .mode = o->mode };
}

static int why_write_page(const struct why_command *o, struct trace_file *file, const char *trace,
                          struct err *err)
{
	const struct cli_page page = why_page(o);

	return cli_page_write(file, trace, &page, err);
}

/* Of what was watched, whose damage is told behind what it says. */
static int answer(const struct why_command *o, struct trace_file *file, struct err *err)
{
	const struct why_options form = cli_why_form(o->form == WHY_JSON, o->color);
	const struct trace_read_options all = { 0 };
	struct consumer *consumer = why_new(&form);
	int rc = trace_read(file, &all, &consumer, 1, err);

	consumer->ops->free(consumer);
	return rc;
}

/* ---- watching ------------------------------------------------------------------------------ */

/* The file that the recording is kept in; NULL: it is not kept. */
static const char *why_recording(const struct why_command *o)
{
	return cli_is_page(o->output) ? NULL : o->output;
}

/* Before a command that runs on is waited for. */
static void answer_recorded(struct recording *recording, int fd)
{
	struct watching *watching = (struct watching *)recording;
	const struct why_command *o = watching->command;
	struct trace_file *file;

	if (fd < 0)
		return;
	watching->rc =
		trace_open_fd(fd, why_recording(o) ? o->output : UNNAMED, &file, &watching->err);
	if (watching->rc)
		return;
	watching->rc = answer(o, file, &watching->err);
	if (!watching->rc && cli_is_page(o->output))
		watching->rc = why_write_page(o, file, UNNAMED, &watching->err);
	trace_close(file);
	if (!o->output && recording->missed.len)
		cli_say("%s (--output keeps the recording, and 'cuscope info' says why)",
		        recording->missed.data);
}

/*
 * What the answer is made of; --max-overhead bounds the cost of all together. Stacks of launches
 * are not walked: a step has hundreds, and samples have their lines.
 */
void cli_why_choose(struct cli_attach *attach, struct cli_stacks *stacks, enum cli_why_gpu gpu)
{
	struct capture_options *capture = &attach->capture;

	cli_stacks_all(stacks);
	stacks->calls = STACK_CALLS_ALL & ~STACK_CALLS_LAUNCHES;
	stacks->settings.call_ns = COPY_STACKS_NS;
	stacks->hz = CLI_WHY_HZ;
	cli_stacks_wait(stacks);
	stacks->settings.bare_waits = true;
	attach->choice.target.family = attach->choice.target.follow;
	if (gpu == CLI_WHY_NO_GPU)
		return;
	cli_gpu_ask(&attach->gpu);
	attach->gpu.settings.if_any = true;
	/* Stalls have windows of their own, which take longer to begin than one of these lasts. */
	if (gpu == CLI_WHY_GPU_WINDOWS && !attach->gpu.stalls) {
		attach->gpu.settings.window_ns = WINDOW_NS;
		attach->gpu.settings.window_percent =
			capture->max_overhead > 0 ? capture->max_overhead : WINDOW_PERCENT;
	}
	capture->gpu = &attach->gpu.settings;
}

static void choose_what(struct why_command *o)
{
	struct capture_options *capture = &o->attach.capture;

	cli_ranks_ask(&o->attach, o->no_ras);
	cli_why_choose(&o->attach, &o->stacks,
	               o->no_gpu || o->metrics.busy_ns ? CLI_WHY_NO_GPU
	               : o->gpu                        ? CLI_WHY_GPU
	                                               : CLI_WHY_GPU_WINDOWS);
	if (!capture->duration_ns)
		capture->duration_ns = WATCH_NS;
	capture->taken = "recording";
}

static int watch(struct why_command *o, struct err *err)
{
	const char *output = why_recording(o);
	const struct cli_page page = why_page(o);
	struct watching watching = { .command = o,
		                     .recording = { .attach = &o->attach,
		                                    .stacks = &o->stacks,
		                                    .metrics = &o->metrics,
		                                    .unnamed = !output,
		                                    .from_work = o->attach.command,
		                                    .over = answer_recorded } };
	struct recording *r = &watching.recording;
	const struct cli_range all = { 0 };
	int status;

	if (cli_is_page(o->output) && cli_page_check(&page, err))
		return EXIT_FAILURE;
	choose_what(o);
	cli_bound_output(&all, NULL);
	if (output ? recording_open(r, output, o->force, o->mode, err)
	           : new_file_unnamed(&r->file, UNNAMED, err))
		return EXIT_FAILURE;
	cli_part_command(stdout, &o->attach.choice.target);
	status = recording_take(r, output ? output : UNNAMED, err);
	if (!watching.rc)
		return status;
	if (err->text[0]) /* one sentence is told at the end, another before */
		cli_say("%s", err->text);
	*err = watching.err;
	return status ? status : EXIT_FAILURE;
}

static int why_page_of_file(const struct why_command *o, struct err *err)
{
	struct trace_file *file;
	int rc = file_open(o->files[0], &file, err);

	if (rc)
		return rc;
	cli_bound_output(&(const struct cli_range){ 0 }, o->files[0]);
	rc = why_write_page(o, file, o->files[0], err);
	trace_close(file);
	return rc;
}

/* What stands after "--" is a command's, options too. Returns the words before that. */
static int part_command(struct why_command *o, int argc, char **argv)
{
	int words = 1;

	while (words < argc && strcmp(argv[words], "--"))
		words++;
	if (words + 1 < argc)
		o->attach.command = argv + words + 1;
	return words;
}

int cli_why(int argc, char **argv)
{
	struct why_command o = { .attach = { .capture = { .returns = true } } };
	struct origin origin;
	struct err err = { 0 };
	int status;

	struct cli_recordings files = { 0 };

	origin_save(&origin);
	cli_stacks_init(&o.stacks);
	option_parse(&options, part_command(&o, argc, argv), argv, false, &o);
	o.attach.choice.target.command.origin = &origin;
	cli_ignore_signals();
	for (size_t i = 0; i < o.n_files && !err.text[0]; i++)
		cli_recordings_add(&files, o.files[i], &err);
	o.files = files.paths;
	o.n_files = files.n;
	if (err.text[0]) {
		cli_say_failure(&err);
		return EXIT_FAILURE;
	}
	if (check_options(&o, &err))
		return cli_refuse(argv[0], &err);
	if (o.n_files) {
		const struct why_options form = cli_why_form(o.form == WHY_JSON, o.color);

		status = cli_why_files(&form, o.attach.choice.whose.rank, o.files, o.n_files);
		if (o.output && why_page_of_file(&o, &err))
			status = EXIT_FAILURE;
	} else {
		status = watch(&o, &err);
	}
	if (err.text[0])
		cli_say_failure(&err);
	cli_recordings_free(&files);
	cli_attach_free(&o.attach);
	return status;
}
