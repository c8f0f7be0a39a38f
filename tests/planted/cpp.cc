// SPDX-License-Identifier: MIT
// Kinds that are C++'s: futures, a pool of threads, a reader and writer lock, regular expressions,
// exceptions.
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <regex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" {
#include "planted.h"
}

namespace data
{

class Pool
{
      public:
	explicit Pool(int n)
	{
		for (int i = 0; i < n; i++)
			std::thread([this] { serve(); }).detach();
	}

	void add(std::function<void()> work)
	{
		std::lock_guard<std::mutex> guard(lock);
		queue.push_back(std::move(work));
		changed.notify_one();
	}

      private:
	void serve()
	{
		for (;;) {
			std::unique_lock<std::mutex> guard(lock);
			changed.wait(guard, [this] { return !queue.empty(); });
			auto work = std::move(queue.front());
			queue.pop_front();
			guard.unlock();
			work();
		}
	}

	std::mutex lock;
	std::condition_variable changed;
	std::deque<std::function<void()>> queue;
};

class Loader
{
      public:
	PLANT void decode_image()
	{
		compute(PROBLEM_MS);
	}

	PLANT void fetch_record()
	{
		nap(PROBLEM_MS);
	}

	PLANT void tokenize_line()
	{
		static const std::string line = "2026-01-02 12:30:45 step=123 loss=4.56 lr=1e-3";
		static const std::regex field("([a-z]+)=([0-9.e-]+)");

		for (int i = 0; with_problem && i < 3000; i++)
			sink = sink + (double)std::distance(
					      std::sregex_iterator(line.begin(), line.end(), field),
					      std::sregex_iterator());
	}

	PLANT void parse_or_throw()
	{
		for (int i = 0; with_problem && i < 7000; i++) {
			try {
				throw std::invalid_argument("no number");
			} catch (const std::exception &) {
				sink = sink + 1;
			}
		}
	}
};

static Loader loader;
static Pool *pool;
static std::shared_mutex weights;

PLANT static void wait_for_future()
{
	std::async(std::launch::async, [] { loader.decode_image(); }).get();
}

PLANT static void wait_for_pool()
{
	std::promise<void> done;

	pool->add([&done] {
		loader.fetch_record();
		done.set_value();
	});
	done.get_future().get();
}

PLANT static void export_weights()
{
	std::shared_lock<std::shared_mutex> guard(weights);

	compute(PROBLEM_MS);
}

PLANT static void update_weights()
{
	std::unique_lock<std::shared_mutex> guard(weights);
}

static void step_future()
{
	train_step();
	wait_for_future();
}

static void prepare_pool()
{
	pool = new Pool(3);
}

static void step_pool()
{
	train_step();
	wait_for_pool();
}

static void step_regex()
{
	train_step();
	loader.tokenize_line();
}

static void step_throw()
{
	train_step();
	loader.parse_or_throw();
}

static void prepare_reader()
{
	std::thread([] {
		for (;;) {
			export_weights();
			nap_ms(.3);
		}
	}).detach();
}

static void step_reader()
{
	train_step();
	update_weights();
}

} // namespace data

extern "C" {
extern const struct kind cpp_kinds[] = {
	{ "cpp_future", nullptr, data::step_future },
	{ "cpp_pool", data::prepare_pool, data::step_pool },
	{ "cpp_regex", nullptr, data::step_regex },
	{ "cpp_throw", nullptr, data::step_throw },
	{ "cpp_reader", data::prepare_reader, data::step_reader },
	{ nullptr, nullptr, nullptr },
};
}
