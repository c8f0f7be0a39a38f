// SPDX-License-Identifier: MIT
#include "agent/lib/cubins.h"

#include "agent/lib/glibc.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/lib/clock.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/pcs_abi.h"

#define CUBINS     512
#define SEEN       4096               /* modules; of more than that some are looked through again */
#define BYTES_MOST ((size_t)64 << 20) /* of all */
#define TURN_NS    5000000 /* CUPTI takes a millisecond for a cubin, and one thousandth for a line */

struct cubin {
	uint64_t crc; /* once it was asked for */
	bool has_crc;
	size_t bytes;
	void *copy;
};

static uint32_t (*get_crc)(struct pcs_crc *given);
static uint32_t (*get_line)(struct pcs_line *given);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cubin cubins[CUBINS]; /* these three: guarded */
static size_t n_cubins, all_bytes;
static uint32_t is_open;
static uint64_t turn_ns; /* when it began */

/* Modules that were looked through, by a hash of which they are and of when cubins were opened:
 * CUPTI tells of a module at each launch of its kernels. */
static uint64_t seen[SEEN];
static uint64_t times_opened;

/* ---- line information ---------------------------------------------------------------------- */

static bool is_within(uint64_t offset, uint64_t bytes, size_t all)
{
	return offset <= all && bytes <= all - offset;
}

/* NULL: it has none. */
static const char *section_name(const char *cubin, size_t bytes, const Elf64_Shdr *names,
                                const Elf64_Shdr *section)
{
	const char *name;

	if (!is_within(names->sh_offset, names->sh_size, bytes) ||
	    section->sh_name >= names->sh_size)
		return NULL;
	name = cubin + names->sh_offset + section->sh_name;
	return memchr(name, '\0', names->sh_size - section->sh_name) ? name : NULL;
}

static bool has_lines(const char *cubin, size_t bytes)
{
	Elf64_Ehdr head;
	Elf64_Shdr names, section;

	if (bytes < sizeof(head))
		return false;
	memcpy(&head, cubin, sizeof(head));
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_shentsize != sizeof(section) || head.e_shstrndx >= head.e_shnum ||
	    !is_within(head.e_shoff, (uint64_t)head.e_shnum * sizeof(section), bytes))
		return false;
	memcpy(&names, cubin + head.e_shoff + head.e_shstrndx * sizeof(names), sizeof(names));
	for (size_t i = 0; i < head.e_shnum; i++) {
		const char *name;

		memcpy(&section, cubin + head.e_shoff + i * sizeof(section), sizeof(section));
		name = section_name(cubin, bytes, &names, &section);
		if (name && !strcmp(name, ".debug_line"))
			return true;
	}
	return false;
}

/* ---- modules ------------------------------------------------------------------------------- */

void cubins_open(void *library)
{
	get_crc = (uint32_t(*)(struct pcs_crc *))dlsym(library, "cuptiGetCubinCrc");
	get_line =
		(uint32_t(*)(struct pcs_line *))dlsym(library, "cuptiGetSassToSourceCorrelation");
	__atomic_add_fetch(&times_opened, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&is_open, get_crc && get_line, __ATOMIC_RELEASE);
}

static bool is_kept(const void *cubin, size_t bytes)
{
	for (size_t i = 0; i < n_cubins; i++) {
		if (cubins[i].bytes == bytes && !memcmp(cubins[i].copy, cubin, bytes))
			return true;
	}
	return false;
}

static void keep(const void *cubin, size_t bytes)
{
	void *copy;

	if (!__atomic_load_n(&is_open, __ATOMIC_RELAXED) || n_cubins == CUBINS ||
	    bytes > BYTES_MOST - all_bytes || is_kept(cubin, bytes))
		return;
	copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return;
	memcpy(copy, cubin, bytes);
	cubins[n_cubins] = (struct cubin){ .bytes = bytes, .copy = copy };
	__atomic_store_n(&n_cubins, n_cubins + 1, __ATOMIC_RELEASE);
	all_bytes += bytes;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* False the first time, and when others came in between. */
static bool was_seen(uint32_t module, const void *cubin, size_t bytes)
{
	uint64_t opened = __atomic_load_n(&times_opened, __ATOMIC_RELAXED);
	uint64_t hash = mix(mix(mix(opened, (uintptr_t)cubin), bytes), module) | 1;
	uint64_t *at = &seen[(hash >> 32) % SEEN];

	if (__atomic_load_n(at, __ATOMIC_RELAXED) == hash)
		return true;
	__atomic_store_n(at, hash, __ATOMIC_RELAXED);
	return false;
}

/* Nothing of CUPTI's is called here: with a call of another thread's under way that is no call that
 * is known to return. */
void cubins_loaded(uint32_t module, const void *cubin, size_t bytes)
{
	if (!__atomic_load_n(&is_open, __ATOMIC_ACQUIRE) || !cubin || bytes > BYTES_MOST ||
	    was_seen(module, cubin, bytes) || !has_lines(cubin, bytes))
		return;
	pthread_mutex_lock(&lock);
	keep(cubin, bytes);
	pthread_mutex_unlock(&lock);
}

/* ---- lines --------------------------------------------------------------------------------- */

void cubins_turn(void)
{
	turn_ns = clock_now();
}

/* By the same thread as cubins_close: copies stay where they are, and their number only grows. */
static struct cubin *find(uint64_t crc)
{
	size_t n = __atomic_load_n(&n_cubins, __ATOMIC_ACQUIRE);

	for (size_t i = 0; i < n; i++) {
		struct pcs_crc given = { .size = PCS_CRC_BYTES,
			                 .bytes = cubins[i].bytes,
			                 .cubin = cubins[i].copy };

		if (!cubins[i].has_crc) {
			cubins[i].crc = get_crc(&given) == CUPTI_OK ? given.crc : 0;
			cubins[i].has_crc = true;
		}
		if (cubins[i].crc == crc)
			return &cubins[i];
	}
	return NULL;
}

bool cubins_line(uint64_t crc, const char *function, uint64_t offset, char path[CUBINS_PATH],
                 uint32_t *line)
{
	const struct cubin *cubin;
	struct pcs_line given = { .size = PCS_LINE_BYTES, .function = function, .offset = offset };
	bool known;

	if (clock_now() - turn_ns > TURN_NS)
		return false;
	cubin = find(crc);
	if (!cubin)
		return false;
	given.cubin = cubin->copy;
	given.bytes = cubin->bytes;
	known = get_line(&given) == CUPTI_OK && given.file && *given.file && given.line;
	if (known) {
		bool whole = *given.file == '/' || !given.directory || !*given.directory;

		snprintf(path, CUBINS_PATH, "%s%s%s", whole ? "" : given.directory,
		         whole ? "" : "/", given.file);
		*line = given.line;
	}
	free(given.file); /* CUPTI leaves them to us */
	free(given.directory);
	return known;
}

/* ---- ending -------------------------------------------------------------------------------- */

void cubins_close(void)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&is_open, 0, __ATOMIC_RELAXED);
	for (size_t i = 0; i < n_cubins; i++)
		munmap(cubins[i].copy, cubins[i].bytes);
	n_cubins = all_bytes = 0;
	pthread_mutex_unlock(&lock);
}

void cubins_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	cubins_close();
}
