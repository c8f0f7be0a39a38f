// SPDX-License-Identifier: MIT
#include "node/node.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "capture/capture.h"
#include "gpus/gpu_state.h"
#include "node/account.h"
#include "node/http.h"
#include "node/recorder_facts.h"
#include "probe/person.h"
#include "watch/places.h"

#define RING_BYTES  (2u << 20) /* names, stacks, ends of processes; what does not fit is counted */
#define SOURCES_MAX 32
#define GPUS_NS     1000000000ull

struct node {
	const struct node_options *options;
	struct node_settings settings;
	struct watch_options watch;
	struct counts *counts;
	struct places *places;
	struct snapshots *snapshots;
	struct http *http;
	struct http_figures before; /* of servers that were stopped for a reload */
	struct recorder_facts *facts;
	struct account *account;
	void *states[SOURCES_MAX];
	struct node_view view;
};

/* ---- snapshots ----------------------------------------------------------------------------- */

/* A trend needs time between its looks: each page would be too soon. */
static bool judge_leaks(struct node *node, const struct watch_page *page)
{
	uint64_t last = node->view.leaks_ns ? node->view.leaks_ns : page->begin_ns;

	if (page->last || page->time_ns - last < node->settings.leak_interval_ns)
		return false;
	places_take(node->places, page, NULL);
	places_forget_ended(node->places);
	node->view.leaks_ns = page->time_ns;
	return true;
}

static void figures_of(const struct node *node, struct http_figures *figures)
{
	*figures = (struct http_figures){ 0 };
	if (node->http)
		http_figures(node->http, figures);
	figures->answered += node->before.answered;
	figures->refused += node->before.refused;
	figures->evicted += node->before.evicted;
}

static void publish(struct node *node, const struct watch_page *page)
{
	struct metrics *metrics = metrics_new();
	struct http_figures figures;

	figures_of(node, &figures);
	node->view.page = page;
	node->view.http = &figures;
	node->view.snapshots++;
	for (size_t i = 0; node_sources[i]; i++)
		node_sources[i]->fill(node->states[i], &node->view, metrics);
	node->view.page = NULL;
	node->view.http = NULL;
	snapshots_publish(node->snapshots, metrics, clock_now_ns(), node->settings.interval_ns);
}

/* ---- settings ------------------------------------------------------------------------------ */

static void say(const struct node *node, const char *text)
{
	node->options->say(node->options->data, text);
}

/* ---- the flight recorder ------------------------------------------------------------------- */

static int start_recorder(struct node *node, struct err *err)
{
	node->facts = recorder_facts_new(&node->settings, node->view.gpus);
	return recorder_new(&node->settings, &node->view.recorder, err);
}

static void stop_recorder(struct node *node)
{
	recorder_free(node->view.recorder);
	recorder_facts_free(node->facts);
	node->view.recorder = NULL;
	node->facts = NULL;
}

/* What is held is lost with it, so only where it is to be another one. */
static void change_recorder(struct node *node)
{
	struct err err = { 0 };

	if (recorder_is_as(node->view.recorder, &node->settings))
		return;
	stop_recorder(node);
	if (start_recorder(node, &err))
		say(node, err.text);
}

static void tell_recorder(struct node *node, bool judged, uint64_t now_ns)
{
	char text[1024];

	if (!node->view.recorder)
		return;
	if (judged)
		recorder_facts_judged(node->facts, node->places, node->counts);
	recorder_facts_tell(node->facts, now_ns, node->view.recorder);
	while (recorder_notice(node->view.recorder, text, sizeof(text)))
		say(node, text);
}

/* ---- settings, anew ------------------------------------------------------------------------ */

/* Files of [tls] may have changed under the same names, so the server begins anew each time. */
static int read_anew(struct node *node, struct node_settings *settings, struct http **http,
                     struct err *err)
{
	int r = node->options->reload(node->options->data, settings, err);

	if (!r)
		r = account_check(settings, err);
	if (!r)
		r = recorder_check(settings, err);
	return r ? r
	         : http_start(settings, node->options->page, node->snapshots, node->http, http,
	                      err);
}

/* The old server serves until the new one does. The recorder is freed when neither knows it. */
static void replace_server(struct node *node, struct http *http)
{
	struct http_figures figures;

	figures_of(node, &figures);
	node->before = figures;
	http_stop(node->http);
	node->http = http;
	change_recorder(node);
	http_set_recorder(http, node->view.recorder);
}

/* Only gpuprobe's names ask which kernel it was: thousands of rows of each process. */
static unsigned tools_of(const struct node_settings *settings)
{
	unsigned tools = WATCH_MEMORY | WATCH_LAUNCHES | WATCH_COPIES | WATCH_RESULTS;

	return settings->names == NODE_NAMES_GPUPROBE ? tools : tools | WATCH_NO_KERNELS;
}

