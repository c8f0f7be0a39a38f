// SPDX-License-Identifier: MIT
/* `cuscope profile`: in which functions and lines the time goes. */
#include "cli/cli.h"
#include "cli/profile_notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "capture/stacks/sampler.h"
#include "profile/collect.h"
#include "profile/profile_write.h"
#include "trace/event.h"

enum profile_mode {
	MODE_DEFAULT, /* merge with --gpu, cpu without */
	MODE_MERGE,   /* time on CPUs, and on GPUs under the stacks that asked for it */
	MODE_GPU,
	MODE_CPU,
	MODE_OFF_CPU, /* time blocked alone */
	MODE_HOOKS,   /* time in calls that --hook asks for */
};

struct profile_command {
	struct target_choice choice;
	struct capture_options capture;
	char **command; /* NULL: none */
	struct profile_options profile;
	struct cli_gpu gpu;
	struct hook_list hooks;
	struct cli_stacks stacks;
	const char *trace;                /* a trace file; NULL: a profile is taken */
	struct cli_range range;           /* which part of it */
	struct profile_diff_options diff; /* --diff, and the file that it is compared with */
	enum profile_mode mode;
	bool least_given; /* --off-cpu=MIN */
	const char *output;
	mode_t output_mode;
	bool force;
};

/* A profile while it is taken. */
struct profiling {
	struct consumer *collect;
	struct work *work; /* NULL: no calls are asked about */
	const char *subject, *hostname;
	uint64_t begin_ns;            /* since 1970 */
	uint64_t duration_ns;         /* 0: it did not begin */
	struct sampler_figures walks; /* of one that was taken */
	const struct run_info *run;   /* of a trace file; NULL: it was taken */
};

/* ---- options ------------------------------------------------------------------------------- */

/* Whether a word is the trace file that the profile is of, rather than a command. */
static bool is_trace(const struct argp_state *state, const char *word)
{
	const char *ending = strrchr(word, '.');

	if (state->quoted && state->next > state->quoted)
		return false;
	return (ending && !strcmp(ending, ".cuscope")) || profile_begins_as_trace(word);
}

/* Options may stand behind a trace file. */
static bool profile_word(const struct argp_state *state, void *into, char *word)
{
	struct profile_command *o = into;

	if (o->diff.before && !o->diff.after) {
		o->diff.after = word;
		return true;
	}
	if (!is_trace(state, word))
		return false;
	if (o->trace)
		argp_error(state, "one trace file at a time: '%s' is a second one", word);
	o->trace = word;
	return true;
}

static void profile_words(void *into, char **words, size_t count)
{
	((struct profile_command *)into)->command = words;
}

static bool profile_take_off_cpu(const struct argp_state *state, void *to, const char *value)
{
	struct profile_command *o = to;
	uint64_t *least_ns = &o->stacks.settings.blocked_ns;

	o->stacks.blocked = true;
	o->least_given |= value != NULL;
	return !value || (parse_duration_ns(value, least_ns) && *least_ns);
}

static const char *const modes[] = { "merge", "gpu", "cpu", "off-cpu", "hooks", NULL };

static bool profile_take_mode(const struct argp_state *state, void *to, const char *value)
{
	unsigned at = 0;

	while (modes[at] && strcmp(value, modes[at]))
		at++;
	*(enum profile_mode *)to = (enum profile_mode)(MODE_MERGE + at);
	return modes[at];
}

