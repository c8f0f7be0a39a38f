// SPDX-License-Identifier: MIT
/*
 * Spends its time at the end of a chain of calls that is known, without frame pointers: what the
 * stacks of a profile are compared with. Prints "ready" when it is there, and goes on until
 * standard input ends. With NAPS_MS set it sleeps so long after every 10 ms.
 *
 *   frames recursion DEPTH | alloca DEPTH | signal | tail | zeros | clock | threads N | late
 * LIBRARY | library LIBRARY | driver | fork DEPTH | exec DEPTH | exit | nowhere
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A call of such a function is a call: it is neither put into its caller nor known to it. */
#define APART      __attribute__((noipa))
#define NOT_LAST() asm volatile("" ::: "memory")
#define TURNS      20000000 /* of spin(), some 10 ms */

static volatile int over; /* standard input has ended */
static volatile unsigned long turns;

/* Of assembler, so that an instruction is where the sample is: not the call of another function. */
APART void spin(void)
{
	for (long i = 0; i < TURNS; i++)
		asm volatile("" : : "r"(i));
	turns++;
}

APART void spin_until_over(void)
{
	const char *naps = getenv("NAPS_MS");

	while (!over) {
		spin();
		if (naps)
			usleep((useconds_t)atoi(naps) * 1000);
	}
	NOT_LAST();
}

APART void dive(long depth)
{
	if (depth > 1)
		dive(depth - 1);
	else
		spin_until_over();
	NOT_LAST();
}

/* Its frame has a size that is known when it runs: the frame is found by a register. */
APART void swell(long depth)
{
	volatile char *bytes = __builtin_alloca((size_t)(turns & 7) * 100 + 100);

	bytes[0] = (char)depth;
	if (depth > 1)
		swell(depth - 1);
	else
		spin_until_over();
	bytes[1] = 0;
}

/* ---- a thread that waits for the end of standard input --------------------------------------- */

static void *watch_input(void *data)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char byte;

	while (poll(&input, 1, -1) < 0 || read(STDIN_FILENO, &byte, 1) > 0)
		;
	over = 1;
	return data;
}

static void begin(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, watch_input, NULL);
	pthread_detach(thread);
	puts("ready");
	fflush(stdout);
}

/* ---- the chains ------------------------------------------------------------------------------ */

APART void handle(int number)
{
	if (number)
		spin_until_over();
	NOT_LAST();
}

/* The signal comes at an instruction of this function: no library is between. */
APART void be_interrupted(void)
{
	while (!over) /* nothing is here that the handler could be called from */
		asm volatile("");
}

APART void in_signal(void)
{
	signal(SIGALRM, handle);
	alarm(1);
	be_interrupted();
	NOT_LAST();
}

APART void jumped_to(void)
{
	spin_until_over();
	NOT_LAST();
}

/* A jump, not a call: this one is in no stack. */
APART void jumper(void)
{
	jumped_to();
}

APART void in_tail_call(void)
{
	jumper();
	NOT_LAST();
}

APART void read_zeros(void)
{
	static char bytes[1 << 20];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (!over && read(fd, bytes, sizeof(bytes)) > 0)
		;
	close(fd);
}

APART void read_the_clock(void)
{
	struct timespec now;

	while (!over)
		clock_gettime(CLOCK_MONOTONIC, &now);
}

static void *dive_in_thread(void *depth)
{
	dive((long)depth);
	return NULL;
}

static void in_threads(long n)
{
	pthread_t threads[64];

	for (long i = 0; i < n && i < 64; i++)
		pthread_create(&threads[i], NULL, dive_in_thread, (void *)(i + 1));
	begin();
	for (long i = 0; i < n && i < 64; i++)
		pthread_join(threads[i], NULL);
}

/* Calls it back, through itself: see framelib.c. */
APART void in_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*call_back)(void (*function)(void));

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(9);
	}
	*(void **)&call_back = dlsym(library, "call_back");
	call_back(spin_until_over);
	NOT_LAST();
}

/* The library comes when the profile has been running for a while. */
APART void in_late_library(const char *path)
{
	for (int i = 0; i < 50; i++)
		spin();
	in_library(path);
	NOT_LAST();
}

APART void in_fork(long depth)
{
	pid_t child = fork();

	begin();
	dive(child ? depth : depth + 1);
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	NOT_LAST();
}

static int (*call_back_in_driver)(void (*function)(void *), void *data);

APART void spin_in_callback(void *data)
{
	(void)data;
	spin();
	NOT_LAST();
}

APART void call_back_once_more(void *data)
{
	call_back_in_driver(spin_in_callback, data);
	NOT_LAST();
}

/* Calls of the simulated driver, one in the other, whose returns may be probed. */
APART void in_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	*(void **)&call_back_in_driver = dlsym(library, "cuSimCallback");
	while (!over)
		call_back_in_driver(call_back_once_more, NULL);
}

/* For some milliseconds the stack pointer is where no memory is, without a word about it. */
APART void in_nowhere(void)
{
	while (!over) {
#ifdef __x86_64__
		asm volatile("movq %%rsp, %%r12\n\tmovabsq $0x123456789000, %%rsp\n\t"
		             "movq $20000000, %%rcx\n1:\tdecq %%rcx\n\tjnz 1b\n\tmovq %%r12, %%rsp"
		             :
		             :
		             : "rcx", "r12", "memory", "cc");
#else
		spin();
#endif
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *with = argc > 2 ? argv[2] : "1";

	if (!strcmp(what, "exit"))
		return 0;
	if (!strcmp(what, "exec")) {
		execl("/proc/self/exe", argv[0], "recursion", with, (char *)NULL);
		return 9;
	}
	if (!strcmp(what, "threads")) {
		in_threads(atol(with));
	} else if (!strcmp(what, "fork")) {
		in_fork(atol(with));
	} else {
		begin();
		if (!strcmp(what, "recursion"))
			dive(atol(with));
		else if (!strcmp(what, "alloca"))
			swell(atol(with));
		else if (!strcmp(what, "signal"))
			in_signal();
		else if (!strcmp(what, "tail"))
			in_tail_call();
		else if (!strcmp(what, "zeros"))
			read_zeros();
		else if (!strcmp(what, "clock"))
			read_the_clock();
		else if (!strcmp(what, "library"))
			in_library(with);
		else if (!strcmp(what, "late"))
			in_late_library(with);
		else if (!strcmp(what, "driver"))
			in_driver();
		else if (!strcmp(what, "nowhere"))
			in_nowhere();
	}
	NOT_LAST();
	return 0;
}
