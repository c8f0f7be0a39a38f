/* SPDX-License-Identifier: MIT */
/* The line of an instruction, from the tables that code objects carry. They are the target's and
 * may hold anything: nothing outside of them is read, and time is by their length. */
#ifndef CUSCOPE_UNWIND_PYTHON_LINES_H
#define CUSCOPE_UNWIND_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/python_layout.h"

/*
 * `instruction`: of 3.9 in bytes, else in units of two bytes. Where the table does not tell, the
 * first line of the function.
 */
uint32_t python_line_of(enum python_lines kind, const uint8_t *table, size_t bytes,
                        uint32_t first_line, uint32_t instruction);

#endif
