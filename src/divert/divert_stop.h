/* SPDX-License-Identifier: MIT */
/*
 * Stops all threads of a process for a moment, by ptrace, and lets them go on as if nothing had
 * been. What a thread was waiting for it goes on waiting for.
 *
 * Done by a process that ends after it: so a thread that did not stop in time, and cannot be let go
 * yet, is let go by the kernel.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "divert/divert_peers.h"

struct stop_thread {
	pid_t tid;
	bool stopped, gone;
	int signal; /* that it was about to get; 0: none */
	bool has_regs, changed;
	bool interrupted; /* waits in a call that would say EINTR */
	uint64_t pc, sp;  /* pc: may be set anew, then `changed`, see stop_place */
};

/* A process of which all threads are to be stopped. */
struct stop_group {
	pid_t pid;
	DIR *tasks;
};

struct stop {
	pid_t pid;
	struct stop_group groups[1 + PEERS_MAX]; /* it, and its peers */
	size_t n_groups;
	struct stop_thread *threads;
	size_t count;
	uint64_t begin_ns; /* the first one was told to stop */
	uint64_t until_ns; /* by when all have to be */
	uint64_t end_ns;   /* by when all have to go on again */
	uint64_t seize_ns; /* that it took to find and seize one thread */
};

/*
 * All threads, also those that are made meanwhile, and those of its peers (NULL: of none). 0: all
 * are stopped, and their registers read. Else a negative errno with a sentence, as struct
 * divert_result has them. stop_let_go is to be called in any case. `limit_ns` is for all of it,
 * until the last one goes on; work_ns of that is for what the caller does meanwhile. Who has too
 * many threads for that is not stopped at all.
 */
int stop_all(struct stop *stop, pid_t pid, const struct peers *peers, uint64_t limit_ns,
             uint64_t work_ns, struct err *err);

/* A thread that is stopped, by which the memory of all is found. 0: none. */
pid_t stop_one(const struct stop *stop);

/* What is left of the limit, but for letting all go on. */
uint64_t stop_left_ns(const struct stop *stop);

/* Sets the registers of those whose pc was changed. False: of one it cannot be done. */
bool stop_place(struct stop *stop);

/* Lets all go on. Calls that were interrupted go on as well. Returns for how long they were
 * stopped. */
uint64_t stop_let_go(struct stop *stop);

/* Signals that a thread has blocked, as a mask; all where it cannot be told. */
uint64_t stop_blocked(const struct stop_thread *thread);

uint64_t stop_now_ns(void);

/* Registers of one thread that the caller has stopped. */
struct user_regs_struct;
bool stop_get_regs(pid_t tid, struct user_regs_struct *regs);
bool stop_set_regs(pid_t tid, struct user_regs_struct *regs);
