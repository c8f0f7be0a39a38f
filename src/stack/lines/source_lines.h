/* SPDX-License-Identifier: MIT */
/*
 * Source lines and inlined functions of places in files, looked up beside what asks for them.
 *
 *     source_lines_want(lines, &place, frame);      as soon as a place is met: takes microseconds
 *     source_lines_wait(lines, 3000000000);         at the end
 *     source_lines_each(lines, take, data);         what was found; also in between
 *
 * A thread has processes without rights (reader.h) read the files, each a file, and asks one after
 * the other. Whose files took least time so far is served first, so that nobody who has files that
 * are slow, or that lead nowhere, keeps others waiting; and who is not root has a minute, and a
 * tenth of the time that passes. The end does not wait for who had that. Of a file that made a
 * process hang, lie, or end LINES_CRASHES_MAX times nothing more is asked: that is counted, and
 * told in a sentence.
 *
 * Files are held open, so that those of programs that ended are read all the same. One without
 * debug information is not read: what its tables of symbols say is known (function_table.h). So
 * are most of PyTorch's.
 *
 * Where DEBUGINFOD_URLS is set for cuscope, debug files that a file lacks are fetched
 * (debug_fetch.h), one at a time, by a second thread; places of that file wait. A minute for the
 * files of a person, two for all. The end waits 20 seconds at most, then the files are read
 * without.
 *
 * Memory: 24 MiB of a person (probe/person.h), 64 MiB of all, for places that were asked for and
 * what was found; 256 files of a person, 1,024 of all. Beyond that places have no lines, which is
 * counted. Each of LINES_READERS_MAX processes has 512 MiB at most besides the files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/lines/reader.h"

#define LINES_READERS_MAX 3 /* at a time */
#define LINES_CRASHES_MAX 3 /* of processes that read a file */

struct source_lines;

/* `run`: as reader_start() has it. NULL where cuscope was built without libdw. */
struct source_lines *source_lines_new(void (*run)(int socket));
void source_lines_free(struct source_lines *lines); /* NULL is allowed */

struct source_lines_place {
	int fd; /* of the file; stays the caller's */
	uint64_t offset;
	const char *path;     /* as its process names it */
	const char *build_id; /* in hexadecimal; NULL: none */
	bool named;           /* its function is known: only lines and inlined functions are not */
};

/*
 * `what` is given back with what was found: a frame, say. Asked twice for the same it looks once,
 * but that a file of root's comes before the same place in another's.
 */
void source_lines_want(struct source_lines *lines, const struct source_lines_place *place,
                       void *what);

/* Waits until all are looked up, or for so long. How many are not. Nothing more is looked up. */
size_t source_lines_wait(struct source_lines *lines, uint64_t ns);

/*
 * What was found since this was asked last: all of it after that, else what is known so far. `each`
 * asks nothing of `lines`. Functions are demangled; parts are as in answer.h.
 */
void source_lines_each(struct source_lines *lines,
                       void (*each)(void *data, void *what, const struct lines_part *parts,
                                    size_t n),
                       void *data);

struct source_lines_figures {
	uint64_t places, found; /* asked for; with a name or line */
	uint64_t files;         /* that were read */
	uint64_t given_up;      /* files that nothing more is asked of */
	uint64_t refused;       /* places that there was no room for */
	uint64_t late;          /* places that were not looked up when nobody waited any more */
	uint64_t unanswered;    /* places in files that were given up */
	bool rights;            /* the processes could not give up their rights: nothing is read */
	uint64_t ns;            /* that was spent */
	uint64_t fetched;       /* debug files that came from servers */
	uint64_t not_fetched;   /* that were asked for, and did not come */
	uint64_t fetch_ns;
};

void source_lines_figures(struct source_lines *lines, struct source_lines_figures *figures);

/* A sentence on a file that was given up, each once; false: there is none. */
bool source_lines_news(struct source_lines *lines, char *text, size_t size);
