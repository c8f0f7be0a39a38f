// SPDX-License-Identifier: MIT
#include "stream.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "busy.h"
#include "capture.h"
#include "clock.h"
#include "graph.h"
#include "trace.h"

/* CUPTI's numbers of a context's default stream and of the first stream that a program makes. */
#define DEFAULT_STREAM 7
#define FIRST_STREAM   13

#define LATE_NS 1000000 /* with SIMCUDA_AT_WAITS: what nobody waits for runs so late */

/* A task in a queue, with what it must wait for beyond the tasks before it. */
struct item {
	struct item *next;
	struct task task;
	uint64_t submit_ns;
	size_t n_marks;
	struct mark mark[];
};

CUstream stream_get(CUstream stream)
{
	stream->handle.refs++;
	return stream;
}

void stream_put(CUstream stream)
{
	if (--stream->handle.refs > 0)
		return;
	pthread_cond_destroy(&stream->work);
	pthread_cond_destroy(&stream->done);
	handle_free(stream, HANDLE_STREAM);
}

CUstream stream_new(CUcontext ctx, enum stream_role role, unsigned int flags, int priority)
{
	static atomic_ullong last_id;
	CUstream stream = handle_new(HANDLE_STREAM, sizeof(*stream));
	if (!stream)
		return NULL;
	stream->ctx = ctx;
	stream->role = role;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = atomic_fetch_add(&last_id, 1) + 1;
	stream->thread = thread_number();
	stream->tail = &stream->head;
	pthread_cond_init(&stream->work, NULL);
	pthread_cond_init(&stream->done, NULL);
	sim_enter();
	if (role == STREAM_LEGACY)
		stream->number = DEFAULT_STREAM;
	else
		stream->number = ctx->last_stream =
			ctx->last_stream ? ctx->last_stream + 1 : FIRST_STREAM;
	stream->next = ctx->streams;
	ctx->streams = stream;
	sim_leave();
	return stream;
}

/* ---- marks ----------------------------------------------------------------------------------- */

bool mark_reached(const struct mark *mark)
{
	return mark->stream->completed >= mark->ticket;
}

static bool stream_run_next(CUstream stream);

void mark_wait(const struct mark *mark)
{
	mark->stream->waiters++;
	while (!mark_reached(mark))
		if (!clock_at_waits() || !stream_run_next(mark->stream))
			pthread_cond_wait(&mark->stream->done, &sim_lock);
	mark->stream->waiters--;
}

static bool stream_is_blocking(CUstream stream)
{
	return stream->role != STREAM_LEGACY && !(stream->flags & CU_STREAM_NON_BLOCKING);
}

/* Whether `other` must come to where it is now before a new task of `stream` may run. */
static bool stream_waits_for(CUstream stream, CUstream other)
{
	if (other->completed == other->submitted)
		return false;
	if (stream->role == STREAM_LEGACY)
		return stream_is_blocking(other);
	return other->role == STREAM_LEGACY && stream_is_blocking(stream);
}

static size_t marks_needed(CUstream stream)
{
	size_t n = 0;
	for (CUstream other = stream->ctx->streams; other; other = other->next)
		n += stream_waits_for(stream, other);
	return n;
}

/* ---- running --------------------------------------------------------------------------------- */

static void stream_complete(CUstream stream, const struct task *task, CUresult result,
                            uint64_t end_ns)
{
	if (task->kind == TASK_EVENT)
		event_stamp(task, end_ns);
	if (result != CUDA_SUCCESS && stream->ctx->sticky == CUDA_SUCCESS)
		stream->ctx->sticky = result;
	stream->free_ns = end_ns;
	stream->completed++;
	if (stream->waiters)
		pthread_cond_broadcast(&stream->done);
	task_put(task);
}

/* What is traced takes time, even where nothing does: what it really took. */
static uint64_t traced_end(uint64_t begin, uint64_t end)
{
	uint64_t least = clock_is_instant() ? clock_now_ns() : begin;
	if (least <= begin)
		least = begin + 1;
	return end > least ? end : least;
}

