// SPDX-License-Identifier: MIT
/* The watch tools: one command for each, and one for several on one attachment. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/lines.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/xalloc.h"
#include "base/file.h"
#include "watch/page.h"
#include "watch/page_plot.h"

#define INTERVAL_NS 5000000000ull
#define OLDER_NS    10000000000ull
#define TOP         20
#define RING_BYTES  (16u << 20) /* for what is not summed up: names, stacks, ends of processes */
#define TOP_MOST    1000000

/* ---- what there is ------------------------------------------------------------------------- */

static const struct tool {
	const char *name;
	enum watch_tool tool;
	const char *doc;
} tools[] = {
	{ "memleak", WATCH_MEMORY,
	  "Shows the GPU memory that is live, how old it is and where it was allocated."
	  "\vExamples:\n"
	  "  sudo cuscope memleak -p 1234 --older 1m\n"
	  "  sudo cuscope memleak --stacks -- ./app\n" },
	{ "launches", WATCH_LAUNCHES,
	  "Counts launches by kernel and process, with rates, shapes and times."
	  "\vExamples:\n"
	  "  sudo cuscope launches -p 1234 --interval 1s\n"
	  "  sudo cuscope launches --format json -o launches.jsonl -- ./app\n" },
	{ "bandwidth", WATCH_COPIES,
	  "Sums copies and sets up by process and direction: bytes, rates, sizes."
	  "\vExamples:\n"
	  "  sudo cuscope bandwidth -p 1234 --interval 1s\n"
	  "  sudo cuscope bandwidth -- ./app\n" },
	{ "watch", 0,
	  "Several of memleak, launches and bandwidth on one attachment: LIST names them."
	  "\vExamples:\n"
	  "  sudo cuscope watch memleak,launches -p 1234\n"
	  "  sudo cuscope watch memleak,launches,bandwidth -- ./app\n" },
};
#define TOOLS      (ARRAY_SIZE(tools))
#define WATCH_TOOL (&tools[TOOLS - 1])
#define ALL_TOOLS  (WATCH_MEMORY | WATCH_LAUNCHES | WATCH_COPIES)

static const struct watch_format {
	const char *name;
	void (*print)(const struct watch_page *page, const struct page_options *options,
	              struct buf *out);
	bool screen; /* takes a terminal's whole screen, page after page */
} formats[] = {
	{ "table", page_text, true },
	{ "json", page_json, false },
	{ "classic", page_classic, false }, /* has no hooks */
};
#define FORMATS (ARRAY_SIZE(formats))

struct watch_command {
	const struct tool *tool;
	unsigned chosen; /* enum watch_tool */
	struct target_choice choice;
	struct hook_list hooks;
	struct capture_options capture;
	struct watch_options watch;
	struct page_options look;
	const struct watch_format *format;
	const char *output;
	const char *plot_file;
	mode_t mode;
	bool force, once;
	char **command;
	struct new_file file; /* that output is */
	FILE *out;
	struct places *places; /* with the next: of memleak */
	struct memory_plot *plot;
};

/* ---- options ------------------------------------------------------------------------------- */

enum {
	OPT_INTERVAL = 5000,
	OPT_ONCE,
	OPT_TOP,
	OPT_OLDER,
	OPT_STACKS,
	OPT_PLOT,
	OPT_FORMAT,
	OPT_FORCE,
	OPT_DURATION,
	OPT_TIMEOUT,
	OPT_NO_RETURNS,
	OPT_RING_SIZE,
	OPT_WITHOUT,
	OPT_IN_PROCESS,
	OPT_NO_IN_PROCESS,
};

