/* SPDX-License-Identifier: MIT */
/*
 * Two profiles compared, frame by frame on the same path of names. Their lengths may differ: what
 * is compared is shares of all time, and both times are told as well.
 */
#ifndef CUSCOPE_PROFILE_PROFILE_DIFF_H
#define CUSCOPE_PROFILE_PROFILE_DIFF_H

#include "profile/profile_write.h"

struct profile_pair {
	const struct profile *before, *after;
	const struct profile_info *before_info, *after_info; /* kinds: those of the second */
};

/* .svg, coloured by change, and .folded, "main;step 41000 52000". */
bool profile_diff_has(enum profile_format format);

/* As profile_write(). Formats that cannot show it are refused with -EINVAL and a sentence. */
int profile_diff_write(const struct profile_pair *pair, enum profile_format format, FILE *out,
                       const char *what, struct err *err);

/*
 * As profile_heaviest(): the functions whose own share changed most, with both shares. 0 functions:
 * ten.
 */
int profile_diff_functions(const struct profile_pair *pair, size_t functions,
                           const struct table_options *table, struct err *err);

#endif
