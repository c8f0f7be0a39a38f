// SPDX-License-Identifier: MIT
/*
 * Waits after small kernels, and what else a GPU with a fast driver suffers from: calls take some 5
 * us, the program some 10 us between them, and a wait ends a moment after its kernel.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "planted.h"

#define BETWEEN_MS .010 /* from call to call, as Python takes it */

static CUdeviceptr values;

static void launch_next(double us)
{
	launch(add, us, stream);
	compute_anyway(BETWEEN_MS);
}

/* ---- waits ------------------------------------------------------------------------------------
 */

static void prepare_values(void)
{
	DRIVER(cuMemAlloc_v2, &values, 4096);
}

/* As .item() does it: memory that is not pinned, and a wait. */
static PLANT float read_value(void)
{
	float value = 0;

	DRIVER(cuMemcpyDtoHAsync_v2, &value, values, sizeof(value), stream);
	compute_anyway(.002);
	DRIVER(cuStreamSynchronize, stream);
	compute_anyway(BETWEEN_MS);
	return value;
}

static PLANT void run_forward(int kernels)
{
	for (int i = 0; i < kernels; i++)
		launch_next(8);
}

static PLANT void run_backward(void)
{
	for (int i = 0; i < 5; i++)
		launch_next(800);
}

static PLANT void gradient_norms(int n)
{
	for (int i = 0; i < n; i++) {
		launch_next(0);
		if (with_problem)
			sink += (double)read_value();
	}
}

static void step_items(void)
{
	keep_two_steps(stream);
	run_forward(100);
	run_backward();
	gradient_norms(60);
	run_forward(20);
	mark_step(stream);
}

static PLANT void rate_limit(void)
{
	nap(6);
}

static void step_two_sleep_items(void)
{
	keep_two_steps(stream);
	run_forward(100);
	run_backward();
	gradient_norms(60);
	rate_limit();
	run_forward(20);
	mark_step(stream);
}

/* Each layer is waited for, to see its time. */
static PLANT void time_layer(void)
{
	if (with_problem)
		DRIVER(cuCtxSynchronize);
}

static PLANT void run_layer(void)
{
	static const int us[] = { 5, 40, 5, 40, 5, 40, 5, 20 };

	for (size_t i = 0; i < sizeof(us) / sizeof(us[0]); i++)
		launch_next(us[i]);
}

static void step_layers(void)
{
	keep_two_steps(stream);
	for (int i = 0; i < 20; i++) {
		run_layer();
		time_layer();
	}
	mark_step(stream);
}

/* Three values of each layer for a log. */
static PLANT void log_activations(void)
{
	if (!with_problem)
		return;
	for (int i = 0; i < 3; i++) {
		launch_next(3);
		sink += (double)read_value();
	}
}

static PLANT void run_block(void)
{
	for (int i = 0; i < 12; i++)
		launch_next(5);
}

static void step_logged_layers(void)
{
	keep_two_steps(stream);
	for (int i = 0; i < 20; i++) {
		run_block();
		log_activations();
	}
	mark_step(stream);
}

/* Small samples with many kernels, and a value of each. */
static PLANT void count_right(void)
{
	float right = 0;

	for (int i = 0; i < 20; i++) {
		run_forward(40);
		DRIVER(cuMemcpyDtoHAsync_v2, &right, values, sizeof(right), stream);
		DRIVER(cuStreamSynchronize, stream);
	}
}

static void step_evaluated(void)
{
	keep_two_steps(stream);
	run_backward();
	if (with_problem)
		count_right();
	mark_step(stream);
}

/* Few kernels, then a value of them, and again. */
static PLANT double residual(void)
{
	launch_next(8);
	launch_next(8);
	return with_problem ? (double)read_value() : 0;
}

static void step_rounds(void)
{
	keep_two_steps(stream);
	for (int i = 0; i < 50; i++) {
		run_forward(4);
		sink += residual();
	}
	mark_step(stream);
}

/* A function of the host after each kernel, which tells the thread that waits. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long n_done;

static void tell_done(void *data)
{
	pthread_mutex_lock(&lock);
	n_done++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static PLANT void block_until_ready(long n)
{
	pthread_mutex_lock(&lock);
	while (n_done < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void step_ready(void)
{
	static long n;

	keep_two_steps(stream);
	for (int i = 0; i < 20; i++) {
		launch(gemm, 150, stream);
		DRIVER(cuLaunchHostFunc, stream, tell_done, NULL);
		n++;
		if (with_problem)
			block_until_ready(n);
		compute_anyway(.08);
	}
	mark_step(stream);
}

/* ---- launches, rightly ------------------------------------------------------------------------
 */

