// SPDX-License-Identifier: MIT
// leak [ROUNDS [MILLISECONDS [crash]]]: every round a cache grows by 4 KiB that nobody ever frees,
// and a buffer is borrowed in one function and given back by another thread, in another function
// and through the other layer. Weights are loaded once. Built with frame pointers.
#include <chrono>
#include <csignal>
#include <thread>

#include "sample.h"

namespace leaky
{

struct Buffer {
	void *memory;
	size_t bytes;
};

class Model
{
      public:
	void load_weights(size_t bytes);
	void grow_cache(size_t bytes);
	Buffer borrow(size_t bytes);
	static void give_back(Buffer buffer);
};

__attribute__((noinline)) void Model::load_weights(size_t bytes)
{
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
}

__attribute__((noinline)) void Model::grow_cache(size_t bytes)
{
	void *memory;

	RUNTIME(cudaMalloc, &memory, bytes);
	count_alloc("device", bytes);
}

__attribute__((noinline)) Buffer Model::borrow(size_t bytes)
{
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
	return { reinterpret_cast<void *>(memory), bytes };
}

__attribute__((noinline)) void Model::give_back(Buffer buffer)
{
	RUNTIME(cudaFree, buffer.memory);
	count_free("device", buffer.bytes);
}

} // namespace leaky

static void train(leaky::Model &model, long rounds, std::chrono::milliseconds pause)
{
	for (long i = 0; i < rounds; i++) {
		leaky::Buffer buffer = model.borrow(1 << 20);

		model.grow_cache(4096);
		std::thread(leaky::Model::give_back, buffer).join();
		std::this_thread::sleep_for(pause);
	}
}

int main(int argc, char **argv)
{
	long rounds = sample_number(argc, argv, 1, 20);
	std::chrono::milliseconds pause(sample_number(argc, argv, 2, 50));
	leaky::Model model;

	sample_context();
	runtime = sample_open("libcudart.so.13");
	model.load_weights(3 << 20);
	train(model, rounds, pause);
	if (sample_end())
		return EXIT_FAILURE;
	if (argc > 3)
		raise(SIGKILL);
	return EXIT_SUCCESS;
}
