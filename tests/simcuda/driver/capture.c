// SPDX-License-Identifier: MIT
#include "capture.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "graph.h"

struct capture {
	struct capture *next; /* in the list of those that are active */
	CUgraph graph;
	CUstream origin;
	CUstreamCaptureMode mode;
	uint64_t thread;
	cuuint64_t id;
	unsigned int refs;
	bool invalid, ended;
};

/* Guarded by sim_lock; read without it to see quickly that there is none. */
static struct capture *captures;

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

struct capture *capture_get(struct capture *capture)
{
	capture->refs++;
	return capture;
}

void capture_put(struct capture *capture)
{
	if (capture && --capture->refs == 0)
		free(capture);
}

static bool any_capture(void)
{
	return __atomic_load_n(&captures, __ATOMIC_RELAXED) != NULL;
}

static bool forbids_here(const struct capture *capture)
{
	if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
	    thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (capture->thread == thread_number())
		return true;
	return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

static CUresult forbid_locked(void)
{
	CUresult result = CUDA_SUCCESS;
	for (struct capture *capture = captures; capture; capture = capture->next) {
		if (!forbids_here(capture))
			continue;
		capture->invalid = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return result;
}

CUresult capture_forbids_unsafe(void)
{
	if (!any_capture())
		return CUDA_SUCCESS;
	sim_enter();
	CUresult result = forbid_locked();
	sim_leave();
	return result;
}

/* Work on the legacy stream would wait for every blocking stream: not for one that captures. */
static CUresult check_implicit(CUstream legacy)
{
	CUresult result = CUDA_SUCCESS;
	for (CUstream stream = legacy->ctx->streams; stream; stream = stream->next) {
		if (stream->capture && !(stream->flags & CU_STREAM_NON_BLOCKING)) {
			stream->capture->invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	return result;
}

CUresult capture_check(CUstream stream, bool wait)
{
	if (!any_capture())
		return CUDA_SUCCESS;
	if (stream->role == STREAM_LEGACY)
		return check_implicit(stream);
	return wait ? capture_check_wait(stream) : CUDA_SUCCESS;
}

CUresult capture_check_wait(CUstream stream)
{
	if (!any_capture())
		return CUDA_SUCCESS;
	if (stream->role == STREAM_LEGACY)
		return check_implicit(stream);
	if (!stream->capture)
		return CUDA_SUCCESS;
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_check_context(CUcontext ctx)
{
	CUresult result = CUDA_SUCCESS;
	if (!any_capture())
		return CUDA_SUCCESS;
	for (CUstream stream = ctx->streams; stream; stream = stream->next) {
		if (stream->capture) {
			stream->capture->invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return result;
}

CUresult capture_add(CUstream stream, const struct task *task)
{
	struct capture *capture = stream->capture;
	CUgraphNode node = NULL;
	CUresult result = CUDA_SUCCESS;
	if (task->kind == TASK_CALLBACK) {
		capture->invalid = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (capture->invalid) {
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else {
		node = graph_add(capture->graph, task, stream->last.node, stream->last.n);
		if (!node)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!node) {
		task_put(task);
	} else {
		node_list_clear(&stream->last);
		node_list_add(&stream->last, node);
	}
	return result;
}

static void detach(CUstream stream)
{
	capture_put(stream->capture);
	stream->capture = NULL;
	node_list_clear(&stream->last);
}

void capture_abandon(CUstream stream)
{
	if (!stream->capture)
		return;
	stream->capture->invalid = true;
	detach(stream);
}

CUresult capture_join(CUstream stream, struct capture *capture, const struct node_list *after)
{
	if (capture->ended)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (stream->capture && stream->capture != capture) {
		stream->capture->invalid = capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (!stream->capture)
		stream->capture = capture_get(capture);
	for (size_t i = 0; i < after->n; i++) {
		if (!node_list_add(&stream->last, after->node[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static CUresult begin_locked(CUstream stream, CUgraph graph, CUstreamCaptureMode mode)
{
	static cuuint64_t last_id;
	if (stream->role == STREAM_LEGACY)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct capture *capture = calloc(1, sizeof(*capture));
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*capture = (struct capture){ .next = captures,
		                     .graph = graph,
		                     .origin = stream,
		                     .mode = mode,
		                     .thread = thread_number(),
		                     .id = ++last_id,
		                     .refs = 2 };
	__atomic_store_n(&captures, capture, __ATOMIC_RELAXED);
	stream->capture = capture;
	return CUDA_SUCCESS;
}

static CUresult capture_begin(CUstream handle, enum null_stream null, CUstreamCaptureMode mode)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraph graph = graph_new();
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_enter();
	result = begin_locked(stream, graph, mode);
	if (result != CUDA_SUCCESS)
		graph_free(graph);
	sim_leave();
	return result;
}

/* Whether every branch of the capture has come back to the stream where it began. */
static bool all_joined(const struct capture *capture)
{
	const struct node_list *last = &capture->origin->last;
	for (size_t i = 0; i < capture->graph->nodes.n; i++) {
		CUgraphNode node = capture->graph->nodes.node[i];
		if (graph_node_has_dependents(node))
			continue;
		size_t j = 0;
		while (j < last->n && last->node[j] != node)
			j++;
		if (j == last->n)
			return false;
	}
	return true;
}

static CUresult end_locked(CUstream stream, CUgraph *graph)
{
	struct capture *capture = stream->capture;
	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread_number())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	CUresult result = CUDA_SUCCESS;
	if (capture->invalid)
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!all_joined(capture))
		result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	capture->ended = true;
	for (CUstream other = stream->ctx->streams; other; other = other->next) {
		if (other->capture == capture)
			detach(other);
	}
	for (struct capture **link = &captures; *link; link = &(*link)->next) {
		if (*link == capture) {
			__atomic_store_n(link, capture->next, __ATOMIC_RELAXED);
			break;
		}
	}
	*graph = result == CUDA_SUCCESS ? capture->graph : NULL;
	if (result != CUDA_SUCCESS)
		graph_free(capture->graph);
	capture->graph = NULL;
	capture_put(capture);
	return result;
}

static CUresult capture_end(CUstream handle, enum null_stream null, CUgraph *graph)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	result = end_locked(stream, graph);
	sim_leave();
	return result;
}

static CUresult capture_info(CUstream handle, enum null_stream null, CUstreamCaptureStatus *status,
                             cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                             size_t *count)
{
	CUstream stream;
	CUresult result = stream_find(handle, null, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	const struct capture *capture = stream->capture;
	*status = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
	          : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
	                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (capture && !capture->invalid) {
		if (id)
			*id = capture->id;
		if (graph)
			*graph = capture->graph;
		if (nodes)
			*nodes = stream->last.node;
		if (count)
			*count = stream->last.n;
	}
	sim_leave();
	return CUDA_SUCCESS;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode old = thread_mode;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

API_PTSZ(cuStreamBeginCapture, (CUstream, stream),
         capture_begin(stream, null, CU_STREAM_CAPTURE_MODE_GLOBAL))
API_PTSZ(cuStreamBeginCapture_v2, (CUstream, stream, CUstreamCaptureMode, mode),
         capture_begin(stream, null, mode))
API_PTSZ(cuStreamEndCapture, (CUstream, stream, CUgraph *, graph), capture_end(stream, null, graph))
API_PTSZ(cuStreamIsCapturing, (CUstream, stream, CUstreamCaptureStatus *, status),
         capture_info(stream, null, status, NULL, NULL, NULL, NULL))
API_PTSZ(cuStreamGetCaptureInfo,
         (CUstream, stream, CUstreamCaptureStatus *, status, cuuint64_t *, id),
         capture_info(stream, null, status, id, NULL, NULL, NULL))
API_PTSZ(cuStreamGetCaptureInfo_v2,
         (CUstream, stream, CUstreamCaptureStatus *, status, cuuint64_t *, id, CUgraph *, graph,
          const CUgraphNode **, nodes, size_t *, count),
         capture_info(stream, null, status, id, graph, nodes, count))
API_PTSZ(cuStreamGetCaptureInfo_v3,
         (CUstream, stream, CUstreamCaptureStatus *, status, cuuint64_t *, id, CUgraph *, graph,
          const CUgraphNode **, nodes, const CUgraphEdgeData **, edges, size_t *, count),
         capture_info(stream, null, status, id, graph, nodes, count))
API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *, mode), exchange_mode(mode))
