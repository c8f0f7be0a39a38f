// SPDX-License-Identifier: MIT
#include "node/http_page.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "node/recorder.h"

/* ---- http host ----------------------------------------------------------------------------- */

#define NAME_MOST 64 /* an IPv6 address is shorter */

/* Up to the port, without the brackets of IPv6. False: it is none. */
static bool name_of(const char *host, char name[NAME_MOST])
{
	bool brackets = *host == '[';
	const char *begin = host + brackets;
	size_t bytes = strcspn(begin, brackets ? "]" : ":");
	const char *rest = begin + bytes + brackets;

	if (!bytes || bytes >= NAME_MOST || (brackets && begin[bytes] != ']'))
		return false;
	if (*rest == ':')
		rest += 1 + strspn(rest + 1, "0123456789");
	memcpy(name, begin, bytes);
	name[bytes] = '\0';
	return !*rest;
}

bool http_host_is_loopback(const char *host)
{
	char name[NAME_MOST];
	struct in6_addr six;
	struct in_addr four;

	if (!host)
		return true;
	if (!name_of(host, name))
		return false;
	if (*host == '[')
		return inet_pton(AF_INET6, name, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
	if (inet_pton(AF_INET, name, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return !strcasecmp(name, "localhost");
}

/* ---- http record --------------------------------------------------------------------------- */

#define LAST_MOST_NS 3600000000000ull

static unsigned record_without(struct buf *out)
{
	buf_puts(out, "There is no flight recorder: [recorder] enabled = no.\n");
	return MHD_HTTP_NOT_FOUND;
}

unsigned http_record_ask(struct recorder *recorder, const char *last, struct buf *out)
{
	uint64_t last_ns = 0, number;

	if (!recorder_holds(recorder))
		return record_without(out);
	if (last && (!parse_duration_ns(last, &last_ns) || !last_ns || last_ns > LAST_MOST_NS)) {
		buf_puts(out, "last is no duration up to 1h (30s, 2m).\n");
		return MHD_HTTP_BAD_REQUEST;
	}
	number = recorder_request(recorder, last_ns);
	if (!number) {
		buf_puts(out, "Requests are off: [rules] request = no.\n");
		return MHD_HTTP_FORBIDDEN;
	}
	buf_printf(out, "request=%llu\n", (unsigned long long)number);
	return MHD_HTTP_ACCEPTED;
}

unsigned http_record_tell(struct recorder *recorder, const char *request, struct buf *out)
{
	static const unsigned status[] = {
		[RECORDER_WAITING] = MHD_HTTP_ACCEPTED,
		[RECORDER_WRITTEN] = MHD_HTTP_OK,
		[RECORDER_REFUSED] = MHD_HTTP_TOO_MANY_REQUESTS,
		[RECORDER_FAILED] = MHD_HTTP_SERVICE_UNAVAILABLE,
		[RECORDER_UNKNOWN] = MHD_HTTP_NOT_FOUND,
	};
	char text[RECORDER_ANSWER_TEXT] = "";
	enum recorder_answer answer;
	uint64_t number;

	if (!recorder_holds(recorder))
		return record_without(out);
	if (!request || !parse_number(request, UINT64_MAX / 2, &number)) {
		buf_puts(out, "POST /record asks for a recording, GET /record?request=N tells what "
		              "came of it.\n");
		return MHD_HTTP_BAD_REQUEST;
	}
	answer = recorder_request_answer(recorder, number, text);
	if (answer == RECORDER_WAITING)
		buf_puts(out, "waiting\n");
	else if (answer == RECORDER_UNKNOWN)
		buf_puts(out, "There is no such request, or it is long over.\n");
	else
		buf_printf(out, "%s\n", text);
	return status[answer];
}

/* ---- http page ----------------------------------------------------------------------------- */

static void add_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			buf_puts(out, "&lt;");
			break;
		case '>':
			buf_puts(out, "&gt;");
			break;
		case '&':
			buf_puts(out, "&amp;");
			break;
		case '"':
			buf_puts(out, "&quot;");
			break;
		default:
			buf_putc(out, *text);
		}
	}
}

static void add_row(void *data, const struct metric_family *family, size_t values)
{
	struct buf *out = data;

	buf_puts(out, "<tr><td><code>");
	add_text(out, family->name);
	buf_puts(out, family->type == METRIC_COUNTER ? "_total"
	              : family->type == METRIC_INFO  ? "_info"
	                                             : "");
	buf_printf(out, "</code></td><td>%zu</td><td>", values);
	add_text(out, family->help);
	buf_puts(out, "</td></tr>\n");
}

void http_page(const struct metrics *metrics, uint64_t age_ns, struct buf *out)
{
	buf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	              "<title>cuscope agent</title></head>\n<body>\n<h1>cuscope agent</h1>\n"
	              "<p>What the processes of this machine do with CUDA.</p>\n"
	              "<ul><li><a href=\"/metrics\">/metrics</a>: for Prometheus</li>"
	              "<li><a href=\"/healthz\">/healthz</a>: whether the figures are fresh</li>"
	              "</ul>\n");
	if (!metrics) {
		buf_puts(out, "<p>There are no figures yet.</p>\n</body></html>\n");
		return;
	}
	buf_printf(out, "<p>Version " CUSCOPE_VERSION ", %zu values, ", metrics_count(metrics));
	buf_fixed(out, age_ns / 1000000, 3);
	buf_puts(out, " s old.</p>\n<table>\n<tr><th>Metric</th><th>Series</th><th>Meaning</th>"
	              "</tr>\n");
	metrics_each_family(metrics, add_row, out);
	buf_puts(out, "</table>\n</body></html>\n");
}
