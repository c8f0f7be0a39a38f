/* SPDX-License-Identifier: MIT */
/*
 * The server of the node agent, on a thread of its own: GET and HEAD of /metrics, /healthz and /,
 * and POST of /record. For `top --web` it serves a page and what that shows.
 *
 * Clients may be anybody. A connection carries one request. There are so many connections at a time
 * and so many of one address. One more ends the oldest of them, since an honest client is served
 * within milliseconds, and whoever dribbles is older. A header has 8 KiB, a body is refused.
 */
#ifndef CUSCOPE_NODE_HTTP_H
#define CUSCOPE_NODE_HTTP_H

#include "base/err.h"
#include "node/snapshot.h"

struct node_settings;
struct http;
struct recorder;

/* What "/" is for a browser, with its Content-Security-Policy. It is kept, not copied. */
struct http_page {
	const char *html;
	size_t bytes;
	const char *policy;
};

/*
 * Reads the files of [tls] and checks that what is not loopback has all of them. Listens once, so
 * that an address in use is told before anything is traced. 0 or a negative errno.
 */
int http_check(const struct node_settings *settings, struct err *err);

/*
 * `page`: it asks for /metrics; NULL: "/" is none. A browser may ask for these two with the token
 * as the password of any user, and for nothing else.
 *
 * `before`: a server that goes on until it is stopped, or NULL. Where that has the same address its
 * socket is shared: whoever waits for the port to become free gets neither it nor its clients.
 */
int http_start(const struct node_settings *settings, const struct http_page *page,
               struct snapshots *snapshots, const struct http *before, struct http **http,
               struct err *err);

/* Who is asked for recordings: none at first. NULL before it is freed. */
void http_set_recorder(struct http *http, struct recorder *recorder);

/* Ends connections that are older than any honest one; now and then. */
void http_sweep(struct http *http, uint64_t now_ns);

/*
 * A server of that page and of none of the agent's paths: it asks anew each second for "/live",
 * which is the text that was published last, as one server-sent event. A browser sends the token as
 * the password of any user.
 */
int http_start_live(const struct node_settings *settings, const struct http_page *page,
                    struct http **http, struct err *err);

/*
 * Something else that the page shows, which changes more seldom: an event called "why" before the
 * next one, for each reader once. Copied: an object in one line. NULL: there is none.
 */
void http_publish_account(struct http *http, const char *json);

/*
 * Somebody waits for an event, or has asked for one within three seconds, as browsers do each one.
 * Else nothing needs to be published.
 */
bool http_is_read(struct http *http, uint64_t now_ns);

/* Copied: lines of text, without what begins those of an event. NULL: who asks from then on waits
 * for the next one, 64 at most; others are told to ask again soon. */
void http_publish(struct http *http, const char *text);

struct http_figures {
	uint64_t answered, refused; /* refused: answered with an error */
	uint64_t evicted;           /* connections that were ended for others, or for their age */
};

void http_figures(struct http *http, struct http_figures *figures);

void http_stop(struct http *http);

#endif
