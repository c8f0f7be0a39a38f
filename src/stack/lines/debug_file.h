/* SPDX-License-Identifier: MIT */
/*
 * Where the debug information of a file is that has none itself: by its build id
 * (/usr/lib/debug/.build-id/ab/cdef.debug), or by the name in its .gnu_debuglink beside it, in
 * .debug beside it, and below /usr/lib/debug. Only what root alone can change is taken
 * (probe/mounts.h), on every part of the way, and of that only regular files that everybody may
 * read; never a file in a target's own root. Last, where DEBUGINFOD_URLS is set for cuscope, what
 * debuginfod's client has fetched before for its user.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUG_LINK_BYTES 4096 /* of the sections that are looked into */
#define DEBUG_ID_MAX     64   /* bytes of a build id */

/* Of a file; *debug and *alt (what dwz moved out of several) are -1 where there is none. */
struct debug_files {
	int debug, alt; /* by path only (O_PATH) */
	uint32_t crc;   /* that the file says `debug` has; 0 where it was found by build id */
	bool lacking;   /* there is neither `debug`, nor debug information in the file itself */
	bool packed;    /* it has symbols beside its tables of them: .gnu_debugdata */
	uint8_t alt_id[DEBUG_ID_MAX]; /* of `alt`, whether it was found or not */
	size_t alt_id_bytes;          /* 0: none is named */
};

/* `fd`: of a file that is mapped somewhere; `id`: its build id; `path`: its name there. */
void debug_files_find(int fd, const uint8_t *id, size_t id_bytes, const char *path,
                      struct debug_files *found);

/* A debug file that was fetched meanwhile, by path only, which becomes theirs: and its `alt`. */
void debug_files_take(struct debug_files *found, int debug);

/* By path only: what debuginfod's client has fetched before; -1: nothing, or it is another's. */
int debug_file_cached(const uint8_t *id, size_t bytes);

/* Where that client keeps it, which the caller frees; NULL: DEBUGINFOD_URLS is not set. */
char *debug_file_cache(void);

/* Whether a file, by path only, has that build id. */
bool debug_file_is_of(int path_fd, const uint8_t *id, size_t id_bytes);

/* False where it is too short or too long to be one. */
bool debug_file_hex(const uint8_t *id, size_t bytes, char hex[2 * DEBUG_ID_MAX + 1]);

/*
 * By build id, to be read, for what reads files of root's without libdw; -1: there is none. Of this
 * machine: the build id tells that it is of the same file, whichever container that is in.
 */
int debug_file_open(const uint8_t *id, size_t bytes);

/*
 * The contents of the sections .gnu_debuglink: a name without a folder, and a sum; and of
 * .gnu_debugaltlink: a path, and a build id. False where they are not that. Texts are in `section`.
 */
bool debug_link_read(const char *section, size_t bytes, const char **name, uint32_t *crc);
bool debug_alt_link_read(const char *section, size_t bytes, const char **path, const uint8_t **id,
                         size_t *id_bytes);
