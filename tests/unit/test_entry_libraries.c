// SPDX-License-Identifier: MIT
/*
 * Entries of the libraries of this machine. All functions that they export are moved, and decoded
 * beside the original. Those that only compute are diverted in a process, and say the same as
 * before.
 */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "divert/entry_file.h"
#include "entry_compare.h"
#include "probe/elf_image.h"

#define FUNCTIONS_MAX 65536

struct library {
	struct elf_image image;
	struct entry_function *functions;
	size_t count;
	int fd;
};

static int add_function(const Elf64_Sym *symbol, void *data)
{
	struct library *library = data;

	if (library->count < FUNCTIONS_MAX && symbol->st_size)
		library->functions[library->count++] =
			(struct entry_function){ .address = symbol->st_value,
			                         .size = symbol->st_size };
	return 0;
}

static int compare_addresses(const void *left, const void *right)
{
	const struct entry_function *a = left, *b = right;

	return a->address != b->address ? (a->address < b->address ? -1 : 1)
	       : a->size != b->size     ? (a->size < b->size ? 1 : -1)
	                                : 0;
}

/* The exported functions, in order, one for each address. */
static bool library_open(struct library *library, const char *path)
{
	struct elf_symbols symbols;
	size_t kept = 0;

	memset(library, 0, sizeof(*library));
	library->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (library->fd < 0)
		return false;
	assert_int_equal(elf_image_open(&library->image, library->fd, path, NULL), 0);
	assert_int_equal(elf_symbols_dynamic(&library->image, &symbols), 0);
	library->functions = calloc(FUNCTIONS_MAX, sizeof(*library->functions));
	elf_symbols_each(&library->image, &symbols, add_function, library);
	qsort(library->functions, library->count, sizeof(*library->functions), compare_addresses);
	for (size_t i = 0; i < library->count; i++)
		if (!kept || library->functions[kept - 1].address != library->functions[i].address)
			library->functions[kept++] = library->functions[i];
	library->count = kept;
	return true;
}

static void library_close(struct library *library)
{
	elf_image_close(&library->image);
	free(library->functions);
	close(library->fd);
}

/* The code of a function and 16 bytes behind it; the caller frees it. */
static uint8_t *read_code(const struct library *library, const struct entry_function *function)
{
	uint64_t bytes = function->size + 16;
	const Elf64_Phdr *segment = elf_image_segment(&library->image, function->address, bytes);
	uint8_t *code = malloc(bytes);

	if (segment &&
	    elf_image_read(&library->image,
	                   segment->p_offset + function->address - segment->p_vaddr, code, bytes))
		return code;
	free(code);
	return NULL;
}

/* ---- all that is exported -------------------------------------------------------------------- */

/* What only the file knows (next symbols, jumps from elsewhere) can make it refuse more. */
static void move_one(const struct library *library, const struct entry_function *function)
{
	const struct entry_places places = { (1ull << 30) + 0x123000, (1ull << 30) + 0x456780 };
	struct entry_code code = {
		ABI_X86_64, NULL, NULL, function->size + 16, function->size, function->address, 0, 0
	};
	uint8_t *bytes = read_code(library, function);
	struct entry_move move;
	const char *why;

	if (!bytes)
		return;
	code.memory = code.file = bytes;
	if (entry_move(&code, &places, &move)) {
		why = entry_compare(&code, &places, &move);
		if (why)
			fail_msg("at 0x%llx: %s", (unsigned long long)function->address, why);
	} else {
		assert_int_not_equal(function->refusal, ENTRY_MOVABLE);
	}
	free(bytes);
}

static void move_all(const char *name, const char *path)
{
	size_t refused[ENTRY_REFUSALS] = { 0 };
	struct library library;

	if (!library_open(&library, path)) {
		print_message("%s: not on this machine\n", name);
		return;
	}
	assert_int_equal(entry_file_judge(library.fd, path, library.functions, library.count, NULL),
	                 0);
	for (size_t i = 0; i < library.count; i++) {
		move_one(&library, &library.functions[i]);
		refused[library.functions[i].refusal]++;
	}
	print_message("%s: %zu functions\n", name, library.count);
	for (int i = 0; i < ENTRY_REFUSALS; i++)
		if (refused[i])
			print_message("  %6zu %s\n", refused[i], entry_refusal_text(i));
	assert_true(refused[ENTRY_MOVABLE] > library.count * 3 / 4);
	library_close(&library);
}

