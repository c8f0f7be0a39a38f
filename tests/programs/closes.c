// SPDX-License-Identifier: MIT
/*
 * closes SECONDS [RATE]: makes RATE rounds of calls a second, and in the middle closes all of its
 * descriptors but the standard ones, as daemons do, and opens files of its own, which are to be
 * open at its end.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "sample.h"

#define FIRST 3
#define MANY  1024 /* kernels before 5.9 have no close_range */

#define FILES 64

/* Under the numbers that the others had. */
static void open_files(void)
{
	for (int fd = FIRST; fd < FIRST + FILES; fd++)
		if (open("/proc/self/exe", O_RDONLY) != fd)
			sample_fail("%d is no number of a new file", fd);
}

static void check_files(void)
{
	struct stat own, st;

	stat("/proc/self/exe", &own);
	for (int fd = FIRST; fd < FIRST + FILES; fd++)
		if (fstat(fd, &st) || st.st_ino != own.st_ino || lseek(fd, 0, SEEK_CUR) != 0)
			sample_fail("file %d was closed, or read", fd);
}

static void close_all(void)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, FIRST, ~0u, 0))
		return;
#endif
	for (int fd = FIRST; fd < MANY; fd++)
		close(fd);
}

int main(int argc, char **argv)
{
	double seconds = (double)sample_number(argc, argv, 1, 2), begin;
	long rate = sample_number(argc, argv, 2, 100);
	CUdeviceptr memory;
	bool closed = false;

	sample_context();
	begin = sample_seconds();
	do {
		if (!closed && sample_seconds() > begin + seconds / 2) {
			close_all();
			open_files();
			closed = true;
		}
		DRIVER(cuMemAlloc_v2, &memory, 256);
		count_alloc("device", 256);
		DRIVER(cuMemFree_v2, memory);
		count_free("device", 256);
		usleep((useconds_t)(1000000 / rate));
	} while (sample_seconds() < begin + seconds);
	check_files();
	return sample_end();
}
