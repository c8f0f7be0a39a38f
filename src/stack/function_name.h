/* SPDX-License-Identifier: MIT */
/* Names of functions as their authors wrote them. */
#ifndef CUSCOPE_STACK_FUNCTION_NAME_H
#define CUSCOPE_STACK_FUNCTION_NAME_H

/*
 * "leaky::Model::grow_cache(int)" for "_ZN5leaky5Model10grow_cacheEi"; Rust's names, old and new,
 * without the hash at their end; what compilers split off or fitted to its callers
 * (".cold", ".constprop.0") by the name of the whole function; a name that is not mangled, or whose
 * plain form is longer than 64 KiB, as it is. The caller frees the result. It may hold any bytes:
 * text.h before it is shown.
 */
char *function_name_demangle(const char *linked);

#endif