static const char *path_of(const char *name)
{
	static char path[4096];
	void *handle = dlopen(name, RTLD_NOW);
	struct link_map *map = NULL;

	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map)
		return "/nowhere";
	snprintf(path, sizeof(path), "%s", map->l_name);
	return path;
}

static void test_exported_functions_of_libraries_are_moved_as_they_are(void **state)
{
	static const char *const names[] = { "libc.so.6", "libm.so.6", "libstdc++.so.6",
		                             "libpython3.11.so.1.0", "libsqlite3.so.0" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		move_all(names[i], path_of(names[i]));
}

/* ---- those that only compute ----------------------------------------------------------------- */

static const double inputs[] = { 0.0,   -0.0,   1.0,     -1.0,  0.5,     2.5,  -7.25, 1e-9,  1e9,
	                         1e300, 1e-300, 3.14159, -0.99, 100.125, 1e17, 0.3,   -1e-5, 42.0 };

static const char *const texts[] = { "",     "0",   "42",  "-17",   "  99x", "9223372036854775807",
	                             "0x1f", "abc", "+5 ", "1.2.10" };

enum shape { OF_DOUBLE, OF_INT, OF_TEXT };

struct pure {
	const char *library, *name;
	enum shape shape;
};

static const struct pure pures[] = {
	{ "libm.so.6", "cbrt", OF_DOUBLE },    { "libm.so.6", "asinh", OF_DOUBLE },
	{ "libm.so.6", "erf", OF_DOUBLE },     { "libm.so.6", "erfc", OF_DOUBLE },
	{ "libm.so.6", "logb", OF_DOUBLE },    { "libm.so.6", "expm1", OF_DOUBLE },
	{ "libm.so.6", "tanh", OF_DOUBLE },    { "libm.so.6", "acosh", OF_DOUBLE },
	{ "libm.so.6", "cosh", OF_DOUBLE },    { "libm.so.6", "sinh", OF_DOUBLE },
	{ "libm.so.6", "tgamma", OF_DOUBLE },  { "libm.so.6", "round", OF_DOUBLE },
	{ "libm.so.6", "sqrt", OF_DOUBLE },    { "libm.so.6", "j0", OF_DOUBLE },
	{ "libm.so.6", "y1", OF_DOUBLE },      { "libm.so.6", "fabs", OF_DOUBLE },
	{ "libm.so.6", "exp10", OF_DOUBLE },   { "libm.so.6", "significand", OF_DOUBLE },
	{ "libc.so.6", "abs", OF_INT },        { "libc.so.6", "toupper", OF_INT },
	{ "libc.so.6", "tolower", OF_INT },    { "libc.so.6", "isalpha", OF_INT },
	{ "libc.so.6", "ffs", OF_INT },        { "libc.so.6", "htonl", OF_INT },
	{ "libc.so.6", "isatty", OF_INT },     { "libc.so.6", "toascii", OF_INT },
	{ "libc.so.6", "isdigit", OF_INT },    { "libc.so.6", "isspace", OF_INT },
	{ "libc.so.6", "atoi", OF_TEXT },      { "libc.so.6", "atol", OF_TEXT },
	{ "libc.so.6", "inet_addr", OF_TEXT }, { "libc.so.6", "atoll", OF_TEXT },
	{ "libc.so.6", "a64l", OF_TEXT },      { "libc.so.6", "rpmatch", OF_TEXT },
};

/* The bits that it gives for each input, added up in order. */
static uint64_t answers(enum shape shape, void *function)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < (shape == OF_TEXT ? ARRAY_SIZE(texts) : ARRAY_SIZE(inputs)); i++) {
		uint64_t bits = 0;
		double value;

		if (shape == OF_DOUBLE) {
			value = ((double (*)(double))function)(inputs[i]);
			memcpy(&bits, &value, sizeof(bits));
		} else if (shape == OF_INT) {
			bits = (uint32_t)((int (*)(int))function)((int)i * 13 - 20);
		} else {
			bits = (uint32_t)((long (*)(const char *))function)(texts[i]);
		}
		sum = (sum ^ bits) * 0x100000001b3;
	}
	return sum;
}

