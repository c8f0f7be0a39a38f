// SPDX-License-Identifier: MIT
#include "analysis/category.h"

#include <string.h>

#include "base/array.h"

static const struct {
	const char *name;
	char letter;
} categories[CATEGORY_COUNT] = {
	[CATEGORY_INIT] = { "init", 'I' },         [CATEGORY_MEMORY] = { "memory_mgmt", 'M' },
	[CATEGORY_TRANSFER] = { "transfer", 'T' }, [CATEGORY_KERNEL] = { "kernel", 'K' },
	[CATEGORY_SYNC] = { "sync", 'S' },         [CATEGORY_CONTEXT] = { "context", 'C' },
	[CATEGORY_STREAM] = { "stream", 'Q' },     [CATEGORY_MODULE] = { "module", 'L' },
	[CATEGORY_OTHER] = { "other", 'O' },
};

static const enum category of_class[CLASS_COUNT] = {
	[CLASS_LAUNCH] = CATEGORY_KERNEL,     [CLASS_MEMORY] = CATEGORY_MEMORY,
	[CLASS_TRANSFER] = CATEGORY_TRANSFER, [CLASS_SYNC] = CATEGORY_SYNC,
	[CLASS_STREAM] = CATEGORY_STREAM,     [CLASS_EVENT] = CATEGORY_STREAM,
	[CLASS_GRAPH] = CATEGORY_OTHER,       [CLASS_MODULE] = CATEGORY_MODULE,
	[CLASS_DEVICE] = CATEGORY_CONTEXT,    [CLASS_OTHER] = CATEGORY_OTHER,
};

/* What happens once, before there is a context; their classes have more than that. */
static const char *const init_beginnings[] = {
	"cuInit",           "cudaInitDevice",   "cuDriverGetVersion",    "cudaDriverGetVersion",
	"cuGetProcAddress", "cuGetExportTable", "cudaRuntimeGetVersion",
};

enum category category_of(const struct function *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(init_beginnings); i++) {
		if (!strncmp(function->name, init_beginnings[i], strlen(init_beginnings[i])))
			return CATEGORY_INIT;
	}
	return of_class[function->cls];
}

enum category category_of_activity(const struct activity *activity)
{
	return activity_is_transfer(activity) ? CATEGORY_TRANSFER : CATEGORY_KERNEL;
}

const char *category_name(enum category category)
{
	return categories[category].name;
}

char category_letter(enum category category)
{
	return categories[category].letter;
}
