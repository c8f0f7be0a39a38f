// SPDX-License-Identifier: MIT
#include "capture/stacks/sampler.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "capture/stacks/wakers.h"
#include "probe/blocked_threads.h"
#include "probe/bpf_call.h"
#include "probe/cpu_samples.h"
#include "probe/helper.h"

#define READY_NS      5000000000ull /* for files of targets that run already */
#define LINES_NS      3000000000ull /* for lines that are still being looked up, at the end */
#define HELD_NS       500000000ull  /* a command's thread waits at most, for one file */
#define CALLS_MAX     16384         /* threads with a call whose stack is known */
#define BACKWARDS_MAX 4096          /* processes that are in one */
#define STACKS_MAX    (256u << 10)  /* that are remembered by the programs' numbers */

struct sampled_key {
	uint64_t id;
	uint32_t process; /* struct process: an exec begins another one */
	uint32_t unused;
};

struct sampled_stack {
	struct sampled_key key;
	uint64_t person;
	uint32_t turn; /* in which it was sent last */
	const struct stack *stack;
	const struct stack *asked, *joined; /* the last ones that it was joined with, and as */
	UT_hash_handle hh;
};

/* The stack of a call that has not ended yet, or whose record is still on its way: of the last that
 * a probe has seen, and of the last that an agent asked for. */
struct open_call {
	uint32_t tid;
	uint64_t begin_ns;
	const struct stack *stack;
	struct {
		uint64_t begin_ns; /* 0: its call was not met yet */
		uint64_t walk;     /* wire_walk; 0: there is none */
		const struct stack *stack;
	} asked;
	UT_hash_handle hh;
};

/* An agent's library with a probe. */
struct walking_agent {
	pid_t pid;
	UT_hash_handle hh;
};

/* Who has asked for the backward pass that a process is in, or was in last. */
struct backward {
	uint32_t process;
	uint64_t person;
	const struct stack *stack;
	UT_hash_handle hh;
};

struct sampler {
	struct sampler_options options;
	struct unwinder *unwinder; /* NULL: no stack is walked */
	struct stack_names *names;
	struct cpu_samples *samples;     /* NULL: not now */
	struct blocked_threads *blocked; /* NULL: they are not looked at */
	struct sampled_stack *stacks;
	struct open_call *calls;
	struct backward *backwards;
	pthread_mutex_t agents_lock;
	struct walking_agent *agents; /* the unwinder's thread adds to them */
	uint64_t taken, without_slot, without_stack;
};

/* On the unwinder's thread: names can be had when the process has ended, too. */
static void looked(void *data, pid_t pid)
{
	struct sampler *s = data;

	stack_names_look(s->names, pid);
}

/* ---- agents that ask for walks ----------------------------------------------------------------
 */

static void agent_walks(struct sampler *s, pid_t pid)
{
	struct walking_agent *agent;

	pthread_mutex_lock(&s->agents_lock);
	agent = MAP_FIND(s->agents, &pid);
	if (!agent)
		MAP_ADD(s->agents, pid, &pid);
	pthread_mutex_unlock(&s->agents_lock);
}

bool sampler_walks_calls(struct sampler *s, pid_t pid, bool came)
{
	const struct walking_agent *agent;

	if (came && s->unwinder)
		unwinder_hurry(s->unwinder, pid);
	pthread_mutex_lock(&s->agents_lock);
	agent = MAP_FIND(s->agents, &pid);
	pthread_mutex_unlock(&s->agents_lock);
	return agent;
}

static void agent_forget(struct sampler *s, pid_t pid)
{
	struct walking_agent *agent;

	pthread_mutex_lock(&s->agents_lock);
	agent = MAP_FIND(s->agents, &pid);
	if (agent)
		MAP_DROP(s->agents, agent);
	pthread_mutex_unlock(&s->agents_lock);
}

/*
 * A probe where backward passes begin, or an agent asks for walks, also on that thread. The kernel
 * reads the page of a probe while no process can fork: so none in files that a user's process
 * serves (helper.h). Nor for processes that are no targets: whose probes they would be.
 */
