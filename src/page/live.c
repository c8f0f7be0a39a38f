// SPDX-License-Identifier: MIT
/* Pages whose scripts ask for what there is each second. */
#include "page/page.h"

static const struct live {
	const char *title, *script, *end, *hash;
} lives[] = {
	[PAGE_LIVE_TOP] = { "cuscope top", report_live_script, report_live_script_end,
	                    report_live_script_hash },
	[PAGE_LIVE_AGENT] = { "cuscope agent", report_agent_script, report_agent_script_end,
	                      report_agent_script_hash },
};

void page_live(enum page_live which, struct buf *html, struct buf *policy)
{
	const struct live *live = &lives[which];
	struct json json = { .out = html };

	buf_puts(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	               "<meta name=\"viewport\" content=\"width=device-width\">\n");
	buf_printf(html, "<title>%s</title>\n<style>", live->title);
	buf_add(html, report_page_style, (size_t)(report_page_style_end - report_page_style));
	buf_puts(html,
	         "</style>\n</head>\n<body>\n<div id=\"page\"><noscript>This page is shown by "
	         "a script, which this browser does not run.</noscript></div>\n"
	         "<script type=\"application/json\" id=\"causes\">");
	page_json_causes(&json, NULL);
	buf_puts(html, "</script>\n<script>");
	buf_add(html, live->script, (size_t)(live->end - live->script));
	buf_puts(html, "</script>\n</body>\n</html>\n");
	buf_printf(policy,
	           "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
	           "'none'; connect-src 'self'; style-src 'sha256-%s'; script-src 'sha256-%s'",
	           report_page_style_hash, live->hash);
}
