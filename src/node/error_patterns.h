/* SPDX-License-Identifier: MIT */
/*
 * Which failed calls the rule `error` is for: "FUNCTION:CODE, ...". FUNCTION is a glob, with or
 * without the variant's suffix (_v2). CODE is a glob of the error's name, or its number. "fatal"
 * stands for all errors after which a context is of no use, and for memory that ran out.
 */
#ifndef CUSCOPE_NODE_ERROR_PATTERNS_H
#define CUSCOPE_NODE_ERROR_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cuda/api.h"

#define ERROR_PATTERNS_MAX 32
#define ERROR_PATTERN_TEXT 64

struct error_pattern {
	bool fatal;
	char function[ERROR_PATTERN_TEXT];
	char code[ERROR_PATTERN_TEXT];
};

struct error_patterns {
	struct error_pattern pattern[ERROR_PATTERNS_MAX];
	size_t n;
};

/* 0, or -EINVAL and a sentence. An empty text has no patterns. */
int error_patterns_parse(struct error_patterns *patterns, const char *text, struct err *err);

/* Whether one matches. What calls return when CUDA has been shut down is no error for this. */
bool error_patterns_match(const struct error_patterns *patterns, const char *function,
                          enum api_layer layer, int code);

#endif
