// SPDX-License-Identifier: MIT
#include "capture/last_resort.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/later.h"
#include "base/lines.h"
#include "base/xalloc.h"

#define PATIENCE_MS 900 /* after the second; the end itself takes some time */

struct last_resort {
	pthread_t thread;
	pid_t owner;
	sigset_t ends;
	int signals, over; /* of the thread; `over`: it is to end */
	int pipe[2];       /* to the loop */
	atomic_uint asked; /* signals that end */
	atomic_bool in_steps;
};

/* Signals are the process's. What the loop has left is not waited for by anything else. */
static struct last_resort *running;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * By the signal, as if nobody had held it back: a handler may restore the terminal. Where it is
 * ignored, all the same. Probes are left to a child: the kernel can need long to take them away,
 * and how long cannot be told from putting them there, as processes with them are forked later.
 */
static void end_process(int sig)
{
	const struct timespec moment = { .tv_nsec = 20000000 };
	sigset_t set;

	close_events_at_leisure();
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_kill(pthread_self(), sig);
	nanosleep(&moment, NULL);
	_exit(128 + sig);
}

/* Returns the signal, if it is one that ends. */
static int pass_on(struct last_resort *resort)
{
	struct signalfd_siginfo info;
	bool ends;

	if (read(resort->signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	ends = sigismember(&resort->ends, (int)info.ssi_signo) == 1;
	if (ends)
		atomic_fetch_add(&resort->asked, 1);
	if (ends && !atomic_load(&resort->in_steps))
		end_set_near(true);
	if (ends &&
	    info.ssi_signo != SIGINT) /* Ctrl-C may be meant for the command before a pager */
		lines_hurry();        /* by now the loop may wait for a reader */
	if (write(resort->pipe[1], &info, sizeof(info)) < 0) {
		/* the loop has hundreds of them to read */
	}
	return ends ? (int)info.ssi_signo : 0;
}

static void *watch(void *data)
{
	struct last_resort *resort = data;
	struct pollfd ready[2] = { { .fd = resort->signals, .events = POLLIN },
		                   { .fd = resort->over, .events = POLLIN } };
	int64_t until_ms = 0, left;
	int sig, last = 0;

	for (;;) {
		left = until_ms ? until_ms - now_ms() : -1;
		if (until_ms && left <= 0)
			end_process(last);
		if (poll(ready, 2, (int)left) < 0 && errno != EINTR)
			return NULL;
		if (ready[1].revents)
			return NULL;
		if (!ready[0].revents)
			continue;
		sig = pass_on(resort);
		if (!sig)
			continue;
		last = sig;
		if (atomic_load(&resort->asked) == 2)
			until_ms = now_ms() + PATIENCE_MS;
	}
}

static int open_all(struct last_resort *resort, const sigset_t *all)
{
	resort->signals = signalfd(-1, all, SFD_CLOEXEC | SFD_NONBLOCK);
	resort->over = eventfd(0, EFD_CLOEXEC);
	if (resort->signals < 0 || resort->over < 0)
		return -errno;
	return pipe2(resort->pipe, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

/* What the loop did not come to is for who waits for signals next. */
static void give_back(const struct last_resort *resort)
{
	struct signalfd_siginfo info;

	while (read(resort->pipe[0], &info, sizeof(info)) == sizeof(info))
		kill(getpid(), (int)info.ssi_signo);
}

static void close_all(struct last_resort *resort)
{
	const int fds[] = { resort->signals, resort->over, resort->pipe[0], resort->pipe[1] };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(resort);
}

static void stop(bool back)
{
	const uint64_t one = 1;

	if (!running)
		return;
	if (running->owner != getpid()) { /* of the process that this was forked from */
		close_all(running);
	} else if (write(running->over, &one, sizeof(one)) == sizeof(one)) {
		pthread_join(running->thread, NULL);
		if (back)
			give_back(running);
		close_all(running);
	} /* else it cannot be told, and goes on */
	running = NULL;
}

int last_resort_begin(const sigset_t *all, const sigset_t *ends, struct err *err)
{
	struct last_resort *resort = xcalloc(1, sizeof(*resort));
	sigset_t every, old;
	int rc;

	stop(false);
	end_set_near(false);
	resort->owner = getpid();
	resort->ends = *ends;
	resort->signals = resort->over = resort->pipe[0] = resort->pipe[1] = -1;
	rc = open_all(resort, all);
	if (!rc) {
		sigfillset(&every);
		pthread_sigmask(SIG_SETMASK, &every, &old);
		rc = -pthread_create(&resort->thread, NULL, watch, resort);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (rc) {
		close_all(resort);
		return err_set(err, rc, "preparing to wait for signals: %s", strerror(-rc));
	}
	running = resort;
	return 0;
}

int last_resort_fd(void)
{
	return running->pipe[0];
}

bool last_resort_asked(void)
{
	return running && atomic_load(&running->asked);
}

void last_resort_in_steps(void)
{
	if (running)
		atomic_store(&running->in_steps, true);
}

void last_resort_end(void)
{
	stop(true);
}
