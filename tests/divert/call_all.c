// SPDX-License-Identifier: MIT
/*
 * call_all LIBRARY: every CUDA function of a library is diverted and called with arguments of zero,
 * each in a process of its own, and beside it as it was: both return the same, or end by the same
 * signal. Without a GPU nearly all say that there is none. At last all functions are diverted in
 * one process, and put back: the code is then that of the file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "divert/entry_move.h"
#include "probe/elf_file.h"
#include "probe/placement.h"

#define EACH    256 /* bytes of moved code, pad and thunk */
#define PAD     128 /* of these, where the pad is, */
#define THUNK   192 /* and the thunk */
#define SECONDS 10
#define NO_CALL 99

struct diverted {
	const struct elf_function *function;
	struct entry_move move;
	uint64_t address;
	bool can;
};

struct library {
	const struct elf_function *functions;
	size_t count;
	uint64_t base;
	uint8_t *code;   /* slots and moved code */
	uint64_t *calls; /* of each function */
	struct diverted *diverted;
	int memory; /* /proc/self/mem, which is of the process that opened it */
};

static void fail(const char *what)
{
	fprintf(stderr, "call_all: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint8_t *map_near(uint64_t address, size_t bytes)
{
	for (uint64_t far = 1u << 24; far < 1u << 30; far += 1u << 24) {
		void *at = mmap((void *)(uintptr_t)((address - far) & ~4095ull), bytes,
		                PROT_READ | PROT_WRITE,
		                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (at != MAP_FAILED)
			return at;
	}
	fail("no room near the library");
	return NULL;
}

/* A thunk counts the call and goes on in the moved code. */
static void write_thunk(struct library *library, size_t i)
{
	const uint8_t inc[] = { 0x48, 0xff, 0x05 };
	uint8_t *moved = library->code + i * EACH, *thunk = moved + THUNK;
	int32_t distance = (int32_t)((uint8_t *)&library->calls[i] - (thunk + 7));

	memcpy(moved, library->diverted[i].move.moved, library->diverted[i].move.moved_bytes);
	memcpy(moved + PAD, library->diverted[i].move.pad, library->diverted[i].move.pad_bytes);
	memcpy(thunk, inc, sizeof(inc));
	memcpy(thunk + 3, &distance, sizeof(distance));
	distance = (int32_t)(moved - (thunk + 12));
	thunk[7] = 0xe9;
	memcpy(thunk + 8, &distance, sizeof(distance));
}

static void prepare(struct library *library, size_t i)
{
	struct diverted *diverted = &library->diverted[i];
	const struct elf_function *function = &library->functions[i];
	uint64_t next = i + 1 < library->count ? function[1].address - function->address : 0;
	uint64_t moved = (uint64_t)(uintptr_t)library->code + i * EACH;
	struct entry_places places = { moved + PAD, moved, moved + THUNK };
	const struct emulation emulation = { .nop5 = false };
	struct placement placement;
	struct entry_code code = { .abi = ABI_X86_64,
		                   .bytes = function->size + 16,
		                   .size = function->size,
		                   .next_start = next,
		                   .probed = true };

	diverted->function = function;
	diverted->address = code.address = library->base + function->address;
	code.memory = code.file = (const uint8_t *)(uintptr_t)code.address;
	placement_choose(code.memory, code.bytes, code.size, code.abi, &emulation, &placement);
	code.probe = placement.skip;
	diverted->can = entry_move(&code, &places, &diverted->move);
	if (diverted->can)
		write_thunk(library, i);
}

static void open_memory(struct library *library)
{
	library->memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (library->memory < 0)
		fail("/proc/self/mem");
}

static void write_entry(const struct library *library, size_t i, const uint8_t *bytes)
{
	const struct diverted *diverted = &library->diverted[i];
	const struct entry_move *move = &diverted->move;

	if (pwrite(library->memory, bytes, move->bytes, (off_t)(diverted->address + move->skip)) !=
	    (ssize_t)move->bytes)
		fail("cannot write to the code");
}

/* ---- one function ---------------------------------------------------------------------------- */

typedef int (*any_function)(long, long, long, long, long, long, long, long, long, long, long, long);

/* What registers code returns a pointer or nothing. */
static bool has_result(const char *name)
{
	return strncmp(name, "__cudaRegister", 14) != 0 &&
	       strncmp(name, "__cudaUnregister", 16) != 0;
}

/* The status of a process that calls it. */
static int call(struct library *library, size_t i, bool diverted)
{
	any_function function = (any_function)(uintptr_t)library->diverted[i].address;
	const struct rlimit no_core = { 0, 0 };
	int status = 0, result;
	pid_t child = fork();

	if (!child) {
		setrlimit(RLIMIT_CORE, &no_core);
		alarm(SECONDS);
		if (diverted) {
			open_memory(library);
			write_entry(library, i, library->diverted[i].move.written);
		}
		result = function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
		if (diverted && !library->calls[i])
			_exit(NO_CALL);
		_exit(has_result(library->functions[i].name) ? result & 63 : 0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		fail("cannot call in a process");
	return status;
}

/* 0: called alike, 1: not diverted, 2: another end. */
static int compare(struct library *library, size_t i)
{
	int before, after;

	if (!library->diverted[i].can)
		return 1;
	before = call(library, i, false);
	after = call(library, i, true);
	if (before == after)
		return 0;
	printf("%s: status 0x%x, diverted 0x%x\n", library->functions[i].name, (unsigned)before,
	       (unsigned)after);
	return 2;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* But for breakpoints of the kernel's: somebody else may have probes on this library meanwhile. */
static bool is_same(const uint8_t *file, const uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (memory[i] != file[i] && memory[i] != 0xcc)
			return false;
	return true;
}

/* Whether all code of the functions is that of the file when they were diverted and put back. */
static bool is_put_back(const struct library *library, const struct elf_file *file)
{
	bool same = true;

	for (size_t i = 0; i < library->count; i++)
		if (library->diverted[i].can)
			write_entry(library, i, library->diverted[i].move.written);
	for (size_t i = 0; i < library->count; i++) {
		const struct diverted *diverted = &library->diverted[i];
		const struct elf_function *function = diverted->function;
		size_t bytes = function->size + 16;
		const uint8_t *original = elf_file_bytes(file, function->offset, &bytes);

		if (diverted->can)
			write_entry(library, i, original + diverted->move.skip);
	}
	for (size_t i = 0; i < library->count; i++) {
		size_t bytes = library->functions[i].size;
		const uint8_t *original =
			elf_file_bytes(file, library->functions[i].offset, &bytes);

		same &= is_same(original,
		                (const uint8_t *)(uintptr_t)library->diverted[i].address, bytes);
	}
	return same;
}

static void open_library(struct library *library, const char *path, struct elf_file **file)
{
	void *handle = dlopen(path, RTLD_NOW);
	struct link_map *map = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct err err = { 0 };

	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map)) {
		fprintf(stderr, "call_all: %s\n", dlerror());
		exit(77);
	}
	if (fd < 0 || elf_file_open(fd, path, ELF_WHOLE, file, &err)) {
		fprintf(stderr, "call_all: %s\n", err.text);
		exit(2);
	}
	library->base = map->l_addr;
	library->count = elf_file_functions(*file, &library->functions);
	library->code = map_near(library->base, library->count * EACH);
	library->calls = (uint64_t *)(void *)map_near(library->base, library->count * 8);
	library->diverted = calloc(library->count, sizeof(*library->diverted));
	open_memory(library);
}

int main(int argc, char **argv)
{
	size_t ends[3] = { 0 };
	struct library library = { 0 };
	struct elf_file *file;
	bool put_back;

	if (argc != 2)
		return 2;
	open_library(&library, argv[1], &file);
	for (size_t i = 0; i < library.count; i++)
		prepare(&library, i);
	if (mprotect(library.code, library.count * EACH, PROT_READ | PROT_EXEC))
		fail("mprotect");
	for (size_t i = 0; i < library.count; i++)
		ends[compare(&library, i)]++;
	put_back = is_put_back(&library, file);
	printf("%s: %zu functions: %zu called alike, %zu not diverted, %zu otherwise; %s\n",
	       strrchr(argv[1], '/') + 1, library.count, ends[0], ends[1], ends[2],
	       put_back ? "put back" : "NOT PUT BACK");
	elf_file_free(file);
	return ends[2] || !put_back;
}
