// SPDX-License-Identifier: MIT
#include "account/facts.h"

#include <stdlib.h>
#include <string.h>

#include "account/facts_inside.h"
#include "account/gpu_time.h"
#include "account/steps.h"
#include "analysis/by_id.h"
#include "analysis/gpu_ids.h"
#include "analysis/thread_ids.h"
#include "analysis/work.h"
#include "base/hash.h"
#include "base/xalloc.h"

struct fact_name {
	char *text;
	uint32_t number;
	UT_hash_handle hh;
};

/* Of a GPU, in the order in which it came. */
struct fact_gpu_works {
	struct fact_work *rows;
	size_t n;
};

struct facts_own {
	struct thread_ids *ids;
	struct gpu_ids *gpus;
	size_t n_contexts, room_threads;
	struct fact_gpu_works *works; /* until the end, by GPU */
	size_t n_works;
	uint64_t bytes;
	struct fact_name *names; /* of ranges, without their numbers */
	struct buf name;
	uint64_t *ended; /* when each process did, by id; 0: not */
	size_t n_ended;
	uint8_t *hosts; /* whether each process put functions of the host on streams, by id */
	size_t n_hosts;
	struct kernels_looked_at looked_at;
	size_t n_known; /* of the facts' kernels */
};

void facts_init(struct facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	facts->spill = spill_new();
	facts->gpus = xcalloc(1, sizeof(*facts->gpus));
	facts->chains = chains_new();
	facts->own = xcalloc(1, sizeof(*facts->own));
	facts->own->ids = thread_ids_new();
	facts->own->gpus = gpu_ids_new();
	collectives_init(&facts->collectives);
}

static void facts_free_names(struct facts_own *own)
{
	struct fact_name *name, *next;

	HASH_ITER (hh, own->names, name, next) {
		HASH_DEL(own->names, name);
		free(name->text);
		free(name);
	}
	buf_free(&own->name);
}

/* Those of each GPU behind those of the one before. */
static void facts_gather_works(struct facts *facts)
{
	struct facts_own *own = facts->own;

	for (size_t i = 0; i < own->n_works; i++) {
		struct fact_gpu_works *of = &own->works[i];

		if (!facts->n_works) {
			facts->works = of->rows;
			facts->n_works = of->n;
			continue;
		}
		for (size_t k = 0; k < of->n; k = spill_next(facts->spill, k)) {
			*SPILL_ADD(facts->spill, facts->works, facts->n_works) = of->rows[k];
		}
		spill_drop(facts->spill, of->rows);
	}
	free(own->works);
	own->works = NULL;
	own->n_works = 0;
}

void facts_forget(struct facts *facts)
{
	for (size_t i = 0; i < facts->n_threads; i++) {
		struct fact_thread *thread = &facts->threads[i];

		spill_drop(facts->spill, thread->calls);
		spill_drop(facts->spill, thread->samples);
		spill_drop(facts->spill, thread->rests);
		spill_drop(facts->spill, thread->sums);
		thread->calls = NULL;
		thread->samples = NULL;
		thread->rests = NULL;
		thread->sums = NULL;
		thread->n_calls = thread->n_samples = thread->n_rests = thread->n_sums = 0;
	}
	if (*facts->gpus)
		gpu_times_free(*facts->gpus, facts);
	*facts->gpus = NULL;
	facts_gather_works(facts);
	spill_drop(facts->spill, facts->works);
	spill_drop(facts->spill, facts->ranges);
	facts->works = NULL;
	facts->ranges = NULL;
	facts->n_works = facts->n_ranges = 0;
}

