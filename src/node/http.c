// SPDX-License-Identifier: MIT
#include "node/http.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "node/address.h"
#include "node/clients.h"
#include "node/http_page.h"
#include "node/metrics.h"
#include "node/recorder.h"
#include "base/secure_file.h"
#include "node/config.h"

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

/* Appends a gauge for each, which other families may follow. */
static void http_loops_write(const struct http_loops *loops, enum metrics_format format,
                             struct buf *out)
{
	struct metrics *metrics = metrics_new();

	for (int loop = 0; loop < LOOPS; loop++) {
		if (!loops->turned_ns[loop])
			continue;
		metrics_family(metrics, &loops_rows[loop].age);
		metrics_add(metrics, 0, age_ns(loops, loop), 9, 0);
	}
	metrics_write_part(metrics, format, out);
	metrics_free(metrics);
}

/* ---- http ---------------------------------------------------------------------------------- */

#define HEADER_BYTES 8192 /* of a connection's memory, of which a half is for what it asks */
#define IDLE_S       5
#define AGE_NS       15000000000ull /* of a connection */
#define TOKEN_LEAST  16
#define TOKEN_MOST   256
#define PRIORITIES   "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct http {
	struct MHD_Daemon *daemon;
	struct snapshots *snapshots;
	pthread_mutex_t lock;      /* of the recorder, while it is asked */
	struct recorder *recorder; /* NULL: there is none */
	struct address address;
	int listener; /* of the daemon and, after SIGHUP, of the next one */
	struct clients *clients;
	char token[TOKEN_MOST + 1];
	bool has_token;
	const struct http_live *live; /* NULL: the agent's paths are served */
	struct live_event *event; /* the last that was published, or NULL; under the lock, too */
	uint64_t n_published;
	atomic_uint_fast64_t answered, refused;
	char complaint[256]; /* what the library said last while it was started */
};

/* ---- answers ------------------------------------------------------------------------------- */

struct answer {
	unsigned status;
	const char *type;
	struct MHD_Response *response;
};

static struct answer say(unsigned status, const char *text)
{
	return (struct answer){ status, "text/plain; charset=utf-8",
		                MHD_create_response_from_buffer(strlen(text), (void *)text,
		                                                MHD_RESPMEM_MUST_COPY) };
}

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
		return say(MHD_HTTP_SERVICE_UNAVAILABLE, "There are no figures yet.\n");
	if (snapshot_is_stale(snapshot, clock_now_ns())) {
		snapshot_put(snapshot);
		return say(MHD_HTTP_SERVICE_UNAVAILABLE,
		           "The figures are old; /healthz says how old.\n");
	}
	pages = xcalloc(1, sizeof(*pages));
	pages->snapshot = snapshot;
	look_at_loops(http, &loops);
	buf_puts(&pages->ages, "");
	http_loops_write(&loops, format, &pages->ages);
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
		return say(MHD_HTTP_SERVICE_UNAVAILABLE, "starting\n");
	look_at_loops(http, &loops);
	stale = snapshot_is_stale(snapshot, loops.now_ns);
	buf_puts(&text, stale ? "stale " : "ok ");
	buf_fixed(&text, snapshot_age_ns(snapshot, loops.now_ns) / 1000000, 3);
	buf_puts(&text, " s\n");
	hangs = http_loops_hang(&loops, &text);
	snapshot_put(snapshot);
	return say(stale || hangs ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, text.data);
}

static struct answer answer_page(struct http *http, const char *accept)
{
	struct snapshot *snapshot = snapshots_take(http->snapshots);
	AT_END(buf_free) struct buf text = { 0 };
	struct answer answer;

	http_page(snapshot ? snapshot_metrics(snapshot) : NULL,
	          snapshot ? snapshot_age_ns(snapshot, clock_now_ns()) : 0, &text);
	snapshot_put(snapshot);
	answer = say(MHD_HTTP_OK, text.data);
	answer.type = "text/html; charset=utf-8";
	return answer;
}

static const struct path {
	const char *path;
	bool open; /* without the token */
	struct answer (*answer)(struct http *http, const char *accept);
} paths[] = {
	{ "/metrics", false, answer_metrics },
	{ "/healthz", true, answer_health }, /* it tells nothing but that */
	{ "/", false, answer_page },
};

/* ---- requests ------------------------------------------------------------------------------ */

/* ---- live pages ------------------------------------------------------------------------------ */

