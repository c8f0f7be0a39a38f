/* SPDX-License-Identifier: MIT */
/*
 * What the process that reads debug information (reader.h) is asked and says, in messages of a
 * SOCK_SEQPACKET socket. It reads files of strangers, so what it says is a stranger's word:
 * lines_answer_read() believes nothing.
 *
 * First LINES_MAIN with a descriptor, LINES_DEBUG and LINES_ALT where there are such files, then
 * LINES_READY; all before that is done with root's rights, and reads nothing. Then LINES_FIND.
 */
#ifndef CUSCOPE_STACK_LINES_ANSWER_H
#define CUSCOPE_STACK_LINES_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LINES_PARTS_MAX    64    /* functions at one place: the rest is left out */
#define LINES_NAME_MAX     4095  /* bytes of a function's name, and of a file's */
#define LINES_ANSWER_BYTES 65536 /* of one message */

enum lines_what {
	LINES_MAIN = 1, /* the file that is mapped; with a descriptor, as the two below */
	LINES_DEBUG,    /* the file that its debug information was moved to */
	LINES_ALT,      /* what several such have in common (dwz) */
	LINES_READY,    /* give up all rights, and look at the files; answered without parts */
	LINES_FIND,     /* what is at an offset of the main file */
};

struct lines_request {
	uint32_t what;
	uint32_t crc; /* LINES_DEBUG: that the main file says it has */
	uint64_t offset;
};

enum lines_status {
	LINES_OK,
	LINES_NOTHING, /* READY: nothing can be told of the file; FIND: of the place */
	LINES_REFUSED, /* READY: rights could not be given up, nothing was read */
};

/* One function at a place. NULL, 0: not known. */
struct lines_part {
	const char *function; /* as linked, or as written where it has no such name */
	const char *file;
	uint32_t line, first_line;
};

/* The innermost first: all but the last are inlined into the next. */
struct lines_answer {
	uint32_t status;
	size_t n;
	struct lines_part parts[LINES_PARTS_MAX];
};

/* What does not fit is left out; what must not be in names is replaced. */
void lines_answer_write(const struct lines_answer *answer, struct buf *message);

/*
 * False where the message is none: lengths that do not come out, a NUL or a control character in a
 * name, a line beyond 2^31, a status that is not known. Texts of `answer` are in `texts` then.
 */
bool lines_answer_read(const void *message, size_t bytes, struct lines_answer *answer,
                       struct buf *texts);

#endif
