// SPDX-License-Identifier: MIT
/*
 * How long rows of unwind tables take to be made (unwind/frame_rows.h), on one core, of files that
 * are in memory already:
 *
 *   tables ROUNDS FILE...     the least of so many rounds, with what a file has
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "unwind/frame_rows.h"

#define BUDGET ((size_t)1 << 30)

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 0;

	if (rounds < 1)
		return 2;
	for (int i = 2; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		struct frame_rows rows;
		struct err err = { 0 };
		double least = 1e9;

		for (int round = 0; round < rounds; round++) {
			double begin = now_ms(), took;

			if (frame_rows_read(fd, argv[i], BUDGET, &rows, &err))
				return fprintf(stderr, "%s\n", err.text) > 0;
			took = now_ms() - begin;
			least = took < least ? took : least;
			if (round + 1 < rounds)
				frame_rows_free(&rows);
		}
		printf("%8.1f ms  %8u functions  %8u rows  %5u rules  %s\n", least,
		       rows.counts.fdes, rows.n_rows, rows.n_rules, argv[i]);
		frame_rows_free(&rows);
		close(fd);
	}
	return 0;
}
