/* SPDX-License-Identifier: MIT */
/*
 * The driver as the runtime sees it: libcuda.so.1 is opened when the first call needs it, and its
 * functions are asked for by cuGetProcAddress, as the real runtime does. So a tracer sees the
 * exported functions of libcuda called from inside those of the runtime.
 */
#ifndef SIMCUDA_RUNTIME_DRIVER_H
#define SIMCUDA_RUNTIME_DRIVER_H

#include <stdbool.h>

#include "../driver_api.h"
#include "../profiler.h"

/* Functions with one meaning for both default streams. */
#define DRIVER_FUNCTIONS(X)                                                                        \
	X(cuInit)                                                                                  \
	X(cuDriverGetVersion)                                                                      \
	X(cuDeviceGetCount)                                                                        \
	X(cuDeviceGetName)                                                                         \
	X(cuDeviceGetAttribute)                                                                    \
	X(cuDeviceTotalMem_v2)                                                                     \
	X(cuDeviceGetUuid_v2)                                                                      \
	X(cuDeviceGetPCIBusId)                                                                     \
	X(cuDeviceGetByPCIBusId)                                                                   \
	X(cuDeviceCanAccessPeer)                                                                   \
	X(cuDeviceGetDefaultMemPool)                                                               \
	X(cuDeviceGetMemPool)                                                                      \
	X(cuDeviceSetMemPool)                                                                      \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuDevicePrimaryCtxReset_v2)                                                              \
	X(cuDevicePrimaryCtxGetState)                                                              \
	X(cuCtxSetCurrent)                                                                         \
	X(cuCtxGetCurrent)                                                                         \
	X(cuCtxGetDevice_v2)                                                                       \
	X(cuCtxGetLimit)                                                                           \
	X(cuCtxSetLimit)                                                                           \
	X(cuCtxGetStreamPriorityRange)                                                             \
	X(cuCtxSynchronize)                                                                        \
	X(cuMemGetInfo_v2)                                                                         \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMemAllocPitch_v2)                                                                      \
	X(cuMemAllocManaged)                                                                       \
	X(cuMemFree_v2)                                                                            \
	X(cuMemAllocHost_v2)                                                                       \
	X(cuMemHostAlloc)                                                                          \
	X(cuMemFreeHost)                                                                           \
	X(cuMemHostRegister_v2)                                                                    \
	X(cuMemHostUnregister)                                                                     \
	X(cuMemHostGetDevicePointer_v2)                                                            \
	X(cuMemHostGetFlags)                                                                       \
	X(cuPointerGetAttribute)                                                                   \
	X(cuMemPoolCreate)                                                                         \
	X(cuMemPoolDestroy)                                                                        \
	X(cuMemPoolTrimTo)                                                                         \
	X(cuMemPoolSetAttribute)                                                                   \
	X(cuMemPoolGetAttribute)                                                                   \
	X(cuMemAdvise_v2)                                                                          \
	X(cuArray3DCreate_v2)                                                                      \
	X(cuArrayDestroy)                                                                          \
	X(cuLibraryLoadData)                                                                       \
	X(cuLibraryUnload)                                                                         \
	X(cuLibraryGetKernel)                                                                      \
	X(cuLibraryGetKernelCount)                                                                 \
	X(cuLibraryEnumerateKernels)                                                               \
	X(cuLibraryGetGlobal)                                                                      \
	X(cuKernelGetName)                                                                         \
	X(cuKernelGetAttribute)                                                                    \
	X(cuKernelSetAttribute)                                                                    \
	X(cuKernelGetFunction)                                                                     \
	X(cuStreamCreate)                                                                          \
	X(cuStreamCreateWithPriority)                                                              \
	X(cuStreamDestroy_v2)                                                                      \
	X(cuThreadExchangeStreamCaptureMode)                                                       \
	X(cuEventCreate)                                                                           \
	X(cuEventDestroy_v2)                                                                       \
	X(cuEventQuery)                                                                            \
	X(cuEventSynchronize)                                                                      \
	X(cuEventElapsedTime_v2)                                                                   \
	X(cuGraphCreate)                                                                           \
	X(cuGraphDestroy)                                                                          \
	X(cuGraphClone)                                                                            \
	X(cuGraphGetNodes)                                                                         \
	X(cuGraphGetRootNodes)                                                                     \
	X(cuGraphNodeGetType)                                                                      \
	X(cuGraphAddEmptyNode)                                                                     \
	X(cuGraphAddKernelNode_v2)                                                                 \
	X(cuGraphAddMemcpyNode)                                                                    \
	X(cuGraphAddMemsetNode)                                                                    \
	X(cuGraphAddHostNode)                                                                      \
	X(cuGraphAddDependencies_v2)                                                               \
	X(cuGraphInstantiateWithFlags)                                                             \
	X(cuGraphExecUpdate_v2)                                                                    \
	X(cuGraphExecDestroy)

