/* SPDX-License-Identifier: MIT */
/*
 * src/agent/lib/cupti_abi.h and cupti_calls.h against the real headers: compiled where those are,
 * never linked (tests/agent/abi.py). CUDA 11.8's are the oldest that it can be compared with.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <cupti_pcsampling.h>

#include "agent/lib/cupti_abi.h"
#include "agent/lib/cupti_calls.h"
#include "agent/lib/nvtx.h"
#include "agent/lib/pcs_abi.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAVE_NVTX
#endif

#define SAME(ours, theirs) _Static_assert((uint32_t)(ours) == (uint32_t)(theirs), #theirs)
#define AT(ours, field, theirs, name)                                                              \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, name), #theirs "." #name); \
	_Static_assert(sizeof(((struct ours *)0)->field) == sizeof(((theirs *)0)->name),           \
	               #theirs "." #name)
#define AT3(ours, field, theirs, x, z)                                                             \
	_Static_assert(offsetof(struct ours, field[0]) == offsetof(theirs, x), #theirs "." #x);    \
	_Static_assert(offsetof(struct ours, field[2]) == offsetof(theirs, z), #theirs "." #z)
#define SIZE(bytes, theirs) _Static_assert((bytes) == sizeof(theirs), #theirs)

/* ---- numbers ---- */
SAME(CUPTI_OK, CUPTI_SUCCESS);
SAME(CUPTI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
SAME(CUPTI_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
SAME(CUPTI_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
SAME(CUPTI_API_NOT_IMPLEMENTED, CUPTI_ERROR_API_NOT_IMPLEMENTED);
SAME(CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(CUPTI_NOT_READY, CUPTI_ERROR_NOT_READY);
SAME(CUPTI_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
SAME(CUPTI_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
SAME(CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(CUPTI_OLD_PROFILER_INITIALIZED, CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED);
SAME(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN);

SAME(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(CUPTI_KIND_SERIAL_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(CUPTI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(CUPTI_KIND_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(CUPTI_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME(CUPTI_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);

SAME(CUPTI_COPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(CUPTI_COPY_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(CUPTI_COPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME(CUPTI_COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME(CUPTI_MEMORY_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME(CUPTI_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME(CUPTI_MEMORY_MANAGED_STATIC, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
SAME(CUPTI_WAIT_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
SAME(CUPTI_WAIT_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
SAME(CUPTI_OVERHEAD_COMPILER, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
SAME(CUPTI_OVERHEAD_RESOURCE, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
SAME(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
SAME(CUPTI_OBJECT_STREAM, CUPTI_ACTIVITY_OBJECT_STREAM);
SAME(CUPTI_NO_STREAM, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
SAME(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(CUPTI_ATTRIBUTE_DEVICE_BUFFER_SIZE, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
SAME(CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME(CUPTI_ATTRIBUTE_PER_THREAD, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);

SAME(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME(CUPTI_DOMAIN_SYNCHRONIZE, CUPTI_CB_DOMAIN_SYNCHRONIZE);
SAME(CUPTI_DOMAIN_NVTX, CUPTI_CB_DOMAIN_NVTX);
SAME(CUPTI_ENTER, CUPTI_API_ENTER);
SAME(CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME(CUPTI_RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_LOADED);
SAME(CUPTI_RESOURCE_MODULE_PROFILED, CUPTI_CBID_RESOURCE_MODULE_PROFILED);
SAME(CUPTI_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME(CUPTI_RESOURCE_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME(CUPTI_EXIT, CUPTI_API_EXIT);

/* ---- records ---- */
#define KERNEL(theirs)                                                                             \
	AT(cupti_kernel, kind, theirs, kind);                                                      \
	AT(cupti_kernel, registers, theirs, registersPerThread);                                   \
	AT(cupti_kernel, start, theirs, start);                                                    \
	AT(cupti_kernel, end, theirs, end);                                                        \
	AT(cupti_kernel, completed, theirs, completed);                                            \
	AT(cupti_kernel, device, theirs, deviceId);                                                \
	AT(cupti_kernel, context, theirs, contextId);                                              \
	AT(cupti_kernel, stream, theirs, streamId);                                                \
	AT3(cupti_kernel, grid, theirs, gridX, gridZ);                                             \
	AT3(cupti_kernel, block, theirs, blockX, blockZ);                                          \
	AT(cupti_kernel, static_shared_memory, theirs, staticSharedMemory);                        \
	AT(cupti_kernel, dynamic_shared_memory, theirs, dynamicSharedMemory);                      \
	AT(cupti_kernel, local_memory_thread, theirs, localMemoryPerThread);                       \
	AT(cupti_kernel, local_memory_total, theirs, localMemoryTotal);                            \
	AT(cupti_kernel, correlation, theirs, correlationId);                                      \
	AT(cupti_kernel, grid_id, theirs, gridId);                                                 \
	AT(cupti_kernel, name, theirs, name);                                                      \
	AT(cupti_kernel, queued, theirs, queued);                                                  \
	AT(cupti_kernel, submitted, theirs, submitted);                                            \
	AT(cupti_kernel, launch_type, theirs, launchType);                                         \
	AT(cupti_kernel, shared_memory_executed, theirs, sharedMemoryExecuted);                    \
	AT(cupti_kernel, graph_node, theirs, graphNodeId);                                         \
	AT(cupti_kernel, shared_memory_limit, theirs, shmemLimitConfig);                           \
	AT(cupti_kernel, graph, theirs, graphId)
#define MEMCPY(theirs)                                                                             \
	AT(cupti_memcpy, copy_kind, theirs, copyKind);                                             \
	AT(cupti_memcpy, source, theirs, srcKind);                                                 \
	AT(cupti_memcpy, destination, theirs, dstKind);                                            \
	AT(cupti_memcpy, flags, theirs, flags);                                                    \
	AT(cupti_memcpy, bytes, theirs, bytes);                                                    \
	AT(cupti_memcpy, start, theirs, start);                                                    \
	AT(cupti_memcpy, end, theirs, end);                                                        \
	AT(cupti_memcpy, device, theirs, deviceId);                                                \
	AT(cupti_memcpy, context, theirs, contextId);                                              \
	AT(cupti_memcpy, stream, theirs, streamId);                                                \
	AT(cupti_memcpy, correlation, theirs, correlationId);                                      \
	AT(cupti_memcpy, runtime_correlation, theirs, runtimeCorrelationId);                       \
	AT(cupti_memcpy, graph_node, theirs, graphNodeId)
#define PEER(theirs)                                                                               \
	AT(cupti_memcpy_peer, copy_kind, theirs, copyKind);                                        \
	AT(cupti_memcpy_peer, bytes, theirs, bytes);                                               \
	AT(cupti_memcpy_peer, start, theirs, start);                                               \
	AT(cupti_memcpy_peer, stream, theirs, streamId);                                           \
	AT(cupti_memcpy_peer, source_device, theirs, srcDeviceId);                                 \
	AT(cupti_memcpy_peer, destination_device, theirs, dstDeviceId);                            \
	AT(cupti_memcpy_peer, correlation, theirs, correlationId);                                 \
	AT(cupti_memcpy_peer, graph_node, theirs, graphNodeId)
#define MEMSET(theirs)                                                                             \
	AT(cupti_memset, value, theirs, value);                                                    \
	AT(cupti_memset, bytes, theirs, bytes);                                                    \
	AT(cupti_memset, start, theirs, start);                                                    \
	AT(cupti_memset, stream, theirs, streamId);                                                \
	AT(cupti_memset, correlation, theirs, correlationId);                                      \
	AT(cupti_memset, flags, theirs, flags);                                                    \
	AT(cupti_memset, memory_kind, theirs, memoryKind);                                         \
	AT(cupti_memset, graph_node, theirs, graphNodeId)
#define GRAPH(theirs)                                                                              \
	AT(cupti_graph_trace, correlation, theirs, correlationId);                                 \
	AT(cupti_graph_trace, start, theirs, start);                                               \
	AT(cupti_graph_trace, end, theirs, end);                                                   \
	AT(cupti_graph_trace, device, theirs, deviceId);                                           \
	AT(cupti_graph_trace, graph, theirs, graphId);                                             \
	AT(cupti_graph_trace, context, theirs, contextId);                                         \
	AT(cupti_graph_trace, stream, theirs, streamId)
#define WAIT(theirs)                                                                               \
	AT(cupti_synchronization, type, theirs, type);                                             \
	AT(cupti_synchronization, start, theirs, start);                                           \
	AT(cupti_synchronization, correlation, theirs, correlationId);                             \
	AT(cupti_synchronization, context, theirs, contextId);                                     \
	AT(cupti_synchronization, stream, theirs, streamId);                                       \
	AT(cupti_synchronization, event, theirs, cudaEventId)
#define OVERHEAD(theirs)                                                                           \
	AT(cupti_overhead, overhead_kind, theirs, overheadKind);                                   \
	AT(cupti_overhead, object_kind, theirs, objectKind);                                       \
	AT(cupti_overhead, object.process, theirs, objectId.pt.processId);                         \
	AT(cupti_overhead, object.thread, theirs, objectId.pt.threadId);                           \
	AT(cupti_overhead, object.device, theirs, objectId.dcs.deviceId);                          \
	AT(cupti_overhead, start, theirs, start);                                                  \
	AT(cupti_overhead, end, theirs, end)

/* Headers of 13.0 know all the former versions by name. */
#if CUPTI_API_VERSION >= CUPTI_VERSION_13_0
KERNEL(CUpti_ActivityKernel5);
KERNEL(CUpti_ActivityKernel6);
KERNEL(CUpti_ActivityKernel7);
KERNEL(CUpti_ActivityKernel8);
KERNEL(CUpti_ActivityKernel9);
KERNEL(CUpti_ActivityKernel10);
SIZE(sizeof(struct cupti_kernel), CUpti_ActivityKernel5);
SIZE(CUPTI_KERNEL5_BYTES, CUpti_ActivityKernel5);
SIZE(CUPTI_KERNEL10_BYTES, CUpti_ActivityKernel10);
SIZE(offsetof(struct cupti_kernel, graph_node), CUpti_ActivityKernel4);
MEMCPY(CUpti_ActivityMemcpy3);
MEMCPY(CUpti_ActivityMemcpy4);
MEMCPY(CUpti_ActivityMemcpy5);
MEMCPY(CUpti_ActivityMemcpy6);
AT(cupti_memcpy, graph, CUpti_ActivityMemcpy4, graphId);
AT(cupti_memcpy, graph, CUpti_ActivityMemcpy6, graphId);
AT(cupti_memcpy, channel, CUpti_ActivityMemcpy6, channelID);
SIZE(CUPTI_MEMCPY3_BYTES, CUpti_ActivityMemcpy3);
SIZE(CUPTI_MEMCPY6_BYTES, CUpti_ActivityMemcpy6);
SIZE(offsetof(struct cupti_memcpy, graph), CUpti_ActivityMemcpy3);
PEER(CUpti_ActivityMemcpyPtoP2);
PEER(CUpti_ActivityMemcpyPtoP3);
PEER(CUpti_ActivityMemcpyPtoP4);
AT(cupti_memcpy_peer, graph, CUpti_ActivityMemcpyPtoP3, graphId);
AT(cupti_memcpy_peer, graph, CUpti_ActivityMemcpyPtoP4, graphId);
SIZE(CUPTI_MEMCPY_PEER2_BYTES, CUpti_ActivityMemcpyPtoP2);
SIZE(CUPTI_MEMCPY_PEER4_BYTES, CUpti_ActivityMemcpyPtoP4);
SIZE(offsetof(struct cupti_memcpy_peer, graph), CUpti_ActivityMemcpyPtoP2);
MEMSET(CUpti_ActivityMemset2);
MEMSET(CUpti_ActivityMemset3);
MEMSET(CUpti_ActivityMemset4);
AT(cupti_memset, graph, CUpti_ActivityMemset3, graphId);
AT(cupti_memset, graph, CUpti_ActivityMemset4, graphId);
SIZE(CUPTI_MEMSET2_BYTES, CUpti_ActivityMemset2);
SIZE(CUPTI_MEMSET4_BYTES, CUpti_ActivityMemset4);
SIZE(offsetof(struct cupti_memset, graph), CUpti_ActivityMemset2);
WAIT(CUpti_ActivitySynchronization);
WAIT(CUpti_ActivitySynchronization2);
SIZE(CUPTI_SYNCHRONIZATION_BYTES, CUpti_ActivitySynchronization);
SIZE(CUPTI_SYNCHRONIZATION2_BYTES, CUpti_ActivitySynchronization2);
OVERHEAD(CUpti_ActivityOverhead);
OVERHEAD(CUpti_ActivityOverhead2);
OVERHEAD(CUpti_ActivityOverhead3);
AT(cupti_overhead, correlation, CUpti_ActivityOverhead2, correlationId);
AT(cupti_overhead, correlation, CUpti_ActivityOverhead3, correlationId);
SIZE(CUPTI_OVERHEAD_BYTES, CUpti_ActivityOverhead);
SIZE(CUPTI_OVERHEAD3_BYTES, CUpti_ActivityOverhead3);
SIZE(offsetof(struct cupti_overhead, correlation), CUpti_ActivityOverhead);
GRAPH(CUpti_ActivityGraphTrace);
GRAPH(CUpti_ActivityGraphTrace2);
SIZE(CUPTI_GRAPH_TRACE_BYTES, CUpti_ActivityGraphTrace);
SIZE(CUPTI_GRAPH_TRACE2_BYTES, CUpti_ActivityGraphTrace2);
#else
KERNEL(CUpti_ActivityKernel8);
MEMCPY(CUpti_ActivityMemcpy5);
AT(cupti_memcpy, graph, CUpti_ActivityMemcpy5, graphId);
PEER(CUpti_ActivityMemcpyPtoP4);
MEMSET(CUpti_ActivityMemset4);
WAIT(CUpti_ActivitySynchronization);
OVERHEAD(CUpti_ActivityOverhead);
GRAPH(CUpti_ActivityGraphTrace);
#endif

/* ---- callbacks ---- */
AT(cupti_module_data, bytes, CUpti_ModuleResourceData, cubinSize);
AT(cupti_module_data, cubin, CUpti_ModuleResourceData, pCubin);
AT(cupti_graph_data, node, CUpti_GraphData, node);
AT(cupti_graph_data, original_node, CUpti_GraphData, originalNode);
AT(cupti_resource_data, graph, CUpti_ResourceData, resourceDescriptor);
AT(cupti_callback_data, site, CUpti_CallbackData, callbackSite);
AT(cupti_callback_data, function, CUpti_CallbackData, functionName);
AT(cupti_callback_data, parameters, CUpti_CallbackData, functionParams);
AT(cupti_callback_data, result, CUpti_CallbackData, functionReturnValue);
AT(cupti_callback_data, symbol, CUpti_CallbackData, symbolName);
AT(cupti_callback_data, context, CUpti_CallbackData, context);
AT(cupti_callback_data, context_id, CUpti_CallbackData, contextUid);
AT(cupti_callback_data, data, CUpti_CallbackData, correlationData);
AT(cupti_callback_data, correlation, CUpti_CallbackData, correlationId);

#ifdef CUpti_SubscriberParams_STRUCT_SIZE
AT(cupti_subscriber_params, struct_bytes, CUpti_SubscriberParams, structSize);
AT(cupti_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
AT(cupti_subscriber_params, other, CUpti_SubscriberParams, oldSubscriberName);
AT(cupti_subscriber_params, other_bytes, CUpti_SubscriberParams, oldSubscriberSize);
SAME(CUPTI_OTHER_BYTES, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
#if CUPTI_API_VERSION < 130200
SAME(CUPTI_PARAMS_BYTES_13_0, CUpti_SubscriberParams_STRUCT_SIZE);
#else
SAME(sizeof(struct cupti_subscriber_params), CUpti_SubscriberParams_STRUCT_SIZE);
AT(cupti_subscriber_params, several, CUpti_SubscriberParams, allowMultipleSubscribers);
#endif
#endif

/* ---- calls: the headers have no number for those that are newer ---- */
#define LAUNCH(theirs)                                                                             \
	AT(cupti_launch, function, theirs, f);                                                     \
	AT3(cupti_launch, grid, theirs, gridDimX, gridDimZ);                                       \
	AT3(cupti_launch, block, theirs, blockDimX, blockDimZ);                                    \
	AT(cupti_launch, shared_bytes, theirs, sharedMemBytes);                                    \
	AT(cupti_launch, stream, theirs, hStream);                                                 \
	AT(cupti_launch, parameters, theirs, kernelParams)
LAUNCH(cuLaunchKernel_params);
LAUNCH(cuLaunchKernel_ptsz_params);
LAUNCH(cuLaunchCooperativeKernel_params);
LAUNCH(cuLaunchCooperativeKernel_ptsz_params);
AT(cupti_launch, extra, cuLaunchKernel_params, extra);
AT(cupti_launch_ex, config, cuLaunchKernelEx_params, config);
AT(cupti_launch_ex, function, cuLaunchKernelEx_params, f);
AT(cupti_launch_ex, parameters, cuLaunchKernelEx_params, kernelParams);
AT(cupti_launch_ex, extra, cuLaunchKernelEx_params, extra);
AT3(cupti_launch_config, grid, CUlaunchConfig, gridDimX, gridDimZ);
AT3(cupti_launch_config, block, CUlaunchConfig, blockDimX, blockDimZ);
AT(cupti_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
AT(cupti_launch_config, stream, CUlaunchConfig, hStream);
AT(cupti_launch_config, attributes, CUlaunchConfig, attrs);
AT(cupti_launch_config, n_attributes, CUlaunchConfig, numAttrs);
AT(cupti_graph_launch, graph, cuGraphLaunch_params, hGraph);
AT(cupti_graph_launch, stream, cuGraphLaunch_params, hStream);

/* ---- functions ---- */
#define FUNCTION(name, since, arguments)                                                           \
	_Static_assert(sizeof(&name) == sizeof(uint32_t(*) arguments), #name);
CUPTI_FUNCTIONS(FUNCTION)
#if CUPTI_API_VERSION >= 130300
CUPTI_FUNCTIONS_V2(FUNCTION)
#endif

/* ---- PC sampling ---- */
SAME(PCS_PERIOD, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
SAME(PCS_REASONS, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON);
SAME(PCS_SCRATCH_BYTES, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
SAME(PCS_HARDWARE_BYTES, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
SAME(PCS_MODE, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
SAME(PCS_START_STOP, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL);
SAME(PCS_FORMAT, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT);
SAME(PCS_BUFFER, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
SAME(PCS_MODE_CONTINUOUS, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
SAME(PCS_FORMAT_PARSED, CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED);
SAME(PCS_REASON_NAME, CUPTI_STALL_REASON_STRING_SIZE);
SAME(PCS_CONTEXT_BYTES, CUpti_PCSamplingEnableParamsSize);
SAME(PCS_CONTEXT_BYTES, CUpti_PCSamplingStopParamsSize);
SAME(PCS_CONFIGURE_BYTES, CUpti_PCSamplingConfigurationInfoParamsSize);
SAME(PCS_GET_BYTES, CUpti_PCSamplingGetDataParamsSize);
SAME(PCS_COUNT_BYTES, CUpti_PCSamplingGetNumStallReasonsParamsSize);
SAME(PCS_REASONS_BYTES, CUpti_PCSamplingGetStallReasonsParamsSize);
SAME(PCS_CRC_BYTES, CUpti_GetCubinCrcParamsSize);
SAME(PCS_LINE_BYTES, CUpti_GetSassToSourceCorrelationParamsSize);
AT(pcs_crc, cubin, CUpti_GetCubinCrcParams, cubin);
AT(pcs_line, line, CUpti_GetSassToSourceCorrelationParams, lineNumber);
AT(pcs_line, file, CUpti_GetSassToSourceCorrelationParams, fileName);
SIZE(sizeof(struct pcs_stall), CUpti_PCSamplingStallReason);
SIZE(sizeof(struct pcs_attribute), CUpti_PCSamplingConfigurationInfo);
AT(pcs_attribute, words, CUpti_PCSamplingConfigurationInfo, attributeData);
AT(pcs_pc, cubin, CUpti_PCSamplingPCData, cubinCrc);
AT(pcs_pc, offset, CUpti_PCSamplingPCData, pcOffset);
AT(pcs_pc, name, CUpti_PCSamplingPCData, functionName);
AT(pcs_pc, n_stalls, CUpti_PCSamplingPCData, stallReasonCount);
AT(pcs_pc, stalls, CUpti_PCSamplingPCData, stallReason);
AT(pcs_data, room, CUpti_PCSamplingData, collectNumPcs);
AT(pcs_data, samples, CUpti_PCSamplingData, totalSamples);
AT(pcs_data, dropped, CUpti_PCSamplingData, droppedSamples);
AT(pcs_data, n, CUpti_PCSamplingData, totalNumPcs);
AT(pcs_data, left, CUpti_PCSamplingData, remainingNumPcs);
AT(pcs_data, pcs, CUpti_PCSamplingData, pPcData);
AT(pcs_data, foreign_samples, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
#if CUPTI_API_VERSION >= CUPTI_VERSION_STALLS
SIZE(sizeof(struct pcs_pc), CUpti_PCSamplingPCData);
SIZE(sizeof(struct pcs_data), CUpti_PCSamplingData);
AT(pcs_data, hardware_full, CUpti_PCSamplingData, hardwareBufferFull);
#endif

/* ---- NVTX ---- */
#ifdef HAVE_NVTX
SAME(NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(NVTX_CORE_MarkEx, NVTX_CBID_CORE_MarkEx);
SAME(NVTX_CORE_MarkW, NVTX_CBID_CORE_MarkW);
SAME(NVTX_CORE_RangeStartEx, NVTX_CBID_CORE_RangeStartEx);
SAME(NVTX_CORE_RangeEnd, NVTX_CBID_CORE_RangeEnd);
SAME(NVTX_CORE_RangePushA, NVTX_CBID_CORE_RangePushA);
SAME(NVTX_CORE_RangePop, NVTX_CBID_CORE_RangePop);
SAME(NVTX_CORE2_DomainMarkEx, NVTX_CBID_CORE2_DomainMarkEx);
SAME(NVTX_CORE2_DomainRangePop, NVTX_CBID_CORE2_DomainRangePop);
SAME(NVTX_CORE2_DomainRegisterStringA, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(NVTX_CORE2_DomainRegisterStringW, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(NVTX_CORE2_DomainCreateA, NVTX_CBID_CORE2_DomainCreateA);
SAME(NVTX_CORE2_DomainDestroy, NVTX_CBID_CORE2_DomainDestroy);
SAME(NVTX_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(NVTX_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(NVTX_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(NVTX_NOT_TRACKED, NVTX_NO_PUSH_POP_TRACKING);
AT(nvtx_attributes, bytes, nvtxEventAttributes_t, size);
AT(nvtx_attributes, message_type, nvtxEventAttributes_t, messageType);
AT(nvtx_attributes, message, nvtxEventAttributes_t, message);
SIZE(sizeof(struct nvtx_attributes), nvtxEventAttributes_t);
AT(nvtx_callbacks, get_module_functions, NvtxExportTableCallbacks, GetModuleFunctionTable);
#endif
