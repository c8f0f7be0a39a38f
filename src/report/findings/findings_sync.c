// SPDX-License-Identifier: MIT
/* Findings about waiting: synchronisation after which nothing is read, and polls in a row. */
#include <stdlib.h>
#include <string.h>

#include "report/findings/findings_rules.h"
#include "analysis/thread_ids.h"

/* ---- synchronisation that nothing needs ---------------------------------------------------- */

struct sync_thread {
	uint64_t read_before; /* reads of the process when it waited last */
	uint64_t work;        /* asked for since then */
	bool pending;         /* it waited for nothing that was read; what comes next decides */
	struct finding_example wait;
};

struct sync_process {
	uint64_t reads;    /* after which the host may want to see results */
	bool managed;      /* memory that both sides see: reading it is no call */
	uint64_t waits_ns; /* of the cases */
	struct finding_loop cases;
	struct finding_loop waits;
};

struct needless {
	struct sync_thread *threads;
	size_t n_threads;
	struct sync_process *processes;
	size_t n_processes;
};

static void *make_needless(void)
{
	return xcalloc(1, sizeof(struct needless));
}

static void free_needless(void *state)
{
	struct needless *all = state;

	free(all->threads);
	free(all->processes);
	free(all);
}

/* Of the device, the context or a stream; a wait for one event is mostly meant. */
static bool is_wide_sync(const struct call *call)
{
	return call->op == OP_SYNC && !strstr(call->function->name, "Event");
}

/* Copies whose direction is not known may go to the host, as may those that a graph holds; events
 * that are compared are what one waits for when one measures. */
static bool reads_back(const struct call *call)
{
	enum api_direction direction = call->args.direction;

	if (call->op == OP_COPY)
		return direction != DIRECTION_H2D && direction != DIRECTION_D2D;
	return call->op == OP_GRAPH_LAUNCH || call->op == OP_HOST_LAUNCH ||
	       strstr(call->function->name, "EventElapsedTime");
}

static void end_wait(struct sync_process *process, struct sync_thread *thread,
                     const struct finding_call *call)
{
	struct finding_example wait = thread->wait;
	uint64_t end_ns = wait.begin_ns + wait.duration_ns, until_ns = call->call->end_ns;
	uint64_t idle_ns = until_ns > end_ns ? until_ns - end_ns : 0;

	/* Without the wait the thread would have been as much earlier, and not more. */
	wait.cost_ns = idle_ns < wait.duration_ns ? idle_ns : wait.duration_ns;
	finding_case(finding_loop_at(&process->cases, call->octave), &wait);
	wait.cost_ns = wait.duration_ns;
	finding_case(finding_loop_at(&process->waits, call->octave), &wait);
	thread->pending = false;
}

static void see_wait(struct sync_process *process, struct sync_thread *thread,
                     const struct finding_call *call)
{
	thread->pending = thread->work && thread->read_before == process->reads &&
	                  !process->managed && call_has_end(call->call);
	if (thread->pending)
		thread->wait = finding_example_of(call);
	thread->read_before = process->reads;
	thread->work = 0;
}

static void needless_call(void *state, const struct finding_call *call)
{
	enum api_op op = call->call->op;
	struct needless *all = state;
	struct sync_process *process;
	struct sync_thread *thread;

	if (call->thread == THREAD_ID_OTHERS)
		return;
	process = FINDING_AT(all->processes, all->n_processes, call->process->id);
	thread = FINDING_AT(all->threads, all->n_threads, call->thread);
	if (op == OP_ALLOC && api_memory(call->call->function->api) == MEMORY_MANAGED)
		process->managed = true;
	if (is_wide_sync(call->call)) {
		see_wait(process, thread, call);
	} else if (reads_back(call->call)) {
		process->reads++;
		thread->work++;
		thread->pending = false;
	} else if (call->launch || op == OP_COPY || op == OP_SET) {
		thread->work++;
		if (thread->pending)
			end_wait(process, thread, call);
	}
}

static void say_needless(struct finding *finding, const struct finding_cases *waits)
{
	struct buf text = { 0 };

	buf_puts(&text, "in the steady part of the run, ");
	finding_count(&text, waits->count, "wait");
	buf_puts(&text, " for the device or a stream, ");
	buf_duration(&text, waits->cost_ns);
	buf_puts(&text, " long together, before which nothing had been copied to the host since "
	                "the wait before, and after which the thread went on to ask for work");
	finding_say(finding, &text);
	finding->estimate = "from each wait's end to the return of the next call that asked for "
			    "work, in which this thread gave the GPU nothing to do; at most as "
			    "long as the wait. Results that kernels write to pinned memory are "
			    "not seen";
	finding->suggestion = "leave the synchronisation out, or wait for an event once what is "
			      "needed is known: work on a stream is in order anyway";
}

