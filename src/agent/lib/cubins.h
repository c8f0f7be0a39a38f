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

/*
 * A module was loaded, or a kernel of it is launched: of one that was there before we came that is
 * how we learn of it. On any thread; `module` is CUPTI's number of it.
 */
void cubins_loaded(uint32_t module, const void *cubin, size_t bytes);

/*
 * The line of an instruction, of a cubin with that CRC. False: it is not known, or too many were
 * asked for since cubins_turn(): the next time, then. To be used by one thread.
 */
bool cubins_line(uint64_t crc, const char *function, uint64_t offset, char path[CUBINS_PATH],
                 uint32_t *line);
void cubins_turn(void);

void cubins_close(void); /* nothing is kept any more */
void cubins_forked(void);
