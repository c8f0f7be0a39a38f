/* SPDX-License-Identifier: MIT */
/*
 * A process without rights that reads the debug information of one file.
 *
 * Files are those of untrusted programs, and libdw, libelf and liblzma were not written for such.
 * So it is a process of its own, started from cuscope's own file, which does nothing else. It has
 * the files as descriptors that cuscope opened. Before it reads a byte of them it becomes nobody,
 * gives up all capabilities, and limits its memory, its time, and by seccomp what it may ask of the
 * kernel: to read, to have memory, to answer. It can open nothing, connect to nothing, and run
 * nothing. It may crash, hang or lie: reader_ask() waits with a limit, answers are checked, and it
 * is ended by SIGKILL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/worker.h"

/*
 * What the process that reads debug information (reader.h) is asked and says, in messages of a
 * SOCK_SEQPACKET socket. It reads files of strangers, so what it says is a stranger's word:
 * lines_answer_read() believes nothing.
 *
 * First LINES_MAIN with a descriptor, LINES_DEBUG and LINES_ALT where there are such files, then
 * LINES_READY; all before that is done with root's rights, and reads nothing. Then LINES_FIND.
 */

#define LINES_PARTS_MAX    64    /* functions at one place: the rest is left out */
#define LINES_NAME_MAX     4095  /* bytes of a function's name, and of a file's */
#define LINES_ANSWER_BYTES 65536 /* of one message */

enum lines_what {
	LINES_MAIN = 1,   /* the file that is mapped; with a descriptor, as the two below */
	LINES_DEBUG,      /* the file that its debug information was moved to */
	LINES_ALT,        /* what several such have in common (dwz) */
	LINES_READY,      /* give up all rights, and look at the files; answered without parts */
	LINES_FIND,       /* what is at an offset of the main file */
	LINES_FIND_NAMED, /* the same of a place whose function is known by a symbol */
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

#define READER_NAME "cuscope-lines" /* argv[0] of it */

struct reader {
	struct worker worker;
	struct buf texts; /* of the answer */
	char *message;    /* LINES_ANSWER_BYTES */
};

/*
 * `run`: what the process does, given its socket, for tests that have no program of its own: it is
 * forked then. NULL: /proc/self/exe is started, whose main() calls reader_main(). 0 or a negative
 * errno.
 */
int reader_start(struct reader *reader, void (*run)(int socket));
void reader_end(struct reader *reader);

/* `fd` -1: without. 0, or a negative errno: it has ended. */
int reader_send(struct reader *reader, enum lines_what what, uint32_t crc, int fd);

/*
 * Asks and waits. 0; -ETIMEDOUT; -EPIPE: it has ended; -EBADMSG: what it said makes no sense;
 * -ECANCELED: *stop was set meanwhile.
 */
int reader_ask(struct reader *reader, enum lines_what what, uint64_t offset, unsigned ms,
               const bool *stop, struct lines_answer *answer);

/* The process itself: never returns. */
void reader_main(int socket) __attribute__((noreturn));
