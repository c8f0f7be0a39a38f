/* SPDX-License-Identifier: MIT */
/*
 * Processes that do what cuscope does not do itself: what may hang or crash, or be taken over by
 * what it reads. A worker has one socket (SOCK_SEQPACKET), by which requests and answers come, each
 * one message, with a descriptor or without one. Who asks waits with a limit; a worker that does
 * not answer is given up. What rights it has is rights.h's.
 *
 *   worker_fork    goes on in a copy of this process, and is nobody's child
 *   worker_start   another program, or cuscope's own file under another name
 *   worker_run     a program of the system's, without rights, of which only the end is of interest
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- messages ------------------------------------------------------------------------------ */

/* `fd` -1: without a descriptor. 0 or a negative errno; worker_send_now: -EAGAIN where there is no
 * room for it now. */
int worker_send(int socket, const void *message, size_t bytes, int fd);
int worker_send_now(int socket, const void *message, size_t bytes, int fd);

/*
 * Bytes received, 0 at the end of the other side, or a negative errno. *fd is -1 where no
 * descriptor came. NULL: there is no room for any, so a worker that was taken over sends none.
 */
ssize_t worker_receive(int socket, void *message, size_t bytes, int *fd);

/* Until something can be read, or a pidfd has ended. 0; -ETIMEDOUT; -ECANCELED: *stop was set
 * meanwhile, by another thread (NULL: by nobody). */
int worker_wait(int fd, unsigned ms, const bool *stop);

/* ---- beginning ----------------------------------------------------------------------------- */

/*
 * Runs `run` with a socket in a process that is nobody's child, so that who waits for all children
 * does not meet it; `own_session`: in no terminal's session. *socket is the other end. 0 or a
 * negative errno.
 */
int worker_fork(bool own_session, void (*run)(void *data, int socket), void *data, int *socket);

/* In the worker: of what it was forked with it keeps these two (-1: none), and its standard
 * descriptors are /dev/null. */
void worker_close_all_but(int fd, int other);

/* In the worker: after that time it is ended, whatever it waits for, and whatever signals the
 * thread that made it had blocked. */
void worker_end_after(unsigned ms);

/* Of who runs out of memory it is this process that ends, rather than who made it, or a job. */
void worker_goes_first(void);

#define WORKER_SOCKET 3 /* where a program that was started has its socket */

struct worker {
	pid_t pid; /* 0: there is none */
	int pidfd;
	int socket; /* -1: none */
};

struct worker_program {
	const char *path; /* NULL: cuscope's own file */
	char *const *argv, *const *environment;
	int with;    /* a descriptor that it has behind its socket; -1: none */
	bool silent; /* its standard descriptors are /dev/null */
	bool deaf;   /* to signals, and in this session; else in one of its own */
};

/* 0 or a negative errno. */
int worker_start(struct worker *worker, const struct worker_program *program);

struct worker_command {
	int program; /* a descriptor */
	char *const *argv, *const *environment;
	int fds[4]; /* what it has as 0, 1, ...; -1: /dev/null */
	int nice;
	uint64_t cpu_s, file_bytes; /* that it may use; and write */
	uid_t user;                 /* 0: rights_become_unseen() */
	gid_t group;
};

/* The worker has no socket. 0 or a negative errno. Between fork and exec are system calls only. */
int worker_run(struct worker *worker, const struct worker_command *command);

/* ---- end ----------------------------------------------------------------------------------- */

/*
 * Waits for its end, which is in *info then (NULL: of no interest); si_pid is 0 where another
 * thread that waits for all children has been told. False: it goes on. Else the worker is nobody.
 */
bool worker_ended(struct worker *worker, unsigned ms, siginfo_t *info);

/* Closes its socket, kills it, and waits. False: it is stuck in the kernel, and pidfd stays open.
 */
bool worker_kill(struct worker *worker, unsigned ms, siginfo_t *info);
