// SPDX-License-Identifier: MIT
/*
 * hostwaits KIND ROUNDS FILE: launches a kernel ROUNDS times and waits before each, in a function
 * named after what it waits for: disk (FILE read without the page cache), fault (FILE mapped and
 * not in the cache), network, lock, pipe, sleep and limit (3 ms each; of a poll to which nothing
 * comes), cpu (2 ms of work on a CPU that two neighbours never leave). KIND `ends` is lock, on
 * threads that end after each launch.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "sample.h"

#define WAIT_US    3000
#define WORK_NS    2000000
#define PAGE_BYTES 4096u
#define READS      64 /* a round */
#define NEIGHBOUR  2

static const struct shape shape = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
static struct kernels kernels;
static CUcontext context;
static const char *path;
static int sockets[2], pipes[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static long n_given, n_taken;

static void pause_us(long us)
{
	const struct timespec time = { 0, us * 1000 };

	nanosleep(&time, NULL);
}

/* ---- what is waited for ---------------------------------------------------------------------- */

static int open_file(int flags)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | flags);

	if (fd < 0)
		sample_fail("%s: %s", path, strerror(errno));
	return fd;
}

static off_t place(long i)
{
	return (off_t)(i * 7919 % 4096 * PAGE_BYTES);
}

static __attribute__((noinline)) void in_disk(long round)
{
	static void *buffer;
	static int fd = -1;

	if (fd < 0)
		fd = open_file(O_DIRECT);
	if (!buffer && posix_memalign(&buffer, PAGE_BYTES, PAGE_BYTES))
		sample_fail("no memory");
	for (long i = 0; i < READS; i++) {
		if (pread(fd, buffer, PAGE_BYTES, place(round * READS + i)) != PAGE_BYTES)
			sample_fail("read: %s", strerror(errno));
	}
}

static __attribute__((noinline)) void in_fault(long round)
{
	static const volatile char *map;
	static int fd = -1;

	if (fd < 0) {
		fd = open_file(0);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		map = mmap(NULL, 4096 * PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			sample_fail("mmap: %s", strerror(errno));
		madvise((void *)map, 4096 * PAGE_BYTES, MADV_RANDOM);
	}
	for (long i = 0; i < READS; i++)
		(void)map[place(round * READS + i)];
}

static __attribute__((noinline)) void in_network(long round)
{
	char byte = (char)round;

	if (recv(sockets[0], &byte, 1, 0) != 1)
		sample_fail("recv: %s", strerror(errno));
}

static __attribute__((noinline)) void in_pipe(long round)
{
	char byte = (char)round;

	if (read(pipes[0], &byte, 1) != 1)
		sample_fail("read: %s", strerror(errno));
}

static __attribute__((noinline)) void in_lock(long round)
{
	(void)round;
	pthread_mutex_lock(&mutex);
	while (n_taken == n_given)
		pthread_cond_wait(&given, &mutex);
	n_taken++;
	pthread_mutex_unlock(&mutex);
}

static __attribute__((noinline)) void in_sleep(long round)
{
	(void)round;
	pause_us(WAIT_US);
}

static __attribute__((noinline)) void in_limit(long round)
{
	struct pollfd wanted = { sockets[0], POLLIN, 0 };

	(void)round;
	poll(&wanted, 1, WAIT_US / 1000);
}

static long cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static __attribute__((noinline)) void in_work(long round)
{
	long end = cpu_ns() + WORK_NS;

	(void)round;
	while (cpu_ns() < end)
		;
}

/* ---- who is waited for ----------------------------------------------------------------------- */

static void *give(void *data)
{
	const char *kind = data;

	prctl(PR_SET_NAME, "giver");
	for (;;) {
		pause_us(WAIT_US);
		if (!strcmp(kind, "network") && send(sockets[1], "", 1, 0) != 1)
			sample_fail("send: %s", strerror(errno));
		if (!strcmp(kind, "pipe") && write(pipes[1], "", 1) != 1)
			sample_fail("write: %s", strerror(errno));
		pthread_mutex_lock(&mutex);
		n_given = n_taken + 1;
		pthread_cond_signal(&given);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static pid_t neighbours[NEIGHBOUR];

static void crowd(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	for (size_t i = 0; i < NEIGHBOUR; i++) {
		neighbours[i] = fork();
		if (neighbours[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "neighbour");
		sched_setaffinity(0, sizeof(one), &one);
		for (;;)
			in_work(0);
	}
	sched_setaffinity(0, sizeof(one), &one);
}

static void end_crowd(void)
{
	for (size_t i = 0; i < NEIGHBOUR && neighbours[i]; i++) {
		kill(neighbours[i], SIGKILL);
		waitpid(neighbours[i], NULL, 0);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	void (*wait)(long round);
	bool given;
} kinds[] = {
	{ "disk", in_disk, false }, { "fault", in_fault, false }, { "network", in_network, true },
	{ "pipe", in_pipe, true },  { "lock", in_lock, true },    { "ends", in_lock, true },
	{ "cpu", in_work, false },  { "sleep", in_sleep, false }, { "limit", in_limit, false },
};

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	}
	sample_fail("there is no kind '%s'", name);
}

static void run(const struct kind *kind, long round)
{
	kind->wait(round);
	sample_run(kernels.tick, TICK_NAME, shape, NULL);
	DRIVER(cuCtxSynchronize);
}

struct once {
	const struct kind *kind;
	long round;
};

static void *run_once(void *data)
{
	struct once *once = data;

	DRIVER(cuCtxSetCurrent, context);
	run(once->kind, once->round);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct kind *kind = kind_of(argc > 1 ? argv[1] : "sleep");
	long rounds = sample_number(argc, argv, 2, 10);
	pthread_t thread;

	path = argc > 3 ? argv[3] : "";
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || pipe(pipes))
		sample_fail("sockets and pipes: %s", strerror(errno));
	context = sample_context();
	sample_kernels(&kernels);
	if (kind->given)
		pthread_create(&thread, NULL, give, (void *)kind->name);
	if (!strcmp(kind->name, "cpu"))
		crowd();
	for (long i = 0; i < rounds; i++) {
		struct once once = { kind, i };

		if (strcmp(kind->name, "ends")) {
			run(kind, i);
			continue;
		}
		pthread_create(&thread, NULL, run_once, &once);
		pthread_join(thread, NULL);
	}
	end_crowd();
	return sample_end();
}
