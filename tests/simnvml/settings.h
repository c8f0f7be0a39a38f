/* SPDX-License-Identifier: MIT */
/*
 * What the simulated GPUs tell: a setting is a name and a number. Those of SIMNVML_FILE, one a line
 * ("power 250000", "gpu1.power 250000"), count before the defaults, and can be changed while a
 * program runs: the file is read at each call. Write it anew and rename it over the old one.
 */
#ifndef SIMNVML_SETTINGS_H
#define SIMNVML_SETTINGS_H

#include <stdbool.h>

enum {
	SUCCESS = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	TIMEOUT = 10,
	GPU_IS_LOST = 15,
};

/* A handle points at one of these. */
struct device {
	int index;
	int mig; /* -1: a whole GPU */
};

#define GPUS_MOST 64

extern struct device devices[GPUS_MOST];

/* What the environment says. */
unsigned number(const char *name, unsigned otherwise);
bool fails(const char *what);

/* Of this GPU, else of all; `otherwise` where the file says nothing. */
double setting(const struct device *device, const char *name, double otherwise);

/*
 * What a call about a GPU answers, before all else: ends the process where "die" is 1, says nonsense
 * to cuscope where "lie" is 1, hangs while "hang" is 1, then GPU_IS_LOST while
 * "lost" is 1, then what "fail.NAME" says, then NOT_SUPPORTED with SIMNVML_FAIL=figures.
 */
int answer(const struct device *device, const char *name);

#endif
