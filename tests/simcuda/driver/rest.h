/* SPDX-License-Identifier: MIT */
/*
 * The exported functions of CUDA 13's libcuda that the simulated driver has nothing to say about.
 * They are there because a tracer finds them, and answer the same whatever they are given: the
 * first list with success, the second with CUDA_ERROR_NOT_SUPPORTED.
 */
#ifndef SIMCUDA_DRIVER_REST_H
#define SIMCUDA_DRIVER_REST_H

// clang-format off
#define REST_DONE(X) \
	X(cuCtxSetSharedMemConfig) X(cuFlushGPUDirectRDMAWrites) X(cuFuncSetBlockShape) \
	X(cuFuncSetSharedMemConfig) X(cuFuncSetSharedSize) X(cuGraphKernelNodeCopyAttributes) \
	X(cuGraphKernelNodeSetAttribute) X(cuKernelSetCacheConfig) X(cuPointerSetAttribute) \
	X(cuProfilerInitialize) X(cuProfilerStart) X(cuProfilerStop) X(cuStreamAttachMemAsync) \
	X(cuStreamAttachMemAsync_ptsz) X(cuStreamCopyAttributes) X(cuStreamCopyAttributes_ptsz) \
	X(cuStreamSetAttribute) X(cuStreamSetAttribute_ptsz)

