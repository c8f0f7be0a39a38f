/* SPDX-License-Identifier: MIT */
/*
 * Writes many entries in a short time: each is a system call, and the processors have nothing to do
 * while all threads of the process wait. So a few threads write.
 */
#ifndef CUSCOPE_DIVERT_DIVERT_WRITERS_H
#define CUSCOPE_DIVERT_DIVERT_WRITERS_H

#include <stdbool.h>

struct divert_target;
struct divert_entry;
struct divert_writers;

/* Writes one entry, and says whether it is written. Called again where it was not. */
typedef bool (*divert_write_fn)(const struct divert_target *target, struct divert_entry *entry);

/* Threads that wait; they have the caller's scheduling. They end with the process. */
struct divert_writers *divert_writers_new(void);

/* How many there are, with the caller's own. */
unsigned divert_writers_count(const struct divert_writers *writers);

/*
 * Calls `write` for each entry, by all threads, and sets its `written`. What another thread could
 * not write the caller's does: the kernel may have been told that only a tracer writes to code.
 */
void divert_writers_run(struct divert_writers *writers, struct divert_target *target,
                        divert_write_fn write);

#endif
