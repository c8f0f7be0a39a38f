/* SPDX-License-Identifier: MIT */
/* What every unit test includes: cmocka with the headers that it wants before it. */
#ifndef CUSCOPE_TESTS_UNIT_H
#define CUSCOPE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Ends a test that this machine has not what it takes for: run.sh tells the reason. */
#define SKIP(...)                                                                                  \
	do {                                                                                       \
		print_message(__VA_ARGS__);                                                        \
		print_message("\n");                                                               \
		skip();                                                                            \
	} while (0)
#define NEEDS_ROOT "it needs root"

#endif
