// SPDX-License-Identifier: MIT
/*
 * What libcupti's records, numbers and functions are, compared with the real headers (CUDA 13.0):
 * compiled by make check-simcuda-signatures, never run.
 */
#include <cupti.h>

#include "../cupti/records.h"
#include "../cupti/sites.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(RESULT_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
SAME(RESULT_INVALID_CONTEXT, CUPTI_ERROR_INVALID_CONTEXT);
SAME(RESULT_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
SAME(RESULT_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
SAME(RESULT_SIZE_NOT_SUFFICIENT, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
SAME(RESULT_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(RESULT_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME(RESULT_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(RESULT_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
SAME(RESULT_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
SAME(RESULT_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(RESULT_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(RESULT_UNKNOWN, CUPTI_ERROR_UNKNOWN);
SAME(KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(KIND_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME(KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME(KINDS, CUPTI_ACTIVITY_KIND_COUNT);
SAME(COPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME(FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
SAME(FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
SAME(FLAG_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(OVERHEAD_FLUSH, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
SAME(OVERHEAD_RESOURCE, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
SAME(OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
SAME(LAUNCH_COOPERATIVE, CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE);
SAME(CHANNEL_COMPUTE, CUPTI_CHANNEL_TYPE_COMPUTE);
SAME(CHANNEL_COPY, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
SAME(THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME(9, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
SAME(130001, CUPTI_API_VERSION);

/* As long as the newest, and as former ones were. */
SAME(sizeof(struct kernel_record), sizeof(CUpti_ActivityKernel10));
SAME(sizeof(struct copy_record), sizeof(CUpti_ActivityMemcpy6));
SAME(sizeof(struct peer_record), sizeof(CUpti_ActivityMemcpyPtoP4));
SAME(sizeof(struct set_record), sizeof(CUpti_ActivityMemset4));
SAME(sizeof(struct wait_record), sizeof(CUpti_ActivitySynchronization2));
SAME(sizeof(struct overhead_record), sizeof(CUpti_ActivityOverhead3));
SAME(sizeof(struct graph_record), sizeof(CUpti_ActivityGraphTrace2));
SAME(sizeof(struct api_record), sizeof(CUpti_ActivityAPI));
SAME(sizeof(struct callback_data), sizeof(CUpti_CallbackData));
SAME(sizeof(struct graph_data), sizeof(CUpti_GraphData));
SAME(sizeof(struct resource_data), sizeof(CUpti_ResourceData));
SAME(RESOURCE_CONTEXT_DESTROY_STARTING, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME(RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_LOADED);
SAME(RESOURCE_MODULE_PROFILED, CUPTI_CBID_RESOURCE_MODULE_PROFILED);
SAME(sizeof(struct module_data), sizeof(CUpti_ModuleResourceData));
SAME(RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME(RESOURCE_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);

#define BYTES(kind, member, old, middle, now)                                                      \
	enum { kind##_OLD = old, kind##_MIDDLE = middle, kind##_NOW = now };
RECORD_VERSIONS(BYTES)
SAME(KIND_CONCURRENT_KERNEL_OLD, sizeof(CUpti_ActivityKernel5));
SAME(KIND_CONCURRENT_KERNEL_MIDDLE, sizeof(CUpti_ActivityKernel9));
SAME(KIND_CONCURRENT_KERNEL_NOW, sizeof(CUpti_ActivityKernel10));
SAME(KIND_MEMCPY_OLD, sizeof(CUpti_ActivityMemcpy3));
SAME(KIND_MEMCPY_MIDDLE, sizeof(CUpti_ActivityMemcpy5));
SAME(KIND_MEMCPY_NOW, sizeof(CUpti_ActivityMemcpy6));
SAME(KIND_MEMCPY2_OLD, sizeof(CUpti_ActivityMemcpyPtoP2));
SAME(KIND_MEMCPY2_NOW, sizeof(CUpti_ActivityMemcpyPtoP4));
SAME(KIND_MEMSET_OLD, sizeof(CUpti_ActivityMemset2));
SAME(KIND_MEMSET_NOW, sizeof(CUpti_ActivityMemset4));
SAME(KIND_SYNCHRONIZATION_OLD, sizeof(CUpti_ActivitySynchronization));
SAME(KIND_SYNCHRONIZATION_NOW, sizeof(CUpti_ActivitySynchronization2));
SAME(KIND_OVERHEAD_OLD, sizeof(CUpti_ActivityOverhead));
SAME(KIND_OVERHEAD_MIDDLE, sizeof(CUpti_ActivityOverhead2));
SAME(KIND_OVERHEAD_NOW, sizeof(CUpti_ActivityOverhead3));
SAME(KIND_GRAPH_TRACE_MIDDLE, sizeof(CUpti_ActivityGraphTrace));
SAME(KIND_GRAPH_TRACE_NOW, sizeof(CUpti_ActivityGraphTrace2));
SAME(KIND_DRIVER_NOW, sizeof(CUpti_ActivityAPI));

/* Fields, by where they are. */
#define AT(ours, member, theirs, field)                                                            \
	_Static_assert(offsetof(struct ours, member) == offsetof(theirs, field), #theirs "." #field)

#define KERNEL(member, field) AT(kernel_record, member, CUpti_ActivityKernel10, field)
KERNEL(registers, registersPerThread);
KERNEL(start, start);
KERNEL(end, end);
KERNEL(completed, completed);
KERNEL(device, deviceId);
KERNEL(context, contextId);
KERNEL(stream, streamId);
KERNEL(grid, gridX);
KERNEL(block, blockX);
KERNEL(shared_static, staticSharedMemory);
KERNEL(shared_dynamic, dynamicSharedMemory);
KERNEL(correlation, correlationId);
KERNEL(grid_id, gridId);
KERNEL(name, name);
KERNEL(launch_type, launchType);
KERNEL(graph_node, graphNodeId);
KERNEL(graph, graphId);
KERNEL(channel_type, channelType);
KERNEL(device_launched, isDeviceLaunched);

#define COPY(member, field) AT(copy_record, member, CUpti_ActivityMemcpy6, field)
COPY(copy_kind, copyKind);
COPY(from, srcKind);
COPY(to, dstKind);
COPY(flags, flags);
COPY(bytes, bytes);
COPY(start, start);
COPY(device, deviceId);
COPY(context, contextId);
COPY(stream, streamId);
COPY(correlation, correlationId);
COPY(graph_node, graphNodeId);
COPY(graph, graphId);
COPY(channel_type, channelType);
COPY(copies, copyCount);

#define PEER(member, field) AT(peer_record, member, CUpti_ActivityMemcpyPtoP4, field)
PEER(copy_kind, copyKind);
PEER(bytes, bytes);
PEER(start, start);
PEER(stream, streamId);
PEER(from_device, srcDeviceId);
PEER(from_context, srcContextId);
PEER(to_device, dstDeviceId);
PEER(to_context, dstContextId);
PEER(correlation, correlationId);
PEER(graph_node, graphNodeId);
PEER(graph, graphId);

#define SET(member, field) AT(set_record, member, CUpti_ActivityMemset4, field)
SET(value, value);
SET(bytes, bytes);
SET(start, start);
SET(stream, streamId);
SET(correlation, correlationId);
SET(flags, flags);
SET(to, memoryKind);
SET(graph_node, graphNodeId);
SET(graph, graphId);

#define WAIT(member, field) AT(wait_record, member, CUpti_ActivitySynchronization2, field)
WAIT(type, type);
WAIT(start, start);
WAIT(correlation, correlationId);
WAIT(context, contextId);
WAIT(stream, streamId);
WAIT(event, cudaEventId);
WAIT(event_record, cudaEventSyncId);
WAIT(result, returnValue);

#define OVERHEAD(member, field) AT(overhead_record, member, CUpti_ActivityOverhead3, field)
OVERHEAD(overhead_kind, overheadKind);
OVERHEAD(object_kind, objectKind);
OVERHEAD(process, objectId.pt.processId);
OVERHEAD(thread, objectId.pt.threadId);
OVERHEAD(start, start);
OVERHEAD(correlation, correlationId);

#define GRAPH(member, field) AT(graph_record, member, CUpti_ActivityGraphTrace2, field)
GRAPH(correlation, correlationId);
GRAPH(start, start);
GRAPH(device, deviceId);
GRAPH(graph, graphId);
GRAPH(context, contextId);
GRAPH(stream, streamId);
GRAPH(end_device, endDeviceId);

#define CALL(member, field) AT(api_record, member, CUpti_ActivityAPI, field)
CALL(site, cbid);
CALL(start, start);
CALL(process, processId);
CALL(thread, threadId);
CALL(correlation, correlationId);
CALL(result, returnValue);

#define TOLD(member, field) AT(callback_data, member, CUpti_CallbackData, field)
TOLD(site, callbackSite);
TOLD(function, functionName);
TOLD(params, functionParams);
TOLD(result, functionReturnValue);
TOLD(symbol, symbolName);
TOLD(context, context);
TOLD(context_number, contextUid);
TOLD(data, correlationData);
TOLD(correlation, correlationId);

/* Numbers of functions. */
#define DRIVER_SITE(number, name) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
#define RUNTIME_SITE(number, name, release)                                                        \
	SAME(number, CUPTI_RUNTIME_TRACE_CBID_##name##_v##release);
DRIVER_SITES(DRIVER_SITE)
RUNTIME_SITES(RUNTIME_SITE)
