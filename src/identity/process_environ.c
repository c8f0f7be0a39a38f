// SPDX-License-Identifier: MIT
#include "identity/process_environ.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define LONGEST 1024 /* of a text that is looked at */

/* One character, or one byte that is none, as it is to be shown; bytes of it that were taken. */
static size_t shown(const char *from, char out[20])
{
	unsigned code = 0;
	size_t len = text_utf8(from, &code), put = 0;

	if (len && !text_is_hostile(code)) {
		memcpy(out, from, len);
		out[len] = '\0';
		return len;
	}
	len = len ? len : 1;
	for (size_t i = 0; i < len; i++)
		put += (size_t)snprintf(out + put, 20 - put, "\\x%02x", (unsigned char)from[i]);
	return len;
}

void process_text(char *to, size_t room, const char *from, size_t bytes)
{
	char text[LONGEST + 1], one[20];
	size_t len = strnlen(from, bytes < LONGEST ? bytes : LONGEST), put = 0;

	memcpy(text, from, len);
	text[len] = '\0'; /* where that cuts a character, what is shown of it fits no more */
	for (const char *at = text; *at;) {
		size_t width;

		at += shown(at, one);
		width = strlen(one);
		if (put + width >= room)
			break;
		memcpy(to + put, one, width);
		put += width;
	}
	to[put] = '\0';
}

static bool is_called(const char *entry, size_t len, const char *name)
{
	size_t n = strlen(name);

	return len > n && entry[n] == '=' && !memcmp(entry, name, n);
}

static void take(const char *entry, size_t len, const struct process_variable *wanted, size_t n,
                 bool *found)
{
	for (size_t i = 0; i < n; i++) {
		size_t name = strlen(wanted[i].name) + 1;

		if (found[i] || !is_called(entry, len, wanted[i].name))
			continue;
		found[i] = true;
		process_text(wanted[i].value, wanted[i].room, entry + name, len - name);
	}
}

void process_environ_find(const char *block, size_t bytes, const struct process_variable *wanted,
                          size_t n)
{
	bool found[PROCESS_VARIABLES] = { false };
	size_t len;

	if (n > PROCESS_VARIABLES)
		n = PROCESS_VARIABLES;
	for (size_t i = 0; i < n; i++)
		wanted[i].value[0] = '\0';
	for (size_t at = 0; at < bytes; at += len + 1) {
		len = strnlen(block + at, bytes - at);
		take(block + at, len, wanted, n, found);
	}
}
