// SPDX-License-Identifier: MIT
// throw [ROUNDS]: leaves a CUDA call by a C++ exception, between ordinary calls.
#include <stdexcept>

#include "sample.h"

static void fail(void *)
{
	throw std::runtime_error("thrown through a CUDA call");
}

static void allocate_and_free(size_t bytes)
{
	CUdeviceptr memory;

	DRIVER(cuMemAlloc_v2, &memory, bytes);
	count_alloc("device", bytes);
	DRIVER(cuMemFree_v2, memory);
	count_free("device", bytes);
}

int main(int argc, char **argv)
{
	long rounds = sample_number(argc, argv, 1, 20);

	sample_context();
	for (long i = 0; i < rounds; i++) {
		try {
			CALL_IN(driver, cuSimCallback, fail, nullptr);
			sample_fail("nothing was thrown");
		} catch (const std::runtime_error &) {
			count("unfinished", 1, "cuSimCallback");
		}
		allocate_and_free(100 + static_cast<size_t>(i));
	}
	return sample_end();
}
