// SPDX-License-Identifier: MIT
/* `cuscope profile`: in which functions and lines the time goes. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "capture/stacks/sampler.h"
#include "profile/profile_write.h"

#define DEFAULT_HZ 49
#define MOST_HZ    2000
#define NOTES_MAX  8

struct profile_command {
	struct target_choice choice;
	struct capture_options capture;
	char **command; /* NULL: none */
	struct profile_options profile;
	const char *output;
	uint64_t hz;
	mode_t mode;
	bool force;
};

/* A profile while it is taken. */
struct profiling {
	struct consumer consumer; /* first */
	struct profile *profile;
	uint64_t begin_ns, end_ns; /* since 1970 */
	uint32_t processes;
	uint64_t lost[LOST_COUNT];
};

/* ---- options ------------------------------------------------------------------------------- */

enum {
	OPT_FORCE = 5000,
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

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct profile_command *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &o->choice;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_OUTPUT_MODE:
		o->mode = cli_parse_mode(state, arg);
		return 0;
	case 'F':
		if (!parse_number(arg, MOST_HZ, &o->hz) || !o->hz)
			cli_bad_value(state, "--frequency", arg, "number from 1 to 2000");
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

static const struct argp_child children[] = { { &cli_process_argp, 0, NULL, 0 },
	                                      { &cli_start_argp, 0, NULL, 0 },
	                                      { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[-- COMMAND [ARG...]]",
	.doc = "Looks at what threads do so many times a second, and shows the functions and lines "
	       "that they were in: native code, Python and the kernel in one stack."
	       "\vExamples:\n"
	       "  sudo cuscope profile -p 1234 --duration 10s\n"
	       "  sudo cuscope profile -o train.folded -- python3 train.py\n",
	.children = children,
};

/* ---- taking samples ------------------------------------------------------------------------ */

static int on_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct profiling *p = (struct profiling *)self;

	p->begin_ns = run->begin_ns + (uint64_t)run->realtime_offset_ns;
	return 0;
}

static int on_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct profiling *p = (struct profiling *)self;

	p->processes += event->type == EVENT_PROCESS;
	if (event->type == EVENT_SAMPLE)
		profile_add(p->profile,
		            &(struct profile_sample){ .kind = event->sample->kind == SAMPLE_OFF_CPU
		                                                      ? WEIGHT_OFF_CPU
		                                                      : WEIGHT_CPU,
		                                      .ns = event->sample->weight_ns,
		                                      .stack = event->sample->stack,
		                                      .process = event->process,
		                                      .tid = event->tid });
	return 0;
}

static int on_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct profiling *p = (struct profiling *)self;

	p->end_ns = run->end_ns + (uint64_t)run->realtime_offset_ns;
	memcpy(p->lost, run->lost, sizeof(p->lost));
	return 0;
}

static void on_free(struct consumer *self)
{
}

static const struct consumer_ops profiling_ops = {
	.begin = on_begin, .event = on_event, .end = on_end, .free = on_free
};

static void notice(void *data, const char *text)
{
	cli_say("%s", text);
}

/* ---- what is said of it -------------------------------------------------------------------- */

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

	return profile_heaviest(p->profile, info, 0, &table, err);
}

static int write_file(const struct profile_command *o, const struct profiling *p,
                      const struct profile_info *info, struct new_file *file, struct err *err)
{
	int r = profile_write(p->profile, info, profile_format_of(o->output), file->out, o->output,
	                      err);

	return r ? r : cli_settle(file, true, err);
}

static int write_profile(const struct profile_command *o, const struct profiling *p,
                         const struct notes *notes, struct new_file *file, struct err *err)
{
	char *subject = cli_target_text(&o->choice.target);
	const struct profile_info info = { .subject = subject,
		                           .begin_ns = p->begin_ns,
		                           .duration_ns = p->end_ns - p->begin_ns,
		                           .rate_hz = (uint32_t)o->hz,
		                           .processes = p->processes,
		                           .notes = (const char *const *)notes->text,
		                           .n_notes = notes->n };
	int r = o->output ? write_file(o, p, &info, file, err) : write_text(p, &info, err);

	free(subject);
	return r;
}

/* ---- the command --------------------------------------------------------------------------- */

/* Returns the exit status; what was missed goes into `notes`. */
static int take(struct profile_command *o, struct profiling *p, struct notes *notes,
                struct err *err)
{
	const struct capture_stacks stacks = { .sample_ns = 1000000000 / o->hz };
	struct consumer *consumers[] = { &p->consumer };
	struct capture_options *c = &o->capture;
	struct sampler_figures figures;
	struct capture *capture = NULL;
	int status, r;

	c->target = o->choice.target;
	c->selection.none = true;
	c->stacks = &stacks;
	c->consumers = consumers;
	c->n_consumers = 1;
	c->notice = notice;
	r = capture_open(c, &capture, err);
	if (r)
		return EXIT_FAILURE;
	r = capture_run(capture, err);
	if (r)
		cli_say("%s", err->text);
	err->text[0] = '\0';
	if (capture_stack_figures(capture, &figures))
		note_figures(notes, &figures);
	status = capture_finish(capture);
	capture_free(capture);
	return r && !status ? EXIT_FAILURE : status;
}

static int run(struct profile_command *o, struct err *err)
{
	struct profiling p = { .consumer.ops = &profiling_ops };
	struct notes notes = { 0 };
	struct new_file file = { 0 };
	int status;

	if (o->output && cli_create(&file, o->output, o->force, o->mode, err))
		return EXIT_FAILURE;
	p.profile = profile_new(&o->profile);
	status = take(o, &p, &notes, err);
	note_lost(&notes, p.lost);
	if (!p.end_ns)
		cli_settle(&file, false, NULL);
	else if (write_profile(o, &p, &notes, &file, err) && !status)
		status = EXIT_FAILURE;
	profile_free(p.profile);
	for (size_t i = 0; i < notes.n; i++)
		free(notes.text[i]);
	return status;
}

static int check_options(struct profile_command *o, struct err *err)
{
	if (o->output && profile_format_of(o->output) == PROFILE_FORMATS)
		return err_set(err, EINVAL, "--output: no form of a profile has the ending of '%s'",
		               o->output);
	return cli_target_settle(&o->choice, o->command, err);
}

int cli_profile(int argc, char **argv)
{
	struct profile_command o = { .hz = DEFAULT_HZ };
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
