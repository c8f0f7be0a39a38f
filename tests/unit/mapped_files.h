/* SPDX-License-Identifier: MIT */
/* Copies of a library, to be mapped, written over and taken away while somebody looks. */
#ifndef CUSCOPE_TESTS_MAPPED_FILES_H
#define CUSCOPE_TESTS_MAPPED_FILES_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/maps.h"

#define FIRST_PAGES (16u << 12) /* of a file, that are mapped */

struct mapped_file {
	char path[64];
	void *at;
	struct mapping mapping; /* as /proc tells it */
};

struct mapped_search {
	uint64_t start;
	const char *part; /* of the path; NULL: by start */
	struct mapping found;
	char path[256];
};

static int mapped_take(const struct mapping *mapping, void *data)
{
	struct mapped_search *search = data;

	if (search->part ? !strstr(mapping->path, search->part) : mapping->start != search->start)
		return 0;
	search->found = *mapping;
	snprintf(search->path, sizeof(search->path), "%s", mapping->path);
	return 1;
}

/* A mapping of this process, whose path stays until the next search. */
static struct mapping mapped_find(uint64_t start, const char *part)
{
	static struct mapped_search search;

	search = (struct mapped_search){ .start = start, .part = part };
	assert_int_equal(maps_each_code(getpid(), mapped_take, &search, NULL), 1);
	search.found.path = search.path;
	return search.found;
}

static void mapped_copy(const char *from, int to)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	char bytes[65536];
	ssize_t n;

	assert_true(fd >= 0);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)n), n);
	close(fd);
}

/* A file of these bytes, or of another's, mapped from its begin on. */
static void mapped_new(struct mapped_file *file, const char *from, const void *bytes, size_t n)
{
	int fd;

	snprintf(file->path, sizeof(file->path), "/tmp/cuscope-unit-XXXXXX");
	fd = mkstemp(file->path);
	assert_true(fd >= 0);
	if (from)
		mapped_copy(from, fd);
	else
		assert_int_equal(write(fd, bytes, n), n);
	file->at = mmap(NULL, FIRST_PAGES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(file->at, MAP_FAILED);
	close(fd);
	file->mapping = mapped_find((uintptr_t)file->at, NULL);
	file->mapping.path = file->path;
}

/* A copy of the C library. Its rows take some 200 KB. */
static inline void mapped_begin(struct mapped_file *file)
{
	struct mapping libc = mapped_find(0, "libc.so");

	mapped_new(file, libc.path, NULL, 0);
}

static void mapped_end(struct mapped_file *file)
{
	munmap(file->at, FIRST_PAGES);
	unlink(file->path);
}

#endif
