// SPDX-License-Identifier: MIT
#include "hooks/spec.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "hooks/cursor.h"

/* ---- cursor -------------------------------------------------------------------------------- */

bool cursor_wrong(struct cursor *c, const char *where, const char *fmt, ...)
{
	va_list ap;

	c->mistake->at = where - c->text;
	va_start(ap, fmt);
	vsnprintf(c->mistake->says, sizeof(c->mistake->says), fmt, ap);
	va_end(ap);
	text_make_safe(c->mistake->says, sizeof(c->mistake->says));
	return false;
}

void cursor_skip_blanks(struct cursor *c)
{
	while (*c->at == ' ' || *c->at == '\t')
		c->at++;
}

static bool is_word(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_';
}

bool cursor_takes(struct cursor *c, const char *word)
{
	size_t len = strlen(word);

	cursor_skip_blanks(c);
	if (strncmp(c->at, word, len) || (is_word(*word) && is_word(c->at[len])))
		return false;
	c->at += len;
	return true;
}

size_t cursor_name(struct cursor *c, char *name, size_t room)
{
	size_t len = 0, kept;

	cursor_skip_blanks(c);
	while (is_word(c->at[len]))
		len++;
	kept = len < room ? len : room - 1;
	memcpy(name, c->at, kept);
	name[kept] = '\0';
	c->at += len;
	return len;
}

static unsigned digit_of(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : 16;
}

bool cursor_number(struct cursor *c, uint64_t most, uint64_t *number)
{
	const char *begin;
	unsigned base = 10;
	uint64_t value = 0;

	cursor_skip_blanks(c);
	begin = c->at;
	if (begin[0] == '0' && (begin[1] | 0x20) == 'x' && digit_of(begin[2]) < 16) {
		base = 16;
		c->at += 2;
	}
	if (digit_of(*c->at) >= base)
		return cursor_wrong(c, begin, "a number is expected here: 1024 or 0x400");
	for (unsigned digit; (digit = digit_of(*c->at)) < base; c->at++) {
		if (value > (most - digit) / base || digit > most)
			return cursor_wrong(c, begin, "this number is too large: %lu is the most",
			                    most);
		value = value * base + digit;
	}
	*number = value;
	return true;
}

const char *cursor_near(const char *typed, const char *const *words, size_t n, char *room,
                        size_t bytes)
{
	const char *near = suggest(typed, words, n);

	room[0] = '\0';
	if (near)
		snprintf(room, bytes, ": did you mean '%s'?", near);
	return room;
}

/* ---- spec ---------------------------------------------------------------------------------- */

static const struct {
	const char *name, *form;
	bool span, kernel;
} kinds[SPEC_KINDS] = {
	[SPEC_UPROBE] = { "uprobe", "uprobe:MODULE:GLOB", true, false },
	[SPEC_UENTRY] = { "uentry", "uentry:MODULE:GLOB", false, false },
	[SPEC_URETPROBE] = { "uretprobe", "uretprobe:MODULE:GLOB", false, false },
	[SPEC_USDT] = { "usdt", "usdt:MODULE:PROVIDER:NAME", false, false },
	[SPEC_KPROBE] = { "kprobe", "kprobe:[MODULE:]GLOB", true, true },
	[SPEC_KENTRY] = { "kentry", "kentry:[MODULE:]GLOB", false, true },
	[SPEC_KRETPROBE] = { "kretprobe", "kretprobe:[MODULE:]GLOB", false, true },
	[SPEC_TRACEPOINT] = { "tracepoint", "tracepoint:GROUP:GLOB", false, true },
};

const char *spec_kind_name(enum spec_kind kind)
{
	return kinds[kind].name;
}

bool spec_is_span(const struct hook_spec *spec)
{
	return kinds[spec->kind].span;
}

bool spec_is_kernel(const struct hook_spec *spec)
{
	return kinds[spec->kind].kernel;
}

/* ---- the place ----------------------------------------------------------------------------- */

static bool kind_read(struct cursor *c)
{
	const char *names[SPEC_KINDS], *where;
	char name[32], near[64];

	cursor_skip_blanks(c);
	where = c->at;
	cursor_name(c, name, sizeof(name));
	for (size_t i = 0; i < SPEC_KINDS; i++) {
		names[i] = kinds[i].name;
		if (strcmp(name, kinds[i].name))
			continue;
		c->spec->kind = i;
		where = c->at;
		return cursor_takes(c, ":") ||
		       cursor_wrong(c, where, "':' is expected here: %s", kinds[i].form);
	}
	return cursor_wrong(c, where,
	                    "'%s' is no kind of hook%s (uprobe, uentry, uretprobe, usdt, kprobe, "
	                    "kentry, kretprobe, tracepoint)",
	                    name, cursor_near(name, names, SPEC_KINDS, near, sizeof(near)));
}

/* Bytes up to one of `ends`, a blank or the end, into `room`. */
static bool part_read(struct cursor *c, const char *ends, const char *what, char *room)
{
	const char *where = c->at, *form = kinds[c->spec->kind].form;
	size_t len = 0;

	while (where[len] && !strchr(ends, where[len]) && where[len] != ' ' && where[len] != '\t')
		len++;
	if (!len)
		return cursor_wrong(c, where, "%s is missing here: %s", what, form);
	if (len >= SPEC_PLACE_MAX)
		return cursor_wrong(c, where, "%s is too long: at most %d bytes", what,
		                    SPEC_PLACE_MAX - 1);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)where[i] < 0x20 || where[i] == 0x7f)
			return cursor_wrong(c, where + i, "%s has no such byte in it", what);
	}
	memcpy(room, where, len);
	room[len] = '\0';
	c->at += len;
	return true;
}

