// SPDX-License-Identifier: MIT
/* What is injected: functions that say that they ran, through the socket that they are given. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int greet(int socket);
int refuse(int socket);
int linger(int socket);
int stay(int socket);

static int calls;

static void say(int socket, const char *what)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%s %d", what, ++calls);

	send(socket, text, (size_t)n, MSG_NOSIGNAL);
}

/* Uses what it can of the processor's registers. */
int greet(int socket)
{
	volatile double values[64];
	double sum = 0;
	void *memory = malloc(100000);

	memset(memory, 0xff, 100000);
	for (int i = 0; i < 64; i++)
		values[i] = sqrt(i * 1.5);
	for (int i = 0; i < 64; i++)
		sum += values[i] * values[63 - i];
	free(memory);
	errno = (int)sum;
	say(socket, "hello");
	close(socket);
	return 0;
}

int refuse(int socket)
{
	close(socket);
	return -EOPNOTSUPP;
}

static void take_time(long ms)
{
	struct timespec end, now;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += ms * 1000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

/* For who loads it himself: takes that time, with the loader's lock held. */
__attribute__((constructor)) static void begin(void)
{
	const char *ms = getenv("LIBRARY_TAKES_MS");

	if (ms)
		take_time(atol(ms));
}

/* Half a second, in which signals may come. */
int linger(int socket)
{
	take_time(500);
	return greet(socket);
}

static void *stay_main(void *argument)
{
	int socket = (int)(intptr_t)argument;
	char c;

	say(socket, "stays");
	while (recv(socket, &c, 1, 0) > 0)
		;
	close(socket);
	return NULL;
}

/* A thread of its own, until the socket closes: as the agent does. */
int stay(int socket)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, stay_main, (void *)(intptr_t)socket))
		return -EAGAIN;
	pthread_detach(thread);
	return 0;
}
