// SPDX-License-Identifier: MIT
/*
 * A clock that is set, for one program: preloaded, it adds to the time of day the seconds that
 * stand in the file of the variable CLOCKSTEP_FILE, which is read each time.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long step(void)
{
	const char *path = getenv("CLOCKSTEP_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[32] = "";
	ssize_t len;

	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	return len > 0 ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int r = (int)syscall(SYS_clock_gettime, clock, now);

	if (!r && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += step();
	return r;
}

time_t time(time_t *to)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
	(void)zone;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*to = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}
