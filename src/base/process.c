// SPDX-License-Identifier: MIT
#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t process_start_time(pid_t pid)
{
	char path[64], line[1024], *at;
	int spaces = 0;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "re");
	if (!stat)
		return 0;
	at = fgets(line, sizeof(line), stat) ? strrchr(line, ')') : NULL;
	fclose(stat);
	for (; at && *at && spaces < 20; at++)
		spaces += *at == ' ';
	return at ? strtoull(at, NULL, 10) : 0;
}
