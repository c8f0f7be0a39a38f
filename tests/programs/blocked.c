// SPDX-License-Identifier: MIT
/*
 * blocked MILLISECONDS [LIBRARY]: blocks every signal, waits, loads the library and ends with
 * status
 * 7. A thread as GPU libraries and language runtimes have them.
 */
#include <signal.h>
#include <time.h>

#include "sample.h"

int main(int argc, char **argv)
{
	long ms = sample_number(argc, argv, 1, 500);
	const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	nanosleep(&pause, NULL);
	driver = sample_open(argc > 2 ? argv[2] : "libcuda.so.1");
	DRIVER(cuInit, 0);
	sample_end();
	return 7;
}
