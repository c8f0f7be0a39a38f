/* SPDX-License-Identifier: MIT */
/*
 * Names and lines of Python functions, read from the code objects of a process when a stack first
 * shows them: code objects go, and so do processes. What is read is kept, within a budget of each
 * process and of all.
 */
#ifndef CUSCOPE_UNWIND_PYTHON_CODE_H
#define CUSCOPE_UNWIND_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/python_layout.h"

struct python_codes;

/* What a place in a Python program is called. Strings live until the process is forgotten. */
struct python_place {
	const char *function; /* the qualified name where there is one: "Model.forward" */
	const char *file;
	uint32_t line, first_line;
};

struct python_codes *python_codes_new(void);
void python_codes_free(struct python_codes *codes);

/*
 * The place of an entry of kind ENTRY_PYTHON of process `id` (struct process), whose pid is `pid`.
 * Reads the process's memory where that code object was not seen yet (memory.h: it may be given
 * up). False where it could not be read, is another one by now, or there is no room for its name.
 */
bool python_codes_find(struct python_codes *codes, const struct python_layout *layout, uint32_t id,
                       pid_t pid, const struct wire_entry *entry, struct python_place *place);

/* Nothing of this process is asked any more: what was found of it is gone. */
void python_codes_forget(struct python_codes *codes, uint32_t id);

/* Places that had no room for their names, or came when too many others had. */
uint64_t python_codes_refused(const struct python_codes *codes);

/* ---- python lines -------------------------------------------------------------------------- */

/* The line of an instruction, from the tables that code objects carry. They are the target's and
 * may hold anything: nothing outside of them is read, and time is by their length. */

/*
 * `instruction`: of 3.9 in bytes, else in units of two bytes. Where the table does not tell, the
 * first line of the function.
 */
uint32_t python_line_of(enum python_lines kind, const uint8_t *table, size_t bytes,
                        uint32_t first_line, uint32_t instruction);

#endif