/* Functions with a variant for the per-thread default stream, and how that is called. */
#define DRIVER_STREAM_FUNCTIONS(X)                                                                 \
	X(cuMemcpy, _ptds)                                                                         \
	X(cuMemcpyHtoD_v2, _ptds)                                                                  \
	X(cuMemcpyDtoH_v2, _ptds)                                                                  \
	X(cuMemcpyDtoD_v2, _ptds)                                                                  \
	X(cuMemcpyPeer, _ptds)                                                                     \
	X(cuMemcpy2DUnaligned_v2, _ptds)                                                           \
	X(cuMemcpy3D_v2, _ptds)                                                                    \
	X(cuMemsetD8_v2, _ptds)                                                                    \
	X(cuMemsetD2D8_v2, _ptds)                                                                  \
	X(cuMemcpyAsync, _ptsz)                                                                    \
	X(cuMemcpyHtoDAsync_v2, _ptsz)                                                             \
	X(cuMemcpyDtoHAsync_v2, _ptsz)                                                             \
	X(cuMemcpyDtoDAsync_v2, _ptsz)                                                             \
	X(cuMemcpyPeerAsync, _ptsz)                                                                \
	X(cuMemcpy2DAsync_v2, _ptsz)                                                               \
	X(cuMemcpy3DAsync_v2, _ptsz)                                                               \
	X(cuMemsetD8Async, _ptsz)                                                                  \
	X(cuMemsetD2D8Async, _ptsz)                                                                \
	X(cuMemAllocAsync, _ptsz)                                                                  \
	X(cuMemAllocFromPoolAsync, _ptsz)                                                          \
	X(cuMemFreeAsync, _ptsz)                                                                   \
	X(cuMemPrefetchAsync_v2, _ptsz)                                                            \
	X(cuLaunchKernel, _ptsz)                                                                   \
	X(cuLaunchCooperativeKernel, _ptsz)                                                        \
	X(cuLaunchKernelEx, _ptsz)                                                                 \
	X(cuLaunchHostFunc, _ptsz)                                                                 \
	X(cuStreamAddCallback, _ptsz)                                                              \
	X(cuStreamSynchronize, _ptsz)                                                              \
	X(cuStreamQuery, _ptsz)                                                                    \
	X(cuStreamGetPriority, _ptsz)                                                              \
	X(cuStreamGetFlags, _ptsz)                                                                 \
	X(cuStreamGetId, _ptsz)                                                                    \
	X(cuStreamWaitEvent, _ptsz)                                                                \
	X(cuStreamBeginCapture_v2, _ptsz)                                                          \
	X(cuStreamEndCapture, _ptsz)                                                               \
	X(cuStreamIsCapturing, _ptsz)                                                              \
	X(cuStreamGetCaptureInfo_v3, _ptsz)                                                        \
	X(cuEventRecord, _ptsz)                                                                    \
	X(cuEventRecordWithFlags, _ptsz)                                                           \
	X(cuGraphLaunch, _ptsz)                                                                    \
	X(cuGraphUpload, _ptsz)

struct driver {
#define MEMBER(name) __typeof__(name) *name;
#define PAIR(name, suffix)                                                                         \
	__typeof__(name) *name;                                                                    \
	__typeof__(name) *name##suffix;
	DRIVER_FUNCTIONS(MEMBER)
	DRIVER_STREAM_FUNCTIONS(PAIR)
#undef MEMBER
#undef PAIR
	__typeof__(cuSimCallback) *cuSimCallback; /* NULL in a real driver */
};

/* Filled by driver_load; the addresses are those that libcuda exports. */
extern struct driver drv;

/* Who listens: of the simulated driver, or nobody. */
extern const struct sim_profiler *runtime_profiler;

/* True when `drv` can be called. */
bool driver_load(void);

/* Any exported function of libcuda, NULL where there is none. After driver_load. */
void *driver_symbol(const char *name);

#endif
