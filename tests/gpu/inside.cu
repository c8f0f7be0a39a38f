// SPDX-License-Identifier: MIT
/*
 * Vector additions on several threads, for calls that are recorded inside: once CUDA works it waits
 * until there is a file that SAMPLE_WAIT names. Meanwhile a signal interrupts it 1,000 times a
 * second, and it forks a child that exits and one that executes this program again.
 *
 *   inside             all of that
 *   inside child       what the second child does: one thread, no signals, no children, no wait
 *   inside throws      an exception of a callback goes through the driver, ten times; "caught 10"
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cuda.h>

#include "runtime.h"

#define THREADS 4
#define TURNS   100
#define N       4096
#define BYTES   (N * (int)sizeof(float))
#define BLOCK   256
#define THROWS  10

__global__ void add(float *a, float *b, float *sum, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		sum[i] = a[i] + b[i];
}

static volatile sig_atomic_t interrupts;

static void on_signal(int)
{
	interrupts = interrupts + 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "inside: %s\n", what);
	exit(1);
}

static void wait_for_file(void)
{
	const char *path = getenv("SAMPLE_WAIT");

	for (int i = 0; path && i < 3000 && access(path, F_OK) != 0; i++)
		usleep(10000);
}

static void *allocate(void)
{
	void *memory;

	CHECK(cudaMalloc(&memory, BYTES));
	count_alloc("device", address_of(memory), BYTES);
	return memory;
}

static void release(void *memory)
{
	CHECK(cudaFree(memory));
	count_free("device", address_of(memory));
}

/* One addition, with memory of its own; its result is looked at. */
static void turn(cudaStream_t stream, float *host, int number)
{
	float *a = (float *)allocate(), *b = (float *)allocate(), *sum = (float *)allocate();

	for (int i = 0; i < N; i++)
		host[i] = (float)(i + number);
	CHECK(cudaMemcpyAsync(a, host, BYTES, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpyAsync(b, host, BYTES, cudaMemcpyHostToDevice, stream));
	add<<<N / BLOCK, BLOCK, 0, stream>>>(a, b, sum, N);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(host, sum, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		if (host[i] != 2 * (float)(i + number))
			fail("a sum is wrong");
	count_launches(1, "add(float*, float*, float*, int)", shape_of(N / BLOCK, BLOCK), stream,
	               false);
	release(a);
	release(b);
	release(sum);
}

static void *run(void *)
{
	cudaStream_t stream;
	float *host;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&host, BYTES));
	count_alloc("host", address_of(host), BYTES);
	for (int i = 0; i < TURNS; i++)
		turn(stream, host, i);
	count_copies(2 * TURNS, "H2D", BYTES, false);
	count_copies(TURNS, "D2H", BYTES, false);
	count_calls(TURNS, "cudaStreamSynchronize");
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost(host));
	count_free("host", address_of(host));
	return NULL;
}

static void failures(void)
{
	for (int i = 0; i < 10; i++) {
		cudaError_t error = cudaSetDevice(9999);

		if (error == cudaSuccess)
			fail("there is a device 9999");
		count_error("cudaSetDevice", error, cudaGetErrorName(error));
		cudaGetLastError();
	}
}

/* ---- signals and children ------------------------------------------------------------------ */

static void interrupt_often(bool on)
{
	struct itimerval timer = {};
	struct sigaction action = {};

	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	timer.it_interval.tv_usec = timer.it_value.tv_usec = on ? 1000 : 0;
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL))
		fail("no timer");
}

static void child(const char *program, bool executes)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (executes)
			execl(program, program, "child", (char *)NULL);
		_exit(executes);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		fail("a child failed");
}

/* Else the kernel gives all signals to the first thread. */
static void leave_signals_to_others(bool on)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(on ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void all(const char *program)
{
	pthread_t threads[THREADS];

	interrupt_often(true);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			fail("no thread");
	leave_signals_to_others(true);
	child(program, false);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	leave_signals_to_others(false);
	failures();
	interrupt_often(false); /* the child would be interrupted before it has a handler */
	child(program, true);
	printf("%d interrupts\n", (int)interrupts);
}

/* ---- exceptions ---------------------------------------------------------------------------- */

static size_t thrower(int)
{
	throw 1;
}

static void throws(void)
{
	int grid = 0, block = 0, caught = 0;
	cudaFunction_t function;

	CHECK(cudaGetFuncBySymbol(&function, (const void *)add));
	for (int i = 0; i < THROWS; i++) {
		try {
			cuOccupancyMaxPotentialBlockSize(&grid, &block, (CUfunction)function,
			                                 thrower, 0, 0);
		} catch (int) {
			caught++;
		}
	}
	printf("caught %d\n", caught);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	CHECK(cudaFree(NULL));
	if (!strcmp(how, "child")) {
		run(NULL);
		return 0;
	}
	wait_for_file();
	if (!strcmp(how, "throws"))
		throws();
	else
		all(argv[0]);
	return 0;
}
