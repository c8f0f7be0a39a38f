// SPDX-License-Identifier: MIT
/* Injected by CUDA_INJECTION64_PATH. */
#include <stdio.h>

int InitializeInjection(void);
int InitializeInjection(void)
{
	fprintf(stderr, "injected\n");
	return 1;
}
