/* SPDX-License-Identifier: MIT */
/*
 * Names and lines of Python functions, read from the code objects of a process when a stack first
 * shows them: code objects go, and so do processes. What is read is kept, within a budget of each
 * process, each user and all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire_stacks.h"
#include "trace/event.h"

/*
 * Where each version of CPython keeps what stacks are read from. Offsets are those of release
 * builds for 64 bits, the same on x86-64 and AArch64; up to 3.13 from the debug information of such
 * builds, 3.14 from its headers and tried on 3.14.10. Debug builds (Py_TRACE_REFS), builds without
 * the interpreter's lock and other Pythons are laid out differently and are not read.
 */

#define PYTHON_FIRST 9 /* 3.9 */
#define PYTHON_LAST  14

/* How a code object tells which line an instruction is of. */
enum python_lines {
	PYTHON_LNOTAB,    /* 3.9: pairs of steps, instruction and line */
	PYTHON_LINETABLE, /* 3.10: the same with lines that are none */
	PYTHON_LOCATIONS, /* 3.11 on: entries of one to a dozen bytes */
};

struct python_layout {
	unsigned minor;           /* 3.minor */
	struct wire_python frame; /* key_address and specific are the process's, 0 here */
	uint32_t key; /* in _PyRuntime: autoTSSkey; its mark of being made is 4 before */
	/* in a code object */
	uint32_t code_file, code_name, code_lines;
	uint32_t code_instructions; /* where they begin; 0: the instruction is a number already */
	enum python_lines lines;
	uint32_t ascii, wide; /* in a string of one byte a character, in one of more */
};

/* In bytes, of all versions: their number, and where they begin. */
enum { PYTHON_BYTES_SIZE = 16, PYTHON_BYTES = 32 };

/* NULL for a version that is not known. */
const struct python_layout *python_layout(unsigned minor);

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
 * The place of an entry of kind ENTRY_PYTHON of this process. Reads the process's memory where that
 * code object was not seen yet (helper.h: it may be given up). False where it could not be read, is
 * another one by now, or there is no room for its name.
 */
bool python_codes_find(struct python_codes *codes, const struct python_layout *layout,
                       const struct process *process, const struct wire_entry *entry,
                       struct python_place *place);

/* Nothing of this process is asked any more: what was found of it is gone. */
void python_codes_forget(struct python_codes *codes, uint32_t id);

/* Places that had no room for their names, or came when too many others had. */
uint64_t python_codes_refused(const struct python_codes *codes);

/* ---- python lines -------------------------------------------------------------------------- */

/*
 * The line of an instruction, from the tables that code objects carry. They are the target's and
 * may hold anything: nothing outside of them is read. A stack can have 500 code objects with tables
 * of 16 KiB, and each stack other instructions. So marks are made once, from which on a table is
 * read, and a question takes PYTHON_MARK_BYTES and one entry.
 */

#define PYTHON_MARK_BYTES 256

/* Before an entry: where its code begins, and the line until then. */
struct python_line_mark {
	uint32_t at; /* in the table */
	uint64_t begin;
	int64_t line;
};

struct python_line_table {
	enum python_lines kind;
	const uint8_t *table;
	size_t bytes;
	uint32_t first_line; /* of the function */
	const struct python_line_mark *marks;
	size_t n_marks; /* 0: it is read from its begin */
};

/* Fills up to one for each PYTHON_MARK_BYTES that the table has, or begins; returns how many. */
size_t python_line_marks(const struct python_line_table *lines, struct python_line_mark *marks);

/*
 * `instruction`: of 3.9 in bytes, else in units of two bytes. Where the table does not tell, the
 * first line of the function.
 */
uint32_t python_line_of(const struct python_line_table *lines, uint32_t instruction);
