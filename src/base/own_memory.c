// SPDX-License-Identifier: MIT
#include "base/own_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static bool read_pages(unsigned long long *mapped, unsigned long long *resident)
{
	FILE *file = fopen("/proc/self/statm", "re");
	bool read = file && fscanf(file, "%llu %llu", mapped, resident) == 2;

	if (file)
		fclose(file);
	return read;
}

uint64_t own_resident_bytes(void)
{
	unsigned long long mapped, resident;

	return read_pages(&mapped, &resident) ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t own_mapped_bytes(void)
{
	unsigned long long mapped, resident;

	return read_pages(&mapped, &resident) ? mapped * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}
