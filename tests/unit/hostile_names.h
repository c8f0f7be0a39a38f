/* SPDX-License-Identifier: MIT */
/* Names that a demangler does not get through: made, since none is as long as it takes. */
#ifndef CUSCOPE_TESTS_UNIT_HOSTILE_NAMES_H
#define CUSCOPE_TESTS_UNIT_HOSTILE_NAMES_H

#include "base/buf.h"

/* The number of a substitution: "S_", "S0_", ... "SZ_", "S10_". */
static inline void hostile_add_substitution(struct buf *name, unsigned number)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	buf_putc(name, 'S');
	if (number > 36)
		buf_putc(name, digits[(number - 1) / 36]);
	if (number)
		buf_putc(name, digits[(number - 1) % 36]);
	buf_putc(name, '_');
}

/* Each level has the one before it twice, in an expansion of a pack that there is none of: so
 * nothing is printed, and the work doubles. 34 levels take a quarter of an hour. */
static inline void hostile_name(struct buf *name, unsigned levels)
{
	buf_puts(name, "_Z1fDpFv1k1bIS_S_E");
	for (unsigned i = 0; i < levels; i++) {
		hostile_add_substitution(name, 1);
		buf_putc(name, 'I');
		hostile_add_substitution(name, i + 2);
		hostile_add_substitution(name, i + 2);
		buf_putc(name, 'E');
	}
	buf_putc(name, 'E');
}

#endif
