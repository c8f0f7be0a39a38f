/* SPDX-License-Identifier: MIT */
/*
 * The functions of one ELF file in order of address, for the question that stacks ask: which
 * function does this place of the file belong to?
 *
 * probe/elf_file.h answers it with a pass over the symbol table, which is right for the stubs of a
 * few kernels. The stacks of a training run ask for thousands of places in libraries of some
 * hundred thousand functions; so the table is read once and kept, 24 bytes a function.
 *
 * Files are those of untrusted programs and are read as elf_image.h says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Of a file with more functions than this (48 MiB) the rest of the table is not read. */
#define FUNCTION_TABLE_MAX (2u << 20)

#define BUILD_ID_MAX 64 /* bytes; longer ones are taken for none */

struct function_table;

/*
 * Reads the symbol tables of `fd`: .symtab and .dynsym. Where the file has no .symtab, that of its
 * debug file is taken if `find_debug` (may be NULL) has one. That is given the build id and returns
 * a descriptor, which is closed here, or -1. `fd` stays the caller's and is not needed afterwards.
 * A file without any symbols gives an empty table. Returns 0 or a negative errno as elf_file_open
 * does.
 */
int function_table_open(int fd, const char *what, int (*find_debug)(const uint8_t *id, size_t len),
                        struct function_table **table, struct err *err);
void function_table_free(struct function_table *table);

struct function_found {
	size_t index;        /* of the function in the table */
	const char *name;    /* as linked, "@version" taken off; owned by the table, until its names
	                      * are forgotten */
	uint64_t into_bytes; /* from the function's begin to the place */
};

/*
 * The function at an offset of the file. A symbol that has a size is believed: what lies behind
 * its end belongs to nobody. 0, or -ENOENT.
 */
int function_table_find(struct function_table *table, uint64_t offset,
                        struct function_found *found);

/* Names that were asked for are kept, 16 KiB each at most, however many functions have the same.
 * How many bytes of them were given back. */
size_t function_table_forget_names(struct function_table *table);
size_t function_table_names_bytes(const struct function_table *table);

/* The build id of the file; returns its length, 0: it has none. */
size_t function_table_build_id(const struct function_table *table, uint8_t id[BUILD_ID_MAX]);

size_t function_table_count(const struct function_table *table); /* for tests */
size_t function_table_bytes(const struct function_table *table); /* of memory, about */

/* Functions of the running kernel and its modules by address, from /proc/kallsyms, read once. */

struct kernel_symbols;

struct kernel_function {
	const char *name;
	const char *module; /* "nvidia"; NULL: the kernel itself */
	uint64_t into_bytes;
};

/*
 * Reads the whole of `from` (/proc/kallsyms; some 150,000 functions, 10 MiB). Where the kernel
 * hides addresses (kernel.kptr_restrict) all are 0, and nothing is ever found. Never NULL.
 */
struct kernel_symbols *kernel_symbols_read(FILE *from);
struct kernel_symbols *kernel_symbols_of_this_kernel(void);
void kernel_symbols_free(struct kernel_symbols *symbols);

size_t kernel_symbols_count(const struct kernel_symbols *symbols); /* for tests */

/* False where no function is known to be there. Strings live as long as the symbols. */
bool kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address,
                         struct kernel_function *function);
