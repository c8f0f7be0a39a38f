// SPDX-License-Identifier: MIT
#include "probe/patched.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/maps.h"
#include "probe/memory.h"

#define WINDOW       65536u /* what is read of a process at a time */
#define MAPPINGS_MAX 64     /* of the file, in one process */

/* Of x86-64; elsewhere probes lie on the entry, with nothing before them. */
#define JUMP       0xe9
#define JUMP_BYTES 5 /* with 32 bits of distance */
#define NOP        0x90

/* ---- is it the file's code ------------------------------------------------------------------ */

/* Whether a kernel's or a debugger's breakpoint stands there; *bytes is how long one is. */
static bool is_breakpoint(const uint8_t *code, size_t left, size_t *bytes)
{
#if defined(__aarch64__)
	*bytes = 4;
	return left >= 4 && code[3] == 0xd4 && (code[2] & 0xe0) == 0x20 && !(code[0] & 0x1f);
#else
	*bytes = 1;
	return left && code[0] == 0xcc;
#endif
}

/* The first byte that differs, from `at` on. */
static size_t first_other(const uint8_t *its, const uint8_t *files, size_t at, size_t bytes)
{
	size_t skip;

	while (at < bytes) {
		if (its[at] == files[at])
			at++;
		else if (is_breakpoint(its + at, bytes - at, &skip))
			at += skip;
		else
			break;
	}
	return at;
}

/*
 * A whole jump that ends before the probe, and nops up to the next instruction: whoever comes back
 * does so to an instruction. This is what recording inside puts there where the probe lies so far
 * behind the entry.
 */
static size_t behind_jump(const uint8_t *its, const uint8_t *files, size_t at, size_t probe)
{
	if (at + JUMP_BYTES > probe || its[at] != JUMP)
		return at;
	for (at += JUMP_BYTES; at < probe && its[at] != files[at] && its[at] == NOP; at++)
		;
	return at;
}

static bool is_patched(const struct patch_point *point, const uint8_t *its, const uint8_t *files)
{
	size_t bytes = point->bytes < PATCH_BYTES ? point->bytes : PATCH_BYTES;
	size_t other = first_other(its, files, 0, bytes);

	if (other < bytes)
		other = behind_jump(its, files, other, point->probe);
	return first_other(its, files, other, bytes) < bytes;
}

static bool has_jump(const struct patch_point *point, const uint8_t *its, const uint8_t *files)
{
	size_t bytes = point->bytes < PATCH_BYTES ? point->bytes : PATCH_BYTES;
	size_t other = first_other(its, files, 0, bytes);

	return other < bytes && behind_jump(its, files, other, point->probe) > other;
}

/* ---- one process ---------------------------------------------------------------------------- */

struct patched_search {
	int fd;
	struct stat st;
	pid_t pid; /* that is looked at */
	struct mapping mapping[MAPPINGS_MAX];
	size_t n_mappings;
	struct patch_point *points;
	size_t n;
	bool (*wants)(void *data, pid_t pid);
	void *data;
	bool (*finds)(const struct patch_point *point, const uint8_t *its, const uint8_t *files);
	/* what is at hand of this process' code, and of the file's */
	uint64_t at, page; /* the second: how large one is */
	size_t have;
	uint8_t its[WINDOW], files[WINDOW];
};

/*
 * Devices differ in maps and stat for some file systems, and so do two overlays on one file, which
 * have its probes together.
 */
static bool is_of_file(const struct patched_search *search, const struct mapping *mapping)
{
	uint64_t differs = mapping->inode ^ (uint64_t)search->st.st_ino;
	struct stat st;
	bool same;
	int fd;

	if (mapping->dev == search->st.st_dev)
		return !differs;
	if (differs << 16) /* overlayfs puts the number of a layer above */
		return false;
	fd = mapping_open(search->pid, mapping, NULL);
	if (fd < 0)
		return true;
	same = !file_stat(fd, &st) && st.st_size == search->st.st_size &&
	       st.st_mtim.tv_sec == search->st.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == search->st.st_mtim.tv_nsec;
	close(fd);
	return same;
}

static int note_mapping(const struct mapping *mapping, void *data)
{
	struct patched_search *search = data;

	if (!is_of_file(search, mapping))
		return 0;
	search->mapping[search->n_mappings++] = *mapping;
	return search->n_mappings == MAPPINGS_MAX;
}

