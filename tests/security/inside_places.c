// SPDX-License-Identifier: MIT
/* What a lying agent offers as memory for code, and whether anything else was changed. */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES       (64 * 4096ul)
#define RANGES_MOST 4096

uint64_t seed = 1;

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "inside: %s: %s\n", what, strerror(errno));
	_exit(3);
}

uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* ---- places for code ------------------------------------------------------------------------- */

static uint8_t *file_of_zeroes(int flags)
{
	int fd = memfd_create("zeroes", MFD_CLOEXEC);
	uint8_t *at;

	if (ftruncate(fd, 16 << 20))
		fail("ftruncate");
	at = mmap(NULL, BYTES, PROT_READ | PROT_EXEC, flags, fd, 0);
	close(fd);
	return at;
}

static uint8_t *map(uint64_t near, size_t bytes, int protection, int flags)
{
	uint64_t at = ((near - (256ul << 20)) & ~4095ul) - (any() % 256) * (1ul << 20);

	return mmap((void *)(uintptr_t)at, bytes, protection,
	            flags | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static uint64_t honest(uint64_t near, uint32_t bytes)
{
	return (uint64_t)(uintptr_t)map(near, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE);
}

static uint64_t full(uint64_t near, uint32_t bytes)
{
	uint8_t *at = map(near, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	memset(at, 0xcc, bytes);
	mprotect(at, bytes, PROT_READ | PROT_EXEC);
	return (uint64_t)(uintptr_t)at;
}

static uint64_t writable(uint64_t near, uint32_t bytes)
{
	return (uint64_t)(uintptr_t)map(near, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
	                                MAP_PRIVATE);
}

static uint64_t data(uint64_t near, uint32_t bytes)
{
	return (uint64_t)(uintptr_t)map(near, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static uint64_t shared_memory(uint64_t near, uint32_t bytes)
{
	return (uint64_t)(uintptr_t)map(near, bytes, PROT_READ | PROT_EXEC, MAP_SHARED);
}

static uint64_t a_file(uint64_t near, uint32_t bytes)
{
	uint8_t *to = map(near, BYTES, PROT_READ, MAP_PRIVATE), *at = file_of_zeroes(MAP_PRIVATE);

	if (mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
		fail("mremap");
	return (uint64_t)(uintptr_t)to;
}

static uint64_t too_short(uint64_t near, uint32_t bytes)
{
	return (uint64_t)(uintptr_t)map(near, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE);
}

static uint64_t not_a_page(uint64_t near, uint32_t bytes)
{
	return honest(near, bytes + 4096) + 8;
}

static uint64_t the_end(uint64_t near, uint32_t bytes)
{
	return USERS_END - 4096;
}

static uint64_t the_kernel(uint64_t near, uint32_t bytes)
{
	return ~0ull << 47;
}

static uint64_t nowhere(uint64_t near, uint32_t bytes)
{
	return (near - (700ul << 20)) & ~4095ul;
}

static uint64_t the_vdso(uint64_t near, uint32_t bytes)
{
	return getauxval(AT_SYSINFO_EHDR);
}

/* Code of a library that lies near, as libcuda does. */
static uint64_t the_library(uint64_t near, uint32_t bytes)
{
	return near & ~4095ul;
}

static uint64_t libc(uint64_t near, uint32_t bytes)
{
	return (uint64_t)(uintptr_t)&memcpy & ~4095ul;
}

/* The same for each that asks. */
static uint64_t one_for_all(uint64_t near, uint32_t bytes)
{
	static uint64_t at;

	if (!at)
		at = honest(near, BYTES);
	return at;
}

/* It is gone, or another, by the time that it is used. */
static uint64_t fleeting(uint64_t near, uint32_t bytes)
{
	uint64_t at = honest(near, bytes);

	munmap((void *)(uintptr_t)at, bytes);
	return at;
}

static const struct place places[] = {
	{ "honest", honest, true },         { "full", full, false },
	{ "writable", writable, false },    { "data", data, false },
	{ "shared", shared_memory, false }, { "file", a_file, false },
	{ "short", too_short, false },      { "unaligned", not_a_page, true },
	{ "end", the_end, false },          { "kernel", the_kernel, false },
	{ "nowhere", nowhere, false },      { "vdso", the_vdso, false },
	{ "library", the_library, false },  { "libc", libc, false },
	{ "one", one_for_all, true },       { "fleeting", fleeting, true },
};

const struct place *place_find(const char *name)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (!strcmp(places[i].name, name))
			return &places[i];
	return NULL;
}

const struct place *place_at(size_t i)
{
	return &places[i];
}

size_t places_count(void)
{
	return sizeof(places) / sizeof(*places);
}

/* ---- what is its own ------------------------------------------------------------------------- */

static struct range {
	uint64_t start, end, sum;
} ranges[RANGES_MOST];
static size_t n_ranges;

static uint64_t sum_of(const struct range *range)
{
	static uint64_t words[512];
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	uint64_t sum = 0;

	for (uint64_t at = range->start; at < range->end; at += sizeof(words)) {
		if (pread(memory, words, sizeof(words), (off_t)at) != sizeof(words))
			continue;
		for (size_t i = 0; i < 512; i++)
			sum = sum * 1099511628211u + words[i];
	}
	close(memory);
	return sum;
}

/* Without those that programs write themselves: only what may be executed, or not be written. */
void ranges_remember(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], may[8];

	n_ranges = 0;
	while (maps && n_ranges < RANGES_MOST && fgets(line, sizeof(line), maps)) {
		struct range *range = &ranges[n_ranges];

		if (sscanf(line, "%lx-%lx %7s", &range->start, &range->end, may) != 3 ||
		    may[1] == 'w' || may[0] != 'r' || strstr(line, "[v") ||
		    range->end > USERS_END || strstr(line, "libcuda.so"))
			continue;
		range->sum = sum_of(range);
		n_ranges++;
	}
	fclose(maps);
}

void ranges_compare(uint64_t but)
{
	for (size_t i = 0; i < n_ranges; i++) {
		const struct range *range = &ranges[i];

		if ((range->start <= but && but < range->end) || sum_of(range) == range->sum)
			continue;
		fprintf(stderr, "inside: memory at %lx was changed\n", range->start);
		_exit(4);
	}
}

/* A breakpoint is the kernel's. */
static size_t count_changes(const uint8_t *memory, const uint8_t *file, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += memory[i] != file[i] && memory[i] != 0xcc;
	return n;
}

static size_t changes_of_library(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end, offset;
	char line[512], may[8], path[256];
	size_t n = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		uint8_t *file;
		int fd;

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, may, &offset,
		           path) != 5 ||
		    may[2] != 'x' || !strstr(path, "libcuda.so"))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		file = mmap(NULL, end - start, PROT_READ, MAP_PRIVATE, fd, (off_t)offset);
		if (file == MAP_FAILED)
			fail(path);
		n += count_changes((const uint8_t *)(uintptr_t)start, file, end - start);
		munmap(file, end - start);
		close(fd);
	}
	fclose(maps);
	return n;
}

void library_compare(void)
{
	for (int i = 0; i < 2000; i++) {
		if (!changes_of_library())
			return;
		usleep(10000);
	}
	fprintf(stderr, "inside: libcuda was not put back\n");
	_exit(5);
}
