// SPDX-License-Identifier: MIT
#include "probe/beforehand.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/libraries.h"
#include "probe/maps.h"
#include "probe/roots_path.h"

#define CACHE_MAX (32u << 20)
#define FILES_MAX 64 /* each costs some 10 ms */

struct beforehand_finding {
	void (*each)(void *data, int fd, const char *path);
	void *data;
	size_t n;
};

static bool is_cuda_name(const char *name)
{
	return !strncmp(name, "libcuda.so", 10) || !strncmp(name, "libcudart", 9);
}

/* ---- who may change it --------------------------------------------------------------------- */

int beforehand_open(const char *path)
{
	int by_path = roots_path_open(path), fd;
	char self[64];
	struct stat st;

	if (by_path < 0)
		return by_path;
	if (file_stat(by_path, &st) || !S_ISREG(st.st_mode)) {
		close(by_path);
		return -EACCES;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", by_path);
	fd = open(self, O_RDONLY | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	close(by_path);
	return fd;
}

static int found(void *data, const char *path)
{
	struct beforehand_finding *finding = data;
	int fd = finding->n < FILES_MAX ? beforehand_open(path) : -1;

	if (fd >= 0) {
		finding->n++;
		finding->each(finding->data, fd, path);
	}
	return finding->n >= FILES_MAX;
}

static void found_in_cache(void *data, const char *path)
{
	found(data, path);
}

/* ---- the loader's cache -------------------------------------------------------------------- */

/* As ldconfig writes it, alone or after the table of an older format. */
struct cache_head {
	char magic[20];
	uint32_t n, strings_bytes;
	uint32_t reserved[5];
};

struct cache_entry {
	int32_t flags;
	uint32_t name, path; /* from the head on */
	uint32_t version;
	uint64_t hardware;
};

static const char *text_at(const char *cache, unsigned long bytes, uint32_t at)
{
	return at < bytes && memchr(cache + at, '\0', bytes - at) ? cache + at : NULL;
}

void beforehand_cache(const char *cache, unsigned long bytes,
                      void (*each)(void *data, const char *path), void *data)
{
	const char *at = memmem(cache, bytes, "glibc-ld.so.cache1.1", 20);
	struct cache_head head;
	struct cache_entry entry;

	if (!at || bytes - (unsigned long)(at - cache) < sizeof(head))
		return;
	bytes -= (unsigned long)(at - cache);
	memcpy(&head, at, sizeof(head));
	if (head.n > (bytes - sizeof(head)) / sizeof(entry))
		return;
	for (uint32_t i = 0; i < head.n; i++) {
		const char *name, *path;

		memcpy(&entry, at + sizeof(head) + i * sizeof(entry), sizeof(entry));
		name = text_at(at, bytes, entry.name);
		path = text_at(at, bytes, entry.path);
		if (name && path && is_cuda_name(name))
			each(data, path);
	}
}

static void look_in_cache(struct beforehand_finding *finding)
{
	int fd = beforehand_open("/etc/ld.so.cache");
	struct stat st;
	char *cache;
	ssize_t n;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= CACHE_MAX) {
		cache = xmalloc((size_t)st.st_size);
		n = pread(fd, cache, (size_t)st.st_size, 0);
		if (n > 0)
			beforehand_cache(cache, (unsigned long)n, found_in_cache, finding);
		free(cache);
	}
	close(fd);
}

/* ---- LD_LIBRARY_PATH of this process ------------------------------------------------------- */

static void look_in_folder(struct beforehand_finding *finding, const char *folder)
{
	static const char *const names[] = { "libcuda.so.1", "libcudart.so.*" };
	char pattern[PATH_MAX];
	glob_t files;

	if (folder[0] != '/' || strpbrk(folder, "*?[\\"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (snprintf(pattern, sizeof(pattern), "%s/%s", folder, names[i]) >=
		            (int)sizeof(pattern) ||
		    roots_path_glob(pattern, &files))
			continue;
		for (size_t k = 0; k < files.gl_pathc; k++)
			found(finding, files.gl_pathv[k]);
		globfree(&files);
	}
}

static void look_in_folders(struct beforehand_finding *finding, const char *list)
{
	char *copy = xstrdup(list), *rest = copy;
	const char *folder;

	while ((folder = strsep(&rest, ":")))
		look_in_folder(finding, folder);
	free(copy);
}

/* ---- processes ----------------------------------------------------------------------------- */

struct beforehand_process {
	struct beforehand_finding *finding;
	pid_t pid;
};

static int look_at_mapping(const struct mapping *mapping, void *data)
{
	const struct beforehand_process *process = data;
	const char *slash = strrchr(mapping->path, '/');
	struct stat st;
	int fd;

	if (!slash || !is_cuda_name(slash + 1) || process->finding->n >= FILES_MAX)
		return 0;
	fd = mapping_open(process->pid, mapping, NULL);
	if (fd < 0)
		return 0;
	if (file_stat(fd, &st) == 0 && is_roots(&st)) {
		process->finding->n++;
		process->finding->each(process->finding->data, fd, mapping->path);
	} else {
		close(fd);
	}
	return 0;
}

static void look_at_processes(struct beforehand_finding *finding)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		struct beforehand_process process = { finding, atoi(entry->d_name) };

		if (isdigit((unsigned char)entry->d_name[0]) && process.pid != getpid())
			maps_each(process.pid, look_at_mapping, &process, NULL);
	}
	if (proc)
		closedir(proc);
}

void beforehand_each(bool running, void (*each)(void *data, int fd, const char *path), void *data)
{
	struct beforehand_finding finding = { .each = each, .data = data };
	const char *folders = getenv("LD_LIBRARY_PATH");

	look_in_cache(&finding);
	libraries_system_each(found, &finding);
	if (folders)
		look_in_folders(&finding, folders);
	if (running)
		look_at_processes(&finding);
}
