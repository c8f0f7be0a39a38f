// SPDX-License-Identifier: MIT
/*
 * Findings about copies and sets: those that the host waits for, those that were asked for
 * asynchronously and cannot be, and small ones that could be one.
 */
#include <stdlib.h>
#include <string.h>

#include "report/findings/findings_rules.h"
#include "analysis/thread_ids.h"

static bool is_managed_or_pinned(enum activity_memory memory)
{
	return memory == ACTIVITY_MEMORY_PINNED || memory == ACTIVITY_MEMORY_MANAGED ||
	       memory == ACTIVITY_MEMORY_MANAGED_STATIC;
}

static struct finding_example example_of(const struct work_done *done, const struct work_call *call,
                                         const struct stack *stack)
{
	uint64_t ns = work_call_ns(call);

	return (struct finding_example){
		.function = call->function,
		.tid = call->tid,
		.begin_ns = call->begin_ns,
		.duration_ns = ns,
		.bytes = done->activity->bytes,
		.cost_ns = ns,
		.stack = stack,
	};
}

/* ---- synchronous copies -------------------------------------------------------------------- */

struct repeated_copies {
	struct finding_cases all;
	uint64_t to_device, to_host, gpu_ns;
};

struct by_process {
	struct repeated_copies *copies;
	size_t n;
};

static void *make_by_process(void)
{
	return xcalloc(1, sizeof(struct by_process));
}

static void free_by_process(void *state)
{
	free(((struct by_process *)state)->copies);
	free(state);
}

/* What a rule says of a process. */
struct by_process_words {
	void (*say)(const struct repeated_copies *copies, struct buf *text);
	const char *estimate, *suggestion;
};

/* One finding of each process for which that is worth it. */
static void judge_by_process(const struct by_process *all, const struct by_process_words *words,
                             const struct finding_rule *rule,
                             const struct finding_verdicts *verdicts)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct finding_process *process = finding_process(verdicts, i);
		const struct repeated_copies *copies = &all->copies[i];
		struct buf text = { 0 };
		struct finding *finding;

		if (!process || !finding_is_worth(process, copies->all.cost_ns))
			continue;
		words->say(copies, &text);
		finding = findings_add(verdicts, rule, process);
		finding_set_cases(verdicts, finding, &copies->all);
		finding_say(finding, &text);
		finding->estimate = words->estimate;
		finding->suggestion = words->suggestion;
	}
}

/* "2 to the device, 1 to the host" */
static void add_directions(struct buf *text, const struct repeated_copies *copies)
{
	buf_printf(text, "%llu to the device, %llu to the host",
	           (unsigned long long)copies->to_device, (unsigned long long)copies->to_host);
}

/* ": 3.1 ms in the calls" */
static void add_time(struct buf *text, const struct repeated_copies *copies)
{
	buf_puts(text, ": ");
	buf_duration(text, copies->all.cost_ns);
	buf_puts(text, " in the calls");
}

/* Copies within a device do not make the host wait, and those within the host are no GPU's. */
static bool crosses(enum api_direction direction)
{
	return direction != DIRECTION_D2D && direction != DIRECTION_H2H;
}

static void sync_copies_call(void *state, const struct finding_call *call)
{
	enum api_direction direction = call->call->args.direction;
	struct by_process *all = state;
	struct finding_example example;
	struct repeated_copies *copies;

	if (call->call->op != OP_COPY || api_is_async(call->call->function->api) ||
	    !crosses(direction))
		return;
	copies = FINDING_AT(all->copies, all->n, call->process->id);
	example = finding_example_of(call);
	finding_case(&copies->all, &example);
	copies->to_device += direction == DIRECTION_H2D;
	copies->to_host += direction == DIRECTION_D2H;
}

static void sync_copies_asked(void *state, const struct work_done *done,
                              const struct work_call *call, const struct stack *stack)
{
	struct by_process *all = state;

	if (done->activity->kind == ACTIVITY_COPY && call->op == OP_COPY &&
	    !api_is_async(call->function->api) && crosses(done->activity->direction))
		FINDING_AT(all->copies, all->n, call->process->id)->gpu_ns +=
			activity_duration_ns(done->activity);
}

static void say_sync_copies(const struct repeated_copies *copies, struct buf *text)
{
	buf_u64(text, copies->all.count);
	buf_puts(text,
	         copies->all.count == 1 ? " synchronous copy of " : " synchronous copies of ");
	buf_bytes(text, copies->all.bytes);
	buf_puts(text, ", ");
	add_directions(text, copies);
	add_time(text, copies);
	if (copies->gpu_ns) {
		buf_puts(text, ", of which the GPU copied for ");
		buf_duration(text, copies->gpu_ns);
	}
}

