// SPDX-License-Identifier: MIT
#include "probe/name_glob.h"

#include <fnmatch.h>
#include <string.h>

#define POSITIONS_MAX (WIRE_NAME_MAX - 1)

static void set_bit(__u64 *words, unsigned bit)
{
	words[bit / 64] |= 1ull << bit % 64;
}

/* The end of "[:", "[." or "[=" inside brackets, or NULL. */
static const char *class_end(const char *at)
{
	const char ending[] = { at[1], ']', '\0' };
	const char *end = strstr(at + 2, ending);

	return end ? end + 2 : NULL;
}

/* After the bracket that closes the one at `at`; NULL: it stands for itself. */
static const char *bracket_end(const char *at)
{
	const char *p = at + 1, *end;

	p += *p == '!' || *p == '^';
	p += *p == ']'; /* the first stands for itself */
	while (*p && *p != ']') {
		end = *p == '[' && p[1] && strchr(":.=", p[1]) ? class_end(p) : NULL;
		if (*p == '\\' && p[1])
			p++;
		p = end ? end : p + 1;
	}
	return *p ? p + 1 : NULL;
}

/* What one position takes: brackets are left to fnmatch, byte by byte. */
static void add_bracket(struct wire_glob *glob, unsigned position, const char *at, size_t len)
{
	char bracket[1024], byte[2] = "";

	if (len >= sizeof(bracket))
		return; /* the position takes nothing */
	memcpy(bracket, at, len);
	bracket[len] = '\0';
	for (int c = 1; c < 256; c++) {
		byte[0] = (char)c;
		if (fnmatch(bracket, byte, 0) == 0)
			set_bit(glob->takes[c], position);
	}
}

/* One position, at `at`; returns where the next begins. */
static const char *add_position(struct wire_glob *glob, unsigned position, const char *at)
{
	const char *end = *at == '[' ? bracket_end(at) : NULL;

	if (end) {
		add_bracket(glob, position, at, (size_t)(end - at));
		return end;
	}
	if (*at == '?') {
		for (int c = 1; c < 256; c++)
			set_bit(glob->takes[c], position);
		return at + 1;
	}
	if (*at == '\\' && !*++at)
		return at; /* fnmatch lets it match nothing, and so does a position that takes
		            * nothing
		            */
	set_bit(glob->takes[(unsigned char)*at], position);
	return at + 1;
}

bool name_glob_compile(const char *text, struct wire_glob *glob)
{
	unsigned positions = 0;

	memset(glob, 0, sizeof(*glob));
	while (*text) {
		if (*text == '*') {
			set_bit(glob->waits, positions);
			text++;
			continue;
		}
		if (positions == POSITIONS_MAX)
			return false;
		text = add_position(glob, positions++, text);
	}
	set_bit(glob->end, positions);
	return true;
}

bool name_glob_matches(const struct wire_glob *glob, const char *name)
{
	__u64 at[WIRE_GLOB_WORDS] = { 1 };

	for (int i = 0; i < WIRE_NAME_MAX - 1 && name[i]; i++)
		wire_glob_step(glob, (unsigned char)name[i], at);
	return wire_glob_ended(glob, at);
}