static uint8_t *map_near(uint64_t address)
{
	for (uint64_t far = 1u << 24; far < 1u << 30; far += 1u << 24) {
		void *at = mmap((void *)(uintptr_t)((address - far) & ~4095ull), 4096,
		                PROT_READ | PROT_WRITE,
		                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (at != MAP_FAILED)
			return at;
	}
	return NULL;
}

/* Counts calls, and goes on in the moved code. */
static void write_slot(uint8_t *slot, const uint8_t *moved, const uint32_t *count)
{
	const uint8_t inc[] = { 0x48, 0xff, 0x05 }; /* incq count(%rip) */
	int32_t distance = (int32_t)((const uint8_t *)count - (slot + 7));

	memcpy(slot, inc, sizeof(inc));
	memcpy(slot + 3, &distance, sizeof(distance));
	distance = (int32_t)(moved - (slot + 12));
	slot[7] = 0xe9;
	memcpy(slot + 8, &distance, sizeof(distance));
}

enum child_end { SAID_THE_SAME = 10, SAID_ANOTHER, WAS_NOT_CALLED, NOT_DIVERTED };

/* In a child: diverts the function and compares. Data and code are two mappings. */
static int divert_and_compare(const struct pure *pure, const struct entry_code *code,
                              void *function)
{
	uint8_t *near = map_near(code->address), *data = map_near(code->address);
	struct entry_places places = { (uint64_t)(uintptr_t)near, (uint64_t)(uintptr_t)near + 64 };
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint64_t before = answers(pure->shape, function), after;
	struct entry_move move;

	if (!near || !data || memory < 0 || !entry_move(code, &places, &move))
		return NOT_DIVERTED;
	memcpy(near + 64, move.moved, move.moved_bytes);
	write_slot(near, near + 64, (uint32_t *)data);
	mprotect(near, 4096, PROT_READ | PROT_EXEC);
	if (pwrite(memory, move.written, move.bytes, (off_t)(code->address + move.skip)) !=
	    (ssize_t)move.bytes)
		return NOT_DIVERTED;
	after = answers(pure->shape, function);
	if (*(uint64_t *)data == 0)
		return WAS_NOT_CALLED;
	return before == after ? SAID_THE_SAME : SAID_ANOTHER;
}

/* SAID_THE_SAME, or what else became of it; 0: the machine has no such function. */
static int try_pure(const struct pure *pure)
{
	void *handle = dlopen(pure->library, RTLD_NOW);
	void *function = handle ? dlsym(handle, pure->name) : NULL;
	const ElfW(Sym) *symbol = NULL;
	struct entry_code code;
	int status = 0;
	Dl_info info;
	pid_t child;

	if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
	    ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || info.dli_saddr != function)
		return 0;
	code = (struct entry_code){ ABI_X86_64,
		                    function,
		                    function,
		                    symbol->st_size + 16,
		                    symbol->st_size,
		                    (uint64_t)(uintptr_t)function,
		                    0,
		                    0 };
	child = fork();
	if (!child) {
		alarm(10);
		_exit(divert_and_compare(pure, &code, function));
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_functions_that_only_compute_say_the_same_when_diverted(void **state)
{
	size_t same = 0, refused = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pures); i++) {
		int end = try_pure(&pures[i]);

		if (end == SAID_THE_SAME)
			same++;
		else if (end == NOT_DIVERTED)
			refused++;
		else if (end)
			fail_msg("%s: %d", pures[i].name, end);
	}
	print_message("%zu functions of %zu said the same, %zu could not be diverted\n", same,
	              ARRAY_SIZE(pures), refused);
	assert_true(same > ARRAY_SIZE(pures) / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exported_functions_of_libraries_are_moved_as_they_are),
		cmocka_unit_test(test_functions_that_only_compute_say_the_same_when_diverted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
