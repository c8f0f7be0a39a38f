// SPDX-License-Identifier: MIT
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct device devices[GPUS_MOST];

unsigned number(const char *name, unsigned otherwise)
{
	const char *value = getenv(name);

	return value ? (unsigned)strtoul(value, NULL, 10) : otherwise;
}

bool fails(const char *what)
{
	const char *value = getenv("SIMNVML_FAIL");

	return value && !strcmp(value, what);
}

double setting(const struct device *device, const char *name, double otherwise)
{
	const char *path = getenv("SIMNVML_FILE");
	FILE *file = path ? fopen(path, "re") : NULL;
	char line[256], own[128], found[128];
	double value, result = otherwise;
	bool mine = false;

	snprintf(own, sizeof(own), "gpu%d.%s", device ? device->index : 0, name);
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%127s %lf", found, &value) != 2)
			continue;
		if (!strcmp(found, own)) {
			result = value;
			mine = true;
		} else if (!mine && !strcmp(found, name)) {
			result = value;
		}
	}
	if (file)
		fclose(file);
	return result;
}

/* Says to cuscope, whose socket it is, what no program of its own says. */
static void lie(void)
{
	static const char words[4096] = "NVML";

	send(3, words, sizeof(words), MSG_NOSIGNAL);
}

int answer(const struct device *device, const char *name)
{
	char fail[64];

	if (setting(device, "die", 0) != 0)
		abort();
	if (setting(device, "lie", 0) != 0)
		lie();

	while (setting(device, "hang", 0) != 0)
		usleep(10000);
	if (setting(device, "lost", 0) != 0)
		return GPU_IS_LOST;
	snprintf(fail, sizeof(fail), "fail.%s", name);
	return (int)setting(device, fail, fails("figures") ? NOT_SUPPORTED : SUCCESS);
}
