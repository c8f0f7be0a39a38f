// SPDX-License-Identifier: MIT
/* `cuscope top`: a screen of all processes. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "node/account.h"
#include "node/address.h"
#include "node/config.h"
#include "node/http.h"
#include "page/page.h"
#include "top/top_screen.h"

#define INTERVAL_NS       1000000000ull
#define INTERVAL_LEAST_NS 100000000ull
#define INTERVAL_MOST_NS  3600000000000ull

struct top_options {
	struct cli_attach attach;
	struct cli_stacks stacks; /* of --why */
	struct top_screen_options screen;
	const char *command_output;
	const char *listen, *certificate, *key, *token; /* of --web; listen NULL: without it */
	struct http *http;
	enum { TOP_TEXT, TOP_JSON } form;
	mode_t mode;
	bool force;
	struct new_file file; /* that it goes to */
};

/* What --web serves. */
struct web {
	struct node_settings settings;
	struct buf html, policy;
	struct http_page page;
};

/* ---- options ------------------------------------------------------------------------------- */

static const char *const forms[] = { "text", "json", NULL };

#define WEB_ADDRESS "127.0.0.1:9878"

static bool top_take_web(const struct argp_state *state, void *to, const char *value)
{
	struct address address;

	*(const char **)to = value ? value : WEB_ADDRESS;
	return !value || address_parse(value, &address);
}

static const struct option_row rows[] = {
	{ .title = "In a browser:", .order = 4 },
	{ "web", 0, "ADDRESS:PORT",
	  "no screen: a page for browsers, by default at http://" WEB_ADDRESS "/", OPTION_TAKE,
	  offsetof(struct top_options, listen), .take = top_take_web,
	  .is_no = "address with a port (127.0.0.1:9878, [::1]:9878)", .optional = true },
	{ "tls-cert", 0, "FILE",
	  "with --web: the certificate; what is not loopback needs all three", OPTION_TEXT,
	  offsetof(struct top_options, certificate) },
	{ "tls-key", 0, "FILE", "with --web: its key", OPTION_TEXT,
	  offsetof(struct top_options, key) },
	{ "token-file", 0, "FILE", "with --web: the password that browsers are asked for",
	  OPTION_TEXT, offsetof(struct top_options, token) },
	{ .title = "The screen:", .order = 3 },
	{ "interval", 0, "TIME", "time between two pages (500ms, 2s; 1s)", OPTION_TIME,
	  offsetof(struct top_options, screen.interval_ns), .least = INTERVAL_LEAST_NS,
	  .most = INTERVAL_MOST_NS },
	{ "why", 0, NULL,
	  "also what 'cuscope why' says, of the last ten seconds again and again: records what it "
	  "does, inside of the programs as well",
	  OPTION_YES, offsetof(struct top_options, screen.why) },
	{ "once", 0, NULL, "wait one interval, print one page, end", OPTION_YES,
	  offsetof(struct top_options, screen.once) },
	{ "format", 0, "NAME", "with --once: text (default) or json", OPTION_WORD,
	  offsetof(struct top_options, form), .words = forms, .is_no = "format" },
	{ "command-output", 0, "FILE",
	  "what a command that is started prints goes to FILE and not to /dev/null", OPTION_TEXT,
	  offsetof(struct top_options, command_output) },
	CLI_FORCE_ROW(struct top_options, force, "overwrite FILE"),
	CLI_MODE_ROW(struct top_options, mode),
};

static void top_end(const struct argp_state *state, void *into)
{
	struct top_options *o = into;

	o->screen.json = o->form == TOP_JSON;
}

static const struct option_part parts[] = {
	{ &cli_attach_options, offsetof(struct top_options, attach) },
	{ &cli_stalls_options, offsetof(struct top_options, attach.gpu) },
	{ &cli_hooks_options, offsetof(struct top_options, attach.hooks) },
	{ 0 }
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows), .parts = parts, .end = top_end },
	.operands = "[-- COMMAND [ARG...]]",
	.doc = "Shows what processes do with CUDA at the moment, on a screen that is drawn again "
	       "every "
	       "second. Without a target: all processes. The key h shows all keys."
	       "\vExamples:\n"
	       "  sudo cuscope top\n"
	       "  sudo cuscope top --name 'python*' --interval 500ms\n"
	       "  sudo cuscope top --once --format json -p 1234\n",
};

/* ---- the target ---------------------------------------------------------------------------- */

static bool is_set(const struct top_options *o)
{
	return o->attach.choice.given || (o->attach.command && o->attach.command[0]);
}

/*
 * A command would write over the screen, and its input would take keys away: it gets neither. With
 * --once it keeps its input.
 */
static int open_streams(struct top_options *o, int streams[3], struct err *err)
{
	const char *path = o->command_output ? o->command_output : "/dev/null";

	if ((o->screen.json || o->listen) &&
	    !o->command_output) { /* as where other commands write JSON */
		streams[0] = STDIN_FILENO;
		streams[1] = streams[2] = STDERR_FILENO;
		return 0;
	}
	if (cli_create(&o->file, path, o->force, o->mode, err) || new_file_place(&o->file, err))
		return err->code;
	streams[1] = streams[2] = fileno(o->file.out);
	streams[0] = o->screen.once ? STDIN_FILENO : open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (streams[0] < 0)
		return err_set(err, errno, "cannot open /dev/null: %s", strerror(errno));
	return 0;
}

