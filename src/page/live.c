// SPDX-License-Identifier: MIT
/* The page of `top --web`: its script asks for what there is each second. */
#include "page/page.h"

void page_live(struct buf *html, struct buf *policy)
{
	buf_puts(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	               "<meta name=\"viewport\" content=\"width=device-width\">\n"
	               "<title>cuscope top</title>\n<style>");
	buf_add(html, report_page_style, (size_t)(report_page_style_end - report_page_style));
	buf_puts(html,
	         "</style>\n</head>\n<body>\n<div id=\"page\"><noscript>This page is shown by "
	         "a script, which this browser does not run.</noscript></div>\n<script>");
	buf_add(html, report_live_script, (size_t)(report_live_script_end - report_live_script));
	buf_puts(html, "</script>\n</body>\n</html>\n");
	buf_printf(policy,
	           "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors "
	           "'none'; connect-src 'self'; style-src 'sha256-%s'; script-src 'sha256-%s'",
	           report_page_style_hash, report_live_script_hash);
}
