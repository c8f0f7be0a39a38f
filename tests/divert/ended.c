// SPDX-License-Identifier: MIT
/*
 * ended LIBRARY: who diverts is ended in the middle of writing. Then the process's memory tells
 * what was written, and since when is known; where it cannot be read, that is what is answered.
 */
#include "divert/divert.c"

#include <fcntl.h>
#include <stdio.h>

#include "one_target.h"

static struct one_target target;
static struct divert_result last;
static unsigned results;

static void on_done(void *data, const struct divert_result *result)
{
	last = *result;
	results++;
}

static void expect(bool is_so, const char *what)
{
	if (!is_so)
		one_target_fail(what, last.rc ? last.why : "it was answered that it was done");
}

/* The target has the jump. */
static struct divert_plan *divert_it(struct divert *divert)
{
	struct divert_plan *plan = one_target_look(&target, divert);
	struct pollfd fd = { .fd = divert_fd(divert), .events = POLLIN };
	uint64_t until_ns = stop_now_ns() + 10000000000u;
	struct err err = { 0 };

	do {
		unsigned before = results;

		if (divert_put(divert, plan, target.area, &target.thunk, &err))
			one_target_fail("divert_put", err.text);
		while (results == before) {
			poll(&fd, 1, 10);
			if (divert_turn(divert, &err) || stop_now_ns() > until_ns)
				one_target_fail("no answer", err.text);
		}
	} while (last.rc == -EAGAIN);
	expect(!last.rc && last.diverted == 1, "divert_put");
	return plan;
}

/* As if it was just being written, or nothing yet, when its end is noticed. */
static void end(struct divert *divert, struct divert_plan *plan, enum divert_cut_state state)
{
	struct err err;

	plan->state = PLAN_PUTTING;
	atomic_store(&divert->shared->cuts[plan->place].state, state);
	divert->gone = false;
	results = 0;
	process_gone(divert, &err);
	expect(results == 1, "an answer");
}

static void undo(struct divert_plan *plan)
{
	char path[32];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", target.pid);
	memory = open(path, O_RDWR | O_CLOEXEC);

	if (pwrite(memory, plan->functions[0].code.file, sizeof(target.file),
	           (off_t)plan->functions[0].code.address) != sizeof(target.file))
		one_target_fail("undo", strerror(errno));
	close(memory);
	free(plan->found);
	plan->found = NULL;
}

int main(int argc, char **argv)
{
	struct divert_result early;
	struct divert_plan *plan;
	struct divert *divert;
	struct err err = { 0 };
	uint64_t since_ns;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		one_target_fail("usage", "ended LIBRARY");
	if (divert_new(on_done, NULL, &divert, &err))
		one_target_fail("divert_new", err.text);
	one_target_start(&target, argv[1], NULL);
	plan = divert_it(divert);
	since_ns = last.since_ns;
	plan->state = PLAN_PUTTING;
	atomic_store(&divert->shared->cuts[plan->place].state, CUT_BEGUN);
	expect(!divert_is_put(divert, plan, since_ns - 1, &early), "a call before the cut");
	expect(divert_is_put(divert, plan, since_ns, &early) && !early.rc && early.diverted == 1 &&
	               early.since_ns == since_ns,
	       "a call behind the cut");
	end(divert, plan, CUT_BEGUN);
	expect(!last.rc && last.diverted == 1 && last.since_ns == since_ns, "a jump is there");
	end(divert, plan, CUT_MADE);
	expect(!last.rc && last.diverted == 1 && last.since_ns == since_ns, "all was written");
	undo(plan);
	end(divert, plan, CUT_BEGUN);
	expect(last.rc == -ECHILD && !last.since_ns, "no jump is there");
	plan->next = divert->plans; /* it is no longer divert's */
	divert->plans = plan;
	one_target_end(&target);
	free(plan->found);
	plan->found = NULL;
	end(divert, plan, CUT_BEGUN);
	expect(last.rc == -ECHILD && last.since_ns == since_ns, "the memory does not tell");
	divert_plan_free(plan);
	divert->gone = false;
	divert_free(divert);
	printf("done\n");
	return 0;
}
