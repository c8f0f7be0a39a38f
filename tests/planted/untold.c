// SPDX-License-Identifier: MIT
/* What those who train and serve models bring, once more: the last of UNSEEN of kinds.py. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "planted.h"

#define MIB ((size_t)1 << 20)

/* ---- the GPU -----------------------------------------------------------------------------------
 */

/* Gradients are in parts, each of which could be reduced as soon as it is there; what the other
 * stream waits for is recorded when all are. */
#define PARTS 5
static CUstream reducing;
static CUevent part_done[PARTS], all_reduced;

static void prepare_late_event(void)
{
	DRIVER(cuStreamCreate, &reducing, CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < PARTS; i++)
		DRIVER(cuEventCreate, &part_done[i], CU_EVENT_DISABLE_TIMING);
	DRIVER(cuEventCreate, &all_reduced, CU_EVENT_DISABLE_TIMING);
}

static PLANT void run_backward(void)
{
	for (int i = 0; i < PARTS; i++) {
		launch(gemm, 400, stream);
		if (!with_problem)
			DRIVER(cuEventRecord, part_done[i], stream);
	}
}

static PLANT void reduce_after_backward(void)
{
	for (int i = 0; i < PARTS; i++) {
		if (with_problem)
			DRIVER(cuEventRecord, part_done[i], stream);
		DRIVER(cuStreamWaitEvent, reducing, part_done[i], 0);
		launch(add, 380, reducing);
	}
}

static PLANT void apply_gradients(void)
{
	DRIVER(cuEventRecord, all_reduced, reducing);
	DRIVER(cuStreamWaitEvent, stream, all_reduced, 0);
	launch(gemm, 100, stream);
}

static void step_late_event(void)
{
	keep_two_steps(stream);
	run_backward();
	reduce_after_backward();
	apply_gradients();
	mark_step(stream);
}

/* Who serves asks now and then whether the GPU is done. */
static PLANT void poll_stream_with_naps(void)
{
	while (CALL_IN(driver, cuStreamQuery, stream) != CUDA_SUCCESS)
		nap_ms(5);
}

static void step_poll_stream(void)
{
	train_step();
	if (with_problem)
		poll_stream_with_naps();
	else
		DRIVER(cuStreamSynchronize, stream);
}

/* ---- other threads -----------------------------------------------------------------------------
 */

/* Who waits for the tokens of a thread gives the CPU away as often as it can. */
static sem_t prompts;
static atomic_long n_tokenized;

static PLANT void tokenize_prompt(void)
{
	compute(PROBLEM_MS);
}

static void *run_tokenizer(void *data)
{
	for (;;) {
		while (sem_wait(&prompts) < 0)
			;
		tokenize_prompt();
		atomic_fetch_add(&n_tokenized, 1);
	}
	return data;
}

static void prepare_tokenizer(void)
{
	fail_if(sem_init(&prompts, 0, 0) < 0, "sem_init");
	thread_begin(run_tokenizer);
}

static PLANT void yield_until_tokenized(long n)
{
	while (atomic_load(&n_tokenized) < n)
		sched_yield();
}

static void step_yield_loop(void)
{
	static long n;

	train_step();
	sem_post(&prompts);
	yield_until_tokenized(++n);
}

/* A thread has memory for its cache mapped, and filled by the kernel at once; meanwhile no other
 * thread of the process can map any. */
static PLANT void fill_cache_of_pages(void)
{
	char *cache = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	fail_if(cache == MAP_FAILED, "mmap");
	munmap(cache, 32 * MIB);
}

static void *run_cache(void *data)
{
	for (;;)
		fill_cache_of_pages();
	return data;
}

static void prepare_map_lock(void)
{
	if (with_problem)
		thread_begin(run_cache);
}

static PLANT void map_scratch(void)
{
	for (int i = 0; i < 2; i++) {
		char *scratch = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
		                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		fail_if(scratch == MAP_FAILED, "mmap");
		munmap(scratch, 1 << 16);
	}
}

static void step_map_lock(void)
{
	train_step();
	map_scratch();
}

/* ---- other processes ---------------------------------------------------------------------------
 */

/* Metrics are sent one by one to who gathers them, and who has no room for more when he is slow. */
static int metrics[2];

static PLANT void store_metric_slowly(void)
{
	nap(PROBLEM_MS);
}

static void prepare_datagrams(void)
{
	int room = 4096; /* else some hundred steps pass before there is none left */

	fail_if(socketpair(AF_UNIX, SOCK_DGRAM, 0, metrics) < 0, "socketpair");
	fail_if(setsockopt(metrics[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) < 0, "room");
	if (child_begin() == 0) {
		char metric[200];

		while (recv(metrics[0], metric, sizeof(metric), 0) > 0)
			store_metric_slowly();
		_exit(0);
	}
}

static PLANT void post_metric(void)
{
	char metric[200] = "loss 0.5";

	fail_if(send(metrics[1], metric, sizeof(metric), 0) < 0, "send");
}

static void step_datagrams(void)
{
	train_step();
	post_metric();
}

/* ---- nothing is wrong --------------------------------------------------------------------------
 */

/* Each token is read before the next can be asked for; a thread makes text of them behind. */
static CUdeviceptr token_on_gpu;
static sem_t tokens;

static PLANT void detokenize_behind(void)
{
	compute_anyway(1);
}

static void *run_detokenizer(void *data)
{
	for (;;) {
		while (sem_wait(&tokens) < 0)
			;
		detokenize_behind();
	}
	return data;
}

static void prepare_decoding(void)
{
	DRIVER(cuMemAlloc_v2, &token_on_gpu, 4096);
	fail_if(sem_init(&tokens, 0, 0) < 0, "sem_init");
	thread_begin(run_detokenizer);
}

static PLANT void read_token(void)
{
	int token;

	DRIVER(cuMemcpyDtoHAsync_v2, &token, token_on_gpu, sizeof(token), stream);
	DRIVER(cuStreamSynchronize, stream);
	sem_post(&tokens);
}

static void step_busy_decode(void)
{
	for (int i = 0; i < 4; i++)
		launch(gemm, 2500, stream);
	read_token();
}

const struct kind untold_kinds[] = {
	{ "late_event", prepare_late_event, step_late_event },
	{ "poll_stream", NULL, step_poll_stream },
	{ "yield_loop", prepare_tokenizer, step_yield_loop },
	{ "map_lock", prepare_map_lock, step_map_lock },
	{ "datagrams", prepare_datagrams, step_datagrams },
	{ "busy_decode", prepare_decoding, step_busy_decode },
	{ NULL, NULL, NULL },
};