/* An option is there for the commands that can have one of its tools. */
static const struct {
	unsigned tools;
	struct argp_option option;
} all_options[] = {
	{ ALL_TOOLS, { 0, 0, 0, 0, "What is shown:", 3 } },
	{ ALL_TOOLS, { "interval", OPT_INTERVAL, "TIME", 0, "between two pages (5s)", 0 } },
	{ ALL_TOOLS, { "once", OPT_ONCE, 0, 0, "one page, after one interval, and end", 0 } },
	{ ALL_TOOLS, { "top", OPT_TOP, "N", 0, "rows of each table (20)", 0 } },
	{ WATCH_MEMORY,
	  { "older", OPT_OLDER, "TIME", 0, "only memory that is this old (10s); 0s: all", 0 } },
	{ WATCH_MEMORY, { "stacks", OPT_STACKS, 0, 0, "each stack apart, with every frame", 0 } },
	{ ALL_TOOLS, { 0, 0, 0, 0, "Output:", 4 } },
	{ ALL_TOOLS,
	  { "format", OPT_FORMAT, "NAME", 0,
	    "table (default), json: an object a page, or classic: the lines of gpuprobe-daemon",
	    0 } },
	{ ALL_TOOLS, { "output", 'o', "FILE", 0, "write the pages to FILE", 0 } },
	{ WATCH_MEMORY,
	  { "plot", OPT_PLOT, "FILE", 0, "draw live memory over time, anew with each page (SVG)",
	    0 } },
	{ ALL_TOOLS, { "force", OPT_FORCE, 0, 0, "overwrite a file that exists", 0 } },
	{ ALL_TOOLS, CLI_MODE_OPTION },
	{ ALL_TOOLS, CLI_OLD_MODE_OPTION },
	{ ALL_TOOLS, { 0, 0, 0, 0, "How long, and at what cost:", 5 } },
	{ ALL_TOOLS, { "duration", OPT_DURATION, "TIME", 0, "end after this time (10s, 2m)", 0 } },
	{ ALL_TOOLS,
	  { "timeout", OPT_TIMEOUT, "TIME", 0, "give up when no CUDA library was loaded by then",
	    0 } },
	{ WATCH_LAUNCHES | WATCH_COPIES,
	  { "no-returns", OPT_NO_RETURNS, 0, 0,
	    "half the cost: no times, and calls that fail count as well (not with memleak)", 0 } },
	{ ALL_TOOLS,
	  { "in-process", OPT_IN_PROCESS, 0, 0,
	    "record calls inside of the processes, where that can be, without the traps of probes",
	    0 } },
	{ ALL_TOOLS, { "no-in-process", OPT_NO_IN_PROCESS, 0, 0, "by probes alone (default)", 0 } },
	{ ALL_TOOLS,
	  { "ring-size", OPT_RING_SIZE, "BYTES", 0,
	    "memory of the ring buffers that names and ends of processes come by (16 MiB)", 0 } },
	{ ALL_TOOLS,
	  { "without", OPT_WITHOUT, "LIST", 0,
	    "kernel features not to use, as 'cuscope doctor' names them", 0 } },
};
#define OPTIONS (ARRAY_SIZE(all_options))

static void parse_format(const struct argp_state *state, struct watch_command *c, const char *arg)
{
	for (size_t i = 0; i < FORMATS; i++) {
		if (!strcmp(formats[i].name, arg)) {
			c->format = &formats[i];
			return;
		}
	}
	cli_bad_value(state, "--format", arg, "format (table, json or classic)");
}

static void parse_older(const struct argp_state *state, struct watch_command *c, const char *arg)
{
	if (!parse_duration_ns(arg, &c->watch.older_ns))
		cli_bad_value(state, "--older", arg, "duration (10s, 1m; 0s for all)");
}

static void parse_top(const struct argp_state *state, struct watch_command *c, const char *arg)
{
	uint64_t top;

	if (!parse_number(arg, TOP_MOST, &top) || !top)
		cli_bad_value(state, "--top", arg, "number from 1 to 1000000");
	c->look.top = top;
}

