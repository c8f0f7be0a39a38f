// SPDX-License-Identifier: MIT
/*
 * A program with as many mappings as the kernel allows, by which each look at it takes long. It
 * says "ready", and goes on until standard input ends:
 *
 *   mappings same N PATH      maps itself N times
 *   mappings new N PATH       and the file at PATH again and again, which it changes each time
 *   mappings crowd N -        has N children, and maps nothing but the driver
 *   mappings deep N FOLDER    maps a file that lies 900 folders below that N times
 *   mappings list N FOLDER    the same, and has 30 children that have it, too
 *   mappings library N PATH   maps all of the library at PATH N times
 *   mappings guards - PATH    maps that, and puts guard pages over all of it
 *   mappings locks FILE PATH  maps that, and unmaps pages of FILE that it has changed
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE  4096u
#define LISTS 30

#ifndef MADV_GUARD_INSTALL /* Linux 6.13 */
#define MADV_GUARD_INSTALL 102
#endif

static void map(int fd, int times)
{
	for (int i = 0; i < times; i++)
		mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
}

/* It uses CUDA, or nobody would look at it. */
static void call_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;

	if (!init || init(0)) {
		fprintf(stderr, "mappings: no driver: %s\n", dlerror());
		exit(1);
	}
}

/* Each until standard input ends. */
static void have_children(int count, struct pollfd *input)
{
	for (int i = 0; i < count; i++) {
		if (fork())
			continue;
		poll(input, 1, -1);
		_exit(0);
	}
}

/* -1: they cannot be made. */
static int open_deep(const char *folder)
{
	int fd, rc = chdir(folder);

	for (int i = 0; i < 900 && !rc; i++)
		rc = mkdir("d", 0755) || chdir("d");
	fd = rc ? -1 : open("file", O_RDWR | O_CREAT | O_EXCL, 0600);
	return fd < 0 || ftruncate(fd, PAGE) ? -1 : fd;
}

static void *map_library(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *code;

	*bytes = fd < 0 ? 0 : (size_t)lseek(fd, 0, SEEK_END);
	code = mmap(NULL, *bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	return code;
}

/* False: this kernel has none, or not for files. */
static bool put_guards(const char *path)
{
	size_t bytes;
	void *code = map_library(path, &bytes);

	return code != MAP_FAILED && !madvise(code, bytes, MADV_GUARD_INSTALL);
}

/* Where FILE's server does not take what was written to it, munmap() waits for that, and keeps the
 * lock of all mappings of the process. */
static void lock_mappings(const char *path, struct pollfd *input)
{
	int file = open(path, O_RDWR);

	do {
		char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

		if (page == MAP_FAILED)
			exit(1);
		*page = 1;
		munmap(page, PAGE);
	} while (poll(input, 1, 0) == 0);
}

static void change(int fd)
{
	static char byte;
	void *page;

	byte++;
	if (pwrite(fd, &byte, 1, PAGE) != 1)
		return;
	page = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (page != MAP_FAILED)
		munmap(page, PAGE);
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	bool anew = argc > 1 && !strcmp(argv[1], "new"), locks, list;
	int self = open("/proc/self/exe", O_RDONLY), fd;

	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "guards") && !put_guards(argv[3]))
		return 77;
	locks = !strcmp(argv[1], "locks");
	list = !strcmp(argv[1], "list");
	for (int i = 0; i < (locks ? 1 : !strcmp(argv[1], "library") ? atoi(argv[2]) : 0); i++)
		map_library(argv[3], &(size_t){ 0 });
	if (!strcmp(argv[1], "deep") || list)
		fd = self = open_deep(argv[3]);
	else
		fd = strcmp(argv[3], "-") ? open(argv[3], O_RDWR | O_CREAT, 0600) : -1;
	call_driver();
	if (!strcmp(argv[1], "crowd"))
		have_children(atoi(argv[2]), &input);
	else if (!locks && strcmp(argv[1], "library"))
		map(self, atoi(argv[2]));
	if (list)
		have_children(LISTS, &input);
	puts("ready");
	fflush(stdout);
	if (locks)
		lock_mappings(argv[2], &input);
	while (poll(&input, 1, anew ? 1 : 100) == 0)
		if (anew)
			change(fd);
	return 0;
}
