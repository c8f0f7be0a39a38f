/* SPDX-License-Identifier: MIT */
/* The symbol that stands at a place of an ELF file. */
#ifndef CUSCOPE_PROBE_SYMBOL_H
#define CUSCOPE_PROBE_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the name of the function that covers file offset `offset` into `name` (".symtab" first,
 * then ".dynsym"); an empty string where there is none or the file cannot be read.
 */
void symbol_at(int fd, uint64_t offset, char *name, size_t size);

#endif
