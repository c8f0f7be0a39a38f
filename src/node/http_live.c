// SPDX-License-Identifier: MIT
/*
 * A page that asks anew each second for what it shows. Whoever asks while nothing is published
 * waits until something is: it is made for readers alone.
 */
#include "node/http_inside.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/xalloc.h"

#define LIVE_AGAIN      "retry: 1000\n" /* ms, until a browser asks for the next */
#define LIVE_SOON       "retry: 300\n\n"
#define LIVE_LISTENS_NS 3000000000ull /* after it asked, a reader is one */

/* One text for all who read it, however slowly. */
struct live_event {
	atomic_uint_fast64_t users;
	struct buf text;
};

static void put(struct live_event *event)
{
	if (!event || atomic_fetch_sub(&event->users, 1) > 1)
		return;
	buf_free(&event->text);
	free(event);
}

/* What one answer consists of: the account, where it is news, and the figures. */
struct live_parts {
	struct live_event *account, *event;
};

static void put_parts(void *data)
{
	struct live_parts *parts = data;

	put(parts->account);
	put(parts->event);
	free(parts);
}

/* With the lock. "17.3", as a browser says what it has: 3 is the account's number. */
static bool has_account(const struct live_readers *readers, struct MHD_Connection *connection)
{
	const char *id = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID");
	const char *number = id ? strchr(id, '.') : NULL;

	return number && strtoull(number + 1, NULL, 10) == readers->n_accounts;
}

/* Both NULL: there is none. Then `waits` tells whether the connection waits for it. */
static struct live_parts take(struct http *http, struct MHD_Connection *connection, bool *waits)
{
	struct live_readers *readers = &http->readers;
	struct live_parts parts = { 0 };

	LOCKED(&http->lock);
	readers->asked_ns = clock_now_ns();
	*waits =
		http->live && !readers->event && !readers->end && readers->n_waiting < LIVE_WAITING;
	if (readers->event) {
		parts.event = readers->event;
		parts.account = has_account(readers, connection) ? NULL : readers->account;
		atomic_fetch_add(&parts.event->users, 1);
		if (parts.account)
			atomic_fetch_add(&parts.account->users, 1);
	} else if (*waits) {
		MHD_suspend_connection(connection);
		readers->waiting[readers->n_waiting++] = connection;
	}
	return parts;
}

static struct MHD_Response *response_of(const struct live_parts *taken)
{
	struct live_parts *parts = xcalloc(1, sizeof(*parts));
	struct MHD_Response *response;
	struct MHD_IoVec vector[2];
	unsigned n = 0;

	*parts = *taken;
	if (parts->account)
		vector[n++] =
			(struct MHD_IoVec){ parts->account->text.data, parts->account->text.len };
	vector[n++] = (struct MHD_IoVec){ parts->event->text.data, parts->event->text.len };
	response = MHD_create_response_from_iovec(vector, n, put_parts, parts);
	if (!response)
		put_parts(parts);
	return response;
}

/* "why", which is an object in one line: else it would be several events. */
static bool is_line(const char *text)
{
	while ((unsigned char)*text >= ' ')
		text++;
	return !*text;
}

struct answer http_live_event(struct http *http, struct MHD_Connection *connection)
{
	bool waits;
	struct live_parts parts = take(http, connection, &waits);
	struct answer answer = { MHD_HTTP_OK, "text/event-stream", NULL };

	if (waits)
		return (struct answer){ 0 };
	answer.response =
		parts.event ? response_of(&parts) : http_say(MHD_HTTP_OK, LIVE_SOON).response;
	return answer;
}

struct answer http_live_answer(struct http *http, struct MHD_Connection *connection,
                               const char *url)
{
	if (!strcmp(url, "/live"))
		return http_live_event(http, connection);
	return strcmp(url, "/") ? http_say(MHD_HTTP_NOT_FOUND, "There are / and /live.\n")
	                        : http_page_answer(http->page);
}

/* ---- whoever publishes --------------------------------------------------------------------- */

bool http_is_read(struct http *http, uint64_t now_ns)
{
	const struct live_readers *readers = &http->readers;

	LOCKED(&http->lock);
	return readers->n_waiting ||
	       (readers->asked_ns && now_ns < readers->asked_ns + LIVE_LISTENS_NS);
}

static struct live_event *event_of(const char *text, uint64_t number, uint64_t account)
{
	struct live_event *event = xcalloc(1, sizeof(*event));

	event->users = 1;
	buf_printf(&event->text, LIVE_AGAIN "id: %llu", (unsigned long long)number);
	if (account)
		buf_printf(&event->text, ".%llu", (unsigned long long)account);
	buf_putc(&event->text, '\n');
	while (*text) {
		size_t len = strcspn(text, "\n");

		buf_puts(&event->text, "data: ");
		buf_add(&event->text, text, len);
		buf_putc(&event->text, '\n');
		text += len + (text[len] == '\n');
	}
	buf_putc(&event->text, '\n');
	return event;
}

/* A connection that waits is there until it is resumed, so that needs no lock. */
static void exchange(struct http *http, struct live_event *event, bool resumes)
{
	struct live_readers *readers = &http->readers;
	struct MHD_Connection *waiting[LIVE_WAITING];
	struct live_event *before;
	size_t n = 0;

	pthread_mutex_lock(&http->lock);
	before = readers->event;
	readers->event = event;
	for (; resumes && n < readers->n_waiting; n++)
		waiting[n] = readers->waiting[n];
	readers->n_waiting -= n;
	pthread_mutex_unlock(&http->lock);
	put(before);
	while (n)
		MHD_resume_connection(waiting[--n]);
}

void http_publish(struct http *http, const char *text)
{
	struct live_readers *readers = &http->readers;
	uint64_t account = readers->account ? readers->n_accounts : 0;

	exchange(http, text ? event_of(text, ++readers->n_published, account) : NULL, text);
}

void http_publish_account(struct http *http, const char *json)
{
	struct live_event *event = NULL, *before;

	if (json && is_line(json)) {
		event = xcalloc(1, sizeof(*event));
		event->users = 1;
		buf_printf(&event->text, LIVE_AGAIN "event: why\ndata: %s\n\n", json);
	}
	pthread_mutex_lock(&http->lock);
	before = http->readers.account;
	http->readers.account = event;
	http->readers.n_accounts++;
	pthread_mutex_unlock(&http->lock);
	put(before);
}

void http_live_end(struct http *http)
{
	pthread_mutex_lock(&http->lock);
	http->readers.end = true;
	pthread_mutex_unlock(&http->lock);
	exchange(http, NULL, true);
	http_publish_account(http, NULL);
}
