// SPDX-License-Identifier: MIT
/*
 * System calls in tight loops: an ioctl on a device that stands for the driver's, one on another
 * device, and a call that nobody looks at. One line of JSON a round, in ns of CPU time a call.
 *
 *   caller ROUNDS CALLS
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RM_CONTROL 0xc020462au

static struct {
	uint32_t client, object, command, flags;
	const void *params;
	uint32_t bytes, status;
} block = { .client = 0xc1d00001, .object = 0xcaf00007, .command = 0xa06c0103 };

static const uint64_t timeslice_us = 2048;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double ioctls(int fd, long calls)
{
	double begin = now_ns();

	for (long i = 0; i < calls; i++)
		ioctl(fd, RM_CONTROL, &block);
	return (now_ns() - begin) / (double)calls;
}

static double others(long calls)
{
	double begin = now_ns();

	for (long i = 0; i < calls; i++)
		syscall(SYS_getppid);
	return (now_ns() - begin) / (double)calls;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 3, calls = argc > 2 ? atol(argv[2]) : 100000;
	int device = open("/dev/null", O_RDWR), other = open("/dev/full", O_RDWR);

	block.params = &timeslice_us;
	block.bytes = sizeof(timeslice_us);
	if (device < 0 || other < 0)
		return 1;
	for (long i = 0; i < rounds; i++) {
		double of_device = ioctls(device, calls), of_other = ioctls(other, calls);

		printf("{\"device\": %.1f, \"other\": %.1f, \"getppid\": %.1f}\n", of_device, of_other,
		       others(calls));
		fflush(stdout);
	}
	return 0;
}
