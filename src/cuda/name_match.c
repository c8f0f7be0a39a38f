// SPDX-License-Identifier: MIT
#include "cuda/name_match.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cuda/kernel_name.h"

/* Takes one suffix off: _ptsz, _ptds, _v2 ... */
static bool strip_variant(char *name)
{
	char *tail = strrchr(name, '_');

	if (!tail || tail == name)
		return false;
	if (strcmp(tail, "_ptsz") && strcmp(tail, "_ptds") &&
	    !(tail[1] == 'v' && isdigit((unsigned char)tail[2])))
		return false;
	*tail = '\0';
	return true;
}

bool name_match_function(const char *glob, const char *name)
{
	char base[128];

	if (fnmatch(glob, name, 0) == 0)
		return true;
	snprintf(base, sizeof(base), "%s", name);
	while (strip_variant(base)) {
		if (fnmatch(glob, base, 0) == 0)
			return true;
	}
	return false;
}

bool name_match_kernel(const char *glob, const char *name, const char *mangled)
{
	const char *begin;
	char *base;
	size_t len;
	bool is;

	if (fnmatch(glob, name, 0) == 0 || (mangled && fnmatch(glob, mangled, 0) == 0))
		return true;
	begin = kernel_name_base(name, &len);
	base = xstrndup(begin, len);
	is = fnmatch(glob, base, 0) == 0;
	free(base);
	return is;
}