static void judge_sync_copies(void *state, const struct finding_rule *rule,
                              const struct finding_verdicts *verdicts)
{
	static const struct by_process_words words = {
		.say = say_sync_copies,
		.estimate = "all time in these calls, in which the thread could do nothing else; "
			    "asking for the same copies would still take a few us each",
		.suggestion = "copy with cudaMemcpyAsync from and to pinned memory on a stream of "
			      "its own, and wait only where the data is needed",
	};

	judge_by_process(state, &words, rule, verdicts);
}

const struct finding_rule rule_sync_copies = {
	.name = "sync_copies",
	.title = "copies that the host waits for",
	.needs = NEEDS_DURATIONS,
	.create = make_by_process,
	.call = sync_copies_call,
	.asked = sync_copies_asked,
	.judge = judge_sync_copies,
	.free = free_by_process,
};

/* ---- synchronous sets ---------------------------------------------------------------------- */

/* On device memory cudaMemset does not wait, so the kind of memory decides. */
static void sync_sets_asked(void *state, const struct work_done *done, const struct work_call *call,
                            const struct stack *stack)
{
	struct by_process *all = state;
	struct finding_example example;

	if (done->activity->kind != ACTIVITY_SET || call->op != OP_SET ||
	    api_is_async(call->function->api) || !is_managed_or_pinned(done->activity->destination))
		return;
	example = example_of(done, call, stack);
	finding_case(&FINDING_AT(all->copies, all->n, call->process->id)->all, &example);
}

static void say_sync_sets(const struct repeated_copies *sets, struct buf *text)
{
	finding_count(text, sets->all.count, "synchronous set");
	buf_puts(text, " of pinned or managed memory, ");
	buf_bytes(text, sets->all.bytes);
	add_time(text, sets);
}

static void judge_sync_sets(void *state, const struct finding_rule *rule,
                            const struct finding_verdicts *verdicts)
{
	static const struct by_process_words words = {
		.say = say_sync_sets,
		.estimate = "all time in these calls, in which the thread waited",
		.suggestion = "cudaMemsetAsync, which returns at once",
	};

	judge_by_process(state, &words, rule, verdicts);
}

const struct finding_rule rule_sync_sets = {
	.name = "sync_sets",
	.title = "sets that the host waits for",
	.needs = NEEDS_DURATIONS | NEEDS_GPU,
	.create = make_by_process,
	.asked = sync_sets_asked,
	.judge = judge_sync_sets,
	.free = free_by_process,
};

/* ---- asynchronous copies from and to pageable memory --------------------------------------- */

static void pageable_asked(void *state, const struct work_done *done, const struct work_call *call,
                           const struct stack *stack)
{
	const struct activity *activity = done->activity;
	struct by_process *all = state;
	struct finding_example example;
	struct repeated_copies *copies;

	if (activity->kind != ACTIVITY_COPY || call->op != OP_COPY ||
	    !api_is_async(call->function->api) ||
	    (activity->source != ACTIVITY_MEMORY_PAGEABLE &&
	     activity->destination != ACTIVITY_MEMORY_PAGEABLE))
		return;
	copies = FINDING_AT(all->copies, all->n, call->process->id);
	example = example_of(done, call, stack);
	finding_case(&copies->all, &example);
	copies->to_device += activity->direction == DIRECTION_H2D;
	copies->to_host += activity->direction == DIRECTION_D2H;
	copies->gpu_ns += activity_duration_ns(activity);
}

static void say_pageable(const struct repeated_copies *copies, struct buf *text)
{
	buf_puts(text, "asynchronous copies of pageable memory, ");
	add_directions(text, copies);
	buf_puts(text, ", ");
	buf_bytes(text, copies->all.bytes);
	add_time(text, copies);
	buf_puts(text, ", while the GPU copied for ");
	buf_duration(text, copies->gpu_ns);
}

static void judge_pageable(void *state, const struct finding_rule *rule,
                           const struct finding_verdicts *verdicts)
{
	static const struct by_process_words words = {
		.say = say_pageable,
		.estimate = "all time in these calls: the driver copies pageable memory through a "
			    "buffer of its own before, or until, they return",
		.suggestion = "pin the memory on the host's side (cudaHostAlloc, cudaHostRegister; "
			      "pin_memory=True in PyTorch's DataLoader)",
	};

	judge_by_process(state, &words, rule, verdicts);
}

const struct finding_rule rule_pageable_copies = {
	.name = "pageable_copies",
	.title = "asynchronous copies from or to pageable memory",
	.needs = NEEDS_DURATIONS | NEEDS_GPU,
	.create = make_by_process,
	.asked = pageable_asked,
	.judge = judge_pageable,
	.free = free_by_process,
};