static int found_mark(void *data, pid_t pid, enum code_mark mark, int fd, uint64_t offset)
{
	struct sampler *s = data;
	char path[32];
	int event, r;

	if ((mark == CODE_WALKS && !s->options.nodes && !s->options.agents) ||
	    programs_waker_has(s->options.programs, pid))
		return -EACCES;
	if (fd < 0) { /* ranks that one command has started have one library */
		if (mark == CODE_WALKS)
			agent_walks(s, pid);
		return 0;
	}
	if (helper_is_users(fd))
		return -EACCES;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	event = perf_uprobe_open(path, offset, 0, false);
	if (event < 0)
		return event;
	r = perf_event_attach(
		event,
		programs_fd(s->options.programs, mark == CODE_WALKS ? "on_asked" : "on_backward"),
		false, 0);
	if (r < 0)
		close(event);
	else if (mark == CODE_WALKS)
		agent_walks(s, pid);
	return r < 0 ? r : event;
}

int sampler_new(const struct sampler_options *options, struct sampler **sampler, struct err *err)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	const struct unwinder_maps maps = {
		.code = programs_map(options->programs, "unwind_code"),
		.python = programs_map(options->programs, "unwind_python"),
		.files = programs_map(options->programs, "unwind_files"),
		.rules = programs_map(options->programs, "unwind_rules"),
	};
	const struct unwinder_told told = { looked, found_mark, s };
	int r = 0;

	s->options = *options;
	pthread_mutex_init(&s->agents_lock, NULL);
	if (options->walks)
		r = unwinder_new(&maps, &told, &s->unwinder, err);
	if (r) {
		free(s);
		return r;
	}
	s->names = stack_names_new(&(struct stack_names_options){
		.unwinder = s->unwinder, .lines = options->lines, .renews = options->renews });
	if (options->blocked)
		s->blocked = blocked_threads_new(options->programs);
	*sampler = s;
	return 0;
}

static void forget_stacks(struct sampler *s)
{
	MAP_FREE(s->stacks, free);
}

static void forget_backwards(struct sampler *s)
{
	MAP_FREE(s->backwards, free);
}

static void forget_calls(struct sampler *s)
{
	MAP_FREE(s->calls, free);
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	sampler_end(s);
	forget_stacks(s);
	forget_calls(s);
	forget_backwards(s);
	if (s->unwinder)
		unwinder_free(s->unwinder);
	stack_names_free(s->names);
	blocked_threads_free(s->blocked);
	MAP_FREE(s->agents, free);
	pthread_mutex_destroy(&s->agents_lock);
	free(s);
}

void sampler_unhook(struct sampler *s)
{
	sampler_end(s);
	if (s->unwinder)
		unwinder_stop(s->unwinder);
}

void sampler_expect(struct sampler *s, pid_t pid)
{
	if (s->unwinder)
		unwinder_see(s->unwinder, pid);
	if (s->blocked)
		blocked_threads_expect(s->blocked, pid);
}

static void forget_backward(struct sampler *s, const struct process *process)
{
	struct backward *backward = MAP_FIND(s->backwards, &process->id);

	if (backward)
		MAP_DROP(s->backwards, backward);
}

/* Of most processes nothing was ever looked up. */
static void forget_names(struct sampler *s, uint32_t pid,
                         void (*forget)(struct stack_names *names, const struct process *process))
{
	const struct process *process = pipeline_process_known(s->options.pipeline, pid);

	if (!process)
		return;
	forget(s->names, process);
	forget_backward(s, process);
}

void sampler_forget(struct sampler *s, pid_t pid)
{
	agent_forget(s, pid);
	forget_names(s, (uint32_t)pid, stack_names_forget);
	if (s->unwinder)
		unwinder_forget(s->unwinder, pid);
}

/* Where processes have to use CUDA, the new program has yet to. */
static void execed(struct sampler *s, const struct wire_head *record)
{
	agent_forget(s, (pid_t)record->tgid);
	forget_names(s, record->tgid, stack_names_execed);
	if (!s->unwinder)
		return;
	if (s->options.cuda_only)
		unwinder_forget(s->unwinder, (pid_t)record->tgid);
	else
		unwinder_execed(s->unwinder, (pid_t)record->tgid, record->time_ns);
}

void sampler_held(struct sampler *s, pid_t pid)
{
	if (s->unwinder)
		unwinder_look(s->unwinder, pid, HELD_NS);
}

int sampler_begin(struct sampler *s, uint64_t period_ns, bool wait, struct err *err)
{
	int r = 0;

	if (s->unwinder && wait)
		unwinder_wait(s->unwinder, READY_NS);
	if (s->blocked)
		r = blocked_threads_begin(s->blocked, err);
	if (r || !period_ns)
		return r;
	return cpu_samples_begin(programs_fd(s->options.programs, "on_sample"), period_ns,
	                         &s->samples, err);
}