/* ---- running ------------------------------------------------------------------------------- */

/* All of them are needed to say where the time goes. */
static const char *leaves_calls_out(const struct top_options *o)
{
	const struct selection *selection = &o->attach.selection;

	return selection->n_only                  ? "--only"
	       : selection->n_skip                ? "--skip"
	       : selection->classes               ? "--class"
	       : selection->layers                ? "--layer"
	       : !o->attach.capture.returns       ? "--no-returns"
	       : o->screen.once                   ? "--once"
	       : o->attach.gpu.settings.period_ns ? "--gpu-window"
	                                          : NULL;
}

static int check_why(const struct top_options *o, struct err *err)
{
	const char *not_with = leaves_calls_out(o);

	if (not_with)
		return err_set(err, EINVAL, "--why goes without %s", not_with);
	if (o->attach.choice.target.kind == TARGET_ALL)
		return err_set(err, EINVAL,
		               "--why records what threads do and wait for, which of all processes "
		               "costs too much: choose some (-p, --name 'python*', --cgroup, a "
		               "command after --, ...)");
	return 0;
}

static int check_options(struct top_options *o, struct err *err)
{
	bool command = o->attach.command && o->attach.command[0];

	if (!is_set(o)) {
		o->attach.choice.target.kind = TARGET_ALL;
		o->attach.choice.given = 1u << TARGET_ALL;
	}
	if (cli_target_settle(&o->attach.choice, o->attach.command, err))
		return err->code;
	if (o->screen.why && check_why(o, err))
		return err->code;
	if (o->attach.gpu.stalls && !o->screen.why)
		return err_set(err, EINVAL, "--stalls goes with --why");
	if (cli_hooks_check(&o->attach.hooks, o->attach.capture.returns, err))
		return err->code;
	if (o->command_output && !command)
		return err_set(err, EINVAL,
		               "--command-output is for what a command after -- prints");
	if (o->screen.once && o->attach.capture.duration_ns)
		return err_set(err, EINVAL, "--once takes --interval, not --duration");
	if (o->screen.json && !o->screen.once)
		return err_set(err, EINVAL, "--format json goes with --once");
	if (o->listen && o->screen.once)
		return err_set(err, EINVAL, "--once prints one page, --web shows each");
	if (!o->listen && (o->certificate || o->key || o->token))
		return err_set(err, EINVAL, "%s goes with --web",
		               o->certificate ? "--tls-cert"
		               : o->key       ? "--tls-key"
		                              : "--token-file");
	if (!o->screen.once && !o->listen && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return err_set(err, EINVAL,
		               "standard input and output are no terminal: --once prints one page");
	return 0;
}

/* ---- in a browser -------------------------------------------------------------------------- */

static void top_show(void *data, const char *json)
{
	struct top_options *o = data;

	http_publish(o->http, json);
	http_sweep(o->http, clock_now_ns());
}

static void top_show_account(void *data, const char *json, bool worn)
{
	struct top_options *o = data;

	http_publish_account(o->http, json);
}

static bool top_is_wanted(void *data)
{
	const struct top_options *o = data;

	return http_is_read(o->http, clock_now_ns());
}

/* Serves from then on; before anything is traced, since an address may be in use. */
static int web_begin(struct top_options *o, struct web *web, struct err *err)
{
	const struct {
		const char *section, *key, *value;
	} given[] = { { "agent", "listen", o->listen },
		      { "tls", "certificate", o->certificate },
		      { "tls", "key", o->key },
		      { "tls", "token", o->token } };
	int r = 0;

	config_begin(&web->settings);
	for (size_t i = 0; i < ARRAY_SIZE(given) && !r; i++) {
		if (given[i].value)
			r = config_set(&web->settings, given[i].section, given[i].key,
			               given[i].value, err);
	}
	page_live(PAGE_LIVE_TOP, &web->html, &web->policy);
	web->page = (struct http_page){ web->html.data, web->html.len, web->policy.data };
	if (!r)
		r = http_start_live(&web->settings, &web->page, &o->http, err);
	if (r)
		return r;
	o->screen.show = top_show;
	o->screen.show_account = top_show_account;
	o->screen.wanted = top_is_wanted;
	o->screen.data = o;
	cli_say("the page is at %s://%s/ (Ctrl-C ends it)", o->certificate ? "https" : "http",
	        o->listen);
	return 0;
}

static void web_end(struct top_options *o, struct web *web)
{
	http_stop(o->http);
	config_end(&web->settings);
	buf_free(&web->html);
	buf_free(&web->policy);
}

/* Runs the capture with its screen. Returns the exit status. */
static int run(struct top_options *o, struct top_screen *screen, struct err *err)
{
	struct capture *capture = NULL;
	struct consumer *consumers[TOP_SCREEN_CONSUMERS];
	size_t n = top_screen_consumers(screen, consumers);
	int r;

	o->attach.capture.target = o->attach.choice.target;
	o->attach.capture.selection = o->attach.selection;
	o->attach.capture.consumers = consumers;
	o->attach.capture.n_consumers = n;
	o->attach.capture.enough = top_screen_quits;
	o->attach.capture.notice = top_screen_notice;
	o->attach.capture.data = screen;
	if (o->screen.once)
		o->attach.capture.duration_ns = o->screen.interval_ns;
	if (o->screen.why) {
		o->attach.capture.snapshot = top_screen_snapshot;
		o->attach.capture.stacks = cli_stacks_settle(&o->stacks);
		o->attach.capture.who = o->attach.capture.who_newest = true;
	}
	r = capture_open(&o->attach.capture, &capture, err);
	if (r)
		return EXIT_FAILURE;
	top_screen_measure(screen, capture);
	return cli_capture_run(capture, err);
}

static int top(struct top_options *o, struct err *err)
{
	bool command = o->attach.choice.target.kind == TARGET_COMMAND;
	struct top_screen *screen;
	int streams[3], status;
	char *name;

	if (command) {
		if (open_streams(o, streams, err))
			return EXIT_FAILURE;
		o->attach.choice.target.command.streams = streams;
	}
	name = cli_target_text(&o->attach.choice.target);
	o->screen.target = name;
	o->screen.hooks = o->attach.hooks.n > 0;
	o->screen.gpu = o->attach.gpu.asked && !o->attach.gpu.by_stalls;
	if (o->screen.why) {
		cli_ranks_ask(&o->attach, false);
		cli_why_choose(&o->attach, &o->stacks,
		               o->screen.gpu ? CLI_WHY_GPU : CLI_WHY_GPU_WINDOWS);
	}
	o->screen.say = cli_say;
	screen = top_screen_new(&o->screen);
	if (command && !o->command_output && !o->screen.json && !o->listen)
		top_screen_notice(screen, "what the command prints goes to /dev/null; "
		                          "--command-output FILE keeps it");
	status = run(o, screen, err);
	top_screen_free(screen);
	free(name);
	if (command) {
		cli_settle(&o->file, true, NULL);
		if (streams[0] != STDIN_FILENO)
			close(streams[0]);
	}
	return status;
}

/* ---- for the node agent -------------------------------------------------------------------- */

/* What is to be told the agent, whose socket this process has; its figures it has itself. */
struct told {
	char *account; /* NULL: nothing that it does not know */
	bool worn;
};

/* One process must not deny the account of the others. */
static void account_pass(const char *why)
{
	account_send_failure(WORKER_SOCKET, why);
}

static void account_ignore(void *data, const char *json)
{
}

static void account_tell(void *data, const char *json, bool worn)
{
	struct told *told = data;

	told->worn = worn;
	free(told->account);
	told->account = xstrdup(json);
}

/* It ends with the agent, or when that wants no more. */
static bool account_is_wanted(void *data)
{
	struct told *told = data;
	struct pollfd agent = { .fd = WORKER_SOCKET, .events = POLLIN };

	if (poll(&agent, 1, 0))
		kill(getpid(), SIGTERM);
	if (told->account && account_send(WORKER_SOCKET, told->account, told->worn) != -EAGAIN) {
		free(told->account);
		told->account = NULL;
	}
	return true;
}

int cli_account(int argc, char **argv)
{
	struct told told = { 0 };
	struct top_options o = { .attach = { .capture = { .returns = true } },
		                 .listen = "",
		                 .screen = { .interval_ns = INTERVAL_NS,
		                             .show = account_ignore,
		                             .show_account = account_tell,
		                             .beside = true,
		                             .wanted = account_is_wanted,
		                             .data = &told } };
	struct err err = { 0 };

	prctl(PR_SET_NAME, ACCOUNT_NAME);
	worker_goes_first();
	fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
	cli_stacks_init(&o.stacks);
	option_parse(&options, argc, argv, true, &o);
	o.attach.choice.target.pass = account_pass;
	cli_ignore_signals();
	if (!check_options(&o, &err))
		top(&o, &err);
	if (err.text[0])
		account_send_failure(WORKER_SOCKET, err.text);
	free(told.account);
	cli_attach_free(&o.attach);
	return err.text[0] ? EXIT_FAILURE : 0;
}

int cli_top(int argc, char **argv)
{
	struct top_options o = { .attach = { .capture = { .returns = true } },
		                 .screen = { .interval_ns = INTERVAL_NS } };
	struct web web = { 0 };
	struct origin origin;
	struct err err = { 0 };
	int status;

	origin_save(&origin);
	cli_stacks_init(&o.stacks);
	option_parse(&options, argc, argv, true, &o);
	o.attach.choice.target.command.origin = &origin;
	cli_ignore_signals();
	if (check_options(&o, &err))
		return cli_refuse(argv[0], &err);
	if (o.listen && web_begin(&o, &web, &err))
		status = EXIT_FAILURE;
	else
		status = top(&o, &err);
	if (o.listen)
		web_end(&o, &web);
	if (err.text[0])
		cli_say("%s", err.text);
	cli_attach_free(&o.attach);
	return status;
}