#define LIVE_AGAIN "retry: 1000\n" /* ms, until a browser asks for the next */
#define LIVE_SOON  "retry: 300\n\n"

/* One text for all who read it, however slowly: it has megabytes where there are many processes. */
struct live_event {
	atomic_uint_fast64_t users;
	struct buf text;
};

static void live_event_put(void *data)
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
		answer.response = say(MHD_HTTP_OK, LIVE_SOON).response;
		return answer;
	}
	part = (struct MHD_IoVec){ event->text.data, event->text.len };
	answer.response = MHD_create_response_from_iovec(&part, 1, live_event_put, event);
	if (!answer.response)
		live_event_put(event);
	return answer;
}

static struct answer live_answer(struct http *http, const struct http_live *live, const char *url)
{
	struct answer answer = { MHD_HTTP_OK, "text/html; charset=utf-8", NULL };

	if (!strcmp(url, "/live"))
		return live_event(http);
	if (strcmp(url, "/"))
		return say(MHD_HTTP_NOT_FOUND, "There are / and /live.\n");
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
	live_event_put(before);
}

/* ---- who may ask ----------------------------------------------------------------------------- */

/* In a time that depends on what is sent, not on what is right. */
static bool token_is(const struct http *http, const char *sent)
{
	size_t n = strnlen(sent, TOKEN_MOST + 1), right = strlen(http->token);
	unsigned char difference = n != right;

	for (size_t i = 0; i < TOKEN_MOST; i++)
		difference |= (unsigned char)((i < n ? sent[i] : 0) ^ http->token[i]);
	return !difference;
}

/* A person's browser sends what it asked him for. */
static bool may_by_password(const struct http *http, struct MHD_Connection *connection)
{
	char *password = NULL;
	char *user = MHD_basic_auth_get_username_password(connection, &password);
	bool may = password && token_is(http, password);

	if (password)
		explicit_bzero(password, strlen(password));
	MHD_free(password);
	MHD_free(user);
	return may;
}

static bool may(const struct http *http, struct MHD_Connection *connection)
{
	const char *sent = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
	                                               MHD_HTTP_HEADER_AUTHORIZATION);

	if (!http->has_token)
		return true;
	return sent && !strncasecmp(sent, "Bearer ", 7) && token_is(http, sent + 7);
}

static bool has_body(struct MHD_Connection *connection)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
	                                                 MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && strcmp(length, "0")) ||
	       MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
	                                   MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

/* Not even on loopback without a token: see http_page.h. */
static struct answer answer_record(struct http *http, struct MHD_Connection *connection, bool post)
{
	const char *value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND,
	                                                post ? "last" : "request");
	AT_END(buf_free) struct buf text = { 0 };
	unsigned status;

	if (!http->has_token)
		return say(MHD_HTTP_FORBIDDEN,
		           "/record wants a token, and there is none: --token-file.\n");
	if (!may(http, connection))
		return say(MHD_HTTP_UNAUTHORIZED, "The token is missing or wrong.\n");
	pthread_mutex_lock(&http->lock);
	status = post ? http_record_ask(http->recorder, value, &text)
	              : http_record_tell(http->recorder, value, &text);
	pthread_mutex_unlock(&http->lock);
	return say(status, text.data);
}

static struct answer answer_path(struct http *http, struct MHD_Connection *connection,
                                 const char *url)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (strcmp(paths[i].path, url))
			continue;
		if (!paths[i].open && !may(http, connection))
			return say(MHD_HTTP_UNAUTHORIZED, "The token is missing or wrong.\n");
		return paths[i].answer(http, accept);
	}
	return say(MHD_HTTP_NOT_FOUND, "There are /metrics, /healthz and /.\n");
}

