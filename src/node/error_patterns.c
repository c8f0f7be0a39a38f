// SPDX-License-Identifier: MIT
#include "node/error_patterns.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/parse.h"
#include "cuda/error.h"
#include "cuda/kernel_name.h"

/*
 * "Sticky" errors: each later call of the context returns them, and the process has to end. Both
 * numberings have these in common. And memory that ran out, which ends most programs.
 */
static const int fatal_codes[] = {
	2,   /* out of memory */
	214, /* uncorrectable ECC error */
	220, /* uncorrectable NVLink error */
	700, /* illegal address */
	702, /* the launch took too long */
	709, /* the context is destroyed */
	710, /* assertion in a kernel */
	714, /* hardware stack error */
	715, /* illegal instruction */
	716, /* misaligned address */
	717, /* invalid address space */
	718, /* invalid program counter */
	719, /* launch failed */
	999, /* unknown */
};

/* ---- parsing ------------------------------------------------------------------------------- */

static int refuse(struct err *err, const char *text, size_t length)
{
	return err_set(err, EINVAL,
	               "'%.*s' is no pattern of errors: FUNCTION:CODE (cudaMalloc*:2, "
	               "*:CUDA_ERROR_ILLEGAL_*), of at most %d letters each, or fatal",
	               (int)length, text, ERROR_PATTERN_TEXT - 1);
}

static bool copy_part(char part[ERROR_PATTERN_TEXT], const char *text, size_t length)
{
	if (!length || length >= ERROR_PATTERN_TEXT)
		return false;
	memcpy(part, text, length);
	part[length] = '\0';
	for (size_t i = 0; i < length; i++) {
		if (!isgraph((unsigned char)text[i]) || text[i] == ':')
			return false;
	}
	return true;
}

static int parse_one(struct error_pattern *pattern, const char *text, size_t length,
                     struct err *err)
{
	const char *colon = memchr(text, ':', length);
	size_t before = colon ? (size_t)(colon - text) : 0;

	memset(pattern, 0, sizeof(*pattern));
	pattern->fatal = length == strlen("fatal") && !strncmp(text, "fatal", length);
	if (pattern->fatal)
		return 0;
	if (!colon || !copy_part(pattern->function, text, before) ||
	    !copy_part(pattern->code, colon + 1, length - before - 1))
		return refuse(err, text, length);
	return 0;
}

int error_patterns_parse(struct error_patterns *patterns, const char *text, struct err *err)
{
	int rc = 0;

	patterns->n = 0;
	while (!rc) {
		text += strspn(text, " \t");
		if (!*text)
			return 0;
		size_t length = strcspn(text, ","), used = length;

		while (used && strchr(" \t", text[used - 1]))
			used--;
		if (patterns->n == ERROR_PATTERNS_MAX)
			return err_set(err, EINVAL, "more than %d patterns of errors",
			               ERROR_PATTERNS_MAX);
		rc = parse_one(&patterns->pattern[patterns->n++], text, used, err);
		text += length;
		text += *text == ',';
	}
	return rc;
}

/* ---- matching ------------------------------------------------------------------------------ */

static bool is_fatal(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(fatal_codes); i++) {
		if (code == fatal_codes[i])
			return true;
	}
	return false;
}

static bool code_matches(const char *glob, enum api_layer layer, int code)
{
	const char *name = cuda_error_name(layer, code);
	char number[16];

	snprintf(number, sizeof(number), "%d", code);
	return !fnmatch(glob, number, 0) || (name && !fnmatch(glob, name, 0));
}

bool error_patterns_match(const struct error_patterns *patterns, const char *function,
                          enum api_layer layer, int code)
{
	if (cuda_error_is_shutdown(layer, code))
		return false;
	for (size_t i = 0; i < patterns->n; i++) {
		const struct error_pattern *pattern = &patterns->pattern[i];

		if (pattern->fatal ? is_fatal(code)
		                   : name_match_function(pattern->function, function) &&
		                             code_matches(pattern->code, layer, code))
			return true;
	}
	return false;
}
