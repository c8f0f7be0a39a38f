// SPDX-License-Identifier: MIT
#include "gpus/nvml/library_path.h"

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#ifdef __aarch64__
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

/* Distributions, WSL, container runtimes, Kubernetes' driver containers, NixOS. */
static const char *const places[] = {
	"/usr/lib/" MULTIARCH,
	"/usr/lib64",
	"/usr/lib/" MULTIARCH "/nvidia/current",
	"/usr/lib",
	"/usr/lib/wsl/lib",
	"/usr/local/nvidia/lib64",
	"/run/nvidia/driver/usr/lib/" MULTIARCH,
	"/run/nvidia/driver/usr/lib64",
	"/home/kubernetes/bin/nvidia/lib64",
	"/run/opengl-driver/lib",
	/* toolkits and Python's packages, which have CUPTI */
	"/usr/local/cuda/extras/CUPTI/lib64",
	"/usr/local/cuda/lib64",
	"/usr/local/cuda-*/extras/CUPTI/lib64",
	"/usr/local/cuda-*/lib64",
	"/opt/cuda*/extras/CUPTI/lib64",
	"/usr/lib/python3*/site-packages/nvidia/*/lib",
	"/usr/local/lib/python3*/*-packages/nvidia/*/lib",
	"/opt/*/lib/python3*/site-packages/nvidia/*/lib",
};

static bool is_ours(const struct stat *stat)
{
	return stat->st_uid == 0 || stat->st_uid == geteuid();
}

/* A folder with the sticky bit lets nobody take away what is another's. */
static bool is_closed(const struct stat *stat)
{
	bool writable = stat->st_mode & (S_IWGRP | S_IWOTH);

	return is_ours(stat) && (!writable || (S_ISDIR(stat->st_mode) && stat->st_mode & S_ISVTX));
}

/* `path`: without links. The file, and each folder above it. */
static bool nobody_else_writes(const char *path)
{
	char part[PATH_MAX], *slash;
	struct stat stat_of;

	snprintf(part, sizeof(part), "%s", path);
	for (;;) {
		if (stat(*part ? part : "/", &stat_of) || !is_closed(&stat_of))
			return false;
		slash = strrchr(part, '/');
		if (!slash)
			return true;
		*slash = '\0';
	}
}

struct search {
	const char *name;
	char *path, *refused;
	size_t size, refused_size;
};

static bool try_folder(const struct search *search, const char *folder, size_t length)
{
	char name[PATH_MAX], real[PATH_MAX];

	if (!length || folder[0] != '/' || length > sizeof(name) - strlen(search->name) - 2)
		return false;
	snprintf(name, sizeof(name), "%.*s/%s", (int)length, folder, search->name);
	if (!realpath(name, real))
		return false;
	if (!nobody_else_writes(real)) {
		snprintf(search->refused, search->refused_size, "%s", real);
		return false;
	}
	snprintf(search->path, search->size, "%s", real);
	return true;
}

/* The last of a pattern's folders is the newest release's. */
static bool try_pattern(const struct search *search, const char *pattern)
{
	glob_t found;
	bool is = false;

	if (!strchr(pattern, '*'))
		return try_folder(search, pattern, strlen(pattern));
	if (glob(pattern, 0, NULL, &found))
		return false;
	for (size_t i = found.gl_pathc; i-- > 0 && !is;)
		is = try_folder(search, found.gl_pathv[i], strlen(found.gl_pathv[i]));
	globfree(&found);
	return is;
}

void library_path_find(const char *name, const char *folders, char *path, size_t size,
                       char *refused, size_t refused_size)
{
	struct search search = { name, path, refused, size, refused_size };

	*path = *refused = '\0';
	while (*folders) {
		size_t length = strcspn(folders, ":");

		if (try_folder(&search, folders, length))
			return;
		folders += length + (folders[length] == ':');
	}
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (try_pattern(&search, places[i]))
			return;
	}
}
