// SPDX-License-Identifier: MIT
/* `cuscope profile`: in which functions and lines the time goes. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "capture/stacks/sampler.h"
#include "profile/collect.h"
#include "profile/profile_write.h"
#include "trace/consumers.h"

#define DEFAULT_HZ 49
#define MOST_HZ    2000
#define NOTES_MAX  12
#define LAUNCHES   1000 /* walked a second of each thread */

enum profile_mode {
	MODE_DEFAULT, /* merge with --gpu, cpu without */
	MODE_MERGE,   /* time on CPUs, and on GPUs under the stacks that asked for it */
	MODE_GPU,
	MODE_CPU,
};

struct profile_command {
	struct target_choice choice;
	struct capture_options capture;
	char **command; /* NULL: none */
	struct profile_options profile;
	struct cli_gpu gpu;
	struct capture_stacks stacks;
	enum profile_mode mode;
	const char *output;
	uint64_t hz;
	mode_t output_mode;
	bool force;
};

/* A profile while it is taken. */
struct profiling {
	struct consumer *collect;
	struct work *work;    /* NULL: no calls are asked about */
	uint64_t begin_ns;    /* since 1970 */
	uint64_t duration_ns; /* 0: it did not begin */
};

/* ---- options ------------------------------------------------------------------------------- */

enum {
	OPT_FORCE = 5000,
	OPT_MODE,
	OPT_LAUNCH_STACKS,
	OPT_PER_PROCESS,
	OPT_PER_THREAD,
	OPT_OUTPUT_MODE,
	OPT_DURATION,
	OPT_RING_SIZE,
	OPT_WITHOUT,
};

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "What is profiled, and where it goes:", 3 },
	{ "output", 'o', "FILE", 0, "the profile, in a form by its ending (default: text)", 0 },
	{ "force", OPT_FORCE, 0, 0, "overwrite FILE", 0 },
	{ "output-mode", OPT_OUTPUT_MODE, "BITS", 0, "of FILE, in octal digits (default: 0600)",
	  0 },
	{ "mode", OPT_MODE, "MODE", 0,
	  "cpu: time on CPUs; gpu: time on GPUs, under the stacks that asked for it (--gpu); "
	  "merge: both (default with --gpu)",
	  0 },
	{ "launch-stacks", OPT_LAUNCH_STACKS, "SHARE", 0,
	  "of which launches and copies stacks are walked: all, 1/N, or so many a second of each "
	  "thread (default: 1000)",
	  0 },
	{ "frequency", 'F', "HZ", 0, "samples a second of each CPU (default: 49)", 0 },
	{ "per-process", OPT_PER_PROCESS, 0, 0, "processes apart", 0 },
	{ "per-thread", OPT_PER_THREAD, 0, 0, "processes and their threads apart", 0 },
	{ 0, 0, 0, 0, "How long, and by what:", 5 },
	{ "duration", OPT_DURATION, "TIME", 0, "end after this time (10s, 2m)", 0 },
	{ "ring-size", OPT_RING_SIZE, "BYTES", 0,
	  "memory of all ring buffers together (8 MiB for each CPU)", 0 },
	{ "without", OPT_WITHOUT, "LIST", 0,
	  "kernel features not to use, as 'cuscope doctor' names them", 0 },
	{ 0 }
};

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct profile_command *o = state->input;

	switch (key) {
	case OPT_DURATION:
		o->capture.duration_ns = cli_duration(state, "--duration", arg);
		return 0;
	case OPT_RING_SIZE:
		o->capture.ring_bytes = cli_ring_bytes(state, arg);
		return 0;
	case OPT_WITHOUT:
		o->capture.without = arg;
		return 0;
	case ARGP_KEY_ARGS: /* what stands after -- or begins with the first word */
		o->command = state->argv + state->next;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static enum profile_mode parse_mode(const struct argp_state *state, const char *arg)
{
	if (!strcmp(arg, "merge"))
		return MODE_MERGE;
	if (!strcmp(arg, "gpu"))
		return MODE_GPU;
	if (strcmp(arg, "cpu"))
		cli_bad_value(state, "--mode", arg, "mode (merge, gpu, cpu)");
	return MODE_CPU;
}

static void parse_launch_stacks(const struct argp_state *state, struct capture_stacks *stacks,
                                const char *arg)
{
	uint64_t number;

	stacks->one_in = 1;
	stacks->call_ns = 0;
	if (!strcmp(arg, "all"))
		return;
	if (!strncmp(arg, "1/", 2) && parse_number(arg + 2, UINT32_MAX, &number) && number)
		stacks->one_in = (uint32_t)number;
	else if (parse_number(arg, 1000000, &number) && number)
		stacks->call_ns = 1000000000 / number;
	else
		cli_bad_value(state, "--launch-stacks", arg,
		              "share (all, 1/N, or a number a second from 1 to 1000000)");
}

static error_t parse_what(int key, char *arg, struct argp_state *state)
{
	struct profile_command *o = state->input;

	switch (key) {
	case OPT_MODE:
		o->mode = parse_mode(state, arg);
		return 0;
	case OPT_LAUNCH_STACKS:
		parse_launch_stacks(state, &o->stacks, arg);
		return 0;
	case OPT_PER_PROCESS:
		o->profile.per_process = true;
		return 0;
	case OPT_PER_THREAD:
		o->profile.per_thread = true;
		return 0;
	}
	return parse_run(key, arg, state);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct profile_command *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &o->choice;
		state->child_inputs[2] = &o->gpu;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_OUTPUT_MODE:
		o->output_mode = cli_parse_mode(state, "--output-mode", arg);
		return 0;
	case 'F':
		if (!parse_number(arg, MOST_HZ, &o->hz) || !o->hz)
			cli_bad_value(state, "--frequency", arg, "number from 1 to 2000");
		return 0;
	}
	return parse_what(key, arg, state);
}

