/* SPDX-License-Identifier: MIT */
/*
 * Reading JSON that others wrote: in one pass, in a time that its length bounds, and without a copy
 * of it. Whoever reads asks for what is wanted on the way, and passes over the rest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define JSON_IN_DEPTH 256 /* of brackets in each other */

struct json_in {
	const char *at, *end;
	unsigned depth;
	bool bad; /* it is none: from then on there is nothing more in it */
};

/* Takes the value that is next, by one of the functions below. `key` is not ended, and as it is
 * written, with its escapes; NULL in an array. */
typedef void json_in_member(void *data, struct json_in *in, const char *key, size_t key_bytes);

/* Each member of the object ('{') or array ('[') that is next; another value is passed over. */
void json_in_each(struct json_in *in, char bracket, json_in_member *member, void *data);

/* The text that is next. "" for another value, for one that does not fit, and for one with
 * escapes. */
void json_in_text(struct json_in *in, char *to, size_t room);

void json_in_skip(struct json_in *in);

/* After the outermost value: whether it was whole, with nothing behind it. */
bool json_in_ends(struct json_in *in);
