// SPDX-License-Identifier: MIT
/* The watch tools: one command for each, and one for several on one attachment. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/lines.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "base/file.h"
#include "gpus/gpus.h"
#include "watch/page.h"

#define INTERVAL_NS 5000000000ull
#define OLDER_NS    10000000000ull
#define TOP         20
#define RING_BYTES  (16u << 20) /* for what is not summed up: names, stacks, ends of processes */
#define TOP_MOST    1000000

#define GPUS_INTERVAL_NS 1000000000ull
#define GPUS_PATIENCE_NS 2000000000ull /* for the first reading, which tells who is older */

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

enum watch_form { FORMAT_TABLE, FORMAT_JSON, FORMAT_CLASSIC };

static const char *const format_names[] = { "table", "json", "classic", NULL };

static const struct watch_format {
	void (*print)(const struct watch_page *page, const struct page_options *options,
	              struct buf *out);
	bool screen; /* takes a terminal's whole screen, page after page */
} formats[] = {
	[FORMAT_TABLE] = { page_text, true },
	[FORMAT_JSON] = { page_json, false },
	[FORMAT_CLASSIC] = { page_classic, false }, /* has no hooks */
};

struct watch_command {
	const struct tool *tool;
	unsigned chosen; /* enum watch_tool */
	struct target_choice choice;
	struct hook_list hooks;
	struct capture_options capture;
	struct watch_options watch;
	struct page_options look;
	enum watch_form form;
	const char *output;
	const char *plot_file;
	mode_t mode;
	bool force, once;
	char **command;
	struct new_file file; /* that output is */
	FILE *out;
	struct places *places; /* with the next: of memleak */
	struct memory_plot *plot;
	struct gpus *gpus;
	struct gpus_sample sample; /* of the GPUs, the last one */
	bool read;                 /* there was one */
};

/* ---- options ------------------------------------------------------------------------------- */

/* An option is there for the commands that can have one of its tools. */
#define OPTION_OF(name) offsetof(struct watch_command, name)
static const struct {
	unsigned tools;
	struct option_row row;
} all_rows[] = {
	{ ALL_TOOLS, { .title = "What is shown:", .order = 3 } },
	{ ALL_TOOLS,
	  { "interval", 0, "TIME", "between two pages (5s)", OPTION_TIME,
	    OPTION_OF(watch.interval_ns), .least = 1, .most = OPTION_ANY } },
	{ ALL_TOOLS,
	  { "once", 0, NULL, "one page, after one interval, and end", OPTION_YES,
	    OPTION_OF(once) } },
	{ ALL_TOOLS,
	  { "top", 0, "N", "rows of each table (20)", OPTION_NUMBER, OPTION_OF(look.top),
	    .least = 1, .most = TOP_MOST } },
	{ WATCH_MEMORY,
	  { "older", 0, "TIME", "only memory that is this old (10s); 0s: all", OPTION_TIME,
	    OPTION_OF(watch.older_ns), .most = OPTION_ANY,
	    .is_no = "duration (10s, 1m; 0s for all)" } },
	{ WATCH_MEMORY,
	  { "stacks", 0, NULL, "each stack apart, with every frame", OPTION_YES,
	    OPTION_OF(look.stacks) } },
	{ ALL_TOOLS, { .title = "Output:", .order = 4 } },
	{ ALL_TOOLS,
	  { "format", 0, "NAME",
	    "table (default), json: an object a page, or classic: the lines of gpuprobe-daemon",
	    OPTION_WORD, OPTION_OF(form), .words = format_names, .is_no = "format" } },
	{ ALL_TOOLS,
	  { "output", 'o', "FILE", "write the pages to FILE", OPTION_TEXT, OPTION_OF(output) } },
	{ WATCH_MEMORY,
	  { "plot", 0, "FILE", "draw live memory over time, anew with each page (SVG)", OPTION_TEXT,
	    OPTION_OF(plot_file) } },
	{ ALL_TOOLS, CLI_FORCE_ROW(struct watch_command, force, "overwrite a file that exists") },
	{ ALL_TOOLS, CLI_MODE_ROW(struct watch_command, mode) },
	{ ALL_TOOLS, { .title = "How long, and at what cost:", .order = 5 } },
	{ ALL_TOOLS, CLI_DURATION_ROW(struct watch_command, capture.duration_ns) },
	{ ALL_TOOLS, CLI_TIMEOUT_ROW(struct watch_command, capture.timeout_ns) },
	{ WATCH_LAUNCHES | WATCH_COPIES,
	  { "no-returns", 0, NULL,
	    "half the cost: no times, and calls that fail count as well (not with memleak)",
	    OPTION_NO, OPTION_OF(capture.returns) } },
	{ ALL_TOOLS, CLI_IN_PROCESS_ROW(struct watch_command, capture.in_process) },
	{ ALL_TOOLS, CLI_NO_IN_PROCESS_ROW(struct watch_command, capture.in_process,
	                                   "by probes alone (default)") },
	{ ALL_TOOLS, CLI_RING_SIZE_ROW(struct watch_command, capture.ring_bytes,
	                               "memory of the ring buffers that names and ends of "
	                               "processes come by (16 MiB)") },
	{ ALL_TOOLS, CLI_WITHOUT_ROW(struct watch_command, capture.without) },
};
#define ROWS (ARRAY_SIZE(all_rows))

static void watch_words(void *into, char **words, size_t count)
{
	((struct watch_command *)into)->command = words;
}

