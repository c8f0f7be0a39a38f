/* SPDX-License-Identifier: MIT */
/* How a target makes slow_malloc.c's allocator sleep. */
#ifndef CUSCOPE_TESTS_SLOW_MALLOC_H
#define CUSCOPE_TESTS_SLOW_MALLOC_H

#define SLOW_BYTES 4243 /* that nothing else asks for */

#endif
