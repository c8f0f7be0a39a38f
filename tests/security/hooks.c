// SPDX-License-Identifier: MIT
/*
 * What a hostile program does where its functions and system calls are hooked:
 *
 *   hooks threads N [DEEP]  N threads that all stand in hooked_wait(), so deep, until input ends
 *   hooks arguments N     calls hooked_read() N times with each address that cannot be read
 *   hooks paths ADDRESS   opens a path at an address of the kernel's
 *   hooks load PATH       calls hooked_mark() of a library each millisecond until input ends
 *   hooks swap PATH OTHER the same, of a library that takes another's place all the time
 *   hooks map PATH        maps a file as code, says so, and ends with its input
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK 65536

int hooked_wait(int n, int depth);
int hooked_read(const void *at, const char *text);

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiting;
static int deep = 1;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void wait_for_input(void)
{
	while (getchar() != EOF)
		;
}

static int input_ended(int ms)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	return poll(&input, 1, ms) > 0;
}

__attribute__((noinline)) int hooked_wait(int n, int depth)
{
	if (depth < deep)
		return hooked_wait(n, depth + 1) + 1;
	atomic_fetch_add(&waiting, 1);
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return n;
}

__attribute__((noinline)) int hooked_read(const void *at, const char *text)
{
	__asm__ volatile("" ::"r"(at), "r"(text));
	return 0;
}

static void *wait_main(void *n)
{
	return (void *)(intptr_t)hooked_wait((int)(intptr_t)n, 1);
}

static void wait_in_threads(int n)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_mutex_lock(&held);
	for (intptr_t i = 0; i < n; i++) {
		if (pthread_create(&thread, &attributes, wait_main, (void *)i))
			fail("pthread_create");
	}
	while (atomic_load(&waiting) < n)
		usleep(1000);
	ready();
	wait_for_input();
	_exit(0);
}

/* Text that fills a page, behind which nothing is mapped. */
static char *endless(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || munmap(page + 4096, 4096))
		fail("mmap");
	memset(page, 'x', 4096);
	return page;
}

static void read_what_cannot_be(int n)
{
	const uint64_t addresses[] = { 1,
		                       4096,
		                       0xffffffff81000000,
		                       0xffff888000000000,
		                       0xfffffffffffffff8,
		                       0x8000000000000000,
		                       ~0ull };
	char *text = endless();

	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < sizeof(addresses) / sizeof(addresses[0]); k++)
			hooked_read((void *)addresses[k], (char *)addresses[k]);
		hooked_read(text + 4092, text + 4000);
		hooked_read(text, text);
	}
}

static void open_paths(const char *address)
{
	syscall(SYS_openat, AT_FDCWD, strtoull(address, NULL, 16), O_RDONLY);
	syscall(SYS_openat, AT_FDCWD, "/nowhere/of-the-program", O_RDONLY);
}

static void mark(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*function)(int) = library ? (void (*)(int))dlsym(library, "hooked_mark") : NULL;

	if (function)
		function(-1);
	if (library)
		dlclose(library);
}

static void load(const char *path, const char *other)
{
	char between[4096];

	snprintf(between, sizeof(between), "%s.between", path);
	mark(path);
	ready();
	while (!input_ended(1)) {
		for (int i = 0; other && i < 20; i++) {
			rename(path, between);
			rename(other, path);
			rename(between, other);
		}
		mark(path);
	}
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0 || mmap(NULL, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		fail(path);
	ready();
	wait_for_input();
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (argc > 3)
		deep = atoi(argv[3]);
	if (!strcmp(what, "threads"))
		wait_in_threads(atoi(argv[2]));
	else if (!strcmp(what, "arguments"))
		read_what_cannot_be(atoi(argv[2]));
	else if (!strcmp(what, "paths"))
		open_paths(argv[2]);
	else if (!strcmp(what, "load"))
		load(argv[2], NULL);
	else if (!strcmp(what, "swap") && argc > 3)
		load(argv[2], argv[3]);
	else if (!strcmp(what, "map"))
		map_file(argv[2]);
	else
		return 2;
	return 0;
}
