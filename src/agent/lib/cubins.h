/* SPDX-License-Identifier: MIT */
/*
 * Source lines of instructions: of modules that are loaded while we are here, copies are kept of
 * those with line information, as many as there is room for, and CUPTI looks the lines up in them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUBINS_PATH 512

void cubins_open(void *library); /* CUPTI */

/* A module was loaded; on any thread. */
void cubins_loaded(const void *cubin, size_t bytes);

/*
 * The line of an instruction, of a cubin with that CRC. False: it is not known, or too many were
 * asked for since cubins_turn(): the next time, then. To be used by one thread.
 */
bool cubins_line(uint64_t crc, const char *function, uint64_t offset, char path[CUBINS_PATH],
                 uint32_t *line);
void cubins_turn(void);

void cubins_close(void); /* nothing is kept any more */
void cubins_forked(void);
