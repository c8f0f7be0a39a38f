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

static void put(void *data)
{
	struct live_event *event = data;

	if (!event || atomic_fetch_sub(&event->users, 1) > 1)
		return;
	buf_free(&event->text);
	free(event);
}

/* The event; NULL: there is none. Then `waits` tells whether the connection waits for it. */
static struct live_event *take(struct http *http, struct MHD_Connection *connection, bool *waits)
{
	struct live_readers *readers = &http->readers;

	LOCKED(&http->lock);
	readers->asked_ns = clock_now_ns();
	*waits = !readers->event && !readers->end && readers->n_waiting < LIVE_WAITING;
	if (readers->event) {
		atomic_fetch_add(&readers->event->users, 1);
	} else if (*waits) {
		MHD_suspend_connection(connection);
		readers->waiting[readers->n_waiting++] = connection;
	}
	return readers->event;
}

static struct answer answer_event(struct http *http, struct MHD_Connection *connection)
{
	bool waits;
	struct live_event *event = take(http, connection, &waits);
	struct answer answer = { MHD_HTTP_OK, "text/event-stream", NULL };
	struct MHD_IoVec part;

	if (waits)
		return (struct answer){ 0 };
	if (!event) {
		answer.response = http_say(MHD_HTTP_OK, LIVE_SOON).response;
		return answer;
	}
	part = (struct MHD_IoVec){ event->text.data, event->text.len };
	answer.response = MHD_create_response_from_iovec(&part, 1, put, event);
	if (!answer.response)
		put(event);
	return answer;
}

struct answer http_live_answer(struct http *http, struct MHD_Connection *connection,
                               const char *url)
{
	if (!strcmp(url, "/live"))
		return answer_event(http, connection);
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

static struct live_event *event_of(const char *text, uint64_t number)
{
	struct live_event *event = xcalloc(1, sizeof(*event));

	event->users = 1;
	buf_printf(&event->text, LIVE_AGAIN "id: %llu\n", (unsigned long long)number);
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
	exchange(http, text ? event_of(text, ++http->readers.n_published) : NULL, text);
}

void http_live_end(struct http *http)
{
	pthread_mutex_lock(&http->lock);
	http->readers.end = true;
	pthread_mutex_unlock(&http->lock);
	exchange(http, NULL, true);
}
