// SPDX-License-Identifier: MIT
/*
 * A program that calls the driver all the time, on many threads and in signal handlers and forked
 * children, and knows what each call should say. Its thunks count, and go on in the moved code.
 */
#include "cut.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THUNK_BYTES 64
#define STEP        (1ull << 20)
#define STEPS       1600 /* a thousand rounds map as many areas, in reach of the library */

typedef int (*of_int)(int *);
typedef int (*of_attribute)(int *, int, int);
typedef int (*of_memory)(size_t *, int);

static struct cut_shared *shared;
static of_int version, count;
static of_attribute attribute;
static of_memory memory;
static int (*calls_back)(void (*)(void *), void *);
static int known_version, known_count, known_attribute;
static size_t known_memory;

static void check(int right)
{
	if (!right)
		atomic_fetch_add(&shared->wrong, 1);
}

static void call_counted(void)
{
	int value = -1;

	atomic_fetch_add(&shared->calls, 1);
	check(version(&value) == 0 && value == known_version);
}

static void call_others(void)
{
	int value = -1;
	size_t bytes = 0;

	check(count(&value) == 0 && value == known_count);
	check(attribute(&value, 16, 0) == 0 && value == known_attribute);
	check(memory(&bytes, 0) == 0 && bytes == known_memory);
	atomic_fetch_add(&shared->others, 3);
}

static void on_signal(int sig)
{
	int saved = errno;

	atomic_fetch_add(&shared->signals, 1);
	call_counted();
	errno = saved;
}

static void *caller(void *unused)
{
	while (!atomic_load(&shared->stop)) {
		call_counted();
		call_others();
	}
	return NULL;
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

/* No signal comes to this thread, so no wait may be interrupted. */
static void *waiter(void *unused)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;
	sem_t never;

	block_all();
	sem_init(&never, 0, 0);
	while (!atomic_load(&shared->stop)) {
		const struct timespec nap = { .tv_nsec = 3000000 };
		struct timespec until;

		if (epoll_wait(epoll, &event, 1, 3) < 0)
			atomic_fetch_add(&shared->interrupted, 1);
		if (nanosleep(&nap, NULL))
			atomic_fetch_add(&shared->interrupted, 1);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec = (until.tv_nsec + 3000000) % 1000000000;
		if (sem_timedwait(&never, &until) == 0 || errno == EINTR)
			atomic_fetch_add(&shared->interrupted, 1);
		atomic_fetch_add(&shared->waits, 3);
	}
	return NULL;
}

/* Children are born with the code as it is at that moment. */
static void *forker(void *unused)
{
	block_all();
	while (!atomic_load(&shared->stop)) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			for (int i = 0; i < 60; i++)
				call_counted(); /* CUDA's others do not work in a child */
			_exit(0);
		}
		if (child > 0)
			waitpid(child, &status, 0);
		check(status == 0);
		atomic_fetch_add(&shared->forks, 1);
		usleep(2000);
	}
	return NULL;
}

/* An exception that goes through a diverted function. */
static void *thrower(void *unused)
{
	block_all();
	while (!atomic_load(&shared->stop)) {
		int arrived = cut_throws(calls_back);

		check(arrived);
		atomic_fetch_add(arrived < 0 ? &shared->not_thrown : &shared->exceptions, 1);
		usleep(500);
	}
	return NULL;
}

/* Libraries come and go. */
static void *loader(void *unused)
{
	block_all();
	while (!atomic_load(&shared->stop)) {
		void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW);

		check(library != NULL);
		if (library)
			dlclose(library);
		atomic_fetch_add(&shared->loads, 1);
		usleep(500);
	}
	return NULL;
}

/* ---- area and thunks ------------------------------------------------------------------------- */

