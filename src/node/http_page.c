// SPDX-License-Identifier: MIT
#include "node/http_page.h"

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
