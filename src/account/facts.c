// SPDX-License-Identifier: MIT
#include "account/facts.h"

#include <stdlib.h>
#include <string.h>

#include "account/steps.h"
#include "analysis/by_id.h"
#include "analysis/gpu_ids.h"
#include "analysis/gpu_work.h"
#include "analysis/thread_ids.h"
#include "analysis/work.h"
#include "base/hash.h"
#include "base/xalloc.h"

#define GIL_AGAIN_NS 300000 /* Python's lock is waited for again so soon after each 5 ms */

/* A call that work can name. */
struct fact_ask {
	uint64_t correlation;
	uint32_t process, thread, index;
};

struct fact_name {
	char *text;
	uint32_t number;
	UT_hash_handle hh;
};

struct facts_own {
	struct thread_ids *ids;
	struct gpu_ids *gpus;
	struct fact_ask *asks;
	size_t n_asks;
	size_t room_threads, room_works, room_ranges, room_unmeasured;
	uint64_t bytes;
	struct fact_name *names; /* of ranges, without their numbers */
	struct buf name;
	uint64_t *ended; /* when each process did, by id; 0: not */
	size_t n_ended;
	uint8_t *kernels; /* enum fact_class and 1, by id; 0: not looked at */
	size_t n_kernels;
};

void facts_init(struct facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	facts->chains = chains_new();
	facts->own = xcalloc(1, sizeof(*facts->own));
	facts->own->ids = thread_ids_new();
	facts->own->gpus = gpu_ids_new();
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

void facts_clear(struct facts *facts)
{
	struct facts_own *own = facts->own;

	if (!own)
		return;
	for (size_t i = 0; i < facts->n_threads; i++) {
		free(facts->threads[i].calls);
		free(facts->threads[i].samples);
		free(facts->threads[i].rests);
	}
	facts_free_names(own);
	thread_ids_free(own->ids);
	gpu_ids_free(own->gpus);
	free(own->asks);
	free(own->ended);
	free(own->kernels);
	free(own);
	free(facts->threads);
	free(facts->works);
	free(facts->ranges);
	free(facts->unmeasured);
	chains_free(facts->chains);
	memset(facts, 0, sizeof(*facts));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The next row of an array, zeroed; NULL, and counted: there is no room. */
static void *fact_add(struct facts *facts, void *array, size_t *n, size_t *room, size_t bytes)
{
	char **rows = array;

	if (facts->own->bytes + bytes > FACTS_BYTES) {
		facts->left_out++;
		return NULL;
	}
	facts->own->bytes += bytes;
	if (*n == *room) {
		*room = *room ? 2 * *room : 16;
		*rows = xrealloc(*rows, *room * bytes);
	}
	memset(*rows + *n * bytes, 0, bytes);
	return *rows + (*n)++ * bytes;
}

#define FACT_ADD(facts, owner, name)                                                               \
	fact_add(facts, &(owner)->name, &(owner)->n_##name, &(owner)->room_##name,                 \
	         sizeof(*(owner)->name))

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
		thread->process = event->process;
		thread->tid = id == THREAD_ID_OTHERS ? 0 : event->tid;
		thread->first_ns = event->time_ns;
	}
	if (event->time_ns > thread->last_ns)
		thread->last_ns = event->time_ns;
	return thread;
}

/* What a stack of CUDA's or the kernel's frames alone says is no place. */
static uint32_t fact_chain_of(struct facts *facts, const struct stack *stack)
{
	uint32_t chain = chains_of(facts->chains, stack);
	const struct stack_frame *frame = chains_frame(facts->chains, chain);

	return frame && (frame->kind == FRAME_CUDA || frame->kind == FRAME_KERNEL_MODE ||
	                 frame->kind == FRAME_DRIVER)
	               ? 0
	               : chain;
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
	row->begin_ns = call->begin_ns;
	row->end_ns = call->end_ns > call->begin_ns ? call->end_ns : call->begin_ns;
	row->function = call->function;
	row->op = (uint8_t)call->op;
	row->open = call->flags & CALL_UNFINISHED;
	row->chain = fact_chain_of(facts, call->stack);
	row->kernel = call->kernel ? call->kernel->id + 1 : 0;
	if (call->function->api) {
		row->memory = (uint8_t)api_memory(call->function->api);
		row->direction = (uint8_t)call->args.direction;
		row->blocking = (call->op == OP_COPY || call->op == OP_SET) &&
		                !api_is_async(call->function->api);
	}
	if (call_asks_for_work(call)) {
		row->correlation = call->correlation;
		thread->asks++;
	}
}