static const struct option_row rows[] = {
	{ .title = "What is profiled, and where it goes:", .order = 3 },
	{ "output", 'o', "FILE", "the profile, in a form by its ending (default: text)",
	  OPTION_TEXT, offsetof(struct profile_command, output) },
	{ "diff", 0, "BEFORE",
	  "what has changed since this profile, of which FILE is the other one; both are .folded",
	  OPTION_TEXT, offsetof(struct profile_command, diff.before), .offer = completion_traces },
	CLI_FORCE_ROW(struct profile_command, force, "overwrite FILE"),
	CLI_MODE_ROW(struct profile_command, output_mode),
	{ "mode", 0, "MODE",
	  "cpu: time on CPUs; gpu: time on GPUs, under the stacks that asked for it (--gpu); "
	  "merge: both (default with --gpu); off-cpu: time blocked; hooks: time in calls that "
	  "--hook names (default with it)",
	  OPTION_TAKE, offsetof(struct profile_command, mode), .words = modes, .is_no = "mode",
	  .take = profile_take_mode },
	{ "off-cpu", 0, "MIN",
	  "also how long threads were blocked, where, and who woke them; times below MIN are "
	  "added up (default: 100us)",
	  OPTION_TAKE, .take = profile_take_off_cpu, .is_no = "duration (10us, 1.5ms, 2s, 3m)",
	  .optional = true },
	{ "per-process", 0, NULL, "processes apart", OPTION_YES,
	  offsetof(struct profile_command, profile.per_process) },
	{ "per-thread", 0, NULL, "processes and their threads apart", OPTION_YES,
	  offsetof(struct profile_command, profile.per_thread) },
	{ "functions", 0, NULL, "functions of Python whole, not line by line", OPTION_YES,
	  offsetof(struct profile_command, profile.functions) },
	{ "interpreter", 0, NULL, "also the functions that make up Python", OPTION_YES,
	  offsetof(struct profile_command, profile.interpreter) },
	{ .title = "How long, and by what:", .order = 5 },
	CLI_DURATION_ROW(struct profile_command, capture.duration_ns),
	CLI_RING_SIZE_ROW(struct profile_command, capture.ring_bytes,
	                  "memory of all ring buffers together (8 MiB for each CPU)"),
	CLI_WITHOUT_ROW(struct profile_command, capture.without),
};

static const struct option_part parts[] = {
	{ &cli_process_options, offsetof(struct profile_command, choice) },
	{ &cli_start_options, offsetof(struct profile_command, choice) },
	{ &cli_gpu_options, offsetof(struct profile_command, gpu) },
	{ &cli_stalls_options, offsetof(struct profile_command, gpu) },
	{ &cli_stacks_options, offsetof(struct profile_command, stacks) },
	{ &cli_times_options, offsetof(struct profile_command, range) },
	{ &cli_hooks_options, offsetof(struct profile_command, hooks) },
	{ 0 }
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .parts = parts, .word = profile_word,
	           .words = profile_words },
	.operands = "[-- COMMAND [ARG...]]\nFILE",
	.doc = "Looks at what threads do so many times a second, and shows the functions and lines "
	       "that they were in: native code, Python and the kernel in one stack; with --gpu "
	       "also "
	       "what ran on GPUs, under the code that asked for it. Of a trace file that was "
	       "recorded with --stacks it shows the same."
	       "\vExamples:\n"
	       "  sudo cuscope profile -p 1234 --duration 10s\n"
	       "  sudo cuscope profile --gpu -o train.svg -- python3 train.py\n"
	       "  cuscope profile run.cuscope -o run.html --from 2s --to 2.5s\n"
	       "  cuscope profile --diff before.folded after.folded -o change.svg\n",
};

static bool with_gpu(const struct profile_command *o)
{
	return o->mode == MODE_MERGE || o->mode == MODE_GPU;
}

static bool with_cpu(const struct profile_command *o)
{
	return o->mode == MODE_MERGE || o->mode == MODE_CPU;
}

static unsigned kinds_of(const struct profile_command *o)
{
	if (o->mode == MODE_HOOKS)
		return 1u << WEIGHT_HOOK;
	return (with_cpu(o) ? 1u << WEIGHT_CPU : 0) | (with_gpu(o) ? 1u << WEIGHT_GPU : 0) |
	       (o->stacks.blocked ? 1u << WEIGHT_OFF_CPU : 0);
}

/* ---- writing ------------------------------------------------------------------------------- */

static int write_text(const struct profiling *p, const struct profile_info *info, struct err *err)
{
	const struct table_options table = { .out = stdout,
		                             .width = cli_width(stdout),
		                             .color = cli_color(NULL, stdout) };

	return profile_heaviest(collect_profile(p->collect), info, 0, &table, err);
}

