// SPDX-License-Identifier: MIT
/* launcher SECONDS RATE: launches so many kernels a second, some each millisecond, and says how many. */
#include <stdint.h>
#include <time.h>

#include "../../tests/programs/sample.h"

int main(int argc, char **argv)
{
	static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
	double seconds = (double)sample_number(argc, argv, 1, 10), end;
	long rate = sample_number(argc, argv, 2, 20000), done = 0;
	const struct timespec millisecond = { .tv_nsec = 1000000 };
	struct kernels kernels;
	double begin;

	sample_context();
	sample_kernels(&kernels);
	sample_ready();
	begin = sample_seconds();
	end = begin + seconds;
	for (double now = begin; now < end; now = sample_seconds()) {
		long due = (long)((now - begin) * (double)rate);

		for (; done < due; done++)
			sample_launch(kernels.tick, TICK_NAME, shape, NULL);
		nanosleep(&millisecond, NULL);
	}
	printf("%ld\n", done);
	return 0;
}
