// SPDX-License-Identifier: MIT
/* Events: a mark in a stream and the time at which the stream came to it. */
#include <stdatomic.h>
#include <stdlib.h>

#include "capture.h"
#include "trace.h"

struct CUevent_st {
	struct handle handle;
	unsigned int flags;
	uint32_t number, context; /* of the event, and of the context that it was made in */
	bool recorded;
	struct mark mark;    /* of the last record */
	uint64_t generation; /* counts records: only the last one's time is kept */
	uint64_t time_ns;
	struct capture *capture; /* recorded in a capturing stream, after these nodes */
	struct node_list after;
	size_t n_others; /* recorded in a context: marks in all streams that had work */
	struct mark *others;
};

void event_get(CUevent event)
{
	event->handle.refs++;
}

/* What the last record left behind. */
static void event_forget(CUevent event)
{
	if (event->mark.stream)
		stream_put(event->mark.stream);
	event->mark.stream = NULL;
	for (size_t i = 0; i < event->n_others; i++)
		stream_put(event->others[i].stream);
	free(event->others);
	event->others = NULL;
	event->n_others = 0;
	capture_put(event->capture);
	event->capture = NULL;
	node_list_clear(&event->after);
	event->recorded = false;
}

void event_put(CUevent event)
{
	if (--event->handle.refs > 0)
		return;
	event_forget(event);
	handle_free(event, HANDLE_EVENT);
}

void event_stamp(const struct task *task, uint64_t ns)
{
	if (task->event.event->generation == task->event.generation)
		task->event.event->time_ns = ns;
}

