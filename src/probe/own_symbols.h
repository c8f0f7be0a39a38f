/* SPDX-License-Identifier: MIT */
/* The kernel's functions by name, and whether kprobes can be put there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct own_symbol {
	const char *name, *module; /* "vmlinux" of the kernel itself */
	bool traceable;            /* or that cannot be found out */
	bool forbidden;            /* the kernel lets nobody probe it */
};

struct own_symbols;

/* Reads /proc/kallsyms and what tracefs and debugfs say; NULL where that is not allowed. */
struct own_symbols *own_symbols_new(void);
void own_symbols_free(struct own_symbols *symbols);

size_t own_symbols_list(const struct own_symbols *symbols, const struct own_symbol **list);

/* Which lists of the kernel could not be read, in a sentence; NULL: none. Static. */
const char *own_symbols_unread(const struct own_symbols *symbols);

/* Why this kernel has no kprobes at all; NULL: it has. Static. */
const char *own_symbols_refused(void);

/* "nvidia-uvm" and "nvidia_uvm" are one. */
bool own_symbols_is_module(const char *wanted, const char *module);
bool own_symbols_is_loaded(const char *module);
