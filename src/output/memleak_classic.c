// SPDX-License-Identifier: MIT
#include "output/memleak.h"

/*
 * The text of GPUprobe. It knows the runtime's cudaMalloc alone, so device memory is what is shown
 * here; and it calls everything leaked that is not freed yet.
 *
 *	total number of `cudaMalloc` calls: 3
 *	8388608 bytes leaked from 1 cuda memory allocation(s)
 *		0x769aec000000: 8388608 bytes
 *	========================
 */
void memleak_classic(struct buf *out, const struct watch_page *page)
{
	const struct watch_memory *memory = page->memory;
	struct watch_count live = { 0 };
	uint64_t calls = 0;

	for (size_t i = 0; i < memory->n_totals; i++)
		if (memory->totals[i].kind == MEMORY_DEVICE)
			calls += memory->totals[i].allocated.count;
	for (size_t i = 0; i < memory->n_allocations; i++) {
		if (memory->allocations[i].kind != MEMORY_DEVICE)
			continue;
		live.count++;
		live.bytes += memory->allocations[i].bytes;
	}
	buf_printf(out, "total number of `cudaMalloc` calls: %llu\n", (unsigned long long)calls);
	buf_printf(out, "%llu bytes leaked from %llu cuda memory allocation(s)\n",
	           (unsigned long long)live.bytes, (unsigned long long)live.count);
	for (size_t i = 0; i < memory->n_allocations; i++)
		if (memory->allocations[i].kind == MEMORY_DEVICE)
			buf_printf(out, "\t0x%llx: %llu bytes\n",
			           (unsigned long long)memory->allocations[i].address,
			           (unsigned long long)memory->allocations[i].bytes);
	buf_puts(out, "========================\n");
}
