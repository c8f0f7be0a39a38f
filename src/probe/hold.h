/* SPDX-License-Identifier: MIT */
/*
 * Starting a command so that nothing it does is missed, not even the first call into a library
 * that it loads later.
 *
 * The command and what it starts are traced with ptrace, but stopped at three moments only. These
 * are the birth of a task, exec, and the mapping of a file that no hook has been decided for. In
 * the last case the eBPF side sends the thread a signal, see src/bpf/files.h. At the last two
 * moments the callback looks at what is mapped and hooks it. That one thread waits, usually well
 * under a millisecond. Between such moments nothing is slowed down. When cuscope dies, the kernel
 * detaches.
 *
 * SIGSTOP would do without ptrace, but shells, sudo and timeout see their child stop and act on it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/wire.h"
#include "probe/identity.h"

struct command {
	char *const *argv;           /* argv[0] is looked up in PATH */
	const struct origin *origin; /* restored for it; NULL: it inherits cuscope's own */
	const char *user;            /* run as this user with its groups; NULL: as cuscope runs */
	const int *streams; /* become its standard input, output, error; NULL: cuscope's own */
	struct environment environment;
	bool hold;   /* use ptrace; else libraries loaded later are hooked as they are seen */
	bool follow; /* trace the processes that it starts */
};

struct hold;

/*
 * Called on another thread, while a thread of `pid` waits for it to return. `begins`: the process
 * has not made a step in its program.
 */
typedef void (*hold_look_fn)(void *data, pid_t pid, bool begins);
/* On that thread too: whether a signal that stopped thread `tid` was sent by the eBPF side. */
typedef enum held (*hold_held_fn)(void *data, pid_t tid);

/*
 * Makes the process and leaves it waiting just before exec. Fails with a sentence when the command
 * cannot be found or the user does not exist. If ptrace is refused, *held is false and the rest
 * works.
 */
int hold_prepare(const struct command *command, hold_look_fn look, hold_held_fn ours, void *data,
                 struct hold **hold, pid_t *pid, bool *held, struct err *err);

/* Lets it exec. Fails when exec fails. */
int hold_go(struct hold *hold, struct err *err);
bool hold_gone(const struct hold *hold); /* was let go */

/*
 * Passes a signal on to the command, unless the command got it as well. It came to us from process
 * `from` (0: the kernel, or not known). Ctrl-C reaches all in a terminal's foreground, the command
 * too, unless it has a session of its own.
 */
void hold_pass_on(struct hold *hold, int sig, pid_t from);

/* Readable when the command has ended. */
int hold_fd(const struct hold *hold);

/* Whether the command has ended; then *status is as wait(2) gives it. Does not block. */
bool hold_ended(struct hold *hold, int *status);

/* Longest time that a thread was held, and how often: for the summary. */
void hold_times(const struct hold *hold, uint64_t *count, uint64_t *longest_ns);

/*
 * Stops tracing one process of the command, so that others can trace it; what it starts is not
 * traced either. No more of its threads may be stopped by then (programs_stop_holding_one). Waits
 * for all of its threads to be free, 0.2 s at most: -EAGAIN when they are not yet, and will be. A
 * thread in epoll_wait may see EINTR, as it would after SIGSTOP and SIGCONT.
 */
int hold_let_go(struct hold *hold, pid_t pid);

/* Traces a process again that was let go, with what it starts. Its threads do not stop for that. */
void hold_take(struct hold *hold, pid_t pid);

/*
 * Stops tracing it; it runs on, and can still be waited for. No more threads may be stopped by then
 * (programs_stop_holding): one that is stopped after this stays so.
 */
void hold_release(struct hold *hold);

/*
 * Waits for the command to end; returns its wait(2) status. SIGINT, SIGTERM and SIGHUP are to be
 * blocked. If `patient`, the first of them is passed on and the waiting goes on; the terminal has
 * given the command its SIGINT already. Else, and at the next, returns minus its number. Not for a
 * command that was never let go, which waits for us.
 */
int hold_wait(struct hold *hold, bool patient);

/* Releases; a command that was never let go is killed. */
void hold_free(struct hold *hold);
