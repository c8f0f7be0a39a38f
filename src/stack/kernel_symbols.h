/* SPDX-License-Identifier: MIT */
/* Functions of the running kernel and its modules by address, from /proc/kallsyms, read once. */
#ifndef CUSCOPE_STACK_KERNEL_SYMBOLS_H
#define CUSCOPE_STACK_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

#endif