static const struct argp_child children[] = { { &cli_process_argp, 0, NULL, 0 },
	                                      { &cli_start_argp, 0, NULL, 0 },
	                                      { &cli_gpu_argp, 0, NULL, 0 },
	                                      { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[-- COMMAND [ARG...]]",
	.doc = "Looks at what threads do so many times a second, and shows the functions and lines "
	       "that they were in: native code, Python and the kernel in one stack; with --gpu "
	       "also "
	       "what ran on GPUs, under the code that asked for it."
	       "\vExamples:\n"
	       "  sudo cuscope profile -p 1234 --duration 10s\n"
	       "  sudo cuscope profile --gpu -o train.svg -- python3 train.py\n",
	.children = children,
};

/* ---- what is said of it -------------------------------------------------------------------- */

static void notice(void *data, const char *text)
{
	cli_say("%s", text);
}

struct notes {
	char *text[NOTES_MAX];
	size_t n;
};

__attribute__((format(printf, 3, 4))) static void note(struct notes *notes, uint64_t count,
                                                       const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (!count || notes->n == NOTES_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	notes->text[notes->n++] = xstrdup(text);
}

static void note_figures(struct notes *notes, const struct sampler_figures *f)
{
	const struct unwinder_figures *u = &f->unwinder;

	note(notes, u->code.tables_ever,
	     "Unwind tables: of %llu files, %.1f MiB, made in %.0f ms beside the program",
	     (unsigned long long)u->code.tables_ever, (double)u->code.bytes_most / (1 << 20),
	     (double)u->code.ns / 1e6);

	note(notes, f->without_slot, "%llu samples came where no stack could be walked",
	     (unsigned long long)f->without_slot);
	note(notes, f->without_stack, "%llu samples are without their stacks, which were lost",
	     (unsigned long long)f->without_stack);
	note(notes, u->without_room, "%llu processes were more than stacks are walked of",
	     (unsigned long long)u->without_room);
	note(notes, u->code.without_room,
	     "%llu files had no room for their unwind tables: stacks end there",
	     (unsigned long long)u->code.without_room);
	note(notes, u->unknown_python,
	     "%llu processes run a Python whose frames are not read (3.9 to 3.14 are, but for "
	     "debug "
	     "and free-threaded builds)",
	     (unsigned long long)u->unknown_python);
	note(notes, f->names.python_lost, "%llu frames of Python have no name",
	     (unsigned long long)f->names.python_lost);
	note(notes, f->names.refused, "%llu names and stacks had no room",
	     (unsigned long long)f->names.refused);
}

static void note_gpu(struct notes *notes, const struct collect_figures *f)
{
	double all = f->gpu_ns ? (double)f->gpu_ns / 100 : 1;

	note(notes, f->gpu_guessed_ns,
	     "%.1f %% of the GPU time is of launches whose stack was not walked: it stands where "
	     "that "
	     "of the same kernel's others does (--launch-stacks)",
	     (double)f->gpu_guessed_ns / all);
	note(notes, f->gpu_ns - f->gpu_walked_ns - f->gpu_guessed_ns,
	     "%.1f %% of the GPU time is of launches that no stack is known for",
	     (double)(f->gpu_ns - f->gpu_walked_ns - f->gpu_guessed_ns) / all);
	note(notes, f->pairs_refused,
	     "%llu activities had no room to be told apart by their stacks",
	     (unsigned long long)f->pairs_refused);
}

static void note_lost(struct notes *notes, const uint64_t lost[LOST_COUNT])
{
	for (size_t i = 0; i < LOST_COUNT; i++)
		note(notes, lost[i], "lost: %llu: %s", (unsigned long long)lost[i],
		     lost_reason_text((enum lost_reason)i));
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
	int r = profile_write(collect_profile(p->collect), info, profile_format_of(o->output),
	                      file->out, o->output, err);

	return r ? r : cli_settle(file, true, err);
}

static int write_profile(const struct profile_command *o, const struct profiling *p,
                         const struct notes *notes, struct new_file *file, struct err *err)
{
	char *subject = cli_target_text(&o->choice.target);
	struct collect_figures figures;
	struct profile_info info = { .subject = subject,
		                     .begin_ns = p->begin_ns,
		                     .duration_ns = p->duration_ns,
		                     .rate_hz = o->mode == MODE_GPU ? 0 : (uint32_t)o->hz,
		                     .notes = (const char *const *)notes->text,
		                     .n_notes = notes->n };
	int r;

	collect_figures(p->collect, &figures);
	info.processes = figures.processes;
	r = o->output ? write_file(o, p, &info, file, err) : write_text(p, &info, err);

	free(subject);
	return r;
}

/* ---- the command --------------------------------------------------------------------------- */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void look_back(const struct profiling *p, struct capture *capture, struct notes *notes)
{
	struct collect_figures collected;
	struct sampler_figures figures;
	struct capture_state state;

	collect_figures(p->collect, &collected);
	note_gpu(notes, &collected);
	if (capture_stack_figures(capture, &figures))
		note_figures(notes, &figures);
	capture_state(capture, &state);
	note_lost(notes, state.lost);
}

/* Returns the exit status; what was missed goes into `notes`. */
static int take(struct profile_command *o, struct profiling *p, struct notes *notes,
                struct err *err)
{
	struct consumer *consumers[] = { p->collect, p->collect };
	struct capture_options *c = &o->capture;
	struct capture *capture = NULL;
	uint64_t begin_ns;
	int status, r;

	if (p->work)
		consumers[0] = work_consumer(p->work);
	c->target = o->choice.target;
	c->selection.none = o->mode == MODE_CPU;
	c->returns = true;
	c->stacks = &o->stacks;
	c->gpu = o->gpu.asked ? &o->gpu.settings : NULL;
	c->consumers = consumers + !p->work;
	c->n_consumers = 1 + !!p->work;
	c->notice = notice;
	r = capture_open(c, &capture, err);
	if (r)
		return EXIT_FAILURE;
	p->begin_ns = now_ns(CLOCK_REALTIME);
	begin_ns = now_ns(CLOCK_MONOTONIC);
	r = capture_run(capture, err);
	p->duration_ns = now_ns(CLOCK_MONOTONIC) - begin_ns;
	if (r)
		cli_say("%s", err->text);
	err->text[0] = '\0';
	look_back(p, capture, notes);
	status = capture_finish(capture);
	capture_free(capture);
	return r && !status ? EXIT_FAILURE : status;
}

static void settle_mode(struct profile_command *o)
{
	if (o->mode == MODE_DEFAULT)
		o->mode = o->gpu.asked ? MODE_MERGE : MODE_CPU;
	o->stacks.sample_ns = o->mode == MODE_GPU ? 0 : 1000000000 / o->hz;
	o->stacks.calls = o->mode != MODE_CPU;
}

static int run(struct profile_command *o, struct err *err)
{
	struct collect_options collect = { .profile = o->profile };
	struct profiling p = { 0 };
	struct notes notes = { 0 };
	struct new_file file = { 0 };
	int status;

	if (o->output && cli_create(&file, o->output, o->force, o->output_mode, err))
		return EXIT_FAILURE;
	settle_mode(o);
	if (o->mode != MODE_CPU)
		collect.work = p.work = work_new(WORK_BYTES_LIVE);
	collect.kinds = o->mode == MODE_GPU ? 1u << WEIGHT_GPU : WEIGHTS_ALL;
	p.collect = collect_new(&collect);
	status = take(o, &p, &notes, err);
	if (!p.duration_ns)
		cli_settle(&file, false, NULL);
	else if (write_profile(o, &p, &notes, &file, err) && !status)
		status = EXIT_FAILURE;
	consumer_free(p.collect);
	work_free(p.work);
	for (size_t i = 0; i < notes.n; i++)
		free(notes.text[i]);
	return status;
}

static int check_options(struct profile_command *o, struct err *err)
{
	if (o->output && profile_format_of(o->output) == PROFILE_FORMATS)
		return err_set(err, EINVAL, "--output: no form of a profile has the ending of '%s'",
		               o->output);
	if (!o->gpu.asked && (o->mode == MODE_GPU || o->mode == MODE_MERGE))
		return err_set(err, EINVAL,
		               "--mode %s needs --gpu, which measures what ran on the GPU",
		               o->mode == MODE_GPU ? "gpu" : "merge");
	return cli_target_settle(&o->choice, o->command, err);
}

int cli_profile(int argc, char **argv)
{
	struct profile_command o = { .hz = DEFAULT_HZ,
		                     .stacks = { .one_in = 1, .call_ns = 1000000000 / LAUNCHES } };
	struct origin origin;
	struct err err = { 0 };
	int status;

	origin_save(&origin);
	cli_parse(&argp, argc, argv, true, &o);
	o.choice.target.command.origin = &origin;
	cli_ignore_signals();
	signal(SIGCHLD, SIG_DFL); /* ignored, the command would leave no status */
	if (check_options(&o, &err)) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return EXIT_USAGE;
	}
	status = run(&o, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	free(o.choice.pids);
	free(o.choice.env);
	return status;
}
