// SPDX-License-Identifier: MIT
/* Any bytes as an answer of NCCL's RAS: ranks have ends, and no more is read than there is. */
#include <stdlib.h>
#include <string.h>

#include "identity/ras.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rank(void *data, const struct ras_rank *rank)
{
	size_t *n = data;

	if (strlen(rank->host) >= sizeof(rank->host))
		abort();
	++*n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;

	if (ras_read((const char *)data, size, check_rank, &n) != n || n > size)
		abort();
	return 0;
}
