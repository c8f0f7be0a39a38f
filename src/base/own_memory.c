// SPDX-License-Identifier: MIT
#include "base/own_memory.h"

#include <stdio.h>
#include <unistd.h>

uint64_t own_resident_bytes(void)
{
	unsigned long long total, pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &total, &pages) != 2)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
