/* SPDX-License-Identifier: MIT */
/*
 * The exported functions of libcudart that the simulated runtime has nothing to say about: see
 * ../driver/rest.h. The first list answers with success, the others with cudaErrorNotSupported.
 */
#ifndef SIMCUDA_RUNTIME_REST_H
#define SIMCUDA_RUNTIME_REST_H

// clang-format off
#define REST_DONE(X) \
	X(cudaDeviceSetCacheConfig) X(cudaDeviceSetSharedMemConfig) X(cudaFuncSetSharedMemConfig) \
	X(cudaCtxResetPersistingL2Cache) X(cudaStreamAttachMemAsync) \
	X(cudaStreamAttachMemAsync_ptsz) X(cudaMemPoolSetAccess) X(cudaStreamSetAttribute) \
	X(cudaStreamSetAttribute_ptsz) X(cudaStreamCopyAttributes) \
	X(cudaStreamCopyAttributes_ptsz) X(cudaSetValidDevices) X(cudaDeviceEnablePeerAccess) \
	X(cudaDeviceDisablePeerAccess) X(cudaDeviceFlushGPUDirectRDMAWrites) \
	X(cudaKernelSetAttributeForDevice) X(__cudaRegisterHostVar) X(__cudaRegisterManagedVar) \
	X(__cudaRegisterUnifiedTable)

