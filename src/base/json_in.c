// SPDX-License-Identifier: MIT
#include "base/json_in.h"

#include <ctype.h>
#include <string.h>

static void fail(struct json_in *in)
{
	in->bad = true;
	in->at = in->end;
}

/* The first character of what is next; 0: nothing is. */
static char look(struct json_in *in)
{
	while (in->at < in->end && strchr(" \t\r\n", *in->at) && *in->at)
		in->at++;
	return in->at < in->end ? *in->at : '\0';
}

static bool take(struct json_in *in, char wanted)
{
	bool is_there = look(in) == wanted && in->at < in->end;

	in->at += is_there;
	return is_there;
}

/* What is between its quotes. */
static const char *take_text(struct json_in *in, size_t *bytes)
{
	const char *text;

	if (!take(in, '"'))
		fail(in);
	text = in->at;
	while (in->at < in->end && *in->at != '"')
		in->at += *in->at == '\\' && in->end - in->at > 1 ? 2 : 1;
	*bytes = (size_t)(in->at - text);
	if (!take(in, '"'))
		fail(in);
	return text;
}

/* A number or a word. */
static void take_word(struct json_in *in)
{
	const char *from = in->at;

	while (in->at < in->end && (isalnum((unsigned char)*in->at) || *in->at == '-' ||
	                            *in->at == '+' || *in->at == '.'))
		in->at++;
	if (in->at == from)
		fail(in);
}

void json_in_each(struct json_in *in, char bracket, json_in_member *member, void *data)
{
	char end = bracket == '{' ? '}' : ']';

	if (look(in) != bracket) {
		json_in_skip(in);
		return;
	}
	if (++in->depth > JSON_IN_DEPTH) {
		fail(in);
		return;
	}
	take(in, bracket);
	if (look(in) != end) {
		do {
			const char *key = NULL;
			size_t bytes = 0;

			if (bracket == '{')
				key = take_text(in, &bytes);
			if (key && !take(in, ':'))
				fail(in);
			member(data, in, key, bytes);
		} while (take(in, ','));
	}
	if (!take(in, end))
		fail(in);
	in->depth--;
}

static void pass_over(void *data, struct json_in *in, const char *key, size_t key_bytes)
{
	json_in_skip(in);
}

void json_in_skip(struct json_in *in)
{
	char first = look(in);
	size_t bytes;

	if (first == '{' || first == '[')
		json_in_each(in, first, pass_over, NULL);
	else if (first == '"')
		take_text(in, &bytes);
	else
		take_word(in);
}

void json_in_text(struct json_in *in, char *to, size_t room)
{
	const char *text;
	size_t bytes;

	to[0] = '\0';
	if (look(in) != '"') {
		json_in_skip(in);
		return;
	}
	text = take_text(in, &bytes);
	if (in->bad || bytes >= room || memchr(text, '\\', bytes) || memchr(text, '\0', bytes))
		return;
	memcpy(to, text, bytes);
	to[bytes] = '\0';
}

bool json_in_ends(struct json_in *in)
{
	look(in);
	return !in->bad && in->at == in->end;
}
