/* SPDX-License-Identifier: MIT */
/*
 * Makes ELF files for the tests of elf_file: by the compiler, while the test runs, since what it
 * makes is what is out there; some are then damaged on purpose. Each test program has its own
 * directory, made and removed by make_dir and remove_dir.
 */
#ifndef CUSCOPE_TESTS_ELF_BUILD_H
#define CUSCOPE_TESTS_ELF_BUILD_H

#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "probe/elf_file.h"

/* ---- making files ---------------------------------------------------------------------------- */

static char dir[] = "/tmp/test_elf_file.XXXXXX";

static inline int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static inline const char *in_dir(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *to = path[next++ % 4];

	snprintf(to, sizeof(*path), "%s/%s", dir, name);
	return to;
}

static inline void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Runs a shell command in the directory. */
__attribute__((format(printf, 1, 2))) static inline void run(const char *fmt, ...)
{
	struct buf command = { 0 };
	va_list ap;

	buf_printf(&command, "cd %s && ", dir);
	va_start(ap, fmt);
	buf_vprintf(&command, fmt, ap);
	va_end(ap);
	assert_int_equal(system(command.data), 0);
	buf_free(&command);
}

/* Exactly `len` bytes of a file, there or back. */
static inline void get(int fd, void *to, size_t len, uint64_t at)
{
	assert_int_equal(pread(fd, to, len, (off_t)at), len);
}

static inline void put(int fd, const void *from, size_t len, uint64_t at)
{
	assert_int_equal(pwrite(fd, from, len, (off_t)at), len);
}

#define LIBRARY "-shared -fPIC -nostdlib"
#define PROGRAM "-static -nostdlib -Wl,-e,start"

/* Compiles to a.out and opens that. */
static inline int build(const char *source, const char *flags)
{
	int fd;

	write_file(in_dir("a.c"), source);
	run("gcc -O1 -w -o a.out a.c %s", flags);
	fd = open(in_dir("a.out"), O_RDWR);
	assert_true(fd >= 0);
	return fd;
}

