// SPDX-License-Identifier: MIT
#include "planted.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define BLOCK_THREADS 256
/* As tests/simcuda has it: what a kernel takes, and what one takes more with each thread. */
#define KERNEL_BASE_US 4
#define THREADS_PER_US 100000

bool with_problem = true;
CUstream stream;
CUcontext context;
CUfunction gemm, add, reduce;
const char *folder;
double compute_rate;
volatile double sink;

static const char ptx[] = ".version 7.0\n"
			  ".target sm_52\n"
			  ".address_size 64\n"
			  ".visible .entry gemm() { ret; }\n"
			  ".visible .entry add() { ret; }\n"
			  ".visible .entry spin() { ret; }\n"
			  ".visible .entry ncclDevKernel_AllReduce_Sum_f32_RING_LL() { ret; }\n";
static CUfunction spin; /* of which each thread takes a millisecond of the simulated GPU */
static CUevent marks[2];
static long n_marks;

void fail_if(bool failed, const char *what)
{
	if (failed)
		sample_fail("%s: %s", what, strerror(errno));
}

void nap_ms(double ms)
{
	struct timespec time = { (time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000 };

	nanosleep(&time, NULL);
}

void launch(CUfunction function, double us, CUstream on)
{
	double threads = us > KERNEL_BASE_US ? (us - KERNEL_BASE_US) * THREADS_PER_US : 1;
	unsigned blocks = (unsigned)((threads + BLOCK_THREADS - 1) / BLOCK_THREADS);

	DRIVER(cuLaunchKernel, function, blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, on, NULL, NULL);
}

void launch_one_block(unsigned ms, CUstream on)
{
	DRIVER(cuLaunchKernel, spin, 1, 1, 1, ms, 1, 1, 0, on, NULL, NULL);
}

void keep_two_steps(CUstream on)
{
	if (n_marks >= 2)
		DRIVER(cuEventSynchronize, marks[n_marks % 2]);
}

void mark_step(CUstream on)
{
	DRIVER(cuEventRecord, marks[n_marks++ % 2], on);
}

PLANT void train_step(void)
{
	keep_two_steps(stream);
	for (int i = 0; i < 5; i++)
		launch(gemm, 200, stream);
	mark_step(stream);
}

/* ---- children and threads -------------------------------------------------------------------- */

pid_t child_begin(void)
{
	pid_t parent = getpid(), child = fork();

	fail_if(child < 0, "fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return child;
}

void thread_begin(void *(*run)(void *))
{
	pthread_t thread;

	fail_if(pthread_create(&thread, NULL, run, NULL), "pthread_create");
	pthread_detach(thread);
}

/* ---- the program ------------------------------------------------------------------------------
 */

static const struct kind *const tables[] = { host_kinds,   worker_kinds,  gpu_kinds,
	                                     wait_kinds,   rank_kinds,    nccl_kinds,
	                                     cpp_kinds,    healthy_kinds, held_out_kinds,
	                                     unseen_kinds, unmet_kinds,   untold_kinds };

static const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct kind *kind = tables[i]; kind->name; kind++) {
			if (!strcmp(kind->name, name))
				return kind;
		}
	}
	sample_fail("there is no kind %s", name);
}

/* The best of some tries: others may run beside. */
static void calibrate(void)
{
	const double rounds = 200000;

	for (int i = 0; i < 10; i++) {
		double begin = sample_seconds();
		compute_rounds(rounds);
		double rate = rounds / (sample_seconds() - begin) / 1000;
		compute_rate = rate > compute_rate ? rate : compute_rate;
	}
}

static void begin_cuda(void)
{
	CUmodule module;
	CUdevice device;

	driver = sample_open("libcuda.so.1");
	DRIVER(cuInit, 0);
	DRIVER(cuDeviceGet, &device, rank);
	DRIVER(cuDevicePrimaryCtxRetain, &context, device);
	DRIVER(cuCtxSetCurrent, context);
	DRIVER(cuModuleLoadData, &module, ptx);
	DRIVER(cuModuleGetFunction, &gemm, module, "gemm");
	DRIVER(cuModuleGetFunction, &add, module, "add");
	DRIVER(cuModuleGetFunction, &spin, module, "spin");
	DRIVER(cuModuleGetFunction, &reduce, module, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
	DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < 2; i++)
		DRIVER(cuEventCreate, &marks[i], CU_EVENT_DISABLE_TIMING);
	train_step();
}

static bool with_nccl; /* the kind's name begins so */

static bool goes_on(long step, bool over)
{
	return with_nccl ? nccl_go_on(step, over) : ranks_go_on(step, over);
}

static PLANT void train(const struct kind *kind, double seconds)
{
	double begin = sample_seconds(), end = begin + seconds, counted = 0, now = begin;
	long steps = 0;

	for (long n = 0; goes_on(n, now >= end); n++) {
		kind->step();
		now = sample_seconds();
		if (counted != 0)
			steps++;
		else if (now > begin + seconds / 10)
			counted = now;
	}
	DRIVER(cuCtxSynchronize);
	if (rank > 0)
		return;
	printf("steps %ld step_us %.0f\n", steps,
	       steps ? (sample_seconds() - counted) / (double)steps * 1e6 : 0);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[2], "--without")) {
		setenv("PLANTED_WITHOUT", "1", 1);
		argv[2] = argv[1];
		argv++;
		argc--;
	}
	if (argc < 2)
		sample_fail("planted KIND [--without] [SECONDS]");
	const struct kind *kind = kind_find(argv[1]);
	with_problem = !getenv("PLANTED_WITHOUT");
	folder = getenv("PLANTED_FOLDER") ? getenv("PLANTED_FOLDER") : "/var/tmp";
	signal(SIGPIPE, SIG_IGN);
	calibrate();
	with_nccl = !strncmp(kind->name, "nccl_", 5);
	if (with_nccl)
		nccl_begin(argv);
	else if (!strncmp(kind->name, "rank_", 5))
		ranks_begin();
	begin_cuda();
	if (with_nccl)
		nccl_meet();
	if (kind->prepare)
		kind->prepare();
	if (rank == 0 || getenv("PLANTED_RANK"))
		sample_ready();
	train(kind, argc > 2 ? atof(argv[2]) : 2.5);
	if (with_nccl)
		nccl_end();
	else
		ranks_end();
	return sample_end();
}
