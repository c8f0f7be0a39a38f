/* SPDX-License-Identifier: MIT */
/*
 * From addresses in processes to functions.
 *
 * What a process has mapped is noted when it is first seen, and its files are opened then. So its
 * stacks can be read when it has ended, when a file was deleted or replaced, and when it lives in
 * another mount namespace. A file is known by device and inode and read once, whoever maps it.
 *
 *   symbols_look(symbols, pid);                        before it may have ended
 *   symbols_find(symbols, process, address, &frame);
 *   symbols_forget(symbols, process);                  when nothing more will be asked
 *
 * A process is a `struct process`: after an exec it is another one with the same pid, and of the
 * one before it what was seen last stays.
 *
 * Memory:
 * - tables of the files that were asked about: 64 MiB. Then those that were not used for longest
 *   go, and are read again if need be.
 * - names that were found: 16 MiB, 8 of one process, and small parts, of 8 MiB (budget.h). Then
 *   frames have no names, until symbols_renew().
 * - what processes have mapped, and their perf maps: 16 MiB of one, 32 MiB of all. Then they are
 *   not seen anew. Of both a user has the share that budget.h tells.
 * - open descriptors: one for each file, 4096 at most; of one user's files but root's 1024, and of
 *   all users' but root's 3072.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "trace/event.h"

struct symbols;

/* One place in one process. Strings live as long as the symbols, or until symbols_renew(). */
struct frame {
	uint64_t address;
	const char *function; /* demangled; NULL where it has no name */
	/* Last part of the file's name, "[anon]" or "[vdso]"; NULL where nothing executable is
	 * known at the address. */
	const char *module;
	const char *path;     /* of the file, as the process names it; module where it is no file */
	uint64_t into_bytes;  /* from the begin of the function, or of file or memory without one */
	uint64_t offset;      /* in the file; 0 where it is none */
	bool late;            /* its function is not known, since finding it takes too long */
	int fd;               /* of the file, while the process is not forgotten; -1: none */
	const char *build_id; /* of the file, in hexadecimal; NULL where it has none */
};

struct symbols *symbols_new(void);
void symbols_free(struct symbols *symbols);

/*
 * Notes what the process with this pid has mapped now, in case that it has ended when it is first
 * asked about: for moments at which it is sure to be there. On any thread, as all of these.
 */
void symbols_look(struct symbols *symbols, pid_t pid);

/*
 * For tests: what symbols_find() does by itself. Notes what the process has mapped now; what it had
 * mapped before and has not since stays known. Fails, with what was known left as it is, when it
 * has ended or may not be looked at.
 */
int symbols_see(struct symbols *symbols, const struct process *process, struct err *err);
void symbols_forget(struct symbols *symbols, const struct process *process);

/* The same where its pid is another program by now: what symbols_look() noted is for that. */
void symbols_execed(struct symbols *symbols, const struct process *process);

/*
 * What is at `address`. A process that was not seen yet is seen now; so is, once for each address,
 * one that has nothing there as far as is known, for 64 of them in 10 s. Always fills in the frame.
 */
void symbols_find(struct symbols *symbols, const struct process *process, uint64_t address,
                  struct frame *frame);

/*
 * The same for the address that a call returns to: the call is before it, and may be the last thing
 * in its function.
 */
void symbols_find_call(struct symbols *symbols, const struct process *process, uint64_t address,
                       struct frame *frame);

/*
 * Gives back the names that nothing which is mapped has: what was found before is void. For who
 * goes on for months, when they are worn.
 */
void symbols_renew(struct symbols *symbols);
bool symbols_are_worn(struct symbols *symbols); /* when there is use in that (budget.h) */

/* Names, lists of mappings and perf maps that had no room. */
uint64_t symbols_refused(struct symbols *symbols);