static enum fact_class fact_class_of(struct facts *facts, const struct activity *activity)
{
	struct facts_own *own = facts->own;
	const struct kernel *kernel = activity->kernel;

	if (activity->kind == ACTIVITY_COPY || activity->kind == ACTIVITY_SET)
		return FACT_COPY;
	if (!kernel)
		return FACT_KERNEL;
	own->kernels = by_id_room(own->kernels, &own->n_kernels, 1, kernel->id);
	if (!own->kernels[kernel->id])
		own->kernels[kernel->id] =
			1 + (kernel->name && kernel_name_is_communication(kernel->name)
		                     ? FACT_COMMUNICATION
		                     : FACT_KERNEL);
	return own->kernels[kernel->id] - 1;
}

static bool fact_is_pageable(const struct activity *activity)
{
	return activity->kind == ACTIVITY_COPY &&
	       (activity->source == ACTIVITY_MEMORY_PAGEABLE ||
	        activity->destination == ACTIVITY_MEMORY_PAGEABLE);
}

static void fact_work_add(struct facts *facts, const struct event *event)
{
	const struct activity *activity = event->activity;
	struct facts_own *own = facts->own;
	uint32_t gpu = gpu_ids_of(own->gpus, event);
	struct fact_work *row = NULL;

	if (gpu == GPU_ID_NONE)
		facts->left_out++;
	else
		row = fact_add(facts, &facts->works, &facts->n_works, &own->room_works,
		               sizeof(*row));
	if (!row)
		return;
	row->gpu = gpu;
	row->begin_ns = activity->begin_ns;
	row->end_ns = activity->begin_ns + activity_duration_ns(activity);
	row->correlation = activity->correlation;
	row->process = event->process;
	row->kernel = activity->kernel;
	row->graph = activity->graph;
	row->device = activity->device;
	row->stream = activity->stream;
	row->class = (uint8_t)fact_class_of(facts, activity);
	row->direction = (uint8_t)activity->direction;
	row->pageable = fact_is_pageable(activity);
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
		struct fact_span *row = fact_add(facts, &facts->unmeasured, &facts->n_unmeasured,
		                                 &own->room_unmeasured, sizeof(*row));

		if (row)
			*row = (struct fact_span){ range->begin_ns, range->end_ns };
		return;
	}
	if (range->kind != RANGE_PUSHPOP || !event->tid || range->end_ns <= range->begin_ns)
		return;

	struct fact_range *row =
		fact_add(facts, &facts->ranges, &facts->n_ranges, &own->room_ranges, sizeof(*row));

	if (!row)
		return;
	buf_reset(&own->name);
	buf_puts(&own->name, ""); /* never NULL */
	row->likely = steps_name(range->name, &own->name);
	row->begin_ns = range->begin_ns;
	row->end_ns = range->end_ns;
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
		if (function && (!strncmp(function, "pthread_cond_", 13) ||
		                 !strncmp(function, "__pthread_cond_", 15)))
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
	uint64_t weight = sample->weight_ns < event->time_ns ? sample->weight_ns : event->time_ns;
	uint64_t ready = sample->runnable_ns < weight ? sample->runnable_ns : weight;
	const char *other = sample->waker ? sample->waker : sample->rival;

	facts->rests = true;
	if (!row)
		return;
	row->begin_ns = event->time_ns - weight;
	row->end_ns = event->time_ns;
	row->ready_ns = event->time_ns - ready;
	if (sample->blocked == BLOCKED_PREEMPTED)
		row->ready_ns = row->begin_ns;
	row->chain = fact_chain_of(facts, sample->stack);
	row->waker = FACTS_NONE;
	row->waker_tid = sample->blocked == BLOCKED_WOKEN ? sample->waker_tid : 0;
	row->rival_pid = sample->rival_pid;
	row->wait = (uint8_t)sample->wait;
	row->how = (uint8_t)sample->blocked;
	row->gil = sample->wait == WAIT_LOCK && stack_waits_for_gil(sample->stack);
	strncpy(row->other, other ? other : "", sizeof(row->other) - 1);
}

static void fact_sample_add(struct facts *facts, const struct event *event)
{
	if (sample_is_stretch(event->sample)) {
		fact_rest_add(facts, event);
	} else if (event->sample->kind == SAMPLE_CPU) {
		struct fact_thread *thread = fact_thread_of(facts, event);
		struct fact_sample *row = FACT_ADD(facts, thread, samples);

		facts->samples = true;
		if (row)
			*row = (struct fact_sample){
				event->time_ns,
				fact_chain_of(facts, event->sample->stack),
				stack_is_fault(event->sample->stack),
			};
	}
}

