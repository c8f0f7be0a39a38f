// SPDX-License-Identifier: MIT
/*
 * The runtime API, libcudart, shared or linked in: signatures as in CUDA 13.0's
 * cuda_runtime_api.h, checked against it by tests/unit/test_cuda_headers.c.
 *
 * CUDA 13 changed the arguments of some functions and kept their names (cudaMemAdvise,
 * cudaMemPrefetchAsync, cudaGraphAddNode, cudaGraphAddDependencies, cudaMemcpyBatchAsync,
 * cudaStreamUpdateCaptureDependencies), and CUDA 12 those of cudaGraphInstantiate and
 * cudaGraphExecUpdate. The name does not tell which one a program has, so these rows stop at the
 * last argument that all have in common.
 */
#include "cuda/row.h"

#include "base/array.h"

#define LAUNCH  "gridDim:grid blockDim:block args:addr sharedMem:shmem stream:stream"
#define COPY_2D "dst:dst dpitch:size src:src spitch:size width:bytes height:times kind:copykind"
#define COPY_2D_TO_ARRAY                                                                           \
	"dst:dst wOffset:size hOffset:size src:src spitch:size width:bytes height:times "          \
	"kind:copykind"
#define COPY_2D_FROM_ARRAY                                                                         \
	"dst:dst dpitch:size src:src wOffset:size hOffset:size width:bytes height:times "          \
	"kind:copykind"
/* cudaMemcpy3DParms and cudaMemcpy3DPeerParms: an array, or else a cudaPitchedPtr. */
#define COPY_3D                                                                                    \
	"p:addr -:srcarray@0 -:src@32 -:dstarray@64 -:dst@96 "                                     \
	"width:bytes@128 height:times@136 depth:times@144 kind:copykind@152"
#define COPY_3D_PEER                                                                               \
	"p:addr -:srcarray@0 -:src@32 -:dstarray@72 -:dst@104 "                                    \
	"width:bytes@144 height:times@152 depth:times@160"
#define CHANNELS "desc:addr -:bits@0 -:bits@4 -:bits@8 -:bits@12"
#define EXTENT   "extent:struct24 width:dim@0 height:dim@8 depth:dim@16"
/* The depth is the seventh stack word on x86-64, one more than is recorded. */
#define SET_3D                                                                                     \
	"pitchedDevPtr:struct32 -:dst@0 value:hex extent:struct24 "                                \
	"width:bytes@0 height:times@8 depth:times@16"
/* cudaMemAllocNodeParams: behind the properties of its pool. */
#define ALLOC_NODE "nodeParams:addr bytesize:*length@104 dptr:*at@112"
#define NEW_NODE   "pGraphNode:*handle graph:graph pDependencies:addr numDependencies:size"
#define LOAD_CODE                                                                                  \
	"jitOptions:addr jitOptionsValues:addr numJitOptions:uint libraryOptions:addr "            \
	"libraryOptionValues:addr numLibraryOptions:uint"

