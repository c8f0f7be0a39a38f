// SPDX-License-Identifier: MIT
#include "base/xml.h"

#include <string.h>

#include "base/text.h"

static const char *escape_of(char c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	default:
		return "&apos;";
	}
}

void xml_add_text(struct buf *out, const char *text)
{
	struct buf safe = { 0 };
	const char *at;

	text_add_safe(&safe, text);
	for (at = safe.data ? safe.data : ""; *at;) {
		size_t plain = strcspn(at, "<>&\"'");

		buf_add(out, at, plain);
		at += plain;
		if (*at)
			buf_puts(out, escape_of(*at++));
	}
	buf_free(&safe);
}
