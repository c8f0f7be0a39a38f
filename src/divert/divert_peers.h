/* SPDX-License-Identifier: MIT */
/*
 * Processes that have the memory of another one, without being its threads: by clone with CLONE_VM
 * alone. Stopping the threads of the one does not stop them, and they run the code that is written.
 * A child of vfork is one as well, but there the thread that made it does not stop.
 *
 * The kernel is asked of each process of the system that has about as much memory (kcmp), before
 * threads are stopped. In the stop
 * only those are asked that were made since: their pids lie between two readings of the last one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PEERS_MAX 16

struct stop;

struct peers {
	pid_t pid;
	pid_t last; /* that the system had given to a process or thread, before the search */
	bool known; /* the kernel can be asked: CONFIG_KCMP */
	pid_t pids[PEERS_MAX];
	pid_t tids[PEERS_MAX]; /* a thread of each that has not ended */
	size_t count;          /* PEERS_MAX: there may be more */
};

enum peers_since { PEERS_NONE, PEERS_NEW, PEERS_MANY };

void peers_find(struct peers *peers, pid_t pid);

/*
 * All threads of it, and of its peers, are stopped: whether others were made until then.
 * PEERS_MANY: too much was made in the system to look at it now.
 */
enum peers_since peers_since(const struct peers *peers, const struct stop *stop);

/*
 * Writes many entries in a short time: each is a system call, and the processors have nothing to do
 * while all threads of the process wait. So a few threads write.
 */

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
