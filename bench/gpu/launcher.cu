// SPDX-License-Identifier: MIT
/*
 * launcher THREADS SECONDS [PAUSE_US]: each thread launches an empty kernel on a stream of its own and waits for it, as fast as it can
 * or with a pause. Prints how many launches that were. As a library: the functions `launcher` and `launches`.
 */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 512
#define BATCH       50

static double until;
static int pause_us;

__global__ void nothing()
{
}

static double now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *work(void *)
{
	cudaStream_t stream;
	long n = 0;

	cudaStreamCreate(&stream);
	for (; now() < until; n += BATCH) {
		for (int i = 0; i < BATCH; i++) {
			nothing<<<1, 32, 0, stream>>>();
			cudaStreamSynchronize(stream);
			if (pause_us)
				usleep((useconds_t)pause_us);
		}
	}
	return (void *)n;
}

/* n launches by the caller, so many copies among them, and one wait at their end. */
extern "C" void launches(int n, int copies)
{
	static char *memory;
	int copied = 0;

	if (!memory)
		cudaMalloc(&memory, 512);
	for (int i = 0; i < n; i++) {
		nothing<<<1, 32>>>();
		for (; (long)copied * n < (long)i * copies; copied++)
			cudaMemcpyAsync(memory, memory + 256, 4, cudaMemcpyDeviceToDevice);
	}
	cudaDeviceSynchronize();
}

extern "C" void launcher(int threads, double seconds, int pause)
{
	pthread_t thread[THREADS_MAX];
	long sum = 0;

	cudaFree(0);
	pause_us = pause;
	until = now() + seconds;
	for (int i = 0; i < threads && i < THREADS_MAX; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < threads && i < THREADS_MAX; i++) {
		void *n;

		pthread_join(thread[i], &n);
		sum += (long)n;
	}
	printf("%.0f launches a second\n", (double)sum / seconds);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	launcher(atoi(argv[1]), atof(argv[2]), argc > 3 ? atoi(argv[3]) : 0);
	return 0;
}
