// SPDX-License-Identifier: MIT
#include "node/http_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/secure_file.h"
#include "base/xalloc.h"
#include "node/clients.h"
#include "node/config.h"

#define HEADER_BYTES 8192 /* of a connection's memory, of which a half is for what it asks */
#define IDLE_S       5
#define AGE_NS       15000000000ull /* of a connection */
#define TOKEN_LEAST  16
#define PRIORITIES   "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* ---- answers ------------------------------------------------------------------------------- */

struct answer http_say(unsigned status, const char *text)
{
	return (struct answer){ status, "text/plain; charset=utf-8",
		                MHD_create_response_from_buffer(strlen(text), (void *)text,
		                                                MHD_RESPMEM_MUST_COPY) };
}

struct answer http_page_answer(const struct http_page *page)
{
	return (struct answer){ MHD_HTTP_OK, "text/html; charset=utf-8",
		                MHD_create_response_from_buffer(page->bytes, (void *)page->html,
		                                                MHD_RESPMEM_PERSISTENT),
		                page->policy };
}

struct answer http_refuse(bool asks)
{
	struct answer answer = http_say(MHD_HTTP_UNAUTHORIZED, "The token is missing or wrong.\n");

	answer.asks = asks;
	return answer;
}

/* ---- who may ask ----------------------------------------------------------------------------- */

/* In a time that depends on what is sent, not on what is right. */
static bool token_is(const struct http *http, const char *sent)
{
	size_t n = strnlen(sent, HTTP_TOKEN_MOST + 1), right = strlen(http->token);
	unsigned char difference = n != right;

	for (size_t i = 0; i < HTTP_TOKEN_MOST; i++)
		difference |= (unsigned char)((i < n ? sent[i] : 0) ^ http->token[i]);
	return !difference;
}

bool http_may(const struct http *http, struct MHD_Connection *connection)
{
	const char *sent = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
	                                               MHD_HTTP_HEADER_AUTHORIZATION);

	if (!http->has_token)
		return true;
	return sent && !strncasecmp(sent, "Bearer ", 7) && token_is(http, sent + 7);
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

bool http_may_look(const struct http *http, struct MHD_Connection *connection)
{
	return http_may(http, connection) || may_by_password(http, connection);
}

static bool has_body(struct MHD_Connection *connection)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
	                                                 MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && strcmp(length, "0")) ||
	       MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
	                                   MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static struct answer answer_request(struct http *http, struct MHD_Connection *connection,
                                    const char *url, const char *method)
{
	bool post = !strcmp(method, MHD_HTTP_METHOD_POST);
	bool record = !http->live && !strcmp(url, "/record");
	const char *host =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	if (!http->has_token && address_is_loopback(&http->address) && !http_host_is_loopback(host))
		return http_say(
			MHD_HTTP_MISDIRECTED_REQUEST,
			"Here are 127.0.0.1, [::1] and localhost; the request is for another.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD) &&
	    !(post && record))
		return http_say(MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
	if (has_body(connection))
		return http_say(MHD_HTTP_CONTENT_TOO_LARGE, "No body is taken.\n");
	if (http->live)
		return http_may_look(http, connection) ? http_live_answer(http, connection, url)
		                                       : http_refuse(true);
	if (record)
		return http_agent_record(http, connection, post);
	return http_agent_answer(http, connection, url);
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **state)
{
	struct http *http = data;
	struct answer answer = answer_request(http, connection, url, method);
	enum MHD_Result result;
	bool well = answer.status == MHD_HTTP_OK || answer.status == MHD_HTTP_ACCEPTED;

	if (!answer.status)
		return MHD_YES; /* it is asked again when there is something to say */
	atomic_fetch_add(well ? &http->answered : &http->refused, 1);
	if (!answer.response)
		return MHD_NO;
	MHD_add_response_header(answer.response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type);
	MHD_add_response_header(answer.response, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(answer.response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(answer.response, "Content-Security-Policy",
	                        answer.policy ? answer.policy : "default-src 'none'");
	MHD_add_response_header(answer.response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(answer.response, "Cross-Origin-Resource-Policy", "same-origin");
	if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(answer.response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (answer.status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(answer.response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
		                        answer.asks ? "Basic realm=\"cuscope\", charset=\"UTF-8\""
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
	if (!r && (bytes < TOKEN_LEAST || bytes > HTTP_TOKEN_MOST))
		r = err_set(err, EINVAL, "%s: a token has %d to %d characters in its first line",
		            settings->token, TOKEN_LEAST, HTTP_TOKEN_MOST);
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
	if (http->live)
		flags |= MHD_ALLOW_SUSPEND_RESUME;
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

int http_start(const struct node_settings *settings, const struct http_page *page,
               struct snapshots *snapshots, const struct http *before, struct http **out,
               struct err *err)
{
	struct http *http = xcalloc(1, sizeof(*http));

	http->page = page;
	http->snapshots = snapshots;
	return http_begin(settings, http, before, out, err);
}

int http_start_live(const struct node_settings *settings, const struct http_page *page,
                    struct http **out, struct err *err)
{
	struct http *http = xcalloc(1, sizeof(*http));

	http->page = page;
	http->live = true;
	return http_begin(settings, http, NULL, out, err);
}

int http_check(const struct node_settings *settings, struct err *err)
{
	struct snapshots *none = snapshots_new();
	struct http *http;
	int r = http_start(settings, NULL, none, NULL, &http, err);

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
	http_live_end(http);
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
	if (http->listener >= 0)
		close(http->listener);
	clients_free(http->clients);
	pthread_mutex_destroy(&http->lock);
	explicit_bzero(http->token, sizeof(http->token));
	free(http);
}