void sampler_end(struct sampler *s)
{
	cpu_samples_end(s->samples);
	s->samples = NULL;
	if (s->blocked)
		blocked_threads_end(s->blocked);
}

/* ---- records --------------------------------------------------------------------------------- */

static const struct process *process_of(const struct sampler *s, const struct wire_head *record)
{
	return pipeline_process(s->options.pipeline, record->tgid);
}

/* What the programs did not know may be known soon: something was mapped that they were not told
 * of. */
static bool asks_for_a_look(const struct wire_stack_entries *record)
{
	return record->end == END_NO_MAPPING || record->end == END_NO_TABLE;
}

/* One program can have any number of them. Who has few is not to lose them for good: what the
 * programs meet all the time they do not send again by themselves. */
static void forget_all_stacks(struct sampler *s)
{
	forget_stacks(s);
	sampler_send_anew(s);
}

static void on_stack(struct sampler *s, const struct wire_stack_entries *record)
{
	const struct process *process = process_of(s, &record->head);
	const struct sampled_key key = { record->id, process->id, 0 };
	struct sampled_stack *stack;

	if (s->unwinder && asks_for_a_look(record))
		unwinder_see(s->unwinder, (pid_t)record->head.tgid);
	stack = MAP_FIND(s->stacks, &key);
	if (!stack) {
		if (HASH_COUNT(s->stacks) >= STACKS_MAX)
			forget_all_stacks(s);
		stack = MAP_ADD(s->stacks, key, &key);
	}
	stack->person = process->person;
	stack->turn = programs_state(s->options.programs)->stacks_turn;
	stack->stack = stack_names_find(s->names, process, record);
	stack->asked = stack->joined = NULL;
}

/* What an engine's thread does stands under who has asked for it. */
static const struct stack *join(struct sampler *s, const struct process *process,
                                struct sampled_stack *stack)
{
	struct backward *backward = MAP_FIND(s->backwards, &process->id);

	if (!backward || !backward->stack)
		return stack->stack;
	if (stack->asked != backward->stack) {
		stack->joined = stack_names_join(s->names, stack->stack, backward->stack);
		stack->asked = backward->stack;
	}
	return stack->joined ? stack->joined : stack->stack;
}

static const struct stack *find_stack(struct sampler *s, const struct process *process, uint64_t id)
{
	const struct sampled_key key = { id, process->id, 0 };
	struct sampled_stack *stack = MAP_FIND(s->stacks, &key);

	return stack && stack->stack ? join(s, process, stack) : NULL;
}

const struct stack *sampler_numbered_stack(struct sampler *s, uint32_t tgid, uint64_t id)
{
	const struct stack *stack = find_stack(s, pipeline_process(s->options.pipeline, tgid), id);

	s->without_stack += !stack;
	return stack;
}

const struct stack *sampler_stack_of_call(struct sampler *s, uint32_t tgid, uint64_t id)
{
	const struct stack *stack = sampler_numbered_stack(s, tgid, id);

	return stack ? stack_names_of_call(s->names, stack) : NULL;
}

static int on_sample(struct sampler *s, const struct wire_sample *record, struct err *err)
{
	const struct process *process = process_of(s, &record->head);
	const struct sample sample = { .kind = SAMPLE_CPU,
		                       .weight_ns = record->weight_ns,
		                       .stack = find_stack(s, process, record->stack) };
	const struct event event = { .type = EVENT_SAMPLE,
		                     .time_ns = record->head.time_ns,
		                     .process = process,
		                     .tid = record->head.tid,
		                     .sample = &sample };

	s->taken++;
	if (!record->stack)
		s->without_slot++;
	else if (!sample.stack)
		s->without_stack++;
	return pipeline_pass(s->options.pipeline, &event, err);
}

_Static_assert(WIRE_BLOCKED_UNKNOWN == (int)BLOCKED_UNKNOWN &&
                       WIRE_BLOCKED_WOKEN == (int)BLOCKED_WOKEN &&
                       WIRE_BLOCKED_INTERRUPT == (int)BLOCKED_INTERRUPT &&
                       WIRE_BLOCKED_STILL == (int)BLOCKED_STILL &&
                       WIRE_BLOCKED_BEFORE == (int)BLOCKED_BEFORE &&
                       WIRE_BLOCKED_BRIEF == (int)BLOCKED_BRIEF &&
                       WIRE_BLOCKED_SKIPPED == (int)BLOCKED_SKIPPED &&
                       WIRE_BLOCKED_PREEMPTED == (int)BLOCKED_PREEMPTED,
               "the programs tell of blocked time by the numbers of the model");

