// SPDX-License-Identifier: MIT
/*
 * ends HOW [LAUNCHES]: the ways in which a program ends after its launches, with kernels of 20 us.
 *   wait    waits for the GPU, and returns from main
 *   return  returns from main with kernels under way
 *   static  an object's destructor waits for the GPU, behind CUDA's own atexit handlers or before
 *   thread  another thread calls exit while the main thread launches on
 *   now     _exit
 *   kill    SIGKILL
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"

static bool waits;

static struct at_end {
	~at_end()
	{
		if (waits)
			cudaDeviceSynchronize(); /* may say that CUDA is unloading */
	}
} at_end;

__global__ void spin(unsigned long long length_ns)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - begin < length_ns);
}

static void *end_all(void *)
{
	usleep(20000);
	exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "wait";
	int launches = argc > 2 ? atoi(argv[2]) : 500;
	pthread_t thread;

	CHECK(cudaFree(NULL));
	waits = !strcmp(how, "static");
	if (!strcmp(how, "thread")) {
		pthread_create(&thread, NULL, end_all, NULL);
		for (;;)
			spin<<<1, 1>>>(20000);
	}
	for (int i = 0; i < launches; i++)
		spin<<<1, 1>>>(20000);
	if (!strcmp(how, "wait"))
		CHECK(cudaDeviceSynchronize());
	if (!strcmp(how, "now"))
		_exit(0);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	return 0;
}
