// SPDX-License-Identifier: MIT
/* Ways out of a call other than its return, and calls within the recording. */
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "probes_scene.h"

#define PLAIN cookie_plain(WIRE_AT_STACK, 0)

int throws(int what);
int catches(int (*thunk)(int), int what, int *destroyed);

/* ---- nesting ---- */

static int (*inner)(int);

static int outer(int depth)
{
	return depth ? inner(depth - 1) + 1 : 0;
}

static const struct agent_probed *call_at(size_t which)
{
	return host_get(host, AGENT_PROBED, which);
}

static void test_calls_in_calls_down_to_the_last_level(void **state)
{
	uint64_t end = UINT64_MAX;

	inner = DIVERT(9, outer, PLAIN, 0);
	lost_now(AGENT_PROBE_DEPTH);
	assert_int_equal(inner(69), 69);
	assert_int_equal(calls_told(), 64); /* the innermost come first */
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(call_at(63 - i)->depth, i);
		assert_int_equal(call_at(63 - i)->head.flags, i ? WIRE_NESTED : 0);
		assert_true(call_at(63 - i)->end <= end);
		end = call_at(63 - i)->end;
	}
	assert_int_equal(lost_now(AGENT_PROBE_DEPTH), 6);
}

/* ---- longjmp and exceptions ---- */

static jmp_buf back_to;

static int leaves(int how)
{
	if (how)
		longjmp(back_to, how);
	return 0;
}

static int leaves_within(int how)
{
	return inner(how);
}

__attribute__((noinline)) static int write_over(int value)
{
	volatile char stack[4096];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = (char)value;
	return stack[value];
}

static size_t unfinished(void)
{
	size_t n = 0;

	for (size_t i = 0; i < calls_told(); i++)
		n += (call_at(i)->head.flags & WIRE_UNFINISHED) != 0;
	return n;
}

static void test_calls_that_a_longjmp_left_are_unfinished(void **state)
{
	__typeof__(&leaves) around = DIVERT(8, leaves_within, PLAIN, 0);

	inner = DIVERT(9, leaves, PLAIN, 0);
	if (!setjmp(back_to))
		around(1);
	assert_int_equal(calls_told(), 0);
	around(0);
	assert_int_equal(calls_told(), 4);
	assert_int_equal(unfinished(), 2);
	assert_int_equal(call_at(0)->head.flags, WIRE_UNFINISHED | WIRE_NESTED);
	assert_int_equal(call_at(1)->head.flags, WIRE_UNFINISHED);
	assert_int_equal(call_at(2)->depth, 1);
	assert_int_equal(call_at(3)->depth, 0);
}

/* The next call is deeper in the stack, where the one that was left would be around it. */
__attribute__((noinline)) static void call_deeper(__typeof__(&leaves) thunk)
{
	volatile char room[16384];

	room[0] = (char)write_over(1);
	thunk(room[0] - 1);
}

static void test_a_call_that_was_left_is_around_no_other(void **state)
{
	__typeof__(&leaves) thunk = DIVERT(9, leaves, PLAIN, 0);

	if (!setjmp(back_to))
		thunk(1);
	write_over(3);
	call_deeper(thunk);
	assert_int_equal(calls_told(), 2);
	assert_int_equal(call_at(0)->head.flags, WIRE_UNFINISHED);
	assert_int_equal(call_at(1)->head.flags, 0);
}

static void test_an_exception_passes_through(void **state)
{
	__typeof__(&throws) thunk = DIVERT(9, throws, PLAIN, 0);
	int destroyed = 0;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(catches(thunk, -5, &destroyed), -1);
		assert_int_equal(catches(thunk, 5, &destroyed), 5);
	}
	assert_int_equal(destroyed, 200);
	assert_int_equal(calls_told(), 200);
	assert_int_equal(unfinished(), 100);
}

/* ---- ends of threads ---- */

static int waits(int pipe)
{
	char byte;

	return (int)read(pipe, &byte, 1); /* a point at which a thread can be cancelled */
}