static struct answer answer_request(struct http *http, struct MHD_Connection *connection,
                                    const char *url, const char *method)
{
	const struct http_live *live = http->live;
	bool post = !strcmp(method, MHD_HTTP_METHOD_POST);
	bool record = !live && !strcmp(url, "/record");
	const char *host =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	if (!http->has_token && address_is_loopback(&http->address) && !http_host_is_loopback(host))
		return say(
			MHD_HTTP_MISDIRECTED_REQUEST,
			"Here are 127.0.0.1, [::1] and localhost; the request is for another.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD) &&
	    !(post && record))
		return say(MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
	if (has_body(connection))
		return say(MHD_HTTP_CONTENT_TOO_LARGE, "No body is taken.\n");
	if (live && !may(http, connection) && !may_by_password(http, connection))
		return say(MHD_HTTP_UNAUTHORIZED, "The token is missing or wrong.\n");
	if (live)
		return live_answer(http, live, url);
	if (record)
		return answer_record(http, connection, post);
	return answer_path(http, connection, url);
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **state)
{
	struct http *http = data;
	struct answer answer = answer_request(http, connection, url, method);
	const struct http_live *live = http->live;
	enum MHD_Result result;
	bool well = answer.status == MHD_HTTP_OK || answer.status == MHD_HTTP_ACCEPTED;

	atomic_fetch_add(well ? &http->answered : &http->refused, 1);
	if (!answer.response)
		return MHD_NO;
	MHD_add_response_header(answer.response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type);
	MHD_add_response_header(answer.response, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(answer.response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(answer.response, "Content-Security-Policy",
	                        live ? live->policy : "default-src 'none'");
	if (live) {
		MHD_add_response_header(answer.response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
		MHD_add_response_header(answer.response, "Cross-Origin-Resource-Policy",
		                        "same-origin");
	}
	if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(answer.response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (answer.status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(answer.response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
		                        live ? "Basic realm=\"cuscope\", charset=\"UTF-8\""
		                             : "Bearer");
	result = MHD_queue_response(connection, answer.status, answer.response);
	MHD_destroy_response(answer.response);
	return result;
}

/* ---- connections --------------------------------------------------------------------------- */

static void on_connection(void *data, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *fd =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *from =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct http *http = data;

	if (code == MHD_CONNECTION_NOTIFY_STARTED && fd && from)
		*state = clients_add(http->clients, fd->connect_fd, from->client_addr,
		                     clock_now_ns());
	else if (code == MHD_CONNECTION_NOTIFY_CLOSED && *state)
		clients_remove(http->clients, *state);
}

void http_sweep(struct http *http, uint64_t now)
{
	clients_end_before(http->clients, now > AGE_NS ? now - AGE_NS : 0);
}

/* ---- begin and end ------------------------------------------------------------------------- */

static void on_complaint(void *data, const char *format, va_list ap)
{
	struct http *http = data;

	if (!http->daemon)
		vsnprintf(http->complaint, sizeof(http->complaint), format, ap);
}

struct tls {
	struct buf certificate, key;
};

static void tls_free(struct tls *tls)
{
	if (tls->key.data)
		explicit_bzero(tls->key.data, tls->key.len);
	buf_free(&tls->certificate);
	buf_free(&tls->key);
}

static int check_loopback(const struct node_settings *settings, const struct address *address,
                          struct err *err)
{
	if (address_is_loopback(address))
		return 0;
	if (*settings->certificate && *settings->key && *settings->token)
		return 0;
	return err_set(
		err, EPERM,
		"%s can be reached from other machines; that needs --tls-cert, --tls-key and "
		"--token-file, while 127.0.0.1 and [::1] do without",
		settings->listen);
}

static int read_tls(const struct node_settings *settings, struct tls *tls, struct err *err)
{
	int r;

	if (!*settings->certificate && !*settings->key)
		return 0;
	if (!*settings->certificate || !*settings->key)
		return err_set(err, EINVAL, "--tls-cert and --tls-key go together");
	r = secure_file_read(settings->certificate, SECURE_FILE_PUBLIC, &tls->certificate, err);
	if (!r)
		r = secure_file_read(settings->key, SECURE_FILE_SECRET, &tls->key, err);
	return r;
}

/* Without the newline that editors put behind it. */
static int read_token(const struct node_settings *settings, struct http *http, struct err *err)
{
	AT_END(buf_free) struct buf text = { 0 };
	size_t bytes;
	int r;

	if (!*settings->token)
		return 0;
	r = secure_file_read(settings->token, SECURE_FILE_SECRET, &text, err);
	bytes = r ? 0 : strcspn(text.data, "\r\n");
	if (!r && (bytes < TOKEN_LEAST || bytes > TOKEN_MOST))
		r = err_set(err, EINVAL, "%s: a token has %d to %d characters in its first line",
		            settings->token, TOKEN_LEAST, TOKEN_MOST);
	if (!r) {
		memcpy(http->token, text.data, bytes);
		http->has_token = true;
	}
	if (text.data)
		explicit_bzero(text.data, text.len);
	return r;
}

/* With MHD_USE_ITC it is woken to end: without, the shared socket would be shut down for that. */
static int start_daemon(struct http *http, const struct node_settings *settings, int fd,
                        struct tls *tls, struct err *err)
{
	unsigned flags =
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ITC | MHD_USE_ERROR_LOG;
	unsigned most = (unsigned)settings->connections;
	sigset_t all, before; /* the server's thread takes none: they are for the capture's loop */
	struct MHD_OptionItem options[] = {
		{ MHD_OPTION_LISTEN_SOCKET, fd, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, 2 * most + 8, NULL }, /* ended ones close soon */
		{ MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEADER_BYTES, NULL },
		{ MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
		{ tls->key.data ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, 0, tls->key.data },
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, tls->certificate.data },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (tls->key.data)
		flags |= MHD_USE_TLS;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	http->daemon =
		MHD_start_daemon(flags, 0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER,
	                         on_complaint, http, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
	                         http, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (http->daemon)
		return 0;
	close(fd);
	http->complaint[strcspn(http->complaint, "\n")] = '\0';
	return err_set(err, EINVAL, "cannot serve on %s: %s", settings->listen,
	               *http->complaint ? http->complaint
	               : tls->key.data  ? "the certificate or its key is wrong"
	                                : "the server did not start");
}

/* The socket of the daemon, which closes it; 0 or a negative errno. */
static int listen_as(struct http *http, const struct http *before, const char *text, int *fd,
                     struct err *err)
{
	if (before && before->address.bytes == http->address.bytes &&
	    !memcmp(&before->address.at, &http->address.at, http->address.bytes))
		http->listener = fcntl(before->listener, F_DUPFD_CLOEXEC, 0);
	else
		http->listener = address_listen(&http->address, text, err);
	*fd = http->listener < 0 ? -1 : fcntl(http->listener, F_DUPFD_CLOEXEC, 0);
	if (*fd >= 0)
		return 0;
	return err->code ? err->code : err_set(err, errno, "%s: %s", text, strerror(errno));
}

static int begin(struct http *http, const struct node_settings *settings, const struct http *before,
                 struct err *err)
{
	struct tls tls = { 0 };
	int r, fd = -1;

	if (!address_parse(settings->listen, &http->address))
		return err_set(err, EINVAL, "'%s' is no address with a port", settings->listen);
	r = check_loopback(settings, &http->address, err);
	if (!r)
		r = read_tls(settings, &tls, err);
	if (!r)
		r = read_token(settings, http, err);
	if (!r)
		r = listen_as(http, before, settings->listen, &fd, err);
	if (!r)
		r = start_daemon(http, settings, fd, &tls, err);
	tls_free(&tls);
	return r;
}

static int http_begin(const struct node_settings *settings, struct http *http,
                      const struct http *before, struct http **out, struct err *err)
{
	int r;

	http->listener = -1;
	pthread_mutex_init(&http->lock, NULL);
	http->clients = clients_new(settings->connections, settings->connections / 4 * 3);
	r = begin(http, settings, before, err);
	if (r)
		http_stop(http);
	*out = r ? NULL : http;
	return r;
}

int http_start(const struct node_settings *settings, struct snapshots *snapshots,
               const struct http *before, struct http **out, struct err *err)
{
	struct http *http = xcalloc(1, sizeof(*http));

	http->snapshots = snapshots;
	return http_begin(settings, http, before, out, err);
}

int http_start_live(const struct node_settings *settings, const struct http_live *live,
                    struct http **out, struct err *err)
{
	struct http *http = xcalloc(1, sizeof(*http));

	http->live = live;
	return http_begin(settings, http, NULL, out, err);
}

int http_check(const struct node_settings *settings, struct err *err)
{
	struct snapshots *none = snapshots_new();
	struct http *http;
	int r = http_start(settings, none, NULL, &http, err);

	if (!r)
		http_stop(http);
	snapshots_free(none);
	return r;
}

void http_set_recorder(struct http *http, struct recorder *recorder)
{
	LOCKED(&http->lock);
	http->recorder = recorder;
}

void http_figures(struct http *http, struct http_figures *figures)
{
	figures->answered = atomic_load(&http->answered);
	figures->refused = atomic_load(&http->refused);
	figures->evicted = clients_ended(http->clients);
}

void http_stop(struct http *http)
{
	if (!http)
		return;
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
	if (http->listener >= 0)
		close(http->listener);
	clients_free(http->clients);
	live_event_put(http->event);
	pthread_mutex_destroy(&http->lock);
	explicit_bzero(http->token, sizeof(http->token));
	free(http);
}
