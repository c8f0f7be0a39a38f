// SPDX-License-Identifier: MIT
#include "programs/torchlib.h"

#include <unistd.h>

namespace at::_ops
{
Tensor mm::redispatch(unsigned long keys, const Tensor &self, const Tensor &other)
{
	usleep(200);
	return { self.value * other.value + (int)keys };
}

Tensor mm::call(const Tensor &self, const Tensor &other)
{
	return mm::redispatch(0, self, other);
}

// An operator that calls another.
Tensor addmm::call(const Tensor &self, const Tensor &left, const Tensor &right,
                   const c10::Scalar &beta, const c10::Scalar &alpha)
{
	Tensor product = mm::call(left, right);

	usleep(100);
	return { (int)(beta.value * self.value + alpha.value * product.value) };
}

// Over at once: nothing that a launch could be in.
Tensor relu::call(const Tensor &self)
{
	return { self.value > 0 ? self.value : 0 };
}

Tensor add_Tensor::call(const Tensor &self, const Tensor &other, const c10::Scalar &alpha)
{
	usleep(100);
	return { self.value + (int)(alpha.value * other.value) };
}

c10::Scalar _local_scalar_dense::call(const Tensor &self)
{
	usleep(300);
	return { (double)self.value };
}
} // namespace at::_ops
