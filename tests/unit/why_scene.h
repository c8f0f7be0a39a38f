/* SPDX-License-Identifier: MIT */
/* For tests of what `why` says: a run made by hand, and words that are looked for. */
#ifndef TESTS_UNIT_WHY_SCENE_H
#define TESTS_UNIT_WHY_SCENE_H

#include "stack_events.h"

#include "account/answer.h"
#include "report/why.h"
#include "trace/event.h"

static struct consumer *why;
static struct why_options options;
static struct run_info info;
static uint64_t correlation;
static double now_us;
static struct buf text;

static inline int set_up(void **state)
{
	info = default_run_info();
	info.gpu_times = true;
	options = (struct why_options){ 0 };
	why = why_new(&options);
	correlation = 0;
	now_us = 0;
	return 0;
}

static inline int tear_down(void **state)
{
	consumer_free(why);
	buf_free(&text);
	return 0;
}

static inline void choose(struct why_options chosen)
{
	consumer_free(why);
	options = chosen;
	why = why_new(&options);
}

/* ---- events -------------------------------------------------------------------------------- */

static inline void see(struct event event)
{
	feed(why, &event);
}

static inline uint64_t ask(const char *function, double at_us, double us, uint32_t line)
{
	struct call call = call_at(function, at_us, us);

	call.correlation = ++correlation;
	call.stack = line ? stack_of_line(line) : NULL;
	see(call_event(the_process(), the_process()->pid, &call));
	return correlation;
}

static inline void ask_nothing(const char *function, double at_us, double us)
{
	struct call call = call_at(function, at_us, us);

	see(call_event(the_process(), the_process()->pid, &call));
}

static inline void named_kernel_on(uint32_t device, const struct kernel *kernel, uint64_t asked_by,
                                   double begin_us, double us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .kernel = kernel,
		                     .device = device,
		                     .context = 1,
		                     .stream = 7,
		                     .correlation = asked_by,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(begin_us + us) };

	see(activity_event(the_process(), &activity));
}

static inline void kernel_on(uint32_t device, uint64_t asked_by, double begin_us, double us)
{
	named_kernel_on(device, NULL, asked_by, begin_us, us);
}

static inline void sample(enum sample_kind kind, double at_us, double us, uint32_t line)
{
	struct sample one = sample_of(kind, us, stack_of_line(line));

	see(sample_event(the_process(), the_process()->pid, at_us, &one));
}

/* Steps of 10 ms, in each a kernel of so long. */
static inline void steps(unsigned n, double kernel_us, uint32_t line)
{
	for (unsigned i = 0; i < n; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, kernel_us);
		for (unsigned k = 3; line && k < 10; k++)
			sample(SAMPLE_CPU, now_us + k * 1000, 1000, line);
	}
}

/* The recording ends with what is in it. */
static inline void conclude(double end_us)
{
	struct err err = { 0 };

	info.end_ns = US(end_us);
	assert_int_equal(consumers_end(&why, 1, &info, &err), 0);
	why_add_text(why, &text);
}

static inline void assert_said(const char *words)
{
	if (!strstr(text.data, words))
		fail_msg("nothing says '%s':\n%s", words, text.data);
}

static inline void assert_not_said(const char *words)
{
	if (strstr(text.data, words))
		fail_msg("something says '%s':\n%s", words, text.data);
}

#endif
