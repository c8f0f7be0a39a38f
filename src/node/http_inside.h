/* SPDX-License-Identifier: MIT */
/*
 * What the server and what it serves share: http.c has connections, who may ask and how an answer
 * goes out, http_agent.c answers the agent's paths, http_live.c those of a live page. Private to
 * these three.
 */
#ifndef CUSCOPE_NODE_HTTP_INSIDE_H
#define CUSCOPE_NODE_HTTP_INSIDE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "node/address.h"
#include "node/http.h"

#define HTTP_TOKEN_MOST 256
#define LIVE_WAITING    64 /* connections that wait for an event; more are told to come again */

struct live_event;

/* Of a live page, under the lock. */
struct live_readers {
	struct live_event *event; /* the last that was published, or NULL */
	uint64_t n_published;
	struct live_event *account; /* or NULL */
	uint64_t n_accounts;
	uint64_t asked_ns; /* when somebody last did; 0: nobody ever */
	struct MHD_Connection *waiting[LIVE_WAITING];
	size_t n_waiting;
	bool end; /* nobody waits any more */
};

struct http {
	struct MHD_Daemon *daemon;
	struct snapshots *snapshots;
	pthread_mutex_t lock;      /* of the recorder, while it is asked, and of readers */
	struct recorder *recorder; /* NULL: there is none */
	struct address address;
	int listener; /* of the daemon and, after SIGHUP, of the next one */
	struct clients *clients;
	char token[HTTP_TOKEN_MOST + 1];
	bool has_token;
	const struct http_page *page; /* NULL: there is none */
	bool live;                    /* it is, and none of the agent's paths are served */
	struct live_readers readers;  /* also of the agent's account */
	atomic_uint_fast64_t answered, refused;
	char complaint[256]; /* what the library said last while it was started */
};

struct answer {
	unsigned status; /* 0: there is none yet, the connection waits */
	const char *type;
	struct MHD_Response *response;
	const char *policy; /* NULL: a browser may do nothing with it */
	bool asks;          /* a browser asks its user for the token */
};

struct answer http_say(unsigned status, const char *text);

struct answer http_refuse(bool asks); /* for want of the token */

/* Whether who asks has sent the token, or there is none. */
bool http_may(const struct http *http, struct MHD_Connection *connection);

/* The same, where a browser sends the password that it asked its user for. Not for what does
 * something: a browser sends it along with what pages of other sites ask for. */
bool http_may_look(const struct http *http, struct MHD_Connection *connection);

struct answer http_page_answer(const struct http_page *page);

/* What the agent has at `url`; what it says of recordings. */
struct answer http_agent_answer(struct http *http, struct MHD_Connection *connection,
                                const char *url);
struct answer http_agent_record(struct http *http, struct MHD_Connection *connection, bool post);

struct answer http_live_answer(struct http *http, struct MHD_Connection *connection,
                               const char *url);
struct answer http_live_event(struct http *http, struct MHD_Connection *connection);
void http_live_end(struct http *http); /* before its daemon is stopped */

#endif