static void judge_needless(void *state, const struct finding_rule *rule,
                           const struct finding_verdicts *verdicts)
{
	struct needless *all = state;

	for (size_t i = 0; i < all->n_processes; i++) {
		const struct finding_process *process = finding_process(verdicts, i);
		struct finding_cases cases, waits;
		struct finding *finding;

		if (!process || process->launches < LIMIT_LOOP_LAUNCHES)
			continue;
		cases = finding_loop_end(&all->processes[i].cases, process->octave);
		waits = finding_loop_end(&all->processes[i].waits, process->octave);
		if (cases.count < LIMIT_LOOP_ROUNDS || !finding_is_worth(process, cases.cost_ns))
			continue;
		finding = findings_add(verdicts, rule, process);
		finding_set_cases(verdicts, finding, &cases);
		say_needless(finding, &waits);
	}
}

const struct finding_rule rule_needless_sync = {
	.name = "needless_sync",
	.title = "synchronisation after which nothing is read",
	.needs = NEEDS_DURATIONS,
	.create = make_needless,
	.call = needless_call,
	.judge = judge_needless,
	.free = free_needless,
};

/* ---- polls --------------------------------------------------------------------------------- */

struct poll_thread {
	uint64_t polls; /* in a row, until now */
	struct finding_example row;
};

struct polling {
	struct poll_thread *threads;
	size_t n_threads;
	struct polls {
		uint64_t polls; /* in rows */
		struct finding_cases rows;
	} * processes;
	size_t n_processes;
	bool any;
};

static void *make_polling(void)
{
	return xcalloc(1, sizeof(struct polling));
}

static void free_polling(void *state)
{
	struct polling *all = state;

	free(all->threads);
	free(all->processes);
	free(all);
}

static bool is_poll(const struct call *call)
{
	enum api_class class = call->function->cls;

	return (class == CLASS_EVENT || class == CLASS_STREAM) &&
	       (strstr(call->function->name, "EventQuery") ||
	        strstr(call->function->name, "StreamQuery"));
}

/* A row is counted when it gets long enough, and then with each poll: no end is needed. */
static void add_poll(struct polling *all, struct poll_thread *thread,
                     const struct finding_call *call)
{
	uint64_t end_ns = call->call->end_ns ? call->call->end_ns : call->call->begin_ns, ns;
	struct polls *polls;

	all->any = true;
	if (!thread->polls++) {
		thread->row = finding_example_of(call);
		thread->row.cost_ns = 0;
	}
	ns = end_ns > thread->row.begin_ns ? end_ns - thread->row.begin_ns : 0;
	if (ns < thread->row.cost_ns) /* time ran backwards */
		ns = thread->row.cost_ns;
	if (thread->polls >= LIMIT_POLLS) {
		polls = FINDING_AT(all->processes, all->n_processes, call->process->id);
		polls->polls += thread->polls == LIMIT_POLLS ? LIMIT_POLLS : 1;
		polls->rows.count += thread->polls == LIMIT_POLLS;
		polls->rows.cost_ns += thread->polls == LIMIT_POLLS ? ns : ns - thread->row.cost_ns;
		if (polls->rows.count == 1 || ns > polls->rows.worst.cost_ns) {
			polls->rows.worst = thread->row;
			polls->rows.worst.duration_ns = polls->rows.worst.cost_ns = ns;
		}
	}
	thread->row.cost_ns = ns;
}

static void polling_call(void *state, const struct finding_call *call)
{
	struct polling *all = state;
	bool poll = is_poll(call->call);

	if (call->thread == THREAD_ID_OTHERS || (!poll && call->thread >= all->n_threads))
		return;
	if (poll)
		add_poll(all, FINDING_AT(all->threads, all->n_threads, call->thread), call);
	else
		all->threads[call->thread].polls = 0;
}

static void judge_polling(void *state, const struct finding_rule *rule,
                          const struct finding_verdicts *verdicts)
{
	struct polling *all = state;

	if (!all->any)
		findings_cannot_judge(verdicts, rule,
		                      "no poll was recorded, which takes --all-calls");
	for (size_t i = 0; i < all->n_processes; i++) {
		const struct finding_process *process = finding_process(verdicts, i);
		const struct polls *polls = &all->processes[i];
		struct buf text = { 0 };
		struct finding *finding;

		if (!process || !finding_is_worth(process, polls->rows.cost_ns))
			continue;
		finding_count(&text, polls->polls, "poll");
		buf_puts(&text, " of events or streams in ");
		finding_count(&text, polls->rows.count, "row");
		buf_printf(&text, " of %d or more with no other call between them, ", LIMIT_POLLS);
		buf_duration(&text, polls->rows.cost_ns);
		buf_puts(&text, " long together");
		finding = findings_add(verdicts, rule, process);
		finding_set_cases(verdicts, finding, &polls->rows);
		finding_say(finding, &text);
		finding->estimate = "from the first poll of each row to its last: the time of a "
				    "thread and its processor, not of the GPU";
		finding->suggestion = "cudaEventSynchronize, with cudaEventBlockingSync where the "
				      "processor is needed, or other work between two polls";
	}
}

const struct finding_rule rule_polling = {
	.name = "polling",
	.title = "polling for the GPU",
	.create = make_polling,
	.call = polling_call,
	.judge = judge_polling,
	.free = free_polling,
};