static void fact_exit(struct facts *facts, const struct event *event)
{
	struct facts_own *own = facts->own;

	own->ended = by_id_room(own->ended, &own->n_ended, sizeof(*own->ended), event->process->id);
	own->ended[event->process->id] = event->time_ns;
}

void facts_event(struct facts *facts, const struct event *event)
{
	switch (event->type) {
	case EVENT_CALL:
		fact_call_add(facts, event);
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
	default:
		break;
	}
}

bool facts_ended(const struct facts *facts, const struct process *process)
{
	return process->id < facts->own->n_ended && facts->own->ended[process->id];
}

/* ---- order ----------------------------------------------------------------------------------- */

static int order_of(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int call_order(const void *a, const void *b)
{
	const struct fact_call *x = a, *y = b;

	return order_of(x->begin_ns, y->begin_ns);
}

static int sample_order(const void *a, const void *b)
{
	const struct fact_sample *x = a, *y = b;

	return order_of(x->time_ns, y->time_ns);
}

static int rest_order(const void *a, const void *b)
{
	const struct fact_rest *x = a, *y = b;

	return order_of(x->begin_ns, y->begin_ns);
}

static int work_order(const void *a, const void *b)
{
	const struct fact_work *x = a, *y = b;

	return x->gpu != y->gpu ? order_of(x->gpu, y->gpu) : order_of(x->begin_ns, y->begin_ns);
}

static int span_order(const void *a, const void *b)
{
	const struct fact_span *x = a, *y = b;

	return order_of(x->begin_ns, y->begin_ns);
}

static int range_order(const void *a, const void *b)
{
	const struct fact_range *x = a, *y = b;

	return order_of(x->begin_ns, y->begin_ns);
}

static int ask_order(const void *a, const void *b)
{
	const struct fact_ask *x = a, *y = b;

	return x->process != y->process ? order_of(x->process, y->process)
	                                : order_of(x->correlation, y->correlation);
}

static void fact_sort(void *rows, size_t n, size_t bytes, int (*order)(const void *, const void *))
{
	const char *row = rows;

	for (size_t i = 1; i < n; i++)
		if (order(row + (i - 1) * bytes, row + i * bytes) > 0) {
			qsort(rows, n, bytes, order);
			return;
		}
}

/* Spans of the same thread that overlap are cut, so that each moment is in one at most. */
static void fact_cut_calls(struct fact_thread *thread, uint64_t end_ns)
{
	for (size_t i = 0; i < thread->n_calls; i++) {
		struct fact_call *call = &thread->calls[i];

		if (i + 1 < thread->n_calls && call->end_ns > call[1].begin_ns)
			call->end_ns = call[1].begin_ns;
		else if (i + 1 == thread->n_calls && call->open && call->end_ns < end_ns)
			call->end_ns = end_ns;
	}
	for (size_t i = 0; i + 1 < thread->n_rests; i++) {
		struct fact_rest *rest = &thread->rests[i];

		if (rest->end_ns > rest[1].begin_ns)
			rest->end_ns = rest[1].begin_ns;
		if (rest->ready_ns > rest->end_ns)
			rest->ready_ns = rest->end_ns;
	}
}

static bool rest_goes_on(const struct fact_rest *rest)
{
	return rest->gil && rest->how == BLOCKED_INTERRUPT && rest[1].gil &&
	       rest[1].begin_ns - rest->end_ns < GIL_AGAIN_NS;
}

/* Who waits again as soon as his time is over was woken by the one who woke him in the end. */
static void fact_pass_on_wakers(struct fact_thread *thread)
{
	for (size_t i = thread->n_rests; i-- > 1;) {
		struct fact_rest *rest = &thread->rests[i - 1];

		if (rest_goes_on(rest) && !rest->waker_tid) {
			rest->waker_tid = rest[1].waker_tid;
			memcpy(rest->other, rest[1].other, sizeof(rest->other));
		}
	}
}

struct fact_tid {
	uint32_t tid, thread;
	uint64_t first_ns;
};

static int tid_order(const void *a, const void *b)
{
	const struct fact_tid *x = a, *y = b;

	return x->tid != y->tid ? order_of(x->tid, y->tid) : order_of(x->first_ns, y->first_ns);
}

/* The thread with this number that was the last to begin before that time. */
static uint32_t tid_find(const struct fact_tid *tids, size_t n, uint32_t tid, uint64_t time_ns)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tids[middle].tid < tid ||
		    (tids[middle].tid == tid && tids[middle].first_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (low && tids[low - 1].tid == tid)
		return tids[low - 1].thread;
	return low < n && tids[low].tid == tid ? tids[low].thread : FACTS_NONE;
}

static void facts_find_wakers(struct facts *facts)
{
	struct fact_tid *tids = xcalloc(facts->n_threads + 1, sizeof(*tids));
	size_t n = 0;

	for (size_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].tid)
			tids[n++] = (struct fact_tid){ facts->threads[i].tid, (uint32_t)i,
				                       facts->threads[i].first_ns };
	qsort(tids, n, sizeof(*tids), tid_order);
	for (size_t i = 0; i < facts->n_threads; i++)
		for (size_t k = 0; k < facts->threads[i].n_rests; k++) {
			struct fact_rest *rest = &facts->threads[i].rests[k];

			if (rest->waker_tid)
				rest->waker = tid_find(tids, n, rest->waker_tid, rest->end_ns);
		}
	free(tids);
}