static int write_file(const struct profile_command *o, const struct profiling *p,
                      const struct profile_info *info, struct new_file *file, struct err *err)
{
	const struct profile *profile = collect_profile(p->collect);
	int r = profile_write(profile, info, profile_format_of(o->output), file->out, o->output,
	                      err);

	if (!r)
		profile_say_completeness(profile, o->output);
	return r ? r : cli_settle(file, true, err);
}

static int write_profile(const struct profile_command *o, const struct profiling *p,
                         struct new_file *file, struct err *err)
{
	struct profile_notes notes = { 0 };
	struct collect_figures figures;
	struct profile_info info = { .subject = p->subject,
		                     .begin_ns = p->begin_ns,
		                     .duration_ns = p->duration_ns,
		                     .hostname = p->hostname };
	int r;

	collect_figures(p->collect, &figures);
	if (p->run)
		profile_notes_of_file(p->run, &notes);
	profile_notes_of_tables(&p->walks.unwinder.code, &notes);
	profile_notes_of_lines(&p->walks.names.lines, &notes);
	profile_notes_of_nothing(collect_profile(p->collect), &figures, &o->range, p->run, &notes);
	profile_notes_of(&figures, &notes);
	info.notes = (const char *const *)notes.text;
	info.n_notes = notes.n;
	info.processes = figures.processes;
	if (kinds_of(o) & 1u << WEIGHT_CPU && figures.asked.sample_ns)
		info.rate_hz = (uint32_t)((1000000000 + figures.asked.sample_ns / 2) /
		                          figures.asked.sample_ns);
	r = o->output ? write_file(o, p, &info, file, err) : write_text(p, &info, err);
	profile_notes_free(&notes);
	return r;
}

/* ---- taking one ---------------------------------------------------------------------------- */

/* Gives it what the mode asks for, and the consumers that are to be fed. */
static size_t begin(const struct profile_command *o, struct profiling *p,
                    struct consumer *consumers[2])
{
	struct collect_options collect = { .profile = o->profile };
	size_t n = 0;

	if (with_gpu(o)) {
		collect.work = p->work = work_new(WORK_BYTES_LIVE);
		consumers[n++] = work_consumer(p->work);
	}
	collect.kinds = kinds_of(o);
	consumers[n++] = p->collect = collect_new(&collect);
	return n;
}

static void end(struct profiling *p)
{
	consumer_free(p->collect);
	work_free(p->work);
}

/* Returns the exit status. */
static int take(struct profile_command *o, struct profiling *p, struct err *err)
{
	struct consumer *consumers[2];
	struct capture_options *c = &o->capture;
	struct capture *capture = NULL;
	uint64_t begin_ns;
	int status, r;

	c->target = o->choice.target;
	c->selection.none = !with_gpu(o);
	c->returns = true;
	c->taken = "profile";
	o->stacks.samples = with_cpu(o);
	o->stacks.calls = with_gpu(o)             ? STACK_CALLS_WORK
	                  : o->mode == MODE_HOOKS ? STACK_CALLS_HOOKS
	                                          : 0;
	c->selection.hooks = o->mode == MODE_HOOKS ? &o->hooks : NULL;
	c->stacks = cli_stacks_settle(&o->stacks);
	c->gpu = o->gpu.asked ? &o->gpu.settings : NULL;
	c->in_process = IN_PROCESS_WITH_GPU;
	c->consumers = consumers;
	c->n_consumers = begin(o, p, consumers);
	c->notice = cli_notice;
	r = capture_open(c, &capture, err);
	if (r)
		return EXIT_FAILURE;
	p->begin_ns = clock_of_ns(CLOCK_REALTIME);
	begin_ns = clock_now_ns();
	r = capture_run(capture, err);
	p->duration_ns = clock_now_ns() - begin_ns;
	if (r)
		cli_say("%s", err->text);
	err->text[0] = '\0';
	capture_stack_figures(capture, &p->walks);
	status = capture_finish(capture);
	capture_free(capture);
	return r && !status ? EXIT_FAILURE : status;
}

