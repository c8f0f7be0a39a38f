// SPDX-License-Identifier: MIT
/* Any bytes as code. The first byte holds the settings: ABI, nop5, whether the size is known. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/placement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct emulation emulation = { 0 };
	struct placement placement;
	enum api_abi abi;
	uint64_t claimed;
	uint8_t *code;

	if (!size)
		return 0;
	emulation.nop5 = data[0] & 1;
	abi = data[0] & 2 ? ABI_AARCH64 : ABI_X86_64;
	claimed = data[0] & 4 ? 0 : data[0] & 8 ? size + 1000 : size - 1;
	code = malloc(size - 1); /* of just this size, for AddressSanitizer */
	memcpy(code, data + 1, size - 1);
	placement_choose(code, size - 1, claimed, abi, &emulation, &placement);
	if (!placement.why || !memchr(placement.instruction, '\0', sizeof(placement.instruction)) ||
	    placement.skip > 64 ||
	    (placement.skip && (!placement.emulated || placement.skip >= size - 1)) ||
	    (abi == ABI_AARCH64 && placement.skip))
		abort();
	free(code);
	return 0;
}
