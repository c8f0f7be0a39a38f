/* SPDX-License-Identifier: MIT */
/*
 * The calls that the agent follows: launches, copies, sets, graph launches. The numbers are those
 * of CUPTI's callbacks (cupti_driver_cbid.h, cupti_runtime_cbid.h; they are never given anew: the
 * table grows at its end), the names as they are exported.
 *
 * Launches are followed in the driver alone: every launch of the runtime ends in one of the
 * driver's, under the same correlation.
 *
 * A shape tells the arguments as they lie in CUpti_CallbackData.functionParams: q, u, h and b are
 * 8, 4, 2 and 1 bytes, each at its natural alignment. Structures by value (cudaPitchedPtr,
 * cudaExtent) are their words.
 */
#pragma once

enum cupti_call_class {
	CUPTI_CALL_LAUNCH,
	CUPTI_CALL_COPY,
	CUPTI_CALL_SET,
	CUPTI_CALL_GRAPH,
	CUPTI_CALL_MADE, /* a graph: not told of, but CUPTI can no more be finalized (wire.h) */
};

/* CALL(number, name, class, shape) */
/* clang-format off */
#define CUPTI_DRIVER_CALLS(CALL) \
	CALL(43, cuMemcpyHtoD, COPY, "uqu") \
	CALL(45, cuMemcpyDtoH, COPY, "quu") \
	CALL(47, cuMemcpyDtoD, COPY, "uuu") \
	CALL(49, cuMemcpyDtoA, COPY, "quuu") \
	CALL(51, cuMemcpyAtoD, COPY, "uquu") \
	CALL(53, cuMemcpyHtoA, COPY, "ququ") \
	CALL(54, cuMemcpyAtoH, COPY, "qquu") \
	CALL(55, cuMemcpyAtoA, COPY, "ququu") \
	CALL(56, cuMemcpy2D, COPY, "q") \
	CALL(57, cuMemcpy2DUnaligned, COPY, "q") \
	CALL(58, cuMemcpy3D, COPY, "q") \
	CALL(60, cuMemcpyHtoDAsync, COPY, "uquq") \
	CALL(62, cuMemcpyDtoHAsync, COPY, "quuq") \
	CALL(64, cuMemcpyDtoDAsync, COPY, "uuuq") \
	CALL(66, cuMemcpyHtoAAsync, COPY, "ququq") \
	CALL(67, cuMemcpyAtoHAsync, COPY, "qquuq") \
	CALL(68, cuMemcpy2DAsync, COPY, "qq") \
	CALL(69, cuMemcpy3DAsync, COPY, "qq") \
	CALL(71, cuMemsetD8, SET, "ubu") \
	CALL(73, cuMemsetD16, SET, "uhu") \
	CALL(75, cuMemsetD32, SET, "uuu") \
	CALL(77, cuMemsetD2D8, SET, "uubuu") \
	CALL(79, cuMemsetD2D16, SET, "uuhuu") \
	CALL(81, cuMemsetD2D32, SET, "uuuuu") \
	CALL(115, cuLaunch, LAUNCH, "q") \
	CALL(116, cuLaunchGrid, LAUNCH, "quu") \
	CALL(117, cuLaunchGridAsync, LAUNCH, "quuq") \
	CALL(216, cuMemsetD8Async, SET, "qbqq") \
	CALL(218, cuMemsetD16Async, SET, "qhqq") \
	CALL(220, cuMemsetD32Async, SET, "quqq") \
	CALL(222, cuMemsetD2D8Async, SET, "qqbqqq") \
	CALL(224, cuMemsetD2D16Async, SET, "qqhqqq") \
	CALL(226, cuMemsetD2D32Async, SET, "qquqqq") \
	CALL(249, cuMemsetD8_v2, SET, "qbq") \
	CALL(250, cuMemsetD16_v2, SET, "qhq") \
	CALL(251, cuMemsetD32_v2, SET, "quq") \
	CALL(252, cuMemsetD2D8_v2, SET, "qqbqq") \
	CALL(253, cuMemsetD2D16_v2, SET, "qqhqq") \
	CALL(254, cuMemsetD2D32_v2, SET, "qquqq") \
	CALL(276, cuMemcpyHtoD_v2, COPY, "qqq") \
	CALL(277, cuMemcpyHtoDAsync_v2, COPY, "qqqq") \
	CALL(278, cuMemcpyDtoH_v2, COPY, "qqq") \
	CALL(279, cuMemcpyDtoHAsync_v2, COPY, "qqqq") \
	CALL(280, cuMemcpyDtoD_v2, COPY, "qqq") \
	CALL(281, cuMemcpyDtoDAsync_v2, COPY, "qqqq") \
	CALL(282, cuMemcpyAtoH_v2, COPY, "qqqq") \
	CALL(283, cuMemcpyAtoHAsync_v2, COPY, "qqqqq") \
	CALL(284, cuMemcpyAtoD_v2, COPY, "qqqq") \
	CALL(285, cuMemcpyDtoA_v2, COPY, "qqqq") \
	CALL(286, cuMemcpyAtoA_v2, COPY, "qqqqq") \
	CALL(287, cuMemcpy2D_v2, COPY, "q") \
	CALL(288, cuMemcpy2DUnaligned_v2, COPY, "q") \
	CALL(289, cuMemcpy2DAsync_v2, COPY, "qq") \
	CALL(290, cuMemcpy3D_v2, COPY, "q") \
	CALL(291, cuMemcpy3DAsync_v2, COPY, "qq") \
	CALL(292, cuMemcpyHtoA_v2, COPY, "qqqq") \
	CALL(293, cuMemcpyHtoAAsync_v2, COPY, "qqqqq") \
	CALL(305, cuMemcpy, COPY, "qqq") \
	CALL(306, cuMemcpyAsync, COPY, "qqqq") \
	CALL(307, cuLaunchKernel, LAUNCH, "quuuuuuuqqq") \
	CALL(318, cuMemcpyPeer, COPY, "qqqqq") \
	CALL(319, cuMemcpyPeerAsync, COPY, "qqqqqq") \
	CALL(320, cuMemcpy3DPeer, COPY, "q") \
	CALL(321, cuMemcpy3DPeerAsync, COPY, "qq") \
	CALL(397, cuMemcpyHtoD_v2_ptds, COPY, "qqq") \
	CALL(398, cuMemcpyDtoH_v2_ptds, COPY, "qqq") \
	CALL(399, cuMemcpyDtoD_v2_ptds, COPY, "qqq") \
	CALL(400, cuMemcpyDtoA_v2_ptds, COPY, "qqqq") \
	CALL(401, cuMemcpyAtoD_v2_ptds, COPY, "qqqq") \
	CALL(402, cuMemcpyHtoA_v2_ptds, COPY, "qqqq") \
	CALL(403, cuMemcpyAtoH_v2_ptds, COPY, "qqqq") \
	CALL(404, cuMemcpyAtoA_v2_ptds, COPY, "qqqqq") \
	CALL(405, cuMemcpy2D_v2_ptds, COPY, "q") \
	CALL(406, cuMemcpy2DUnaligned_v2_ptds, COPY, "q") \
	CALL(407, cuMemcpy3D_v2_ptds, COPY, "q") \
	CALL(408, cuMemcpy_ptds, COPY, "qqq") \
	CALL(409, cuMemcpyPeer_ptds, COPY, "qqqqq") \
	CALL(410, cuMemcpy3DPeer_ptds, COPY, "q") \
	CALL(411, cuMemsetD8_v2_ptds, SET, "qbq") \
	CALL(412, cuMemsetD16_v2_ptds, SET, "qhq") \
	CALL(413, cuMemsetD32_v2_ptds, SET, "quq") \
	CALL(414, cuMemsetD2D8_v2_ptds, SET, "qqbqq") \
	CALL(415, cuMemsetD2D16_v2_ptds, SET, "qqhqq") \
	CALL(416, cuMemsetD2D32_v2_ptds, SET, "qquqq") \
	CALL(418, cuMemcpyAsync_ptsz, COPY, "qqqq") \
	CALL(419, cuMemcpyHtoAAsync_v2_ptsz, COPY, "qqqqq") \
	CALL(420, cuMemcpyAtoHAsync_v2_ptsz, COPY, "qqqqq") \
	CALL(421, cuMemcpyHtoDAsync_v2_ptsz, COPY, "qqqq") \
	CALL(422, cuMemcpyDtoHAsync_v2_ptsz, COPY, "qqqq") \
	CALL(423, cuMemcpyDtoDAsync_v2_ptsz, COPY, "qqqq") \
	CALL(424, cuMemcpy2DAsync_v2_ptsz, COPY, "qq") \
	CALL(425, cuMemcpy3DAsync_v2_ptsz, COPY, "qq") \
	CALL(426, cuMemcpyPeerAsync_ptsz, COPY, "qqqqqq") \
	CALL(427, cuMemcpy3DPeerAsync_ptsz, COPY, "qq") \
	CALL(428, cuMemsetD8Async_ptsz, SET, "qbqq") \
	CALL(429, cuMemsetD16Async_ptsz, SET, "qhqq") \
	CALL(430, cuMemsetD32Async_ptsz, SET, "quqq") \
	CALL(431, cuMemsetD2D8Async_ptsz, SET, "qqbqqq") \
	CALL(432, cuMemsetD2D16Async_ptsz, SET, "qqhqqq") \
	CALL(433, cuMemsetD2D32Async_ptsz, SET, "qquqqq") \
	CALL(442, cuLaunchKernel_ptsz, LAUNCH, "quuuuuuuqqq") \
	CALL(477, cuLaunchCooperativeKernel, LAUNCH, "quuuuuuuqq") \
	CALL(478, cuLaunchCooperativeKernel_ptsz, LAUNCH, "quuuuuuuqq") \
	CALL(480, cuLaunchCooperativeKernelMultiDevice, LAUNCH, "quu") \
	CALL(513, cuGraphInstantiate, MADE, "") \
	CALL(514, cuGraphLaunch, GRAPH, "qq") \
	CALL(515, cuGraphLaunch_ptsz, GRAPH, "qq") \
	CALL(561, cuGraphExecUpdate, MADE, "") \
	CALL(578, cuGraphInstantiate_v2, MADE, "") \
	CALL(580, cuGraphUpload, MADE, "") \
	CALL(581, cuGraphUpload_ptsz, MADE, "") \
	CALL(643, cuGraphInstantiateWithFlags, MADE, "") \
	CALL(656, cuGraphInstantiateWithParams, MADE, "") \
	CALL(657, cuGraphInstantiateWithParams_ptsz, MADE, "") \
	CALL(696, cuGraphExecUpdate_v2, MADE, "") \
	CALL(652, cuLaunchKernelEx, LAUNCH, "qqqq") \
	CALL(653, cuLaunchKernelEx_ptsz, LAUNCH, "qqqq") \
	CALL(776, cuMemcpyBatchAsync, COPY, "qqqqqqqqq") \
	CALL(777, cuMemcpyBatchAsync_ptsz, COPY, "qqqqqqqqq") \
	CALL(778, cuMemcpy3DBatchAsync, COPY, "qqqqq") \
	CALL(779, cuMemcpy3DBatchAsync_ptsz, COPY, "qqqqq") \
	CALL(796, cuMemcpyBatchAsync_v2, COPY, "qqqqqqqq") \
	CALL(797, cuMemcpyBatchAsync_v2_ptsz, COPY, "qqqqqqqq") \
	CALL(798, cuMemcpy3DBatchAsync_v2, COPY, "qqqq") \
	CALL(799, cuMemcpy3DBatchAsync_v2_ptsz, COPY, "qqqq")

