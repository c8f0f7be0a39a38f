/* SPDX-License-Identifier: MIT */
/* The simulated NVML of tests/simnvml for the process that calls NVML, and its settings. */
#ifndef UNIT_SIMNVML_H
#define UNIT_SIMNVML_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The folder is where that process looks first. */
static inline int simnvml_load(void **state)
{
	char path[4096], *end;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	(void)state;
	path[n > 0 ? n : 0] = '\0';
	end = strstr(path, "/tests/unit/");
	if (!end)
		end = strstr(path, "/fuzz/unit/"); /* with sanitizers */
	if (!end)
		return -1;
	strcpy(end, "/simnvml");
	return setenv("LD_LIBRARY_PATH", path, 1);
}

static char simnvml_file[64];

static inline void simnvml_set(const char *settings)
{
	char other[80];
	FILE *file;

	if (!*simnvml_file)
		snprintf(simnvml_file, sizeof(simnvml_file), "/tmp/simnvml.%d", (int)getpid());
	snprintf(other, sizeof(other), "%s.new", simnvml_file);
	file = fopen(other, "w");
	fputs(settings, file);
	fclose(file);
	rename(other, simnvml_file);
	setenv("SIMNVML_FILE", simnvml_file, 1);
}

static inline int simnvml_forget(void **state)
{
	(void)state;
	unlink(simnvml_file);
	return 0;
}

static inline uint64_t simnvml_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