static void note_mappings(struct patched_search *search, pid_t pid)
{
	struct mapping mapping[MAPPINGS_MAX];
	int n = helper_code_of(pid, search->st.st_ino, mapping, MAPPINGS_MAX);

	search->pid = pid;
	search->n_mappings = 0;
	if (n < 0 && n != -ENOENT)
		maps_each(pid, note_mapping, search, NULL);
	for (int i = 0; i < n; i++)
		note_mapping(&mapping[i], search);
}

/* Reads what is around a point; a window is never more than the mapping has. */
static bool read_window(struct patched_search *search, const struct mapping *mapping,
                        uint64_t offset, size_t bytes)
{
	uint64_t begin = offset & ~(search->page - 1), left;
	ssize_t n;

	if (search->have && offset >= search->at && offset + bytes <= search->at + search->have)
		return true;
	if (begin < mapping->offset)
		begin = mapping->offset;
	left = mapping->end - mapping->start - (begin - mapping->offset);
	search->at = begin;
	search->have = left < WINDOW ? left : WINDOW;
	n = helper_pread(search->fd, search->files, search->have, begin);
	search->have = n > 0 ? (size_t)n : 0;
	if (search->have && !memory_read(search->pid, mapping->start + (begin - mapping->offset),
	                                 search->its, search->have))
		search->have = 0;
	return search->have >= offset - begin + bytes;
}

static bool any_private(const struct patched_search *search, const uint8_t *pages, uint64_t from,
                        uint64_t to)
{
	for (uint64_t page = from / search->page; page <= (to - 1) / search->page; page++)
		if (pages[page])
			return true;
	return false;
}

/* `pages`: of this mapping, those that the process has a copy of. No other can be changed. */
static void look_at_points(struct patched_search *search, const struct mapping *mapping,
                           const uint8_t *pages, uint64_t bytes)
{
	search->have = 0;
	for (size_t i = 0; i < search->n; i++) {
		struct patch_point *point = &search->points[i];
		size_t len = point->bytes < PATCH_BYTES ? point->bytes : PATCH_BYTES;
		uint64_t into = point->entry - mapping->offset;

		if (point->pid || !len || point->entry < mapping->offset || into >= bytes ||
		    len > bytes - into || !any_private(search, pages, into, into + len) ||
		    !read_window(search, mapping, point->entry, len))
			continue;
		if (search->finds(point, search->its + (point->entry - search->at),
		                  search->files + (point->entry - search->at)))
			point->pid = search->pid;
	}
}

static void look_at_mapping(struct patched_search *search, const struct mapping *mapping)
{
	uint64_t n = (mapping->end - mapping->start) / search->page,
		 most = (uint64_t)search->st.st_size / search->page + 1;
	uint8_t *pages;

	n = n < most ? n : most; /* there is nothing behind */
	pages = xmalloc(n + 1);
	if (helper_private_pages(search->pid, mapping->start, pages, n))
		look_at_points(search, mapping, pages, n * search->page);
	free(pages);
}

static void look_at_process(struct patched_search *search, pid_t pid)
{
	note_mappings(search, pid);
	if (search->n_mappings && search->wants && !search->wants(search->data, pid))
		return;
	for (size_t i = 0; i < search->n_mappings; i++)
		look_at_mapping(search, &search->mapping[i]);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static struct patched_search *search_new(int fd, struct patch_point *points, size_t n)
{
	struct patched_search *search = xcalloc(1, sizeof(*search));

	search->fd = fd;
	search->page = (uint64_t)sysconf(_SC_PAGESIZE);
	search->points = points;
	search->n = n;
	search->finds = is_patched;
	for (size_t i = 0; i < n; i++)
		points[i].pid = 0;
	return search;
}

void patched_jumps(int fd, struct patch_point *points, size_t n, pid_t pid)
{
	struct patched_search *search = search_new(fd, points, n);

	search->finds = has_jump;
	if (n && !file_stat(fd, &search->st))
		look_at_process(search, pid);
	free(search);
}

void patched_find(int fd, struct patch_point *points, size_t n,
                  bool (*wants)(void *data, pid_t pid), void *data)
{
	struct patched_search *search = search_new(fd, points, n);
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	search->wants = wants;
	search->data = data;
	if (n && !file_stat(fd, &search->st)) {
		while (proc && (entry = readdir(proc)))
			if (isdigit((unsigned char)entry->d_name[0]))
				look_at_process(search, atoi(entry->d_name));
	}
	if (proc)
		closedir(proc);
	free(search);
}
