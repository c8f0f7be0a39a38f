// SPDX-License-Identifier: MIT
/* What the node agent serves: /metrics, /healthz, / and /record. */
#include "node/http_inside.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "node/http_record.h"
#include "node/metrics.h"
#include "node/recorder.h"

/* ---- http loops ---------------------------------------------------------------------------- */

/*
 * How long loops have not turned: the agent's own, which makes the figures, and the flight
 * recorder's. The server's thread asks at each request, since a loop that hangs tells nothing of
 * itself. Private to the server.
 */

enum loop { LOOP_AGENT, LOOP_RECORDER, LOOPS };

struct http_loops {
	uint64_t now_ns, turned_ns[LOOPS]; /* CLOCK_MONOTONIC; 0: there is none, or not yet */
};

#define HANGS_NS 5000000000ull

static const struct loop_row {
	const char *name;
	struct metric_family age;
} loops_rows[LOOPS] = {
	[LOOP_AGENT] = { "the agent",
	                 { "cuscope_agent_loop_age_seconds", METRIC_GAUGE, "seconds",
	                   "Time since the loop that counts turned last; a tenth of a second where "
	                   "it does" } },
	[LOOP_RECORDER] = { "the flight recorder",
	                    { "cuscope_recorder_loop_age_seconds", METRIC_GAUGE, "seconds",
	                      "Time since its loop last said that it turns; a second at most where "
	                      "it "
	                      "does" } },
};

static uint64_t age_ns(const struct http_loops *loops, int loop)
{
	uint64_t turned_ns = loops->turned_ns[loop];

	return turned_ns && loops->now_ns > turned_ns ? loops->now_ns - turned_ns : 0;
}

/* Appends a line for each that has not turned for 5 s. Whether there is one. */
static bool http_loops_hang(const struct http_loops *loops, struct buf *out)
{
	bool any = false;

	for (int loop = 0; loop < LOOPS; loop++) {
		uint64_t hangs_ns = age_ns(loops, loop);

		if (hangs_ns <= HANGS_NS)
			continue;
		buf_printf(out, "%s hangs ", loops_rows[loop].name);
		buf_fixed(out, hangs_ns / 1000000, 3);
		buf_puts(out, " s\n");
		any = true;
	}
	return any;
}

static const struct metric_family figures_age = {
	"cuscope_agent_figures_age_seconds", METRIC_GAUGE, "seconds",
	"How old the figures were when they were asked for"
};

/* Appends a gauge for each and for the figures, which other families may follow. */
static void http_loops_write(const struct http_loops *loops, uint64_t figures_ns,
                             enum metrics_format format, struct buf *out)
{
	struct metrics *metrics = metrics_new();

	for (int loop = 0; loop < LOOPS; loop++) {
		if (!loops->turned_ns[loop])
			continue;
		metrics_family(metrics, &loops_rows[loop].age);
		metrics_add(metrics, 0, age_ns(loops, loop), 9, 0);
	}
	metrics_one(metrics, &figures_age, figures_ns, 9, 0);
	metrics_write_part(metrics, format, out);
	metrics_free(metrics);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void look_at_loops(struct http *http, struct http_loops *loops)
{
	struct recorder_figures figures = { 0 };

	pthread_mutex_lock(&http->lock);
	if (http->recorder)
		recorder_figures(http->recorder, &figures);
	pthread_mutex_unlock(&http->lock);
	*loops = (struct http_loops){
		.now_ns = clock_now_ns(),
		.turned_ns = { [LOOP_AGENT] = snapshots_turned_ns(http->snapshots),
		               [LOOP_RECORDER] = figures.heard_ns },
	};
}

/* What a response is made of: the ages of this moment, and the snapshot's text. */
struct pages {
	struct buf ages;
	struct snapshot *snapshot;
};

static void free_pages(void *data)
{
	struct pages *pages = data;

	buf_free(&pages->ages);
	snapshot_put(pages->snapshot);
	free(pages);
}

static struct answer answer_metrics(struct http *http, const char *accept)
{
	struct snapshot *snapshot = snapshots_take(http->snapshots);
	enum metrics_format format = metrics_accepted(accept);
	struct answer answer = { MHD_HTTP_OK, metrics_content_type(format), NULL };
	struct http_loops loops;
	struct pages *pages;
	struct MHD_IoVec parts[2];

