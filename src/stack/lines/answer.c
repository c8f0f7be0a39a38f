// SPDX-License-Identifier: MIT
#include "stack/lines/answer.h"

#include <string.h>

/* On the wire, each with its texts behind it. */
struct wire_head {
	uint32_t status, n;
};

struct wire_part {
	uint32_t line, first_line;
	uint32_t function_bytes, file_bytes; /* 0: NULL */
};

_Static_assert(sizeof(struct wire_head) + LINES_PARTS_MAX * (sizeof(struct wire_part) + 2 * 64) <
                       LINES_ANSWER_BYTES,
               "short names always fit");

/* ---- writing ------------------------------------------------------------------------------- */

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

static size_t fitting(const char *text, size_t room)
{
	size_t len = text ? strnlen(text, LINES_NAME_MAX + 1) : 0;

	return len <= LINES_NAME_MAX && len <= room ? len : 0;
}

static void add_text(struct buf *message, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf_putc(message, is_control(text[i]) ? '?' : text[i]);
}

void lines_answer_write(const struct lines_answer *answer, struct buf *message)
{
	struct wire_head head = { answer->status, (uint32_t)answer->n };
	size_t left = LINES_ANSWER_BYTES - sizeof(head) - answer->n * sizeof(struct wire_part);

	buf_reset(message);
	buf_add(message, &head, sizeof(head));
	for (size_t i = 0; i < answer->n; i++) {
		const struct lines_part *part = &answer->parts[i];
		struct wire_part wire = { part->line, part->first_line, 0, 0 };

		wire.function_bytes = (uint32_t)fitting(part->function, left);
		left -= wire.function_bytes;
		wire.file_bytes = (uint32_t)fitting(part->file, left);
		left -= wire.file_bytes;
		buf_add(message, &wire, sizeof(wire));
		add_text(message, part->function, wire.function_bytes);
		add_text(message, part->file, wire.file_bytes);
	}
}

/* ---- reading ------------------------------------------------------------------------------- */

struct taking {
	const char *at;
	size_t left;
	struct buf *texts;
	bool bad;
};

static void take(struct taking *taking, void *to, size_t bytes)
{
	if (taking->bad || bytes > taking->left) {
		taking->bad = true;
		memset(to, 0, bytes);
		return;
	}
	memcpy(to, taking->at, bytes);
	taking->at += bytes;
	taking->left -= bytes;
}

/* Where it begins in the texts, and one; 0: there is none. */
static size_t take_text(struct taking *taking, uint32_t bytes)
{
	size_t begin = taking->texts->len + 1;

	if (!bytes)
		return 0;
	if (taking->bad || bytes > LINES_NAME_MAX || bytes > taking->left) {
		taking->bad = true;
		return 0;
	}
	for (uint32_t i = 0; i < bytes; i++)
		taking->bad |= is_control(taking->at[i]);
	buf_add(taking->texts, taking->at, bytes);
	buf_putc(taking->texts, '\0');
	taking->at += bytes;
	taking->left -= bytes;
	return begin;
}

bool lines_answer_read(const void *message, size_t bytes, struct lines_answer *answer,
                       struct buf *texts)
{
	struct taking taking = { message, bytes, texts, false };
	size_t function[LINES_PARTS_MAX], file[LINES_PARTS_MAX];
	struct wire_head head;
	struct wire_part wire;

	buf_reset(texts);
	take(&taking, &head, sizeof(head));
	if (taking.bad || head.status > LINES_REFUSED || head.n > LINES_PARTS_MAX)
		return false;
	answer->status = head.status;
	answer->n = head.n;
	for (size_t i = 0; i < head.n; i++) {
		take(&taking, &wire, sizeof(wire));
		taking.bad |= wire.line > INT32_MAX || wire.first_line > INT32_MAX;
		answer->parts[i] =
			(struct lines_part){ .line = wire.line, .first_line = wire.first_line };
		function[i] = take_text(&taking, wire.function_bytes);
		file[i] = take_text(&taking, wire.file_bytes);
	}
	if (taking.bad || taking.left)
		return false;
	for (size_t i = 0; i < head.n; i++) { /* the texts have moved while they grew */
		answer->parts[i].function = function[i] ? texts->data + function[i] - 1 : NULL;
		answer->parts[i].file = file[i] ? texts->data + file[i] - 1 : NULL;
	}
	return true;
}