static error_t parse_shown(int key, char *arg, struct argp_state *state)
{
	struct watch_command *c = state->input;

	switch (key) {
	case OPT_INTERVAL:
		c->watch.interval_ns = cli_duration(state, "--interval", arg);
		return 0;
	case OPT_ONCE:
		c->once = true;
		return 0;
	case OPT_TOP:
		parse_top(state, c, arg);
		return 0;
	case OPT_OLDER:
		parse_older(state, c, arg);
		return 0;
	case OPT_STACKS:
		c->look.stacks = true;
		return 0;
	case OPT_PLOT:
		c->plot_file = arg;
		return 0;
	case OPT_FORMAT:
		parse_format(state, c, arg);
		return 0;
	case 'o':
		c->output = arg;
		return 0;
	case OPT_FORCE:
		c->force = true;
		return 0;
	case CLI_OPT_MODE:
		c->mode = cli_parse_mode(state, arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_limits(int key, char *arg, struct argp_state *state)
{
	struct watch_command *c = state->input;

	switch (key) {
	case OPT_DURATION:
		c->capture.duration_ns = cli_duration(state, "--duration", arg);
		return 0;
	case OPT_TIMEOUT:
		c->capture.timeout_ns = cli_duration(state, "--timeout", arg);
		return 0;
	case OPT_NO_RETURNS:
		c->capture.returns = false;
		return 0;
	case OPT_RING_SIZE:
		c->capture.ring_bytes = cli_ring_bytes(state, arg);
		return 0;
	case OPT_WITHOUT:
		c->capture.without = arg;
		return 0;
	case OPT_IN_PROCESS:
	case OPT_NO_IN_PROCESS:
		c->capture.in_process = cli_in_process(key == OPT_IN_PROCESS);
		return 0;
	case ARGP_KEY_END:
		cli_check_in_process(state, &c->capture);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct watch_command *c = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->choice;
		state->child_inputs[1] = &c->choice;
		state->child_inputs[3] = &c->hooks;
		return 0;
	case ARGP_KEY_ARGS: /* what stands after -- or begins with the first word */
		c->command = state->argv + state->next;
		return 0;
	}
	if (parse_shown(key, arg, state) == 0)
		return 0;
	return parse_limits(key, arg, state);
}

static const struct argp_child children[] = { { &cli_process_argp, 0, NULL, 0 },
	                                      { &cli_start_argp, 0, NULL, 0 },
	                                      { &cli_no_gpu_argp, 0, NULL, 0 },
	                                      { &cli_hooks_argp, 0, NULL, 0 },
	                                      { 0 } };

static void parse(struct watch_command *c, int argc, char **argv)
{
	struct argp_option options[OPTIONS + 1] = { 0 };
	const struct argp argp = { .options = options,
		                   .parser = parse_option,
		                   .args_doc = c->tool == WATCH_TOOL ? "LIST [-- COMMAND [ARG...]]"
		                                                     : "[-- COMMAND [ARG...]]",
		                   .doc = c->tool->doc,
		                   .children = children };
	size_t count = 0;

	for (size_t i = 0; i < OPTIONS; i++) {
		if (all_options[i].tools & c->chosen)
			options[count++] = all_options[i].option;
	}
	cli_parse(&argp, argc, argv, true, c);
}

/* "memleak,launches" */
static void parse_list(struct watch_command *c, const char *list)
{
	char *copy = xstrdup(list), *rest = copy, *name;

	while ((name = strsep(&rest, ","))) {
		const char *names[TOOLS - 1], *near;
		size_t i = 0;

		for (; i < TOOLS - 1 && strcmp(tools[i].name, name); i++)
			names[i] = tools[i].name;
		if (i < TOOLS - 1) {
			c->chosen |= tools[i].tool;
			continue;
		}
		near = suggest(name, names, TOOLS - 1);
		fprintf(stderr,
		        "cuscope watch: there is no tool '%s' (memleak, launches, bandwidth)",
		        name);
		if (near)
			fprintf(stderr, "; did you mean '%s'?", near);
		fputc('\n', stderr);
		exit(EXIT_USAGE);
	}
	free(copy);
}

/* ---- pages --------------------------------------------------------------------------------- */

/* As much of a page as the screen has lines for: the last page is whole. */
static void fit_screen(struct buf *text, size_t rows)
{
	size_t line = 0;

	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] != '\n' || ++line + 1 < rows)
			continue;
		text->len = i + 1;
		text->data[text->len] = '\0';
		return;
	}
}

static int draw_plot(struct watch_command *c, const struct watch_page *page, struct err *err)
{
	struct memory_plot_frame frame = { .end_ns = page->time_ns };
	struct buf svg = { 0 };
	int r;

	if (!c->plot)
		c->plot = memory_plot_new(page->begin_ns);
	page_plot(c->plot, page, c->places);
	memory_plot_draw(c->plot, &frame, &svg);
	r = file_replace(c->plot_file, c->mode, &svg, err);
	buf_free(&svg);
	return r;
}

/* Whole, or not at all: a reader that does not read is not waited for when cuscope is to end. */
static int write_page(const struct watch_command *c, bool screen, const struct buf *text,
                      struct err *err)
{
	struct lines lines;
	int r;

	lines_init(&lines, c->out, c->output ? c->output : "the pages");
	if (screen)
		buf_puts(&lines.pending, "\033[H\033[2J");
	buf_add(&lines.pending, text->data, text->len);
	r = lines_flush(&lines, err);
	lines_free(&lines);
	return r;
}

static int show_page(void *data, const struct watch_page *page, struct err *err)
{
	struct watch_command *c = data;
	struct winsize size = { 0 };
	struct buf text = { 0 };
	bool screen;
	int r = 0;

	screen = c->format->screen && isatty(fileno(c->out)) &&
	         ioctl(fileno(c->out), TIOCGWINSZ, &size) == 0 && size.ws_row;
	c->look.width = screen ? size.ws_col : 0;
	c->look.color = screen && !(getenv("NO_COLOR") && *getenv("NO_COLOR"));
	if (page->memory)
		places_take(c->places, page);
	c->format->print(page, &c->look, &text);
	if (screen && !page->last)
		fit_screen(&text, size.ws_row);
	r = new_file_place(&c->file, err);
	if (!r)
		r = write_page(c, screen, &text, err);
	if (!r && c->plot_file)
		r = draw_plot(c, page, err);
	buf_free(&text);
	return r;
}

/* ---- the commands -------------------------------------------------------------------------- */