static int on_blocked(struct sampler *s, const struct wire_blocked *record, struct err *err)
{
	const struct process *process = process_of(s, &record->head);
	struct sample sample = { .kind = SAMPLE_OFF_CPU,
		                 .weight_ns = record->weight_ns,
		                 .stack = record->stack ? find_stack(s, process, record->stack)
		                                        : NULL,
		                 .blocked = (enum blocked)record->how,
		                 .count = record->count };
	const struct event event = { .type = EVENT_SAMPLE,
		                     .time_ns = record->head.time_ns,
		                     .process = process,
		                     .tid = record->head.tid,
		                     .sample = &sample };
	char waker[sizeof(record->waker) + 1] = "", rival[sizeof(record->rival) + 1] = "";

	sample.wait = wait_of(record, sample.stack);
	sample.runnable_ns = record->runnable_ns;
	if (record->rival_pid) {
		memcpy(rival, record->rival, sizeof(record->rival));
		sample.rival = rival;
		sample.rival_pid = record->rival_pid;
	}
	if (sample.blocked == BLOCKED_WOKEN) {
		memcpy(waker, record->waker, sizeof(record->waker));
		sample.waker = waker;
		sample.waker_tid = record->waker_tid;
	}
	s->without_stack += record->stack && !sample.stack;
	return pipeline_pass(s->options.pipeline, &event, err);
}

/* ---- those who are blocked at the end ----------------------------------------------------------
 */

struct finishing {
	struct sampler *sampler;
	struct err *err;
	int r;
};

static void tell_blocked(void *data, const struct wire_blocked *record)
{
	struct finishing *finishing = data;

	if (!finishing->r)
		finishing->r = on_blocked(finishing->sampler, record, finishing->err);
}

int sampler_finish(struct sampler *s, struct err *err)
{
	struct finishing finishing = { .sampler = s, .err = err };

	if (s->blocked)
		blocked_threads_rest(s->blocked, tell_blocked, &finishing);
	return finishing.r;
}

/* ---- calls -------------------------------------------------------------------------------------
 */

static bool is_told(const struct open_call *call)
{
	return !call->begin_ns && !call->asked.walk;
}

/* Threads may come and go without end, and end within a call. */
static void make_room_for_calls(struct sampler *s)
{
	struct open_call *call, *next;

	HASH_ITER (hh, s->calls, call, next) {
		if (is_told(call))
			MAP_DROP(s->calls, call);
	}
	if (HASH_COUNT(s->calls) <= CALLS_MAX / 2)
		return;
	s->without_stack += HASH_COUNT(s->calls);
	forget_calls(s);
}

/* The latest of its thread: those before it have been told of, or will not be. */
static void on_call_stack(struct sampler *s, const struct wire_call_stack *record)
{
	const struct process *process = process_of(s, &record->head);
	struct open_call *call = MAP_FIND(s->calls, &record->head.tid);
	const struct stack *stack;

	if (!call) {
		if (HASH_COUNT(s->calls) >= CALLS_MAX)
			make_room_for_calls(s);
		call = MAP_ADD(s->calls, tid, &record->head.tid);
	}
	stack = find_stack(s, process, record->stack);
	if (record->walk) {
		call->asked.begin_ns = 0;
		call->asked.walk = record->walk;
		call->asked.stack = stack;
	} else {
		call->begin_ns = record->head.time_ns;
		call->stack = stack;
	}
	if (!record->stack)
		s->without_slot++;
	else if (!stack)
		s->without_stack++;
}

void sampler_call_walked(struct sampler *s, const struct wire_call *record)
{
	struct open_call *call = MAP_FIND(s->calls, &record->head.tid);

	if (!call || call->asked.walk != wire_walk(record->head.walk, record->place))
		s->without_stack++;
	else
		call->asked.begin_ns = record->begin_ns;
}

static void on_backward(struct sampler *s, const struct wire_call_stack *record)
{
	const struct process *process = process_of(s, &record->head);
	struct backward *backward = MAP_FIND(s->backwards, &process->id);

	if (!backward) {
		if (HASH_COUNT(s->backwards) >= BACKWARDS_MAX)
			forget_backwards(s);
		backward = MAP_ADD(s->backwards, process, &process->id);
	}
	backward->person = process->person;
	backward->stack = NULL; /* while it is looked up: this one is under nobody */
	backward->stack = find_stack(s, process, record->stack);
}