/* One item, on the stream's thread. Called and left with sim_lock held. */
static void item_run(CUstream stream, struct item *item)
{
	uint64_t begin = item->submit_ns > stream->free_ns ? item->submit_ns : stream->free_ns;
	bool waited = false;
	for (size_t i = 0; i < item->n_marks; i++) {
		waited |= !mark_reached(&item->mark[i]);
		mark_wait(&item->mark[i]);
		stream_put(item->mark[i].stream);
	}
	if (item->task.kind == TASK_WAIT) {
		waited |= !mark_reached(&item->task.wait);
		mark_wait(&item->task.wait);
	}
	sim_leave();
	if (waited)
		begin = clock_now_ns();
	uint64_t took = clock_now_ns();
	CUresult result = task_run(&item->task);
	took = clock_now_ns() - took;
	uint64_t end = begin + task_duration_ns(&item->task);
	/* Copies of many bytes, functions of the program and waits for peers take what they take.
	 */
	if (!clock_is_instant() && !task_is_trivial(&item->task) && begin + took > end)
		end = begin + took;
	if (item->task.trace)
		end = traced_end(begin, end);
	busy_note(&item->task, stream, begin, end);
	if (end > clock_now_ns())
		clock_sleep_until(end);
	trace_end(&item->task, begin, end);
	sim_enter();
	stream_complete(stream, &item->task, result, end);
}

/* Called and left with sim_lock held. False: nothing is queued, or another thread runs it. */
static bool stream_run_next(CUstream stream)
{
	struct item *item = stream->head;

	if (!item || stream->busy)
		return false;
	stream->head = item->next;
	if (!stream->head)
		stream->tail = &stream->head;
	stream->busy = true;
	item_run(stream, item);
	stream->busy = false;
	free(item);
	if (clock_at_waits() && (stream->head || stream->closing))
		pthread_cond_signal(&stream->work);
	return true;
}

/* By the clock: what nobody has waited for. */
static bool stream_is_late(CUstream stream)
{
	const struct item *item = stream->head;
	uint64_t begin = item->submit_ns > stream->free_ns ? item->submit_ns : stream->free_ns;

	return begin + task_duration_ns(&item->task) <= clock_now_ns();
}

static void *stream_thread(void *data)
{
	CUstream stream = data;
	pthread_setname_np(pthread_self(), "simcuda-stream");
	/* The default slack of 50 us would be longer than most of what is simulated. */
	prctl(PR_SET_TIMERSLACK, 1);
	sim_enter();
	for (;;) {
		while (!stream->head || stream->busy) {
			if (stream->closing && !stream->busy)
				goto out;
			pthread_cond_wait(&stream->work, &sim_lock);
		}
		if (!clock_at_waits() || stream_is_late(stream)) {
			stream_run_next(stream);
			continue;
		}
		sim_leave();
		clock_sleep_until(clock_now_ns() + LATE_NS);
		sim_enter();
	}
out:
	stream_put(stream);
	sim_leave();
	return NULL;
}

static bool stream_start_thread(CUstream stream)
{
	/* Signals are the program's: its handlers must not run on a thread that it does
	 * not know. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_t thread;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	bool started = pthread_create(&thread, &attr, stream_thread, stream) == 0;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (started) {
		stream_get(stream);
		stream->has_thread = true;
	}
	return started;
}

/* Runs the task right here. Only in instant mode, with nothing before it. */
static void run_inline(CUstream stream, const struct task *task)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t begin = task->kind == TASK_EVENT || task->trace ? clock_now_ns() : 0;
	if (begin && begin < stream->free_ns)
		begin = stream->free_ns;
	uint64_t end = begin;
	if (!task_is_trivial(task)) {
		stream_get(stream);
		stream->busy = true;
		sim_leave();
		result = task_run(task);
		if (task->trace)
			end = traced_end(begin, begin);
		trace_end(task, begin, end);
		sim_enter();
		stream->busy = false;
		if (stream->head || stream->closing)
			pthread_cond_signal(&stream->work);
		stream_complete(stream, task, result, end);
		stream_put(stream);
		return;
	}
	if (task->trace)
		end = traced_end(begin, begin);
	trace_end(task, begin, end);
	stream_complete(stream, task, result, end);
}

static bool may_run_inline(CUstream stream, const struct task *task, size_t n_marks)
{
	if (!clock_is_instant() || n_marks || stream->head || stream->busy)
		return false;
	if (task->kind == TASK_WAIT && !mark_reached(&task->wait))
		return false;
	return !task_calls_program(task);
}

