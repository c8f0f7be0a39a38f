// SPDX-License-Identifier: MIT
/*
 * A user who gives a tracer as much to look into as a processor can make:
 *
 *   storms maps SECONDS FOLDER       new files, each mapped for execution for a moment
 *   storms names SECONDS NAME        processes that call themselves so, and end
 *   storms programs SECONDS PROGRAM  processes that execute it
 *
 * Says "ready" first.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void map_new(const char *folder)
{
	char path[256];
	static long n;
	void *page;
	int fd;

	snprintf(path, sizeof(path), "%s/%ld", folder, n++);
	fd = open(path, O_RDWR | O_CREAT, 0700);
	if (fd < 0 || ftruncate(fd, PAGE)) {
		perror(path);
		exit(1);
	}
	page = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (page != MAP_FAILED)
		munmap(page, PAGE);
	close(fd);
	unlink(path);
}

static void have_child(const char *name, const char *program)
{
	if (vfork())
		return;
	if (name)
		prctl(PR_SET_NAME, name);
	else
		execl(program, program, NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	time_t end;
	bool maps, names;

	if (argc < 4)
		return 2;
	end = seconds() + atoi(argv[2]);
	maps = !strcmp(argv[1], "maps");
	names = !strcmp(argv[1], "names");
	signal(SIGCHLD, SIG_IGN); /* they are gone at once */
	puts("ready");
	fflush(stdout);
	while (seconds() < end) {
		if (maps)
			map_new(argv[3]);
		else
			have_child(names ? argv[3] : NULL, argv[3]);
	}
	return 0;
}
