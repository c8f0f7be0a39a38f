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
#ifndef CUSCOPE_STACK_LINES_READER_H
#define CUSCOPE_STACK_LINES_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/worker.h"
#include "stack/lines/answer.h"

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

#endif
