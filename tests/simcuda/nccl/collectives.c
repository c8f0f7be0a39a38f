// SPDX-License-Identifier: MIT
/* Collectives: a kernel each, of a group one for all of a communicator, at the group's end. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../driver_api.h"
#include "comm.h"

#define EXPORT      __attribute__((visibility("default")))
#define GROUP_MAX   64 /* calls of a group */
#define BLOCK       256
#define BYTES_BLOCK 65536 /* of data; a block of 256 threads takes 2.6 ns */

static const char *const kernel_names[NCCL_FUNCTIONS] = {
	[NCCL_BROADCAST] = "ncclDevKernel_Broadcast_RING_LL",
	[NCCL_REDUCE] = "ncclDevKernel_Reduce_Sum_f32_RING_LL",
	[NCCL_ALL_GATHER] = "ncclDevKernel_AllGather_RING_LL",
	[NCCL_REDUCE_SCATTER] = "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
	[NCCL_ALL_REDUCE] = "ncclDevKernel_AllReduce_Sum_f32_TREE_LL",
	[NCCL_SEND] = "ncclDevKernel_SendRecv",
	[NCCL_RECV] = "ncclDevKernel_SendRecv",
};

static const char ptx[] = ".version 7.0\n"
			  ".target sm_52\n"
			  ".address_size 64\n"
			  ".visible .entry ncclDevKernel_Broadcast_RING_LL() { ret; }\n"
			  ".visible .entry ncclDevKernel_Reduce_Sum_f32_RING_LL() { ret; }\n"
			  ".visible .entry ncclDevKernel_AllGather_RING_LL() { ret; }\n"
			  ".visible .entry ncclDevKernel_ReduceScatter_Sum_f32_RING_LL() { ret; }\n"
			  ".visible .entry ncclDevKernel_AllReduce_Sum_f32_TREE_LL() { ret; }\n"
			  ".visible .entry ncclDevKernel_SendRecv() { ret; }\n";

struct asked {
	ncclComm_t comm;
	enum nccl_function function;
	size_t bytes;
	CUstream stream;
};

static __thread struct asked group[GROUP_MAX];
static __thread size_t n_group;
static __thread int depth;

static CUfunction functions[NCCL_FUNCTIONS];
static __typeof__(&cuLaunchKernel) launch;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	__typeof__(&cuModuleLoadData) load_data;
	__typeof__(&cuModuleGetFunction) get;
	CUmodule module;

	if (!driver)
		return;
	load_data = (__typeof__(load_data))dlsym(driver, "cuModuleLoadData");
	get = (__typeof__(get))dlsym(driver, "cuModuleGetFunction");
	if (load_data(&module, ptx) != CUDA_SUCCESS)
		return;
	for (int i = 0; i < NCCL_FUNCTIONS; i++)
		get(&functions[i], module, kernel_names[i]);
	launch = (__typeof__(launch))dlsym(driver, "cuLaunchKernel");
}

static ncclResult_t run(const struct asked *asked, size_t bytes)
{
	struct peers *peers = &asked->comm->shared->peers;
	uint64_t own = (uint64_t)asked->comm->rank | (uint64_t)asked->comm->ranks << 32;
	void *params[] = { &peers, &own };
	unsigned blocks = (unsigned)(bytes / BYTES_BLOCK) + 1;

	pthread_once(&once, load);
	if (!launch)
		return ncclSystemError;
	return launch(functions[asked->function], blocks, 1, 1, BLOCK, 1, 1, 0, asked->stream,
	              params, NULL) == CUDA_SUCCESS
	               ? ncclSuccess
	               : ncclSystemError;
}

/* Those of one communicator are one kernel. */
static ncclResult_t run_group(void)
{
	for (size_t i = 0; i < n_group; i++) {
		size_t bytes = 0;

		if (!group[i].comm)
			continue;
		for (size_t j = i + 1; j < n_group; j++) {
			if (group[j].comm != group[i].comm)
				continue;
			bytes += group[j].bytes;
			group[j].comm = NULL;
		}
		if (run(&group[i], group[i].bytes + bytes) != ncclSuccess)
			return ncclSystemError;
	}
	n_group = 0;
	return ncclSuccess;
}

static ncclResult_t ask(enum nccl_function function, size_t count, ncclDataType_t type,
                        ncclComm_t comm, CUstream stream)
{
	static const size_t bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
	struct asked asked = { comm, function, count * bytes[(unsigned)type % 12], stream };

	if (function < NCCL_COUNTED)
		__atomic_add_fetch(&comm->shared->of[comm->rank].counts[function], 1,
		                   __ATOMIC_ACQ_REL);
	if (!depth)
		return run(&asked, asked.bytes);
	if (n_group == GROUP_MAX)
		return ncclInvalidArgument;
	group[n_group++] = asked;
	return ncclSuccess;
}

EXPORT ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, CUstream stream)
{
	(void)from, (void)to, (void)op;
	return ask(NCCL_ALL_REDUCE, count, type, comm, stream);
}

EXPORT ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                                      ncclRedOp_t op, ncclComm_t comm, CUstream stream)
{
	(void)from, (void)to, (void)op;
	return ask(NCCL_REDUCE_SCATTER, count, type, comm, stream);
}

EXPORT ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                                  ncclComm_t comm, CUstream stream)
{
	(void)from, (void)to;
	return ask(NCCL_ALL_GATHER, count, type, comm, stream);
}

EXPORT ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type,
                                  int root, ncclComm_t comm, CUstream stream)
{
	(void)from, (void)to, (void)root;
	return ask(NCCL_BROADCAST, count, type, comm, stream);
}

EXPORT ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, int root, ncclComm_t comm, CUstream stream)
{
	(void)from, (void)to, (void)op, (void)root;
	return ask(NCCL_REDUCE, count, type, comm, stream);
}

EXPORT ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, CUstream stream)
{
	(void)from, (void)peer;
	return ask(NCCL_SEND, count, type, comm, stream);
}

EXPORT ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                             CUstream stream)
{
	(void)to, (void)peer;
	return ask(NCCL_RECV, count, type, comm, stream);
}

EXPORT ncclResult_t ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupEnd(void)
{
	return --depth ? ncclSuccess : run_group();
}