static int run(struct profile_command *o, struct err *err)
{
	char *subject = cli_target_text(&o->choice.target);
	struct profiling p = { .subject = subject };
	struct new_file file = { 0 };
	int status = EXIT_FAILURE;

	if (o->mode == MODE_DEFAULT)
		o->mode = o->hooks.n ? MODE_HOOKS : o->gpu.asked ? MODE_MERGE : MODE_CPU;
	o->stacks.blocked |= o->mode == MODE_OFF_CPU;
	if (o->output && cli_create(&file, o->output, o->force, o->output_mode, err))
		goto done;
	status = take(o, &p, err);
	if (!p.duration_ns ||
	    ((status == 126 || status == 127) && profile_is_empty(collect_profile(p.collect))))
		cli_settle(&file, false, NULL);
	else if (write_profile(o, &p, &file, err) && !status)
		status = EXIT_FAILURE;
	end(&p);
done:
	free(subject);
	return status;
}

/* ---- of a trace file ------------------------------------------------------------------------- */

/* What the file has stacks for; a sentence where that is less than was asked for. */
static int settle_file_mode(struct profile_command *o, const struct run_info *run, struct err *err)
{
	bool samples = run->stacks.sample_ns != 0,
	     gpu = run->gpu_times && run->stacks.calls & STACK_CALLS_WORK;

	if (o->mode == MODE_DEFAULT)
		o->mode = samples && gpu                    ? MODE_MERGE
		          : gpu                             ? MODE_GPU
		          : !samples && run->stacks.blocked ? MODE_OFF_CPU
		                                            : MODE_CPU;
	o->stacks.blocked |= o->mode == MODE_OFF_CPU;
	if (o->stacks.blocked && !run->stacks.blocked)
		return err_set(err, EINVAL,
		               "%s does not tell where threads were blocked: 'cuscope record "
		               "--stacks=blocked' does",
		               o->trace);
	if (!samples && with_cpu(o))
		return err_set(err, EINVAL,
		               "%s has no samples of stacks: 'cuscope record --stacks' takes them",
		               o->trace);
	if (!gpu && with_gpu(o))
		return err_set(err, EINVAL,
		               "%s has no GPU times with stacks of launches: 'cuscope record "
		               "--gpu --stacks' takes them",
		               o->trace);
	return 0;
}

static int profile_file(struct profile_command *o, struct trace_file *trace, struct err *err)
{
	const struct run_info *run = trace_run(trace);
	struct profiling p = { .subject = run->command ? run->command : o->trace,
		               .hostname = run->hostname,
		               .run = run };
	struct consumer *consumers[2];
	struct new_file file = { 0 };
	int r = settle_file_mode(o, run, err), written;
	size_t n;

	if (!r && o->output)
		r = cli_create(&file, o->output, o->force, o->output_mode, err);
	if (r)
		return r;
	cli_range_times(&o->range, run, &p.begin_ns, &p.duration_ns);
	o->range.cut = true;
	n = begin(o, &p, consumers);
	r = cli_read(trace, &o->range, consumers, n, err);
	if (cli_worth_showing(r)) {
		struct err failure = { 0 };

		written = write_profile(o, &p, &file, &failure);
		if (!r && written) {
			*err = failure;
			r = written;
		}
	} else {
		cli_settle(&file, false, NULL);
	}
	end(&p);
	return r ? r : cli_say_missed(o->trace, run, err);
}

