// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/xalloc.h"

/* ---- xml ----------------------------------------------------------------------------------- */

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
	AT_END(buf_free) struct buf safe = { 0 };
	const char *at;

	text_add_safe(&safe, text);
	for (at = safe.data ? safe.data : ""; *at;) {
		size_t plain = strcspn(at, "<>&\"'");

		buf_add(out, at, plain);
		at += plain;
		if (*at)
			buf_puts(out, escape_of(*at++));
	}
}

/* ---- text ---------------------------------------------------------------------------------- */

static const char dots[] = "...";

size_t text_utf8(const char *text, unsigned *code_out)
{
	static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)text;
	size_t len = p[0] < 0x80             ? 1
	             : (p[0] & 0xe0) == 0xc0 ? 2
	             : (p[0] & 0xf0) == 0xe0 ? 3
	             : (p[0] & 0xf8) == 0xf0 ? 4
	                                     : 0;
	unsigned code = len == 1 ? p[0] : p[0] & (0x7f >> len);

	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (len > 1 && (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)))
		return 0;
	if (code_out)
		*code_out = code;
	return len;
}

struct text_range {
	unsigned first, last;
};

static bool in_ranges(const struct text_range *ranges, size_t n, unsigned code)
{
	for (size_t i = 0; i < n; i++) {
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	}
	return false;
}

bool text_is_hostile(unsigned code)
{
	static const struct text_range hostile[] = {
		{ 0, 0x1f },        { 0x7f, 0x9f },     { 0x61c, 0x61c },   { 0x200e, 0x200f },
		{ 0x2028, 0x202e }, { 0x2066, 0x2069 }, { 0xfffe, 0xffff },
	};

	return in_ranges(hostile, ARRAY_SIZE(hostile), code);
}

static size_t code_columns(unsigned code)
{
	static const struct text_range none[] = { { 0x300, 0x36f },
		                                  { 0x200b, 0x200f },
		                                  { 0xfe00, 0xfe0f } };
	static const struct text_range two[] = {
		{ 0x1100, 0x115f }, { 0x2e80, 0xa4cf }, { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
		{ 0xfe30, 0xfe6f }, { 0xff00, 0xff60 }, { 0x1f300, 0x1f64f }, { 0x20000, 0x3fffd },
	};

	if (code < 0x300)
		return 1;
	if (in_ranges(none, ARRAY_SIZE(none), code))
		return 0;
	return in_ranges(two, ARRAY_SIZE(two), code) ? 2 : 1;
}

/* Bytes at the start of `text` that are printable ASCII: nearly all of nearly every name. */
static size_t plain_length(const char *text)
{
	size_t n = 0;

	while (text[n] >= 0x20 && text[n] < 0x7f)
		n++;
	return n;
}

/* One character that is not plain; returns what follows it. */
static const char *add_special(struct buf *out, const char *text)
{
	unsigned code = 0;
	size_t len = text_utf8(text, &code);

	if (len && !text_is_hostile(code)) {
		buf_add(out, text, len);
		return text + len;
	}
	for (len = len ? len : 1; len; len--)
		buf_printf(out, "\\x%02x", (unsigned char)*text++);
	return text;
}

void text_add_safe(struct buf *out, const char *text)
{
	for (;;) {
		size_t plain = plain_length(text);

		buf_add(out, text, plain);
		text += plain;
		if (!*text)
			return;
		text = add_special(out, text);
	}
}

void text_add_csv(struct buf *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		buf_puts(out, text);
		return;
	}
	buf_putc(out, '"');
	for (const char *quote; (quote = strchr(text, '"')); text = quote + 1) {
		buf_add(out, text, (size_t)(quote - text) + 1);
		buf_putc(out, '"');
	}
	buf_puts(out, text);
	buf_putc(out, '"');
}

void text_make_safe(char *text, size_t room)
{
	AT_END(buf_free) struct buf safe = { 0 };
	size_t len;

	if (!text[plain_length(text)])
		return;
	text_add_safe(&safe, text);
	len = safe.len < room ? safe.len : room - 1;
	memcpy(text, safe.data, len);
	text[len] = '\0';
}

/* Bytes of `text` that fit into `columns`. */
static size_t fitting(const char *text, size_t columns)
{
	const char *at = text;
	size_t used = 0;

	while (*at) {
		unsigned code = '?';
		size_t len = text_utf8(at, &code);

		used += code_columns(code);
		if (used > columns)
			break;
		at += len ? len : 1;
	}
	return at - text;
}

size_t text_columns(const char *text)
{
	size_t used = plain_length(text);

	text += used;
	while (*text) {
		unsigned code = '?';
		size_t len = text_utf8(text, &code);

		used += code_columns(code);
		text += len ? len : 1;
	}
	return used;
}

void text_add_cut(struct buf *out, const char *text, size_t columns)
{
	size_t tail = sizeof(dots) - 1;

	if (text_columns(text) <= columns) {
		buf_puts(out, text);
		return;
	}
	if (columns < tail)
		tail = columns;
	buf_add(out, text, fitting(text, columns - tail));
	buf_add(out, dots, tail);
}

/*
 * How one character changes the depth of brackets. "->" and the operators made of < and > are
 * rare in the names of kernels, and a wrong guess only costs looks.
 */
static int bracket(const char *name, const char *at)
{
	if (*at == '<' || *at == '(')
		return 1;
	if (*at == ')' || (*at == '>' && !(at > name && at[-1] == '-')))
		return -1;
	return 0;
}

/* Depth of a character, and how it changes it, which a bracket that closes does before it. */
static int step_into(const char *name, const char *at, int *depth)
{
	int step = bracket(name, at);

	if (step < 0 && *depth > 0)
		--*depth;
	return step;
}

