// SPDX-License-Identifier: MIT
/* Ways to a point of stackpoints.cc: calls of all kinds, exceptions, signals. */
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <ucontext.h>

#include "stackpoints.h"

/* ---- recursion, and frames whose size is known when they run ----------------------------------
 */

APART void dive(unsigned depth)
{
	if (depth)
		dive(depth - 1);
	else
		point();
	NOT_LAST();
}

void in_recursion(void)
{
	dive(any_number(100));
}

APART void swell(unsigned depth)
{
	volatile char *bytes = (volatile char *)__builtin_alloca(16 + any_number(3000));

	bytes[0] = 1;
	if (depth)
		swell(depth - 1);
	else
		point();
	bytes[1] = 0;
}

static void in_alloca(void)
{
	swell(any_number(20));
}

/* The stack is aligned, and the frame found by a register that was saved in it. */
APART static void align(unsigned depth)
{
	alignas(128) volatile char aligned[256];
	volatile char *bytes = (volatile char *)__builtin_alloca(16 + any_number(300));

	aligned[0] = 1;
	bytes[0] = 1;
	if (depth)
		align(depth - 1);
	else
		point();
	aligned[1] = aligned[0];
	bytes[1] = 0;
}

static void in_aligned(void)
{
	align(any_number(20));
}

/* With more arguments than there are registers, which are pushed. */
APART static long many(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	if (a > 0)
		return many(a - 1, c, b, e, d, g, f, i, h) + i;
	point();
	return b + h;
}

static void in_arguments(void)
{
	if (many(any_number(20), 2, 3, 4, 5, 6, 7, 8, 9) == 12345)
		abort();
}

/* ---- calls that are jumps ---------------------------------------------------------------------
 */

APART static void jumped_to(unsigned depth)
{
	dive(depth);
	NOT_LAST();
}

APART static void jumper(unsigned depth)
{
	jumped_to(depth / 2);
}

APART static void jumper_once_more(unsigned depth)
{
	volatile char on_stack[100];

	on_stack[depth] = 1;
	asm volatile("" : : "r"(on_stack) : "memory");
	jumper(depth);
}

static void in_tail_call(void)
{
	jumper_once_more(any_number(40));
}

struct base {
	virtual ~base() = default;
	virtual void run(unsigned depth) = 0;
};

struct other {
	virtual ~other() = default;
	virtual void go(unsigned depth) = 0;
	long held = 0;
};

struct both final : base, other { /* go() is reached through a thunk, which jumps */
	void run(unsigned depth) override APART
	{
		other *self = this;

		asm volatile("" : "+r"(self));
		self->go(depth);
		NOT_LAST();
	}
	void go(unsigned depth) override APART
	{
		base *self = this;

		asm volatile("" : "+r"(self));
		held++;
		if (depth)
			self->run(depth - 1);
		else
			point();
		NOT_LAST();
	}
};

static void in_thunk(void)
{
	both object;
	base *self = &object;

	asm volatile("" : "+r"(self));
	self->run(any_number(20));
}

/* ---- exceptions -------------------------------------------------------------------------------
 */

APART static void throw_from(unsigned depth)
{
	if (depth)
		throw_from(depth - 1);
	else
		throw std::runtime_error("thrown");
	NOT_LAST();
}

APART static void leave(unsigned depth)
{
	on_leave here;

	throw_from(depth);
}

static void in_destructor(void)
{
	try {
		leave(any_number(10));
	} catch (const std::runtime_error &) {
	}
}

APART static void catch_and_go_on(unsigned depth)
{
	try {
		throw_from(any_number(5));
	} catch (const std::exception &) {
		if (depth)
			catch_and_go_on(depth - 1);
		else
			point();
	}
}

static void in_catch(void)
{
	catch_and_go_on(any_number(10));
}

APART static void throw_again(unsigned depth)
{
	try {
		throw_from(depth);
	} catch (...) {
		std::exception_ptr kept = std::current_exception();

		point();
		std::rethrow_exception(kept);
	}
}

static void in_rethrow(void)
{
	try {
		throw_again(any_number(10));
	} catch (const std::exception &) {
		dive(any_number(3));
	}
}

/* ---- signals ----------------------------------------------------------------------------------
 */

static void handle(int number)
{
	(void)number;
	if (busy)
		return;
	busy = 1;
	dive(any_number(4));
	busy = 0;
}

void set_handler(int number, int flags)
{
	struct sigaction action = {};

	action.sa_handler = handle;
	action.sa_flags = flags | SA_RESTART;
	sigaction(number, &action, nullptr);
}

APART static void raise_at(unsigned depth, int number)
{
	if (depth)
		raise_at(depth - 1, number);
	else
		raise(number);
	NOT_LAST();
}

static void in_signal(void)
{
	set_handler(SIGUSR1, 0);
	raise_at(any_number(10), SIGUSR1);
}

static void in_signal_on_another_stack(void)
{
	static thread_local char bytes[64 << 10];
	stack_t stack = {};

	stack.ss_sp = bytes;
	stack.ss_size = sizeof(bytes);
	sigaltstack(&stack, nullptr);
	set_handler(SIGUSR2, SA_ONSTACK);
	raise_at(any_number(10), SIGUSR2);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, nullptr);
}

/* An instruction of this program that cannot be executed, and is stepped over. */
static void step_over(int, siginfo_t *, void *data)
{
	dive(any_number(4));
#ifdef __x86_64__
	((ucontext_t *)data)->uc_mcontext.gregs[REG_RIP] += 2;
#else
	((ucontext_t *)data)->uc_mcontext.pc += 4;
#endif
}

APART static void fault(void)
{
#ifdef __x86_64__
	asm volatile("ud2" ::: "memory");
#else
	asm volatile("udf #0" ::: "memory");
#endif
}

static void in_fault(void)
{
	struct sigaction action = {};

	action.sa_sigaction = step_over;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGILL, &action, nullptr);
	fault();
	NOT_LAST();
}

const struct way ways_of_calls[] = {
	{ "recursion", in_recursion },
	{ "alloca", in_alloca },
	{ "aligned", in_aligned },
	{ "arguments", in_arguments },
	{ "tail-call", in_tail_call },
	{ "thunk", in_thunk },
	{ "destructor", in_destructor },
	{ "catch", in_catch },
	{ "rethrow", in_rethrow },
	{ "signal", in_signal },
	{ "signal-stack", in_signal_on_another_stack },
	{ "fault", in_fault },
	{ nullptr, nullptr },
};
