/* SPDX-License-Identifier: MIT */
/*
 * Writing JSON: keys in order, commas where they belong. A key is NULL for the elements of an
 * array and for the outermost value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json {
	struct buf *out;
	unsigned
		lines; /* values down to this depth begin a line of their own; 0: all in one line */
	unsigned depth;
	bool comma; /* a value came before this one in the same object or array */
};

void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);                 /* '}' or ']' */
void json_string(struct json *json, const char *key, const char *value);
void json_u64(struct json *json, const char *key, uint64_t value);
void json_s64(struct json *json, const char *key, int64_t value);
void json_fixed(struct json *json, const char *key, uint64_t value, unsigned decimals);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* The same where there is one; nothing for NULL, and for 0. */
void json_string_if(struct json *json, const char *key, const char *value);
void json_u64_if(struct json *json, const char *key, uint64_t value);
