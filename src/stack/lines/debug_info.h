/* SPDX-License-Identifier: MIT */
/*
 * The debug information of one file, by libdw: which functions and lines an offset of it is of.
 *
 * libdw is not written for files that lie, and this is for no process that has rights: see
 * reader.h. Nothing here has a bound of its own but those that the process has.
 */
#pragma once

#include "stack/lines/reader.h"

struct debug_info;

struct debug_info_files {
	int main, debug, alt; /* -1: there is none */
	uint32_t crc;         /* of debug, where neither has a build id */
};

/* Which libdw; NULL: cuscope was built without. */
const char *debug_info_version(void);

/* Takes the descriptors. NULL where nothing can be told of the file. */
struct debug_info *debug_info_open(const struct debug_info_files *files);

/*
 * Texts of the answer are good until the next call. `named`: the function is known by a symbol of
 * the file, so its symbols, which may be half a million, are not listed for it.
 */
void debug_info_find(struct debug_info *info, uint64_t offset, bool named,
                     struct lines_answer *answer);
