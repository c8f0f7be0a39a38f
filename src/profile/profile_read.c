// SPDX-License-Identifier: MIT
#include "profile/profile_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "profile/words.h"
#include "profile/profile_private.h"

#define FRAMES_MOST 16384
#define LINE_MOST   ((size_t)64 << 20) /* bytes of a line: so many frames of the longest names */
#define READ_BYTES  (64 * 1024)
#define AS_TEXT(x)  #x
#define TEXT_OF(x)  AS_TEXT(x)

struct reading {
	struct profile *profile;
	const char *name;
	unsigned long line;
	struct stack_frame *frames;
	const struct stack_frame **inwards;
	size_t cap;
};

static int bad_line(const struct reading *reading, const char *why, struct err *err)
{
	return err_set(err, EBADMSG,
	               "%s is no file of folded stacks: line %lu %s; such a line is "
	               "\"main;step 41000\"",
	               reading->name, reading->line, why);
}

/* Takes the number off the end of a line, as microseconds; false where there is none. */
static bool take_number(char *line, uint64_t *ns)
{
	uint64_t us;

	char *blank = strrchr(line, ' '), *end;

	if (!blank || blank == line || blank[1] < '0' || blank[1] > '9')
		return false;
	errno = 0;
	us = strtoull(blank + 1, &end, 10);
	*ns = us < UINT64_MAX / 1000 ? 1000 * us : UINT64_MAX;
	*blank = '\0';
	return !errno && !*end;
}

/* "\x3b" is a semicolon within a name. In its place: the name gets shorter. */
static void restore(char *name)
{
	static const char semicolon[] = "\\x3b";
	size_t skip = sizeof(semicolon) - 1;
	char *at = strstr(name, semicolon), *to = at;

	while (at && *at) {
		if (!strncmp(at, semicolon, skip)) {
			*to++ = ';';
			at += skip;
		} else {
			*to++ = *at++;
		}
	}
	if (to)
		*to = '\0';
}

/* Frames as they stand in the line, the outermost first; returns how many, 0 for too many. */
static size_t split(struct reading *reading, char *line)
{
	size_t n = 0;

	for (char *name = line, *next; name; name = next) {
		if (n == FRAMES_MOST)
			return 0;
		next = strchr(name, ';');
		if (next)
			*next++ = '\0';
		if (n == reading->cap) {
			reading->cap = 2 * n + 64;
			reading->frames =
				xrealloc(reading->frames, reading->cap * sizeof(*reading->frames));
		}
		restore(name);
		frame_label_drop_line(name);
		reading->frames[n++] =
			(struct stack_frame){ .kind = FRAME_NATIVE, .function = name };
	}
	return n;
}

static void add_stack(struct reading *reading, size_t n, uint64_t ns)
{
	const char *leaf = reading->frames[n - 1].function;
	struct profile_sample sample = { .kind = WEIGHT_CPU, .ns = ns };
	struct stack stack = { .id = UINT32_MAX };

	if (n > 1 && !strcmp(leaf, PROFILE_OFF_CPU_LABEL)) {
		sample.kind = WEIGHT_OFF_CPU;
		n--;
	} else if (n > 1 && !strncmp(leaf, "[GPU_", 5)) {
		sample.kind = WEIGHT_GPU;
		sample.gpu = leaf;
		n--;
	} else if (n > 1 && !strncmp(leaf, PROFILE_HOOK, strlen(PROFILE_HOOK))) {
		sample.kind = WEIGHT_HOOK;
		sample.gpu = leaf;
		n--;
	}
	reading->inwards = xrealloc(reading->inwards, n * sizeof(*reading->inwards));
	for (size_t i = 0; i < n; i++)
		reading->inwards[n - 1 - i] = &reading->frames[i];
	stack.n_frames = n;
	stack.frames = reading->inwards;
	sample.stack = &stack;
	profile_add(reading->profile, &sample);
}

static int read_line(struct reading *reading, char *line, struct err *err)
{
	uint64_t ns;
	size_t n;

	reading->line++;
	line[strcspn(line, "\r")] = '\0';
	if (!*line)
		return 0;
	if (!take_number(line, &ns))
		return bad_line(reading, "does not end with a number", err);
	n = split(reading, line);
	if (!n)
		return bad_line(reading, "has more than " TEXT_OF(FRAMES_MOST) " frames", err);
	add_stack(reading, n, ns);
	return 0;
}

/* All whole lines of `text`, which are taken off it. No line ends before `searched`. */
static int read_lines(struct reading *reading, struct buf *text, size_t searched, struct err *err)
{
	size_t from = 0;
	char *end;
	int rc = 0;

	while (!rc && (end = memchr(text->data + searched, '\n', text->len - searched))) {
		*end = '\0';
		rc = read_line(reading, text->data + from, err);
		from = searched = (size_t)(end + 1 - text->data);
	}
	if (from)
		memmove(text->data, text->data + from, text->len - from);
	text->len -= from;
	text->data[text->len] = '\0';
	if (!rc && text->len > LINE_MOST)
		return bad_line(reading, "is followed by one of more than 64 MiB", err);
	return rc;
}

static int read_all(struct reading *reading, FILE *in, struct buf *text, struct err *err)
{
	size_t got, before;
	int rc = 0;

	do {
		buf_reserve(text, READ_BYTES);
		before = text->len;
		got = fread(text->data + before, 1, READ_BYTES, in);
		text->len += got;
		text->data[text->len] = '\0';
		rc = read_lines(reading, text, before, err);
	} while (!rc && got);
	if (!rc && ferror(in))
		return err_set(err, EIO, "cannot read %s", reading->name);
	return !rc && text->len ? read_line(reading, text->data, err) : rc;
}

int profile_read_folded(struct profile *profile, FILE *in, const char *name, struct err *err)
{
	struct reading reading = { .profile = profile, .name = name };
	struct buf text = { 0 };
	int rc;

	profile->ends_not_known = true;
	rc = read_all(&reading, in, &text, err);
	buf_free(&text);
	free(reading.frames);
	free(reading.inwards);
	return rc;
}
