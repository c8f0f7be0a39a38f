// SPDX-License-Identifier: MIT
/*
 * A user who gives a tracer as much to look into as a processor can make:
 *
 *   storms maps SECONDS FOLDER       new files, each mapped for execution for a moment
 *   storms names SECONDS NAME        processes that call themselves so, and end
 *   storms programs SECONDS PROGRAM  processes that execute it
 *   storms threads SECONDS NUMBER    so many threads that each make a call of CUDA's, and stay
 *   storms children SECONDS NUMBER   so many processes that stay
 *
 * Says "ready" first; of threads when they have, of processes when they are there.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
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

#define STACK_BYTES 16384u

static int (*cu_init)(unsigned flags);

static void *call_once(void *unused)
{
	cu_init(0);
	return unused;
}

static void *call_and_stay(void *unused)
{
	call_once(NULL);
	for (;;)
		pause();
	return unused;
}

static void have_threads(long n)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	pthread_attr_t attributes;
	pthread_t thread;

	if (driver)
		cu_init = (int (*)(unsigned))dlsym(driver, "cuInit");
	if (!cu_init) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	call_once(NULL);
	sleep(2); /* until it has its probes */
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	while (n-- && !pthread_create(&thread, &attributes, call_and_stay, NULL))
		;
	sleep(2);
}

static void have_children(long n)
{
	pid_t parent = getpid();

	while (n-- && fork())
		;
	if (getpid() == parent)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

int main(int argc, char **argv)
{
	time_t end;
	bool maps, names, children;

	if (argc < 4)
		return 2;
	end = seconds() + atoi(argv[2]);
	maps = !strcmp(argv[1], "maps");
	names = !strcmp(argv[1], "names");
	children = !strcmp(argv[1], "children");
	signal(SIGCHLD, SIG_IGN); /* they are gone at once */
	if (!strcmp(argv[1], "threads"))
		have_threads(atol(argv[3]));
	if (children)
		have_children(atol(argv[3]));
	puts("ready");
	fflush(stdout);
	while (seconds() < end) {
		if (children || (!maps && !names && cu_init))
			sleep(1);
		else if (maps)
			map_new(argv[3]);
		else
			have_child(names ? argv[3] : NULL, argv[3]);
	}
	return 0;
}