/* ---- small copies in a row ----------------------------------------------------------------- */

/* The row that a thread is in. */
struct findings_copy_row {
	enum api_direction direction;
	uint64_t n;
	struct finding_example first;
	struct finding_cases rest; /* of this row, after the first */
};

struct small_copies {
	struct findings_copy_row *rows; /* by thread */
	size_t n_rows;
	struct small {
		struct finding_loop copies; /* that could have gone with the first of their row */
		struct finding_loop rows;
	} * processes;
	size_t n_processes;
};

static void *make_small(void)
{
	return xcalloc(1, sizeof(struct small_copies));
}

static void free_small(void *state)
{
	struct small_copies *all = state;

	free(all->rows);
	free(all->processes);
	free(all);
}

static void add_cases(struct finding_cases *into, const struct finding_cases *from,
                      const struct finding_example *worst)
{
	into->count += from->count;
	into->cost_ns += from->cost_ns;
	into->bytes += from->bytes;
	finding_add_stacks(&into->stacks, &from->stacks);
	if (into->count == from->count || worst->cost_ns > into->worst.cost_ns)
		into->worst = *worst;
}

/* The row is over: tells of it where it is long enough. */
static void end_row(struct small_copies *all, struct findings_copy_row *row,
                    const struct finding_call *call)
{
	struct small *small;
	struct finding_example worst = row->first;

	if (row->n >= LIMIT_SMALL_ROW) {
		small = FINDING_AT(all->processes, all->n_processes, call->process->id);
		worst.cost_ns = row->rest.cost_ns;
		add_cases(finding_loop_at(&small->copies, call->octave), &row->rest, &worst);
		finding_case(finding_loop_at(&small->rows, call->octave), &worst);
	}
	memset(row, 0, sizeof(*row));
}

static void small_copies_call(void *state, const struct finding_call *call)
{
	enum api_direction direction = call->call->args.direction;
	struct small_copies *all = state;
	struct finding_example example;
	bool is_small;
	struct findings_copy_row *row;

	if (call->thread == THREAD_ID_OTHERS)
		return;
	is_small = call->call->op == OP_COPY && !(call->call->flags & CALL_SIZE_UNKNOWN) &&
	           call->call->args.bytes < LIMIT_SMALL_COPY && direction != DIRECTION_H2H;
	if (!is_small && call->thread >= all->n_rows)
		return;
	row = FINDING_AT(all->rows, all->n_rows, call->thread);
	if (row->n && (!is_small || row->direction != direction))
		end_row(all, row, call);
	if (!is_small)
		return;
	example = finding_example_of(call);
	if (row->n++)
		finding_case(&row->rest, &example);
	else
		row->first = example;
	row->direction = direction;
}

static void judge_small(void *state, const struct finding_rule *rule,
                        const struct finding_verdicts *verdicts)
{
	struct small_copies *all = state;

	for (size_t i = 0; i < all->n_processes; i++) {
		const struct finding_process *process = finding_process(verdicts, i);
		struct finding_cases copies, rows;
		struct buf text = { 0 };
		struct finding *finding;

		if (!process || process->launches < LIMIT_LOOP_LAUNCHES)
			continue;
		copies = finding_loop_end(&all->processes[i].copies, process->octave);
		rows = finding_loop_end(&all->processes[i].rows, process->octave);
		if (rows.count < LIMIT_LOOP_ROUNDS || !finding_is_worth(process, copies.cost_ns))
			continue;
		buf_printf(&text,
		           "in the steady part of the run, %llu copies below 64 KiB came in %llu "
		           "rows of %d or more in one direction with no other call between them: ",
		           (unsigned long long)(copies.count + rows.count),
		           (unsigned long long)rows.count, LIMIT_SMALL_ROW);
		buf_duration(&text, copies.cost_ns);
		buf_puts(&text, " in all calls but the first of each row");
		finding = findings_add(verdicts, rule, process);
		finding_set_cases(verdicts, finding, &copies);
		finding_say(finding, &text);
		finding->estimate = "the time in the calls that one copy for each row would save; "
				    "gathering the data costs a part of it";
		finding->suggestion = "gather what is copied in a row in one pinned buffer and "
				      "copy it once, or use cudaMemcpyBatchAsync";
	}
}

const struct finding_rule rule_small_copies = {
	.name = "small_copies",
	.title = "small copies that could be one",
	.needs = NEEDS_DURATIONS,
	.create = make_small,
	.call = small_copies_call,
	.judge = judge_small,
	.free = free_small,
};