/* One value a step of many small kernels: they are what takes the time. */
static PLANT void decode_words(void)
{
	for (int i = 0; i < (with_problem ? 200 : 5); i++)
		launch_next(with_problem ? 0 : 160);
}

static PLANT void read_word(void)
{
	float value = 0;

	DRIVER(cuMemcpyDtoHAsync_v2, &value, values, sizeof(value), stream);
	DRIVER(cuStreamSynchronize, stream);
}

static void step_words(void)
{
	decode_words();
	read_word();
}

/* ---- memory -----------------------------------------------------------------------------------
 */

#define ROOMS 6
static CUdeviceptr rooms[ROOMS];

static PLANT void take_memory(void)
{
	for (int i = 0; i < ROOMS; i++)
		if (with_problem || !rooms[i])
			DRIVER(cuMemAlloc_v2, &rooms[i], 1 << 20);
}

static PLANT void release_memory(void)
{
	for (int i = 0; with_problem && i < ROOMS; i++)
		DRIVER(cuMemFree_v2, rooms[i]);
}

static PLANT void run_with_fresh_memory(void)
{
	take_memory();
	run_backward();
	release_memory();
}

static void step_fresh_memory(void)
{
	keep_two_steps(stream);
	run_with_fresh_memory();
	mark_step(stream);
}

static PLANT void decode_pictures(void)
{
	compute(9);
}

static void step_two_prep_cache(void)
{
	step_fresh_memory();
	decode_pictures();
}

/* ---- one CPU ----------------------------------------------------------------------------------
 */

static PLANT void pin_all_to_one_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	fail_if(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static PLANT void count_statistics(void)
{
	for (;;)
		compute_anyway(1);
}

static void *run_statistics(void *data)
{
	fail_if(pthread_setname_np(pthread_self(), "statistics"), "name");
	count_statistics();
	return data;
}

static void prepare_one_cpu(void)
{
	if (with_problem)
		pin_all_to_one_cpu();
	for (int i = 0; with_problem && i < 2; i++)
		thread_begin(run_statistics);
}

static PLANT void augment_batch(void)
{
	compute_anyway(1);
}

static void step_one_cpu(void)
{
	train_step();
	augment_batch();
}

/* One thread asks, another launches, as for backward passes; they and all others have one CPU. */
static long n_asked, n_launched;

static PLANT void launch_backward(void)
{
	compute_anyway(.5);
	train_step();
}

static void *run_backwards(void *data)
{
	DRIVER(cuCtxSetCurrent, context);
	for (;;) {
		pthread_mutex_lock(&lock);
		while (n_launched == n_asked)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		launch_backward();
		pthread_mutex_lock(&lock);
		n_launched++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return data;
}

static void prepare_one_cpu_threads(void)
{
	prepare_one_cpu();
	thread_begin(run_backwards);
}

static PLANT void ask_backward(void)
{
	pthread_mutex_lock(&lock);
	n_asked++;
	pthread_cond_broadcast(&changed);
	while (n_launched != n_asked)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void step_one_cpu_threads(void)
{
	augment_batch();
	ask_backward();
}

/* ---- stacks -----------------------------------------------------------------------------------
 */

#define DEEP 1500

/* So deep that a walk ends before the program's own lines. */
static PLANT double optimize_graph(int depth)
{
	volatile char room[64];

	room[0] = (char)depth;
	if (depth == 0) {
		compute(.3);
		return 1;
	}
	return 1 + (depth % 3 ? optimize_graph(depth - 1) : optimize_graph(depth - 1) * .5) +
	       room[0];
}

static PLANT void compile_for_length(void)
{
	for (int i = 0; with_problem && i < 30; i++)
		sink += optimize_graph(DEEP + i);
}

static void step_deep(void)
{
	train_step();
	compile_for_length();
}

const struct kind wait_kinds[] = {
	{ "items", prepare_values, step_items },
	{ "logged_layers", prepare_values, step_logged_layers },
	{ "evaluated", prepare_values, step_evaluated },
	{ "layers", NULL, step_layers },
	{ "ready", NULL, step_ready },
	{ "words", prepare_values, step_words },
	{ "fresh_memory", NULL, step_fresh_memory },
	{ "one_cpu", prepare_one_cpu, step_one_cpu },
	{ "one_cpu_threads", prepare_one_cpu_threads, step_one_cpu_threads },
	{ "deep", NULL, step_deep },
	{ "two_rounds", prepare_values, step_rounds },
	{ "two_sleep_items", prepare_values, step_two_sleep_items },
	{ "two_prep_cache", NULL, step_two_prep_cache },
	{ NULL, NULL, NULL },
};
