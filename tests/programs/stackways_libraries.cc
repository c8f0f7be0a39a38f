// SPDX-License-Identifier: MIT
/* Ways to a point of stackpoints.cc: called back by libraries, on stacks of other kinds, and from a
 * signal that comes anywhere. */
#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <functional>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include "stackpoints.h"

const char *library = "libframelib.so";

/* ---- called back by libraries ------------------------------------------------------------------
 */

static unsigned compared_at; /* until then comparisons make no point */

APART static bool is_a_point(void)
{
	if (compared_at-- == 0)
		point();
	return true;
}

static int compare(const void *left, const void *right)
{
	int a = *(const int *)left, b = *(const int *)right;

	is_a_point();
	return a < b ? -1 : a > b;
}

static std::vector<int> any_numbers(void)
{
	std::vector<int> numbers(20 + any_number(300));

	for (int &number : numbers)
		number = (int)any_number(1000);
	return numbers;
}

static void in_qsort(void)
{
	std::vector<int> numbers = any_numbers();

	compared_at = any_number(20);
	qsort(numbers.data(), numbers.size(), sizeof(int), compare);
}

static void in_sort(void)
{
	std::vector<int> numbers = any_numbers();

	compared_at = any_number(100);
	std::sort(numbers.begin(), numbers.end(),
	          [](int a, int b) { return is_a_point() && a < b; });
}

static void visit(const void *, VISIT, int)
{
	is_a_point();
}

static void in_tree(void)
{
	std::vector<int> numbers = any_numbers();
	void *tree = nullptr;

	compared_at = UINT32_MAX;
	for (int &number : numbers)
		tsearch(&number, &tree, compare);
	compared_at = any_number(20);
	twalk(tree, visit);
	tdestroy(tree, [](void *) {});
}

static void in_objects(void)
{
	compared_at = any_number(3);
	dl_iterate_phdr([](struct dl_phdr_info *, size_t, void *) { return (int)!is_a_point(); },
	                nullptr);
}

static void in_function_object(void)
{
	std::function<void(unsigned)> go_on = [&](unsigned depth) {
		if (depth)
			go_on(depth - 1);
		else
			point();
		NOT_LAST();
	};

	go_on(any_number(10));
}

static void in_once(void)
{
	pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, [] { dive(any_number(5)); });
}

APART static void in_library(void)
{
	static void *handle = dlopen(library, RTLD_NOW);
	void (*call_back)(void (*function)(void));

	if (!handle)
		_exit(9);
	*(void **)&call_back = dlsym(handle, "call_back");
	call_back(in_recursion);
	NOT_LAST();
}

/* Code that the program has made, and that nothing tells of: it keeps a frame pointer, and calls.
 */
static void in_made_code(void)
{
#ifdef __x86_64__
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	static void *made = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*call_back)(void (*function)(void));

	memcpy(made, code, sizeof(code));
	*(void **)&call_back = made;
	usleep(50000); /* it is looked for when a stack ended there */
	call_back(in_recursion);
#else
	in_recursion();
#endif
	NOT_LAST();
}

/* ---- stacks of their own ------------------------------------------------------------------------
 */

struct steps { /* a coroutine that is resumed step by step */
	struct promise_type {
		steps get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend()
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
	std::coroutine_handle<promise_type> handle;
};

static steps step(unsigned depth)
{
	for (int i = 0; i < 2; i++) {
		if (depth) {
			steps inner = step(depth - 1);

			inner.handle.resume();
			inner.handle.destroy();
		} else {
			point();
		}
		co_await std::suspend_always{};
	}
}

static void in_coroutine(void)
{
	steps all = step(any_number(6));

	while (!all.handle.done())
		all.handle.resume();
	all.handle.destroy();
}

static ucontext_t of_caller, of_other;

static void run_other(void)
{
	dive(any_number(10));
	swapcontext(&of_other, &of_caller);
	swell(any_number(5));
	NOT_LAST();
}

static void in_context(void)
{
	static char bytes[256 << 10];

	getcontext(&of_other);
	of_other.uc_stack.ss_sp = bytes;
	of_other.uc_stack.ss_size = sizeof(bytes);
	of_other.uc_link = &of_caller;
	makecontext(&of_other, run_other, 0);
	swapcontext(&of_caller, &of_other);
	point();
	swapcontext(&of_caller, &of_other);
}

struct at_thread_end {
	~at_thread_end()
	{
		point();
	}
};

static void in_thread(void)
{
	std::thread thread([depth = any_number(50)] {
		static thread_local at_thread_end end;

		(void)&end;
		dive(depth);
	});

	thread.join();
}

static void *run_until_exit(void *)
{
	on_leave here;

	dive(1);
	pthread_exit(nullptr);
}

static void in_thread_exit(void)
{
	pthread_t thread;

	pthread_create(&thread, nullptr, run_until_exit, nullptr);
	pthread_join(thread, nullptr);
}

/* ---- interrupted anywhere
 * ------------------------------------------------------------------------ */

static unsigned interrupted(void)
{
	std::vector<int> numbers = any_numbers();
	struct timespec now;
	char text[100];

	compared_at = UINT32_MAX;
	qsort(numbers.data(), numbers.size(), sizeof(int), compare);
	std::sort(numbers.begin(), numbers.end(),
	          [](int a, int b) { return is_a_point() && a > b; });
	for (int i = 0; i < 300; i++)
		clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "%d %s %f", numbers[0], std::to_string(now.tv_nsec).c_str(),
	         (double)now.tv_sec);
	memset(text, numbers[1], sizeof(text) / 2);
	return (unsigned)text[0];
}

/* Through functions that make no point, with all kinds of frames. */
APART static void swell_and_work(unsigned depth)
{
	volatile char *bytes = (volatile char *)__builtin_alloca(16 + any_number(300));
	alignas(64) volatile char aligned[64];

	aligned[0] = 1;
	bytes[0] = 1;
	if (depth)
		swell_and_work(depth - 1);
	else
		interrupted();
	aligned[1] = aligned[0];
	bytes[1] = 0;
}

/* A signal comes where the program happens to be: in a function's begin or end, in libc, in the
 * vdso, in the table through which it calls. */
static void in_interrupts(void)
{
	struct itimerval once = {}, never = {};
	unsigned until = points() + 10;

	set_handler(SIGALRM, 0);
	while (points() < until) { /* a debugger takes longer than the time between two */
		once.it_value.tv_usec = 10 + any_number(150);
		setitimer(ITIMER_REAL, &once, nullptr);
		swell_and_work(any_number(5));
	}
	setitimer(ITIMER_REAL, &never, nullptr);
}

const struct way ways_of_libraries[] = {
	{ "qsort", in_qsort },
	{ "sort", in_sort },
	{ "tree", in_tree },
	{ "objects", in_objects },
	{ "function", in_function_object },
	{ "once", in_once },
	{ "library", in_library },
	{ "coroutine", in_coroutine },
	{ "context", in_context },
	{ "thread", in_thread },
	{ "thread-exit", in_thread_exit },
	{ "interrupts", in_interrupts },
	{ "bare", in_made_code },
	{ nullptr, nullptr },
};