CUresult stream_enqueue(CUstream stream, const struct task *task, uint64_t *ticket)
{
	size_t n_marks = marks_needed(stream);
	*ticket = stream->submitted + 1;
	if (may_run_inline(stream, task, n_marks)) {
		stream->submitted++;
		run_inline(stream, task);
		return CUDA_SUCCESS;
	}
	struct item *item = malloc(sizeof(*item) + n_marks * sizeof(item->mark[0]));
	if (!item || (!stream->has_thread && !stream_start_thread(stream))) {
		free(item);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	item->next = NULL;
	item->task = *task;
	item->submit_ns = clock_now_ns();
	item->n_marks = 0;
	for (CUstream other = stream->ctx->streams; other; other = other->next) {
		if (stream_waits_for(stream, other))
			item->mark[item->n_marks++] =
				(struct mark){ stream_get(other), other->submitted };
	}
	*stream->tail = item;
	stream->tail = &item->next;
	stream->submitted++;
	pthread_cond_signal(&stream->work);
	return CUDA_SUCCESS;
}

static CUresult submit_locked(CUstream stream, const struct task *task, enum submit how)
{
	CUresult result = stream->ctx->sticky;
	if (result == CUDA_SUCCESS)
		result = capture_check(stream, how == SUBMIT_SYNC);
	if (result == CUDA_SUCCESS && stream->capture) {
		struct task node = *task;
		trace_cancel(task);
		node.trace = NULL;
		return capture_add(stream, &node);
	}
	struct mark mark = { .stream = stream };
	if (result == CUDA_SUCCESS)
		result = stream_enqueue(stream, task, &mark.ticket);
	if (result != CUDA_SUCCESS) {
		trace_cancel(task);
		task_put(task);
		return result;
	}
	if (how == SUBMIT_ASYNC)
		return CUDA_SUCCESS;
	stream_get(stream);
	mark_wait(&mark);
	result = stream->ctx->sticky;
	stream_put(stream);
	return result;
}

CUresult stream_submit(CUstream stream, const struct task *task, enum submit how)
{
	struct task traced;
	if (trace_wanted()) {
		traced = *task;
		trace_submit(&traced, stream, how != SUBMIT_SYNC);
		task = &traced;
	}
	sim_enter();
	CUresult result = submit_locked(stream, task, how);
	sim_leave();
	return result;
}

/* ---- finding and ending ---------------------------------------------------------------------- */

static CUstream thread_stream(CUcontext ctx)
{
	uint64_t me = thread_number();
	sim_enter();
	CUstream stream = ctx->streams;
	while (stream && (stream->role != STREAM_THREAD || stream->thread != me))
		stream = stream->next;
	sim_leave();
	return stream ? stream : stream_new(ctx, STREAM_THREAD, 0, 0);
}

CUresult stream_find(CUstream handle, enum null_stream null, CUstream *stream)
{
	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
		*stream = handle;
		return handle_is(handle, HANDLE_STREAM) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	bool own = handle == CU_STREAM_PER_THREAD || (!handle && null == NULL_IS_THREAD);
	*stream = own ? thread_stream(ctx) : ctx->legacy;
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult stream_submit_to(CUstream handle, enum null_stream null, const struct task *task,
                          enum submit how)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	return result == CUDA_SUCCESS ? stream_submit(stream, task, how) : result;
}

/* Called with sim_lock held. Streams may come and go while it waits: it starts again then. */
static void drain_locked(CUcontext ctx)
{
	CUstream stream = ctx->streams;
	while (stream) {
		struct mark mark = { stream, stream->submitted };
		if (mark_reached(&mark)) {
			stream = stream->next;
			continue;
		}
		stream_get(stream);
		mark_wait(&mark);
		stream_put(stream);
		stream = ctx->streams;
	}
}

void streams_drain(CUcontext ctx)
{
	sim_enter();
	drain_locked(ctx);
	sim_leave();
}

CUresult streams_wait_all(CUcontext ctx)
{
	sim_enter();
	CUresult result = capture_check_context(ctx);
	if (result == CUDA_SUCCESS) {
		drain_locked(ctx);
		result = ctx->sticky;
	}
	sim_leave();
	return result;
}

/* Ends the handle at once; work that is queued still runs. Called with sim_lock held. */
static void stream_close(CUstream stream)
{
	handle_close(stream);
	capture_abandon(stream);
	for (CUstream *link = &stream->ctx->streams; *link; link = &(*link)->next) {
		if (*link == stream) {
			*link = stream->next;
			break;
		}
	}
	stream->closing = true;
	pthread_cond_signal(&stream->work);
	stream_put(stream);
}

void streams_destroy_all(CUcontext ctx)
{
	sim_enter();
	while (ctx->streams) {
		drain_locked(ctx);
		if (ctx->streams)
			stream_close(ctx->streams);
	}
	sim_leave();
}

/* ---- the API --------------------------------------------------------------------------------- */

static CUresult stream_create(CUstream *stream, unsigned int flags, int priority)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (!stream || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	*stream = stream_new(ctx, STREAM_PLAIN, flags, priority);
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult stream_destroy(CUstream stream)
{
	if (!handle_is(stream, HANDLE_STREAM) || stream->role != STREAM_PLAIN)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_enter();
	stream_close(stream);
	sim_leave();
	return CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream handle, enum null_stream null)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t begin = trace_now();
	uint32_t context = (uint32_t)stream->ctx->id, number = stream->number;
	sim_enter();
	result = capture_check_wait(stream);
	if (result == CUDA_SUCCESS && stream->role == STREAM_LEGACY) {
		drain_locked(stream->ctx);
	} else if (result == CUDA_SUCCESS) {
		struct mark mark = { stream_get(stream), stream->submitted };
		mark_wait(&mark);
		stream_put(stream);
	}
	if (result == CUDA_SUCCESS)
		result = stream->ctx->sticky;
	sim_leave();
	trace_waited(SIM_WAIT_STREAM, begin, context, number, SIM_NONE, result);
	return result;
}

static CUresult stream_query(CUstream handle, enum null_stream null)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	sim_enter();
	result = capture_check_wait(stream);
	if (result == CUDA_SUCCESS)
		result = stream->ctx->sticky;
	if (result == CUDA_SUCCESS && stream->completed < stream->submitted)
		result = CUDA_ERROR_NOT_READY;
	sim_leave();
	return result;
}

