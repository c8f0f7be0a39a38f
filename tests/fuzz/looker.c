// SPDX-License-Identifier: MIT
#include "tests/fuzz/looker.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary/summary.h"
#include "tests/fuzz/run_command.h"
#include "trace/reader.h"

static uint64_t sum; /* so that nothing is optimised away */

static void look_at(const char *text)
{
	sum += text ? strlen(text) : 0;
}

static void look_at_kernel(const struct kernel *kernel)
{
	if (!kernel)
		return;
	look_at(kernel->name);
	look_at(kernel->mangled);
}

static void look_at_stack(const struct stack *stack)
{
	if (!stack)
		return;
	if (!stack->n_frames || stack->end >= STACK_END_COUNT)
		abort();
	for (size_t i = 0; i < stack->n_frames; i++) {
		const struct stack_frame *frame = stack->frames[i];

		if (frame->kind >= FRAME_COUNT)
			abort();
		look_at(frame->function);
		look_at(frame->module);
		look_at(frame->file);
	}
}

static void look_at_call(const struct call *call)
{
	const struct api_arg *args;
	size_t n;

	if (!call->function->name || !call->function->lib || call->args.n_args > API_ARGS_MAX ||
	    call->function->layer >= LAYER_COUNT || call->function->cls >= CLASS_COUNT ||
	    call->op >= OP_COUNT || (call->op == OP_LAUNCH && !call->kernel) ||
	    call->args.direction >= DIRECTION_COUNT || (call->op && (!call->function->api || !call_is_cuda(call))))
		abort();
	look_at(call->function->name);
	look_at(call->function->lib);
	look_at(call->text);
	look_at_kernel(call->kernel);
	look_at_stack(call->stack);
	n = call->function->api ? api_args(call->function->api, &args) : 0;
	for (size_t i = 0; i < n; i++)
		sum += strlen(args[i].name) + call->args.arg[i];
}

static void look_at_range(const struct range *range)
{
	if (!range->name || range->kind >= RANGE_COUNT)
		abort();
	look_at(range->name);
	look_at(range->domain);
}

static int look(struct consumer *self, const struct event *event, struct err *err)
{
	if (!event->process || memchr(event->process->comm, 0, 16) == NULL)
		abort();
	if (event->type == EVENT_CALL || event->type == EVENT_OTHER_CALL)
		look_at_call(event->call);
	else if (event->type == EVENT_ACTIVITY)
		look_at_kernel(event->activity->kernel);
	else if (event->type == EVENT_RANGE)
		look_at_range(event->range);
	else if (event->type == EVENT_SAMPLE)
		look_at_stack(event->sample->stack);
	else if (event->type == EVENT_THREAD)
		look_at(event->thread->comm);
	return 0;
}

static int look_at_run(struct consumer *self, const struct run_info *run, struct err *err)
{
	look_at(run->hostname);
	look_at(run->kernel_release);
	look_at(run->driver_version);
	look_at(run->command);
	for (size_t i = 0; i < run->n_misses; i++) {
		look_at(run->misses[i].name);
		look_at(run->misses[i].lib);
		look_at(run->misses[i].why);
	}
	return 0;
}

static void look_free(struct consumer *self)
{
}

static const struct consumer_ops look_ops = {
	.begin = look_at_run, .event = look, .end = look_at_run, .free = look_free
};

void look_at_file(const void *data, size_t size, bool part)
{
	struct trace_read_options options = { .from_ns = part ? 5000010000000 : 0 };
	static FILE *nowhere;
	struct consumer looker = { .ops = &look_ops };
	struct consumer *consumers[2] = { &looker };
	struct trace_file *file;
	struct err err = { 0 };

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	if (trace_open(command_file(0, data, size), &file, &err))
		return;
	consumers[1] = summary_new(&(struct summary_options){ .text = nowhere });
	trace_read(file, &options, consumers, 2, &err);
	consumers[1]->ops->free(consumers[1]);
	trace_close(file);
}
