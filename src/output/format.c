// SPDX-License-Identifier: MIT
#include "output/format.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/correlations.h"
#include "analysis/work.h"
#include "base/map.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "cuda/error.h"

/*
 * Goes through a trace ahead of a sink and notes, of what the sink will write, which calls ask for
 * work and which work names its call.
 */

static struct sink *sink_of(struct consumer *scout)
{
	return (struct sink *)((char *)scout - offsetof(struct sink, scout));
}

static int scout_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sink *sink = sink_of(self);

	correlations_free(sink->joined);
	sink->joined = correlations_new();
	sink->unjoined = 0;
	return 0;
}

static void note(struct sink *sink, const struct event *event, uint64_t correlation,
                 enum correlation_mark mark)
{
	if (!correlations_mark(sink->joined, event->process->id, correlation, mark))
		sink->unjoined++;
}

static int scout_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct sink *sink = sink_of(self);

	if (sink->look_ahead)
		sink->look_ahead(sink, event);
	if (!sink_wants(sink, event))
		return 0;
	if (event->type == EVENT_CALL && sink->asks_for_work(event->call))
		note(sink, event, event->call->correlation, CORRELATION_CALL);
	else if (event->type == EVENT_ACTIVITY && event->activity->correlation)
		note(sink, event, event->activity->correlation, CORRELATION_WORK);
	sink_count(sink, event);
	return 0;
}

/* As if nothing had been counted. */
static int scout_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sink *sink = sink_of(self);

	sink->calls = sink->counted = sink->last_ns = 0;
	return 0;
}

static void scout_free(struct consumer *self)
{
}

static const struct consumer_ops scout_ops = {
	.begin = scout_begin,
	.event = scout_event,
	.end = scout_end,
	.free = scout_free, /* it is a part of the sink */
};

struct consumer *sink_scout(struct consumer *consumer)
{
	struct sink *sink = (struct sink *)consumer;

	if (!sink->asks_for_work)
		return NULL;
	sink->scout.ops = &scout_ops;
	return &sink->scout;
}

struct buf *fragment(struct fragments *fragments, uint32_t id)
{
	return BY_ID(fragments->text, fragments->n, id);
}

void fragments_free(struct fragments *fragments)
{
	for (size_t i = 0; i < fragments->n; i++)
		buf_free(&fragments->text[i]);
	free(fragments->text);
}

struct delay delay_of(const struct sink *sink, const struct event *event)
{
	const struct work_call *call = work_now(sink->work)->call;
	const struct activity *activity = event->activity;

	if (!call)
		return (struct delay){ .tid = event->tid };
	if (activity && activity->begin_ns < call->begin_ns)
		return (struct delay){ .tid = call->tid,
			               .early_ns = call->begin_ns - activity->begin_ns };
	if (!activity || !call->end_ns || activity->begin_ns < call->end_ns)
		return (struct delay){ .tid = call->tid };
	return (struct delay){ .queued = true,
		               .queue_ns = activity->begin_ns - call->end_ns,
		               .tid = call->tid };
}

#define CONTEXTS_MOST 65536 /* more than a machine's GPUs can hold at a time */

struct context_key {
	uint32_t process, context;
};

struct context {
	struct context_key key;
	uint32_t device;
	UT_hash_handle hh;
};

struct contexts {
	struct context *known;
};

struct contexts *contexts_new(void)
{
	return xcalloc(1, sizeof(struct contexts));
}

void contexts_free(struct contexts *contexts)
{
	if (!contexts)
		return;
	MAP_FREE(contexts->known, free);
	free(contexts);
}

static struct context *find(const struct contexts *contexts, struct context_key key)
{
	return MAP_FIND(contexts->known, &key);
}

void contexts_note(struct contexts *contexts, const struct process *process,
                   const struct activity *activity)
{
	struct context_key key = { process->id, activity->context };
	struct context *found = find(contexts, key);

	if (found || HASH_COUNT(contexts->known) >= CONTEXTS_MOST)
		return;
	found = MAP_ADD(contexts->known, key, &key);
	found->device = activity->device;
}

bool contexts_device(const struct contexts *contexts, const struct process *process,
                     uint32_t context, uint32_t *device)
{
	const struct context *found = find(contexts, (struct context_key){ process->id, context });

	if (found)
		*device = found->device;
	return found != NULL;
}

size_t call_args(const struct call *call, const struct api_arg **args)
{
	size_t n = call->function->api ? api_args(call->function->api, args) : 0;

	return n < call->args.n_args ? n : call->args.n_args;
}

