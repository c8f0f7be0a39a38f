// SPDX-License-Identifier: MIT
/* Ranks of a training, each a program that was started with RANK and WORLD_SIZE, on a GPU of its
 * own, with NCCL's collectives; one of them is late. */
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "planted.h"
#include "simcuda/nccl/nccl.h"

#define RANKS   4
#define LATE_MS 8
#define LAYERS  4
#define FLOATS  (1 << 20)

#define NCCL(name, ...)                                                                            \
	do {                                                                                       \
		static __typeof__(&name) nccl_function;                                            \
		if (!nccl_function)                                                                \
			nccl_function = (__typeof__(&name))sample_symbol(nccl, #name);             \
		if (nccl_function(__VA_ARGS__) != ncclSuccess)                                     \
			sample_fail("%s failed", #name);                                           \
	} while (0)

static void *nccl;
static ncclComm_t world, half;

static struct {
	long stop_at[RANKS / 2]; /* of all ranks, or of each half by itself; 0: not known yet */
	ncclUniqueId id;
} * shared;

static long step_number;

/* ---- ranks ----------------------------------------------------------------------------------- */

static void nccl_share(int fd)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fail_if(shared == MAP_FAILED, "mmap");
}

/* Each is started anew, so that its environment says who it is. */
static void start_all(char **argv)
{
	char text[32], path[4096] = "";
	int fd = memfd_create("planted-nccl", 0); /* inherited */

	fail_if(fd < 0 || ftruncate(fd, sizeof(*shared)), "memfd");
	nccl_share(fd);
	NCCL(ncclGetUniqueId, &shared->id);
	snprintf(text, sizeof(text), "%d", fd);
	setenv("PLANTED_NCCL", text, 1);
	snprintf(text, sizeof(text), "%d", RANKS);
	setenv("WORLD_SIZE", text, 1);
	setenv("SIMCUDA_DEVICES", text, 1);
	int own = RANKS - 1;
	while (own > 0 && child_begin() != 0)
		own--;
	/* the parent has 0 */
	snprintf(text, sizeof(text), "%d", own);
	setenv("RANK", text, 1);
	setenv("LOCAL_RANK", text, 1);
	fail_if(readlink("/proc/self/exe", path, sizeof(path) - 1) < 0, "readlink");
	execv(path, argv);
	fail_if(true, "exec");
}

void nccl_begin(char **argv)
{
	const char *fd = getenv("PLANTED_NCCL");

	nccl = sample_open("libnccl.so.2");
	if (!fd)
		start_all(argv);
	rank = atoi(getenv("RANK"));
	nccl_share(atoi(fd));
}

void nccl_meet(void)
{
	NCCL(ncclCommInitRank, &world, RANKS, shared->id, rank);
}

bool nccl_go_on(long step, bool over)
{
	long *stop_at = &shared->stop_at[half ? rank / 2 : 0];

	step_number = step;
	if ((half ? rank % 2 : rank) == 0 && over &&
	    __atomic_load_n(stop_at, __ATOMIC_ACQUIRE) == 0)
		__atomic_store_n(stop_at, step + 4, __ATOMIC_RELEASE);
	long stop = __atomic_load_n(stop_at, __ATOMIC_ACQUIRE);
	return stop == 0 || step < stop;
}

void nccl_end(void)
{
	if (half)
		NCCL(ncclCommDestroy, half);
	NCCL(ncclCommDestroy, world);
	while (rank == 0 && waitpid(-1, NULL, 0) > 0)
		;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static PLANT void reduce_gradients(ncclComm_t comm)
{
	NCCL(ncclAllReduce, NULL, NULL, FLOATS, ncclFloat32, ncclSum, comm, stream);
}

static void step_of_ranks(void (*late)(void), int late_rank, ncclComm_t comm)
{
	keep_two_steps(stream);
	for (int i = 0; i < 5; i++)
		launch(gemm, 200, stream);
	if (rank == late_rank)
		late();
	reduce_gradients(comm);
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

static PLANT void save_now_and_then(void)
{
	if (step_number % 4 == 0)
		nap(4 * LATE_MS);
}

static void nothing(void)
{
}

static void step_sleep(void)
{
	step_of_ranks(fetch_on_one_rank, 1, world);
}

static void step_prep(void)
{
	step_of_ranks(tokenize_on_one_rank, 3, world);
}

static void step_kernels(void)
{
	step_of_ranks(run_longer_kernels, 2, world);
}

static void step_seldom(void)
{
	step_of_ranks(save_now_and_then, 2, world);
}

static void step_busy(void)
{
	step_of_ranks(nothing, 1, world);
}

/* Halves that communicate by themselves: of one half nobody is late. */
static void prepare_halves(void)
{
	NCCL(ncclCommSplit, world, rank / 2, rank, &half, NULL);
}

static void step_halves(void)
{
	step_of_ranks(fetch_on_one_rank, 3, half);
}

/* Shards are gathered before each layer and gradients reduced behind it, two calls in a group. */
static void step_shards(void)
{
	keep_two_steps(stream);
	if (rank == 1)
		fetch_on_one_rank();
	for (int i = 0; i < LAYERS; i++) {
		NCCL(ncclAllGather, NULL, NULL, FLOATS / RANKS, ncclFloat32, world, stream);
		launch(gemm, 300, stream);
	}
	for (int i = 0; i < LAYERS; i++) {
		launch(gemm, 300, stream);
		NCCL(ncclGroupStart);
		NCCL(ncclReduceScatter, NULL, NULL, FLOATS / RANKS, ncclFloat32, ncclSum, world,
		     stream);
		NCCL(ncclReduceScatter, NULL, NULL, FLOATS / RANKS, ncclFloat32, ncclSum, world,
		     stream);
		NCCL(ncclGroupEnd);
	}
	mark_step(stream);
}

/* It never comes: the others wait in the step that it is missing in. */
static PLANT void wait_for_more_data(void)
{
	while (with_problem)
		nap_ms(1000);
}

static void step_hang(void)
{
	if (rank == 1 && step_number == 100)
		wait_for_more_data();
	step_of_ranks(nothing, 1, world);
}

const struct kind nccl_kinds[] = {
	{ "nccl_sleep", NULL, step_sleep },
	{ "nccl_prep", NULL, step_prep },
	{ "nccl_kernels", NULL, step_kernels },
	{ "nccl_seldom", NULL, step_seldom },
	{ "nccl_halves", prepare_halves, step_halves },
	{ "nccl_shards", NULL, step_shards },
	{ "nccl_hang", NULL, step_hang },
	{ "nccl_busy", NULL, step_busy },
	{ NULL, NULL, NULL },
};
