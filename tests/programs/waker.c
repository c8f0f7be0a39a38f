// SPDX-License-Identifier: MIT
/*
 * waker LENGTH ROWS USER CLOSED: forks ROWS rows of LENGTH processes each, says "ready" and their
 * pids, row by row, and then asks the first of each row in turn, waits for its answer and launches
 * a kernel, until its input ends. Each process asks the next of its row; the last computes for 4 ms
 * of its CPU. USER, where it is not 0, is whose they are; with CLOSED 1 nobody may look
 * into them, with 2 they are in a user namespace of their own.
 * Who gets SIGUSR1 becomes a shell that is busy.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "sample.h"

#define ROWS_MAX 64
#define WORK_NS  4000000

static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
static long user, closed;

static long cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static __attribute__((noinline)) void work_of_worker(void)
{
	long end = cpu_ns() + WORK_NS;

	while (cpu_ns() < end)
		;
}

static __attribute__((noinline)) void ask(int next)
{
	char byte = 0;

	if (write(next, &byte, 1) != 1 || read(next, &byte, 1) != 1)
		sample_fail("asking: %s", strerror(errno));
}

static __attribute__((noinline)) void wait_to_be_asked(int asked)
{
	char byte;

	if (read(asked, &byte, 1) != 1)
		_exit(0);
}

static void become_another(int signal)
{
	(void)signal;
	execl("/bin/sh", "sh", "-c", "while :; do :; done", NULL);
}

static void become_worker(void)
{
	if (user && (setresgid((gid_t)user, (gid_t)user, (gid_t)user) ||
	             setresuid((uid_t)user, (uid_t)user, (uid_t)user)))
		sample_fail("user: %s", strerror(errno));
	if (closed == 2 && unshare(CLONE_NEWUSER))
		sample_fail("a namespace: %s", strerror(errno));
	prctl(PR_SET_DUMPABLE, closed != 1); /* also undoes what setresuid did */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "worker");
	signal(SIGUSR1, become_another);
	printf("%d\n", getpid());
	fflush(stdout);
}

/* The end of a pair by which a process is asked that is made now, and asks `length` more. */
static int start_row(long length)
{
	int ends[2], next = -1;
	char byte = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		sample_fail("a socket: %s", strerror(errno));
	pid = fork();
	if (pid) {
		close(ends[1]);
		return ends[0];
	}
	close(ends[0]);
	if (length > 1)
		next = start_row(length - 1);
	become_worker();
	for (;;) {
		wait_to_be_asked(ends[1]);
		if (next < 0)
			work_of_worker();
		else
			ask(next);
		if (write(ends[1], &byte, 1) != 1)
			_exit(0);
	}
}

int main(int argc, char **argv)
{
	long length = sample_number(argc, argv, 1, 1), rows = sample_number(argc, argv, 2, 1);
	struct pollfd input = { .fd = 0, .events = POLLIN };
	int first[ROWS_MAX];
	struct kernels kernels;

	user = sample_number(argc, argv, 3, 0);
	closed = sample_number(argc, argv, 4, 0);
	for (long i = 0; i < rows && i < ROWS_MAX; i++) {
		first[i] = start_row(length);
		ask(first[i]); /* so they have said who they are, in order */
	}
	sample_context();
	sample_kernels(&kernels);
	printf("ready\n");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		for (long i = 0; i < rows && i < ROWS_MAX; i++) {
			ask(first[i]);
			sample_run(kernels.tick, TICK_NAME, shape, NULL);
			DRIVER(cuCtxSynchronize);
		}
	}
	return sample_end();
}
