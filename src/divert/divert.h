/* SPDX-License-Identifier: MIT */
/*
 * Diverts functions of running processes, and puts them back. entry_move.h decides what is written;
 * here all threads of a process are stopped for as long as it takes to write it.
 *
 *	divert_look      which functions of a module can be diverted, and how much room that needs
 *	                 near it: the area, which the process maps by itself (PROT_READ | PROT_EXEC)
 *	divert_put       fills the area, stops the process, writes the jumps, lets it go
 *	divert_take_back puts all entries of a process back
 *
 * A process of its own, cuscope-divert, traces, stops and writes. It lives as long as `struct
 * divert`. Where cuscope ends, by kill -9 as well, it puts everything back and ends. Should it be
 * killed too, the jumps stay, and lead to thunks that pass on.
 *
 * The cut. A result tells since_ns: a time of CLOCK_MONOTONIC at which all threads were stopped.
 * When diverting, calls that the kernel's probe has seen before go on without the thunk, and all
 * that it sees later go through it. When taking back, calls that are in a thunk go on there. It is
 * known as soon as threads go on (divert_is_put, divert_is_taken_back), however late the answer,
 *and also where cuscope-divert is killed. Only which entries a try has changed that is ended while
 * it writes is read from the process's memory; so it is not known where that cannot be read.
 *
 * x86-64 only: elsewhere divert_look refuses. All functions are to be called by one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "divert/entry_move.h"

#define DIVERT_FUNCTIONS_MAX 4096            /* of one module */
#define DIVERT_TARGETS_MAX   1024            /* modules of processes, at a time */
#define DIVERT_THREADS_MAX   4096            /* of a process; one with more is refused */
#define DIVERT_REACH         (1900ull << 20) /* how far from the module the area may lie */
#define DIVERT_STOP_NS       5000000u /* from the first thread's stop to the last one's going on */

struct divert;
struct divert_plan;

/* A file that the process has mapped. */
struct divert_module {
	int fd;           /* stays the caller's */
	const char *path; /* as users are told it */
	dev_t dev;
	uint64_t inode; /* as /proc/PID/maps has them */
	uint64_t owner; /* who showed it, a person of probe/person.h: of his files one at a time is
	                 * looked at aside */
};

struct divert_function {
	uint64_t address; /* of its entry, as linked; struct elf_function has it */
	uint64_t offset;  /* of its entry, in the file */
	uint64_t size;    /* 0: not known */
	uint32_t probe;   /* where the kernel's probe lies: struct placement's skip */
	/* the answer of divert_look */
	enum entry_refusal refusal; /* ENTRY_MOVABLE: it can be diverted */
	uint32_t refused_at;
	uint32_t original; /* offset in the area of the moved code: what a thunk calls */
	bool met;          /* a kernel's probe still is, before the jump */
};

/* What the process is to map: bytes (a multiple of pages), within DIVERT_REACH of all of near. */
struct divert_need {
	uint64_t near_start, near_end;
	size_t bytes;
	uint64_t first; /* where the first one of divert_look's functions is */
};

struct divert_result {
	pid_t pid;
	struct divert_plan *plan; /* of divert_put; NULL: of divert_take_back */
	/*
	 * 0, or why nothing was changed. -EAGAIN: threads did not stop in time, or another
	 * process traces it for a moment; later it may do. -EBUSY: a debugger traces it. -ESRCH: it
	 * has ended, or has another program. -E2BIG: too many threads. -EPERM: of divert_take_back,
	 * it has other users or groups by now, and keeps its jumps. -ENOTSUP, -EFAULT ...
	 * Where since_ns is not 0 all the same, who did it was ended in the middle, and nobody
	 * knows which entries were changed.
	 */
	int rc;
	const char *why;     /* a sentence, where rc is not 0 */
	uint64_t since_ns;   /* the cut */
	uint64_t stopped_ns; /* from the first thread's stop to the last one's going on; 0: not
	                        known */
	uint32_t threads;
	/* Of divert_put: how many functions were diverted, and for each of divert_look's, in its
	 * order, a refusal: ENTRY_CHANGED may have come since. ENTRY_REFUSALS: it was not asked
	 * for, or refused before. */
	uint32_t diverted, count;
	const uint8_t *refusals;
	/* Of divert_take_back: functions that were put back, and that others had changed. */
	uint32_t put_back, changed;
};

/* Called by divert_turn. May call divert_put and divert_take_back. */
typedef void (*divert_done_fn)(void *data, const struct divert_result *result);

