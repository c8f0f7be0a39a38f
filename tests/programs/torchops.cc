// SPDX-License-Identifier: MIT
// Calls operators of libtorch_cpu.so: 3 mm, 2 addmm with an mm in each, 5 relu, 1 add, 1 item.
#include <cstdio>

#include "programs/torchlib.h"

using namespace at::_ops;

int main()
{
	at::Tensor x{ 3 };
	c10::Scalar one{ 1 };

	for (int i = 0; i < 3; i++)
		x = mm::call(x, { 1 });
	for (int i = 0; i < 2; i++)
		x = addmm::call(x, x, { 1 }, one, one);
	for (int i = 0; i < 5; i++)
		x = relu::call(x);
	x = add_Tensor::call(x, x, one);
	std::printf("%g\n", _local_scalar_dense::call(x).value);
	return 0;
}
