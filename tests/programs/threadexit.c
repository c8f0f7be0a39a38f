// SPDX-License-Identifier: MIT
/*
 * threadexit [THREADS]: threads that end inside a call, by pthread_exit in a function that the call
 * makes; each is followed by a thread that works as usual and, where the kernel lets root choose
 * the next thread id, has the same id. numbers.reused says how often it had.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu.h"

static struct gpu gpu;

static void leave(void *data)
{
	count(UNFINISHED, "cuSimCallback", 1);
	pthread_exit(NULL);
}

static void *end_in_call(void *data)
{
	count_thread();
	*(pid_t *)data = gettid();
	gpu_attach(&gpu);
	CALL(cuSimCallback, leave, NULL);
	return NULL;
}

static void *work(void *data)
{
	CUcontext ctx;
	count_thread();
	if (gettid() == *(pid_t *)data)
		count(NUMBERS, "reused", 1);
	gpu_attach(&gpu);
	MUST(cuCtxGetCurrent, &ctx);
	gpu_launch(&gpu, 1, NULL);
	gpu_free(gpu_alloc(4096));
	return NULL;
}

/* The next thread's id will be `tid`, unless someone else takes it first. */
static void choose_next(pid_t tid)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", tid - 1);
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* not root, or a kernel without checkpoints */
	if (write(fd, text, (size_t)len) != len)
		fprintf(stderr, "threadexit: the next thread id cannot be chosen\n");
	close(fd);
}

static void run(void *(*body)(void *data), pid_t *tid)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, body, tid) != 0)
		sample_die("no thread");
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 20;
	gpu_open(&gpu);
	for (int i = 0; i < threads; i++) {
		pid_t tid = 0;
		run(end_in_call, &tid);
		choose_next(tid);
		run(work, &tid);
	}
	MUST(cuCtxSynchronize);
	gpu_close(&gpu);
	sample_finish();
	return 0;
}
