/* SPDX-License-Identifier: MIT */
/*
 * For tests of trace files: a list of events that is written to a file, and a consumer that
 * compares what is read with a list.
 */
#ifndef TESTS_UNIT_TRACE_EVENTS_H
#define TESTS_UNIT_TRACE_EVENTS_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"
#include "trace/event.h"
#include "trace/reader.h"
#include "trace/writer.h"

/* An event with what it points at for the time of event() only. */
struct kept {
	struct event event;
	struct call call;
	struct activity activity;
	struct thread thread;
	struct range range;
	struct sample sample;
	struct gpu_metrics_sample metrics;
	struct stall stall;
	char text[64], name[64], domain[64];
	uint64_t known_ns; /* golden traces: when it was put into the trace */
};

struct kept_list {
	struct kept *at;
	size_t count;
};

static inline void keep_event(struct kept_list *list, const struct event *event)
{
	struct kept *kept;

	if ((list->count & (list->count - 1)) == 0) /* the room doubles */
		list->at =
			realloc(list->at, (list->count ? 2 * list->count : 1) * sizeof(*list->at));
	kept = &list->at[list->count++];
	memset(kept, 0, sizeof(*kept));
	kept->event = *event;
	if (event->call) {
		kept->call = *event->call;
		if (event->call->text)
			snprintf(kept->text, sizeof(kept->text), "%s", event->call->text);
	}
	if (event->activity)
		kept->activity = *event->activity;
	if (event->thread)
		kept->thread = *event->thread;
	if (event->sample) {
		kept->sample = *event->sample;
		if (event->sample->waker)
			snprintf(kept->name, sizeof(kept->name), "%s", event->sample->waker);
		if (event->sample->rival)
			snprintf(kept->domain, sizeof(kept->domain), "%s", event->sample->rival);
	}
	if (event->metrics)
		kept->metrics = *event->metrics;
	if (event->stall) {
		kept->stall = *event->stall;
		if (event->stall->reason)
			snprintf(kept->name, sizeof(kept->name), "%s", event->stall->reason);
		if (event->stall->file)
			snprintf(kept->domain, sizeof(kept->domain), "%s", event->stall->file);
	}
	if (event->range) {
		kept->range = *event->range;
		snprintf(kept->name, sizeof(kept->name), "%s", event->range->name);
		if (event->range->domain)
			snprintf(kept->domain, sizeof(kept->domain), "%s", event->range->domain);
	}
}

/* The event with pointers to where its parts are now. */
static inline struct event event_of(struct kept *kept)
{
	struct event event = kept->event;

	if (event.call) {
		event.call = &kept->call;
		kept->call.text = kept->call.text ? kept->text : NULL;
	}
	event.activity = event.activity ? &kept->activity : NULL;
	event.thread = event.thread ? &kept->thread : NULL;
	if (event.sample) {
		event.sample = &kept->sample;
		kept->sample.waker = kept->sample.waker ? kept->name : NULL;
		kept->sample.rival = kept->sample.rival ? kept->domain : NULL;
	}
	event.metrics = event.metrics ? &kept->metrics : NULL;
	if (event.stall) {
		event.stall = &kept->stall;
		kept->stall.reason = kept->stall.reason ? kept->name : NULL;
		kept->stall.file = kept->stall.file ? kept->domain : NULL;
	}
	if (event.range) {
		event.range = &kept->range;
		kept->range.name = kept->name;
		kept->range.domain = kept->range.domain ? kept->domain : NULL;
	}
	return event;
}

/* ---- a consumer that keeps ----------------------------------------------------------------- */

struct keeper {
	struct consumer consumer; /* first */
	struct kept_list list;
	struct run_info run; /* as end() got it */
	unsigned begun, ended;
};

static inline int keeper_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	((struct keeper *)self)->begun++;
	return 0;
}

static inline int keeper_event(struct consumer *self, const struct event *event, struct err *err)
{
	keep_event(&((struct keeper *)self)->list, event);
	return 0;
}

static inline int keeper_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	((struct keeper *)self)->ended++;
	((struct keeper *)self)->run = *run;
	return 0;
}

static const struct consumer_ops keeper_ops = {
	.metrics = true, .begin = keeper_begin, .event = keeper_event, .end = keeper_end
};

static inline void keeper_free(struct keeper *keeper)
{
	free(keeper->list.at);
}

/* ---- files --------------------------------------------------------------------------------- */