/* Whether there is something in the bracket that opens at `at`. */
static bool is_filled(const char *at)
{
	return at[1] != '>' && at[1] != ')';
}

/* Columns of a name's characters by their depth, and of the "..." for what is deeper. */
struct text_level {
	size_t columns, dots;
};

static int deepest(const char *name)
{
	int depth = 0, most = 0;

	for (const char *at = name; *at; at++) {
		if (step_into(name, at, &depth) > 0)
			depth++;
		most = depth > most ? depth : most;
	}
	return most;
}

static void measure_levels(const char *name, struct text_level *levels)
{
	const char *at = name;
	int depth = 0;

	while (*at) {
		unsigned code = '?';
		size_t len = text_utf8(at, &code);
		int step = step_into(name, at, &depth);

		levels[depth].columns += code_columns(code);
		if (step > 0 && is_filled(at))
			levels[depth].dots += sizeof(dots) - 1;
		if (step > 0)
			depth++;
		at += len ? len : 1;
	}
}

/*
 * The deepest level without which the name fits; 1 where it fits without none. In one pass over
 * it, however deep it is: programs choose their names.
 */
static int level_that_fits(const char *name, size_t columns)
{
	int most = deepest(name), fits = 1;
	AT_END(at_end_free) struct text_level *levels = xcalloc((size_t)most + 1, sizeof(*levels));
	size_t used = 0;

	measure_levels(name, levels);
	for (int level = 1; level <= most && used <= columns; level++) {
		used += levels[level - 1].columns;
		if (used + levels[level - 1].dots <= columns)
			fits = level;
	}
	return fits;
}

/* Appends `name` with "..." for what is in brackets at `level` and deeper. */
static void add_without(struct buf *out, const char *name, int level)
{
	int depth = 0;

	for (const char *at = name; *at; at++) {
		int step = step_into(name, at, &depth);

		if (depth < level)
			buf_putc(out, *at);
		if (step > 0 && depth == level - 1 && is_filled(at))
			buf_puts(out, dots);
		if (step > 0)
			depth++;
	}
}

/* What follows the return type and the namespaces, brackets aside. */
static const char *last_part(const char *name)
{
	const char *start = name;
	int depth = 0;

	for (const char *at = name; *at; at++) {
		depth += bracket(name, at);
		if (depth == 1 && *at == '(' && at > start)
			break; /* the parameters: a blank or "::" in them is no part of the name */
		if (!depth && *at == ' ')
			start = at + 1;
		else if (!depth && at[0] == ':' && at[1] == ':')
			start = at + 2;
	}
	return *start ? start : name;
}

void text_add_name(struct buf *out, const char *name, size_t columns)
{
	AT_END(buf_free) struct buf shorter = { 0 };
	const char *shown;

	if (text_columns(name) <= columns) {
		buf_puts(out, name);
		return;
	}
	buf_puts(&shorter, "");
	add_without(&shorter, name, level_that_fits(name, columns));
	shown = shorter.data;
	if (text_columns(shown) > columns)
		shown = last_part(shown);
	text_add_cut(out, shown, columns);
}

void text_cut_bytes(char *text, size_t most)
{
	size_t end;

	if (strlen(text) <= most)
		return;
	end = most - (sizeof(dots) - 1);
	while (end && (text[end] & 0xc0) == 0x80)
		end--;
	strcpy(text + end, dots);
}

void text_pad(struct buf *out, size_t from, size_t columns)
{
	size_t used = out->data ? text_columns(out->data + from) : 0;

	for (; used < columns; used++)
		buf_putc(out, ' ');
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Bytes of a colour, 0 where there is none. */
static size_t colour_length(const char *text)
{
	size_t len = 2;

	if (text[0] != '\033' || text[1] != '[')
		return 0;
	while (text[len] && text[len] != 'm')
		len++;
	return text[len] ? len + 1 : 0;
}

/* The end of a word or of blanks; *columns grows by what it takes. */
static const char *skip(const char *at, const char *end, bool blanks, size_t *columns)
{
	while (at < end && (*at == ' ') == blanks) {
		size_t len = colour_length(at);
		unsigned code;

		if (len) {
			at += len;
			continue;
		}
		len = text_utf8(at, &code);
		*columns += len ? code_columns(code) : 1;
		at += len ? len : 1;
	}
	return at;
}

static void wrap_line(struct buf *out, const char *at, const char *end, size_t columns)
{
	size_t indent = 0, used, gap, word;
	const char *blank = at, *next;

	at = skip(at, end, true, &indent);
	buf_add(out, blank, (size_t)(at - blank));
	used = indent;
	for (bool first = true; at < end; first = false) {
		gap = word = 0;
		blank = at;
		at = skip(at, end, true, &gap);
		next = skip(at, end, false, &word);
		if (!first && used + gap + word > columns) {
			buf_putc(out, '\n');
			buf_fill(out, ' ', indent + 2);
			used = indent + 2;
		} else {
			buf_add(out, blank, (size_t)(at - blank));
			used += gap;
		}
		buf_add(out, at, (size_t)(next - at));
		used += word;
		at = next;
	}
}

void text_wrap_lines(struct buf *out, size_t from, size_t columns)
{
	const char *at, *end;
	AT_END(buf_free) struct buf text = { 0 };

	if (!columns || out->len == from)
		return;
	buf_add(&text, out->data + from, out->len - from);
	out->len = from;
	for (at = text.data; at < text.data + text.len; at = end + 1) {
		end = memchr(at, '\n', (size_t)(text.data + text.len - at));
		if (!end)
			end = text.data + text.len;
		wrap_line(out, at, end, columns);
		if (end < text.data + text.len)
			buf_putc(out, '\n');
	}
}