static int open_output(struct watch_command *c, struct err *err)
{
	c->out = stdout;
	if (!c->output || !strcmp(c->output, "-"))
		return 0;
	if (cli_create(&c->file, c->output, c->force, c->mode, err))
		return err->code;
	c->out = c->file.out;
	return 0;
}

static void begin_places(struct watch_command *c)
{
	if (!(c->chosen & WATCH_MEMORY))
		return;
	c->places = places_new(c->look.stacks);
	c->look.places = c->places;
}

static void end_places(struct watch_command *c)
{
	memory_plot_free(c->plot);
	places_free(c->places);
}

static int check_options(const struct watch_command *c, struct err *err)
{
	if (!c->capture.returns && c->chosen & WATCH_MEMORY)
		return err_set(err, EINVAL,
		               "memleak needs the addresses that calls return, which --no-returns "
		               "does not record");
	if (c->hooks.n && c->format->print == page_classic)
		return err_set(err, EINVAL,
		               "--format classic has no lines for hooks; table and json do");
	return cli_hooks_check(&c->hooks, c->capture.returns, err);
}

static void begin_hooks(struct watch_command *c)
{
	if (!c->hooks.n)
		return;
	c->capture.selection.hooks = &c->hooks;
	c->watch.tools |= WATCH_HOOKS;
}

static int watch(struct watch_command *c, struct err *err)
{
	struct err failure = { 0 };
	int status;

	if (check_options(c, err))
		return EXIT_USAGE;
	if (c->capture.in_process == IN_PROCESS_YES && c->chosen == WATCH_MEMORY) {
		c->capture.in_process = IN_PROCESS_NO;
		cli_say("memleak keeps all probes: they walk the stack of each allocation");
	}
	/* a mistake that would show only at the first page is better told now */
	if ((c->plot_file && file_can_replace(c->plot_file, c->force, err)) || open_output(c, err))
		return EXIT_FAILURE;
	begin_places(c);
	c->watch.tools = c->chosen;
	begin_hooks(c);
	c->watch.stacks = true;
	c->watch.page = show_page;
	c->watch.data = c;
	c->look.returns = c->capture.returns;
	if (c->once) { /* the page at the end is the one */
		c->capture.duration_ns = c->watch.interval_ns;
		c->watch.interval_ns = UINT64_MAX;
	}
	if (!c->format->screen)
		cli_part_command(c->out, &c->choice.target);
	c->capture.target = c->choice.target;
	c->capture.watch = &c->watch;
	status = cli_capture(&c->capture, err);
	end_places(c);
	if (!cli_settle(&c->file, !status, &failure) || status)
		return status;
	*err = failure;
	return EXIT_FAILURE;
}

static int run(struct watch_command *c, int argc, char **argv)
{
	struct origin origin;
	struct err err = { 0 };
	int status;

	origin_save(&origin);
	parse(c, argc, argv);
	c->choice.target.command.origin = &origin;
	cli_ignore_signals();
	signal(SIGCHLD, SIG_DFL); /* ignored, the command would leave no status */
	if (cli_target_settle(&c->choice, c->command, &err)) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return EXIT_USAGE;
	}
	status = watch(c, &err);
	if (err.text[0])
		cli_say("%s", err.text);
	free(c->choice.pids);
	free(c->choice.env);
	hook_list_free(&c->hooks);
	return status;
}

static struct watch_command new_command(const struct tool *tool)
{
	return (struct watch_command){
		.tool = tool,
		.chosen = tool->tool,
		.format = &formats[0],
		.capture = { .returns = true, .ring_bytes = RING_BYTES },
		.watch = { .interval_ns = INTERVAL_NS, .older_ns = OLDER_NS },
		.look = { .top = TOP },
	};
}

int cli_memleak(int argc, char **argv)
{
	struct watch_command c = new_command(&tools[0]);

	return run(&c, argc, argv);
}

int cli_launches(int argc, char **argv)
{
	struct watch_command c = new_command(&tools[1]);

	return run(&c, argc, argv);
}

int cli_bandwidth(int argc, char **argv)
{
	struct watch_command c = new_command(&tools[2]);

	return run(&c, argc, argv);
}

int cli_watch(int argc, char **argv)
{
	struct watch_command c = new_command(WATCH_TOOL);

	if (argc > 1 && argv[1][0] != '-') {
		parse_list(&c, argv[1]);
		argv[1] = argv[0];
		return run(&c, argc - 1, argv + 1);
	}
	c.chosen = ALL_TOOLS;
	if (argc > 1)
		parse(&c, argc, argv); /* --help, or an option before the list */
	fprintf(stderr, "%s: which tools? For example: cuscope watch memleak,launches -p 1234\n",
	        argv[0]);
	return EXIT_USAGE;
}