static void watch_end(const struct argp_state *state, void *into)
{
	cli_check_in_process(state, &((struct watch_command *)into)->capture);
}

static const struct option_part parts[] = { { &cli_process_options, OPTION_OF(choice) },
	                                    { &cli_start_options, OPTION_OF(choice) },
	                                    { &cli_no_gpu_options, 0 },
	                                    { &cli_hooks_options, OPTION_OF(hooks) },
	                                    { 0 } };

/* The options of the tools that are chosen, in `rows`. */
static struct option_command options_of(const struct watch_command *c, struct option_row *rows)
{
	struct option_command options = {
		.group = { .rows = rows, .parts = parts, .words = watch_words, .end = watch_end },
		.operands = c->tool == WATCH_TOOL ? "LIST [-- COMMAND [ARG...]]"
		                                  : "[-- COMMAND [ARG...]]",
		.doc = c->tool->doc,
	};

	for (size_t i = 0; i < ROWS; i++) {
		if (all_rows[i].tools & c->chosen)
			rows[options.group.n_rows++] = all_rows[i].row;
	}
	return options;
}

static void parse(struct watch_command *c, int argc, char **argv)
{
	struct option_row rows[ROWS];
	struct option_command options = options_of(c, rows);

	option_parse(&options, argc, argv, true, c);
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

/*
 * Takes LIST out of the words, wherever it stands among the options. False: there is none, or an
 * option that does not exist, whose value would be taken for it.
 */
static bool take_list(struct watch_command *c, int argc, char **argv)
{
	struct option_row rows[ROWS];
	struct unknown_option unknown;
	struct option_command options;
	int at;

	c->chosen = ALL_TOOLS;
	options = options_of(c, rows);
	at = scan_first_word(&options.group, argc, argv);
	if (at == argc || !scan_options(&options.group, argc, argv, true, &unknown))
		return false;
	c->chosen = 0;
	parse_list(c, argv[at]);
	memmove(argv + 1, argv, (size_t)at * sizeof(*argv));
	return true;
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
	AT_END(buf_free) struct buf svg = { 0 };

	if (!c->plot)
		c->plot = memory_plot_new(page->begin_ns);
	page_plot(c->plot, page, c->places);
	memory_plot_draw(c->plot, &frame, &svg);
	return file_replace(c->plot_file, c->mode, &svg, err);
}

/* Whole, or not at all: a reader that does not read is not waited for when cuscope is to end. */
static int write_page(const struct watch_command *c, bool screen, const struct buf *text,
                      struct err *err)
{
	AT_END(lines_free) struct lines lines;

	lines_init(&lines, c->out, c->output ? c->output : "the pages");
	if (screen)
		buf_puts(&lines.pending, "\033[H\033[2J");
	buf_add(&lines.pending, text->data, text->len);
	return lines_flush(&lines, err);
}

/* NULL: nothing is known. The first reading tells who is older than the watch. */
static const struct gpus_sample *read_gpus(struct watch_command *c, uint64_t patience_ns)
{
	if (!c->gpus || !gpus_read(c->gpus, patience_ns, &c->sample) || *c->sample.why)
		return NULL;
	if (!c->read)
		places_begin(c->places, &c->sample);
	c->read = true;
	return &c->sample;
}

static int show_page(void *data, const struct watch_page *page, struct err *err)
{
	struct watch_command *c = data;
	struct winsize size = { 0 };
	AT_END(buf_free) struct buf text = { 0 };
	bool screen;
	int r = 0;

	screen = formats[c->form].screen && isatty(fileno(c->out)) &&
	         ioctl(fileno(c->out), TIOCGWINSZ, &size) == 0 && size.ws_row;
	c->look.width = screen ? size.ws_col : 0;
	c->look.color = screen && !(getenv("NO_COLOR") && *getenv("NO_COLOR"));
	if (page->memory)
		places_take(c->places, page, read_gpus(c, 0));
	formats[c->form].print(page, &c->look, &text);
	if (screen && !page->last)
		fit_screen(&text, size.ws_row);
	r = new_file_place(&c->file, err);
	if (!r)
		r = write_page(c, screen, &text, err);
	if (!r && c->plot_file)
		r = draw_plot(c, page, err);
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
	c->gpus = gpus_new(GPUS_INTERVAL_NS);
	/* Before a command begins: of what runs already nothing is missed meanwhile. */
	read_gpus(c, c->choice.target.kind == TARGET_COMMAND ? GPUS_PATIENCE_NS : 0);
}

static void end_places(struct watch_command *c)
{
	gpus_free(c->gpus);
	memory_plot_free(c->plot);
	places_free(c->places);
}

static int check_options(const struct watch_command *c, struct err *err)
{
	if (!c->capture.returns && c->chosen & WATCH_MEMORY)
		return err_set(err, EINVAL,
		               "memleak needs the addresses that calls return, which --no-returns "
		               "does not record");
	if (c->hooks.n && formats[c->form].print == page_classic)
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
	if (!formats[c->form].screen)
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
	if (cli_target_settle(&c->choice, c->command, &err))
		return cli_refuse(argv[0], &err);
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

	if (take_list(&c, argc, argv))
		return run(&c, argc - 1, argv + 1);
	if (argc > 1)
		parse(&c, argc, argv); /* --help, or a mistake */
	fprintf(stderr, "%s: which tools? For example: cuscope watch memleak,launches -p 1234\n",
	        argv[0]);
	return EXIT_USAGE;
}
