/* SPDX-License-Identifier: MIT */
/*
 * `cuscope agent`, the node agent: one capture of all processes of the machine that use CUDA, by
 * sums in the kernel, and a server that tells what they say.
 *
 *   capture's thread   a page of the watch machinery each interval -> counts -> every source adds
 *                      its metrics -> a snapshot, which is published and never touched again
 *   server's thread    answers from the last snapshot (http.h)
 *
 * A part of the agent plugs in here: its settings in settings.h with a table of keys, its metrics
 * as a source (sources.c), what it needs of each page in its source's fill().
 */
#ifndef CUSCOPE_NODE_NODE_H
#define CUSCOPE_NODE_NODE_H

#include "base/err.h"
#include "capture/watch/watch.h"
#include "node/counts.h"
#include "node/metrics.h"
#include "node/config.h"

struct gpu_states;
struct http_figures;
struct http_page;
struct node;
struct places;
struct recorder;

struct node_options {
	const struct node_settings *settings; /* with what the command line says; copied */
	/* The settings anew, after SIGHUP: `into` is as settings_begin() left it. */
	int (*reload)(void *data, struct node_settings *into, struct err *err);
	void (*say)(void *data, const char *text); /* a line for the user */
	void *data;
	const char *without;          /* kernel features not to use */
	const struct http_page *page; /* for browsers; kept, not copied */
};

/* Serves until SIGTERM or SIGINT. 0 or a negative errno with a sentence. */
int node_run(const struct node_options *options, struct err *err);

/* ---- for sources --------------------------------------------------------------------------- */

/* What a source may look at while it fills; all on the thread of the capture. */
struct node_view {
	const struct node_settings *settings;
	const struct watch_page *page;
	const struct counts *counts;
	const struct places *places; /* of memory, while `leaks_ns` is the page's; never NULL */
	uint64_t leaks_ns;           /* when leaks were judged last, CLOCK_MONOTONIC */
	const struct http_figures *http;
	struct recorder *recorder; /* NULL: there is none */
	struct gpu_states *gpus;   /* NULL: they cannot be read */
	uint64_t started_ns;       /* CLOCK_REALTIME: the machine's counters were 0 */
	uint64_t snapshots;        /* so far */
};

/*
 * A part that has metrics of its own. begin() may start threads, and returns what fill() and end()
 * get; NULL is a state as well. fill() must not wait for anything.
 */
struct node_source {
	const char *name;
	void *(*begin)(const struct node_settings *settings); /* may be NULL */
	void (*fill)(void *state, const struct node_view *view, struct metrics *metrics);
	void (*end)(void *state); /* may be NULL */
};

extern const struct node_source *const node_sources[]; /* up to a NULL; sources.c */

#endif
