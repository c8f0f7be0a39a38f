/* SPDX-License-Identifier: MIT */
/*
 * Prototypes of the runtime functions that the test programs call: by dlsym, or linked as nvcc
 * does. Where CUDA 12 and 13 differ, they are those of 13.
 */
#ifndef SIMCUDA_RUNTIME_API_H
#define SIMCUDA_RUNTIME_API_H

#include "runtime_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function and its variant for the per-thread default stream. */
#define SIMCUDA_PAIR(name, suffix, ...)                                                            \
	cudaError_t name(__VA_ARGS__);                                                             \
	cudaError_t name##suffix(__VA_ARGS__)

/* device and errors */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);

/* memory */
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMalloc(void **address, size_t bytes);
cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned int flags);
cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent);
cudaError_t cudaFree(void *address);
cudaError_t cudaMallocHost(void **address, size_t bytes);
cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned int flags);
cudaError_t cudaFreeHost(void *address);
cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned int flags);
cudaError_t cudaHostUnregister(void *address);
cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
                            size_t width, size_t height, unsigned int flags);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address);
SIMCUDA_PAIR(cudaMallocAsync, _ptsz, void **address, size_t bytes, cudaStream_t stream);
SIMCUDA_PAIR(cudaMallocFromPoolAsync, _ptsz, void **address, size_t bytes, cudaMemPool_t pool,
             cudaStream_t stream);
SIMCUDA_PAIR(cudaFreeAsync, _ptsz, void *address, cudaStream_t stream);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);

/* copies and sets */
SIMCUDA_PAIR(cudaMemcpy, _ptds, void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind);
SIMCUDA_PAIR(cudaMemcpyAsync, _ptsz, void *dst, const void *src, size_t bytes,
             enum cudaMemcpyKind kind, cudaStream_t stream);
SIMCUDA_PAIR(cudaMemcpy2D, _ptds, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
             size_t width, size_t height, enum cudaMemcpyKind kind);
SIMCUDA_PAIR(cudaMemcpy2DAsync, _ptsz, void *dst, size_t dst_pitch, const void *src,
             size_t src_pitch, size_t width, size_t height, enum cudaMemcpyKind kind,
             cudaStream_t stream);
SIMCUDA_PAIR(cudaMemcpy3D, _ptds, const struct cudaMemcpy3DParms *copy);
SIMCUDA_PAIR(cudaMemcpy3DAsync, _ptsz, const struct cudaMemcpy3DParms *copy, cudaStream_t stream);
SIMCUDA_PAIR(cudaMemcpy2DToArray, _ptds, cudaArray_t dst, size_t x, size_t y, const void *src,
             size_t src_pitch, size_t width, size_t height, enum cudaMemcpyKind kind);
SIMCUDA_PAIR(cudaMemcpy2DFromArray, _ptds, void *dst, size_t dst_pitch, cudaArray_const_t src,
             size_t x, size_t y, size_t width, size_t height, enum cudaMemcpyKind kind);
SIMCUDA_PAIR(cudaMemcpyToSymbol, _ptds, const void *symbol, const void *src, size_t bytes,
             size_t offset, enum cudaMemcpyKind kind);
SIMCUDA_PAIR(cudaMemcpyFromSymbol, _ptds, void *dst, const void *symbol, size_t bytes,
             size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device,
                           size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                size_t bytes, cudaStream_t stream);
SIMCUDA_PAIR(cudaMemset, _ptds, void *dst, int value, size_t bytes);
SIMCUDA_PAIR(cudaMemsetAsync, _ptsz, void *dst, int value, size_t bytes, cudaStream_t stream);
SIMCUDA_PAIR(cudaMemset2D, _ptds, void *dst, size_t pitch, int value, size_t width, size_t height);
SIMCUDA_PAIR(cudaMemset2DAsync, _ptsz, void *dst, size_t pitch, int value, size_t width,
             size_t height, cudaStream_t stream);
SIMCUDA_PAIR(cudaMemset3D, _ptds, struct cudaPitchedPtr dst, int value, struct cudaExtent extent);
SIMCUDA_PAIR(cudaMemset3DAsync, _ptsz, struct cudaPitchedPtr dst, int value,
             struct cudaExtent extent, cudaStream_t stream);

/* streams, events, graphs */
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
SIMCUDA_PAIR(cudaStreamSynchronize, _ptsz, cudaStream_t stream);
SIMCUDA_PAIR(cudaStreamQuery, _ptsz, cudaStream_t stream);
SIMCUDA_PAIR(cudaStreamWaitEvent, _ptsz, cudaStream_t stream, cudaEvent_t event,
             unsigned int flags);
SIMCUDA_PAIR(cudaStreamBeginCapture, _ptsz, cudaStream_t stream, enum cudaStreamCaptureMode mode);
SIMCUDA_PAIR(cudaStreamEndCapture, _ptsz, cudaStream_t stream, cudaGraph_t *graph);
SIMCUDA_PAIR(cudaStreamIsCapturing, _ptsz, cudaStream_t stream,
             enum cudaStreamCaptureStatus *status);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
SIMCUDA_PAIR(cudaEventRecord, _ptsz, cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
SIMCUDA_PAIR(cudaLaunchHostFunc, _ptsz, cudaStream_t stream, cudaHostFn_t call, void *data);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
SIMCUDA_PAIR(cudaGraphLaunch, _ptsz, cudaGraphExec_t exec, cudaStream_t stream);

/* launches */
SIMCUDA_PAIR(cudaLaunchKernel, _ptsz, const void *function, dim3 grid, dim3 block, void **args,
             size_t shared_bytes, cudaStream_t stream);
SIMCUDA_PAIR(cudaLaunchCooperativeKernel, _ptsz, const void *function, dim3 grid, dim3 block,
             void **args, size_t shared_bytes, cudaStream_t stream);
SIMCUDA_PAIR(cudaLaunchKernelExC, _ptsz, const cudaLaunchConfig_t *config, const void *function,
             void **args);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaFuncGetName(const char **name, const void *function);
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *jit_options, void **jit_values,
                                unsigned int jit_count, enum cudaLibraryOption *options,
                                void **values, unsigned int count);
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name);
cudaError_t cudaLibraryUnload(cudaLibrary_t library);

/* What code that nvcc made calls; not in any header of the toolkit's. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *device_name, int thread_limit, void *thread_index,
                            void *block_index, void *block_dim, void *grid_dim, int *warp_size);
void __cudaRegisterVar(void **handle, char *host_variable, char *device_address,
                       const char *device_name, int external, size_t bytes, int constant,
                       int global);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host_function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream);

/* Not CUDA's: see cuSimCallback. The driver's is called within the runtime's. */
cudaError_t cudaSimCallback(CUsimCallback call, void *data);

#undef SIMCUDA_PAIR

#ifdef __cplusplus
}
#endif

#endif
