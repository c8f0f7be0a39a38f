// SPDX-License-Identifier: MIT
#include "base/xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory)
{
	if (!memory) {
		fputs("cuscope: out of memory\n", stderr);
		abort();
	}
	return memory;
}

void *xmalloc(size_t bytes)
{
	return checked(malloc(bytes ? bytes : 1));
}

void *xcalloc(size_t count, size_t bytes)
{
	return checked(calloc(count ? count : 1, bytes ? bytes : 1));
}

void *xrealloc(void *old, size_t bytes)
{
	return checked(realloc(old, bytes ? bytes : 1));
}

char *xstrdup(const char *text)
{
	return checked(strdup(text));
}

char *xstrndup(const char *text, size_t len)
{
	return checked(strndup(text, len));
}

char *xasprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return checked(n < 0 ? NULL : text);
}

void free_each(void *const *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(all[i]);
}
