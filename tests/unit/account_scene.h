/* SPDX-License-Identifier: MIT */
/* For tests of the account of time: a recording made by hand, and parts of what it says. */
#ifndef TESTS_UNIT_ACCOUNT_SCENE_H

#include "stack_events.h"

#include "account/account.h"

#define MAIN 4242 /* the_process()'s thread that launches, unless said otherwise */
#define ANY  UINT32_MAX

static struct facts facts;
static struct accounts accounts;
static struct run_info info;
static uint64_t correlation;

static inline int open_scene(void **state)
{
	facts_init(&facts);
	memset(&accounts, 0, sizeof(accounts));
	info = default_run_info();
	correlation = 0;
	return 0;
}

static inline int close_scene(void **state)
{
	accounts_clear(&accounts);
	facts_clear(&facts);
	return 0;
}

static inline void make_accounts(double end_us)
{
	info.end_ns = US(end_us);
	facts_end(&facts, &info);
	accounts_make(&accounts, &facts);
}

/* ---- events -------------------------------------------------------------------------------- */

static inline void see(struct event event)
{
	facts_event(&facts, &event);
}

/* From line to line of Python; 0: without a stack. */
static inline const struct stack *at_line(uint32_t line)
{
	return line ? stack_of_line(line) : NULL;
}

/* In a thread of CUDA's: asleep in a function of the program's, or in none. */
static inline const struct stack *cudas_stack(bool in_function)
{
	static struct stack_frame sleeps = {
		.id = 90, .kind = FRAME_NATIVE, .function = "nanosleep", .module = "libc.so.6"
	};
	static struct stack_frame line = { .id = 91,
		                           .kind = FRAME_NATIVE,
		                           .function = "write_log",
		                           .module = "app",
		                           .file = "/home/ann/app.c",
		                           .line = 91 };
	static struct stack_frame cudas = { .id = 92,
		                            .kind = FRAME_CUDA,
		                            .module = "libcuda.so.1" };
	static struct stack_frame begin = {
		.id = 93, .kind = FRAME_NATIVE, .function = "start_thread", .module = "libc.so.6"
	};
	static const struct stack_frame *const within[] = { &sleeps, &line, &cudas, &begin };
	static const struct stack_frame *const outside[] = { &sleeps, &cudas, &begin };
	static const struct stack in = { .id = 90, .n_frames = 4, .frames = within };
	static const struct stack out = { .id = 91, .n_frames = 3, .frames = outside };

	return in_function ? &in : &out;
}

static inline uint64_t call_in(const struct process *process, uint32_t tid, struct call call,
                               uint32_t line)
{
	call.correlation = ++correlation;
	call.stack = at_line(line);
	see(call_event(process, tid, &call));
	return correlation;
}

static inline uint64_t call_from(double begin_us, double end_us, const char *function,
                                 uint32_t line)
{
	return call_in(the_process(), MAIN, call_at(function, begin_us, end_us - begin_us), line);
}

/* A launch of 5 us. */
static inline uint64_t launch_in(const struct process *process, uint32_t tid, double at_us,
                                 uint32_t line)
{
	return call_in(process, tid, launch_at("cuLaunchKernel", at_us, NULL), line);
}

static inline uint64_t launch(double at_us, uint32_t line)
{
	return launch_in(the_process(), MAIN, at_us, line);
}

static inline void ran_in(const struct process *process, const struct kernel *kernel, uint64_t of,
                          double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .kernel = kernel,
		                     .context = 1,
		                     .stream = 7,
		                     .correlation = of,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };

	see(activity_event(process, &activity));
}

static inline void ran(uint64_t of, double begin_us, double end_us)
{
	ran_in(the_process(), NULL, of, begin_us, end_us);
}

static inline void sampled_in(const struct process *process, uint32_t tid, double at_us,
                              uint32_t line)
{
	struct sample sample = sample_of(SAMPLE_CPU, 1000, at_line(line));

	see(sample_event(process, tid, at_us, &sample));
}

static inline void sampled(double at_us, uint32_t line)
{
	sampled_in(the_process(), MAIN, at_us, line);
}

/* It waits from begin to end, for a thread unless waker is 0. */
static inline void waited_in(const struct process *process, uint32_t tid, enum wait_kind wait,
                             double begin_us, double end_us, uint32_t waker, uint32_t line)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, end_us - begin_us, at_line(line));

	sample.wait = wait;
	sample.blocked = waker ? BLOCKED_WOKEN : BLOCKED_INTERRUPT;
	sample.waker_tid = waker;
	see(sample_event(process, tid, end_us, &sample));
}

static inline void waited(enum wait_kind wait, double begin_us, double end_us, uint32_t waker,
                          uint32_t line)
{
	waited_in(the_process(), MAIN, wait, begin_us, end_us, waker, line);
}

/* Waits that were told together. */
static inline void waited_sum(enum blocked how, enum wait_kind wait, double at_us, double us)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, us, NULL);

	sample.wait = wait;
	sample.blocked = how;
	see(sample_event(the_process(), MAIN, at_us, &sample));
}

