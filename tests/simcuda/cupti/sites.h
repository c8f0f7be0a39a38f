/* SPDX-License-Identifier: MIT */
/*
 * CUPTI's numbers of the functions that the simulated libraries export: of the driver's by name, of
 * the runtime's with the release that its name in CUPTI ends in (cudaMalloc_v3020). Numbers are
 * never given anew.
 */
#ifndef SIMCUDA_CUPTI_SITES_H
#define SIMCUDA_CUPTI_SITES_H

/* clang-format off */
#define DRIVER_SITES(X) \
	X(1, cuInit) X(2, cuDriverGetVersion) X(3, cuDeviceGet) X(4, cuDeviceGetCount) \
	X(5, cuDeviceGetName) X(6, cuDeviceComputeCapability) X(7, cuDeviceTotalMem) \
	X(8, cuDeviceGetProperties) X(9, cuDeviceGetAttribute) X(10, cuCtxCreate) \
	X(11, cuCtxDestroy) X(12, cuCtxAttach) X(13, cuCtxDetach) X(14, cuCtxPushCurrent) \
	X(15, cuCtxPopCurrent) X(16, cuCtxGetDevice) X(17, cuCtxSynchronize) \
	X(18, cuModuleLoad) X(19, cuModuleLoadData) X(20, cuModuleLoadDataEx) \
	X(21, cuModuleLoadFatBinary) X(22, cuModuleUnload) X(23, cuModuleGetFunction) \
	X(24, cuModuleGetGlobal) X(26, cuModuleGetTexRef) X(27, cuMemGetInfo) X(29, cuMemAlloc) \
	X(31, cuMemAllocPitch) X(33, cuMemFree) X(35, cuMemGetAddressRange) \
	X(37, cuMemAllocHost) X(38, cuMemFreeHost) X(39, cuMemHostAlloc) \
	X(40, cuMemHostGetDevicePointer) X(42, cuMemHostGetFlags) X(43, cuMemcpyHtoD) \
	X(45, cuMemcpyDtoH) X(47, cuMemcpyDtoD) X(49, cuMemcpyDtoA) X(51, cuMemcpyAtoD) \
	X(53, cuMemcpyHtoA) X(54, cuMemcpyAtoH) X(55, cuMemcpyAtoA) X(56, cuMemcpy2D) \
	X(57, cuMemcpy2DUnaligned) X(58, cuMemcpy3D) X(60, cuMemcpyHtoDAsync) \
	X(62, cuMemcpyDtoHAsync) X(64, cuMemcpyDtoDAsync) X(66, cuMemcpyHtoAAsync) \
	X(67, cuMemcpyAtoHAsync) X(68, cuMemcpy2DAsync) X(69, cuMemcpy3DAsync) \
	X(71, cuMemsetD8) X(73, cuMemsetD16) X(75, cuMemsetD32) X(77, cuMemsetD2D8) \
	X(79, cuMemsetD2D16) X(81, cuMemsetD2D32) X(83, cuFuncSetBlockShape) \
	X(84, cuFuncSetSharedSize) X(85, cuFuncGetAttribute) X(86, cuFuncSetCacheConfig) \
	X(87, cuArrayCreate) X(88, cuArrayGetDescriptor) X(89, cuArrayDestroy) \
	X(90, cuArray3DCreate) X(91, cuArray3DGetDescriptor) X(92, cuTexRefCreate) \
	X(93, cuTexRefDestroy) X(94, cuTexRefSetArray) X(95, cuTexRefSetAddress) \
	X(97, cuTexRefSetAddress2D) X(99, cuTexRefSetFormat) X(100, cuTexRefSetAddressMode) \
	X(101, cuTexRefSetFilterMode) X(102, cuTexRefSetFlags) X(103, cuTexRefGetAddress) \
	X(105, cuTexRefGetArray) X(106, cuTexRefGetAddressMode) X(107, cuTexRefGetFilterMode) \
	X(108, cuTexRefGetFormat) X(109, cuTexRefGetFlags) X(110, cuParamSetSize) \
	X(111, cuParamSeti) X(112, cuParamSetf) X(113, cuParamSetv) X(114, cuParamSetTexRef) \
	X(115, cuLaunch) X(116, cuLaunchGrid) X(117, cuLaunchGridAsync) X(118, cuEventCreate) \
	X(119, cuEventRecord) X(120, cuEventQuery) X(121, cuEventSynchronize) \
	X(122, cuEventDestroy) X(123, cuEventElapsedTime) X(124, cuStreamCreate) \
	X(125, cuStreamQuery) X(126, cuStreamSynchronize) X(127, cuStreamDestroy) \
	X(128, cuGraphicsUnregisterResource) X(129, cuGraphicsSubResourceGetMappedArray) \
	X(130, cuGraphicsResourceGetMappedPointer) X(132, cuGraphicsResourceSetMapFlags) \
	X(133, cuGraphicsMapResources) X(134, cuGraphicsUnmapResources) \
	X(135, cuGetExportTable) X(136, cuCtxSetLimit) X(137, cuCtxGetLimit) \
	X(190, cuModuleGetSurfRef) X(194, cuSurfRefSetArray) X(196, cuSurfRefGetArray) \
	X(216, cuMemsetD8Async) X(218, cuMemsetD16Async) X(220, cuMemsetD32Async) \
	X(222, cuMemsetD2D8Async) X(224, cuMemsetD2D16Async) X(226, cuMemsetD2D32Async) \
	X(235, cuCtxCreate_v2) X(241, cuModuleGetGlobal_v2) X(242, cuMemGetInfo_v2) \
	X(243, cuMemAlloc_v2) X(244, cuMemAllocPitch_v2) X(245, cuMemFree_v2) \
	X(246, cuMemGetAddressRange_v2) X(247, cuMemHostGetDevicePointer_v2) \
	X(249, cuMemsetD8_v2) X(250, cuMemsetD16_v2) X(251, cuMemsetD32_v2) \
	X(252, cuMemsetD2D8_v2) X(253, cuMemsetD2D16_v2) X(254, cuMemsetD2D32_v2) \
	X(255, cuTexRefSetAddress_v2) X(256, cuTexRefSetAddress2D_v2) \
	X(257, cuTexRefGetAddress_v2) X(258, cuGraphicsResourceGetMappedPointer_v2) \
	X(259, cuDeviceTotalMem_v2) X(272, cuArrayCreate_v2) X(273, cuArrayGetDescriptor_v2) \
	X(274, cuArray3DCreate_v2) X(275, cuArray3DGetDescriptor_v2) X(276, cuMemcpyHtoD_v2) \
	X(277, cuMemcpyHtoDAsync_v2) X(278, cuMemcpyDtoH_v2) X(279, cuMemcpyDtoHAsync_v2) \
	X(280, cuMemcpyDtoD_v2) X(281, cuMemcpyDtoDAsync_v2) X(282, cuMemcpyAtoH_v2) \
	X(283, cuMemcpyAtoHAsync_v2) X(284, cuMemcpyAtoD_v2) X(285, cuMemcpyDtoA_v2) \
	X(286, cuMemcpyAtoA_v2) X(287, cuMemcpy2D_v2) X(288, cuMemcpy2DUnaligned_v2) \
	X(289, cuMemcpy2DAsync_v2) X(290, cuMemcpy3D_v2) X(291, cuMemcpy3DAsync_v2) \
	X(292, cuMemcpyHtoA_v2) X(293, cuMemcpyHtoAAsync_v2) X(294, cuMemAllocHost_v2) \
	X(295, cuStreamWaitEvent) X(296, cuCtxGetApiVersion) X(299, cuCtxGetCacheConfig) \
	X(300, cuCtxSetCacheConfig) X(301, cuMemHostRegister) X(302, cuMemHostUnregister) \
	X(303, cuCtxSetCurrent) X(304, cuCtxGetCurrent) X(305, cuMemcpy) X(306, cuMemcpyAsync) \
	X(307, cuLaunchKernel) X(308, cuProfilerStart) X(309, cuProfilerStop) \
	X(310, cuPointerGetAttribute) X(311, cuProfilerInitialize) \
	X(312, cuDeviceCanAccessPeer) X(313, cuCtxEnablePeerAccess) \
	X(314, cuCtxDisablePeerAccess) X(318, cuMemcpyPeer) X(319, cuMemcpyPeerAsync) \
	X(320, cuMemcpy3DPeer) X(321, cuMemcpy3DPeerAsync) X(322, cuCtxDestroy_v2) \
	X(323, cuCtxPushCurrent_v2) X(324, cuCtxPopCurrent_v2) X(325, cuEventDestroy_v2) \
	X(326, cuStreamDestroy_v2) X(327, cuTexRefSetAddress2D_v3) X(328, cuIpcGetMemHandle) \
	X(329, cuIpcOpenMemHandle) X(330, cuIpcCloseMemHandle) X(331, cuDeviceGetByPCIBusId) \
	X(332, cuDeviceGetPCIBusId) X(334, cuIpcGetEventHandle) X(335, cuIpcOpenEventHandle) \
	X(336, cuCtxSetSharedMemConfig) X(337, cuCtxGetSharedMemConfig) \
	X(338, cuFuncSetSharedMemConfig) X(339, cuTexObjectCreate) X(340, cuTexObjectDestroy) \
	X(341, cuTexObjectGetResourceDesc) X(342, cuTexObjectGetTextureDesc) \
	X(343, cuSurfObjectCreate) X(344, cuSurfObjectDestroy) \
	X(345, cuSurfObjectGetResourceDesc) X(346, cuStreamAddCallback) \
	X(347, cuMipmappedArrayCreate) X(348, cuMipmappedArrayGetLevel) \
	X(349, cuMipmappedArrayDestroy) X(350, cuTexRefSetMipmappedArray) \
	X(351, cuTexRefSetMipmapFilterMode) X(352, cuTexRefSetMipmapLevelBias) \
	X(353, cuTexRefSetMipmapLevelClamp) X(354, cuTexRefSetMaxAnisotropy) \
	X(355, cuTexRefGetMipmappedArray) X(356, cuTexRefGetMipmapFilterMode) \
	X(357, cuTexRefGetMipmapLevelBias) X(358, cuTexRefGetMipmapLevelClamp) \
	X(359, cuTexRefGetMaxAnisotropy) X(360, cuGraphicsResourceGetMappedMipmappedArray) \
	X(361, cuTexObjectGetResourceViewDesc) X(362, cuLinkCreate) X(363, cuLinkAddData) \
	X(364, cuLinkAddFile) X(365, cuLinkComplete) X(366, cuLinkDestroy) \
	X(367, cuStreamCreateWithPriority) X(368, cuStreamGetPriority) X(369, cuStreamGetFlags) \
	X(370, cuCtxGetStreamPriorityRange) X(371, cuMemAllocManaged) X(372, cuGetErrorString) \
	X(373, cuGetErrorName) X(374, cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	X(377, cuStreamAttachMemAsync) X(378, cuPointerSetAttribute) \
	X(379, cuMemHostRegister_v2) X(380, cuGraphicsResourceSetMapFlags_v2) \
	X(381, cuLinkCreate_v2) X(382, cuLinkAddData_v2) X(383, cuLinkAddFile_v2) \
	X(384, cuOccupancyMaxPotentialBlockSize) X(386, cuDevicePrimaryCtxRetain) \
	X(387, cuDevicePrimaryCtxRelease) X(388, cuDevicePrimaryCtxSetFlags) \
	X(389, cuDevicePrimaryCtxReset) X(391, cuCtxGetFlags) \
	X(392, cuDevicePrimaryCtxGetState) X(397, cuMemcpyHtoD_v2_ptds) \
	X(398, cuMemcpyDtoH_v2_ptds) X(399, cuMemcpyDtoD_v2_ptds) X(400, cuMemcpyDtoA_v2_ptds) \
	X(401, cuMemcpyAtoD_v2_ptds) X(402, cuMemcpyHtoA_v2_ptds) X(403, cuMemcpyAtoH_v2_ptds) \
	X(404, cuMemcpyAtoA_v2_ptds) X(405, cuMemcpy2D_v2_ptds) \
	X(406, cuMemcpy2DUnaligned_v2_ptds) X(407, cuMemcpy3D_v2_ptds) X(408, cuMemcpy_ptds) \
	X(409, cuMemcpyPeer_ptds) X(410, cuMemcpy3DPeer_ptds) X(411, cuMemsetD8_v2_ptds) \
	X(412, cuMemsetD16_v2_ptds) X(413, cuMemsetD32_v2_ptds) X(414, cuMemsetD2D8_v2_ptds) \
	X(415, cuMemsetD2D16_v2_ptds) X(416, cuMemsetD2D32_v2_ptds) X(418, cuMemcpyAsync_ptsz) \
	X(419, cuMemcpyHtoAAsync_v2_ptsz) X(420, cuMemcpyAtoHAsync_v2_ptsz) \
	X(421, cuMemcpyHtoDAsync_v2_ptsz) X(422, cuMemcpyDtoHAsync_v2_ptsz) \
	X(423, cuMemcpyDtoDAsync_v2_ptsz) X(424, cuMemcpy2DAsync_v2_ptsz) \
	X(425, cuMemcpy3DAsync_v2_ptsz) X(426, cuMemcpyPeerAsync_ptsz) \
	X(427, cuMemcpy3DPeerAsync_ptsz) X(428, cuMemsetD8Async_ptsz) \
	X(429, cuMemsetD16Async_ptsz) X(430, cuMemsetD32Async_ptsz) \
	X(431, cuMemsetD2D8Async_ptsz) X(432, cuMemsetD2D16Async_ptsz) \
	X(433, cuMemsetD2D32Async_ptsz) X(434, cuStreamGetPriority_ptsz) \
	X(435, cuStreamGetFlags_ptsz) X(436, cuStreamWaitEvent_ptsz) \
	X(437, cuStreamAddCallback_ptsz) X(438, cuStreamAttachMemAsync_ptsz) \
	X(439, cuStreamQuery_ptsz) X(440, cuStreamSynchronize_ptsz) X(441, cuEventRecord_ptsz) \
	X(442, cuLaunchKernel_ptsz) X(443, cuGraphicsMapResources_ptsz) \
	X(444, cuGraphicsUnmapResources_ptsz) X(450, cuPointerGetAttributes) \
	X(451, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	X(452, cuOccupancyMaxPotentialBlockSizeWithFlags) X(454, cuDeviceGetP2PAttribute) \
	X(455, cuTexRefSetBorderColor) X(456, cuTexRefGetBorderColor) X(457, cuMemAdvise) \
	X(458, cuStreamWaitValue32) X(459, cuStreamWaitValue32_ptsz) \
	X(460, cuStreamWriteValue32) X(461, cuStreamWriteValue32_ptsz) \
	X(462, cuStreamBatchMemOp) X(463, cuStreamBatchMemOp_ptsz) X(467, cuMemPrefetchAsync) \
	X(468, cuMemPrefetchAsync_ptsz) X(471, cuMemRangeGetAttribute) \
	X(472, cuMemRangeGetAttributes) X(473, cuStreamWaitValue64) \
	X(474, cuStreamWaitValue64_ptsz) X(475, cuStreamWriteValue64) \
	X(476, cuStreamWriteValue64_ptsz) X(477, cuLaunchCooperativeKernel) \
	X(478, cuLaunchCooperativeKernel_ptsz) X(480, cuLaunchCooperativeKernelMultiDevice) \
	X(481, cuFuncSetAttribute) X(482, cuDeviceGetUuid) X(483, cuStreamGetCtx) \
	X(484, cuStreamGetCtx_ptsz) X(485, cuImportExternalMemory) \
	X(486, cuExternalMemoryGetMappedBuffer) X(487, cuExternalMemoryGetMappedMipmappedArray) \
	X(488, cuDestroyExternalMemory) X(489, cuImportExternalSemaphore) \
	X(490, cuSignalExternalSemaphoresAsync) X(491, cuSignalExternalSemaphoresAsync_ptsz) \
	X(492, cuWaitExternalSemaphoresAsync) X(493, cuWaitExternalSemaphoresAsync_ptsz) \
	X(494, cuDestroyExternalSemaphore) X(495, cuStreamBeginCapture) \
	X(496, cuStreamBeginCapture_ptsz) X(497, cuStreamEndCapture) \
	X(498, cuStreamEndCapture_ptsz) X(499, cuStreamIsCapturing) \
	X(500, cuStreamIsCapturing_ptsz) X(501, cuGraphCreate) X(502, cuGraphAddKernelNode) \
	X(503, cuGraphKernelNodeGetParams) X(504, cuGraphAddMemcpyNode) \
	X(505, cuGraphMemcpyNodeGetParams) X(506, cuGraphAddMemsetNode) \
	X(507, cuGraphMemsetNodeGetParams) X(508, cuGraphMemsetNodeSetParams) \
	X(509, cuGraphNodeGetType) X(510, cuGraphGetRootNodes) \
	X(511, cuGraphNodeGetDependencies) X(512, cuGraphNodeGetDependentNodes) \
	X(513, cuGraphInstantiate) X(514, cuGraphLaunch) X(515, cuGraphLaunch_ptsz) \
	X(516, cuGraphExecDestroy) X(517, cuGraphDestroy) X(518, cuGraphAddDependencies) \
	X(519, cuGraphRemoveDependencies) X(520, cuGraphMemcpyNodeSetParams) \
	X(521, cuGraphKernelNodeSetParams) X(522, cuGraphDestroyNode) X(523, cuGraphClone) \
	X(524, cuGraphNodeFindInClone) X(525, cuGraphAddChildGraphNode) \
	X(526, cuGraphAddEmptyNode) X(527, cuLaunchHostFunc) X(528, cuLaunchHostFunc_ptsz) \
	X(529, cuGraphChildGraphNodeGetGraph) X(530, cuGraphAddHostNode) \
	X(531, cuGraphHostNodeGetParams) X(532, cuDeviceGetLuid) \
	X(533, cuGraphHostNodeSetParams) X(534, cuGraphGetNodes) X(535, cuGraphGetEdges) \
	X(536, cuStreamGetCaptureInfo) X(537, cuStreamGetCaptureInfo_ptsz) \
	X(538, cuGraphExecKernelNodeSetParams) X(539, cuStreamBeginCapture_v2) \
	X(540, cuStreamBeginCapture_v2_ptsz) X(541, cuThreadExchangeStreamCaptureMode) \
	X(542, cuDeviceGetNvSciSyncAttributes) X(543, cuOccupancyAvailableDynamicSMemPerBlock) \
	X(544, cuDevicePrimaryCtxRelease_v2) X(545, cuDevicePrimaryCtxReset_v2) \
	X(546, cuDevicePrimaryCtxSetFlags_v2) X(547, cuMemAddressReserve) \
	X(548, cuMemAddressFree) X(549, cuMemCreate) X(550, cuMemRelease) X(551, cuMemMap) \
	X(552, cuMemUnmap) X(553, cuMemSetAccess) X(554, cuMemExportToShareableHandle) \
	X(555, cuMemImportFromShareableHandle) X(556, cuMemGetAllocationGranularity) \
	X(557, cuMemGetAllocationPropertiesFromHandle) X(558, cuMemGetAccess) \
	X(561, cuGraphExecUpdate) X(562, cuGraphExecMemcpyNodeSetParams) \
	X(563, cuGraphExecMemsetNodeSetParams) X(564, cuGraphExecHostNodeSetParams) \
	X(565, cuMemRetainAllocationHandle) X(566, cuFuncGetModule) \
	X(567, cuIpcOpenMemHandle_v2) X(568, cuCtxResetPersistingL2Cache) \
	X(569, cuGraphKernelNodeCopyAttributes) X(570, cuGraphKernelNodeGetAttribute) \
	X(571, cuGraphKernelNodeSetAttribute) X(572, cuStreamCopyAttributes) \
	X(573, cuStreamCopyAttributes_ptsz) X(574, cuStreamGetAttribute) \
	X(575, cuStreamGetAttribute_ptsz) X(576, cuStreamSetAttribute) \
	X(577, cuStreamSetAttribute_ptsz) X(578, cuGraphInstantiate_v2) \
	X(579, cuDeviceGetTexture1DLinearMaxWidth) X(580, cuGraphUpload) \
	X(581, cuGraphUpload_ptsz) X(582, cuArrayGetSparseProperties) \
	X(583, cuMipmappedArrayGetSparseProperties) X(584, cuMemMapArrayAsync) \
	X(585, cuMemMapArrayAsync_ptsz) X(586, cuGraphExecChildGraphNodeSetParams) \
	X(587, cuEventRecordWithFlags) X(588, cuEventRecordWithFlags_ptsz) \
	X(589, cuGraphAddEventRecordNode) X(590, cuGraphAddEventWaitNode) \
	X(591, cuGraphEventRecordNodeGetEvent) X(592, cuGraphEventWaitNodeGetEvent) \
	X(593, cuGraphEventRecordNodeSetEvent) X(594, cuGraphEventWaitNodeSetEvent) \
	X(595, cuGraphExecEventRecordNodeSetEvent) X(596, cuGraphExecEventWaitNodeSetEvent) \
	X(597, cuArrayGetPlane) X(598, cuMemAllocAsync) X(599, cuMemAllocAsync_ptsz) \
	X(600, cuMemFreeAsync) X(601, cuMemFreeAsync_ptsz) X(602, cuMemPoolTrimTo) \
	X(603, cuMemPoolSetAttribute) X(604, cuMemPoolGetAttribute) X(605, cuMemPoolSetAccess) \
	X(606, cuDeviceGetDefaultMemPool) X(607, cuMemPoolCreate) X(608, cuMemPoolDestroy) \
	X(609, cuDeviceSetMemPool) X(610, cuDeviceGetMemPool) X(611, cuMemAllocFromPoolAsync) \
	X(612, cuMemAllocFromPoolAsync_ptsz) X(613, cuMemPoolExportToShareableHandle) \
	X(614, cuMemPoolImportFromShareableHandle) X(615, cuMemPoolExportPointer) \
	X(616, cuMemPoolImportPointer) X(617, cuMemPoolGetAccess) \
	X(618, cuGraphAddExternalSemaphoresSignalNode) \
	X(619, cuGraphExternalSemaphoresSignalNodeGetParams) \
	X(620, cuGraphExternalSemaphoresSignalNodeSetParams) \
	X(621, cuGraphAddExternalSemaphoresWaitNode) \
	X(622, cuGraphExternalSemaphoresWaitNodeGetParams) \
	X(623, cuGraphExternalSemaphoresWaitNodeSetParams) \
	X(624, cuGraphExecExternalSemaphoresSignalNodeSetParams) \
	X(625, cuGraphExecExternalSemaphoresWaitNodeSetParams) X(626, cuGetProcAddress) \
	X(627, cuFlushGPUDirectRDMAWrites) X(628, cuGraphDebugDotPrint) \
	X(629, cuStreamGetCaptureInfo_v2) X(630, cuStreamGetCaptureInfo_v2_ptsz) \
	X(631, cuStreamUpdateCaptureDependencies) \
	X(632, cuStreamUpdateCaptureDependencies_ptsz) X(633, cuUserObjectCreate) \
	X(634, cuUserObjectRetain) X(635, cuUserObjectRelease) X(636, cuGraphRetainUserObject) \
	X(637, cuGraphReleaseUserObject) X(638, cuGraphAddMemAllocNode) \
	X(639, cuGraphAddMemFreeNode) X(640, cuDeviceGraphMemTrim) \
	X(641, cuDeviceGetGraphMemAttribute) X(642, cuDeviceSetGraphMemAttribute) \
	X(643, cuGraphInstantiateWithFlags) X(644, cuDeviceGetExecAffinitySupport) \
	X(645, cuCtxCreate_v3) X(646, cuCtxGetExecAffinity) X(647, cuDeviceGetUuid_v2) \
	X(648, cuGraphMemAllocNodeGetParams) X(649, cuGraphMemFreeNodeGetParams) \
	X(650, cuGraphNodeSetEnabled) X(651, cuGraphNodeGetEnabled) X(652, cuLaunchKernelEx) \
	X(653, cuLaunchKernelEx_ptsz) X(654, cuArrayGetMemoryRequirements) \
	X(655, cuMipmappedArrayGetMemoryRequirements) X(656, cuGraphInstantiateWithParams) \
	X(657, cuGraphInstantiateWithParams_ptsz) X(658, cuGraphExecGetFlags) \
	X(659, cuStreamWaitValue32_v2) X(660, cuStreamWaitValue32_v2_ptsz) \
	X(661, cuStreamWaitValue64_v2) X(662, cuStreamWaitValue64_v2_ptsz) \
	X(663, cuStreamWriteValue32_v2) X(664, cuStreamWriteValue32_v2_ptsz) \
	X(665, cuStreamWriteValue64_v2) X(666, cuStreamWriteValue64_v2_ptsz) \
	X(667, cuStreamBatchMemOp_v2) X(668, cuStreamBatchMemOp_v2_ptsz) \
	X(669, cuGraphAddBatchMemOpNode) X(670, cuGraphBatchMemOpNodeGetParams) \
	X(671, cuGraphBatchMemOpNodeSetParams) X(672, cuGraphExecBatchMemOpNodeSetParams) \
	X(673, cuModuleGetLoadingMode) X(674, cuMemGetHandleForAddressRange) \
	X(675, cuOccupancyMaxPotentialClusterSize) X(676, cuOccupancyMaxActiveClusters) \
	X(677, cuGetProcAddress_v2) X(678, cuLibraryLoadData) X(679, cuLibraryLoadFromFile) \
	X(680, cuLibraryUnload) X(681, cuLibraryGetKernel) X(682, cuLibraryGetModule) \
	X(683, cuKernelGetFunction) X(684, cuLibraryGetGlobal) X(685, cuLibraryGetManaged) \
	X(686, cuKernelGetAttribute) X(687, cuKernelSetAttribute) \
	X(688, cuKernelSetCacheConfig) X(689, cuGraphAddKernelNode_v2) \
	X(690, cuGraphKernelNodeGetParams_v2) X(691, cuGraphKernelNodeSetParams_v2) \
	X(692, cuGraphExecKernelNodeSetParams_v2) X(693, cuStreamGetId) \
	X(694, cuStreamGetId_ptsz) X(695, cuCtxGetId) X(696, cuGraphExecUpdate_v2) \
	X(697, cuTensorMapEncodeTiled) X(698, cuTensorMapEncodeIm2col) \
	X(699, cuTensorMapReplaceAddress) X(700, cuLibraryGetUnifiedFunction) \
	X(701, cuCoredumpGetAttribute) X(702, cuCoredumpGetAttributeGlobal) \
	X(703, cuCoredumpSetAttribute) X(704, cuCoredumpSetAttributeGlobal) \
	X(705, cuCtxSetFlags) X(706, cuMulticastCreate) X(707, cuMulticastAddDevice) \
	X(708, cuMulticastBindMem) X(709, cuMulticastBindAddr) X(710, cuMulticastUnbind) \
	X(711, cuMulticastGetGranularity) X(712, cuGraphAddNode) X(713, cuGraphNodeSetParams) \
	X(714, cuGraphExecNodeSetParams) X(715, cuMemAdvise_v2) X(716, cuMemPrefetchAsync_v2) \
	X(717, cuMemPrefetchAsync_v2_ptsz) X(718, cuFuncGetName) X(719, cuKernelGetName) \
	X(720, cuStreamBeginCaptureToGraph) X(721, cuStreamBeginCaptureToGraph_ptsz) \
	X(722, cuGraphConditionalHandleCreate) X(723, cuGraphAddNode_v2) \
	X(724, cuGraphGetEdges_v2) X(725, cuGraphNodeGetDependencies_v2) \
	X(726, cuGraphNodeGetDependentNodes_v2) X(727, cuGraphAddDependencies_v2) \
	X(728, cuGraphRemoveDependencies_v2) X(729, cuStreamGetCaptureInfo_v3) \
	X(730, cuStreamGetCaptureInfo_v3_ptsz) X(731, cuStreamUpdateCaptureDependencies_v2) \
	X(732, cuStreamUpdateCaptureDependencies_v2_ptsz) X(733, cuFuncGetParamInfo) \
	X(734, cuKernelGetParamInfo) X(735, cuDeviceRegisterAsyncNotification) \
	X(736, cuDeviceUnregisterAsyncNotification) X(737, cuModuleGetFunctionCount) \
	X(738, cuModuleEnumerateFunctions) X(739, cuLibraryGetKernelCount) \
	X(740, cuLibraryEnumerateKernels) X(741, cuFuncIsLoaded) X(742, cuFuncLoad) \
	X(743, cuGreenCtxCreate) X(744, cuGreenCtxDestroy) X(745, cuDeviceGetDevResource) \
	X(746, cuCtxGetDevResource) X(747, cuGreenCtxGetDevResource) \
	X(748, cuDevResourceGenerateDesc) X(749, cuGreenCtxRecordEvent) \
	X(750, cuGreenCtxWaitEvent) X(751, cuDevSmResourceSplitByCount) \
	X(752, cuStreamGetGreenCtx) X(753, cuCtxFromGreenCtx) X(754, cuKernelGetLibrary) \
	X(755, cuCtxRecordEvent) X(756, cuCtxWaitEvent) X(757, cuCtxCreate_v4) \
	X(758, cuGreenCtxStreamCreate) X(759, cuStreamGetCtx_v2) X(760, cuStreamGetCtx_v2_ptsz) \
	X(761, cuMemBatchDecompressAsync) X(762, cuMemBatchDecompressAsync_ptsz) \
	X(763, cuLogsRegisterCallback) X(764, cuLogsUnregisterCallback) X(765, cuLogsCurrent) \
	X(766, cuLogsDumpToFile) X(767, cuLogsDumpToMemory) \
	X(768, cuCheckpointProcessGetRestoreThreadId) X(769, cuCheckpointProcessGetState) \
	X(770, cuCheckpointProcessLock) X(771, cuCheckpointProcessCheckpoint) \
	X(772, cuCheckpointProcessRestore) X(773, cuCheckpointProcessUnlock) \
	X(774, cuStreamGetDevice) X(775, cuStreamGetDevice_ptsz) X(776, cuMemcpyBatchAsync) \
	X(777, cuMemcpyBatchAsync_ptsz) X(778, cuMemcpy3DBatchAsync) \
	X(779, cuMemcpy3DBatchAsync_ptsz) X(780, cuEventElapsedTime_v2) \
	X(781, cuTensorMapEncodeIm2colWide) X(782, cuGreenCtxGetId) \
	X(784, cuMemPrefetchBatchAsync) X(785, cuMemPrefetchBatchAsync_ptsz) \
	X(789, cuMemDiscardBatchAsync) X(790, cuMemDiscardBatchAsync_ptsz) \
	X(791, cuMemDiscardAndPrefetchBatchAsync) \
	X(792, cuMemDiscardAndPrefetchBatchAsync_ptsz) X(795, cuCtxGetDevice_v2) \
	X(796, cuMemcpyBatchAsync_v2) X(797, cuMemcpyBatchAsync_v2_ptsz) \
	X(798, cuMemcpy3DBatchAsync_v2) X(799, cuMemcpy3DBatchAsync_v2_ptsz) \
	X(800, cuCtxSynchronize_v2) X(801, cuMemGetDefaultMemPool) X(802, cuMemGetMemPool) \
	X(803, cuMemSetMemPool) X(804, cuDeviceGetP2PAtomicCapabilities) \
	X(805, cuDeviceGetHostAtomicCapabilities)

#define RUNTIME_SITES(X) \
	X(1, cudaDriverGetVersion, 3020) X(2, cudaRuntimeGetVersion, 3020) \
	X(3, cudaGetDeviceCount, 3020) X(5, cudaChooseDevice, 3020) \
	X(6, cudaGetChannelDesc, 3020) X(7, cudaCreateChannelDesc, 3020) \
	X(10, cudaGetLastError, 3020) X(11, cudaPeekAtLastError, 3020) \
	X(12, cudaGetErrorString, 3020) X(14, cudaFuncSetCacheConfig, 3020) \
	X(15, cudaFuncGetAttributes, 3020) X(16, cudaSetDevice, 3020) \
	X(17, cudaGetDevice, 3020) X(18, cudaSetValidDevices, 3020) \
	X(19, cudaSetDeviceFlags, 3020) X(20, cudaMalloc, 3020) X(21, cudaMallocPitch, 3020) \
	X(22, cudaFree, 3020) X(23, cudaMallocArray, 3020) X(24, cudaFreeArray, 3020) \
	X(25, cudaMallocHost, 3020) X(26, cudaFreeHost, 3020) X(27, cudaHostAlloc, 3020) \
	X(28, cudaHostGetDevicePointer, 3020) X(29, cudaHostGetFlags, 3020) \
	X(30, cudaMemGetInfo, 3020) X(31, cudaMemcpy, 3020) X(32, cudaMemcpy2D, 3020) \
	X(33, cudaMemcpyToArray, 3020) X(34, cudaMemcpy2DToArray, 3020) \
	X(35, cudaMemcpyFromArray, 3020) X(36, cudaMemcpy2DFromArray, 3020) \
	X(37, cudaMemcpyArrayToArray, 3020) X(38, cudaMemcpy2DArrayToArray, 3020) \
	X(39, cudaMemcpyToSymbol, 3020) X(40, cudaMemcpyFromSymbol, 3020) \
	X(41, cudaMemcpyAsync, 3020) X(42, cudaMemcpyToArrayAsync, 3020) \
	X(43, cudaMemcpyFromArrayAsync, 3020) X(44, cudaMemcpy2DAsync, 3020) \
	X(45, cudaMemcpy2DToArrayAsync, 3020) X(46, cudaMemcpy2DFromArrayAsync, 3020) \
	X(47, cudaMemcpyToSymbolAsync, 3020) X(48, cudaMemcpyFromSymbolAsync, 3020) \
	X(49, cudaMemset, 3020) X(50, cudaMemset2D, 3020) X(51, cudaMemsetAsync, 3020) \
	X(52, cudaMemset2DAsync, 3020) X(53, cudaGetSymbolAddress, 3020) \
	X(54, cudaGetSymbolSize, 3020) X(63, cudaGLSetGLDevice, 3020) \
	X(64, cudaGLRegisterBufferObject, 3020) X(65, cudaGLMapBufferObject, 3020) \
	X(66, cudaGLUnmapBufferObject, 3020) X(67, cudaGLUnregisterBufferObject, 3020) \
	X(68, cudaGLSetBufferObjectMapFlags, 3020) X(69, cudaGLMapBufferObjectAsync, 3020) \
	X(70, cudaGLUnmapBufferObjectAsync, 3020) X(72, cudaGraphicsGLRegisterImage, 3020) \
	X(73, cudaGraphicsGLRegisterBuffer, 3020) X(74, cudaGraphicsUnregisterResource, 3020) \
	X(75, cudaGraphicsResourceSetMapFlags, 3020) X(76, cudaGraphicsMapResources, 3020) \
	X(77, cudaGraphicsUnmapResources, 3020) \
	X(78, cudaGraphicsResourceGetMappedPointer, 3020) \
	X(79, cudaGraphicsSubResourceGetMappedArray, 3020) X(80, cudaVDPAUGetDevice, 3020) \
	X(81, cudaVDPAUSetVDPAUDevice, 3020) X(82, cudaGraphicsVDPAURegisterVideoSurface, 3020) \
	X(83, cudaGraphicsVDPAURegisterOutputSurface, 3020) X(123, cudaThreadExit, 3020) \
	X(124, cudaSetDoubleForDevice, 3020) X(125, cudaSetDoubleForHost, 3020) \
	X(126, cudaThreadSynchronize, 3020) X(127, cudaThreadGetLimit, 3020) \
	X(128, cudaThreadSetLimit, 3020) X(129, cudaStreamCreate, 3020) \
	X(131, cudaStreamSynchronize, 3020) X(132, cudaStreamQuery, 3020) \
	X(133, cudaEventCreate, 3020) X(134, cudaEventCreateWithFlags, 3020) \
	X(135, cudaEventRecord, 3020) X(136, cudaEventDestroy, 3020) \
	X(137, cudaEventSynchronize, 3020) X(138, cudaEventQuery, 3020) \
	X(140, cudaMalloc3D, 3020) X(141, cudaMalloc3DArray, 3020) X(142, cudaMemset3D, 3020) \
	X(143, cudaMemset3DAsync, 3020) X(144, cudaMemcpy3D, 3020) \
	X(145, cudaMemcpy3DAsync, 3020) X(146, cudaThreadSetCacheConfig, 3020) \
	X(147, cudaStreamWaitEvent, 3020) X(150, cudaThreadGetCacheConfig, 3020) \
	X(151, cudaPointerGetAttributes, 4000) X(152, cudaHostRegister, 4000) \
	X(153, cudaHostUnregister, 4000) X(154, cudaDeviceCanAccessPeer, 4000) \
	X(155, cudaDeviceEnablePeerAccess, 4000) X(156, cudaDeviceDisablePeerAccess, 4000) \
	X(160, cudaMemcpyPeer, 4000) X(161, cudaMemcpyPeerAsync, 4000) \
	X(162, cudaMemcpy3DPeer, 4000) X(163, cudaMemcpy3DPeerAsync, 4000) \
	X(164, cudaDeviceReset, 3020) X(165, cudaDeviceSynchronize, 3020) \
	X(166, cudaDeviceGetLimit, 3020) X(167, cudaDeviceSetLimit, 3020) \
	X(168, cudaDeviceGetCacheConfig, 3020) X(169, cudaDeviceSetCacheConfig, 3020) \
	X(171, cudaProfilerStart, 4000) X(172, cudaProfilerStop, 4000) \
	X(173, cudaDeviceGetByPCIBusId, 4010) X(174, cudaDeviceGetPCIBusId, 4010) \
	X(175, cudaGLGetDevices, 4010) X(176, cudaIpcGetEventHandle, 4010) \
	X(177, cudaIpcOpenEventHandle, 4010) X(178, cudaIpcGetMemHandle, 4010) \
	X(179, cudaIpcOpenMemHandle, 4010) X(180, cudaIpcCloseMemHandle, 4010) \
	X(181, cudaArrayGetInfo, 4010) X(182, cudaFuncSetSharedMemConfig, 4020) \
	X(183, cudaDeviceGetSharedMemConfig, 4020) X(184, cudaDeviceSetSharedMemConfig, 4020) \
	X(185, cudaCreateTextureObject, 5000) X(186, cudaDestroyTextureObject, 5000) \
	X(187, cudaGetTextureObjectResourceDesc, 5000) \
	X(188, cudaGetTextureObjectTextureDesc, 5000) X(189, cudaCreateSurfaceObject, 5000) \
	X(190, cudaDestroySurfaceObject, 5000) X(191, cudaGetSurfaceObjectResourceDesc, 5000) \
	X(192, cudaMallocMipmappedArray, 5000) X(193, cudaGetMipmappedArrayLevel, 5000) \
	X(194, cudaFreeMipmappedArray, 5000) \
	X(196, cudaGraphicsResourceGetMappedMipmappedArray, 5000) \
	X(197, cudaStreamAddCallback, 5000) X(198, cudaStreamCreateWithFlags, 5000) \
	X(199, cudaGetTextureObjectResourceViewDesc, 5000) X(200, cudaDeviceGetAttribute, 5000) \
	X(201, cudaStreamDestroy, 5050) X(202, cudaStreamCreateWithPriority, 5050) \
	X(203, cudaStreamGetPriority, 5050) X(204, cudaStreamGetFlags, 5050) \
	X(205, cudaDeviceGetStreamPriorityRange, 5050) X(206, cudaMallocManaged, 6000) \
	X(208, cudaStreamAttachMemAsync, 6000) X(209, cudaGetErrorName, 6050) \
	X(210, cudaOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
	X(211, cudaLaunchKernel, 7000) X(212, cudaGetDeviceFlags, 7000) \
	X(214, cudaLaunchKernel_ptsz, 7000) X(215, cudaMemcpy_ptds, 7000) \
	X(216, cudaMemcpy2D_ptds, 7000) X(217, cudaMemcpyToArray_ptds, 7000) \
	X(218, cudaMemcpy2DToArray_ptds, 7000) X(219, cudaMemcpyFromArray_ptds, 7000) \
	X(220, cudaMemcpy2DFromArray_ptds, 7000) X(221, cudaMemcpyArrayToArray_ptds, 7000) \
	X(222, cudaMemcpy2DArrayToArray_ptds, 7000) X(223, cudaMemcpyToSymbol_ptds, 7000) \
	X(224, cudaMemcpyFromSymbol_ptds, 7000) X(225, cudaMemcpyAsync_ptsz, 7000) \
	X(226, cudaMemcpyToArrayAsync_ptsz, 7000) X(227, cudaMemcpyFromArrayAsync_ptsz, 7000) \
	X(228, cudaMemcpy2DAsync_ptsz, 7000) X(229, cudaMemcpy2DToArrayAsync_ptsz, 7000) \
	X(230, cudaMemcpy2DFromArrayAsync_ptsz, 7000) \
	X(231, cudaMemcpyToSymbolAsync_ptsz, 7000) X(232, cudaMemcpyFromSymbolAsync_ptsz, 7000) \
	X(233, cudaMemset_ptds, 7000) X(234, cudaMemset2D_ptds, 7000) \
	X(235, cudaMemsetAsync_ptsz, 7000) X(236, cudaMemset2DAsync_ptsz, 7000) \
	X(237, cudaStreamGetPriority_ptsz, 7000) X(238, cudaStreamGetFlags_ptsz, 7000) \
	X(239, cudaStreamSynchronize_ptsz, 7000) X(240, cudaStreamQuery_ptsz, 7000) \
	X(241, cudaStreamAttachMemAsync_ptsz, 7000) X(242, cudaEventRecord_ptsz, 7000) \
	X(243, cudaMemset3D_ptds, 7000) X(244, cudaMemset3DAsync_ptsz, 7000) \
	X(245, cudaMemcpy3D_ptds, 7000) X(246, cudaMemcpy3DAsync_ptsz, 7000) \
	X(247, cudaStreamWaitEvent_ptsz, 7000) X(248, cudaStreamAddCallback_ptsz, 7000) \
	X(249, cudaMemcpy3DPeer_ptds, 7000) X(250, cudaMemcpy3DPeerAsync_ptsz, 7000) \
	X(251, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000) \
	X(255, cudaDeviceGetP2PAttribute, 8000) X(256, cudaGraphicsEGLRegisterImage, 7000) \
	X(257, cudaEGLStreamConsumerConnect, 7000) \
	X(258, cudaEGLStreamConsumerDisconnect, 7000) \
	X(259, cudaEGLStreamConsumerAcquireFrame, 7000) \
	X(260, cudaEGLStreamConsumerReleaseFrame, 7000) \
	X(261, cudaEGLStreamProducerConnect, 7000) \
	X(262, cudaEGLStreamProducerDisconnect, 7000) \
	X(263, cudaEGLStreamProducerPresentFrame, 7000) \
	X(264, cudaEGLStreamProducerReturnFrame, 7000) \
	X(265, cudaGraphicsResourceGetMappedEglFrame, 7000) \
	X(266, cudaMemRangeGetAttribute, 8000) X(267, cudaMemRangeGetAttributes, 8000) \
	X(268, cudaEGLStreamConsumerConnectWithFlags, 7000) \
	X(269, cudaLaunchCooperativeKernel, 9000) \
	X(270, cudaLaunchCooperativeKernel_ptsz, 9000) X(271, cudaEventCreateFromEGLSync, 9000) \
	X(272, cudaLaunchCooperativeKernelMultiDevice, 9000) X(273, cudaFuncSetAttribute, 9000) \
	X(274, cudaImportExternalMemory, 10000) \
	X(275, cudaExternalMemoryGetMappedBuffer, 10000) \
	X(276, cudaExternalMemoryGetMappedMipmappedArray, 10000) \
	X(277, cudaDestroyExternalMemory, 10000) X(278, cudaImportExternalSemaphore, 10000) \
	X(283, cudaDestroyExternalSemaphore, 10000) X(284, cudaLaunchHostFunc, 10000) \
	X(285, cudaLaunchHostFunc_ptsz, 10000) X(286, cudaGraphCreate, 10000) \
	X(287, cudaGraphKernelNodeGetParams, 10000) X(288, cudaGraphKernelNodeSetParams, 10000) \
	X(289, cudaGraphAddKernelNode, 10000) X(290, cudaGraphAddMemcpyNode, 10000) \
	X(291, cudaGraphMemcpyNodeGetParams, 10000) X(292, cudaGraphMemcpyNodeSetParams, 10000) \
	X(293, cudaGraphAddMemsetNode, 10000) X(294, cudaGraphMemsetNodeGetParams, 10000) \
	X(295, cudaGraphMemsetNodeSetParams, 10000) X(296, cudaGraphAddHostNode, 10000) \
	X(297, cudaGraphHostNodeGetParams, 10000) X(298, cudaGraphAddChildGraphNode, 10000) \
	X(299, cudaGraphChildGraphNodeGetGraph, 10000) X(300, cudaGraphAddEmptyNode, 10000) \
	X(301, cudaGraphClone, 10000) X(302, cudaGraphNodeFindInClone, 10000) \
	X(303, cudaGraphNodeGetType, 10000) X(304, cudaGraphGetRootNodes, 10000) \
	X(309, cudaGraphDestroyNode, 10000) X(311, cudaGraphLaunch, 10000) \
	X(312, cudaGraphLaunch_ptsz, 10000) X(313, cudaGraphExecDestroy, 10000) \
	X(314, cudaGraphDestroy, 10000) X(315, cudaStreamBeginCapture, 10000) \
	X(316, cudaStreamBeginCapture_ptsz, 10000) X(317, cudaStreamIsCapturing, 10000) \
	X(318, cudaStreamIsCapturing_ptsz, 10000) X(319, cudaStreamEndCapture, 10000) \
	X(320, cudaStreamEndCapture_ptsz, 10000) X(321, cudaGraphHostNodeSetParams, 10000) \
	X(322, cudaGraphGetNodes, 10000) X(326, cudaGraphExecKernelNodeSetParams, 10010) \
	X(327, cudaThreadExchangeStreamCaptureMode, 10010) \
	X(328, cudaDeviceGetNvSciSyncAttributes, 10020) \
	X(329, cudaOccupancyAvailableDynamicSMemPerBlock, 10200) \
	X(332, cudaGraphExecMemcpyNodeSetParams, 10020) \
	X(333, cudaGraphExecMemsetNodeSetParams, 10020) \
	X(334, cudaGraphExecHostNodeSetParams, 10020) X(335, cudaGraphExecUpdate, 10020) \
	X(336, cudaGetFuncBySymbol, 11000) X(337, cudaCtxResetPersistingL2Cache, 11000) \
	X(338, cudaGraphKernelNodeCopyAttributes, 11000) \
	X(339, cudaGraphKernelNodeGetAttribute, 11000) \
	X(340, cudaGraphKernelNodeSetAttribute, 11000) X(341, cudaStreamCopyAttributes, 11000) \
	X(342, cudaStreamCopyAttributes_ptsz, 11000) X(343, cudaStreamGetAttribute, 11000) \
	X(344, cudaStreamGetAttribute_ptsz, 11000) X(345, cudaStreamSetAttribute, 11000) \
	X(346, cudaStreamSetAttribute_ptsz, 11000) \
	X(347, cudaDeviceGetTexture1DLinearMaxWidth, 11010) X(348, cudaGraphUpload, 10000) \
	X(349, cudaGraphUpload_ptsz, 10000) X(350, cudaGraphAddMemcpyNodeToSymbol, 11010) \
	X(351, cudaGraphAddMemcpyNodeFromSymbol, 11010) X(352, cudaGraphAddMemcpyNode1D, 11010) \
	X(353, cudaGraphMemcpyNodeSetParamsToSymbol, 11010) \
	X(354, cudaGraphMemcpyNodeSetParamsFromSymbol, 11010) \
	X(355, cudaGraphMemcpyNodeSetParams1D, 11010) \
	X(356, cudaGraphExecMemcpyNodeSetParamsToSymbol, 11010) \
	X(357, cudaGraphExecMemcpyNodeSetParamsFromSymbol, 11010) \
	X(358, cudaGraphExecMemcpyNodeSetParams1D, 11010) \
	X(359, cudaArrayGetSparseProperties, 11010) \
	X(360, cudaMipmappedArrayGetSparseProperties, 11010) \
	X(361, cudaGraphExecChildGraphNodeSetParams, 11010) \
	X(362, cudaGraphAddEventRecordNode, 11010) \
	X(363, cudaGraphEventRecordNodeGetEvent, 11010) \
	X(364, cudaGraphEventRecordNodeSetEvent, 11010) \
	X(365, cudaGraphAddEventWaitNode, 11010) X(366, cudaGraphEventWaitNodeGetEvent, 11010) \
	X(367, cudaGraphEventWaitNodeSetEvent, 11010) \
	X(368, cudaGraphExecEventRecordNodeSetEvent, 11010) \
	X(369, cudaGraphExecEventWaitNodeSetEvent, 11010) \
	X(370, cudaEventRecordWithFlags, 11010) X(371, cudaEventRecordWithFlags_ptsz, 11010) \
	X(372, cudaDeviceGetDefaultMemPool, 11020) X(373, cudaMallocAsync, 11020) \
	X(374, cudaMallocAsync_ptsz, 11020) X(375, cudaFreeAsync, 11020) \
	X(376, cudaFreeAsync_ptsz, 11020) X(377, cudaMemPoolTrimTo, 11020) \
	X(378, cudaMemPoolSetAttribute, 11020) X(379, cudaMemPoolGetAttribute, 11020) \
	X(380, cudaMemPoolSetAccess, 11020) X(381, cudaArrayGetPlane, 11020) \
	X(382, cudaMemPoolGetAccess, 11020) X(383, cudaMemPoolCreate, 11020) \
	X(384, cudaMemPoolDestroy, 11020) X(385, cudaDeviceSetMemPool, 11020) \
	X(386, cudaDeviceGetMemPool, 11020) X(387, cudaMemPoolExportToShareableHandle, 11020) \
	X(388, cudaMemPoolImportFromShareableHandle, 11020) \
	X(389, cudaMemPoolExportPointer, 11020) X(390, cudaMemPoolImportPointer, 11020) \
	X(391, cudaMallocFromPoolAsync, 11020) X(392, cudaMallocFromPoolAsync_ptsz, 11020) \
	X(393, cudaSignalExternalSemaphoresAsync, 11020) \
	X(394, cudaSignalExternalSemaphoresAsync_ptsz, 11020) \
	X(395, cudaWaitExternalSemaphoresAsync, 11020) \
	X(396, cudaWaitExternalSemaphoresAsync_ptsz, 11020) \
	X(397, cudaGraphAddExternalSemaphoresSignalNode, 11020) \
	X(398, cudaGraphExternalSemaphoresSignalNodeGetParams, 11020) \
	X(399, cudaGraphExternalSemaphoresSignalNodeSetParams, 11020) \
	X(400, cudaGraphAddExternalSemaphoresWaitNode, 11020) \
	X(401, cudaGraphExternalSemaphoresWaitNodeGetParams, 11020) \
	X(402, cudaGraphExternalSemaphoresWaitNodeSetParams, 11020) \
	X(403, cudaGraphExecExternalSemaphoresSignalNodeSetParams, 11020) \
	X(404, cudaGraphExecExternalSemaphoresWaitNodeSetParams, 11020) \
	X(405, cudaDeviceFlushGPUDirectRDMAWrites, 11030) \
	X(406, cudaGetDriverEntryPoint, 11030) X(407, cudaGetDriverEntryPoint_ptsz, 11030) \
	X(408, cudaGraphDebugDotPrint, 11030) X(409, cudaStreamGetCaptureInfo_v2, 11030) \
	X(410, cudaStreamGetCaptureInfo_v2_ptsz, 11030) X(413, cudaUserObjectCreate, 11030) \
	X(414, cudaUserObjectRetain, 11030) X(415, cudaUserObjectRelease, 11030) \
	X(416, cudaGraphRetainUserObject, 11030) X(417, cudaGraphReleaseUserObject, 11030) \
	X(418, cudaGraphInstantiateWithFlags, 11040) X(419, cudaGraphAddMemAllocNode, 11040) \
	X(420, cudaGraphMemAllocNodeGetParams, 11040) X(421, cudaGraphAddMemFreeNode, 11040) \
	X(422, cudaGraphMemFreeNodeGetParams, 11040) X(423, cudaDeviceGraphMemTrim, 11040) \
	X(424, cudaDeviceGetGraphMemAttribute, 11040) \
	X(425, cudaDeviceSetGraphMemAttribute, 11040) X(426, cudaGraphNodeSetEnabled, 11060) \
	X(427, cudaGraphNodeGetEnabled, 11060) X(428, cudaArrayGetMemoryRequirements, 11060) \
	X(429, cudaMipmappedArrayGetMemoryRequirements, 11060) \
	X(430, cudaLaunchKernelExC, 11060) X(431, cudaLaunchKernelExC_ptsz, 11060) \
	X(432, cudaOccupancyMaxPotentialClusterSize, 11070) \
	X(433, cudaOccupancyMaxActiveClusters, 11070) \
	X(436, cudaGraphInstantiateWithParams, 12000) \
	X(437, cudaGraphInstantiateWithParams_ptsz, 12000) X(438, cudaGraphExecGetFlags, 12000) \
	X(439, cudaGetKernel, 12000) X(440, cudaGetDeviceProperties, 12000) \
	X(441, cudaStreamGetId, 12000) X(442, cudaStreamGetId_ptsz, 12000) \
	X(443, cudaGraphInstantiate, 12000) X(444, cudaInitDevice, 12000) \
	X(446, cudaGraphNodeSetParams, 12020) X(447, cudaGraphExecNodeSetParams, 12020) \
	X(448, cudaMemAdvise, 12020) X(449, cudaMemPrefetchAsync, 12020) \
	X(450, cudaMemPrefetchAsync_ptsz, 12020) X(451, cudaFuncGetName, 12030) \
	X(452, cudaStreamBeginCaptureToGraph, 12030) \
	X(453, cudaStreamBeginCaptureToGraph_ptsz, 12030) \
	X(454, cudaGraphConditionalHandleCreate, 12030) X(455, cudaGraphGetEdges, 12030) \
	X(456, cudaGraphNodeGetDependencies, 12030) \
	X(457, cudaGraphNodeGetDependentNodes, 12030) X(458, cudaGraphAddDependencies, 12030) \
	X(459, cudaGraphRemoveDependencies, 12030) X(460, cudaGraphAddNode, 12030) \
	X(461, cudaStreamGetCaptureInfo, 12030) X(462, cudaStreamGetCaptureInfo_ptsz, 12030) \
	X(463, cudaStreamUpdateCaptureDependencies, 12030) \
	X(464, cudaStreamUpdateCaptureDependencies_ptsz, 12030) \
	X(465, cudaDeviceRegisterAsyncNotification, 12040) \
	X(466, cudaDeviceUnregisterAsyncNotification, 12040) \
	X(467, cudaFuncGetParamInfo, 12040) X(468, cudaGetDriverEntryPointByVersion, 12050) \
	X(469, cudaGetDriverEntryPointByVersion_ptsz, 12050) X(470, cudaLibraryLoadData, 12060) \
	X(471, cudaLibraryLoadFromFile, 12060) X(472, cudaLibraryUnload, 12060) \
	X(473, cudaLibraryGetKernel, 12060) X(474, cudaLibraryGetGlobal, 12060) \
	X(475, cudaLibraryGetManaged, 12060) X(476, cudaLibraryGetUnifiedFunction, 12060) \
	X(477, cudaLibraryGetKernelCount, 12060) X(478, cudaLibraryEnumerateKernels, 12060) \
	X(479, cudaKernelSetAttributeForDevice, 12060) X(480, cudaStreamGetDevice, 12080) \
	X(481, cudaStreamGetDevice_ptsz, 12080) X(486, cudaEventElapsedTime, 12080) \
	X(487, cudaMemPrefetchBatchAsync, 13000) X(488, cudaMemPrefetchBatchAsync_ptsz, 13000) \
	X(489, cudaMemDiscardBatchAsync, 13000) X(490, cudaMemDiscardBatchAsync_ptsz, 13000) \
	X(491, cudaMemDiscardAndPrefetchBatchAsync, 13000) \
	X(492, cudaMemDiscardAndPrefetchBatchAsync_ptsz, 13000) \
	X(493, cudaGetExportTable, 13000) X(494, __cudaRegisterFatBinary, 13000) \
	X(495, __cudaRegisterFatBinaryEnd, 13000) X(496, __cudaUnregisterFatBinary, 13000) \
	X(497, __cudaRegisterVar, 13000) X(498, __cudaRegisterHostVar, 13000) \
	X(499, __cudaRegisterFunction, 13000) X(500, __cudaRegisterManagedVar, 13000) \
	X(501, __cudaInitModule, 13000) X(502, __cudaPushCallConfiguration, 13000) \
	X(503, __cudaPopCallConfiguration, 13000) X(504, __cudaGetKernel, 13000) \
	X(505, __cudaLaunchKernel, 13000) X(506, __cudaLaunchKernel_ptsz, 13000) \
	X(507, __cudaRegisterUnifiedTable, 13000) X(508, __cudaGetProcAddress, 13000) \
	X(509, cudaMemcpyBatchAsync, 13000) X(510, cudaMemcpyBatchAsync_ptsz, 13000) \
	X(511, cudaMemcpy3DBatchAsync, 13000) X(512, cudaMemcpy3DBatchAsync_ptsz, 13000) \
	X(513, cudaLogsRegisterCallback, 13000) X(514, cudaLogsUnregisterCallback, 13000) \
	X(515, cudaLogsCurrent, 13000) X(516, cudaLogsDumpToFile, 13000) \
	X(517, cudaLogsDumpToMemory, 13000) X(518, cudaMemGetDefaultMemPool, 13000) \
	X(519, cudaMemGetMemPool, 13000) X(520, cudaMemSetMemPool, 13000) \
	X(521, cudaDeviceGetHostAtomicCapabilities, 13000) \
	X(522, cudaDeviceGetP2PAtomicCapabilities, 13000)
/* clang-format on */

#endif