static inline int reopen(void)
{
	int fd = open(in_dir("a.out"), O_RDWR);

	assert_true(fd >= 0);
	return fd;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static inline struct elf_file *open_module(int fd, enum elf_depth depth)
{
	struct elf_file *file = NULL;
	struct err err = { 0 };
	int rc = elf_file_open(fd, "the file", depth, &file, &err);

	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
	assert_non_null(file);
	close(fd);
	return file;
}

static inline void expect_answer(int fd, enum elf_depth depth, int answer)
{
	struct elf_file *file = NULL;
	struct err err = { 0 };

	assert_int_equal(elf_file_open(fd, "the file", depth, &file, &err), answer);
	assert_null(file);
	if (answer < 0)
		assert_non_null(strstr(err.text, "the file"));
	else
		assert_string_equal(err.text, "");
	close(fd);
}

static inline const struct elf_function *find(const struct elf_file *file, const char *name)
{
	const struct elf_function *functions;
	size_t n = elf_file_functions(file, &functions);

	for (size_t i = 0; i < n; i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	return NULL;
}

/* The names, sorted by offset, with spaces between. */
static inline void expect_names(const struct elf_file *file, const char *names)
{
	const struct elf_function *functions;
	size_t n = elf_file_functions(file, &functions);
	struct buf buf = { 0 };

	buf_puts(&buf, "");
	for (size_t i = 0; i < n; i++)
		buf_printf(&buf, "%s%s", i ? " " : "", functions[i].name);
	assert_string_equal(buf.data, names);
	buf_free(&buf);
}

static inline size_t count_names(const struct elf_file *file)
{
	const struct elf_function *functions;

	return elf_file_functions(file, &functions);
}

/* ---- sources --------------------------------------------------------------------------------- */

__attribute__((unused)) static const char driver[] =
	"int cuInit(int n) { return n; }\n"
	"int cuMemAlloc(int n) { return n + 1; }\n"
	"int cuMemAlloc_v2(int n) { return n + 2; }\n"
	"int cuLaunchKernel(int n) { return n + 3; }\n"
	"int cuLaunchKernel_ptsz(int n) { return n + 4; }\n";

__attribute__((unused)) static const char runtime[] =
	"int cudaMalloc(int n) { return n; }\n"
	"int cudaLaunchKernel(int n) { return n + 1; }\n"
	"int __cudaRegisterFunction(int n) { return n + 2; }\n"
	"int cudaMemcpyAsync_ptsz(int n) { return n + 3; }\n"
	"int start(void) { return cudaMalloc(1); }\n";

/* A body that can be recognised; nobody runs it. */
__attribute__((unused)) static const char marked[] =
	"int cudaLaunchKernel(void) { return 1; }\n"
	"__asm__(\".text\\n.globl cudaMarked\\n.type cudaMarked, %function\\n\"\n"
	"\"cudaMarked: .ascii \\\"MARKED BY TEST\\\"\\n\"\n"
	"\".size cudaMarked, 14\");\n"
	"int start(void) { return 2; }\n";

/* ---- damage ---------------------------------------------------------------------------------- */

static inline void patch(int fd, size_t at, uint8_t value)
{
	put(fd, &value, 1, (off_t)at);
}

/* A .symtab, and where the headers of the two sections are in the file. */
struct tables {
	Elf64_Shdr symbols, strings;
	off_t symbols_at, strings_at;
};

static inline struct tables read_tables(int fd)
{
	struct tables tables = { 0 };
	Elf64_Ehdr header;

	get(fd, &header, sizeof(header), 0);
	for (int i = 0; i < header.e_shnum && tables.symbols.sh_type != SHT_SYMTAB; i++) {
		tables.symbols_at = (off_t)(header.e_shoff + i * sizeof(Elf64_Shdr));
		get(fd, &tables.symbols, sizeof(Elf64_Shdr), tables.symbols_at);
	}
	assert_int_equal(tables.symbols.sh_type, SHT_SYMTAB);
	tables.strings_at = (off_t)(header.e_shoff + tables.symbols.sh_link * sizeof(Elf64_Shdr));
	get(fd, &tables.strings, sizeof(Elf64_Shdr), tables.strings_at);
	return tables;
}

/* The strings of .symtab are made 20 MiB long; the file has a hole there. */
static inline void enlarge_strings_to(int fd, uint64_t bytes)
{
	struct tables tables = read_tables(fd);
	struct stat st;

	tables.strings.sh_size = bytes;
	put(fd, &tables.strings, sizeof(Elf64_Shdr), tables.strings_at);
	fstat(fd, &st);
	assert_int_equal(ftruncate(fd, st.st_size + (off_t)bytes), 0);
}

static inline void enlarge_strings(int fd)
{
	enlarge_strings_to(fd, 20 << 20);
}

/* The st_name of a symbol of .symtab. */
static inline uint32_t string_of(int fd, const char *name)
{
	struct tables tables = read_tables(fd);
	char text[64];
	Elf64_Sym symbol;

	for (off_t at = 0; at < (off_t)tables.symbols.sh_size; at += sizeof(symbol)) {
		get(fd, &symbol, sizeof(symbol), (off_t)tables.symbols.sh_offset + at);
		memset(text, 0, sizeof(text));
		/* The table may end sooner than that, and the file with it. */
		if (pread(fd, text, sizeof(text) - 1,
		          (off_t)(tables.strings.sh_offset + symbol.st_name)) > 0 &&
		    strcmp(text, name) == 0)
			return symbol.st_name;
	}
	fail_msg("no symbol %s", name);
	return 0;
}

/* Moves the strings of .symtab to the end of the file, behind `by` zero bytes. */
static inline void shift_strings(int fd, uint32_t by)
{
	struct tables tables = read_tables(fd);
	size_t len = tables.strings.sh_size;
	char *strings = malloc(len);
	Elf64_Sym symbol;
	struct stat st;

	get(fd, strings, len, (off_t)tables.strings.sh_offset);
	fstat(fd, &st);
	put(fd, strings, len, st.st_size + by);
	free(strings);
	tables.strings.sh_offset = (uint64_t)st.st_size;
	tables.strings.sh_size += by;
	put(fd, &tables.strings, sizeof(Elf64_Shdr), tables.strings_at);
	for (off_t at = 0; at < (off_t)tables.symbols.sh_size; at += sizeof(symbol)) {
		off_t place = (off_t)tables.symbols.sh_offset + at;

		get(fd, &symbol, sizeof(symbol), place);
		symbol.st_name += symbol.st_name ? by : 0;
		put(fd, &symbol, sizeof(symbol), place);
	}
}

#endif
