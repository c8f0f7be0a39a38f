// SPDX-License-Identifier: MIT
/* A page that asks anew each second for what it shows. */
#include "node/http_inside.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/xalloc.h"

#define LIVE_AGAIN "retry: 1000\n" /* ms, until a browser asks for the next */
#define LIVE_SOON  "retry: 300\n\n"

/* One text for all who read it, however slowly: it has megabytes where there are many processes. */
struct live_event {
	atomic_uint_fast64_t users;
	struct buf text;
};

void http_live_put(void *data)
{
	struct live_event *event = data;

	if (!event || atomic_fetch_sub(&event->users, 1) > 1)
		return;
	buf_free(&event->text);
	free(event);
}

static struct live_event *live_event_take(struct http *http)
{
	LOCKED(&http->lock);
	if (http->event)
		atomic_fetch_add(&http->event->users, 1);
	return http->event;
}

static struct answer live_event(struct http *http)
{
	struct live_event *event = live_event_take(http);
	struct answer answer = { MHD_HTTP_OK, "text/event-stream", NULL };
	struct MHD_IoVec part;

	if (!event) {
		answer.response = http_say(MHD_HTTP_OK, LIVE_SOON).response;
		return answer;
	}
	part = (struct MHD_IoVec){ event->text.data, event->text.len };
	answer.response = MHD_create_response_from_iovec(&part, 1, http_live_put, event);
	if (!answer.response)
		http_live_put(event);
	return answer;
}

struct answer http_live_answer(struct http *http, const struct http_live *live, const char *url)
{
	struct answer answer = { MHD_HTTP_OK, "text/html; charset=utf-8", NULL };

	if (!strcmp(url, "/live"))
		return live_event(http);
	if (strcmp(url, "/"))
		return http_say(MHD_HTTP_NOT_FOUND, "There are / and /live.\n");
	answer.response = MHD_create_response_from_buffer(live->bytes, (void *)live->html,
	                                                  MHD_RESPMEM_PERSISTENT);
	return answer;
}

void http_publish(struct http *http, const char *text)
{
	struct live_event *event = xcalloc(1, sizeof(*event)), *before;

	event->users = 1;
	buf_printf(&event->text, LIVE_AGAIN "id: %llu\n", (unsigned long long)++http->n_published);
	while (*text) {
		size_t len = strcspn(text, "\n");

		buf_puts(&event->text, "data: ");
		buf_add(&event->text, text, len);
		buf_putc(&event->text, '\n');
		text += len + (text[len] == '\n');
	}
	buf_putc(&event->text, '\n');
	pthread_mutex_lock(&http->lock);
	before = http->event;
	http->event = event;
	pthread_mutex_unlock(&http->lock);
	http_live_put(before);
}
