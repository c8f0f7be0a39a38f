// SPDX-License-Identifier: MIT
/*
 * A library of somebody else's, without debug information: what it is asked for it does with a
 * thread of its own beside the one that asks.
 */
#include <pthread.h>

void pool_share_out(double rounds);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static double given; /* to the thread; 0: it has done all */
static volatile double pool_sink;

static void __attribute__((noinline)) pool_multiply(double rounds)
{
	for (double i = 0; i < rounds; i++)
		pool_sink += i * 0.5;
}

static void *pool_thread(void *data)
{
	(void)data;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (given == 0)
			pthread_cond_wait(&changed, &lock);
		double rounds = given;

		pthread_mutex_unlock(&lock);
		pool_multiply(rounds);
		pthread_mutex_lock(&lock);
		given = 0;
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

static void pool_begin(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, pool_thread, NULL);
}

/* A third of it by the caller, which then waits for the rest. */
void pool_share_out(double rounds)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (rounds < 1)
		return;
	pthread_once(&once, pool_begin);
	pthread_mutex_lock(&lock);
	given = rounds * 2 / 3;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pool_multiply(rounds / 3);
	pthread_mutex_lock(&lock);
	while (given != 0)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}
