/* SPDX-License-Identifier: MIT */
/*
 * A row of the function tables as a trace file keeps it. The file has to tell its functions'
 * arguments also to a cuscope whose tables differ.
 *
 * The numbers of op, memory, direction, class and the flags are those of api.h and row.h. They are
 * stored, so entries of these enums keep their places: new ones are added at the end.
 */
#ifndef CUSCOPE_CUDA_ROW_TEXT_H
#define CUSCOPE_CUDA_ROW_TEXT_H

#include "cuda/api.h"

struct api_text {
	const char *name, *spec; /* row.h describes the language of `spec` */
	uint32_t cls, op, memory, direction, flags;
};

/* The texts are static, or live as long as `api`. */
void api_to_text(const struct api *api, struct api_text *text);

/*
 * The row that was described so: the built-in one where it is the same. Else a new one with texts
 * of its own, which is put into `made` too; the caller frees that with api_free(). What this
 * program does not know (an op, a class, a type in the spec) is read as none, and the arguments of
 * a spec end before it.
 */
const struct api *api_from_text(const struct api_text *text, struct api **made);
void api_free(struct api *made);

#endif