static void facts_find_asks(struct facts *facts)
{
	struct facts_own *own = facts->own;
	size_t n = 0;

	for (size_t i = 0; i < facts->n_threads; i++)
		n += facts->threads[i].asks;
	own->asks = xcalloc(n + 1, sizeof(*own->asks));
	for (uint32_t i = 0; i < facts->n_threads; i++) {
		const struct fact_thread *thread = &facts->threads[i];

		for (uint32_t k = 0; k < thread->n_calls; k++)
			if (thread->calls[k].correlation)
				own->asks[own->n_asks++] =
					(struct fact_ask){ thread->calls[k].correlation,
					                   thread->process->id, i, k };
	}
	fact_sort(own->asks, own->n_asks, sizeof(*own->asks), ask_order);
}

/* The earliest and the latest of all that is known, where the recording does not say. */
static void facts_bound(struct facts *facts)
{
	for (size_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].last_ns > facts->end_ns)
			facts->end_ns = facts->threads[i].last_ns;
	for (size_t i = 0; i < facts->n_works; i++)
		if (facts->works[i].end_ns > facts->end_ns)
			facts->end_ns = facts->works[i].end_ns;
}

void facts_end(struct facts *facts, const struct run_info *run)
{
	facts->run = run;
	facts->n_gpus = gpu_ids_count(facts->own->gpus);
	facts->begin_ns = run->begin_ns;
	facts->end_ns = run->end_ns;
	if (facts->end_ns <= facts->begin_ns)
		facts_bound(facts);
	for (size_t i = 0; i < facts->n_threads; i++) {
		struct fact_thread *thread = &facts->threads[i];

		fact_sort(thread->calls, thread->n_calls, sizeof(*thread->calls), call_order);
		fact_sort(thread->samples, thread->n_samples, sizeof(*thread->samples),
		          sample_order);
		fact_sort(thread->rests, thread->n_rests, sizeof(*thread->rests), rest_order);
		fact_cut_calls(thread, facts->end_ns);
		fact_pass_on_wakers(thread);
	}
	facts_find_wakers(facts);
	facts_find_asks(facts);
	fact_sort(facts->works, facts->n_works, sizeof(*facts->works), work_order);
	fact_sort(facts->ranges, facts->n_ranges, sizeof(*facts->ranges), range_order);
	fact_sort(facts->unmeasured, facts->n_unmeasured, sizeof(*facts->unmeasured), span_order);
}

/* ---- finding --------------------------------------------------------------------------------- */

const struct fact_call *facts_call_of(const struct facts *facts, const struct fact_work *work,
                                      uint32_t *thread)
{
	const struct facts_own *own = facts->own;
	struct fact_ask key = { .correlation = work->correlation, .process = work->process->id };
	const struct fact_ask *ask =
		bsearch(&key, own->asks, own->n_asks, sizeof(*own->asks), ask_order);

	if (!work->correlation || !ask)
		return NULL;
	*thread = ask->thread;
	return &facts->threads[ask->thread].calls[ask->index];
}

size_t facts_call_at(const struct fact_thread *thread, uint64_t time_ns)
{
	size_t low = 0, high = thread->n_calls;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->calls[middle].end_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t facts_rest_at(const struct fact_thread *thread, uint64_t time_ns)
{
	size_t low = 0, high = thread->n_rests;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->rests[middle].end_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t facts_sample_at(const struct fact_thread *thread, uint64_t time_ns)
{
	size_t low = 0, high = thread->n_samples;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (thread->samples[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