static CUresult event_create(CUevent *event, unsigned int flags)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (!event || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	*event = handle_new(HANDLE_EVENT, sizeof(**event));
	if (!*event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	static atomic_uint last;
	(*event)->flags = flags;
	(*event)->number = atomic_fetch_add(&last, 1) + 1;
	(*event)->context = (uint32_t)ctx->id;
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	if (!handle_is(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	handle_close(event);
	event_put(event);
	sim_leave();
	return CUDA_SUCCESS;
}

static CUresult record_locked(CUevent event, CUstream stream)
{
	CUresult result = stream->ctx->sticky;
	if (result == CUDA_SUCCESS)
		result = capture_check(stream, false);
	if (result != CUDA_SUCCESS)
		return result;
	event_forget(event);
	event->generation++;
	if (stream->capture) {
		event->capture = capture_get(stream->capture);
		return node_list_copy(&event->after, stream->last.node, stream->last.n)
		               ? CUDA_SUCCESS
		               : CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct task task = { .kind = TASK_EVENT, .event = { event, event->generation } };
	task_get(&task);
	result = stream_enqueue(stream, &task, &event->mark.ticket);
	if (result != CUDA_SUCCESS) {
		task_put(&task);
		return result;
	}
	event->mark.stream = stream_get(stream);
	event->recorded = true;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream handle, enum null_stream null)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (!handle_is(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (result != CUDA_SUCCESS)
		return result;
	sim_enter();
	result = record_locked(event, stream);
	sim_leave();
	return result;
}

static CUresult record_all_locked(CUcontext ctx, CUevent event)
{
	size_t n = 0;
	CUresult result = capture_check_context(ctx);
	if (result != CUDA_SUCCESS)
		return result;
	event_forget(event);
	event->generation++;
	for (CUstream stream = ctx->streams; stream; stream = stream->next)
		n++;
	event->others = calloc(n + 1, sizeof(*event->others));
	if (!event->others)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (CUstream stream = ctx->streams; stream; stream = stream->next)
		event->others[event->n_others++] =
			(struct mark){ stream_get(stream), stream->submitted };
	return CUDA_SUCCESS;
}

/* All work of a context. An event of it: the simulated driver lets no other stream wait for it. */
static CUresult context_record(CUcontext ctx, CUevent event)
{
	CUresult result;
	if (!handle_is(ctx, HANDLE_CONTEXT) || !handle_is(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	result = record_all_locked(ctx, event);
	sim_leave();
	return result;
}

static CUresult wait_locked(CUstream stream, CUevent event)
{
	if (event->capture)
		return capture_join(stream, event->capture, &event->after);
	if (stream->capture) {
		/* Work outside of the capture cannot become part of it. */
		return event->recorded ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_SUCCESS;
	}
	if (!event->recorded || mark_reached(&event->mark))
		return CUDA_SUCCESS;
	struct task task = { .kind = TASK_WAIT, .wait = event->mark };
	uint64_t ticket;
	task_get(&task);
	CUresult result = stream_enqueue(stream, &task, &ticket);
	if (result != CUDA_SUCCESS)
		task_put(&task);
	return result;
}

static CUresult stream_wait_event(CUstream handle, enum null_stream null, CUevent event)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle_is(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	uint64_t begin = trace_now();
	uint32_t context = (uint32_t)stream->ctx->id, number = stream->number, id = event->number;
	sim_enter();
	result = wait_locked(stream, event);
	sim_leave();
	trace_waited(SIM_STREAM_WAIT_EVENT, begin, context, number, id, result);
	return result;
}

static CUresult others_state(CUevent event, bool wait)
{
	event_get(event);
	for (size_t i = 0; wait && i < event->n_others; i++)
		mark_wait(&event->others[i]);
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < event->n_others; i++) {
		if (!mark_reached(&event->others[i]))
			result = CUDA_ERROR_NOT_READY;
	}
	event_put(event);
	return result;
}

static CUresult event_state(CUevent event, bool wait)
{
	CUresult result = CUDA_SUCCESS;
	if (!handle_is(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	uint64_t begin = wait ? trace_now() : 0;
	uint32_t context = event->context, number = event->number;
	sim_enter();
	if (event->capture) {
		result = CUDA_ERROR_CAPTURED_EVENT;
	} else if (event->others) {
		result = others_state(event, wait);
	} else if (event->recorded) {
		struct mark mark = { stream_get(event->mark.stream), event->mark.ticket };
		if (wait)
			mark_wait(&mark);
		result = mark.stream->ctx->sticky;
		if (result == CUDA_SUCCESS && !mark_reached(&mark))
			result = CUDA_ERROR_NOT_READY;
		stream_put(mark.stream);
	}
	sim_leave();
	trace_waited(SIM_WAIT_EVENT, begin, context, SIM_NONE, number, result);
	return result;
}

static CUresult elapsed_locked(float *milliseconds, CUevent start, CUevent end)
{
	if (start->capture || end->capture)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (!start->recorded || !end->recorded ||
	    ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!mark_reached(&start->mark) || !mark_reached(&end->mark))
		return CUDA_ERROR_NOT_READY;
	*milliseconds = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
	return CUDA_SUCCESS;
}

static CUresult event_elapsed(float *milliseconds, CUevent start, CUevent end)
{
	if (!milliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(start, HANDLE_EVENT) || !handle_is(end, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	CUresult result = elapsed_locked(milliseconds, start, end);
	sim_leave();
	return result;
}

API(cuEventCreate, (CUevent *, event, unsigned int, flags), event_create(event, flags))
API(cuEventDestroy, (CUevent, event), event_destroy(event))
API(cuEventDestroy_v2, (CUevent, event), event_destroy(event))
API(cuCtxRecordEvent, (CUcontext, ctx, CUevent, event), context_record(ctx, event))
API(cuEventQuery, (CUevent, event), event_state(event, false))
API(cuEventSynchronize, (CUevent, event), event_state(event, true))
API(cuEventElapsedTime, (float *, milliseconds, CUevent, start, CUevent, end),
    event_elapsed(milliseconds, start, end))
API(cuEventElapsedTime_v2, (float *, milliseconds, CUevent, start, CUevent, end),
    event_elapsed(milliseconds, start, end))
API_PTSZ(cuEventRecord, (CUevent, event, CUstream, stream), event_record(event, stream, null))
API_PTSZ(cuEventRecordWithFlags, (CUevent, event, CUstream, stream, unsigned int, flags),
         event_record(event, stream, null))
API_PTSZ(cuStreamWaitEvent, (CUstream, stream, CUevent, event, unsigned int, flags),
         stream_wait_event(stream, null, event))
