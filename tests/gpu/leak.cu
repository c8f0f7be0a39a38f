// SPDX-License-Identifier: MIT
/*
 * A C++ program that leaks in one place on purpose: Cache::grow keeps what it allocates. Others allocate
 * as much and give it back, one of them in another thread. Built with frame pointers.
 *
 *     leak-shared SECONDS
 */
#include <pthread.h>
#include <time.h>

#include "runtime.h"

#define KEEP   __attribute__((noinline))
#define BLOCK  (256 << 10)
#define PERIOD 20000000 /* ns */

namespace model
{

class Cache {
    public:
	KEEP void grow()
	{
		void *block;

		CHECK(cudaMalloc(&block, BLOCK));
		count_alloc("device", address_of(block), BLOCK);
		blocks++;
	}

    private:
	volatile int blocks = 0;
};

class Scratch {
    public:
	KEEP void *take()
	{
		void *block;

		CHECK(cudaMalloc(&block, BLOCK));
		count_alloc("device", address_of(block), BLOCK);
		return block;
	}
};

static void *give_back(void *block)
{
	CHECK(cudaFree(block));
	count_free("device", address_of(block));
	return NULL;
}

} // namespace model

int main(int argc, char **argv)
{
	const struct timespec pause = { 0, PERIOD };
	int turns = argc > 1 ? atoi(argv[1]) * (1000000000 / PERIOD) : 50;
	model::Scratch scratch;
	model::Cache cache;

	for (int i = 0; i < turns; i++) {
		void *mine = scratch.take(), *others = scratch.take();
		pthread_t thread;

		if (i % 5 == 0)
			cache.grow();
		pthread_create(&thread, NULL, model::give_back, others);
		pthread_join(thread, NULL);
		model::give_back(mine);
		nanosleep(&pause, NULL);
	}
	return 0;
}
