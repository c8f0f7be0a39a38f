// SPDX-License-Identifier: MIT
/* `cuscope agent`: the daemon of a machine, for Prometheus. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "node/node.h"

#define GIVEN_MOST 32

/* An option stands for a key of the configuration, and comes before what a file says. */
static const struct option_key {
	int option;
	const char *name, *section, *key;
} option_keys[] = {
	{ 'l', "--listen", "agent", "listen" },
	{ 6001, "--names", "agent", "names" },
	{ 6002, "--top", "agent", "top" },
	{ 6003, "--interval", "agent", "interval" },
	{ 6004, "--tls-cert", "tls", "certificate" },
	{ 6005, "--tls-key", "tls", "key" },
	{ 6006, "--token-file", "tls", "token" },
	{ 6007, "--label-env", "labels", "env" },
	{ 6008, "--library", "agent", "libraries" },
};

enum { OPT_CONFIG = 6100, OPT_WITHOUT, OPT_EXAMPLE };

static const struct argp_option options[] = {
	{ 0, 0, 0, 0, "Serving:", 1 },
	{ "listen", 'l', "ADDR:PORT", 0, "where to serve (127.0.0.1:9407); [::1]:9407 is IPv6", 0 },
	{ "tls-cert", 6004, "FILE", 0, "certificate and chain, PEM", 0 },
	{ "tls-key", 6005, "FILE", 0, "its key, PEM; nobody else may read the file", 0 },
	{ "token-file", 6006, "FILE", 0, "what clients have to send as 'Authorization: Bearer'",
	  0 },
	{ 0, 0, 0, 0, "What is shown:", 2 },
	{ "interval", 6003, "TIME", 0, "how often sums are read (1s)", 0 },
	{ "top", 6002, "N", 0, "processes with series of their own (20)", 0 },
	{ "label-env", 6007, "NAME", 0,
	  "a variable of a process's environment becomes a label; may be repeated", 0 },
	{ "names", 6001, "NAME", 0, "gpuprobe: the metrics of gpuprobe-daemon as well", 0 },
	{ 0, 0, 0, 0, "Settings:", 3 },
	{ "config", OPT_CONFIG, "FILE", 0, "an INI file of settings; SIGHUP reads it anew", 0 },
	{ "example-config", OPT_EXAMPLE, 0, 0, "print such a file with every key, and end", 0 },
	{ "library", 6008, "FILE", 0,
	  "hook this CUDA library before a process maps it; may be repeated", 0 },
	{ "without", OPT_WITHOUT, "LIST", 0,
	  "kernel features not to use, as 'cuscope doctor' names them", 0 },
	{ 0 }
};

struct agent_options {
	const char *config, *without;
	bool example;
	struct {
		const struct option_key *key;
		char *value;
	} given[GIVEN_MOST];
	size_t n_given;
};

/* --label-env and --library are lists: each one more word. */
static void give(const struct argp_state *state, struct agent_options *o,
                 const struct option_key *key, const char *value)
{
	struct buf list = { 0 };
	size_t i = 0;

	while (i < o->n_given && o->given[i].key != key)
		i++;
	if (i < o->n_given && (!strcmp(key->key, "env") || !strcmp(key->key, "libraries")))
		buf_printf(&list, "%s,", o->given[i].value);
	buf_puts(&list, value);
	if (i == o->n_given)
		o->n_given++;
	else
		free(o->given[i].value);
	o->given[i].key = key;
	o->given[i].value = list.data;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct agent_options *o = state->input;

	for (size_t i = 0; i < ARRAY_SIZE(option_keys); i++) {
		if (option_keys[i].option != key)
			continue;
		give(state, o, &option_keys[i], arg);
		return 0;
	}
	switch (key) {
	case OPT_CONFIG:
		o->config = arg;
		return 0;
	case OPT_WITHOUT:
		o->without = arg;
		return 0;
	case OPT_EXAMPLE:
		o->example = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is taken, and '%s' is one", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &cli_no_hooks_argp, 0, NULL, 0 }, { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.children = children,
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

	for (size_t i = 0; !r && i < o->n_given; i++) {
		const struct option_key *key = o->given[i].key;

		r = config_set(settings, key->section, key->key, o->given[i].value, err);
		if (r)
			err_prefix(err, "%s", key->name);
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
	int r;

	config_begin(&settings);
	if (settle(o, &settings, err)) {
		config_end(&settings);
		fprintf(stderr, "%s: %s\n", name, err->text);
		return EXIT_USAGE;
	}
	how.settings = &settings;
	how.without = o->without;
	r = node_run(&how, err);
	if (r)
		cli_say("%s", err->text);
	config_end(&settings);
	return r ? EXIT_FAILURE : 0;
}

static int print_example(void)
{
	struct buf text = { 0 };

	config_write_example(&text);
	fputs(text.data, stdout);
	buf_free(&text);
	return fflush(stdout) ? EXIT_FAILURE : 0;
}

int cli_agent(int argc, char **argv)
{
	struct agent_options o = { 0 };
	struct err err = { 0 };
	sigset_t hangup;
	int status;

	cli_parse(&argp, argc, argv, false, &o);
	cli_ignore_signals();
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	sigprocmask(SIG_BLOCK, &hangup, NULL); /* a reload while it starts waits for the loop */
	status = o.example ? print_example() : run(&o, argv[0], &err);
	for (size_t i = 0; i < o.n_given; i++)
		free(o.given[i].value);
	return status;
}
