/* SPDX-License-Identifier: MIT */
/* Allocation that ends the program when memory is out: no caller here could go on usefully. */
#pragma once

#include <stddef.h>

#include "base/at_end.h"

void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t bytes);
void *xrealloc(void *old, size_t bytes);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t len);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Several, where all are read before the first is freed: the last may be what held the others. */
#define FREE_ALL(...)                                                                              \
	free_each((void *const[]){ __VA_ARGS__ },                                                  \
	          sizeof((void *const[]){ __VA_ARGS__ }) / sizeof(void *))
void free_each(void *const *all, size_t n);
