/* SPDX-License-Identifier: MIT */
/* How many elements an array has. Of a pointer it would be a lie, which gcc's -Wsizeof-pointer-div
 * tells. */
#ifndef CUSCOPE_BASE_ARRAY_H
#define CUSCOPE_BASE_ARRAY_H

#ifndef ARRAY_SIZE /* libiberty.h has the same */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

#endif
