/* SPDX-License-Identifier: MIT */
/*
 * The raw side of an ELF file: its bytes, segments and symbol tables, for elf_file.c.
 *
 * The files belong to the processes that are traced, and the reader is root. So every byte comes
 * by pread, never by mmap: a file that its owner truncates meanwhile gives a short read, where a
 * mapping would give SIGBUS. Files that somebody serves are read aside, see helper.h. Nothing in
 * the file is trusted. Each read is checked against the size of the file, memory is bounded, and so
 * is the time spent following tables. libelf reads whole sections and knows no hash tables. The few
 * structs that are needed here come from <elf.h>.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct elf_image {
	int fd;
	uint64_t bytes; /* size of the file when it was opened */
	Elf64_Phdr *segments;
	size_t n_segments;
	uint64_t sections; /* file offset of the section headers */
	size_t n_sections;
};

/*
 * Checks that `fd` is a 64-bit program or library of this machine and reads its segments. The
 * descriptor is duplicated. Returns 0 or a negative errno as elf_file_open does.
 */
int elf_image_open(struct elf_image *image, int fd, const char *what, struct err *err);
void elf_image_close(struct elf_image *image);

/* Copies exactly `len` bytes at file offset `offset`; false where the file does not hold them. */
bool elf_image_read(const struct elf_image *image, uint64_t offset, void *to, size_t len);

/* The segment that maps `len` bytes from a linked address out of the file, NULL if none does. */
const Elf64_Phdr *elf_image_segment(const struct elf_image *image, uint64_t address, uint64_t len);

/*
 * Where in the file `len` bytes from a linked address on lie, of code alone if `code`; 0 where it
 * does not hold them. And copies them.
 */
uint64_t elf_image_offset(const struct elf_image *image, uint64_t address, uint64_t len, bool code);
bool elf_image_read_linked(const struct elf_image *image, uint64_t address, void *to, size_t len,
                           bool code);

struct elf_note {
	uint32_t type;
	const char *owner, *content;
	size_t owner_bytes, bytes; /* the first with its NUL */
};

/* Takes the next note off; false: there is none, or what is there makes no sense. */
bool elf_note_next(const char **notes, size_t *bytes, struct elf_note *note);
bool elf_note_is_of(const struct elf_note *note, const char *owner);

/* The section of a name shorter than 32 bytes; false, with zeroes, where there is none. */
bool elf_image_section(const struct elf_image *image, const char *name, Elf64_Shdr *found);

/* ---- symbol tables --------------------------------------------------------------------------- */

/* One symbol table and its strings; everything in file offsets, 0 where the file has none. */
struct elf_symbols {
	uint64_t at, count; /* Elf64_Sym */
	uint64_t strings, strings_bytes;
	uint64_t gnu_hash, sysv_hash; /* .dynsym only */
};

/*
 * .dynsym as the dynamic loader finds it, through PT_DYNAMIC: tools that rewrite libraries leave
 * wrong section headers behind, and the loader does not mind. Returns 0, 1 where there is none, or
 * -EBADMSG.
 */
int elf_symbols_dynamic(const struct elf_image *image, struct elf_symbols *symbols);

/* .symtab, which only section headers know. Returns as above. */
int elf_symbols_static(const struct elf_image *image, struct elf_symbols *symbols);

/*
 * The function, or variable, of that name that the file itself defines: 1 with *found filled in
 * (may be NULL), 0, or -EBADMSG. By a hash table; without one a function is looked for by a search
 * of the strings and, only if they hold the name, of the symbols, and a variable is not.
 */
int elf_symbols_find(const struct elf_image *image, const struct elf_symbols *symbols,
                     const char *name, bool variable, Elf64_Sym *found);

/*
 * Calls `each` for every symbol that is a function defined in this file, until it returns
 * non-zero, and returns that; -EBADMSG where the table cannot be read.
 */
int elf_symbols_each(const struct elf_image *image, const struct elf_symbols *symbols,
                     int (*each)(const Elf64_Sym *symbol, void *data), void *data);