	if (!snapshot)
		return http_say(MHD_HTTP_SERVICE_UNAVAILABLE, "There are no figures yet.\n");
	if (snapshot_is_stale(snapshot, clock_now_ns())) {
		snapshot_put(snapshot);
		return http_say(MHD_HTTP_SERVICE_UNAVAILABLE,
		                "The figures are old; /healthz says how old.\n");
	}
	pages = xcalloc(1, sizeof(*pages));
	pages->snapshot = snapshot;
	look_at_loops(http, &loops);
	buf_puts(&pages->ages, "");
	http_loops_write(&loops, snapshot_age_ns(snapshot, loops.now_ns), format, &pages->ages);
	parts[0] = (struct MHD_IoVec){ pages->ages.data, pages->ages.len };
	parts[1].iov_base = snapshot_text(snapshot, format, &parts[1].iov_len);
	answer.response = MHD_create_response_from_iovec(parts, 2, free_pages, pages);
	if (!answer.response)
		free_pages(pages);
	return answer;
}

static struct answer answer_health(struct http *http, const char *accept)
{
	struct snapshot *snapshot = snapshots_take(http->snapshots);
	AT_END(buf_free) struct buf text = { 0 };
	struct http_loops loops;
	bool stale, hangs;

	if (!snapshot)
		return http_say(MHD_HTTP_SERVICE_UNAVAILABLE, "starting\n");
	look_at_loops(http, &loops);
	stale = snapshot_is_stale(snapshot, loops.now_ns);
	buf_puts(&text, stale ? "stale " : "ok ");
	buf_fixed(&text, snapshot_age_ns(snapshot, loops.now_ns) / 1000000, 3);
	buf_puts(&text, " s\n");
	hangs = http_loops_hang(&loops, &text);
	snapshot_put(snapshot);
	return http_say(stale || hangs ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, text.data);
}

static struct answer answer_page(struct http *http, const char *accept)
{
	return http->page ? http_page_answer(http->page)
	                  : http_say(MHD_HTTP_NOT_FOUND, "There is no page.\n");
}

/*
 * A page of another site can have a browser ask for this, and whoever asks has something recorded:
 * only for a header that it may send to its own site alone.
 */
static struct answer answer_account(struct http *http, struct MHD_Connection *connection)
{
	if (!MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Cuscope-Look"))
		return http_say(MHD_HTTP_FORBIDDEN, "/live wants a header Cuscope-Look.\n");
	return http_live_event(http, connection);
}

static const struct path {
	const char *path;
	enum { FOR_ALL, FOR_TOKEN, FOR_BROWSER } who; /* browser: it is asked for the token */
	struct answer (*answer)(struct http *http, const char *accept); /* NULL: answer_account */
} paths[] = {
	{ "/metrics", FOR_TOKEN, answer_metrics },
	{ "/healthz", FOR_ALL, answer_health }, /* it tells nothing but that */
	{ "/", FOR_BROWSER, answer_page },
	{ "/live", FOR_BROWSER, NULL },
};

/* Not even on loopback without a token: see http_record.h. */
struct answer http_agent_record(struct http *http, struct MHD_Connection *connection, bool post)
{
	const char *value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND,
	                                                post ? "last" : "request");
	AT_END(buf_free) struct buf text = { 0 };
	unsigned status;

	if (!http->has_token)
		return http_say(MHD_HTTP_FORBIDDEN,
		                "/record wants a token, and there is none: --token-file.\n");
	if (!http_may(http, connection))
		return http_refuse(false);
	pthread_mutex_lock(&http->lock);
	status = post ? http_record_ask(http->recorder, value, &text)
	              : http_record_tell(http->recorder, value, &text);
	pthread_mutex_unlock(&http->lock);
	return http_say(status, text.data);
}

struct answer http_agent_answer(struct http *http, struct MHD_Connection *connection,
                                const char *url)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (strcmp(paths[i].path, url))
			continue;
		if (paths[i].who != FOR_ALL && !http_may_look(http, connection))
			return http_refuse(paths[i].who == FOR_BROWSER);
		return paths[i].answer ? paths[i].answer(http, accept)
		                       : answer_account(http, connection);
	}
	return http_say(MHD_HTTP_NOT_FOUND, "There are /metrics, /healthz, / and /live.\n");
}