static int run_file(struct profile_command *o, struct err *err)
{
	struct trace_file *trace;
	int r = trace_open(o->trace, &trace, err);

	if (r)
		return EXIT_FAILURE;
	r = profile_file(o, trace, err);
	trace_close(trace);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the command --------------------------------------------------------------------------- */

static int check_trace_options(struct profile_command *o, struct err *err)
{
	const char *given = o->stacks.given          ? o->stacks.given
	                    : o->hooks.n             ? "--hook"
	                    : o->mode == MODE_HOOKS  ? "--mode hooks"
	                    : o->gpu.asked           ? "--gpu"
	                    : o->least_given         ? "--off-cpu=MIN"
	                    : o->capture.duration_ns ? "--duration"
	                    : o->capture.ring_bytes  ? "--ring-size"
	                    : o->capture.without     ? "--without"
	                                             : NULL;

	if (o->choice.given & ~(1u << TARGET_PIDS) || o->command)
		return err_set(err, EINVAL,
		               "%s is a trace file: of its processes --pid chooses some, and it "
		               "goes with no command",
		               o->trace);
	if (given)
		return err_set(err, EINVAL, "%s is for taking a profile: %s has what was recorded",
		               given, o->trace);
	o->range.pids = o->choice.pids;
	o->range.n_pids = o->choice.n_pids;
	return 0;
}

static int check_diff_options(struct profile_command *o, struct err *err)
{
	bool of_targets = o->choice.given || o->command || o->trace || o->gpu.asked;
	bool of_capture = o->capture.duration_ns || o->capture.ring_bytes || o->capture.without;
	bool of_stacks = o->hooks.n || o->stacks.given || o->stacks.blocked ||
	                 o->mode != MODE_DEFAULT || o->profile.per_process ||
	                 o->profile.per_thread || o->profile.functions || o->profile.interpreter;

	if (of_targets || of_capture || of_stacks)
		return err_set(err, EINVAL,
		               "--diff compares two files: it goes with no process, command or "
		               "option of taking a profile");
	o->diff.output = o->output;
	o->diff.output_mode = o->output_mode;
	o->diff.force = o->force;
	return profile_diff_check(&o->diff, err);
}

/* Its time would be counted twice beside that of CPUs, and a moment has none. */
static int check_hooks(const struct profile_command *o, struct err *err)
{
	if (o->mode == MODE_HOOKS && !o->hooks.n)
		return err_set(err, EINVAL, "--mode hooks needs --hook or --hooks: whose time?");
	if (!o->hooks.n)
		return 0;
	if (o->gpu.asked || o->stacks.blocked || (o->mode != MODE_DEFAULT && o->mode != MODE_HOOKS))
		return err_set(err, EINVAL,
		               "a profile of hooks is of their calls alone: it goes with no "
		               "--gpu, --off-cpu or other --mode than hooks");
	return cli_hooks_check_spans(&o->hooks, err);
}

static int check_options(struct profile_command *o, struct err *err)
{
	if (o->output && profile_format_of(o->output) == PROFILE_FORMATS)
		return profile_no_form(o->output, err);
	if (!o->trace && (o->range.has_from || o->range.has_to))
		return err_set(err, EINVAL,
		               "%s is for a trace file, which is none of the arguments",
		               o->range.has_from ? "--from" : "--to");
	if (o->diff.before)
		return check_diff_options(o, err);
	if (o->trace)
		return check_trace_options(o, err);
	if (check_hooks(o, err))
		return err->code;
	if (with_gpu(o) && !o->gpu.asked)
		return err_set(err, EINVAL, "--mode %s needs --gpu, which measures GPU times",
		               modes[o->mode - MODE_MERGE]);
	if (o->stacks.given && !strcmp(o->stacks.given, "--launch-stacks") && !o->gpu.asked &&
	    !o->hooks.n)
		return err_set(err, EINVAL, "--launch-stacks goes with --gpu or --hook");
	return cli_target_settle(&o->choice, o->command, err);
}

int cli_profile(int argc, char **argv)
{
	struct profile_command o = { 0 };
	struct origin origin;
	struct err err = { 0 };
	int status;

	origin_save(&origin);
	cli_stacks_init(&o.stacks);
	option_parse(&options, argc, argv, true, &o);
	o.choice.target.command.origin = &origin;
	cli_ignore_signals();
	if (check_options(&o, &err))
		return cli_refuse(argv[0], &err);
	cli_bound_output(&o.range, o.trace);
	status = o.diff.before ? profile_diff_run(&o.diff, &err)
	         : o.trace     ? run_file(&o, &err)
	                       : run(&o, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	free(o.choice.pids);
	free(o.choice.env);
	hook_list_free(&o.hooks);
	return status;
}
