// SPDX-License-Identifier: MIT
/*
 * Allocates at many points whose stacks are known: before each allocation the program writes down
 * its own stack, as libgcc's unwinder sees it. The number of bytes is the number of the point, so
 * what a tracer or a debugger saw there can be laid beside it.
 *
 *   stackpoints FILE TURNS LIBRARY [WAY...]      WAY: of stackways*.cc; all but bare
 *
 * FILE: a line a point, "POINT WAY ADDRESS ...", innermost first; one less than a return address.
 * Then a line "maps", and /proc/self/maps.
 */
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>
#include <unwind.h>

#include "stackpoints.h"

#define WORDS_MAX (8u << 20)

typedef int alloc_function(unsigned long long *memory, size_t bytes);
typedef int free_function(unsigned long long memory);

static void *context;
static int (*cu_ctx_set_current)(void *context);
static alloc_function *cu_mem_alloc;
static free_function *cu_mem_free;

static uint64_t words[WORDS_MAX]; /* of each point: its number, its way's name, n, n addresses */
static std::atomic<size_t> n_words;
static std::atomic<unsigned> n_points;
static const char *volatile way_now = "constructor";

thread_local volatile sig_atomic_t busy;

/* ---- a point --------------------------------------------------------------------------------- */

struct walk {
	uint64_t address[1024];
	size_t n;
};

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *data)
{
	struct walk *walk = (struct walk *)data;
	int exact = 0;
	uint64_t address = _Unwind_GetIPInfo(context, &exact);

	if (!address || walk->n == 1024)
		return _URC_END_OF_STACK;
	if (exact && walk->n) /* the signal's frame, which is at the first byte of its function */
		walk->address[walk->n - 1]++;
	walk->address[walk->n++] = address - !exact;
	return _URC_NO_REASON;
}

static void keep(const struct walk *walk, unsigned number)
{
	size_t at = n_words.fetch_add(3 + walk->n);

	if (at + 3 + walk->n > WORDS_MAX)
		_exit(8);
	words[at] = number;
	words[at + 1] = (uintptr_t)way_now;
	words[at + 2] = walk->n;
	memcpy(&words[at + 3], walk->address, walk->n * sizeof(walk->address[0]));
}

/* A debugger stops here. */
extern "C" APART void point_is(unsigned number)
{
	asm volatile("" : : "r"(number) : "memory");
}

extern "C" APART void point(void)
{
	unsigned long long memory = 0;
	struct walk walk;
	unsigned number;

	busy = busy + 1;
	number = ++n_points;
	walk.n = 0;
	_Unwind_Backtrace(note, &walk);
	keep(&walk, number);
	point_is(number);
	if (cu_ctx_set_current(context) || cu_mem_alloc(&memory, number) || cu_mem_free(memory))
		_exit(7);
	busy = busy - 1;
}

unsigned points(void)
{
	return n_points;
}

unsigned any_number(unsigned below)
{
	static thread_local uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % below;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void write_points(FILE *file)
{
	char line[4096];
	FILE *maps;

	for (size_t at = 0; at < n_words; at += 3 + words[at + 2]) {
		fprintf(file, "%llu %s", (unsigned long long)words[at],
		        (const char *)words[at + 1]);
		for (size_t i = 0; i < words[at + 2]; i++)
			fprintf(file, " %llx", (unsigned long long)words[at + 3 + i]);
		putc('\n', file);
	}
	fputs("maps\n", file);
	maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof(line), maps))
		fputs(line, file);
	if (maps)
		fclose(maps);
}

static void open_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned);
	int (*get)(int *device, int number);
	int (*retain)(void **context, int device);
	int device;

	if (!driver)
		_exit(6);
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&get = dlsym(driver, "cuDeviceGet");
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&cu_ctx_set_current = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&cu_mem_alloc = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&cu_mem_free = dlsym(driver, "cuMemFree_v2");
	if (init(0) || get(&device, 0) || retain(&context, device))
		_exit(5);
}

__attribute__((constructor)) static void before_main(void)
{
	open_driver();
	dive(3);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 4; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc <= 4 && strcmp(name, "bare") != 0; /* which libgcc sees no further than */
}

static void go(const struct way *ways, int argc, char **argv)
{
	for (; ways->name; ways++) {
		way_now = ways->name;
		if (is_wanted(ways->name, argc, argv))
			ways->run();
	}
}

int main(int argc, char **argv)
{
	long turns = argc > 2 ? atol(argv[2]) : 10;
	FILE *file;

	if (argc > 3)
		library = argv[3];
	for (long turn = 0; turn < turns; turn++) {
		go(ways_of_calls, argc, argv);
		go(ways_of_libraries, argc, argv);
	}
	file = fopen(argc > 1 ? argv[1] : "/dev/null", "we");
	if (!file)
		return 4;
	write_points(file);
	return fclose(file) ? 3 : 0;
}
