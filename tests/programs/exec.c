// SPDX-License-Identifier: MIT
/*
 * exec [DEPTH [THREAD]]: uses CUDA, then starts itself by fork and exec with DEPTH - 1, and at last
 * execs itself in place as `exec last`. With a third argument it is another thread than the main
 * one that execs in place.
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include "sample.h"

static char **arguments;

static void use_cuda(size_t bytes)
{
	CUdeviceptr memory;

	sample_context();
	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
	DRIVER(cuMemcpyHtoD_v2, memory, &memory, sizeof(memory));
	count_copies(1, "H2D", sizeof(memory), "sync");
}

static void *exec_last(void *unused)
{
	execl(arguments[0], arguments[0], "last", NULL);
	sample_fail("exec of %s", arguments[0]);
}

static void start_again(long depth)
{
	char text[24];
	pid_t child;
	int status;

	snprintf(text, sizeof(text), "%ld", depth);
	child = fork();
	if (child == 0) {
		execl(arguments[0], arguments[0], text, NULL);
		_exit(98);
	}
	if (waitpid(child, &status, 0) != child || status)
		sample_fail("the child ended with %x", status);
}

int main(int argc, char **argv)
{
	long depth = sample_number(argc, argv, 1, 2);
	pthread_t thread;

	arguments = argv;
	if (argc > 1 && !strcmp(argv[1], "last")) {
		use_cuda(77);
		return sample_end();
	}
	use_cuda(1000 + (size_t)depth);
	if (depth > 0)
		start_again(depth - 1);
	sample_end();
	if (argc < 3)
		exec_last(NULL);
	pthread_create(&thread, NULL, exec_last, NULL);
	pthread_join(thread, NULL);
}
