/* SPDX-License-Identifier: MIT */
/*
 * What /proc/PID/stat says of a process or a thread, and what else the kernel tells of a process
 * only while no exec of it is under way. An exec can be held up for as long as somebody likes, by a
 * file of FUSE that it closes, and who looks then can do nothing but be killed. So whoever has
 * processes for that is asked here, and has a limit (probe/helper.h).
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/at_end.h"

enum process_look {
	PROCESS_TEXT, /* the first bytes of a file */
	PROCESS_LINK, /* where a link leads to, without a NUL */
	PROCESS_FILE, /* struct process_file: what a link leads to */
	PROCESS_FDS,  /* int32_t of each descriptor whose link has `name` in it, of 65536 that are
	                 looked at */
};

struct process_file {
	uint64_t device, inode;
};

/* Of /proc/PID/`name`: bytes, or a negative errno. */
ssize_t process_look(pid_t pid, enum process_look how, const char *name, void *to, size_t bytes);

/* The same at once, whatever may come of it. */
ssize_t process_look_here(pid_t pid, enum process_look how, const char *name, void *to,
                          size_t bytes);

/* Who looks from now on. */
void process_look_by(ssize_t (*look)(pid_t pid, enum process_look how, const char *name, void *to,
                                     size_t bytes));

/* Some of its fields, see proc(5). */
struct process_stat {
	char state;          /* 'R': runs, 'S': sleeps, 'Z' and 'X': has ended, ... */
	pid_t parent;        /* of a process; 0: outside of this pid namespace, or none */
	unsigned flags;      /* PF_ of the kernel's include/linux/sched.h */
	uint64_t start_time; /* in clock ticks since boot */
};

/*
 * Of a process, or of its thread `tid` where that is not 0. False: it is gone. Does not wait for
 * the process's memory, nor, where somebody looks for this one, for its exec.
 */
bool process_stat_read(pid_t pid, pid_t tid, struct process_stat *stat);
bool process_is_ending(pid_t pid, pid_t tid); /* or is gone */

/* The same from the text of the file. False: it is not one. */
bool process_stat_parse(const char *text, struct process_stat *stat);

/*
 * How a thread is scheduled, as top shows it: 20 and the nice value, below 0 real-time. 0: it is
 * gone. Asks the kernel by system calls, which wait for nothing: it is asked of each thread.
 */
int process_priority(pid_t pid, pid_t tid);

/*
 * A thread of it that has not ended, as the first one may have. 0: there is none. By such a thread
 * the memory and the program of a process are found. It is one of the first PROCESS_THREADS_TRIED:
 * others that have ended are there only where somebody holds them by ptrace, which can be tens of
 * thousands.
 */
#define PROCESS_THREADS_TRIED 64
pid_t process_living_thread(pid_t pid);

/*
 * What makes CLOCK_MONOTONIC as the process has it that of the machine: 0 but in a time namespace.
 * False: nobody tells, since it is gone, or is in one and has made another one for its children.
 */
bool process_clock_offset(pid_t pid, int64_t *offset_ns);

/* What tells a process from another one that had its number. 0: it is gone. */
uint64_t process_start_time(pid_t pid);

/* Whether there is no such process any more: a zombie runs nothing, though its pid still exists. */
bool process_is_over(pid_t pid);

/* Its name, or that of its thread `tid` where this is not 0; false, with "": it is gone. */
bool process_comm(pid_t pid, pid_t tid, char *comm, size_t size);

/*
 * What a line of /proc/PID/status says, of a process (0: this one) or of its thread `tid` where
 * that is not 0, by sscanf: `format` has one value, as "Threads: %zu". False: it is gone, or does
 * not say that.
 *
 * The file has the groups of a thread, of which there may be 65,536, and is made as a whole for
 * whoever reads a line of it: 20 us, or 30 ms. So it is asked only for what nothing else tells.
 */
bool process_status(pid_t pid, pid_t tid, const char *format, void *value);

/* The number that a thread has in its own pid namespace; 0: it is gone. */
pid_t process_own_number(pid_t pid, pid_t tid);

/* ---- all of them --------------------------------------------------------------------------- */

/*
 * The threads of a process, or with 0 all processes, one after the other. NULL, with errno: there
 * is no list, which the other two take for an empty one.
 *
 *   AT_END(process_list_end) DIR *list = process_list(pid);
 *
 *   while ((tid = process_next(list)))
 *           ...
 */
DIR *process_list(pid_t pid);
pid_t process_next(DIR *list); /* 0: that was all */
void process_list_end(DIR **list);