#define CUPTI_RUNTIME_CALLS(CALL) \
	CALL(31, cudaMemcpy, COPY, "qqqu") \
	CALL(32, cudaMemcpy2D, COPY, "qqqqqqu") \
	CALL(33, cudaMemcpyToArray, COPY, "qqqqqu") \
	CALL(34, cudaMemcpy2DToArray, COPY, "qqqqqqqu") \
	CALL(35, cudaMemcpyFromArray, COPY, "qqqqqu") \
	CALL(36, cudaMemcpy2DFromArray, COPY, "qqqqqqqu") \
	CALL(37, cudaMemcpyArrayToArray, COPY, "qqqqqqqu") \
	CALL(38, cudaMemcpy2DArrayToArray, COPY, "qqqqqqqqu") \
	CALL(39, cudaMemcpyToSymbol, COPY, "qqqqu") \
	CALL(40, cudaMemcpyFromSymbol, COPY, "qqqqu") \
	CALL(41, cudaMemcpyAsync, COPY, "qqquq") \
	CALL(42, cudaMemcpyToArrayAsync, COPY, "qqqqquq") \
	CALL(43, cudaMemcpyFromArrayAsync, COPY, "qqqqquq") \
	CALL(44, cudaMemcpy2DAsync, COPY, "qqqqqquq") \
	CALL(45, cudaMemcpy2DToArrayAsync, COPY, "qqqqqqquq") \
	CALL(46, cudaMemcpy2DFromArrayAsync, COPY, "qqqqqqquq") \
	CALL(47, cudaMemcpyToSymbolAsync, COPY, "qqqquq") \
	CALL(48, cudaMemcpyFromSymbolAsync, COPY, "qqqquq") \
	CALL(49, cudaMemset, SET, "quq") \
	CALL(50, cudaMemset2D, SET, "qquqq") \
	CALL(51, cudaMemsetAsync, SET, "quqq") \
	CALL(52, cudaMemset2DAsync, SET, "qquqqq") \
	CALL(142, cudaMemset3D, SET, "qqqquqqq") \
	CALL(143, cudaMemset3DAsync, SET, "qqqquqqqq") \
	CALL(144, cudaMemcpy3D, COPY, "q") \
	CALL(145, cudaMemcpy3DAsync, COPY, "qq") \
	CALL(160, cudaMemcpyPeer, COPY, "ququq") \
	CALL(161, cudaMemcpyPeerAsync, COPY, "ququqq") \
	CALL(162, cudaMemcpy3DPeer, COPY, "q") \
	CALL(163, cudaMemcpy3DPeerAsync, COPY, "qq") \
	CALL(215, cudaMemcpy_ptds, COPY, "qqqu") \
	CALL(216, cudaMemcpy2D_ptds, COPY, "qqqqqqu") \
	CALL(217, cudaMemcpyToArray_ptds, COPY, "qqqqqu") \
	CALL(218, cudaMemcpy2DToArray_ptds, COPY, "qqqqqqqu") \
	CALL(219, cudaMemcpyFromArray_ptds, COPY, "qqqqqu") \
	CALL(220, cudaMemcpy2DFromArray_ptds, COPY, "qqqqqqqu") \
	CALL(221, cudaMemcpyArrayToArray_ptds, COPY, "qqqqqqqu") \
	CALL(222, cudaMemcpy2DArrayToArray_ptds, COPY, "qqqqqqqqu") \
	CALL(223, cudaMemcpyToSymbol_ptds, COPY, "qqqqu") \
	CALL(224, cudaMemcpyFromSymbol_ptds, COPY, "qqqqu") \
	CALL(225, cudaMemcpyAsync_ptsz, COPY, "qqquq") \
	CALL(226, cudaMemcpyToArrayAsync_ptsz, COPY, "qqqqquq") \
	CALL(227, cudaMemcpyFromArrayAsync_ptsz, COPY, "qqqqquq") \
	CALL(228, cudaMemcpy2DAsync_ptsz, COPY, "qqqqqquq") \
	CALL(229, cudaMemcpy2DToArrayAsync_ptsz, COPY, "qqqqqqquq") \
	CALL(230, cudaMemcpy2DFromArrayAsync_ptsz, COPY, "qqqqqqquq") \
	CALL(231, cudaMemcpyToSymbolAsync_ptsz, COPY, "qqqquq") \
	CALL(232, cudaMemcpyFromSymbolAsync_ptsz, COPY, "qqqquq") \
	CALL(233, cudaMemset_ptds, SET, "quq") \
	CALL(234, cudaMemset2D_ptds, SET, "qquqq") \
	CALL(235, cudaMemsetAsync_ptsz, SET, "quqq") \
	CALL(236, cudaMemset2DAsync_ptsz, SET, "qquqqq") \
	CALL(243, cudaMemset3D_ptds, SET, "qqqquqqq") \
	CALL(244, cudaMemset3DAsync_ptsz, SET, "qqqquqqqq") \
	CALL(245, cudaMemcpy3D_ptds, COPY, "q") \
	CALL(246, cudaMemcpy3DAsync_ptsz, COPY, "qq") \
	CALL(249, cudaMemcpy3DPeer_ptds, COPY, "q") \
	CALL(250, cudaMemcpy3DPeerAsync_ptsz, COPY, "qq") \
	CALL(311, cudaGraphLaunch, GRAPH, "qq") \
	CALL(312, cudaGraphLaunch_ptsz, GRAPH, "qq") \
	CALL(482, cudaMemcpyBatchAsync, COPY, "qqqqqqqqq") \
	CALL(483, cudaMemcpyBatchAsync_ptsz, COPY, "qqqqqqqqq") \
	CALL(484, cudaMemcpy3DBatchAsync, COPY, "qqqqq") \
	CALL(485, cudaMemcpy3DBatchAsync_ptsz, COPY, "qqqqq") \
	CALL(509, cudaMemcpyBatchAsync, COPY, "qqqqqqqq") \
	CALL(510, cudaMemcpyBatchAsync_ptsz, COPY, "qqqqqqqq") \
	CALL(511, cudaMemcpy3DBatchAsync, COPY, "qqqq") \
	CALL(512, cudaMemcpy3DBatchAsync_ptsz, COPY, "qqqq")
/* clang-format on */

/* For simulators: a few by name. */
enum {
#define CUPTI_ID(number, name, class, shape) CUPTI_ID_##name = number,
	CUPTI_DRIVER_CALLS(CUPTI_ID)
#undef CUPTI_ID
};