bool call_has_output(const struct call *call)
{
	return call_has_end(call) && !(call->flags & CALL_FAILED);
}

bool call_has_stream(const struct call *call)
{
	return call->args.has_stream && (call->op != OP_STREAM_CREATE || call_has_output(call));
}

void add_stream(struct buf *out, const struct call *call, uint64_t stream)
{
	if (!stream && api_is_per_thread(call->function->name))
		stream = STREAM_PER_THREAD;
	if (!stream)
		buf_putc(out, '0');
	else if (stream == STREAM_LEGACY)
		buf_puts(out, "legacy");
	else if (stream == STREAM_PER_THREAD)
		buf_puts(out, "per-thread");
	else
		buf_hex(out, stream);
}

void add_dims(struct buf *out, const uint32_t dims[3])
{
	for (int i = 0; i < 3; i++) {
		buf_putc(out, i ? ',' : '(');
		buf_u64(out, dims[i]);
	}
	buf_putc(out, ')');
}

float arg_float(uint64_t word)
{
	uint32_t bits = (uint32_t)word;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void add_text(struct buf *out, const struct call *call, uint64_t address)
{
	if (!call->text) {
		buf_hex(out, address);
		return;
	}
	buf_putc(out, '"');
	text_add_safe(out, call->text);
	buf_putc(out, '"');
}

static void add_size(struct buf *out, uint64_t bytes)
{
	if (bytes)
		buf_bytes(out, bytes);
	else
		buf_putc(out, '0');
}

void add_arg(struct buf *out, const struct call *call, const struct api_arg *args, size_t i)
{
	uint64_t value = call->args.arg[i];

	switch (args[i].type) {
	case T_INT:
	case T_DEVICE:
		buf_s64(out, (int32_t)value);
		break;
	case T_S64:
		buf_s64(out, (int64_t)value);
		break;
	case T_UINT:
	case T_U64:
		buf_u64(out, value);
		break;
	case T_FLOAT:
		buf_printf(out, "%.3f ms", (double)arg_float(value));
		break;
	case T_BYTES:
	case T_SIZE:
	case T_SHMEM:
		add_size(out, value);
		break;
	case T_STREAM:
		add_stream(out, call, value);
		break;
	case T_STRING:
		add_text(out, call, value);
		break;
	case T_COPYKIND:
		buf_puts(out, call->args.direction == DIRECTION_NONE
		                      ? "?"
		                      : api_direction_name(call->args.direction));
		break;
	case T_GRID:
		add_dims(out, call->args.grid);
		break;
	case T_BLOCK:
		add_dims(out, call->args.block);
		break;
	default:
		buf_hex(out, value);
		break;
	}
}

void add_dims_json(struct buf *out, const uint32_t dims[3])
{
	for (int i = 0; i < 3; i++) {
		buf_putc(out, i ? ',' : '[');
		buf_u64(out, dims[i]);
	}
	buf_putc(out, ']');
}

bool add_arg_number(struct buf *out, enum api_type type, uint64_t value)
{
	switch (type) {
	case T_S64:
		buf_s64(out, (int64_t)value);
		return true;
	case T_INT:
	case T_DEVICE:
		buf_s64(out, (int32_t)value);
		return true;
	case T_UINT:
	case T_U64:
	case T_BYTES:
	case T_SIZE:
	case T_SHMEM:
	case T_COPYKIND:
		buf_u64(out, value);
		return true;
	case T_FLOAT:
		buf_printf(out, "%.6f", (double)arg_float(value));
		return true;
	default:
		return false;
	}
}

void add_arg_json(struct buf *out, const struct call *call, enum api_type type, uint64_t value)
{
	if (add_arg_number(out, type, value))
		return;
	switch (type) {
	case T_GRID:
		add_dims_json(out, call->args.grid);
		break;
	case T_BLOCK:
		add_dims_json(out, call->args.block);
		break;
	case T_STRING:
		if (call->text) {
			buf_json_string(out, call->text);
			break;
		}
		/* fall through */
	default:
		buf_putc(out, '"');
		buf_hex(out, value);
		buf_putc(out, '"');
		break;
	}
}

void add_result(struct buf *out, const struct call *call)
{
	const char *name = cuda_error_name(call->function->layer, call->result);

	if (!name && !call_is_cuda(call)) { /* not known to be an error */
		buf_s64(out, call->result);
		return;
	}
	buf_puts(out, name ? name : "error");
	buf_puts(out, " (");
	buf_s64(out, call->result);
	buf_putc(out, ')');
}
