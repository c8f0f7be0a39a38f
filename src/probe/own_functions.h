/* SPDX-License-Identifier: MIT */
/*
 * The functions and markers of one ELF file that hooks of users name. The file is chosen by its
 * name, and may be no CUDA library at all.
 */
#pragma once

#include "hooks/hook_list.h"

struct own_function {
	char *name;
	size_t spec; /* which of the list asks for it */
	uint64_t offset, address, size;
	uint32_t skip;         /* where the probe is cheap: placement.h */
	uint8_t length;        /* of the instruction there */
	bool cheap;            /* the kernel emulates the instruction there */
	uint64_t counter;      /* of a marker: where in the file it is turned on; 0: it always is */
	char *arguments;       /* of a marker; NULL: it is a function */
	const char *no_return; /* why its return cannot be probed (selection.h); NULL: it can */
};

struct own_functions {
	struct own_function *list; /* in order of the file, one for each place */
	size_t n;
	size_t *matches; /* of each hook of the list; above the limit, none of them is in it */
	char **near;     /* of each that matches nothing: the nearest name, or NULL */
	struct own_taken {
		size_t places;
		size_t by; /* which of the list has the first of them */
	} * taken;         /* of each: its places that an earlier hook has */
	size_t n_specs;
};

/* Whether a hook of the list is for files of this name; "libx.so" is for libx.so.1.2, too. */
bool own_functions_wanted(const struct hook_list *hooks, const char *path);
bool own_functions_is_module(const struct hook_spec *spec, const char *path);

/*
 * What outputs call a function: of C++ its name with its namespaces, "at::_ops::mm::call", without
 * parameters and template arguments. `person`: whose file it is in, as plain_name.h has it. The
 * caller frees it.
 */
char *own_function_shown(const char *symbol, uint64_t person);

/*
 * Reads `fd`, which stays the caller's. 0, or a negative errno as elf_file_open() has it; -ETIME
 * where that takes more of the processor's time than `cpu_ns`: a file of a target can have any
 * number of symbols.
 */
int own_functions_read(int fd, const char *path, const struct hook_list *hooks, uint64_t cpu_ns,
                       struct own_functions *functions, struct err *err);
void own_functions_free(struct own_functions *functions);

/* Functions that a glob may stand for. */
size_t own_functions_limit(const struct hook_list *hooks);
