// SPDX-License-Identifier: MIT
/* Every way to launch a kernel with the runtime, with names and shapes of all sorts. */
#include <cooperative_groups.h>

#include "runtime.h"

namespace shapes
{
struct tag {
};
template <class T, int N> __global__ void scale(T *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		x[i] *= N;
}
template <class... Ts> __global__ void tagged(float *x)
{
	x[0] = sizeof...(Ts);
}
} // namespace shapes

__global__ void plain(float *x, int n)
{
	if (threadIdx.x == 0)
		x[0] = n;
}

extern "C" __global__ void unmangled(float *x)
{
	x[0] = 1;
}

__global__ void uses_shared(float *x)
{
	extern __shared__ float s[];
	s[threadIdx.x] = x[0];
	__syncthreads();
	x[0] = s[0];
}

__global__ void cooperates(float *x)
{
	x[blockIdx.x] = 1;
	cooperative_groups::this_grid().sync();
}

static float *x;

static void by_brackets(cudaStream_t stream)
{
	dim3 grid(7, 5, 3), block(32, 4, 2);

	for (int i = 0; i < 100; i++)
		plain<<<grid, block, 0, stream>>>(x, 1);
	count_launches(100, "plain(float*, int)", shape_of(grid, block), stream, false);
	unmangled<<<1, 1024>>>(x);
	count_launches(1, "unmangled", shape_of(1, 1024), NULL, false);
	shapes::scale<float, 4><<<65535, 256, 0, stream>>>(x, 1);
	count_launches(1, "void shapes::scale<float, 4>(float*, int)", shape_of(65535, 256), stream,
		       false);
	shapes::scale<double, -1><<<dim3(1, 65535), 33>>>((double *)x, 1);
	count_launches(1, "void shapes::scale<double, -1>(double*, int)",
		       shape_of(dim3(1, 65535), 33), NULL, false);
	shapes::tagged<int, shapes::tag, const char *><<<2, dim3(8, 8, 8), 0, stream>>>(x);
	count_launches(1, "void shapes::tagged<int, shapes::tag, char const*>(float*)",
		       shape_of(2, dim3(8, 8, 8)), stream, false);
}

static void with_shared_memory(cudaStream_t stream)
{
	const unsigned large = 64 << 10; /* more than is allowed without asking */

	uses_shared<<<3, 128, 4096, stream>>>(x);
	count_launches(1, "uses_shared(float*)", shape_of(3, 128, 4096), stream, false);
	CHECK(cudaFuncSetAttribute(uses_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
				   large));
	uses_shared<<<3, 128, large, stream>>>(x);
	count_launches(1, "uses_shared(float*)", shape_of(3, 128, large), stream, false);
}

static void by_call(cudaStream_t stream)
{
	int n = 1;
	void *args[] = { &x, &n };

	CHECK(cudaLaunchKernel((const void *)plain, dim3(9, 8, 7), dim3(6, 5, 4), args, 512,
			       stream));
	count_launches(1, "plain(float*, int)", shape_of(dim3(9, 8, 7), dim3(6, 5, 4), 512), stream,
		       false);
	for (int i = 0; i < 10; i++)
		CHECK(cudaLaunchCooperativeKernel((const void *)cooperates, dim3(4), dim3(64), args,
						  0, stream));
	count_launches(10, "cooperates(float*)", shape_of(4, 64), stream, false);
}

static void by_config(cudaStream_t stream)
{
	cudaLaunchAttribute attribute = {};
	attribute.id = cudaLaunchAttributePriority;
	attribute.val.priority = 0;
	cudaLaunchConfig_t config = {};
	config.gridDim = dim3(11, 2, 1);
	config.blockDim = dim3(64, 2, 1);
	config.dynamicSmemBytes = 2048;
	config.stream = stream;

	CHECK(cudaLaunchKernelEx(&config, plain, x, 1));
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaLaunchKernelEx(&config, plain, x, 1));
	count_launches(2, "plain(float*, int)",
		       shape_of(config.gridDim, config.blockDim, config.dynamicSmemBytes), stream,
		       false);
}

static void of_host_functions(cudaStream_t stream)
{
	for (int i = 0; i < 3; i++)
		CHECK(cudaLaunchHostFunc(
			stream, [](void *) {}, NULL));
	count_host_launches(3);
}

int main(void)
{
	cudaStream_t stream;

	CHECK(cudaMalloc(&x, 1 << 20));
	count_alloc("device", address_of(x), 1 << 20);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	count_calls(1, "cudaStreamCreateWithFlags");
	by_brackets(stream);
	with_shared_memory(stream);
	by_call(stream);
	by_config(stream);
	of_host_functions(stream);
	CHECK(cudaDeviceSynchronize());
	count_calls(1, "cudaDeviceSynchronize");
	CHECK(cudaStreamDestroy(stream));
	count_calls(1, "cudaStreamDestroy");
	CHECK(cudaFree(x));
	count_free("device", address_of(x));
	return 0;
}