#define REST_NOT_SUPPORTED(X) \
	X(__cudaGetProcAddress) X(cudaArrayGetInfo) X(cudaArrayGetMemoryRequirements) \
	X(cudaArrayGetPlane) X(cudaArrayGetSparseProperties) X(cudaChooseDevice) \
	X(cudaCreateSurfaceObject) X(cudaCreateTextureObject) X(cudaDestroyExternalMemory) \
	X(cudaDestroyExternalSemaphore) X(cudaDestroySurfaceObject) X(cudaDestroyTextureObject) \
	X(cudaDeviceGetCacheConfig) X(cudaDeviceGetGraphMemAttribute) \
	X(cudaDeviceGetNvSciSyncAttributes) X(cudaDeviceGetP2PAttribute) \
	X(cudaDeviceGetSharedMemConfig) X(cudaDeviceGetTexture1DLinearMaxWidth) \
	X(cudaDeviceGraphMemTrim) X(cudaDeviceRegisterAsyncNotification) \
	X(cudaDeviceSetGraphMemAttribute) X(cudaDeviceUnregisterAsyncNotification) \
	X(cudaEGLStreamConsumerAcquireFrame) X(cudaEGLStreamConsumerConnect) \
	X(cudaEGLStreamConsumerConnectWithFlags) X(cudaEGLStreamConsumerDisconnect) \
	X(cudaEGLStreamConsumerReleaseFrame) X(cudaEGLStreamProducerConnect) \
	X(cudaEGLStreamProducerDisconnect) X(cudaEGLStreamProducerPresentFrame) \
	X(cudaEGLStreamProducerReturnFrame) X(cudaEventCreateFromEGLSync) \
	X(cudaExternalMemoryGetMappedBuffer) X(cudaExternalMemoryGetMappedMipmappedArray) \
	X(cudaFreeMipmappedArray) X(cudaFuncGetParamInfo) X(cudaGLGetDevices) \
	X(cudaGLMapBufferObject) X(cudaGLMapBufferObjectAsync) X(cudaGLRegisterBufferObject) \
	X(cudaGLSetBufferObjectMapFlags) X(cudaGLSetGLDevice) X(cudaGLUnmapBufferObject) \
	X(cudaGLUnmapBufferObjectAsync) X(cudaGLUnregisterBufferObject) X(cudaGetChannelDesc) \
	X(cudaGetDeviceFlags) X(cudaGetDriverEntryPointByVersion_ptsz) \
	X(cudaGetDriverEntryPoint_ptsz) X(cudaGetExportTable) X(cudaGetMipmappedArrayLevel) \
	X(cudaGetSurfaceObjectResourceDesc) X(cudaGetTextureObjectResourceDesc) \
	X(cudaGetTextureObjectResourceViewDesc) X(cudaGetTextureObjectTextureDesc) \
	X(cudaGraphAddChildGraphNode) X(cudaGraphAddEventRecordNode) X(cudaGraphAddEventWaitNode) \
	X(cudaGraphAddExternalSemaphoresSignalNode) X(cudaGraphAddExternalSemaphoresWaitNode) \
	X(cudaGraphAddMemAllocNode) X(cudaGraphAddMemFreeNode) X(cudaGraphAddMemcpyNode) \
	X(cudaGraphAddMemcpyNodeFromSymbol) X(cudaGraphAddMemcpyNodeToSymbol) X(cudaGraphAddNode) \
	X(cudaGraphChildGraphNodeGetGraph) X(cudaGraphConditionalHandleCreate) \
	X(cudaGraphDebugDotPrint) X(cudaGraphDestroyNode) X(cudaGraphEventRecordNodeGetEvent) \
	X(cudaGraphEventRecordNodeSetEvent) X(cudaGraphEventWaitNodeGetEvent) \
	X(cudaGraphEventWaitNodeSetEvent) X(cudaGraphExecChildGraphNodeSetParams) \
	X(cudaGraphExecEventRecordNodeSetEvent) X(cudaGraphExecEventWaitNodeSetEvent) \
	X(cudaGraphExecExternalSemaphoresSignalNodeSetParams) \
	X(cudaGraphExecExternalSemaphoresWaitNodeSetParams) X(cudaGraphExecGetFlags) \
	X(cudaGraphExecHostNodeSetParams) X(cudaGraphExecKernelNodeSetParams) \
	X(cudaGraphExecMemcpyNodeSetParams) X(cudaGraphExecMemcpyNodeSetParams1D) \
	X(cudaGraphExecMemcpyNodeSetParamsFromSymbol) X(cudaGraphExecMemcpyNodeSetParamsToSymbol) \
	X(cudaGraphExecMemsetNodeSetParams) X(cudaGraphExecNodeSetParams) \
	X(cudaGraphExternalSemaphoresSignalNodeGetParams) \
	X(cudaGraphExternalSemaphoresSignalNodeSetParams) \
	X(cudaGraphExternalSemaphoresWaitNodeGetParams) \
	X(cudaGraphExternalSemaphoresWaitNodeSetParams) X(cudaGraphGetEdges) \
	X(cudaGraphHostNodeGetParams) X(cudaGraphHostNodeSetParams) \
	X(cudaGraphInstantiateWithParams) X(cudaGraphInstantiateWithParams_ptsz) \
	X(cudaGraphKernelNodeCopyAttributes) X(cudaGraphKernelNodeGetAttribute) \
	X(cudaGraphKernelNodeGetParams) X(cudaGraphKernelNodeSetAttribute) \
	X(cudaGraphKernelNodeSetParams) X(cudaGraphMemAllocNodeGetParams) \
	X(cudaGraphMemFreeNodeGetParams) X(cudaGraphMemcpyNodeGetParams) \
	X(cudaGraphMemcpyNodeSetParams) X(cudaGraphMemcpyNodeSetParams1D) \
	X(cudaGraphMemcpyNodeSetParamsFromSymbol) X(cudaGraphMemcpyNodeSetParamsToSymbol) \
	X(cudaGraphMemsetNodeGetParams) X(cudaGraphMemsetNodeSetParams) \
	X(cudaGraphNodeFindInClone) X(cudaGraphNodeGetDependencies) \
	X(cudaGraphNodeGetDependentNodes) X(cudaGraphNodeGetEnabled) X(cudaGraphNodeSetEnabled) \
	X(cudaGraphNodeSetParams) X(cudaGraphReleaseUserObject) X(cudaGraphRemoveDependencies) \
	X(cudaGraphRetainUserObject) X(cudaGraphicsEGLRegisterImage) \
	X(cudaGraphicsGLRegisterBuffer) X(cudaGraphicsGLRegisterImage) \
	X(cudaGraphicsMapResources) X(cudaGraphicsResourceGetMappedEglFrame) \
	X(cudaGraphicsResourceGetMappedMipmappedArray) X(cudaGraphicsResourceGetMappedPointer) \
	X(cudaGraphicsResourceSetMapFlags) X(cudaGraphicsSubResourceGetMappedArray) \
	X(cudaGraphicsUnmapResources) X(cudaGraphicsUnregisterResource) \
	X(cudaGraphicsVDPAURegisterOutputSurface) X(cudaGraphicsVDPAURegisterVideoSurface) \
	X(cudaImportExternalMemory) X(cudaImportExternalSemaphore) X(cudaIpcCloseMemHandle) \
	X(cudaIpcGetEventHandle) X(cudaIpcGetMemHandle) X(cudaIpcOpenEventHandle) \
	X(cudaIpcOpenMemHandle) X(cudaLibraryGetManaged) X(cudaLibraryGetUnifiedFunction) \
	X(cudaLibraryLoadFromFile) X(cudaMallocMipmappedArray) X(cudaMemPoolExportPointer) \
	X(cudaMemPoolExportToShareableHandle) X(cudaMemPoolGetAccess) \
	X(cudaMemPoolImportFromShareableHandle) X(cudaMemPoolImportPointer) \
	X(cudaMemRangeGetAttribute) X(cudaMemRangeGetAttributes) X(cudaMemcpy2DArrayToArray) \
	X(cudaMemcpy2DArrayToArray_ptds) X(cudaMemcpy3DBatchAsync) X(cudaMemcpy3DBatchAsync_ptsz) \
	X(cudaMemcpy3DPeer) X(cudaMemcpy3DPeerAsync) X(cudaMemcpy3DPeerAsync_ptsz) \
	X(cudaMemcpy3DPeer_ptds) X(cudaMemcpyArrayToArray) X(cudaMemcpyArrayToArray_ptds) \
	X(cudaMemcpyBatchAsync) X(cudaMemcpyBatchAsync_ptsz) X(cudaMemcpyFromArray) \
	X(cudaMemcpyFromArrayAsync) X(cudaMemcpyFromArrayAsync_ptsz) X(cudaMemcpyFromArray_ptds) \
	X(cudaMemcpyToArray) X(cudaMemcpyToArrayAsync) X(cudaMemcpyToArrayAsync_ptsz) \
	X(cudaMemcpyToArray_ptds) X(cudaMipmappedArrayGetMemoryRequirements) \
	X(cudaMipmappedArrayGetSparseProperties) X(cudaOccupancyAvailableDynamicSMemPerBlock) \
	X(cudaOccupancyMaxActiveBlocksPerMultiprocessor) \
	X(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	X(cudaOccupancyMaxActiveClusters) X(cudaOccupancyMaxPotentialClusterSize) \
	X(cudaSignalExternalSemaphoresAsync) X(cudaSignalExternalSemaphoresAsync_ptsz) \
	X(cudaStreamBeginCaptureToGraph) X(cudaStreamBeginCaptureToGraph_ptsz) \
	X(cudaStreamGetAttribute) X(cudaStreamGetAttribute_ptsz) X(cudaStreamGetDevice) \
	X(cudaStreamGetDevice_ptsz) X(cudaStreamUpdateCaptureDependencies) \
	X(cudaStreamUpdateCaptureDependencies_ptsz) X(cudaUserObjectCreate) \
	X(cudaUserObjectRelease) X(cudaUserObjectRetain) X(cudaVDPAUGetDevice) \
	X(cudaVDPAUSetVDPAUDevice) X(cudaWaitExternalSemaphoresAsync) \
	X(cudaWaitExternalSemaphoresAsync_ptsz)

/* New in CUDA 13. */
#define REST_13(X) \
	X(cudaDeviceGetHostAtomicCapabilities) X(cudaDeviceGetP2PAtomicCapabilities) \
	X(cudaLogsCurrent) X(cudaLogsDumpToFile) X(cudaLogsDumpToMemory) \
	X(cudaLogsRegisterCallback) X(cudaLogsUnregisterCallback) \
	X(cudaMemDiscardAndPrefetchBatchAsync) X(cudaMemDiscardAndPrefetchBatchAsync_ptsz) \
	X(cudaMemDiscardBatchAsync) X(cudaMemDiscardBatchAsync_ptsz) X(cudaMemGetDefaultMemPool) \
	X(cudaMemGetMemPool) X(cudaMemPrefetchBatchAsync) X(cudaMemPrefetchBatchAsync_ptsz) \
	X(cudaMemSetMemPool)

/* Gone since CUDA 13. */
#define REST_12(X) \
	X(cudaThreadGetCacheConfig) X(cudaThreadGetLimit) X(cudaThreadSetCacheConfig) \
	X(cudaThreadSetLimit) X(cudaLaunchCooperativeKernelMultiDevice) X(cudaSetDoubleForDevice) \
	X(cudaSetDoubleForHost) X(cudaStreamUpdateCaptureDependencies_v2) \
	X(cudaStreamUpdateCaptureDependencies_v2_ptsz) X(cudaGraphAddDependencies_v2) \
	X(cudaGraphAddNode_v2) X(cudaGraphGetEdges_v2) X(cudaGraphRemoveDependencies_v2) \
	X(cudaMemAdvise_v2) X(cudaMemPrefetchAsync_v2) X(cudaMemPrefetchAsync_v2_ptsz)
// clang-format on

#endif