const struct stack *sampler_stack(struct sampler *s, const struct wire_stack_entries *record)
{
	return find_stack(s, process_of(s, &record->head), record->id);
}

const struct stack *sampler_call_stack(struct sampler *s, uint32_t tid, uint64_t begin_ns)
{
	struct open_call *call = MAP_FIND(s->calls, &tid);

	if (call && call->begin_ns == begin_ns) {
		call->begin_ns = 0;
		return call->stack;
	}
	if (call && call->asked.begin_ns == begin_ns) {
		call->asked.begin_ns = call->asked.walk = 0;
		return call->asked.stack;
	}
	return NULL;
}

static void see(struct sampler *s, const struct wire_head *record)
{
	if (s->unwinder)
		unwinder_see(s->unwinder, (pid_t)record->tgid);
}

int sampler_record(struct sampler *s, const struct wire_head *record, struct err *err)
{
	int r;

	switch (record->type) {
	case WIRE_STACK_ENTRIES:
		on_stack(s, (const struct wire_stack_entries *)record);
		return 1;
	case WIRE_BACKWARD:
		on_backward(s, (const struct wire_call_stack *)record);
		return 1;
	case WIRE_CALL_STACK:
		on_call_stack(s, (const struct wire_call_stack *)record);
		return 1;
	case WIRE_SAMPLE:
		r = on_sample(s, (const struct wire_sample *)record, err);
		return r ? r : 1;
	case WIRE_BLOCKED:
		r = on_blocked(s, (const struct wire_blocked *)record, err);
		return r ? r : 1;
	case WIRE_MAPPED:
		see(s, record);
		return 1;
	case WIRE_THREAD:
		see(s, record);
		break;
	case WIRE_EXEC:
		execed(s, record);
		break;
	case WIRE_EXIT:
		sampler_forget(s, (pid_t)record->tgid);
		break;
	}
	return 0;
}

void sampler_take_lines(struct sampler *s)
{
	stack_names_finish(s->names, LINES_NS);
}

void sampler_take_lines_so_far(struct sampler *s)
{
	stack_names_take_lines(s->names);
}

/* ---- what nobody holds ----------------------------------------------------------------------- */

bool sampler_is_worn(const struct sampler *s)
{
	return stack_names_are_worn(s->names);
}

void sampler_send_anew(struct sampler *s)
{
	__atomic_fetch_add(&programs_state(s->options.programs)->stacks_turn, 1, __ATOMIC_RELAXED);
}

const struct stack *sampler_move(struct sampler *s, uint32_t process, uint64_t person,
                                 const struct stack *stack)
{
	return stack_names_move(s->names, process, person, stack);
}

/* Those that the programs may name without sending them. */
static void move_own(struct sampler *s)
{
	uint32_t turn = programs_state(s->options.programs)->stacks_turn;
	struct sampled_stack *stack, *next;
	struct backward *backward;

	HASH_ITER (hh, s->stacks, stack, next) {
		if (stack->turn != turn) {
			MAP_DROP(s->stacks, stack);
			continue;
		}
		stack->stack = sampler_move(s, stack->key.process, stack->person, stack->stack);
		stack->asked = stack->joined = NULL;
	}
	for (backward = s->backwards; backward; backward = backward->hh.next)
		backward->stack =
			sampler_move(s, backward->process, backward->person, backward->stack);
	forget_calls(s);
}

void sampler_renew(struct sampler *s, void (*move_held)(void *data), void *data)
{
	stack_names_renew_begin(s->names);
	move_held(data);
	move_own(s);
	stack_names_renew_end(s->names);
	malloc_trim(0);
}

bool sampler_news(struct sampler *s, char *text, size_t size)
{
	return stack_names_news(s->names, text, size);
}

void sampler_figures(const struct sampler *s, struct sampler_figures *figures)
{
	memset(figures, 0, sizeof(*figures));
	if (s->unwinder)
		unwinder_figures(s->unwinder, &figures->unwinder);
	stack_names_figures(s->names, &figures->names);
	figures->samples = s->taken;
	figures->without_slot = s->without_slot;
	figures->without_stack = s->without_stack;
	if (s->blocked)
		figures->older = blocked_threads_older(s->blocked, &figures->older_without_room);
}