/* Getters: one of the outputs is wanted, the others are NULL. */
static CUresult stream_info(CUstream handle, enum null_stream null, unsigned int *flags,
                            int *priority, unsigned long long *id, CUcontext *ctx, CUdevice *device)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!flags && !priority && !id && !ctx && !device)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags)
		*flags = stream->flags;
	if (priority)
		*priority = stream->priority;
	if (id)
		*id = stream->id;
	if (ctx)
		*ctx = stream->ctx;
	if (device)
		*device = stream->ctx->device;
	return CUDA_SUCCESS;
}

static CUresult submit_callback(CUstream handle, enum null_stream null, CUstreamCallback call,
                                void *data)
{
	struct task task = { .kind = TASK_CALLBACK, .callback = { call, handle, data } };
	return call ? stream_submit_to(handle, null, &task, SUBMIT_ASYNC)
	            : CUDA_ERROR_INVALID_VALUE;
}

static CUresult submit_host(CUstream handle, enum null_stream null, CUhostFn call, void *data)
{
	struct task task = { .kind = TASK_HOST, .host = { call, data } };
	return call ? stream_submit_to(handle, null, &task, SUBMIT_ASYNC)
	            : CUDA_ERROR_INVALID_VALUE;
}

API(cuStreamCreate, (CUstream *, stream, unsigned int, flags), stream_create(stream, flags, 0))
API(cuStreamCreateWithPriority, (CUstream *, stream, unsigned int, flags, int, priority),
    stream_create(stream, flags, priority))
API(cuStreamDestroy, (CUstream, stream), stream_destroy(stream))
API(cuStreamDestroy_v2, (CUstream, stream), stream_destroy(stream))
API_PTSZ(cuStreamSynchronize, (CUstream, stream), stream_synchronize(stream, null))
API_PTSZ(cuStreamQuery, (CUstream, stream), stream_query(stream, null))
API_PTSZ(cuStreamGetFlags, (CUstream, stream, unsigned int *, flags),
         stream_info(stream, null, flags, NULL, NULL, NULL, NULL))
API_PTSZ(cuStreamGetPriority, (CUstream, stream, int *, priority),
         stream_info(stream, null, NULL, priority, NULL, NULL, NULL))
API_PTSZ(cuStreamGetId, (CUstream, stream, unsigned long long *, id),
         stream_info(stream, null, NULL, NULL, id, NULL, NULL))
API_PTSZ(cuStreamGetCtx, (CUstream, stream, CUcontext *, ctx),
         stream_info(stream, null, NULL, NULL, NULL, ctx, NULL))
API_PTSZ(cuStreamGetDevice, (CUstream, stream, CUdevice *, device),
         stream_info(stream, null, NULL, NULL, NULL, NULL, device))
API_PTSZ(cuStreamAddCallback,
         (CUstream, stream, CUstreamCallback, call, void *, data, unsigned int, flags),
         submit_callback(stream, null, call, data))
API_PTSZ(cuLaunchHostFunc, (CUstream, stream, CUhostFn, call, void *, data),
         submit_host(stream, null, call, data))
