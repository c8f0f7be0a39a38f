// SPDX-License-Identifier: MIT
/*
 * Threads that are blocked in known functions for known times, and are woken by known threads.
 *
 *	sleeper WHAT [NUMBER]
 *	  once [MS]      after so many ms, each kind once: a sleep, a pipe, a lock, a poll with a limit
 *	  forever [MS]   a thread reads, after so many ms, a pipe that nobody writes to
 *	  storm THREADS  as many threads hand a byte on in pairs, as fast as they can
 *	  rare           one such pair, of which one sleeps 2 ms after each 100 bytes
 *	  beside         sleeps of 5 ms in one thread
 *
 * It prints "ready", and ends with its input but for `once`.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int bytes[2], never[2];
static long before_vain_ms;

/* Not a tail call: the function has to be on the stack. */
#define STAY() __asm__ volatile("")

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void take(int from)
{
	char byte;

	if (read(from, &byte, 1) < 0)
		abort();
}

static void give(int to)
{
	if (write(to, "x", 1) != 1)
		abort();
}

__attribute__((noinline)) static void in_sleep(void)
{
	pause_ms(100);
	STAY();
}

__attribute__((noinline)) static void in_pipe(void)
{
	take(bytes[0]);
	STAY();
}

__attribute__((noinline)) static void in_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	STAY();
}

__attribute__((noinline)) static void in_poll(void)
{
	struct pollfd event = { .fd = never[0], .events = POLLIN };

	poll(&event, 1, 150);
	STAY();
}

__attribute__((noinline)) static void in_vain(void)
{
	take(never[0]);
	STAY();
}

static void *writer(void *unused)
{
	pthread_setname_np(pthread_self(), "writer");
	pause_ms(200);
	give(bytes[1]);
	return unused;
}

static void *holder(void *held)
{
	pthread_setname_np(pthread_self(), "holder");
	pthread_mutex_lock(&lock);
	give(*(int *)held);
	pause_ms(250);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *vain(void *unused)
{
	pthread_setname_np(pthread_self(), "vain");
	pause_ms(before_vain_ms);
	in_vain();
	return unused;
}

static void begin(void *(*body)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, argument))
		abort();
}

static void once(void)
{
	int held[2];

	if (pipe(held))
		abort();
	in_sleep();
	begin(writer, NULL);
	in_pipe();
	begin(holder, &held[1]);
	take(held[0]);
	in_lock();
	in_poll();
}

struct pair {
	int there[2], back[2];
};

static void *hand_on(void *data)
{
	struct pair *pair = data;

	for (;;) {
		take(pair->there[0]);
		give(pair->back[1]);
	}
	return NULL;
}

static long trips_between_naps;

static void *hand_out(void *data)
{
	struct pair *pair = data;

	for (long i = 1;; i++) {
		give(pair->there[1]);
		take(pair->back[0]);
		if (trips_between_naps && i % trips_between_naps == 0)
			pause_ms(2);
	}
	return NULL;
}

static void storm(int threads, long between_naps)
{
	trips_between_naps = between_naps;
	for (int i = 0; i < threads / 2; i++) {
		struct pair *pair = calloc(1, sizeof(*pair));

		if (!pair || pipe(pair->there) || pipe(pair->back))
			abort();
		begin(hand_on, pair);
		begin(hand_out, pair);
	}
}

static void *beside(void *unused)
{
	for (;;) {
		pause_ms(5);
		STAY();
	}
	return unused;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "once";

	if (pipe(bytes) || pipe(never))
		abort();
	if (!strcmp(what, "forever")) {
		before_vain_ms = argc > 2 ? atol(argv[2]) : 0;
		begin(vain, NULL);
	} else if (!strcmp(what, "storm"))
		storm(argc > 2 ? atoi(argv[2]) : 100, 0);
	else if (!strcmp(what, "rare"))
		storm(2, 100);
	else if (!strcmp(what, "beside"))
		begin(beside, NULL);
	puts("ready");
	fflush(stdout);
	if (!strcmp(what, "once")) {
		pause_ms(argc > 2 ? atol(argv[2]) : 0);
		once();
	} else
		take(STDIN_FILENO);
	return 0;
}
