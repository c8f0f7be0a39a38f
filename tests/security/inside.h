/* SPDX-License-Identifier: MIT */
/* Memory that a lying agent offers for code, and what of its memory is to stay as it is. */
#ifndef CUSCOPE_TESTS_INSIDE_H
#define CUSCOPE_TESTS_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USERS_END (1ull << 47)

extern uint64_t seed;
uint64_t any(void);

_Noreturn void fail(const char *what);

struct place {
	const char *name;
	uint64_t (*at)(uint64_t near, uint32_t bytes);
	bool earnest; /* it may be written */
};

const struct place *place_find(const char *name);
const struct place *place_at(size_t i); /* the first one is the honest one */
size_t places_count(void);

/* All that is mapped and that it does not write itself, but for libcuda. */
void ranges_remember(void);

/* Ends the program where any has changed, but for the one that `but` is in. */
void ranges_compare(uint64_t but);

/* Waits until libcuda's code is its file's again, but for breakpoints. Ends the program if it is
 * not in a while. */
void library_compare(void);

#endif
