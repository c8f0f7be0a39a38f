// SPDX-License-Identifier: MIT
#include "gpu.h"

#include <string.h>

/* Accepted by a real driver too: the kernels but vectorAdd and saxpy do nothing. */
const char sample_ptx[] = ".version 6.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .b8 table[1024];\n"
			  ".visible .entry " KERNEL_NOTHING "()\n"
			  "{\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry " KERNEL_TEMPLATE "(.param .u64 in, .param .u64 out)\n"
			  "{\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry " KERNEL_ADD
			  "(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .f32 %f<4>;\n"
			  "	.reg .b32 %r<6>;\n"
			  "	.reg .b64 %d<8>;\n"
			  "	mov.u32 %r1, %ctaid.x;\n"
			  "	mov.u32 %r2, %ntid.x;\n"
			  "	mov.u32 %r3, %tid.x;\n"
			  "	mad.lo.s32 %r4, %r1, %r2, %r3;\n"
			  "	ld.param.u32 %r5, [n];\n"
			  "	setp.ge.s32 %p, %r4, %r5;\n"
			  "	@%p bra done;\n"
			  "	ld.param.u64 %d1, [a];\n"
			  "	ld.param.u64 %d2, [b];\n"
			  "	ld.param.u64 %d3, [c];\n"
			  "	mul.wide.s32 %d4, %r4, 4;\n"
			  "	add.s64 %d5, %d1, %d4;\n"
			  "	add.s64 %d6, %d2, %d4;\n"
			  "	add.s64 %d7, %d3, %d4;\n"
			  "	ld.global.f32 %f1, [%d5];\n"
			  "	ld.global.f32 %f2, [%d6];\n"
			  "	add.f32 %f3, %f1, %f2;\n"
			  "	st.global.f32 [%d7], %f3;\n"
			  "done:\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry " KERNEL_SAXPY
			  "(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .f32 %f<4>;\n"
			  "	.reg .b32 %r<6>;\n"
			  "	.reg .b64 %d<6>;\n"
			  "	mov.u32 %r1, %ctaid.x;\n"
			  "	mov.u32 %r2, %ntid.x;\n"
			  "	mov.u32 %r3, %tid.x;\n"
			  "	mad.lo.s32 %r4, %r1, %r2, %r3;\n"
			  "	ld.param.u32 %r5, [n];\n"
			  "	setp.ge.s32 %p, %r4, %r5;\n"
			  "	@%p bra done;\n"
			  "	ld.param.u64 %d1, [x];\n"
			  "	ld.param.u64 %d2, [y];\n"
			  "	ld.param.f32 %f1, [a];\n"
			  "	mul.wide.s32 %d3, %r4, 4;\n"
			  "	add.s64 %d4, %d1, %d3;\n"
			  "	add.s64 %d5, %d2, %d3;\n"
			  "	ld.global.f32 %f2, [%d4];\n"
			  "	ld.global.f32 %f3, [%d5];\n"
			  "	fma.rn.f32 %f3, %f1, %f2, %f3;\n"
			  "	st.global.f32 [%d5], %f3;\n"
			  "done:\n"
			  "	ret;\n"
			  "}\n";

void gpu_open(struct gpu *gpu)
{
	MUST(cuInit, 0);
	MUST(cuDeviceGet, &gpu->device, 0);
	MUST(cuDevicePrimaryCtxRetain, &gpu->ctx, gpu->device);
	MUST(cuCtxSetCurrent, gpu->ctx);
	MUST(cuModuleLoadData, &gpu->module, sample_ptx);
	MUST(cuModuleGetFunction, &gpu->nothing, gpu->module, KERNEL_NOTHING);
	MUST(cuModuleGetFunction, &gpu->add, gpu->module, KERNEL_ADD);
}

void gpu_attach(const struct gpu *gpu)
{
	MUST(cuCtxSetCurrent, gpu->ctx);
}

void gpu_close(struct gpu *gpu)
{
	MUST(cuModuleUnload, gpu->module);
	MUST(cuDevicePrimaryCtxRelease_v2, gpu->device);
}

CUdeviceptr gpu_alloc(size_t bytes)
{
	CUdeviceptr address = 0;
	MUST(cuMemAlloc_v2, &address, bytes);
	count_alloc("cuMemAlloc_v2", "device", address, bytes);
	return address;
}

/* Counted first: as soon as the driver has it back, another thread may be given the address. */
void gpu_free(CUdeviceptr address)
{
	count_free(address);
	MUST(cuMemFree_v2, address);
}

void gpu_to_device(CUdeviceptr dst, const void *src, size_t bytes)
{
	MUST(cuMemcpyHtoD_v2, dst, src, bytes);
	count_bytes("cuMemcpyHtoD_v2", "h2d", bytes);
}

void gpu_from_device(void *dst, CUdeviceptr src, size_t bytes)
{
	MUST(cuMemcpyDtoH_v2, dst, src, bytes);
	count_bytes("cuMemcpyDtoH_v2", "d2h", bytes);
}

void gpu_launch(const struct gpu *gpu, unsigned int blocks, CUstream stream)
{
	MUST(cuLaunchKernel, gpu->nothing, blocks, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	count(LAUNCHES, KERNEL_NOTHING, 1);
}

void gpu_work(const struct gpu *gpu, int rounds)
{
	char text[256];
	memset(text, 7, sizeof(text));
	for (int i = 0; i < rounds; i++) {
		CUdeviceptr address = gpu_alloc(1024);
		gpu_to_device(address, text, sizeof(text));
		gpu_launch(gpu, (unsigned int)i % 7 + 1, NULL);
		gpu_from_device(text, address, sizeof(text));
		gpu_free(address);
	}
	MUST(cuCtxSynchronize);
}
