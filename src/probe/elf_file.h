/* SPDX-License-Identifier: MIT */
/*
 * The CUDA functions of one ELF file: whether it is a module at all, which of libcuda and libcudart
 * it plays, and every exported cu* and cuda* function with its place in the file.
 *
 * A file is recognised by content, not by name. A driver exports cuInit and cuLaunchKernel. A
 * runtime holds cudaLaunchKernel in .dynsym or .symtab as a defined function; an executable or
 * library with cudart linked in has it in .symtab only. Most files are no modules, so that answer
 * must be quick: .dynsym by its hash table, .symtab by one pass.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cuda/api.h"

struct elf_function {
	const char *name; /* without "@@version"; owned by the elf_file */
	const char *also; /* other names of the same code: "cuFree, cuFree_ptsz"; NULL: none */
	uint64_t offset;  /* in the file: what a uprobe wants */
	uint64_t address; /* as linked (st_value) */
	uint64_t size;    /* 0 where the symbol does not say */
	enum api_layer layer;
};

struct elf_file;

enum elf_depth {
	ELF_DYNSYM_ONLY,  /* do not read .symtab */
	ELF_SMALL_SYMTAB, /* unless it has more than a million symbols, or 16 MiB of strings */
	ELF_WHOLE,
};

/*
 * Reads `fd` (not closed, not needed afterwards). `what` names the file in sentences. Returns
 * - 0 with *file set;
 * - 1 when it is no CUDA module, with *file NULL;
 * - 2 when that could not be decided at this depth;
 * - a negative errno with a sentence when it is no readable 64-bit ELF of this machine: -ENOEXEC,
 *   -EBADMSG (corrupt), -EPROTONOSUPPORT (32-bit or another machine).
 */
int elf_file_open(int fd, const char *what, enum elf_depth depth, struct elf_file **file,
                  struct err *err);
void elf_file_free(struct elf_file *file);

/*
 * Hookable functions, sorted by offset, one for each offset. By which of several names it is called
 * cannot be seen: it goes by the shortest, but by none that cuts its arguments to 32 bits where
 * another does not.
 */
size_t elf_file_functions(const struct elf_file *file, const struct elf_function **functions);
bool elf_file_has_layer(const struct elf_file *file, enum api_layer layer);

/* The bytes of the file from `offset`, at most `len`: valid until the next call. */
const uint8_t *elf_file_bytes(const struct elf_file *file, uint64_t offset, size_t *len);
