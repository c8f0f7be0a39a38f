/* SPDX-License-Identifier: MIT */
/*
 * Where each version of CPython keeps what stacks are read from. Offsets are those of release
 * builds for 64 bits, the same on x86-64 and AArch64; up to 3.13 from the debug information of such
 * builds, 3.14 from its headers and tried on 3.14.10. Debug builds (Py_TRACE_REFS), builds without
 * the interpreter's lock and other Pythons are laid out differently and are not read.
 */
#ifndef CUSCOPE_UNWIND_PYTHON_LAYOUT_H
#define CUSCOPE_UNWIND_PYTHON_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire_stacks.h"

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
	/* in a string of one byte a character, in one of more, and in bytes */
	uint32_t ascii, wide, bytes_size, bytes;
};

/* NULL for a version that is not known. */
const struct python_layout *python_layout(unsigned minor);

#endif