static inline int memory_file(void)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A path that opens the file anew. */
static inline const char *path_of(int fd)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

static inline void write_list(int fd, const struct run_info *run, struct kept_list *list)
{
	struct consumer *writer = writer_new(fd, "test.cuscope");
	struct err err = { 0 };

	assert_int_equal(writer->ops->begin(writer, run, &err), 0);
	for (size_t i = 0; i < list->count; i++) {
		struct event event = event_of(&list->at[i]);

		assert_int_equal(writer->ops->event(writer, &event, &err), 0);
	}
	assert_int_equal(writer->ops->end(writer, run, &err), 0);
	writer->ops->free(writer);
}

/* Opens and reads; what the keeper's events point at lives until trace_close(). */
static inline struct trace_file *read_list(int fd, const struct trace_read_options *options,
                                           struct keeper *keeper)
{
	struct consumer *consumer = &keeper->consumer;
	struct trace_file *file = NULL;
	struct err err = { 0 };

	memset(keeper, 0, sizeof(*keeper));
	keeper->consumer.ops = &keeper_ops;
	if (trace_open(path_of(fd), &file, &err) || trace_read(file, options, &consumer, 1, &err))
		fail_msg("%s", err.text);
	assert_int_equal(keeper->begun, 1);
	assert_int_equal(keeper->ended, 1);
	return file;
}

/* ---- comparing ----------------------------------------------------------------------------- */

static inline void assert_same_text(const char *a, const char *b)
{
	assert_true(!a == !b);
	if (a)
		assert_string_equal(a, b);
}

static inline void assert_same_kernel(const struct kernel *a, const struct kernel *b)
{
	assert_true(!a == !b);
	if (!a)
		return;
	assert_same_text(a->name, b->name);
	assert_same_text(a->mangled, b->mangled);
	assert_int_equal(a->resolved, b->resolved);
}

static inline void assert_same_function(const struct function *a, const struct function *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->lib, b->lib);
	assert_int_equal(a->layer, b->layer);
	assert_int_equal(a->cls, b->cls);
	assert_ptr_equal(a->api, b->api); /* the built-in row is found again */
}

static inline void assert_same_args(const struct api_call *a, const struct api_call *b)
{
	assert_int_equal(a->n_args, b->n_args);
	assert_memory_equal(a->arg, b->arg, sizeof(a->arg));
	assert_int_equal(a->handle, b->handle);
	assert_int_equal(a->stream, b->stream);
	assert_int_equal(a->event, b->event);
	assert_int_equal(a->has_stream, b->has_stream);
	assert_memory_equal(a->grid, b->grid, sizeof(a->grid));
	assert_memory_equal(a->block, b->block, sizeof(a->block));
	assert_int_equal(a->shmem_bytes, b->shmem_bytes);
	assert_int_equal(a->address, b->address);
	assert_int_equal(a->source, b->source);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->direction, b->direction);
}

static inline void assert_same_frame(const struct stack_frame *a, const struct stack_frame *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->inlined, b->inlined);
	assert_same_text(a->function, b->function);
	assert_same_text(a->module, b->module);
	assert_same_text(a->file, b->file);
	assert_same_text(a->build_id, b->build_id);
	assert_int_equal(a->line, b->line);
	assert_int_equal(a->first_line, b->first_line);
	assert_int_equal(a->offset, b->offset);
}

/* The frames that a reader has for what was written, from the outside on: its parts, or itself. */
static inline size_t assert_same_parts(const struct stack_frame *a, const struct stack *b,
                                       size_t at)
{
	if (!a->n_parts || b->n_frames - at + a->n_parts > STACK_PARTED_DEPTH) {
		assert_same_frame(a, b->frames[at - 1]);
		return at - 1;
	}
	assert_true(a->n_parts <= at);
	for (size_t i = a->n_parts; i-- > 0;)
		assert_same_frame(a->parts[i], b->frames[--at]);
	return at;
}

static inline void assert_same_stack(const struct stack *a, const struct stack *b)
{
	size_t at;

	assert_true(!a == !b);
	if (!a)
		return;
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->python_cut, b->python_cut);
	at = b->n_frames;
	for (size_t i = a->n_frames; i-- > 0;) {
		assert_true(at > 0);
		at = assert_same_parts(a->frames[i], b, at);
	}
	assert_int_equal(at, 0);
}