static inline void not_measured(const struct process *process, double begin_us, double end_us)
{
	struct range range = { .kind = RANGE_NOT_MEASURED,
		               .begin_ns = US(begin_us),
		               .end_ns = US(end_us),
		               .name = "" };

	see((struct event){ .type = EVENT_RANGE,
	                    .time_ns = range.end_ns,
	                    .process = process,
	                    .range = &range });
}

static inline void exited(const struct process *process, double at_us)
{
	see(process_event(EVENT_EXIT, process, at_us));
}

/* A kernel that ends at 200, and one that is launched at late_us, from line 30, and runs at once:
 * between is what the test says. Returns when the second begins. */
static inline double pause_until(double late_us)
{
	double begins_us = late_us + 5;

	ran(launch(90, 30), 100, 200);
	ran(launch(late_us, 30), begins_us, begins_us + 100);
	return begins_us;
}

/* ---- what is said -------------------------------------------------------------------------- */

static inline const struct stack_frame *frame_of(const struct account_part *part)
{
	return chains_frame(facts.chains, part->chain);
}

static inline bool part_is(const struct account_part *part, enum account_cause cause, uint32_t line)
{
	const struct stack_frame *frame = frame_of(part);

	return part->cause == cause && (line == ANY || (frame ? frame->line : 0) == line);
}

/* The largest part of a cause at a line; fails where there is none. */
static inline const struct account_part *part_of(const struct account *account,
                                                 enum account_cause cause, uint32_t line)
{
	for (size_t i = 0; i < account->n_parts; i++)
		if (part_is(&account->parts[i], cause, line))
			return &account->parts[i];
	fail_msg("no %s at line %u", account_cause_name(cause), line);
	return NULL;
}

static inline double us_of(const struct account *account, enum account_cause cause, uint32_t line)
{
	double ns = 0;

	for (size_t i = 0; i < account->n_parts; i++)
		if (part_is(&account->parts[i], cause, line))
			ns += account->parts[i].ns;
	return ns / 1000;
}

static inline double gain_of(const struct account *account, enum account_cause cause, uint32_t line)
{
	double ns = 0;

	for (size_t i = 0; i < account->n_parts; i++)
		if (part_is(&account->parts[i], cause, line))
			ns += account->parts[i].gain_ns;
	return ns / 1000;
}

static inline void tell_account(const struct account *account)
{
	for (size_t i = 0; i < account->n_parts; i++)
		print_message("  %10.3f us (gain %.3f) %s, line %u, thread %u, via %u\n",
		              account->parts[i].ns / 1000, account->parts[i].gain_ns / 1000,
		              account_cause_name(account->parts[i].cause),
		              frame_of(&account->parts[i]) ? frame_of(&account->parts[i])->line : 0,
		              account->parts[i].thread, account->parts[i].via);
}

static inline void assert_us(const struct account *account, enum account_cause cause, uint32_t line,
                             double us)
{
	double is = us_of(account, cause, line);

	if (is > us - 0.01 && is < us + 0.01)
		return;
	tell_account(account);
	fail_msg("%s at line %u: %.3f us, not %.3f", account_cause_name(cause), line, is, us);
}

static inline void assert_gain(const struct account *account, enum account_cause cause,
                               uint32_t line, double us)
{
	double is = gain_of(account, cause, line);

	if (is > us - 0.01 && is < us + 0.01)
		return;
	tell_account(account);
	fail_msg("gain of %s at line %u: %.3f us, not %.3f", account_cause_name(cause), line, is,
	         us);
}

/* Every nanosecond has one cause, but those that were not measured. */
static inline void assert_adds_up(const struct account *account)
{
	double all = (double)(account->end_ns - account->begin_ns), ns = 0;
	double told = account->ns + (double)account->not_measured_ns;

	for (size_t i = 0; i < account->n_parts; i++) {
		assert_true(account->parts[i].ns >= 0);
		ns += account->parts[i].ns;
	}
	if (told > all * (1 + 1e-9) + 0.01 || told < all * (1 - 1e-9) - 0.01 ||
	    ns > account->ns * (1 + 1e-9) + 0.01 || ns < account->ns * (1 - 1e-9) - 0.01) {
		tell_account(account);
		fail_msg("parts are %.3f us, the account %.3f of %.3f", ns / 1000, told / 1000,
		         all / 1000);
	}
}

static inline void assert_all_add_up(void)
{
	for (size_t i = 0; i < accounts.n; i++)
		assert_adds_up(&accounts.of[i]);
}

/* The account of a process's GPU, or of its thread. */
static inline const struct account *account_of(const struct process *process)
{
	for (size_t i = 0; i < accounts.n; i++)
		if (accounts.of[i].process == process)
			return &accounts.of[i];
	fail_msg("no account of %s", process->comm);
	return NULL;
}

static inline uint32_t tid_of(uint32_t thread)
{
	return thread == FACTS_NONE ? 0 : facts.threads[thread].tid;
}

#endif
