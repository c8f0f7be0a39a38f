/* SPDX-License-Identifier: MIT */
/*
 * Prototypes of the driver functions that the simulated runtime and the test programs call. They
 * are never linked against: callers find them with dlsym or cuGetProcAddress, as real programs do,
 * and take the type from here.
 */
#ifndef SIMCUDA_DRIVER_API_H
#define SIMCUDA_DRIVER_API_H

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* device and context */
CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int len, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);
CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params, unsigned int flags,
                        CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxGetCurrent(CUcontext *ctx);
CUresult cuCtxPushCurrent_v2(CUcontext ctx);
CUresult cuCtxPopCurrent_v2(CUcontext *ctx);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx);
CUresult cuCtxGetLimit(size_t *value, CUlimit limit);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuCtxGetCacheConfig(CUfunc_cache *config);
CUresult cuCtxSetCacheConfig(CUfunc_cache config);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);
CUresult cuCtxSynchronize(void);

/* memory */
CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned int element);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemAllocHost_v2(void **address, size_t bytes);
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags);
CUresult cuMemFreeHost(void *address);
CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *address);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags);
CUresult cuMemHostGetFlags(unsigned int *flags, void *address);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address);
CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address);
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                      CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option);
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr at,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count);
CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                        CUmemLocation location);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                               unsigned int flags, CUstream stream);
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                    unsigned int flags, CUstream stream);
CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor);
CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array);
CUresult cuArrayDestroy(CUarray array);

/* copies and sets: each for the legacy default stream and, _ptds or _ptsz, for the thread's own */
#define SIMCUDA_COPY(name, suffix, ...)                                                            \
	CUresult name(__VA_ARGS__);                                                                \
	CUresult name##suffix(__VA_ARGS__)

SIMCUDA_COPY(cuMemcpy, _ptds, CUdeviceptr dst, CUdeviceptr src, size_t bytes);
SIMCUDA_COPY(cuMemcpyAsync, _ptsz, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
SIMCUDA_COPY(cuMemcpyHtoD_v2, _ptds, CUdeviceptr dst, const void *src, size_t bytes);
SIMCUDA_COPY(cuMemcpyDtoH_v2, _ptds, void *dst, CUdeviceptr src, size_t bytes);
SIMCUDA_COPY(cuMemcpyDtoD_v2, _ptds, CUdeviceptr dst, CUdeviceptr src, size_t bytes);
SIMCUDA_COPY(cuMemcpyHtoDAsync_v2, _ptsz, CUdeviceptr dst, const void *src, size_t bytes,
             CUstream stream);
SIMCUDA_COPY(cuMemcpyDtoHAsync_v2, _ptsz, void *dst, CUdeviceptr src, size_t bytes,
             CUstream stream);
SIMCUDA_COPY(cuMemcpyDtoDAsync_v2, _ptsz, CUdeviceptr dst, CUdeviceptr src, size_t bytes,
             CUstream stream);
SIMCUDA_COPY(cuMemcpyPeer, _ptds, CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
             CUcontext src_ctx, size_t bytes);
SIMCUDA_COPY(cuMemcpyPeerAsync, _ptsz, CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
             CUcontext src_ctx, size_t bytes, CUstream stream);
SIMCUDA_COPY(cuMemcpy2D_v2, _ptds, const CUDA_MEMCPY2D *copy);
SIMCUDA_COPY(cuMemcpy2DUnaligned_v2, _ptds, const CUDA_MEMCPY2D *copy);
SIMCUDA_COPY(cuMemcpy2DAsync_v2, _ptsz, const CUDA_MEMCPY2D *copy, CUstream stream);
SIMCUDA_COPY(cuMemcpy3D_v2, _ptds, const CUDA_MEMCPY3D *copy);
SIMCUDA_COPY(cuMemcpy3DAsync_v2, _ptsz, const CUDA_MEMCPY3D *copy, CUstream stream);
SIMCUDA_COPY(cuMemsetD8_v2, _ptds, CUdeviceptr dst, unsigned char value, size_t count);
SIMCUDA_COPY(cuMemsetD16_v2, _ptds, CUdeviceptr dst, unsigned short value, size_t count);
SIMCUDA_COPY(cuMemsetD32_v2, _ptds, CUdeviceptr dst, unsigned int value, size_t count);
SIMCUDA_COPY(cuMemsetD8Async, _ptsz, CUdeviceptr dst, unsigned char value, size_t count,
             CUstream stream);
SIMCUDA_COPY(cuMemsetD16Async, _ptsz, CUdeviceptr dst, unsigned short value, size_t count,
             CUstream stream);
SIMCUDA_COPY(cuMemsetD32Async, _ptsz, CUdeviceptr dst, unsigned int value, size_t count,
             CUstream stream);
SIMCUDA_COPY(cuMemsetD2D8_v2, _ptds, CUdeviceptr dst, size_t pitch, unsigned char value,
             size_t width, size_t height);
SIMCUDA_COPY(cuMemsetD2D16_v2, _ptds, CUdeviceptr dst, size_t pitch, unsigned short value,
             size_t width, size_t height);
SIMCUDA_COPY(cuMemsetD2D32_v2, _ptds, CUdeviceptr dst, size_t pitch, unsigned int value,
             size_t width, size_t height);
SIMCUDA_COPY(cuMemsetD2D8Async, _ptsz, CUdeviceptr dst, size_t pitch, unsigned char value,
             size_t width, size_t height, CUstream stream);
SIMCUDA_COPY(cuMemsetD2D16Async, _ptsz, CUdeviceptr dst, size_t pitch, unsigned short value,
             size_t width, size_t height, CUstream stream);
SIMCUDA_COPY(cuMemsetD2D32Async, _ptsz, CUdeviceptr dst, size_t pitch, unsigned int value,
             size_t width, size_t height, CUstream stream);
#undef SIMCUDA_COPY

/* modules, libraries, launches */
CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                              const char *name);
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options,
                           void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                           void **values, unsigned int count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library);
CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count, CUlibrary library);
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                            const char *name);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult cuKernelGetName(const char **name, CUkernel kernel);
CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device);
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **params, void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                             void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void **params);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int grid_x,
                                        unsigned int grid_y, unsigned int grid_z,
                                        unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared_bytes,
                                        CUstream stream, void **params);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params,
                               void **extra);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *data);
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn call, void *data);

/* streams, events, captures, graphs */
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
#define SIMCUDA_STREAM(name, ...)                                                                  \
	CUresult name(__VA_ARGS__);                                                                \
	CUresult name##_ptsz(__VA_ARGS__)
SIMCUDA_STREAM(cuStreamSynchronize, CUstream stream);
SIMCUDA_STREAM(cuStreamQuery, CUstream stream);
SIMCUDA_STREAM(cuStreamGetPriority, CUstream stream, int *priority);
SIMCUDA_STREAM(cuStreamGetFlags, CUstream stream, unsigned int *flags);
SIMCUDA_STREAM(cuStreamGetId, CUstream stream, unsigned long long *id);
SIMCUDA_STREAM(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned int flags);
SIMCUDA_STREAM(cuStreamAddCallback, CUstream stream, CUstreamCallback callback, void *data,
               unsigned int flags);
SIMCUDA_STREAM(cuStreamBeginCapture_v2, CUstream stream, CUstreamCaptureMode mode);
SIMCUDA_STREAM(cuStreamEndCapture, CUstream stream, CUgraph *graph);
SIMCUDA_STREAM(cuStreamIsCapturing, CUstream stream, CUstreamCaptureStatus *status);
SIMCUDA_STREAM(cuStreamGetCaptureInfo_v2, CUstream stream, CUstreamCaptureStatus *status,
               cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, size_t *count);
SIMCUDA_STREAM(cuStreamGetCaptureInfo_v3, CUstream stream, CUstreamCaptureStatus *status,
               cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
               const CUgraphEdgeData **edges, size_t *count);
SIMCUDA_STREAM(cuEventRecord, CUevent event, CUstream stream);
SIMCUDA_STREAM(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned int flags);
SIMCUDA_STREAM(cuGraphLaunch, CUgraphExec exec, CUstream stream);
SIMCUDA_STREAM(cuGraphUpload, CUgraphExec exec, CUstream stream);
#undef SIMCUDA_STREAM
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventQuery(CUevent event);
CUresult cuCtxRecordEvent(CUcontext ctx, CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end);
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphClone(CUgraph *clone, CUgraph original);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type);
CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                             size_t count);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const CUDA_MEMCPY3D *params, CUcontext ctx);
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx);
CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                            size_t count, const CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                  size_t n, CUgraph child);
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info);
CUresult cuGraphExecDestroy(CUgraphExec exec);

/* Not CUDA's: calls `call(data)` from inside an API function, for programs that leave it by */
/* longjmp, an exception or pthread_exit. */
CUresult cuSimCallback(CUsimCallback call, void *data);

#ifdef __cplusplus
}
#endif

#endif
