// SPDX-License-Identifier: MIT
#include "probe/libraries.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "probe/roots_path.h"

/* Drivers first. The places of packages, containers (/usr/local/nvidia), toolkits,
 * wheels, conda. */
static const char *const places[] = {
	"/usr/lib/*-linux-gnu/libcuda.so.1",
	"/usr/lib64/libcuda.so.1",
	"/usr/lib/libcuda.so.1",
	"/usr/local/nvidia/lib*/libcuda.so.1",
	"/usr/local/cuda*/compat/libcuda.so.1",
	"/usr/lib/wsl/lib/libcuda.so.1",
	"/usr/lib/*-linux-gnu/libcudart.so.*",
	"/usr/local/cuda*/lib64/libcudart.so.*",
	"/opt/cuda*/lib64/libcudart.so.*",
	"/opt/*/lib/libcudart.so.*",
	"/usr/lib/python3*/site-packages/nvidia/*/lib/libcudart.so.*",
	"/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcudart.so.*",
	"/opt/*/lib/python3*/site-packages/nvidia/*/lib/libcudart.so.*",
	"/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/libcudart.so.*",
	"/root/.venv/lib/python3*/site-packages/nvidia/*/lib/libcudart.so.*",
	"/home/*/*conda*/lib/libcudart.so.*",
	"/home/*/.venv/lib/python3*/site-packages/nvidia/*/lib/libcudart.so.*",
};
#define PLACES     (ARRAY_SIZE(places))
#define USERS_LAST 2 /* of them are folders of users */

/* Toolkits have it twice, packages of distributions beside their libraries. */
static const char *const cupti_places[] = {
	"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.*",
	"/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.*",
	"/usr/local/cuda*/lib64/libcupti.so.*",
	"/usr/lib/*-linux-gnu/libcupti.so.*",
	"/opt/cuda*/extras/CUPTI/lib64/libcupti.so.*",
	"/usr/lib/python3*/site-packages/nvidia/*/lib/libcupti.so.*",
	"/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcupti.so.*",
	"/opt/*/lib/python3*/site-packages/nvidia/*/lib/libcupti.so.*",
	"/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/libcupti.so.*",
	"/home/*/.venv/lib/python3*/site-packages/nvidia/*/lib/libcupti.so.*",
};

/* Where libraries of any kind lie. */
static const char *const folders[] = {
	"/usr/lib/*-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/usr/local/lib",
	"/usr/local/cuda*/lib64",
	"/opt/cuda*/lib64",
	"/usr/local/lib/python3*/*-packages/nvidia/*/lib",
	"/usr/local/lib/python3*/*-packages/torch/lib",
	"/opt/*/lib/python3*/site-packages/nvidia/*/lib",
	"/opt/*/lib/python3*/site-packages/torch/lib",
	"/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib",
	"/opt/*/.venv/lib/python3*/site-packages/torch/lib",
};
#define FOLDERS ARRAY_SIZE(folders)

#define SEEN_MAX 64

/* Where it lies, if it is to be taken; the caller frees it. */
static char *real_path(const char *path, bool roots_only)
{
	int fd = roots_only ? roots_path_open(path) : -1;
	char *real = fd >= 0 ? roots_path_real(fd) : NULL;

	if (fd >= 0)
		close(fd);
	return roots_only ? real : realpath(path, NULL);
}

static int each_place(const char *const *patterns, size_t count, bool roots_only,
                      int (*each)(void *data, const char *path), void *data)
{
	char *seen[SEEN_MAX];
	size_t n_seen = 0;
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		glob_t found;

		if (roots_only ? roots_path_glob(patterns[i], &found)
		               : glob(patterns[i], 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc && !r && n_seen < SEEN_MAX; k++) {
			char *real = real_path(found.gl_pathv[k], roots_only);
			size_t s = 0;

			while (real && s < n_seen && strcmp(seen[s], real))
				s++;
			if (!real || s < n_seen) {
				free(real);
				continue;
			}
			seen[n_seen++] = real;
			r = each(data, real);
		}
		globfree(&found);
	}
	while (n_seen)
		free(seen[--n_seen]);
	return r;
}

/* Root looks where root alone can put something: what is in a user's folder may never answer. */
static bool as_root(void)
{
	return geteuid() == 0;
}

int libraries_each(int (*each)(void *data, const char *path), void *data)
{
	return each_place(places, PLACES, as_root(), each, data);
}

int libraries_cupti_each(int (*each)(void *data, const char *path), void *data)
{
	return each_place(cupti_places, ARRAY_SIZE(cupti_places), as_root(), each, data);
}

int libraries_system_each(int (*each)(void *data, const char *path), void *data)
{
	return each_place(places, PLACES - USERS_LAST, true, each, data);
}

int libraries_named_each(const char *name, int (*each)(void *data, const char *path), void *data)
{
	char *patterns[FOLDERS];
	int r;

	for (size_t i = 0; i < FOLDERS; i++)
		patterns[i] = xasprintf("%s/%s*", folders[i], name);
	r = each_place((const char *const *)patterns, FOLDERS, as_root(), each, data);
	for (size_t i = 0; i < FOLDERS; i++)
		free(patterns[i]);
	return r;
}
