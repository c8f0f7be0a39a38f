// SPDX-License-Identifier: MIT
/* Graphs. */
#include "runtime.h"

static int add_kernel(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                      size_t n, const struct cudaKernelNodeParams *params)
{
	if (!params)
		return cudaErrorInvalidValue;
	CUDA_KERNEL_NODE_PARAMS wanted = {
		.func = kernel_resolve(params->func),
		.gridDimX = params->gridDim.x,
		.gridDimY = params->gridDim.y,
		.gridDimZ = params->gridDim.z,
		.blockDimX = params->blockDim.x,
		.blockDimY = params->blockDim.y,
		.blockDimZ = params->blockDim.z,
		.sharedMemBytes = params->sharedMemBytes,
		.kernelParams = params->kernelParams,
		.extra = params->extra,
	};
	if (!wanted.func)
		return cudaErrorInvalidDeviceFunction;
	return (int)drv.cuGraphAddKernelNode_v2(node, graph, after, n, &wanted);
}

static int add_set(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n,
                   const struct cudaMemsetParams *params)
{
	CUcontext ctx;
	if (!params)
		return cudaErrorInvalidValue;
	CUDA_MEMSET_NODE_PARAMS wanted = {
		.dst = (CUdeviceptr)(uintptr_t)params->dst,
		.pitch = params->pitch,
		.value = params->value,
		.elementSize = params->elementSize,
		.width = params->width,
		.height = params->height,
	};
	drv.cuCtxGetCurrent(&ctx);
	return (int)drv.cuGraphAddMemsetNode(node, graph, after, n, &wanted, ctx);
}

static int add_host(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                    size_t n, const struct cudaHostNodeParams *params)
{
	if (!params)
		return cudaErrorInvalidValue;
	CUDA_HOST_NODE_PARAMS wanted = { .fn = params->fn, .userData = params->userData };
	return (int)drv.cuGraphAddHostNode(node, graph, after, n, &wanted);
}

static int add_copy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                    size_t n, void *dst, const void *src, size_t bytes)
{
	CUcontext ctx;
	CUDA_MEMCPY3D wanted = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)(uintptr_t)src,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)(uintptr_t)dst,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1,
	};
	drv.cuCtxGetCurrent(&ctx);
	return (int)drv.cuGraphAddMemcpyNode(node, graph, after, n, &wanted, ctx);
}

#define NODE cudaGraphNode_t *, node, cudaGraph_t, graph, const cudaGraphNode_t *, after, size_t, n

RT(cudaGraphCreate, (cudaGraph_t *, graph, unsigned int, flags), drv.cuGraphCreate(graph, flags))
RT(cudaGraphDestroy, (cudaGraph_t, graph), drv.cuGraphDestroy(graph))
RT(cudaGraphClone, (cudaGraph_t *, clone, cudaGraph_t, graph), drv.cuGraphClone(clone, graph))
RT(cudaGraphGetNodes, (cudaGraph_t, graph, cudaGraphNode_t *, nodes, size_t *, count),
   drv.cuGraphGetNodes(graph, nodes, count))
RT(cudaGraphGetRootNodes, (cudaGraph_t, graph, cudaGraphNode_t *, nodes, size_t *, count),
   drv.cuGraphGetRootNodes(graph, nodes, count))
RT(cudaGraphNodeGetType, (cudaGraphNode_t, node, enum cudaGraphNodeType *, type),
   drv.cuGraphNodeGetType(node, (CUgraphNodeType *)type))
RT(cudaGraphAddEmptyNode, (NODE), drv.cuGraphAddEmptyNode(node, graph, after, n))
RT(cudaGraphAddKernelNode, (NODE, const struct cudaKernelNodeParams *, params),
   add_kernel(node, graph, after, n, params))
RT(cudaGraphAddMemsetNode, (NODE, const struct cudaMemsetParams *, params),
   add_set(node, graph, after, n, params))
RT(cudaGraphAddHostNode, (NODE, const struct cudaHostNodeParams *, params),
   add_host(node, graph, after, n, params))
RT(cudaGraphAddMemcpyNode1D,
   (NODE, void *, dst, const void *, src, size_t, bytes, enum cudaMemcpyKind, kind),
   add_copy(node, graph, after, n, dst, src, bytes))
#if CUDART_MAJOR < 13
RT(cudaGraphAddDependencies,
   (cudaGraph_t, graph, const cudaGraphNode_t *, from, const cudaGraphNode_t *, to, size_t, n),
   drv.cuGraphAddDependencies_v2(graph, from, to, NULL, n))
#else
RT(cudaGraphAddDependencies,
   (cudaGraph_t, graph, const cudaGraphNode_t *, from, const cudaGraphNode_t *, to,
    const cudaGraphEdgeData *, edges, size_t, n),
   drv.cuGraphAddDependencies_v2(graph, from, to, (const CUgraphEdgeData *)edges, n))
#endif
RT(cudaGraphInstantiate, (cudaGraphExec_t *, exec, cudaGraph_t, graph, unsigned long long, flags),
   drv.cuGraphInstantiateWithFlags(exec, graph, flags))
RT(cudaGraphInstantiateWithFlags,
   (cudaGraphExec_t *, exec, cudaGraph_t, graph, unsigned long long, flags),
   drv.cuGraphInstantiateWithFlags(exec, graph, flags))
RT(cudaGraphExecUpdate,
   (cudaGraphExec_t, exec, cudaGraph_t, graph, cudaGraphExecUpdateResultInfo *, info),
   drv.cuGraphExecUpdate_v2(exec, graph, (CUgraphExecUpdateResultInfo *)info))
RT(cudaGraphExecDestroy, (cudaGraphExec_t, exec), drv.cuGraphExecDestroy(exec))
RT_PTSZ(cudaGraphLaunch, (cudaGraphExec_t, exec, cudaStream_t, stream),
        DRV(cuGraphLaunch, _ptsz)(exec, stream))
RT_PTSZ(cudaGraphUpload, (cudaGraphExec_t, exec, cudaStream_t, stream),
        DRV(cuGraphUpload, _ptsz)(exec, stream))
