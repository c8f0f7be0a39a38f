/* SPDX-License-Identifier: MIT */
/*
 * Names of kernels and functions as people read them, whatever they are.
 *
 * Programs choose their names, and a demangler's work doubles with each eleven letters more that
 * stand for two of what stands before them: with nothing printed, so that a limit of what is
 * printed stops nothing. So cuscope itself demangles those names only in which nothing stands for
 * something else. All others a process without rights reads (rights.h), one after the other. It
 * may take PLAIN_NAME_MS of a processor for each, and each user has an account of that
 * (account.h). What is not read within these stays as the linker has it.
 *
 * That costs two switches of process, some 20 us; callers keep what they have read. The process is
 * made, by the one that makes helpers (helper.h), when the first such name comes; without
 * helper_begin, and in a process that was forked since, such names are not read. On any thread.
 */
#pragma once

#include <stdint.h>

#define PLAIN_NAME_MS 20 /* a name of 1 KiB, the longest that is read whole, takes 1 ms */

/*
 * As kernel_name_demangle() and function_name_demangle() have it. `person`: whose name it is, and
 * who has to answer for the time (person.h). The caller frees the result, which may hold any bytes:
 * see text.h before it is shown.
 */
char *plain_kernel_name(const char *mangled, uint64_t person);
char *plain_function_name(const char *linked, uint64_t person);

/* Processes that ended over a name, ever. */
struct plain_name_ends {
	uint64_t late;    /* its time ran out, or the machine did not let it run */
	uint64_t crashed; /* it ended without a word */
};

struct plain_name_ends plain_name_ends(void);

/* Names of functions as their authors wrote them. */

/*
 * "leaky::Model::grow_cache(int)" for "_ZN5leaky5Model10grow_cacheEi". Rust's names, old and new,
 * lose the hash at their end. What compilers split off or fitted to its callers (".cold",
 * ".constprop.0") gets the name of the whole function. A name that is not mangled stays as it is,
 * and one that is longer than TEXT_NAME_MAX is cut. The caller frees the result. It may hold any
 * bytes: see text.h before it is shown.
 *
 * A name of 300 bytes can make this take hours: names of programs are read by plain_name.h.
 */
char *function_name_demangle(const char *linked);