void facts_clear(struct facts *facts)
{
	struct facts_own *own = facts->own;

	if (!own)
		return;
	facts_forget(facts);
	facts_free_names(own);
	thread_ids_free(own->ids);
	gpu_ids_free(own->gpus);
	FREE_ALL(own->ended, own->looked_at.by_id, facts->kernels, own->hosts, own, facts->threads,
	         facts->contexts, facts->pids, facts->stacks);
	spill_drop(facts->spill, facts->unmeasured);
	free(facts->unwatched);
	spill_drop(facts->spill, facts->busy);
	free(facts->talks);
	free(facts->call_works);
	collectives_clear(&facts->collectives);
	chains_free(facts->chains);
	free(facts->gpus);
	spill_free(facts->spill);
	memset(facts, 0, sizeof(*facts));
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define FACTS_TIMES 48 /* what rows are of a file's bytes, at most */
#define FACTS_MOST  (4ull << 30)

static uint64_t facts_bytes = FACTS_BYTES;

void facts_expect(uint64_t file_bytes)
{
	uint64_t bytes =
		file_bytes < FACTS_MOST / FACTS_TIMES ? file_bytes * FACTS_TIMES : FACTS_MOST;

	facts_bytes = bytes > FACTS_BYTES ? bytes : FACTS_BYTES;
}

static bool facts_have_room(const struct facts *facts, size_t bytes)
{
	uint64_t all = facts->own->bytes + bytes;

	return all <= FACTS_BYTES || (all <= facts_bytes && !spill_is_memory(facts->spill));
}

/* The next row of an array, zeroed; NULL, and counted: there is no room. */
static void *fact_add(struct facts *facts, void *array, size_t *n, size_t bytes)
{
	char **rows = array;

	if (!facts_have_room(facts, bytes)) {
		facts->left_out++;
		return NULL;
	}
	facts->own->bytes += bytes;
	*rows = spill_room(facts->spill, *rows, *n, bytes);
	memset(*rows + *n * bytes, 0, bytes);
	return *rows + (*n)++ * bytes;
}

#define FACT_ADD(facts, owner, name)                                                               \
	fact_add(facts, &(owner)->name, &(owner)->n_##name, sizeof(*(owner)->name))

static uint32_t fact_file_of(const struct event *event)
{
	return 1u << (event->process->file & 31);
}

static struct fact_thread *fact_thread_of(struct facts *facts, const struct event *event)
{
	uint32_t id = thread_ids_of(facts->own->ids, event);
	size_t before = facts->n_threads;

	if (id >= before) {
		struct facts_own *own = facts->own;

		facts->threads =
			by_id_room(facts->threads, &own->room_threads, sizeof(*facts->threads), id);
		facts->n_threads = (size_t)id + 1;
	}

	struct fact_thread *thread = &facts->threads[id];

	if (!thread->process) {
		facts->files |= fact_file_of(event);
		thread->process = event->process;
		thread->tid = id == THREAD_ID_OTHERS ? 0 : event->tid;
		thread->first_ns = event->time_ns;
	}
	if (facts_time(event->time_ns) > thread->last_ns)
		thread->last_ns = facts_time(event->time_ns);
	return thread;
}

/* The number of a stack and 1, until all is known of its frames: facts_place() makes it a chain. */
static uint32_t fact_stack_of(struct facts *facts, const struct stack *stack)
{
	if (!stack || stack->id == UINT32_MAX)
		return 0;
	*BY_ID(facts->stacks, facts->n_stacks, stack->id) = stack;
	return stack->id + 1;
}

#define FACTS_AT_ONCE_NS 50000 /* from a copy to the wait for it */

/* The second is the wait for the first, which the thread made before: together they are what one
 * call is that copies and waits. */
static void fact_calls_pair(struct fact_call *copy, struct fact_call *wait)
{
	if (copy->op != OP_COPY || wait->op != OP_SYNC || !wait->waits_all ||
	    wait->begin_ns < copy->end_ns || wait->begin_ns - copy->end_ns > FACTS_AT_ONCE_NS)
		return;
	copy->waited = wait->waited = true;
	wait->small = copy->small;
	wait->to_host = copy->to_host;
}

static void fact_call_add(struct facts *facts, const struct event *event)
{
	const struct call *call = event->call;

	if (call->flags & CALL_NESTED)
		return;

	struct fact_thread *thread = fact_thread_of(facts, event);
	struct fact_call *row = FACT_ADD(facts, thread, calls);

	if (!row)
		return;
	row->begin_ns = facts_time(call->begin_ns);
	row->end_ns = facts_time(call->end_ns > call->begin_ns ? call->end_ns : call->begin_ns);
	row->function = call->function;
	row->op = (uint8_t)call->op;
	row->open = call->flags & CALL_UNFINISHED;
	row->chain = fact_stack_of(facts, call->stack);
	row->kernel = call->kernel ? call->kernel->id + 1 : 0;
	row->to_host = call->op == OP_COPY && !(call->flags & CALL_SIZE_UNKNOWN) &&
	               call->args.bytes >= FACTS_SMALL_COPY &&
	               call->args.direction == DIRECTION_D2H;
	if (call->function->api) {
		if (call->op == OP_COPY && !(call->flags & CALL_SIZE_UNKNOWN) &&
		    call->args.bytes < FACTS_SMALL_COPY && call->args.direction != DIRECTION_H2H)
			row->small = (uint8_t)(1 + call->args.direction);
		row->blocking = (call->op == OP_COPY || call->op == OP_SET) &&
		                !api_is_async(call->function->api);
	}
	row->waits_all =
		row->blocking || (call->op == OP_SYNC && !strstr(call->function->name, "Event"));
	if (thread->n_calls > 1 && thread->last_stream == call->args.stream)
		fact_calls_pair(row - 1, row);
	thread->last_stream = call->args.stream;
	row->stream = (uint32_t)(call->args.stream ^ call->args.stream >> 32);
	if (call->op == OP_HOST_LAUNCH)
		*BY_ID(facts->own->hosts, facts->own->n_hosts, event->process->id) = 1;
	if (call_asks_for_work(call)) {
		row->correlation = call->correlation;
		thread->asks++;
	}
}

static enum fact_class fact_class_of(struct facts *facts, const struct activity *activity)
{
	const struct kernel *kernel = activity->kernel;

	if (activity_is_transfer(activity))
		return FACT_COPY;
	return kernel && kernel_is_communication(&facts->own->looked_at, kernel)
	               ? FACT_COMMUNICATION
	               : FACT_KERNEL;
}

static uint32_t fact_kernel_of(struct facts *facts, const struct kernel *kernel)
{
	if (!kernel || kernel->id == UINT32_MAX)
		return 0;
	*BY_ID(facts->kernels, facts->own->n_known, kernel->id) = kernel;
	return kernel->id + 1;
}

static bool fact_is_pageable(const struct activity *activity)
{
	return activity->kind == ACTIVITY_COPY &&
	       (activity->source == ACTIVITY_MEMORY_PAGEABLE ||
	        activity->destination == ACTIVITY_MEMORY_PAGEABLE);
}

static bool fact_has_few_blocks(const struct activity *activity)
{
	uint64_t blocks = (uint64_t)activity->grid[0] * activity->grid[1];

	return activity->kind == ACTIVITY_KERNEL && blocks && blocks <= FACTS_FEW_BLOCKS &&
	       activity->grid[2] && blocks * activity->grid[2] <= FACTS_FEW_BLOCKS;
}

static void fact_work_add(struct facts *facts, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct facts_own *own = facts->own;
	uint32_t gpu = gpu_ids_of(own->gpus, event);
	struct fact_work *row = NULL;

	if (gpu == GPU_ID_NONE) {
		facts->left_out++;
	} else {
		struct fact_gpu_works *works = BY_ID(own->works, own->n_works, gpu);

		row = fact_add(facts, &works->rows, &works->n, sizeof(*row));
	}
	if (!row)
		return;
	facts->files_works |= fact_file_of(event);
	if (gpu >= own->n_contexts || !facts->contexts[gpu])
		*BY_ID(facts->contexts, own->n_contexts, gpu) = activity->context;
	row->gpu = gpu;
	row->begin_ns = facts_time(activity->begin_ns);
	row->end_ns = facts_time(activity->begin_ns + activity_duration_ns(activity));
	row->correlation = activity->correlation;
	row->process = event->process;
	row->device = activity->device;
	row->stream = activity->stream;
	row->class = (uint8_t)fact_class_of(facts, activity);
	if (row->class == FACT_COMMUNICATION)
		collectives_kernel(&facts->collectives, event);
	row->kind = (uint8_t)activity->kind;
	row->direction = (uint8_t)activity->direction;
	row->kernel = fact_kernel_of(facts, activity->kernel);
	row->chain = fact_stack_of(facts, activity->stack);
	row->pageable = fact_is_pageable(activity);
	row->few = fact_has_few_blocks(activity);
}

static uint32_t fact_name_of(struct facts_own *own)
{
	struct fact_name *name;

	HASH_FIND_STR(own->names, own->name.data, name);
	if (!name) {
		name = xcalloc(1, sizeof(*name));
		name->text = xstrdup(own->name.data);
		name->number = HASH_COUNT(own->names);
		HASH_ADD_KEYPTR(hh, own->names, name->text, strlen(name->text), name);
	}
	return name->number;
}

static void fact_range_add(struct facts *facts, const struct event *event)
{
	const struct range *range = event->range;
	struct facts_own *own = facts->own;

	if (range->kind == RANGE_NOT_MEASURED) {
		struct fact_span *row =
			fact_add(facts, &facts->unmeasured, &facts->n_unmeasured, sizeof(*row));

		if (row)
			*row = (struct fact_span){ facts_time(range->begin_ns),
				                   facts_time(range->end_ns), event->process->id };
		return;
	}
	if (range->kind != RANGE_PUSHPOP || !event->tid || range->end_ns <= range->begin_ns)
		return;

	struct fact_range *row = fact_add(facts, &facts->ranges, &facts->n_ranges, sizeof(*row));

	if (!row)
		return;
	buf_reset(&own->name);
	buf_puts(&own->name, ""); /* never NULL */
	row->likely = steps_name(range->name, &own->name);
	row->begin_ns = facts_time(range->begin_ns);
	row->end_ns = facts_time(range->end_ns);
	row->thread = (uint32_t)(fact_thread_of(facts, event) - facts->threads);
	row->depth = range->depth;
	row->name = fact_name_of(own);
	own->bytes += own->name.len;
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool frame_is_python_core(const struct stack_frame *frame)
{
	return frame->module &&
	       (!strncmp(frame->module, "python", 6) || !strncmp(frame->module, "libpython", 9));
}

/*
 * Python takes the lock of an interpreter by a condition variable, for 5 ms at a time; its other
 * locks are semaphores.
 */
static bool stack_waits_for_gil(const struct stack *stack)
{
	for (size_t i = 0; stack && i + 1 < stack->n_frames; i++) {
		const char *function = stack->frames[i]->function;

		if (stack->frames[i]->kind == FRAME_PYTHON)
			return false;
		if (function && !strncmp(function, "pthread_cond_", 13))
			return frame_is_python_core(stack->frames[i + 1]);
	}
	return false;
}

/* The kernel's frames are the innermost. */
static bool stack_is_fault(const struct stack *stack)
{
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		const struct stack_frame *frame = stack->frames[i];

		if (frame->kind != FRAME_KERNEL_MODE)
			return false;
		if (frame->function && (!strcmp(frame->function, "handle_mm_fault") ||
		                        strstr(frame->function, "exc_page_fault") ||
		                        !strcmp(frame->function, "do_page_fault")))
			return true;
	}
	return false;
}

static void fact_rest_add(struct facts *facts, const struct event *event)
{
	const struct sample *sample = event->sample;
	struct fact_thread *thread = fact_thread_of(facts, event);
	struct fact_rest *row = FACT_ADD(facts, thread, rests);
	uint64_t end_ns = facts_time(event->time_ns);
	uint64_t weight = sample->weight_ns < end_ns ? sample->weight_ns : end_ns;
	uint64_t ready = sample->runnable_ns < weight ? sample->runnable_ns : weight;

	facts->files_rests |= fact_file_of(event);
	if (!row)
		return;
	row->begin_ns = end_ns - weight;
	row->end_ns = end_ns;
	row->ready_ns = end_ns - ready;
	if (sample->blocked == BLOCKED_PREEMPTED)
		row->ready_ns = row->begin_ns;
	row->chain = fact_stack_of(facts, sample->stack);
	row->waker = FACTS_NONE;
	row->waker_tid = sample->blocked == BLOCKED_WOKEN ? sample->waker_tid : 0;
	row->rival_pid = sample->rival_pid;
	row->wait = (uint8_t)sample->wait;
	row->how = (uint8_t)sample->blocked;
	row->gil = sample->wait == WAIT_LOCK && stack_waits_for_gil(sample->stack);
	strncpy(row->rival, sample->rival ? sample->rival : "", sizeof(row->rival) - 1);
}

/* The sums of a thread are told at once. */
static void fact_sum_add(struct facts *facts, const struct event *event)
{
	const struct sample *sample = event->sample;
	struct fact_thread *thread = fact_thread_of(facts, event);
	uint64_t end_ns = facts_time(event->time_ns);
	struct fact_sum *row = thread->n_sums ? &thread->sums[thread->n_sums - 1] : NULL;

	if (!row || row->end_ns != end_ns)
		row = FACT_ADD(facts, thread, sums);
	if (!row)
		return;
	row->end_ns = end_ns;
	facts->files_rests |= fact_file_of(event);
	*(sample->wait == WAIT_CPU ? &row->ready_ns : &row->blocked_ns) +=
		facts_time(sample->weight_ns);
}

bool facts_stack_polls(const struct stack *stack)
{
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		const struct stack_frame *frame = stack->frames[i];

		if (frame->kind == FRAME_CUDA && frame->function &&
		    (strstr(frame->function, "EventQuery") ||
		     strstr(frame->function, "StreamQuery")))
			return true;
	}
	return false;
}

static void fact_cpu_add(struct facts *facts, const struct event *event)
{
	const struct stack *stack = event->sample->stack;
	struct fact_thread *thread = fact_thread_of(facts, event);
	struct fact_sample *row = FACT_ADD(facts, thread, samples);

	facts->files_samples |= fact_file_of(event);
	if (!row)
		return;
	*row = (struct fact_sample){ facts_time(event->time_ns), fact_stack_of(facts, stack),
		                     stack_is_fault(stack) };
	if (facts_stack_polls(stack)) {
		thread->polls++;
		thread->poll_chain = row->chain;
	}
}

static void fact_sample_add(struct facts *facts, const struct event *event)
{
	if (sample_is_stretch(event->sample))
		fact_rest_add(facts, event);
	else if (event->sample->blocked == BLOCKED_BRIEF ||
	         event->sample->blocked == BLOCKED_SKIPPED)
		fact_sum_add(facts, event);
	else if (event->sample->kind == SAMPLE_CPU)
		fact_cpu_add(facts, event);
}

#define BUSY_LONGEST_NS 20000000ull

static void fact_busy_add(struct facts *facts, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;
	struct fact_busy *row = facts->n_busy ? &facts->busy[facts->n_busy - 1] : NULL;

	if (sample->source != GPU_METRICS_STRETCHES || sample->end_ns <= sample->begin_ns)
		return;
	/* Stretches that differ only in what kernels use are one here. */
	if (row && row->gpu == sample->gpu && row->busy == GPU_SHARE_WHOLE &&
	    sample->value[GPU_METRIC_BUSY] == GPU_SHARE_WHOLE && row->end_ns == sample->begin_ns &&
	    sample->end_ns - row->begin_ns <= BUSY_LONGEST_NS) {
		row->end_ns = facts_time(sample->end_ns);
		return;
	}
	row = fact_add(facts, &facts->busy, &facts->n_busy, sizeof(*row));
	if (!row)
		return;
	row->begin_ns = facts_time(sample->begin_ns);
	row->end_ns = facts_time(sample->end_ns);
	row->gpu = sample->gpu;
	if (sample->value[GPU_METRIC_BUSY] > 0)
		row->busy = (uint16_t)sample->value[GPU_METRIC_BUSY];
	if (sample->value[GPU_METRIC_MEMORY_BUSY] > 0 && !row->busy)
		row->copies = (uint16_t)sample->value[GPU_METRIC_MEMORY_BUSY];
}

static void fact_exit(struct facts *facts, const struct event *event)
{
	struct facts_own *own = facts->own;

	*BY_ID(own->ended, own->n_ended, event->process->id) = event->time_ns;
}

void facts_event(struct facts *facts, const struct event *event)
{
	switch (event->type) {
	case EVENT_CALL:
		fact_call_add(facts, event);
		collectives_event(&facts->collectives, event);
		break;
	case EVENT_OTHER_CALL:
		collectives_event(&facts->collectives, event);
		break;
	case EVENT_ACTIVITY:
		fact_work_add(facts, event);
		break;
	case EVENT_RANGE:
		fact_range_add(facts, event);
		break;
	case EVENT_SAMPLE:
		fact_sample_add(facts, event);
		break;
	case EVENT_THREAD:
		memcpy(fact_thread_of(facts, event)->comm, event->thread->comm,
		       sizeof(event->thread->comm));
		break;
	case EVENT_EXIT:
		fact_exit(facts, event);
		break;
	case EVENT_METRICS:
		fact_busy_add(facts, event);
		break;
	default:
		break;
	}
}

bool facts_ended(const struct facts *facts, const struct process *process)
{
	return process->id < facts->own->n_ended && facts->own->ended[process->id];
}

bool facts_has_host_functions(const struct facts *facts, const struct process *process)
{
	return process->id < facts->own->n_hosts && facts->own->hosts[process->id];
}

void facts_end(struct facts *facts, const struct run_info *run)
{
	facts->run = run;
	facts->n_gpus = gpu_ids_count(facts->own->gpus);
	facts_gather_works(facts);
	facts_order(facts);
	facts_ranks(facts);
	facts_busy_make_works(facts);
	facts_watched(facts);
	facts_place(facts);
}
