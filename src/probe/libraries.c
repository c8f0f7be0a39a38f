// SPDX-License-Identifier: MIT
#include "probe/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/later.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "probe/account.h"
#include "probe/helper.h"
#include "probe/maps.h"
#include "probe/mounts.h"

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

/* The same without the folders of users, by ways that are root's only, whoever asks. */
static int libraries_system_each(int (*each)(void *data, const char *path), void *data)
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
	AT_END(at_end_close) int fd = beforehand_open("/etc/ld.so.cache");
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
		helper_close(fd);
	}
	return 0;
}

static void look_at_processes(struct beforehand_finding *finding)
{
	struct beforehand_process process = { .finding = finding };
	AT_END(process_list_end) DIR *processes = process_list(0);

	while (!end_is_near() && (process.pid = process_next(processes))) {
		uint64_t person = helper_person_of(process.pid), busy_ns = helper_busy_ns();

		if (process.pid == getpid() || look_time_is_over(LOOK_BEFOREHAND, person))
			continue;
		maps_each(process.pid, look_at_mapping, &process, NULL);
		look_time_charge(LOOK_BEFOREHAND, person, helper_busy_ns() - busy_ns);
	}
}

void beforehand_each(bool running, void (*each)(void *data, int fd, const char *path), void *data)
{
	struct beforehand_finding finding = { .each = each, .data = data };
	const char *list = getenv("LD_LIBRARY_PATH");

	look_in_cache(&finding);
	libraries_system_each(found, &finding);
	if (list)
		look_in_folders(&finding, list);
	if (running)
		look_at_processes(&finding);
}
