// SPDX-License-Identifier: MIT
/*
 * patches SECONDS [WRITABLE]: puts a jump of its own at the entry of cuMemAlloc_v2, as interposers
 * do, says "ready", and then calls that and cuCtxSynchronize until its input ends. With WRITABLE it
 * leaves the function as it is, and the page as memory that may be written to.
 */
#include <string.h>
#include <sys/mman.h>

#include "sample.h"

#define PAGE 4096ul

static long seen;

/* What cuMemAlloc_v2 is from now on. */
static CUresult allocate(CUdeviceptr *memory, size_t bytes)
{
	*memory = 4096 * (CUdeviceptr)++seen;
	return CUDA_SUCCESS;
}

static void patch(unsigned char *entry, bool leave_writable)
{
	unsigned char jump[] = { 0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	CUresult (*to)(CUdeviceptr *, size_t) = allocate;
	void *page = (void *)((unsigned long)entry & ~(PAGE - 1));

	if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		sample_fail("mprotect");
	if (leave_writable)
		return;
	memcpy(jump + 6, &to, sizeof(to));
	memcpy(entry, jump, sizeof(jump));
	if (mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC))
		sample_fail("mprotect");
}

int main(int argc, char **argv)
{
	double end = sample_seconds() + (double)sample_number(argc, argv, 1, 5);
	bool writable = sample_number(argc, argv, 2, 0);
	CUdeviceptr memory;
	long calls = 0;

	sample_context();
	patch(sample_symbol(driver, "cuMemAlloc_v2"), writable);
	sample_ready();
	do {
		calls++;
		DRIVER(cuMemAlloc_v2, &memory, 256);
		DRIVER(cuCtxSynchronize);
	} while (sample_seconds() < end && !sample_input_ended(5));
	if (!writable && seen != calls)
		sample_fail("its own code saw %ld of %ld calls", seen, calls);
	return sample_end();
}
