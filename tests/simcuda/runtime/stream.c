// SPDX-License-Identifier: MIT
/* Streams, events and captures. */
#include "runtime.h"

#if CUDART_MAJOR < 13
static CUresult capture_info_12(bool per_thread, cudaStream_t stream, void *status, cuuint64_t *id,
                                cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count)
{
	return DRV(cuStreamGetCaptureInfo_v3, _ptsz)(stream, status, id, graph, nodes, NULL, count);
}
#endif

RT(cudaStreamCreate, (cudaStream_t *, stream), drv.cuStreamCreate(stream, 0))
RT(cudaStreamCreateWithFlags, (cudaStream_t *, stream, unsigned int, flags),
   drv.cuStreamCreate(stream, flags))
RT(cudaStreamCreateWithPriority, (cudaStream_t *, stream, unsigned int, flags, int, priority),
   drv.cuStreamCreateWithPriority(stream, flags, priority))
RT(cudaStreamDestroy, (cudaStream_t, stream), drv.cuStreamDestroy_v2(stream))
RT_PTSZ(cudaStreamSynchronize, (cudaStream_t, stream), DRV(cuStreamSynchronize, _ptsz)(stream))
RT_PTSZ(cudaStreamQuery, (cudaStream_t, stream), DRV(cuStreamQuery, _ptsz)(stream))
RT_PTSZ(cudaStreamGetPriority, (cudaStream_t, stream, int *, priority),
        DRV(cuStreamGetPriority, _ptsz)(stream, priority))
RT_PTSZ(cudaStreamGetFlags, (cudaStream_t, stream, unsigned int *, flags),
        DRV(cuStreamGetFlags, _ptsz)(stream, flags))
RT_PTSZ(cudaStreamGetId, (cudaStream_t, stream, unsigned long long *, id),
        DRV(cuStreamGetId, _ptsz)(stream, id))
RT_PTSZ(cudaStreamWaitEvent, (cudaStream_t, stream, cudaEvent_t, event, unsigned int, flags),
        DRV(cuStreamWaitEvent, _ptsz)(stream, event, flags))
RT_PTSZ(cudaStreamAddCallback,
        (cudaStream_t, stream, cudaStreamCallback_t, callback, void *, data, unsigned int, flags),
        DRV(cuStreamAddCallback, _ptsz)(stream, (CUstreamCallback)callback, data, flags))
RT_PTSZ(cudaLaunchHostFunc, (cudaStream_t, stream, cudaHostFn_t, call, void *, data),
        DRV(cuLaunchHostFunc, _ptsz)(stream, call, data))
RT_PTSZ(cudaStreamBeginCapture, (cudaStream_t, stream, enum cudaStreamCaptureMode, mode),
        DRV(cuStreamBeginCapture_v2, _ptsz)(stream, (CUstreamCaptureMode)mode))
RT_PTSZ(cudaStreamEndCapture, (cudaStream_t, stream, cudaGraph_t *, graph),
        DRV(cuStreamEndCapture, _ptsz)(stream, graph))
RT_PTSZ(cudaStreamIsCapturing, (cudaStream_t, stream, enum cudaStreamCaptureStatus *, status),
        DRV(cuStreamIsCapturing, _ptsz)(stream, (CUstreamCaptureStatus *)status))
RT(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode *, mode),
   drv.cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))
#if CUDART_MAJOR < 13
RT_PTSZ(cudaStreamGetCaptureInfo,
        (cudaStream_t, stream, enum cudaStreamCaptureStatus *, status, unsigned long long *, id),
        capture_info_12(per_thread, stream, status, (cuuint64_t *)id, NULL, NULL, NULL))
RT_PTSZ(cudaStreamGetCaptureInfo_v2,
        (cudaStream_t, stream, enum cudaStreamCaptureStatus *, status, unsigned long long *, id,
         cudaGraph_t *, graph, const cudaGraphNode_t **, nodes, size_t *, count),
        capture_info_12(per_thread, stream, status, (cuuint64_t *)id, graph, nodes, count))
#else
RT_PTSZ(cudaStreamGetCaptureInfo,
        (cudaStream_t, stream, enum cudaStreamCaptureStatus *, status, unsigned long long *, id,
         cudaGraph_t *, graph, const cudaGraphNode_t **, nodes, const cudaGraphEdgeData **, edges,
         size_t *, count),
        DRV(cuStreamGetCaptureInfo_v3, _ptsz)(stream, (CUstreamCaptureStatus *)status,
                                              (cuuint64_t *)id, graph, nodes,
                                              (const CUgraphEdgeData **)edges, count))
#endif
RT(cudaEventCreate, (cudaEvent_t *, event), drv.cuEventCreate(event, 0))
RT(cudaEventCreateWithFlags, (cudaEvent_t *, event, unsigned int, flags),
   drv.cuEventCreate(event, flags))
RT(cudaEventDestroy, (cudaEvent_t, event), drv.cuEventDestroy_v2(event))
RT(cudaEventQuery, (cudaEvent_t, event), drv.cuEventQuery(event))
RT(cudaEventSynchronize, (cudaEvent_t, event), drv.cuEventSynchronize(event))
RT(cudaEventElapsedTime, (float *, milliseconds, cudaEvent_t, start, cudaEvent_t, end),
   drv.cuEventElapsedTime_v2(milliseconds, start, end))
RT_PTSZ(cudaEventRecord, (cudaEvent_t, event, cudaStream_t, stream),
        DRV(cuEventRecord, _ptsz)(event, stream))
RT_PTSZ(cudaEventRecordWithFlags, (cudaEvent_t, event, cudaStream_t, stream, unsigned int, flags),
        DRV(cuEventRecordWithFlags, _ptsz)(event, stream, flags))
