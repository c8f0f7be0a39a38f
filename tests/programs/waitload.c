// SPDX-License-Identifier: MIT
/*
 * waitload SECONDS [LIBRARY]: prints "ready", waits that long or until it gets SIGUSR1, then loads
 * the library, prints "loaded", and calls it every 10 ms for half a second: a process that ran
 * before it was watched. Prints how many of its calls were made more than 200 ms after loading.
 */
#include <signal.h>
#include <time.h>

#include "sample.h"

static void nothing(int sig)
{
}

static void say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct timespec time = { .tv_sec = sample_number(argc, argv, 1, 1) };
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct sigaction action = { .sa_handler = nothing };
	double loaded;
	sigset_t set;

	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	say("ready");
	sigtimedwait(&set, NULL, &time);
	driver = sample_open(argc > 2 ? argv[2] : "libcuda.so.1");
	loaded = sample_seconds();
	DRIVER(cuInit, 0);
	say("loaded");
	while (sample_seconds() < loaded + 0.5) {
		bool late = sample_seconds() > loaded + 0.2;
		int version;

		DRIVER(cuDriverGetVersion, &version);
		if (late)
			count("late", 1, "cuDriverGetVersion");
		nanosleep(&pause, NULL);
	}
	return sample_end();
}