static void reload(struct node *node)
{
	struct node_settings settings;
	struct http *http = NULL;
	struct err err = { 0 };

	config_begin(&settings);
	if (read_anew(node, &settings, &http, &err)) {
		say(node, err.text);
		say(node, "SIGHUP: the settings stay as they were");
		config_end(&settings);
		return;
	}
	config_end(&node->settings);
	node->settings = settings;
	node->watch.interval_ns = settings.interval_ns;
	node->watch.older_ns = settings.leak_older_ns;
	replace_server(node, http);
	say(node, "SIGHUP: the settings were read anew");
	if (node->watch.tools & ~tools_of(&node->settings))
		say(node, "names = gpuprobe: kernels are told apart only after a restart");
}

static int on_page(void *data, const struct watch_page *page, struct err *err)
{
	struct node *node = data;
	const struct counts_options options = { node->settings.top, node->settings.age_ns,
		                                person_of_process };

	tell_recorder(node, judge_leaks(node, page), page->time_ns);
	counts_take(node->counts, &options, page);
	publish(node, page);
	if (node->http)
		http_sweep(node->http, page->time_ns);
	return 0;
}

/* ---- the run ------------------------------------------------------------------------------- */

static void on_notice(void *data, const char *text)
{
	say(data, text);
}

static void on_turn(void *data, const struct capture_state *state)
{
	struct node *node = data;
	uint64_t now = clock_now_ns();
	const struct account_view view = { .settings = &node->settings,
		                           .counts = node->counts,
		                           .recorder = node->view.recorder,
		                           .http = node->http,
		                           .say = on_notice,
		                           .data = node };

	snapshots_turned(node->snapshots, now);
	account_turn(node->account, &view, now);
}

static void on_hangup(void *data)
{
	reload(data);
}

static void say_serving(const struct node *node)
{
	AT_END(buf_free) struct buf text = { 0 };

	buf_printf(&text, "serving on http%s://%s/metrics", *node->settings.key ? "s" : "",
	           node->settings.listen);
	say(node, text.data);
}

static int serve(struct node *node, struct err *err)
{
	struct capture_options options = {
		.target = { .kind = TARGET_ALL,
		            .libraries = (const char **)node->settings.libraries.words,
		            .n_libraries = node->settings.libraries.n },
		.returns = true,
		.ring_bytes = RING_BYTES,
		.watch = &node->watch,
		.without = node->options->without,
		.notice = on_notice,
		.progress = on_turn,
		.hangup = on_hangup,
		.data = node,
	};
	struct capture *capture = NULL;
	int r = capture_open(&options, &capture, err);

	if (r)
		return r;
	/* after the processes that the capture forks, which would keep its sockets open */
	r = start_recorder(node, err);
	if (!r)
		r = http_start(&node->settings, node->options->page, node->snapshots, NULL,
		               &node->http, err);
	if (!r) {
		http_set_recorder(node->http, node->view.recorder);
		say_serving(node);
		r = capture_run(capture, err);
	}
	http_stop(node->http);
	node->http = NULL;
	stop_recorder(node);
	capture_finish(capture);
	capture_free(capture);
	return r;
}

static void begin(struct node *node, const struct node_options *options)
{
	node->options = options;
	settings_copy(&node->settings, options->settings);
	node->watch = (struct watch_options){ .tools = tools_of(&node->settings),
		                              .interval_ns = node->settings.interval_ns,
		                              .older_ns = node->settings.leak_older_ns,
		                              .stacks = true,
		                              .forget = true,
		                              .page = on_page,
		                              .data = node };
	node->counts = counts_new(clock_now_ns());
	node->places = places_new(false);
	node->snapshots = snapshots_new();
	node->account = account_new();
	node->view = (struct node_view){ .settings = &node->settings,
		                         .counts = node->counts,
		                         .places = node->places,
		                         .gpus = gpu_states_new(GPUS_NS),
		                         .started_ns = clock_of_ns(CLOCK_REALTIME) };
	for (size_t i = 0; node_sources[i]; i++)
		node->states[i] =
			node_sources[i]->begin ? node_sources[i]->begin(&node->settings) : NULL;
}

static void end(struct node *node)
{
	for (size_t i = 0; node_sources[i]; i++) {
		if (node_sources[i]->end)
			node_sources[i]->end(node->states[i]);
	}
	account_free(node->account);
	gpu_states_free(node->view.gpus);
	counts_free(node->counts);
	places_free(node->places);
	snapshots_free(node->snapshots);
	config_end(&node->settings);
}

int node_run(const struct node_options *options, struct err *err)
{
	struct node node = { 0 };
	int r = http_check(options->settings, err);

	if (!r)
		r = account_check(options->settings, err);
	if (!r)
		r = recorder_check(options->settings, err);
	if (r)
		return r;
	begin(&node, options);
	r = serve(&node, err);
	end(&node);
	return r;
}
