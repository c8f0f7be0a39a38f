/* SPDX-License-Identifier: MIT */
/* Names of functions as their authors wrote them. */
#ifndef CUSCOPE_PROBE_FUNCTION_NAME_H
#define CUSCOPE_PROBE_FUNCTION_NAME_H

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

/* As linked, without what compilers split off. The caller frees it. */
char *function_name_whole(const char *linked);

#endif