static int ends(int unused)
{
	pthread_exit(NULL);
}

static void *run_thread(void *thunk)
{
	((int (*)(int))thunk)((int)(intptr_t)inner);
	return NULL;
}

static void test_threads_that_end_within_a_call(void **state)
{
	int pipes[2];
	pthread_t thread;
	void *result;

	assert_int_equal(pipe(pipes), 0);
	inner = (int (*)(int))(intptr_t)pipes[0];
	pthread_create(&thread, NULL, run_thread, (void *)DIVERT(1, waits, PLAIN, 0));
	host_sleep(20);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	pthread_create(&thread, NULL, run_thread, (void *)DIVERT(2, ends, PLAIN, 0));
	pthread_join(thread, NULL);
	for (int i = 0; i < 1000 && calls_told() < 2; i++) {
		probes_look(); /* the kernel may still have the thread, for a moment */
		host_sleep(1);
	}
	assert_int_equal(unfinished(), 2);
	close(pipes[0]);
	close(pipes[1]);
}

static int nothing(int value)
{
	return value;
}

/* ---- launches ---- */

static int launches(int n)
{
	return n ? inner(n) : 700;
}

/* The runtime's launch is told where the driver's is not called. */
static void test_a_launch_of_the_runtime_is_the_driver_s_to_tell(void **state)
{
	uint64_t runtime = PLAIN | cookie_with_runtime(1) | cookie_with_runtime_launch(1);
	uint64_t driver = COOKIE_SET(PLAIN, kernel, 0);
	__typeof__(&launches) around = DIVERT(8, launches, runtime, 0);

	inner = DIVERT(9, leaves, driver, 0);
	assert_int_equal(around(0), 700);
	assert_int_equal(calls_told(), 1);
	assert_int_equal(call_at(0)->head.lane, 8);
	if (!setjmp(back_to))
		around(1);
	inner = DIVERT(9, nothing, driver, 0);
	around(1);
	around(1);
	assert_int_equal(calls_told(), 4);
	for (size_t i = 1; i < 4; i++) {
		assert_int_equal(call_at(i)->head.lane, 9);
		assert_int_equal(call_at(i)->depth, 0);
		assert_int_equal(call_at(i)->head.flags, i == 1 ? WIRE_UNFINISHED : 0);
	}
	inner = DIVERT(9, nothing, PLAIN, 0); /* no launch */
	around(1);
	assert_int_equal(calls_told(), 6);
	assert_int_equal(call_at(4)->depth, 1);
	assert_int_equal(call_at(5)->head.lane, 8);
}

static void *launch_once(void *around)
{
	((__typeof__(&launches))around)(1);
	return NULL;
}

/* Likewise where those alone are told that the runtime refuses: the others cost what counting
 * costs. */
static void test_a_launch_that_the_runtime_refuses_is_told_where_launches_are_counted(void **state)
{
	uint64_t runtime = PLAIN | cookie_with_runtime(1) | cookie_with_runtime_launch(1);
	uint64_t driver = COOKIE_SET(PLAIN, kernel, 0);
	__typeof__(&launches) around = DIVERT(8, launches, runtime, 0);
	pthread_t thread;

	probes_turn(8, PROBE_COUNT);
	inner = DIVERT(9, nothing, driver, 0);
	around(1); /* a thread's first is told in full, as far as it is */
	for (int i = 0; i < 3; i++) {
		size_t before = calls_told();

		assert_int_equal(around(1), 1);
		assert_int_equal(calls_told(), before + 1); /* the driver's failed, once */
		assert_int_equal(call_at(before)->head.lane, 9);
		assert_int_equal(call_at(before)->depth, 0);
		assert_int_equal(call_at(before)->result, 1);
		assert_int_equal(around(0), 700);
		assert_int_equal(calls_told(), before + 2);
		assert_int_equal(call_at(before + 1)->head.lane, 8);
		assert_int_equal(call_at(before + 1)->depth, 0);
		assert_int_equal(call_at(before + 1)->result, 700);
	}
	inner = DIVERT(9, leaves, driver, 0);
	if (!setjmp(back_to))
		around(1);
	inner(0); /* what is launched without the runtime is nobody's */
	assert_int_equal(around(0), 700);
	assert_int_equal(call_at(calls_told() - 1)->head.lane, 8);
	inner = DIVERT(9, nothing, PLAIN, 0); /* no launch: as if nothing were around it */
	around(1);
	assert_int_equal(call_at(calls_told() - 2)->head.lane, 9);
	assert_int_equal(call_at(calls_told() - 2)->depth, 0);
	assert_int_equal(call_at(calls_told() - 1)->head.lane, 8);
	pthread_create(&thread, NULL, launch_once, (void *)around); /* a first call */
	pthread_join(thread, NULL);
	assert_int_equal(call_at(calls_told() - 2)->head.lane, 9);
	assert_int_equal(call_at(calls_told() - 2)->depth, 0);
	assert_int_equal(call_at(calls_told() - 1)->head.lane, 8);
}

