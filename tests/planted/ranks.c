// SPDX-License-Identifier: MIT
/* Two processes on two GPUs, whose kernels of communication wait for each other; the second is
 * late. With PLANTED_RANK this is one of them, and the other is started elsewhere. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "planted.h"

#define LATE_MS 8

int rank;
static long *stop_at; /* shared; 0: not known yet */

void ranks_begin(void)
{
	const char *own = getenv("PLANTED_RANK");
	char path[4096], peers[4200];

	if (own) {
		rank = atoi(own);
		return;
	}
	snprintf(path, sizeof(path), "%s/planted-peers-%d", folder, getpid());
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	fail_if(fd < 0, path);
	close(fd);
	snprintf(peers, sizeof(peers), "%s:2", path);
	setenv("SIMCUDA_PEERS", peers, 1);
	setenv("SIMCUDA_DEVICES", "2", 1);
	stop_at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fail_if(stop_at == MAP_FAILED, "mmap");
	rank = child_begin() == 0;
}

bool ranks_go_on(long step, bool over)
{
	if (!stop_at)
		return !over;
	/* None is more than three steps ahead. */
	if (rank == 0 && over && __atomic_load_n(stop_at, __ATOMIC_ACQUIRE) == 0)
		__atomic_store_n(stop_at, step + 4, __ATOMIC_RELEASE);
	long stop = __atomic_load_n(stop_at, __ATOMIC_ACQUIRE);
	return stop == 0 || step < stop;
}

void ranks_end(void)
{
	if (!stop_at || rank > 0)
		return;
	waitpid(-1, NULL, 0);
	char *path = getenv("SIMCUDA_PEERS");
	path[strlen(path) - 2] = '\0';
	unlink(path);
}

static PLANT void reduce_gradients(void)
{
	launch(reduce, 50, stream);
}

static void step_of_ranks(void (*late)(void))
{
	keep_two_steps(stream);
	for (int i = 0; i < 5; i++)
		launch(gemm, 200, stream);
	if (rank == 1)
		late();
	reduce_gradients();
	mark_step(stream);
}

static PLANT void fetch_on_one_rank(void)
{
	nap(LATE_MS);
}

static PLANT void tokenize_on_one_rank(void)
{
	compute(LATE_MS);
}

static PLANT void run_longer_kernels(void)
{
	compute_anyway(.2);
	for (int i = 0; with_problem && i < 5; i++)
		launch(gemm, LATE_MS * 200, stream);
}

/* Gradients are reduced beside the kernels that make the next ones; one rank has more to make. */
static CUstream reducing;
static CUevent made, reduced;

static void prepare_reducing(void)
{
	DRIVER(cuStreamCreate, &reducing, CU_STREAM_NON_BLOCKING);
	DRIVER(cuEventCreate, &made, CU_EVENT_DISABLE_TIMING);
	DRIVER(cuEventCreate, &reduced, CU_EVENT_DISABLE_TIMING);
}

static PLANT void run_larger_batch(double times)
{
	for (int i = 0; i < 5; i++) {
		compute_anyway(.05);
		launch(gemm, 600 * times, stream);
		DRIVER(cuEventRecord, made, stream);
		DRIVER(cuStreamWaitEvent, reducing, made, 0);
		launch(reduce, 300, reducing);
	}
	DRIVER(cuEventRecord, reduced, reducing);
	DRIVER(cuStreamWaitEvent, stream, reduced, 0);
	launch(add, 100, stream);
}

static void step_batch(void)
{
	keep_two_steps(stream);
	run_larger_batch(rank == 1 && with_problem ? 4 : 1);
	mark_step(stream);
}

static void nothing(void)
{
}

static void step_sleep(void)
{
	step_of_ranks(fetch_on_one_rank);
}

static void step_prep(void)
{
	step_of_ranks(tokenize_on_one_rank);
}

static void step_kernels(void)
{
	step_of_ranks(run_longer_kernels);
}

static void step_busy(void)
{
	step_of_ranks(nothing);
}

const struct kind rank_kinds[] = {
	{ "rank_sleep", NULL, step_sleep },     { "rank_prep", NULL, step_prep },
	{ "rank_kernels", NULL, step_kernels }, { "rank_batch", prepare_reducing, step_batch },
	{ "rank_busy", NULL, step_busy },       { NULL, NULL, NULL },
};
