// SPDX-License-Identifier: MIT
#include "fault.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct fault {
	char function[64];
	unsigned long nth; /* 0: every call */
	int code;
	atomic_ulong calls;
};

static struct fault faults[64];
static size_t n_faults;
bool faults_wanted;

/* One "function:nth=code"; nth is a number from 1 or '*'. */
static bool fault_parse(const char *text, size_t len, struct fault *fault)
{
	const char *colon = memchr(text, ':', len);
	const char *equals = memchr(text, '=', len);
	if (!colon || !equals || equals < colon)
		return false;
	size_t name_len = (size_t)(colon - text);
	if (name_len == 0 || name_len >= sizeof(fault->function))
		return false;
	memcpy(fault->function, text, name_len);
	fault->function[name_len] = '\0';
	fault->nth = colon[1] == '*' ? 0 : strtoul(colon + 1, NULL, 10);
	fault->code = atoi(equals + 1);
	return colon[1] == '*' || fault->nth > 0;
}

void faults_read(void)
{
	const char *text = getenv("SIMCUDA_FAIL");
	while (text && *text && n_faults < sizeof(faults) / sizeof(faults[0])) {
		size_t len = strcspn(text, ",");
		if (fault_parse(text, len, &faults[n_faults]))
			n_faults++;
		text += len;
		text += *text == ',';
	}
	faults_wanted = n_faults > 0;
}

int faults_take(const char *function)
{
	int code = 0;
	for (size_t i = 0; i < n_faults; i++) {
		struct fault *fault = &faults[i];
		if (strcmp(fault->function, function) != 0)
			continue;
		unsigned long call = atomic_fetch_add(&fault->calls, 1) + 1;
		if (code == 0 && (fault->nth == 0 || fault->nth == call))
			code = fault->code;
	}
	return code;
}
