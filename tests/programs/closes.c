// SPDX-License-Identifier: MIT
/*
 * closes SECONDS [RATE]: makes RATE rounds of calls a second, and in the middle closes all of its
 * descriptors but the standard ones, as daemons do, and opens files of its own, which are to be
 * open at its end. What had high numbers, as those of an agent, makes room for eventfds: these all
 * show as one file, and are to hold what they were made with.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "sample.h"

#define FIRST 3
#define MANY  1024 /* kernels before 5.9 have no close_range */

#define FILES 64
#define HELD  7 /* in each eventfd */

static int high[MANY]; /* numbers beyond those of the files */
static size_t n_high;

static void find_high(void)
{
	DIR *all = opendir("/proc/self/fd");

	for (struct dirent *one; all && (one = readdir(all)) && n_high < MANY;) {
		int fd = atoi(one->d_name);

		if (fd >= FIRST + FILES && fd != dirfd(all))
			high[n_high++] = fd;
	}
	if (all)
		closedir(all);
}

static void open_eventfds(void)
{
	for (size_t i = 0; i < n_high; i++) {
		int fd = eventfd(HELD, EFD_NONBLOCK);

		if (fd < 0 || dup2(fd, high[i]) < 0)
			sample_fail("%d is no number of an eventfd", high[i]);
		close(fd);
	}
}

static void check_eventfds(void)
{
	eventfd_t held;

	for (size_t i = 0; i < n_high; i++)
		if (eventfd_read(high[i], &held) || held != HELD)
			sample_fail("eventfd %d was closed, read or written", high[i]);
}

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
			find_high();
			close_all();
			open_files();
			open_eventfds();
			closed = true;
		}
		DRIVER(cuMemAlloc_v2, &memory, 256);
		count_alloc("device", 256);
		DRIVER(cuMemFree_v2, memory);
		count_free("device", 256);
		usleep((useconds_t)(1000000 / rate));
	} while (sample_seconds() < begin + seconds);
	check_files();
	check_eventfds();
	return sample_end();
}