const struct api_row runtime_rows[] = {
	/* launches */
	{ "cudaLaunchKernel", CLASS_LAUNCH, OP(LAUNCH), ASYNC, "func:kernel " LAUNCH },
	/* CUDA 13's <<<>>> calls this, which jumps to cudaLaunchKernel: hooking it counts twice. */
	{ "__cudaLaunchKernel", CLASS_LAUNCH, OP(LAUNCH), OFF | ASYNC, "kernel:kernel " LAUNCH },
	{ "cudaLaunchKernelExC", CLASS_LAUNCH, OP(LAUNCH), ASYNC,
	  "config:addr gridDim:grid@0 blockDim:block@12 dynamicSmemBytes:shmem@24 stream:stream@32 "
	  "func:kernel args:addr" },
	{ "cudaLaunchCooperativeKernel", CLASS_LAUNCH, OP(LAUNCH), ASYNC, "func:kernel " LAUNCH },
	{ "cudaLaunchCooperativeKernelMultiDevice", CLASS_LAUNCH, OP(LAUNCH), ASYNC,
	  "launchParamsList:addr func:kernel@0 gridDim:grid@8 blockDim:block@20 sharedMem:shmem@40 "
	  "stream:stream@48 numDevices:launches flags:hex" },
	{ "cudaLaunch", CLASS_LAUNCH, OP(LAUNCH), ASYNC, "func:kernel" },
	{ "cudaLaunchHostFunc", CLASS_LAUNCH, OP(HOST_LAUNCH), ASYNC,
	  "stream:stream fn:addr userData:addr" },
	{ "cudaStreamAddCallback", CLASS_LAUNCH, OP(HOST_LAUNCH), ASYNC,
	  "stream:stream callback:addr userData:addr flags:hex" },
	{ "cudaGraphLaunch", CLASS_LAUNCH, OP(GRAPH_LAUNCH), ASYNC,
	  "graphExec:graphexec stream:stream" },
	{ "__cudaPushCallConfiguration", CLASS_LAUNCH, PLAIN, OFF,
	  "gridDim:grid blockDim:block sharedMem:shmem stream:stream" },
	{ "__cudaPopCallConfiguration", CLASS_LAUNCH, PLAIN, OFF,
	  "gridDim:addr blockDim:addr sharedMem:*size stream:*handle" },
	{ "cudaConfigureCall", CLASS_LAUNCH, PLAIN, OFF,
	  "gridDim:grid blockDim:block sharedMem:shmem stream:stream" },
	{ "cudaSetupArgument", CLASS_LAUNCH, PLAIN, OFF, "arg:addr size:size offset:size" },

	/* memory: device */
	{ "cudaMalloc", CLASS_MEMORY, ALLOC(DEVICE), ON, "devPtr:*ptr size:bytes" },
	{ "cudaMallocPitch", CLASS_MEMORY, ALLOC(DEVICE), ON,
	  "devPtr:*ptr pitch:*bytes width:spare height:times" },
	/* On AArch64 both structs are behind pointers and one can be recorded: bytes without
	   padding. */
	{ "cudaMalloc3D", CLASS_MEMORY, ALLOC(DEVICE), ON,
	  "pitchedDevPtr:*ptr pitch:*bytes@8 extent:struct24 width:spare@0 height:times@8 "
	  "depth:times@16" },
	{ "cudaFree", CLASS_MEMORY, FREE(DEVICE), ON, "devPtr:ptr" },
	{ "cudaMallocManaged", CLASS_MEMORY, ALLOC(MANAGED), ON,
	  "devPtr:*ptr size:bytes flags:hex" },
	{ "cudaMallocAsync", CLASS_MEMORY, ALLOC(ASYNC), ASYNC,
	  "devPtr:*ptr size:bytes hStream:stream" },
	{ "cudaMallocFromPoolAsync", CLASS_MEMORY, ALLOC(ASYNC), ASYNC,
	  "ptr:*ptr size:bytes memPool:pool stream:stream" },
	{ "cudaFreeAsync", CLASS_MEMORY, FREE(ASYNC), ASYNC, "devPtr:ptr hStream:stream" },

	/* memory: host. A registration pins memory that exists, which counts the same. */
	{ "cudaMallocHost", CLASS_MEMORY, ALLOC(HOST), ON, "ptr:*ptr size:bytes" },
	{ "cudaHostAlloc", CLASS_MEMORY, ALLOC(HOST), ON, "pHost:*ptr size:bytes flags:hex" },
	{ "cudaFreeHost", CLASS_MEMORY, FREE(HOST), ON, "ptr:ptr" },
	{ "cudaHostRegister", CLASS_MEMORY, ALLOC(HOST), ON, "ptr:ptr size:bytes flags:hex" },
	{ "cudaHostUnregister", CLASS_MEMORY, FREE(HOST), ON, "ptr:ptr" },
	{ "cudaHostGetDevicePointer", CLASS_MEMORY, PLAIN, OFF,
	  "pDevice:*addr pHost:addr flags:hex" },
	{ "cudaHostGetFlags", CLASS_MEMORY, PLAIN, OFF, "pFlags:*hex pHost:addr" },

	/* memory: arrays */
	{ "cudaMallocArray", CLASS_MEMORY, ALLOC(ARRAY), ON,
	  "array:*ptr " CHANNELS " width:dim height:dim flags:hex" },
	{ "cudaMalloc3DArray", CLASS_MEMORY, ALLOC(ARRAY), ON,
	  "array:*ptr " CHANNELS " " EXTENT " flags:hex" },
	{ "cudaMallocMipmappedArray", CLASS_MEMORY, ALLOC(ARRAY), ON,
	  "mipmappedArray:*ptr " CHANNELS " " EXTENT " numLevels:levels flags:hex" },
	{ "cudaFreeArray", CLASS_MEMORY, FREE(ARRAY), ON, "array:ptr" },
	{ "cudaFreeMipmappedArray", CLASS_MEMORY, FREE(ARRAY), ON, "mipmappedArray:ptr" },

	/* memory: pools, other processes, hints, questions */
	{ "cudaMemPoolCreate", CLASS_MEMORY, PLAIN, ON, "memPool:*pool poolProps:addr" },
	{ "cudaMemPoolDestroy", CLASS_MEMORY, PLAIN, ON, "memPool:pool" },
	{ "cudaMemPoolTrimTo", CLASS_MEMORY, PLAIN, ON, "memPool:pool minBytesToKeep:size" },
	{ "cudaMemPoolSetAttribute", CLASS_MEMORY, PLAIN, ON, "memPool:pool attr:int value:addr" },
	{ "cudaMemPoolSetAccess", CLASS_MEMORY, PLAIN, ON,
	  "memPool:pool descList:addr count:size" },
	{ "cudaMemPoolExportPointer", CLASS_MEMORY, PLAIN, ON, "exportData:addr ptr:addr" },
	{ "cudaMemPoolImportPointer", CLASS_MEMORY, PLAIN, ON,
	  "ptr:*addr memPool:pool exportData:addr" },
	{ "cudaDeviceSetMemPool", CLASS_MEMORY, PLAIN, ON, "device:device memPool:pool" },
	{ "cudaDeviceGetDefaultMemPool", CLASS_MEMORY, PLAIN, OFF, "memPool:*pool device:device" },
	{ "cudaDeviceGetMemPool", CLASS_MEMORY, PLAIN, OFF, "memPool:*pool device:device" },
	{ "cudaDeviceGraphMemTrim", CLASS_MEMORY, PLAIN, ON, "device:device" },
	{ "cudaIpcGetMemHandle", CLASS_MEMORY, PLAIN, ON, "handle:addr devPtr:addr" },
	{ "cudaIpcOpenMemHandle", CLASS_MEMORY, PLAIN, ON,
	  "devPtr:*addr handle:struct64 flags:hex" },
	{ "cudaIpcCloseMemHandle", CLASS_MEMORY, PLAIN, ON, "devPtr:addr" },
	{ "cudaMemAdvise", CLASS_MEMORY, PLAIN, V2, "devPtr:addr count:size advice:int" },
	{ "cudaMemGetInfo", CLASS_MEMORY, PLAIN, OFF, "free:*size total:*size" },
	{ "cudaPointerGetAttributes", CLASS_MEMORY, PLAIN, OFF, "attributes:addr ptr:addr" },
	{ "cudaStreamAttachMemAsync", CLASS_MEMORY, PLAIN, ASYNC,
	  "stream:stream devPtr:addr length:size flags:hex" },
	/* Named like getters, but they make the runtime load the module that holds the symbol. */
	{ "cudaGetSymbolAddress", CLASS_MEMORY, PLAIN, ON, "devPtr:*addr symbol:addr" },
	{ "cudaGetSymbolSize", CLASS_MEMORY, PLAIN, ON, "size:*size symbol:addr" },
	{ "cudaImportExternalMemory", CLASS_MEMORY, PLAIN, ON,
	  "extMem_out:*handle memHandleDesc:addr" },
	{ "cudaExternalMemoryGetMappedBuffer", CLASS_MEMORY, PLAIN, ON,
	  "devPtr:*addr extMem:handle bufferDesc:addr" },
	{ "cudaDestroyExternalMemory", CLASS_MEMORY, PLAIN, ON, "extMem:handle" },

	/* copies */
	{ "cudaMemcpy", CLASS_TRANSFER, COPY(NONE), ON,
	  "dst:dst src:src count:bytes kind:copykind" },
	{ "cudaMemcpyAsync", CLASS_TRANSFER, COPY(NONE), ASYNC,
	  "dst:dst src:src count:bytes kind:copykind stream:stream" },
	{ "cudaMemcpyPeer", CLASS_TRANSFER, COPY(P2P), ON,
	  "dst:dst dstDevice:device src:src srcDevice:device count:bytes" },
	{ "cudaMemcpyPeerAsync", CLASS_TRANSFER, COPY(P2P), ASYNC,
	  "dst:dst dstDevice:device src:src srcDevice:device count:bytes stream:stream" },
	{ "cudaMemcpyToSymbol", CLASS_TRANSFER, COPY(NONE), ON,
	  "symbol:dst src:src count:bytes offset:size kind:copykind" },
	{ "cudaMemcpyToSymbolAsync", CLASS_TRANSFER, COPY(NONE), ASYNC,
	  "symbol:dst src:src count:bytes offset:size kind:copykind stream:stream" },
	{ "cudaMemcpyFromSymbol", CLASS_TRANSFER, COPY(NONE), ON,
	  "dst:dst symbol:src count:bytes offset:size kind:copykind" },
	{ "cudaMemcpyFromSymbolAsync", CLASS_TRANSFER, COPY(NONE), ASYNC,
	  "dst:dst symbol:src count:bytes offset:size kind:copykind stream:stream" },
	{ "cudaMemcpyToArray", CLASS_TRANSFER, COPY(NONE), ON,
	  "dst:dst wOffset:size hOffset:size src:src count:bytes kind:copykind" },
	{ "cudaMemcpyToArrayAsync", CLASS_TRANSFER, COPY(NONE), ASYNC,
	  "dst:dst wOffset:size hOffset:size src:src count:bytes kind:copykind stream:stream" },
	{ "cudaMemcpyFromArray", CLASS_TRANSFER, COPY(NONE), ON,
	  "dst:dst src:src wOffset:size hOffset:size count:bytes kind:copykind" },
	{ "cudaMemcpyFromArrayAsync", CLASS_TRANSFER, COPY(NONE), ASYNC,
	  "dst:dst src:src wOffset:size hOffset:size count:bytes kind:copykind stream:stream" },
	{ "cudaMemcpyArrayToArray", CLASS_TRANSFER, COPY(NONE), ON,
	  "dst:dst wOffsetDst:size hOffsetDst:size src:src wOffsetSrc:size hOffsetSrc:size "
	  "count:bytes kind:copykind" },
	{ "cudaMemcpy2D", CLASS_TRANSFER, COPY(NONE), ON, COPY_2D },
	{ "cudaMemcpy2DAsync", CLASS_TRANSFER, COPY(NONE), ASYNC, COPY_2D " stream:stream" },
	{ "cudaMemcpy2DToArray", CLASS_TRANSFER, COPY(NONE), ON, COPY_2D_TO_ARRAY },
	{ "cudaMemcpy2DToArrayAsync", CLASS_TRANSFER, COPY(NONE), ASYNC,
	  COPY_2D_TO_ARRAY " stream:stream" },
	{ "cudaMemcpy2DFromArray", CLASS_TRANSFER, COPY(NONE), ON, COPY_2D_FROM_ARRAY },
	{ "cudaMemcpy2DFromArrayAsync", CLASS_TRANSFER, COPY(NONE), ASYNC,
	  COPY_2D_FROM_ARRAY " stream:stream" },
	{ "cudaMemcpy2DArrayToArray", CLASS_TRANSFER, COPY(NONE), ON,
	  "dst:dst wOffsetDst:size hOffsetDst:size src:src wOffsetSrc:size hOffsetSrc:size "
	  "width:bytes height:times kind:copykind" },
	{ "cudaMemcpy3D", CLASS_TRANSFER, COPY(NONE), ON, COPY_3D },
	{ "cudaMemcpy3DAsync", CLASS_TRANSFER, COPY(NONE), ASYNC, COPY_3D " stream:stream" },
	{ "cudaMemcpy3DPeer", CLASS_TRANSFER, COPY(P2P), ON, COPY_3D_PEER },
	{ "cudaMemcpy3DPeerAsync", CLASS_TRANSFER, COPY(P2P), ASYNC,
	  COPY_3D_PEER " stream:stream" },
	/* Sizes lie in arrays of any length: the bytes stay unknown. */
	{ "cudaMemcpyBatchAsync", CLASS_TRANSFER, COPY(DEFAULT), ASYNC,
	  "dsts:addr srcs:addr sizes:addr count:size" },
	{ "cudaMemcpy3DBatchAsync", CLASS_TRANSFER, COPY(DEFAULT), ASYNC,
	  "numOps:size opList:addr" },
	{ "cudaMemPrefetchAsync", CLASS_TRANSFER, PLAIN, ASYNC, "devPtr:addr count:size" },
	{ "cudaMemPrefetchAsync_v2", CLASS_TRANSFER, PLAIN, ASYNC,
	  "devPtr:addr count:size location:hex64 flags:hex stream:stream" },
	{ "cudaMemPrefetchBatchAsync", CLASS_TRANSFER, PLAIN, ASYNC,
	  "dptrs:addr sizes:addr count:size prefetchLocs:addr prefetchLocIdxs:addr "
	  "numPrefetchLocs:size flags:hex64 stream:stream" },
	{ "cudaMemDiscardBatchAsync", CLASS_TRANSFER, PLAIN, ASYNC,
	  "dptrs:addr sizes:addr count:size flags:hex64 stream:stream" },
	{ "cudaMemDiscardAndPrefetchBatchAsync", CLASS_TRANSFER, PLAIN, ASYNC,
	  "dptrs:addr sizes:addr count:size prefetchLocs:addr prefetchLocIdxs:addr "
	  "numPrefetchLocs:size flags:hex64 stream:stream" },

	/* sets */
	{ "cudaMemset", CLASS_TRANSFER, OP(SET), ON, "devPtr:dst value:hex count:bytes" },
	{ "cudaMemsetAsync", CLASS_TRANSFER, OP(SET), ASYNC,
	  "devPtr:dst value:hex count:bytes stream:stream" },
	{ "cudaMemset2D", CLASS_TRANSFER, OP(SET), ON,
	  "devPtr:dst pitch:size value:hex width:bytes height:times" },
	{ "cudaMemset2DAsync", CLASS_TRANSFER, OP(SET), ASYNC,
	  "devPtr:dst pitch:size value:hex width:bytes height:times stream:stream" },
	{ "cudaMemset3D", CLASS_TRANSFER, OP(SET), ON, SET_3D },
	{ "cudaMemset3DAsync", CLASS_TRANSFER, OP(SET), ASYNC, SET_3D " stream:stream" },

	/* synchronisation */
	{ "cudaDeviceSynchronize", CLASS_SYNC, OP(SYNC), ON, "" },
	{ "cudaThreadSynchronize", CLASS_SYNC, OP(SYNC), ON, "" },
	{ "cudaStreamSynchronize", CLASS_SYNC, OP(SYNC), ON, "stream:stream" },
	{ "cudaEventSynchronize", CLASS_SYNC, OP(SYNC), ON, "event:event" },

	/* streams */
	{ "cudaStreamCreate", CLASS_STREAM, OP(STREAM_CREATE), ON, "pStream:*stream" },
	{ "cudaStreamCreateWithFlags", CLASS_STREAM, OP(STREAM_CREATE), ON,
	  "pStream:*stream flags:hex" },
	{ "cudaStreamCreateWithPriority", CLASS_STREAM, OP(STREAM_CREATE), ON,
	  "pStream:*stream flags:hex priority:int" },
	{ "cudaStreamDestroy", CLASS_STREAM, OP(STREAM_DESTROY), ON, "stream:stream" },
	{ "cudaStreamWaitEvent", CLASS_STREAM, OP(EVENT_WAIT), ASYNC,
	  "stream:stream event:event flags:hex" },
	{ "cudaStreamSetAttribute", CLASS_STREAM, PLAIN, ON, "hStream:stream attr:int value:addr" },
	{ "cudaStreamCopyAttributes", CLASS_STREAM, PLAIN, ON, "dst:handle src:handle" },
	{ "cudaStreamQuery", CLASS_STREAM, PLAIN, OFF, "stream:stream" },
	{ "cudaStreamIsCapturing", CLASS_STREAM, PLAIN, OFF, "stream:stream pCaptureStatus:*int" },
	{ "cudaStreamGetCaptureInfo", CLASS_STREAM, PLAIN, OFF | V2,
	  "stream:stream captureStatus_out:*int id_out:*u64" },
	{ "cudaStreamGetCaptureInfo_v3", CLASS_STREAM, PLAIN, OFF,
	  "stream:stream captureStatus_out:*int id_out:*u64" },
	{ "cudaStreamGetPriority", CLASS_STREAM, PLAIN, OFF, "hStream:stream priority:*int" },
	{ "cudaStreamGetFlags", CLASS_STREAM, PLAIN, OFF, "hStream:stream flags:*hex" },
	{ "cudaStreamGetId", CLASS_STREAM, PLAIN, OFF, "hStream:stream streamId:*u64" },
	{ "cudaStreamGetDevice", CLASS_STREAM, PLAIN, OFF, "hStream:stream device:*device" },
	{ "cudaThreadExchangeStreamCaptureMode", CLASS_STREAM, PLAIN, OFF, "mode:addr" },
	{ "cudaSignalExternalSemaphoresAsync", CLASS_STREAM, PLAIN, ASYNC | V2,
	  "extSemArray:addr paramsArray:addr numExtSems:uint stream:stream" },
	{ "cudaWaitExternalSemaphoresAsync", CLASS_STREAM, PLAIN, ASYNC | V2,
	  "extSemArray:addr paramsArray:addr numExtSems:uint stream:stream" },

	/* events */
	{ "cudaEventCreate", CLASS_EVENT, PLAIN, ON, "event:*event" },
	{ "cudaEventCreateWithFlags", CLASS_EVENT, PLAIN, ON, "event:*event flags:hex" },
	{ "cudaEventDestroy", CLASS_EVENT, PLAIN, ON, "event:event" },
	{ "cudaEventRecord", CLASS_EVENT, OP(EVENT_RECORD), ASYNC, "event:event stream:stream" },
	{ "cudaEventRecordWithFlags", CLASS_EVENT, OP(EVENT_RECORD), ASYNC,
	  "event:event stream:stream flags:hex" },
	{ "cudaEventElapsedTime", CLASS_EVENT, PLAIN, V2, "ms:*float start:event end:event" },
	{ "cudaEventQuery", CLASS_EVENT, PLAIN, OFF, "event:event" },
	{ "cudaIpcGetEventHandle", CLASS_EVENT, PLAIN, ON, "handle:addr event:event" },
	{ "cudaIpcOpenEventHandle", CLASS_EVENT, PLAIN, ON, "event:*event" },

	/* graphs */
	{ "cudaStreamBeginCapture", CLASS_GRAPH, OP(CAPTURE_BEGIN), ON, "stream:stream mode:int" },
	{ "cudaStreamBeginCaptureToGraph", CLASS_GRAPH, OP(CAPTURE_BEGIN), ON,
	  "stream:stream graph:graph dependencies:addr dependencyData:addr numDependencies:size "
	  "mode:int" },
	{ "cudaStreamEndCapture", CLASS_GRAPH, OP(CAPTURE_END), ON, "stream:stream pGraph:*graph" },
	{ "cudaStreamUpdateCaptureDependencies", CLASS_GRAPH, PLAIN, V2,
	  "stream:stream dependencies:addr" },
	{ "cudaGraphCreate", CLASS_GRAPH, PLAIN, ON, "pGraph:*graph flags:hex" },
	{ "cudaGraphClone", CLASS_GRAPH, PLAIN, ON, "pGraphClone:*graph originalGraph:graph" },
	{ "cudaGraphDestroy", CLASS_GRAPH, PLAIN, ON, "graph:graph" },
	{ "cudaGraphInstantiate", CLASS_GRAPH, OP(INSTANTIATE), ON,
	  "pGraphExec:*graphexec graph:graph" },
	{ "cudaGraphInstantiateWithFlags", CLASS_GRAPH, OP(INSTANTIATE), ON,
	  "pGraphExec:*graphexec graph:graph flags:hex64" },
	{ "cudaGraphInstantiateWithParams", CLASS_GRAPH, OP(INSTANTIATE), ON,
	  "pGraphExec:*graphexec graph:graph instantiateParams:addr" },
	{ "cudaGraphExecDestroy", CLASS_GRAPH, PLAIN, ON, "graphExec:graphexec" },
	{ "cudaGraphExecUpdate", CLASS_GRAPH, PLAIN, ON, "hGraphExec:graphexec hGraph:graph" },
	{ "cudaGraphUpload", CLASS_GRAPH, PLAIN, ASYNC, "graphExec:graphexec stream:stream" },
	{ "cudaGraphAddNode", CLASS_GRAPH, PLAIN, V2,
	  "pGraphNode:*handle graph:graph pDependencies:addr" },
	{ "cudaGraphAddKernelNode", CLASS_GRAPH, PLAIN, ON,
	  NEW_NODE " pNodeParams:addr func:kernel@0 gridDim:grid@8 blockDim:block@20 "
	           "sharedMemBytes:shmem/4@32" },
	{ "cudaGraphAddMemcpyNode", CLASS_GRAPH, PLAIN, ON, NEW_NODE " pCopyParams:addr" },
	{ "cudaGraphAddMemcpyNode1D", CLASS_GRAPH, PLAIN, ON,
	  NEW_NODE " dst:addr src:addr count:size kind:copykind" },
	{ "cudaGraphAddMemcpyNodeToSymbol", CLASS_GRAPH, PLAIN, ON,
	  NEW_NODE " symbol:addr src:addr count:size offset:size kind:copykind" },
	{ "cudaGraphAddMemcpyNodeFromSymbol", CLASS_GRAPH, PLAIN, ON,
	  NEW_NODE " dst:addr symbol:addr count:size offset:size kind:copykind" },
	{ "cudaGraphAddMemsetNode", CLASS_GRAPH, PLAIN, ON, NEW_NODE " pMemsetParams:addr" },
	{ "cudaGraphAddMemAllocNode", CLASS_GRAPH, OP(GRAPH_ALLOC), ON, NEW_NODE " " ALLOC_NODE },
	{ "cudaGraphAddMemFreeNode", CLASS_GRAPH, OP(GRAPH_FREE), ON, NEW_NODE " dptr:at" },
	{ "cudaGraphAddHostNode", CLASS_GRAPH, PLAIN, ON, NEW_NODE " pNodeParams:addr" },
	{ "cudaGraphAddChildGraphNode", CLASS_GRAPH, PLAIN, ON, NEW_NODE " childGraph:graph" },
	{ "cudaGraphAddEmptyNode", CLASS_GRAPH, PLAIN, ON, NEW_NODE },
	{ "cudaGraphAddEventRecordNode", CLASS_GRAPH, PLAIN, ON, NEW_NODE " event:event" },
	{ "cudaGraphAddEventWaitNode", CLASS_GRAPH, PLAIN, ON, NEW_NODE " event:event" },
	{ "cudaGraphAddDependencies", CLASS_GRAPH, PLAIN, V2, "graph:graph from:addr to:addr" },
	{ "cudaGraphRemoveDependencies", CLASS_GRAPH, PLAIN, V2, "graph:graph from:addr to:addr" },
	{ "cudaGraphDestroyNode", CLASS_GRAPH, PLAIN, ON, "node:handle" },
	{ "cudaGraphKernelNodeSetParams", CLASS_GRAPH, PLAIN, ON,
	  "node:handle pNodeParams:addr func:kernel@0 gridDim:grid@8 blockDim:block@20 "
	  "sharedMemBytes:shmem/4@32" },
	{ "cudaGraphExecKernelNodeSetParams", CLASS_GRAPH, PLAIN, ON,
	  "hGraphExec:graphexec node:handle pNodeParams:addr func:kernel@0 gridDim:grid@8 "
	  "blockDim:block@20 sharedMemBytes:shmem/4@32" },
	{ "cudaGraphExecMemcpyNodeSetParams", CLASS_GRAPH, PLAIN, ON,
	  "hGraphExec:graphexec node:handle pNodeParams:addr" },
	{ "cudaGraphExecMemsetNodeSetParams", CLASS_GRAPH, PLAIN, ON,
	  "hGraphExec:graphexec node:handle pNodeParams:addr" },
	{ "cudaGraphExecNodeSetParams", CLASS_GRAPH, PLAIN, ON,
	  "graphExec:graphexec node:handle nodeParams:addr" },
	{ "cudaGraphNodeSetEnabled", CLASS_GRAPH, PLAIN, ON,
	  "hGraphExec:graphexec hNode:handle isEnabled:uint" },
	{ "cudaGraphDebugDotPrint", CLASS_GRAPH, PLAIN, ON, "graph:graph path:string flags:hex" },

	/* modules, libraries, functions */
	{ "__cudaRegisterFatBinary", CLASS_MODULE, PLAIN, ON, "fatCubin:addr" },
	{ "__cudaRegisterFatBinaryEnd", CLASS_MODULE, PLAIN, OFF, "fatCubinHandle:module" },
	{ "__cudaUnregisterFatBinary", CLASS_MODULE, OP(MODULE_UNLOAD), ON,
	  "fatCubinHandle:module" },
	{ "__cudaRegisterFunction", CLASS_MODULE, OP(NAME_KERNEL), OFF,
	  "fatCubinHandle:module hostFun:hostfun deviceFun:string" },
	{ "__cudaRegisterVar", CLASS_MODULE, PLAIN, OFF,
	  "fatCubinHandle:module hostVar:addr deviceAddress:addr deviceName:string" },
	{ "__cudaRegisterManagedVar", CLASS_MODULE, PLAIN, OFF,
	  "fatCubinHandle:module hostVarPtrAddress:addr deviceAddress:addr deviceName:string" },
	{ "__cudaInitModule", CLASS_MODULE, PLAIN, OFF, "fatCubinHandle:module" },
	{ "__cudaGetKernel", CLASS_MODULE, OP(NAME_KERNEL), ON, "kernel:*kernel hostFun:hostfun" },
	{ "cudaGetKernel", CLASS_MODULE, OP(NAME_KERNEL), ON,
	  "kernelPtr:*kernel entryFuncAddr:hostfun" },
	{ "cudaGetFuncBySymbol", CLASS_MODULE, OP(NAME_KERNEL), ON,
	  "functionPtr:*kernel symbolPtr:hostfun" },
	{ "cudaLibraryLoadData", CLASS_MODULE, PLAIN, ON, "library:*module code:addr " LOAD_CODE },
	{ "cudaLibraryLoadFromFile", CLASS_MODULE, PLAIN, ON,
	  "library:*module fileName:string " LOAD_CODE },
	{ "cudaLibraryUnload", CLASS_MODULE, OP(MODULE_UNLOAD), ON, "library:module" },
	{ "cudaLibraryGetKernel", CLASS_MODULE, OP(NAME_KERNEL), ON,
	  "pKernel:*kernel library:module name:string" },
	{ "cudaLibraryGetGlobal", CLASS_MODULE, PLAIN, ON,
	  "dptr:*addr bytes:*size library:module name:string" },
	{ "cudaLibraryGetManaged", CLASS_MODULE, PLAIN, ON,
	  "dptr:*addr bytes:*size library:module name:string" },
	{ "cudaLibraryGetUnifiedFunction", CLASS_MODULE, PLAIN, ON,
	  "fptr:*addr library:module symbol:string" },
	{ "cudaKernelSetAttributeForDevice", CLASS_MODULE, PLAIN, ON,
	  "kernel:kernel attr:int value:int device:device" },
	{ "cudaFuncSetAttribute", CLASS_MODULE, PLAIN, ON, "func:kernel attr:int value:int" },
	{ "cudaFuncSetCacheConfig", CLASS_MODULE, PLAIN, ON, "func:kernel cacheConfig:int" },
	{ "cudaFuncSetSharedMemConfig", CLASS_MODULE, PLAIN, ON, "func:kernel config:int" },
	{ "cudaFuncGetAttributes", CLASS_MODULE, PLAIN, OFF, "attr:addr func:kernel" },
	{ "cudaFuncGetName", CLASS_MODULE, PLAIN, OFF, "name:*addr func:kernel" },

	/* devices */
	{ "cudaSetDevice", CLASS_DEVICE, PLAIN, ON, "device:device" },
	{ "cudaInitDevice", CLASS_DEVICE, PLAIN, ON, "device:device deviceFlags:hex flags:hex" },
	{ "cudaSetDeviceFlags", CLASS_DEVICE, PLAIN, ON, "flags:hex" },
	{ "cudaGetDevice", CLASS_DEVICE, PLAIN, OFF, "device:*device" },
	{ "cudaGetDeviceCount", CLASS_DEVICE, PLAIN, OFF, "count:*int" },
	{ "cudaGetDeviceFlags", CLASS_DEVICE, PLAIN, OFF, "flags:*hex" },
	{ "cudaGetDeviceProperties", CLASS_DEVICE, PLAIN, OFF | V2, "prop:addr device:device" },
	{ "cudaDeviceGetAttribute", CLASS_DEVICE, PLAIN, OFF, "value:*int attr:int device:device" },
	{ "cudaDeviceGetByPCIBusId", CLASS_DEVICE, PLAIN, OFF, "device:*device pciBusId:string" },
	{ "cudaDeviceGetLimit", CLASS_DEVICE, PLAIN, OFF, "pValue:*size limit:int" },
	{ "cudaDeviceGetStreamPriorityRange", CLASS_DEVICE, PLAIN, OFF,
	  "leastPriority:*int greatestPriority:*int" },
	{ "cudaDeviceSetLimit", CLASS_DEVICE, PLAIN, ON, "limit:int value:size" },
	{ "cudaDeviceSetCacheConfig", CLASS_DEVICE, PLAIN, ON, "cacheConfig:int" },
	{ "cudaDeviceReset", CLASS_DEVICE, OP(CONTEXT_DESTROY), ON, "" },
	{ "cudaThreadExit", CLASS_DEVICE, OP(CONTEXT_DESTROY), ON, "" },
	{ "cudaDeviceCanAccessPeer", CLASS_DEVICE, PLAIN, OFF,
	  "canAccessPeer:*int device:device peerDevice:device" },
	{ "cudaDeviceEnablePeerAccess", CLASS_DEVICE, PLAIN, ON, "peerDevice:device flags:hex" },
	{ "cudaDeviceDisablePeerAccess", CLASS_DEVICE, PLAIN, ON, "peerDevice:device" },
	{ "cudaDriverGetVersion", CLASS_DEVICE, PLAIN, OFF, "driverVersion:*int" },
	{ "cudaRuntimeGetVersion", CLASS_DEVICE, PLAIN, OFF, "runtimeVersion:*int" },

	/* the rest */
	{ "cudaGetLastError", CLASS_OTHER, PLAIN, OFF, "" },
	{ "cudaPeekAtLastError", CLASS_OTHER, PLAIN, OFF, "" },
	{ "cudaCreateChannelDesc", CLASS_OTHER, PLAIN, OFF, "" },
	{ "cudaGetErrorName", CLASS_OTHER, PLAIN, 0, "error:int" },
	{ "cudaGetErrorString", CLASS_OTHER, PLAIN, 0, "error:int" },
	{ "cudaGetDriverEntryPoint", CLASS_OTHER, PLAIN, OFF,
	  "symbol:string funcPtr:*addr flags:hex64" },
	{ "cudaGetDriverEntryPointByVersion", CLASS_OTHER, PLAIN, OFF,
	  "symbol:string funcPtr:*addr cudaVersion:uint flags:hex64" },
	{ "cudaGetExportTable", CLASS_OTHER, PLAIN, OFF,
	  "ppExportTable:*addr pExportTableId:addr" },
	{ "cudaOccupancyMaxActiveBlocksPerMultiprocessor", CLASS_OTHER, PLAIN, OFF,
	  "numBlocks:*int func:kernel blockSize:int dynamicSMemSize:size" },
	{ "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", CLASS_OTHER, PLAIN, OFF,
	  "numBlocks:*int func:kernel blockSize:int dynamicSMemSize:size flags:hex" },
	{ "cudaOccupancyMaxActiveClusters", CLASS_OTHER, PLAIN, OFF,
	  "numClusters:*int func:kernel launchConfig:addr" },
	{ "cudaOccupancyMaxPotentialClusterSize", CLASS_OTHER, PLAIN, OFF,
	  "clusterSize:*int func:kernel launchConfig:addr" },
	{ "cudaOccupancyAvailableDynamicSMemPerBlock", CLASS_OTHER, PLAIN, OFF,
	  "dynamicSmemSize:*size func:kernel numBlocks:int blockSize:int" },
};

const size_t n_runtime_rows = ARRAY_SIZE(runtime_rows);
