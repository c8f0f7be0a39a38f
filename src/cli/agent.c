// SPDX-License-Identifier: MIT
/* `cuscope agent`: the daemon of a machine, for Prometheus. */
#include "cli/cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/xalloc.h"
#include "node/http.h"
#include "node/node.h"
#include "page/page.h"

/* An option stands for a key of the configuration, and comes before what a file says. */
enum {
	KEY_LISTEN,
	KEY_NAMES,
	KEY_TOP,
	KEY_INTERVAL,
	KEY_CERTIFICATE,
	KEY_KEY,
	KEY_TOKEN,
	KEY_LABEL_ENV,
	KEY_LIBRARY,
	KEYS
};

static const struct {
	const char *option, *section, *key;
} keys[KEYS] = {
	[KEY_LISTEN] = { "--listen", "agent", "listen" },
	[KEY_NAMES] = { "--names", "agent", "names" },
	[KEY_TOP] = { "--top", "agent", "top" },
	[KEY_INTERVAL] = { "--interval", "agent", "interval" },
	[KEY_CERTIFICATE] = { "--tls-cert", "tls", "certificate" },
	[KEY_KEY] = { "--tls-key", "tls", "key" },
	[KEY_TOKEN] = { "--token-file", "tls", "token" },
	[KEY_LABEL_ENV] = { "--label-env", "labels", "env" },
	[KEY_LIBRARY] = { "--library", "agent", "libraries" },
};

struct agent_options {
	const char *config, *without;
	bool example;
	char *given[KEYS]; /* of what `keys` says; NULL: was not given */
};

/* A list: one more word. */
static bool agent_take_word(const struct argp_state *state, void *to, const char *value)
{
	char **given = to, *list;

	list = *given ? xasprintf("%s,%s", *given, value) : xstrdup(value);
	free(*given);
	*given = list;
	return true;
}

static bool agent_take(const struct argp_state *state, void *to, const char *value)
{
	char **given = to;

	free(*given);
	*given = xstrdup(value);
	return true;
}

static bool agent_word(const struct argp_state *state, void *into, char *word)
{
	argp_error(state, "no argument is taken, and '%s' is one", word);
	return true;
}

#define GIVEN(key) OPTION_TAKE, offsetof(struct agent_options, given[key]), .take = agent_take
#define LIST(key)  OPTION_TAKE, offsetof(struct agent_options, given[key]), .take = agent_take_word

static const char *const names[] = { "gpuprobe", NULL };

static const struct option_row rows[] = {
	{ .title = "Serving:", .order = 1 },
	{ "listen", 'l', "ADDR:PORT", "where to serve (127.0.0.1:9407); [::1]:9407 is IPv6",
	  GIVEN(KEY_LISTEN) },
	{ "tls-cert", 0, "FILE", "certificate and chain, PEM", GIVEN(KEY_CERTIFICATE) },
	{ "tls-key", 0, "FILE", "its key, PEM; nobody else may read the file", GIVEN(KEY_KEY) },
	{ "token-file", 0, "FILE", "what clients have to send as 'Authorization: Bearer'",
	  GIVEN(KEY_TOKEN) },
	{ .title = "What is shown:", .order = 2 },
	{ "interval", 0, "TIME", "how often sums are read (1s)", GIVEN(KEY_INTERVAL) },
	{ "top", 0, "N", "processes with series of their own (20)", GIVEN(KEY_TOP) },
	{ "label-env", 0, "NAME",
	  "a variable of a process's environment becomes a label; may be repeated",
	  LIST(KEY_LABEL_ENV), .offer = completion_variables },
	{ "names", 0, "NAME", "gpuprobe: the metrics of gpuprobe-daemon as well", GIVEN(KEY_NAMES),
	  .words = names },
	{ .title = "Settings:", .order = 3 },
	{ "config", 0, "FILE", "an INI file of settings; SIGHUP reads it anew", OPTION_TEXT,
	  offsetof(struct agent_options, config) },
	{ "example-config", 0, NULL, "print such a file with every key, and end", OPTION_YES,
	  offsetof(struct agent_options, example) },
	{ "library", 0, "FILE", "hook this CUDA library before a process maps it; may be repeated",
	  LIST(KEY_LIBRARY) },
	CLI_WITHOUT_ROW(struct agent_options, without),
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows),
	           .parts = (const struct option_part[]){ { &cli_no_hooks_options, 0 }, { 0 } },
	           .word = agent_word },
	.doc = "Serves metrics of all processes of this machine that use CUDA, and of its GPUs, to "
	       "Prometheus."
	       "\vExamples:\n"
	       "  sudo cuscope agent\n"
	       "  sudo cuscope agent --config /etc/cuscope/agent.ini\n",
};

/* The file, and over it the options. */
static int settle(void *data, struct node_settings *settings, struct err *err)
{
	const struct agent_options *o = data;
	int r = o->config ? config_read_file(settings, o->config, err) : 0;

	for (size_t i = 0; !r && i < KEYS; i++) {
		if (!o->given[i])
			continue;
		r = config_set(settings, keys[i].section, keys[i].key, o->given[i], err);
		if (r)
			err_prefix(err, "%s", keys[i].option);
	}
	return r;
}

static void say(void *data, const char *text)
{
	cli_say("%s", text);
}

static int run(struct agent_options *o, const char *name, struct err *err)
{
	struct node_options how = { .reload = settle, .say = say, .data = o };
	struct node_settings settings;
	AT_END(buf_free) struct buf html = { 0 }, policy = { 0 };
	struct http_page page;
	int r;

	config_begin(&settings);
	if (settle(o, &settings, err)) {
		config_end(&settings);
		fprintf(stderr, "%s: %s\n", name, err->text);
		return EXIT_USAGE;
	}
	how.settings = &settings;
	how.without = o->without;
	page_live(PAGE_LIVE_AGENT, &html, &policy);
	page = (struct http_page){ html.data, html.len, policy.data };
	how.page = &page;
	r = node_run(&how, err);
	if (r)
		cli_say("%s", err->text);
	config_end(&settings);
	return r ? EXIT_FAILURE : 0;
}

static int print_example(void)
{
	AT_END(buf_free) struct buf text = { 0 };

	config_write_example(&text);
	fputs(text.data, stdout);
	return fflush(stdout) ? EXIT_FAILURE : 0;
}

int cli_agent(int argc, char **argv)
{
	struct agent_options o = { 0 };
	struct err err = { 0 };
	sigset_t hangup;
	int status;

	option_parse(&options, argc, argv, false, &o);
	cli_ignore_signals();
	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	sigprocmask(SIG_BLOCK, &hangup, NULL); /* a reload while it starts waits for the loop */
	status = o.example ? print_example() : run(&o, argv[0], &err);
	for (size_t i = 0; i < KEYS; i++)
		free(o.given[i]);
	return status;
}
