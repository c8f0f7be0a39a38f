// SPDX-License-Identifier: MIT
// A backward pass as PyTorch runs it: asked for in one thread, by the engine's own function, and
// run by another one that was there before. Prints "ready"; goes on until standard input ends. The
// names are PyTorch's, so that cuscope takes it for PyTorch.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include <unistd.h>

namespace at
{
struct Tensor {
	int value;
};
} // namespace at

static std::mutex lock;
static std::condition_variable changed;
static bool asked, ended;
static std::atomic<bool> over;

static double now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) void compute_gradients()
{
	for (double end = now() + 0.01; now() < end;)
		;
}

namespace torch
{
namespace autograd
{
struct Edge {
	int input;
};

struct Engine {
	void thread_main();
};

__attribute__((noinline)) void Engine::thread_main()
{
	std::unique_lock<std::mutex> held(lock);

	for (;;) {
		changed.wait(held, [] { return asked || ended; });
		if (ended)
			return;
		compute_gradients();
		asked = false;
		changed.notify_all();
	}
}

namespace python
{
struct PythonEngine {
	std::vector<at::Tensor> execute(const std::vector<Edge> &roots,
	                                const std::vector<at::Tensor> &inputs, bool keep_graph,
	                                bool create_graph, bool accumulate,
	                                const std::vector<Edge> &outputs);
};

std::vector<at::Tensor> PythonEngine::execute(const std::vector<Edge> &,
                                              const std::vector<at::Tensor> &inputs, bool, bool,
                                              bool, const std::vector<Edge> &)
{
	std::unique_lock<std::mutex> held(lock);

	asked = true;
	changed.notify_all();
	changed.wait(held, [] { return !asked; });
	return inputs;
}
} // namespace python
} // namespace autograd
} // namespace torch

__attribute__((noinline)) void call_backward()
{
	torch::autograd::python::PythonEngine engine;

	engine.execute({}, {}, false, false, false, {});
}

static void wait_for_the_end()
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	over = true;
}

int main()
{
	torch::autograd::Engine engine;
	std::thread worker(&torch::autograd::Engine::thread_main, &engine),
		waiter(wait_for_the_end);

	std::puts("ready");
	std::fflush(stdout);
	while (!over)
		call_backward();
	{
		std::unique_lock<std::mutex> held(lock);
		ended = true;
	}
	changed.notify_all();
	worker.join();
	waiter.join();
	return 0;
}
