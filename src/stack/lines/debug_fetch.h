/* SPDX-License-Identifier: MIT */
/*
 * Debug files that this machine lacks, from the servers that DEBUGINFOD_URLS names, by elfutils'
 * debuginfod-find. Only where that is set for cuscope itself: what stands in a target's environment
 * counts for nothing.
 *
 * The program talks to strangers, so it is a process without rights: no capabilities, no way to get
 * some, none of cuscope's descriptors, an environment of a few variables, a limit of time and of a
 * file's size. It is who called sudo, and fetches into the cache of that user. Where root called
 * nobody's sudo it is nobody. It fetches into memory then, a file system that nothing else can
 * reach and that is gone with cuscope. cuscope itself writes nothing.
 *
 * What comes is a stranger's file: who reads it has no rights either (reader.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUG_FETCH_MS         15000                 /* for a file */
#define DEBUG_FETCH_FILE_BYTES ((uint64_t)512 << 20) /* and all that is fetched into memory */

struct debug_fetcher;

#define DEBUG_FETCH_REFUSED                                                                        \
	"debuginfod-find is not run: others than root can change it, a folder above it, or what "  \
	"it lies on"

/* A path; NULL: it is not installed. *refused: it is there, and others than root can change it. */
const char *debug_fetch_program(bool *refused);

/* Whether DEBUGINFOD_URLS is set. */
bool debug_fetch_is_asked(void);

/* NULL, and a sentence, where it cannot be done. */
struct debug_fetcher *debug_fetcher_new(const char **why);
void debug_fetcher_free(struct debug_fetcher *fetcher); /* NULL is allowed */

/*
 * The debug file of a build id: a descriptor, or a negative errno. -ENOENT: none came; -ETIMEDOUT;
 * -ECANCELED: *stop was set; -EBADMSG: what came is of another program.
 */
int debug_fetch(struct debug_fetcher *fetcher, const uint8_t *id, size_t id_bytes, unsigned ms,
                const bool *stop);