/* Starts the process. Call it before threads are made. */
int divert_new(divert_done_fn done, void *data, struct divert **divert, struct err *err);

/* Takes everything back, and waits for it: 2 s at most. Plans that were put are freed. No `done`.
 */
void divert_free(struct divert *divert);

int divert_fd(const struct divert *divert); /* readable: call divert_turn; also now and then */

/*
 * Calls `done` for what has ended. 0; or -ECHILD with a sentence, once, when cuscope-divert is
 * gone: then `done` has been called with that for all that was under way, and nothing can be put or
 * taken back any more.
 */
int divert_turn(struct divert *divert, struct err *err);

/*
 * Begins a plan, where *plan is NULL, and says whether divert_look will not take long: another
 * thread looks at the file where it is not known, and until it is through the answer is
 * -EINPROGRESS. It is to be asked again then, with the same. -ENOSPC: the process's user has as
 * many plans as there is room for.
 */
int divert_may_look(struct divert *divert, pid_t pid, const struct divert_module *module,
                    const struct divert_function *functions, size_t count,
                    struct divert_plan **plan, struct err *err);

/*
 * Judges functions (sorted by address) of a module of a process, by the file and by the process's
 * memory, and fills in the answers. Takes some 30 to 130 ms for a libcuda that is seen first,
 * unless divert_may_look has said that it may be called, and a few for one that is known. 0 with
 * *need, what is to be mapped (bytes 0: nothing can be diverted). Else a negative errno: 32-bit and
 * foreign machines -ENOTSUP, valgrind and other emulators -ENOTSUP, gone -ESRCH, a debugger -EBUSY,
 * not mapped -ENXIO, mapped twice -ENOTSUP. -EAGAIN: what it has mapped could not be read now.
 * *plan is begun where it is NULL, and, whatever is returned, the caller's until divert_put or
 * divert_plan_free: so long its user has less of what there is for plans.
 */
int divert_look(struct divert *divert, pid_t pid, const struct divert_module *module,
                struct divert_function *functions, size_t count, struct divert_need *need,
                struct divert_plan **plan, struct err *err);
void divert_plan_free(struct divert_plan *plan); /* of one that was not put; NULL: nothing */

/*
 * Diverts. The area is mapped at `area`, by the process; thunks[i] is what function i of
 * divert_look's is to go to (0: it stays as it is). Slots are turned on by then. 0: `done` will be
 * called, once, and the plan is divert's until its functions are taken back; where the result's rc
 * is not 0 it is the caller's again, and may be put again. An area that holds, byte for byte, what
 * would be written is used as it is: threads of an earlier time may still be in there. With other
 * code in it rc is -EEXIST, and nothing was changed. Else a negative errno with a sentence,
 * and the plan is still the caller's. -EAGAIN: too much waits to be done, later it may do. The
 * process is not to be traced by cuscope (hold_let_go).
 */
int divert_put(struct divert *divert, struct divert_plan *plan, uint64_t area,
               const uint64_t *thunks, struct err *err);

/*
 * Puts all entries of a process back, of all its modules. `done` will be called, once, also where
 * there is nothing to do. Thunks, area and slots are to stay: calls may be in them for long. They
 * can serve divert_put again.
 * When rc is 0, its plans are freed. When it is -EAGAIN, all is still diverted.
 */
int divert_take_back(struct divert *divert, pid_t pid, struct err *err);

/*
 * Of a plan that was put and is not answered: whether a call that began at `begin_ns` did so behind
 * its cut. Then the result is filled in as the answer will have it.
 */
bool divert_is_put(const struct divert *divert, struct divert_plan *plan, uint64_t begin_ns,
                   struct divert_result *result);

/* The same of entries that are being put back: whether the call began when all were. */
bool divert_is_taken_back(const struct divert *divert, pid_t pid, uint64_t begin_ns);

/* The process has ended, or executes another program: forgets it. No `done`, plans are freed. */
void divert_gone(struct divert *divert, pid_t pid);

/* The same where that is not sure: what it has still is put back. */
void divert_forget(struct divert *divert, pid_t pid);

/*
 * `child` was forked by `parent` (or by a child of that) and has its memory: its entries are
 * diverted as well. One whose parent is not diverted is none. To be told
 * of before the parent's entries are taken back. A child that executes another program:
 * divert_gone.
 */
void divert_forked(struct divert *divert, pid_t parent, pid_t child);

/* How many children there was no room for: they keep their jumps. See divert_queue.h. */
uint64_t divert_refused_children(const struct divert *divert);
