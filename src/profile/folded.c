// SPDX-License-Identifier: MIT
#include "profile/folded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "profile/profile_private.h"
#include "profile/words.h"
#include "profile/writers.h"

#define APART "\\x3b" /* what stands for a semicolon within a name */

/* Controls become \xNN, and so does a semicolon, which would end the frame. */
static void add_name(struct buf *out, const char *name)
{
	size_t from = out->len, plain;
	char *part;

	text_add_safe(out, *name ? name : "-"); /* no name at all would be no frame */
	if (!strchr(out->data + from, ';'))
		return;
	part = xstrdup(out->data + from);
	out->len = from;
	for (const char *at = part; *at; at += plain) {
		plain = strcspn(at, ";");
		buf_add(out, at, plain);
		for (; at[plain] == ';'; at++)
			buf_puts(out, APART);
	}
	free(part);
}

/* None is lost for being short. */
static uint64_t whole_us(uint64_t ns)
{
	uint64_t us = ns / 1000 + (ns % 1000 >= 500);

	return ns && !us ? 1 : us;
}

static void cut_to(struct buf *path, size_t len)
{
	path->len = len;
	path->data[len] = '\0';
}

/* `ends`: for each level, where the path ends that leads to the frame there. */
static void write_all(const struct tree *tree, size_t *ends, struct buf *path, struct lines *lines)
{
	for (uint32_t at = tree_next(tree, 0); at != KEEP_NONE; at = tree_next(tree, at)) {
		uint32_t depth = tree->nodes[at].depth;
		uint64_t self[] = { tree_self(tree, 0, at), tree_self(tree, 1, at) };

		cut_to(path, ends[depth - 1]);
		if (depth > 1)
			buf_putc(path, ';');
		add_name(path, tree_label(tree, at));
		ends[depth] = path->len;
		if (!self[0] && !self[1])
			continue;
		buf_add(&lines->pending, path->data, path->len);
		buf_putc(&lines->pending, ' ');
		buf_u64(&lines->pending, whole_us(self[0]));
		if (tree->profiles[1]) {
			buf_putc(&lines->pending, ' ');
			buf_u64(&lines->pending, whole_us(self[1]));
		}
		buf_putc(&lines->pending, '\n');
		if (lines_added(lines, NULL))
			return;
	}
}

void folded_write_tree(const struct tree *tree, struct lines *lines)
{
	AT_END(at_end_free) size_t *ends = xcalloc(tree->deepest + 1, sizeof(*ends));
	AT_END(buf_free) struct buf path = { 0 };

	buf_reserve(&path, 256);
	write_all(tree, ends, &path, lines);
}

void folded_write(const struct profile *profile, const struct profile_info *info,
                  struct lines *lines)
{
	AT_END(tree_free) struct tree tree = { 0 };

	tree_add(&tree, profile, 0, info_kinds(info));
	tree_finish(&tree);
	folded_write_tree(&tree, lines);
}

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
	AT_END(buf_free) struct buf text = { 0 };
	int rc;

	profile->ends_not_known = true;
	rc = read_all(&reading, in, &text, err);
	free(reading.frames);
	free(reading.inwards);
	return rc;
}