#define REST_NOT_SUPPORTED(X) \
	X(cuArray3DCreate) X(cuArray3DGetDescriptor) X(cuArrayCreate) X(cuArrayGetDescriptor) \
	X(cuArrayGetDescriptor_v2) X(cuArrayGetMemoryRequirements) X(cuArrayGetPlane) \
	X(cuArrayGetSparseProperties) X(cuCheckpointProcessCheckpoint) \
	X(cuCheckpointProcessGetRestoreThreadId) X(cuCheckpointProcessGetState) \
	X(cuCheckpointProcessLock) X(cuCheckpointProcessRestore) X(cuCheckpointProcessUnlock) \
	X(cuCoredumpGetAttribute) X(cuCoredumpGetAttributeGlobal) X(cuCoredumpSetAttribute) \
	X(cuCoredumpSetAttributeGlobal) X(cuCtxAttach) X(cuCtxCreate) X(cuCtxDetach) \
	X(cuCtxFromGreenCtx) X(cuCtxGetDevResource) X(cuCtxGetExecAffinity) \
	X(cuCtxGetSharedMemConfig) X(cuCtxWaitEvent) \
	X(cuDestroyExternalMemory) X(cuDestroyExternalSemaphore) X(cuDevResourceGenerateDesc) \
	X(cuDevSmResourceSplitByCount) X(cuDeviceGetDevResource) \
	X(cuDeviceGetExecAffinitySupport) X(cuDeviceGetGraphMemAttribute) \
	X(cuDeviceGetHostAtomicCapabilities) X(cuDeviceGetLuid) X(cuDeviceGetNvSciSyncAttributes) \
	X(cuDeviceGetP2PAtomicCapabilities) X(cuDeviceGetP2PAttribute) X(cuDeviceGetProperties) \
	X(cuDeviceGetTexture1DLinearMaxWidth) X(cuDeviceGraphMemTrim) \
	X(cuDeviceRegisterAsyncNotification) X(cuDeviceSetGraphMemAttribute) X(cuDeviceTotalMem) \
	X(cuDeviceUnregisterAsyncNotification) X(cuExternalMemoryGetMappedBuffer) \
	X(cuExternalMemoryGetMappedMipmappedArray) X(cuFuncGetParamInfo) X(cuFuncIsLoaded) \
	X(cuGetExportTable) X(cuGraphAddBatchMemOpNode) X(cuGraphAddEventRecordNode) \
	X(cuGraphAddEventWaitNode) X(cuGraphAddExternalSemaphoresSignalNode) \
	X(cuGraphAddExternalSemaphoresWaitNode) X(cuGraphAddKernelNode) X(cuGraphAddMemAllocNode) \
	X(cuGraphAddMemFreeNode) X(cuGraphAddNode) X(cuGraphAddNode_v2) \
	X(cuGraphBatchMemOpNodeGetParams) X(cuGraphBatchMemOpNodeSetParams) \
	X(cuGraphChildGraphNodeGetGraph) X(cuGraphConditionalHandleCreate) \
	X(cuGraphDebugDotPrint) X(cuGraphDestroyNode) X(cuGraphEventRecordNodeGetEvent) \
	X(cuGraphEventRecordNodeSetEvent) X(cuGraphEventWaitNodeGetEvent) \
	X(cuGraphEventWaitNodeSetEvent) X(cuGraphExecBatchMemOpNodeSetParams) \
	X(cuGraphExecChildGraphNodeSetParams) X(cuGraphExecEventRecordNodeSetEvent) \
	X(cuGraphExecEventWaitNodeSetEvent) X(cuGraphExecExternalSemaphoresSignalNodeSetParams) \
	X(cuGraphExecExternalSemaphoresWaitNodeSetParams) X(cuGraphExecHostNodeSetParams) \
	X(cuGraphExecKernelNodeSetParams) X(cuGraphExecKernelNodeSetParams_v2) \
	X(cuGraphExecMemcpyNodeSetParams) X(cuGraphExecMemsetNodeSetParams) \
	X(cuGraphExecNodeSetParams) X(cuGraphExternalSemaphoresSignalNodeGetParams) \
	X(cuGraphExternalSemaphoresSignalNodeSetParams) \
	X(cuGraphExternalSemaphoresWaitNodeGetParams) \
	X(cuGraphExternalSemaphoresWaitNodeSetParams) X(cuGraphGetEdges) X(cuGraphGetEdges_v2) \
	X(cuGraphHostNodeGetParams) X(cuGraphHostNodeSetParams) X(cuGraphKernelNodeGetAttribute) \
	X(cuGraphKernelNodeGetParams) X(cuGraphKernelNodeGetParams_v2) \
	X(cuGraphKernelNodeSetParams) X(cuGraphKernelNodeSetParams_v2) \
	X(cuGraphMemAllocNodeGetParams) X(cuGraphMemFreeNodeGetParams) \
	X(cuGraphMemcpyNodeGetParams) X(cuGraphMemcpyNodeSetParams) X(cuGraphMemsetNodeGetParams) \
	X(cuGraphMemsetNodeSetParams) X(cuGraphNodeFindInClone) X(cuGraphNodeGetDependencies) \
	X(cuGraphNodeGetDependencies_v2) X(cuGraphNodeGetDependentNodes) \
	X(cuGraphNodeGetDependentNodes_v2) X(cuGraphNodeGetEnabled) X(cuGraphNodeSetEnabled) \
	X(cuGraphNodeSetParams) X(cuGraphReleaseUserObject) X(cuGraphRemoveDependencies) \
	X(cuGraphRemoveDependencies_v2) X(cuGraphRetainUserObject) X(cuGraphicsMapResources) \
	X(cuGraphicsMapResources_ptsz) X(cuGraphicsResourceGetMappedMipmappedArray) \
	X(cuGraphicsResourceGetMappedPointer) X(cuGraphicsResourceGetMappedPointer_v2) \
	X(cuGraphicsResourceSetMapFlags) X(cuGraphicsResourceSetMapFlags_v2) \
	X(cuGraphicsSubResourceGetMappedArray) X(cuGraphicsUnmapResources) \
	X(cuGraphicsUnmapResources_ptsz) X(cuGraphicsUnregisterResource) X(cuGreenCtxCreate) \
	X(cuGreenCtxDestroy) X(cuGreenCtxGetDevResource) X(cuGreenCtxGetId) \
	X(cuGreenCtxRecordEvent) X(cuGreenCtxStreamCreate) X(cuGreenCtxWaitEvent) \
	X(cuImportExternalMemory) X(cuImportExternalSemaphore) X(cuIpcCloseMemHandle) \
	X(cuIpcGetEventHandle) X(cuIpcGetMemHandle) X(cuIpcOpenEventHandle) X(cuIpcOpenMemHandle) \
	X(cuIpcOpenMemHandle_v2) X(cuKernelGetParamInfo) X(cuLaunch) \
	X(cuLaunchCooperativeKernelMultiDevice) X(cuLaunchGrid) X(cuLaunchGridAsync) \
	X(cuLibraryGetManaged) X(cuLibraryGetUnifiedFunction) X(cuLibraryLoadFromFile) \
	X(cuLinkAddData) X(cuLinkAddData_v2) X(cuLinkAddFile) X(cuLinkAddFile_v2) \
	X(cuLinkComplete) X(cuLinkCreate) X(cuLinkCreate_v2) X(cuLinkDestroy) X(cuLogsCurrent) \
	X(cuLogsDumpToFile) X(cuLogsDumpToMemory) X(cuLogsRegisterCallback) \
	X(cuLogsUnregisterCallback) X(cuMemAlloc) X(cuMemAllocHost) X(cuMemAllocPitch) \
	X(cuMemBatchDecompressAsync) X(cuMemBatchDecompressAsync_ptsz) \
	X(cuMemDiscardAndPrefetchBatchAsync) X(cuMemDiscardAndPrefetchBatchAsync_ptsz) \
	X(cuMemDiscardBatchAsync) X(cuMemDiscardBatchAsync_ptsz) X(cuMemExportToShareableHandle) \
	X(cuMemFree) X(cuMemGetAccess) X(cuMemGetAddressRange) \
	X(cuMemGetAllocationPropertiesFromHandle) X(cuMemGetDefaultMemPool) \
	X(cuMemGetHandleForAddressRange) X(cuMemGetInfo) X(cuMemGetMemPool) \
	X(cuMemHostGetDevicePointer) X(cuMemImportFromShareableHandle) X(cuMemMapArrayAsync) \
	X(cuMemMapArrayAsync_ptsz) X(cuMemPoolExportPointer) X(cuMemPoolExportToShareableHandle) \
	X(cuMemPoolGetAccess) X(cuMemPoolImportFromShareableHandle) X(cuMemPoolImportPointer) \
	X(cuMemPrefetchBatchAsync) X(cuMemPrefetchBatchAsync_ptsz) X(cuMemRangeGetAttribute) \
	X(cuMemRangeGetAttributes) X(cuMemRetainAllocationHandle) X(cuMemSetMemPool) \
	X(cuMemcpy2D) X(cuMemcpy2DAsync) X(cuMemcpy2DUnaligned) X(cuMemcpy3D) X(cuMemcpy3DAsync) \
	X(cuMemcpy3DBatchAsync) X(cuMemcpy3DBatchAsync_ptsz) X(cuMemcpy3DBatchAsync_v2) \
	X(cuMemcpy3DBatchAsync_v2_ptsz) X(cuMemcpy3DPeer) X(cuMemcpy3DPeerAsync) \
	X(cuMemcpy3DPeerAsync_ptsz) X(cuMemcpy3DPeer_ptds) X(cuMemcpyAtoA) X(cuMemcpyAtoA_v2) \
	X(cuMemcpyAtoA_v2_ptds) X(cuMemcpyAtoD) X(cuMemcpyAtoD_v2) X(cuMemcpyAtoD_v2_ptds) \
	X(cuMemcpyAtoH) X(cuMemcpyAtoHAsync) X(cuMemcpyAtoHAsync_v2) X(cuMemcpyAtoHAsync_v2_ptsz) \
	X(cuMemcpyAtoH_v2) X(cuMemcpyAtoH_v2_ptds) X(cuMemcpyBatchAsync) \
	X(cuMemcpyBatchAsync_ptsz) X(cuMemcpyBatchAsync_v2) X(cuMemcpyBatchAsync_v2_ptsz) \
	X(cuMemcpyDtoA) X(cuMemcpyDtoA_v2) X(cuMemcpyDtoA_v2_ptds) X(cuMemcpyDtoD) \
	X(cuMemcpyDtoDAsync) X(cuMemcpyDtoH) X(cuMemcpyDtoHAsync) X(cuMemcpyHtoA) \
	X(cuMemcpyHtoAAsync) X(cuMemcpyHtoAAsync_v2) X(cuMemcpyHtoAAsync_v2_ptsz) \
	X(cuMemcpyHtoA_v2) X(cuMemcpyHtoA_v2_ptds) X(cuMemcpyHtoD) X(cuMemcpyHtoDAsync) \
	X(cuMemsetD16) X(cuMemsetD2D16) X(cuMemsetD2D32) X(cuMemsetD2D8) X(cuMemsetD32) \
	X(cuMemsetD8) X(cuMipmappedArrayCreate) X(cuMipmappedArrayDestroy) \
	X(cuMipmappedArrayGetLevel) X(cuMipmappedArrayGetMemoryRequirements) \
	X(cuMipmappedArrayGetSparseProperties) X(cuModuleEnumerateFunctions) X(cuModuleGetGlobal) \
	X(cuModuleGetSurfRef) X(cuModuleGetTexRef) X(cuMulticastAddDevice) X(cuMulticastBindAddr) \
	X(cuMulticastBindMem) X(cuMulticastCreate) X(cuMulticastGetGranularity) \
	X(cuMulticastUnbind) X(cuOccupancyAvailableDynamicSMemPerBlock) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) X(cuOccupancyMaxActiveClusters) \
	X(cuOccupancyMaxPotentialBlockSize) X(cuOccupancyMaxPotentialBlockSizeWithFlags) \
	X(cuOccupancyMaxPotentialClusterSize) X(cuParamSetSize) X(cuParamSetTexRef) \
	X(cuParamSetf) X(cuParamSeti) X(cuParamSetv) X(cuSignalExternalSemaphoresAsync) \
	X(cuSignalExternalSemaphoresAsync_ptsz) X(cuStreamBatchMemOp) X(cuStreamBatchMemOp_ptsz) \
	X(cuStreamBatchMemOp_v2) X(cuStreamBatchMemOp_v2_ptsz) X(cuStreamBeginCaptureToGraph) \
	X(cuStreamBeginCaptureToGraph_ptsz) X(cuStreamGetAttribute) X(cuStreamGetAttribute_ptsz) \
	X(cuStreamGetCtx_v2) X(cuStreamGetCtx_v2_ptsz) X(cuStreamGetGreenCtx) \
	X(cuStreamUpdateCaptureDependencies) X(cuStreamUpdateCaptureDependencies_ptsz) \
	X(cuStreamUpdateCaptureDependencies_v2) X(cuStreamUpdateCaptureDependencies_v2_ptsz) \
	X(cuStreamWaitValue32) X(cuStreamWaitValue32_ptsz) X(cuStreamWaitValue32_v2) \
	X(cuStreamWaitValue32_v2_ptsz) X(cuStreamWaitValue64) X(cuStreamWaitValue64_ptsz) \
	X(cuStreamWaitValue64_v2) X(cuStreamWaitValue64_v2_ptsz) X(cuStreamWriteValue32) \
	X(cuStreamWriteValue32_ptsz) X(cuStreamWriteValue32_v2) X(cuStreamWriteValue32_v2_ptsz) \
	X(cuStreamWriteValue64) X(cuStreamWriteValue64_ptsz) X(cuStreamWriteValue64_v2) \
	X(cuStreamWriteValue64_v2_ptsz) X(cuSurfObjectCreate) X(cuSurfObjectDestroy) \
	X(cuSurfObjectGetResourceDesc) X(cuSurfRefGetArray) X(cuSurfRefSetArray) \
	X(cuTensorMapEncodeIm2col) X(cuTensorMapEncodeIm2colWide) X(cuTensorMapEncodeTiled) \
	X(cuTensorMapReplaceAddress) X(cuTexObjectCreate) X(cuTexObjectDestroy) \
	X(cuTexObjectGetResourceDesc) X(cuTexObjectGetResourceViewDesc) \
	X(cuTexObjectGetTextureDesc) X(cuTexRefCreate) X(cuTexRefDestroy) X(cuTexRefGetAddress) \
	X(cuTexRefGetAddressMode) X(cuTexRefGetAddress_v2) X(cuTexRefGetArray) \
	X(cuTexRefGetBorderColor) X(cuTexRefGetFilterMode) X(cuTexRefGetFlags) \
	X(cuTexRefGetFormat) X(cuTexRefGetMaxAnisotropy) X(cuTexRefGetMipmapFilterMode) \
	X(cuTexRefGetMipmapLevelBias) X(cuTexRefGetMipmapLevelClamp) X(cuTexRefGetMipmappedArray) \
	X(cuTexRefSetAddress) X(cuTexRefSetAddress2D) X(cuTexRefSetAddress2D_v2) \
	X(cuTexRefSetAddress2D_v3) X(cuTexRefSetAddressMode) X(cuTexRefSetAddress_v2) \
	X(cuTexRefSetArray) X(cuTexRefSetBorderColor) X(cuTexRefSetFilterMode) \
	X(cuTexRefSetFlags) X(cuTexRefSetFormat) X(cuTexRefSetMaxAnisotropy) \
	X(cuTexRefSetMipmapFilterMode) X(cuTexRefSetMipmapLevelBias) \
	X(cuTexRefSetMipmapLevelClamp) X(cuTexRefSetMipmappedArray) X(cuUserObjectCreate) \
	X(cuUserObjectRelease) X(cuUserObjectRetain) X(cuWaitExternalSemaphoresAsync) \
	X(cuWaitExternalSemaphoresAsync_ptsz)
// clang-format on

#endif
