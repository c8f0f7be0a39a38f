/* SPDX-License-Identifier: MIT */
/*
 * What is written of a profile: flame graphs, folded stacks and the files of other tools, by the
 * ending of the file's name; and the heaviest stacks for a terminal.
 *
 * Names come from untrusted programs. In every format they are data and nothing else.
 */
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "profile/profile.h"
#include "table/table.h"

enum profile_format {
	PROFILE_FOLDED,     /* .folded: "main;step;cudaLaunchKernel;[GPU_Kernel]gemm 41000", us */
	PROFILE_SVG,        /* .svg: a flame graph that can be zoomed and searched in a browser */
	PROFILE_HTML,       /* .html: the same beside tables of functions and stacks */
	PROFILE_PPROF,      /* .pb.gz: for pprof: profile.proto, compressed */
	PROFILE_SPEEDSCOPE, /* .speedscope.json: for speedscope */
	PROFILE_FORMATS,
};

/* ".folded" */
const char *profile_format_ending(enum profile_format format);

/* For sentences: ".folded, .svg". */
void profile_format_endings(struct buf *out);

/* PROFILE_FORMATS where the name has none of the endings. */
enum profile_format profile_format_of(const char *path);

/* What a profile is of. 0, NULL: not known. */
struct profile_info {
	const char *subject; /* "python3 train.py", "pid 4242" */
	const char *hostname;
	uint64_t begin_ns;        /* since 1970 */
	uint64_t duration_ns;     /* that samples were taken for */
	uint32_t rate_hz;         /* samples a second of each CPU */
	uint32_t processes;       /* that samples are of */
	unsigned kinds;           /* bits 1 << enum weight_kind that are written; 0: all */
	const char *const *notes; /* sentences on what was missed, for all outputs that can tell */
	size_t n_notes;
};

/*
 * Writes to `out`, which is not closed, and whose buffer is empty. `what` is for sentences: "the
 * profile". 0 or a negative errno.
 */
int profile_write(const struct profile *profile, const struct profile_info *info,
                  enum profile_format format, FILE *out, const char *what, struct err *err);

/*
 * The heaviest stacks as text, two lines each, innermost frame first, and how whole they are.
 * 0 stacks: ten. Of `table` out, width and color are read.
 */
int profile_heaviest(const struct profile *profile, const struct profile_info *info, size_t stacks,
                     const struct table_options *table, struct err *err);

/*
 * Two profiles compared, frame by frame on the same path of names. Their lengths may differ: what
 * is compared is shares of all time, and both times are told as well.
 */

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