static void test_states_of_threads_that_ended_are_used_again(void **state)
{
	inner = DIVERT(1, nothing, PLAIN, 0);
	for (int i = 0; i < 500; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, run_thread, (void *)inner);
		pthread_join(thread, NULL);
	}
	assert_int_equal(calls_told(), 500);
	probes_look();
	assert_in_range(host->shared->probe_threads, 1, 40);
}

static void test_calls_that_are_open_at_the_end_are_unfinished(void **state)
{
	int pipes[2];
	pthread_t thread;

	assert_int_equal(pipe(pipes), 0);
	inner = (int (*)(int))(intptr_t)pipes[0];
	pthread_create(&thread, NULL, run_thread, (void *)DIVERT(1, waits, PLAIN, 0));
	host_sleep(20);
	assert_int_equal(probes_close(), 0);
	assert_int_equal(calls_told(), 1);
	assert_int_equal(unfinished(), 1);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	pthread_join(thread, NULL); /* it returned through a thunk of no session */
	assert_int_equal(calls_told(), 1);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- other processes ---- */

static int child_calls(pid_t child)
{
	int status = 0;

	if (!child) {
		int r = inner(42) == 42 ? 7 : 8;

		_exit(r);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static int forks(int unused)
{
	return child_calls((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static void test_children_are_not_recorded(void **state)
{
	int (*within)(int) = DIVERT(2, forks, PLAIN, 0);

	inner = DIVERT(1, nothing, PLAIN, 0);
	inner(1);
	assert_int_equal(child_calls(fork()), 7);
	assert_int_equal(child_calls((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)), 7);
	assert_int_equal(within(0), 7);
	assert_int_equal(calls_told(), 2);
}

static void test_a_child_of_vfork_is_its_parent(void **state)
{
	pid_t child;
	int status;

	NOT_UNDER_TSAN();
	inner = DIVERT(1, nothing, PLAIN, 0);
	inner(0);
	child = vfork();
	if (!child)
		_exit(inner(7));
	waitpid(child, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 7);
	inner(1);
	assert_int_equal(calls_told(), 3);
	assert_int_equal(call_at(1)->tid, gettid());
	assert_int_equal(call_at(2)->depth, 0);
}

/* A child that is measured by a session of its own. */
static void test_a_child_begins_anew(void **state)
{
	int status;
	pid_t child;

	inner = DIVERT(1, nothing, PLAIN, 0);
	inner(0);
	child = fork();
	if (!child) {
		probes_forked();
		assert_int_equal(open_probes(NULL), 0);
		inner(5);
		_exit(calls_told() == 1 && last_call()->tid == (uint32_t)gettid() &&
		                      last_call()->result == 5
		              ? 0
		              : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

/* ---- threads without thread-local memory of their own ---- */

static int (*cloned_thunk)(int);
static uint32_t cloned_over;

static int cloned(void *calls)
{
	for (int i = 0; i < *(int *)calls; i++)
		cloned_thunk(i);
	__atomic_store_n(&cloned_over, 1, __ATOMIC_RELEASE);
	syscall(SYS_exit, 0);
	return 0;
}

static void test_a_thread_that_shares_anothers_memory(void **state)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int calls = 2000;
	uint64_t lost;

	NOT_UNDER_TSAN();
	cloned_thunk = DIVERT(1, nothing, PLAIN, 0);
	cloned_thunk(0);
	lost_now(AGENT_PROBE_REENTRY);
	lost_now(AGENT_PROBE_ENTRY);
	cloned_over = 0;
	assert_true(clone(cloned, stack + 65536,
	                  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
	                          CLONE_SYSVSEM,
	                  &calls) > 0);
	for (int i = 0; i < calls; i++)
		assert_int_equal(cloned_thunk(i), i);
	while (!__atomic_load_n(&cloned_over, __ATOMIC_ACQUIRE))
		sched_yield();
	lost = lost_now(AGENT_PROBE_REENTRY) + lost_now(AGENT_PROBE_ENTRY);
	assert_in_range(calls_told(), 2 * (size_t)calls + 1 - lost, 2 * (size_t)calls + 1);
	host_sleep(5);
}

/* ---- signals ---- */

#define PATIENCE_NS 60000000000ull /* on a busy machine ticks are few */

static uint64_t in_handlers;
static sigjmp_buf handler_back;
static volatile sig_atomic_t jump;

static void on_tick(int signal)
{
	int error = errno;

	in_handlers++;
	inner((int)in_handlers);
	errno = error;
	if (jump && in_handlers % 3 == 0) {
		jump = 0;
		siglongjmp(handler_back, 1);
	}
}

static void ticks(long us)
{
	const struct itimerval every = { { 0, us }, { 0, us } };
	struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART };

	if (us)
		sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

/* Reads as it goes: the ring is smaller than what is recorded. */
static uint64_t told_and_forgotten(void)
{
	uint64_t n = calls_told();

	host_forget(host);
	return n;
}

static void test_a_handler_may_call_within_the_recording(void **state)
{
	__typeof__(&nothing) thunk = DIVERT(2, nothing, PLAIN, 0);
	uint64_t calls = 0, told = 0, end = host_now() + PATIENCE_NS;

	NOT_UNDER_TSAN();
	inner = DIVERT(1, nothing, PLAIN, 0);
	lost_now(AGENT_PROBE_REENTRY);
	in_handlers = 0;
	ticks(1000);
	while (in_handlers < 400 && host_now() < end) {
		for (int i = 0; i < 100; i++)
			assert_int_equal(thunk(i), i);
		calls += 100;
		told += told_and_forgotten();
	}
	ticks(0);
	told += told_and_forgotten();
	assert_true(in_handlers >= 400);
	assert_int_equal(told + lost_now(AGENT_PROBE_REENTRY), calls + in_handlers);
}

static void test_a_handler_may_jump_out_of_the_recording(void **state)
{
	__typeof__(&nothing) thunk = DIVERT(2, nothing, PLAIN, 0);
	volatile uint64_t calls = 0, jumps = 0;
	uint64_t end = host_now() + PATIENCE_NS;

	NOT_UNDER_TSAN();
	inner = DIVERT(1, nothing, PLAIN, 0);
	lost_now(AGENT_PROBE_RING);
	if (sigsetjmp(handler_back, 1))
		jumps++;
	ticks(1000);
	while (jumps < 150 && host_now() < end) {
		jump = 1;
		for (int i = 0; i < 100; i++) {
			calls++;
			thunk(i);
		}
		jump = 0;
		told_and_forgotten();
	}
	ticks(0);
	told_and_forgotten();
	thunk(77);
	assert_int_equal(last_call()->result, 77); /* and it still records */
	assert_int_equal(last_call()->depth, 0);
	assert_true(jumps >= 150);
	assert_int_equal(probes_close(), 0);
}

/* ---- unwinding ---- */

struct walk {
	uint64_t frames[64];
	int n;
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *data)
{
	struct walk *walk = data;

	if (walk->n == 64)
		return _URC_END_OF_STACK;
	walk->frames[walk->n++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static uint64_t steps, bad_steps, bad_pointers, caller_from, caller_to;

static bool in_caller(uint64_t address)
{
	return address >= caller_from && address < caller_to;
}

/* At an instruction: what the unwinder finds next to the thunk has to be its caller. */
static void on_step(int signal, siginfo_t *info, void *data)
{
	const greg_t *regs = ((ucontext_t *)data)->uc_mcontext.gregs;
	uint64_t ip = (uint64_t)regs[REG_RIP], begin = (uint64_t)probe_thunks;
	const uint64_t *frame = (const uint64_t *)regs[REG_RBP];
	struct walk walk = { .n = 0 };
	int at = 0;

	if (ip < begin || ip >= (uint64_t)probe_thunks_end)
		return;
	steps++;
	_Unwind_Backtrace(on_frame, &walk);
	while (at < walk.n && walk.frames[at] != ip)
		at++;
	bad_steps += at + 1 >= walk.n || !in_caller(walk.frames[at + 1]);
	/* and by frame pointers, from where it has its own */
	if ((uint64_t)regs[REG_RSP] + sizeof(struct thunk_frame) - 16 <= (uint64_t)frame)
		bad_pointers += !in_caller(frame[1]);
}

__attribute__((noinline)) static void step_through(__typeof__(&nothing) thunk)
{
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	thunk(5);
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}
__attribute__((noinline)) static void step_through_end(void)
{
	__asm__ volatile("");
}

static void test_unwinding_is_right_at_each_instruction(void **state)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, before;
	__typeof__(&nothing) thunk = DIVERT(9, nothing, PLAIN, 3);

	NOT_UNDER_TSAN(); /* the handler may come while TSan's own locks are held */
	caller_from = (uint64_t)step_through;
	caller_to = (uint64_t)step_through_end;
	if (caller_to < caller_from)
		caller_to = caller_from + 256;
	steps = bad_steps = bad_pointers = 0;
	thunk(1);
	sigaction(SIGTRAP, &action, &before);
	step_through(thunk);
	probes_turn(9, PROBE_PASSES_ON);
	step_through(thunk);
	sigaction(SIGTRAP, &before, NULL);
	assert_int_equal(bad_steps, 0);
	assert_int_equal(bad_pointers, 0);
	assert_in_range(steps, 120, 400);
}

static int walks(int most)
{
	void *frames[64];

	return backtrace(frames, most);
}

static void test_backtrace_passes_through(void **state)
{
	__typeof__(&walks) thunk = DIVERT(9, walks, PLAIN, 0);

	assert_int_equal(thunk(64), walks(64) + 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_probes, close_probes)
	const struct CMUnitTest tests[] = {
		TEST(test_calls_in_calls_down_to_the_last_level),
		TEST(test_a_launch_of_the_runtime_is_the_driver_s_to_tell),
		TEST(test_a_launch_that_the_runtime_refuses_is_told_where_launches_are_counted),
		TEST(test_calls_that_a_longjmp_left_are_unfinished),
		TEST(test_a_call_that_was_left_is_around_no_other),
		TEST(test_an_exception_passes_through),
		TEST(test_threads_that_end_within_a_call),
		TEST(test_states_of_threads_that_ended_are_used_again),
		TEST(test_calls_that_are_open_at_the_end_are_unfinished),
		TEST(test_children_are_not_recorded),
		TEST(test_a_child_of_vfork_is_its_parent),
		TEST(test_a_child_begins_anew),
		TEST(test_a_thread_that_shares_anothers_memory),
		TEST(test_a_handler_may_call_within_the_recording),
		TEST(test_a_handler_may_jump_out_of_the_recording),
		TEST(test_unwinding_is_right_at_each_instruction),
		TEST(test_backtrace_passes_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
