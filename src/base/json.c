// SPDX-License-Identifier: MIT
#include "base/json.h"

static void begin_line(struct json *json)
{
	buf_putc(json->out, '\n');
	for (unsigned i = 0; i < json->depth; i++)
		buf_puts(json->out, "  ");
}

static void begin_value(struct json *json, const char *key)
{
	bool own_line = json->depth && json->depth <= json->lines;

	if (json->comma)
		buf_puts(json->out, json->lines && !own_line ? ", " : ",");
	if (own_line)
		begin_line(json);
	if (key) {
		buf_json_string(json->out, key);
		buf_putc(json->out, ':');
		if (json->lines)
			buf_putc(json->out, ' ');
	}
	json->comma = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
	begin_value(json, key);
	buf_putc(json->out, bracket);
	json->depth++;
	json->comma = false;
}

void json_close(struct json *json, char bracket)
{
	bool filled = json->comma;

	json->depth--;
	if (filled && json->depth < json->lines)
		begin_line(json);
	buf_putc(json->out, bracket);
	json->comma = true;
}

void json_string(struct json *json, const char *key, const char *value)
{
	begin_value(json, key);
	buf_json_string(json->out, value);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	buf_u64(json->out, value);
}

void json_s64(struct json *json, const char *key, int64_t value)
{
	begin_value(json, key);
	buf_s64(json->out, value);
}

void json_fixed(struct json *json, const char *key, uint64_t value, unsigned decimals)
{
	begin_value(json, key);
	buf_fixed(json->out, value, decimals);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key);
	buf_puts(json->out, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
	begin_value(json, key);
	buf_puts(json->out, "null");
}

void json_string_if(struct json *json, const char *key, const char *value)
{
	if (value)
		json_string(json, key, value);
}

void json_u64_if(struct json *json, const char *key, uint64_t value)
{
	if (value)
		json_u64(json, key, value);
}