static bool colon_read(struct cursor *c, const char *before)
{
	const char *where = c->at;

	return cursor_takes(c, ":") || cursor_wrong(c, where, "':' is expected after %s: %s",
	                                            before, kinds[c->spec->kind].form);
}

/* Square brackets that do not end make a glob that matches nothing. */
static bool glob_is_whole(struct cursor *c)
{
	const char *glob = c->spec->glob;

	for (const char *p = glob; (p = strchr(p, '[')); p++) {
		const char *end = strchr(p + 1 + (p[1] == '!' || p[1] == '^'), ']');

		if (!end)
			return cursor_wrong(c, c->text + c->spec->glob_at + (p - glob),
			                    "this '[' has no ']'");
		p = end;
	}
	return true;
}

static bool function_read(struct cursor *c)
{
	c->spec->glob_at = c->at - c->text;
	if (!part_read(c, "(:", c->spec->kind == SPEC_USDT ? "the marker's name" : "a name",
	               c->spec->glob))
		return false;
	if (*c->at == ':')
		return cursor_wrong(c, c->at, "one ':' too many: %s", kinds[c->spec->kind].form);
	return glob_is_whole(c);
}

/* kprobe:GLOB or kprobe:MODULE:GLOB. */
static bool kernel_place_read(struct cursor *c)
{
	const char *colon = strchr(c->at, ':'), *bracket = strpbrk(c->at, "( \t");

	c->spec->module_at = c->at - c->text;
	if (colon && (!bracket || colon < bracket)) {
		if (!part_read(c, ":(", "a module", c->spec->module) ||
		    !colon_read(c, "the module"))
			return false;
	}
	return function_read(c);
}

static bool place_read(struct cursor *c)
{
	struct hook_spec *spec = c->spec;
	const char *what = spec->kind == SPEC_TRACEPOINT ? "the group" : "the module";

	if (spec_is_kernel(spec) && spec->kind != SPEC_TRACEPOINT)
		return kernel_place_read(c);
	spec->module_at = c->at - c->text;
	if (!part_read(c, spec->kind == SPEC_TRACEPOINT ? ":(" : ":", what, spec->module) ||
	    !colon_read(c, what))
		return false;
	if (spec->kind == SPEC_USDT &&
	    (!part_read(c, ":(", "the provider", spec->provider) || !colon_read(c, "the provider")))
		return false;
	return function_read(c);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static bool as_read(struct cursor *c)
{
	const char *where;
	size_t len = 0;

	cursor_skip_blanks(c);
	where = c->at;
	while (isalnum((unsigned char)where[len]) || (where[len] && strchr("_.-", where[len])))
		len++;
	if (!len)
		return cursor_wrong(c, where,
		                    "after 'as' comes a name of letters, digits and . _ -");
	if (len >= sizeof(c->spec->as))
		return cursor_wrong(c, where, "this name is too long: at most %zu bytes",
		                    sizeof(c->spec->as) - 1);
	if (c->spec->as[0])
		return cursor_wrong(c, where, "it has a name already: '%s'", c->spec->as);
	memcpy(c->spec->as, where, len);
	c->spec->as[len] = '\0';
	c->at += len;
	return true;
}

static bool rest_read(struct cursor *c)
{
	for (;;) {
		const char *where;

		cursor_skip_blanks(c);
		where = c->at;
		if (!*where)
			return true;
		if (cursor_takes(c, "as")) {
			if (!as_read(c))
				return false;
		} else if (cursor_takes(c, "if")) {
			if (c->spec->n_filter)
				return cursor_wrong(c, where,
				                    "there is a filter already: join "
				                    "them with 'and' or 'or'");
			if (!filter_read(c))
				return false;
		} else {
			return cursor_wrong(c, where,
			                    c->spec->n_filter ? "'and', 'or', 'as' or the end is "
			                                        "expected here"
			                                      : "'(', 'as', 'if' or the end is "
			                                        "expected here");
		}
	}
}

static bool all_read(struct cursor *c)
{
	const char *end = memchr(c->text, 0, SPEC_TEXT_MAX);

	if (!end)
		return cursor_wrong(c, c->text, "a hook has at most %d bytes", SPEC_TEXT_MAX - 1);
	if (!kind_read(c) || !place_read(c))
		return false;
	if (cursor_takes(c, "(") && !values_read(c))
		return false;
	return rest_read(c) && factors_read(c);
}

bool spec_read(const char *text, const struct spec_table *tables, struct hook_spec *spec,
               struct hook_mistake *mistake)
{
	struct cursor c = {
		.text = text, .at = text, .tables = tables, .spec = spec, .mistake = mistake
	};

	memset(spec, 0, sizeof(*spec));
	memset(mistake, 0, sizeof(*mistake));
	if (!all_read(&c))
		return false;
	spec->text = xstrdup(text);
	return true;
}

void spec_free(struct hook_spec *spec)
{
	free(spec->text);
	spec->text = NULL;
}
