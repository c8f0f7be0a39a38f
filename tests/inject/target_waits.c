// SPDX-License-Identifier: MIT
/* The ways in which a thread of the target waits, so that each can be borrowed in it. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "target.h"

void wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- waits, each with its result and its time checked ---------------------------------------- */

/* What a wait of 0.2 s may take: not less. More, where it begins anew at each interruption or the
 * machine is busy, but not without an end. */
static void check_time(const char *what, double begin)
{
	double took = now() - begin;

	if (took < 0.199 || took > 20)
		wrong("%s of 0.2 s took %.3f s", what, took);
}

void work_poll(void)
{
	double begin = now();

	errno = 77;
	if (poll(NULL, 0, 200) != 0 || errno != 77)
		wrong("poll: %s", strerror(errno));
	check_time("poll", begin);
}

void work_ppoll(void)
{
	struct timespec t = { .tv_nsec = 200000000 };
	double begin = now();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (ppoll(NULL, 0, &t, &set) != 0)
		wrong("ppoll: %s", strerror(errno));
	check_time("ppoll", begin);
}

void work_select(void)
{
	struct timeval t = { .tv_usec = 200000 };
	double begin = now();

	if (select(0, NULL, NULL, NULL, &t) != 0)
		wrong("select: %s", strerror(errno));
	check_time("select", begin);
}

void work_nanosleep(void)
{
	struct timespec t = { .tv_nsec = 200000000 };
	double begin = now();

	if (nanosleep(&t, NULL) != 0)
		wrong("nanosleep: %s", strerror(errno));
	check_time("nanosleep", begin);
}

void work_sleep_until(void)
{
	struct timespec t;
	double begin = now();
	int r;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += 200000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	r = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	if (r)
		wrong("clock_nanosleep: %s", strerror(r));
	check_time("clock_nanosleep", begin);
}

_Thread_local int epoll_fd = -1;

void begin_epoll(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
}

void work_epoll(void)
{
	struct epoll_event event;
	double begin = now();

	if (epoll_wait(epoll_fd, &event, 1, 200) != 0)
		wrong("epoll_wait: %s", strerror(errno));
	check_time("epoll_wait", begin);
}

static _Thread_local int pipes[2];

void begin_read(void)
{
	struct timeval t = { .tv_usec = 200000 };

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pipes))
		wrong("socketpair: %s", strerror(errno));
	setsockopt(pipes[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

void work_read(void)
{
	double begin = now();
	char c;

	if (read(pipes[0], &c, 1) != -1 || errno != EAGAIN)
		wrong("read: %s", strerror(errno));
	check_time("read", begin);
}

void work_condition(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	double begin = now();
	struct timespec t;
	int r;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 200000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	r = pthread_cond_timedwait(&condition, &mutex, &t);
	pthread_mutex_unlock(&mutex);
	if (r != ETIMEDOUT)
		wrong("pthread_cond_timedwait: %s", strerror(r));
	check_time("pthread_cond_timedwait", begin);
}
