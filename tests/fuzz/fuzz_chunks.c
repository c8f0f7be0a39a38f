// SPDX-License-Identifier: MIT
/*
 * A trace file whose chunks are mutated from within and get the checksums of what they hold then:
 * all that a file from elsewhere can say, with everything checked that a release checks. A byte of
 * settings, then the file.
 */
#include <stdint.h>

#include "tests/fuzz/looker.h"
#include "tests/fuzz/trace_mutator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return trace_mutate_behind(data, size, max, seed, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size)
		look_at_file(data + 1, size - 1, data[0] & 1);
	return 0;
}