static uint64_t map_near(uint64_t start, size_t bytes)
{
	for (uint64_t far = STEP; far < STEPS * STEP; far += STEP / 2) {
		uint64_t to = far / STEP * STEP, hint = far % STEP ? start + to : start - to;
		void *at = mmap((void *)(uintptr_t)(hint & ~4095ull), bytes, PROT_READ | PROT_EXEC,
		                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (at != MAP_FAILED)
			return (uint64_t)(uintptr_t)at;
	}
	return 0;
}

/* push %rax; mov $count, %rax; lock incq (%rax); pop %rax; jmp *original(%rip) */
static void write_thunk(uint8_t *at, uint64_t count_at, uint64_t original)
{
	static const uint8_t begin[] = { 0x50, 0x48, 0xb8 },
			     end[] = { 0xf0, 0x48, 0xff, 0x00, 0x58, 0xff, 0x25, 0, 0, 0, 0 };

	memcpy(at, begin, sizeof(begin));
	memcpy(at + sizeof(begin), &count_at, 8);
	memcpy(at + sizeof(begin) + 8, end, sizeof(end));
	memcpy(at + sizeof(begin) + 8 + sizeof(end), &original, 8);
}

static void make_area(void)
{
	uint8_t *thunks = mmap(NULL, CUT_FUNCTIONS * THUNK_BYTES, PROT_READ | PROT_WRITE,
	                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	shared->area = map_near(shared->near_start, shared->bytes);
	for (uint32_t i = 0; i < shared->functions && thunks != MAP_FAILED; i++) {
		shared->thunk[i] = 0;
		if (!shared->original[i])
			continue;
		write_thunk(thunks + i * THUNK_BYTES, (uint64_t)(uintptr_t)&shared->diverted[i],
		            shared->area + shared->original[i]);
		shared->thunk[i] = (uint64_t)(uintptr_t)(thunks + i * THUNK_BYTES);
	}
	mprotect(thunks, CUT_FUNCTIONS * THUNK_BYTES, PROT_READ | PROT_EXEC);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void find_functions(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;

	if (!init) {
		fprintf(stderr, "cut: %s\n", dlerror());
		_exit(2);
	}
	init(0);
	version = (of_int)dlsym(library, "cuDriverGetVersion");
	count = (of_int)dlsym(library, "cuDeviceGetCount");
	attribute = (of_attribute)dlsym(library, "cuDeviceGetAttribute");
	calls_back = (int (*)(void (*)(void *), void *))dlsym(library, "cuSimCallback");
	memory = (of_memory)dlsym(library, "cuDeviceTotalMem_v2");
	atomic_fetch_add(&shared->calls, 1);
	check(version(&known_version) == 0 && count(&known_count) == 0 &&
	      attribute(&known_attribute, 16, 0) == 0 && memory(&known_memory, 0) == 0);
}

void cut_target(struct cut_shared *mapping, const struct cut_options *options)
{
	const struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } };
	static pthread_t threads[CUT_THREADS + 4];
	size_t n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpriority(PRIO_PROCESS, 0, 15); /* all processors are wanted by it */
	shared = mapping;
	find_functions(options->library);
	if (options->signals) {
		signal(SIGALRM, on_signal);
		setitimer(ITIMER_REAL, &every_ms, NULL);
	}
	for (int i = 0; i < options->threads; i++)
		pthread_create(&threads[n++], NULL, caller, NULL);
	pthread_create(&threads[n++], NULL, waiter, NULL);
	if (options->forks)
		pthread_create(&threads[n++], NULL, forker, NULL);
	if (options->throws)
		pthread_create(&threads[n++], NULL, thrower, NULL);
	if (options->loads)
		pthread_create(&threads[n++], NULL, loader, NULL);
	atomic_store(&shared->ready, 1);
	while (!atomic_load(&shared->stop)) {
		if (atomic_load(&shared->asked) != atomic_load(&shared->answered)) {
			make_area();
			atomic_fetch_add(&shared->answered, 1);
		}
		usleep(500);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&shared->ready, 2);
	for (;;)
		pause();
}