static inline void assert_same_call(const struct call *a, const struct call *b)
{
	assert_same_function(a->function, b->function);
	assert_int_equal(a->correlation, b->correlation);
	assert_int_equal(a->begin_ns, b->begin_ns);
	assert_int_equal(a->end_ns, b->end_ns);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->depth, b->depth);
	assert_int_equal(a->result, b->result);
	assert_int_equal(a->op, b->op);
	assert_same_args(&a->args, &b->args);
	assert_same_kernel(a->kernel, b->kernel);
	assert_same_stack(a->stack, b->stack);
	assert_same_text(a->text, b->text);
}

static inline void assert_same_activity(const struct activity *a, const struct activity *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->begin_ns, b->begin_ns);
	assert_int_equal(a->end_ns, b->end_ns);
	assert_int_equal(a->correlation, b->correlation);
	assert_int_equal(a->device, b->device);
	assert_int_equal(a->context, b->context);
	assert_int_equal(a->stream, b->stream);
	assert_same_kernel(a->kernel, b->kernel);
	assert_memory_equal(a->grid, b->grid, sizeof(a->grid));
	assert_memory_equal(a->block, b->block, sizeof(a->block));
	assert_int_equal(a->registers, b->registers);
	assert_int_equal(a->shmem_static, b->shmem_static);
	assert_int_equal(a->shmem_dynamic, b->shmem_dynamic);
	assert_int_equal(a->graph, b->graph);
	assert_int_equal(a->graph_node, b->graph_node);
	assert_same_stack(a->stack, b->stack);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->direction, b->direction);
	assert_int_equal(a->source, b->source);
	assert_int_equal(a->destination, b->destination);
	assert_int_equal(a->peer_device, b->peer_device);
}

static inline void assert_same_range(const struct range *a, const struct range *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->begin_ns, b->begin_ns);
	assert_int_equal(a->end_ns, b->end_ns);
	assert_same_text(a->name, b->name);
	assert_same_text(a->domain, b->domain);
	assert_int_equal(a->depth, b->depth);
	assert_int_equal(a->category, b->category);
	assert_int_equal(a->color, b->color);
	assert_int_equal(a->correlation, b->correlation);
	assert_int_equal(a->context, b->context);
	assert_int_equal(a->stream, b->stream);
}

static inline void assert_same_event(struct kept *kept_a, struct kept *kept_b)
{
	struct event a = event_of(kept_a), b = event_of(kept_b);

	assert_int_equal(a.type, b.type);
	assert_int_equal(a.time_ns, b.time_ns);
	assert_int_equal(a.tid, b.tid);
	assert_int_equal(a.process->pid, b.process->pid);
	assert_string_equal(a.process->comm, b.process->comm);
	assert_int_equal(a.process->person, b.process->person);
	assert_true(!a.call == !b.call && !a.activity == !b.activity && !a.thread == !b.thread &&
	            !a.range == !b.range && !a.sample == !b.sample && !a.metrics == !b.metrics);
	if (a.call)
		assert_same_call(a.call, b.call);
	if (a.activity)
		assert_same_activity(a.activity, b.activity);
	if (a.range)
		assert_same_range(a.range, b.range);
	if (a.metrics)
		assert_memory_equal(a.metrics, b.metrics, sizeof(*a.metrics));
	if (a.sample) {
		assert_int_equal(a.sample->kind, b.sample->kind);
		assert_int_equal(a.sample->weight_ns, b.sample->weight_ns);
		assert_same_stack(a.sample->stack, b.sample->stack);
		assert_int_equal(a.sample->blocked, b.sample->blocked);
		assert_int_equal(a.sample->waker_tid, b.sample->waker_tid);
		assert_int_equal(a.sample->count, b.sample->count);
		assert_string_equal(a.sample->waker ? a.sample->waker : "",
		                    b.sample->waker ? b.sample->waker : "");
		assert_int_equal(a.sample->wait, b.sample->wait);
		assert_int_equal(a.sample->runnable_ns, b.sample->runnable_ns);
		assert_int_equal(a.sample->rival_pid, b.sample->rival_pid);
		assert_string_equal(a.sample->rival ? a.sample->rival : "",
		                    b.sample->rival ? b.sample->rival : "");
	}
	if (a.thread) {
		assert_string_equal(a.thread->comm, b.thread->comm);
		assert_int_equal(a.thread->priority, b.thread->priority);
	}
}

static inline void assert_same_list(struct kept_list *a, struct kept_list *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++)
		assert_same_event(&a->at[i], &b->at[i]);
}

#endif
