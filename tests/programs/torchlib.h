// SPDX-License-Identifier: MIT
// Some operators as PyTorch's library has them, by name and by types: libtorch_cpu.so of the tests.
#ifndef TESTS_TORCHLIB_H
#define TESTS_TORCHLIB_H

namespace c10
{
struct Scalar {
	double value;
};
} // namespace c10

namespace at
{
struct Tensor {
	int value;
};

namespace _ops
{
struct mm {
	static Tensor call(const Tensor &self, const Tensor &other);
	static Tensor redispatch(unsigned long keys, const Tensor &self, const Tensor &other);
};
struct addmm {
	static Tensor call(const Tensor &self, const Tensor &left, const Tensor &right,
	                   const c10::Scalar &beta, const c10::Scalar &alpha);
};
struct relu {
	static Tensor call(const Tensor &self);
};
struct add_Tensor {
	static Tensor call(const Tensor &self, const Tensor &other, const c10::Scalar &alpha);
};
struct _local_scalar_dense {
	static c10::Scalar call(const Tensor &self);
};
} // namespace _ops
} // namespace at

#endif
