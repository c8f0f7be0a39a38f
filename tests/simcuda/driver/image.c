// SPDX-License-Identifier: MIT
#include "image.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The first four bytes: what nvcc's constructors register, what it points at, and cubins.
 * None of */
/* them is zero, so that comparing stops at the end of any shorter text. */
#define FATBIN_WRAPPER_MAGIC "\xb1\x43\x62\x46"
#define FATBIN_MAGIC         "\x50\xed\x55\xba"
#define ELF_MAGIC            "\177ELF"

struct symbol {
	char *name;
	size_t bytes; /* of a variable; 0 for a kernel */
};

struct image {
	atomic_uint refs;
	bool opaque;
	struct symbol *symbol;
	size_t n;
};

struct fatbin_wrapper {
	uint32_t magic, version;
	const void *data;
	const void *file;
};

/* ---- reading PTX ----------------------------------------------------------------------------- */

/* Words of names, directives and numbers; every other character stands for itself. */
struct token {
	const char *start;
	size_t len;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || c == '%';
}

static const char *skip_blank(const char *at)
{
	for (;;) {
		if (isspace((unsigned char)*at)) {
			at++;
		} else if (at[0] == '/' && at[1] == '/') {
			at += strcspn(at, "\n");
		} else if (at[0] == '/' && at[1] == '*') {
			const char *end = strstr(at + 2, "*/");
			at = end ? end + 2 : at + strlen(at);
		} else {
			return at;
		}
	}
}

static bool token_next(const char **at, struct token *token)
{
	const char *start = skip_blank(*at);
	if (!*start)
		return false;
	const char *end = start + 1;
	if (is_word(*start)) {
		while (is_word(*end))
			end++;
	}
	*token = (struct token){ start, (size_t)(end - start) };
	*at = end;
	return true;
}

static bool token_is(const struct token *token, const char *text)
{
	return strlen(text) == token->len && memcmp(token->start, text, token->len) == 0;
}

static bool image_add(struct image *image, const struct token *name, size_t bytes)
{
	struct symbol *symbols = realloc(image->symbol, (image->n + 1) * sizeof(*symbols));
	if (!symbols)
		return false;
	image->symbol = symbols;
	symbols[image->n].name = strndup(name->start, name->len);
	symbols[image->n].bytes = bytes;
	if (!symbols[image->n].name)
		return false;
	image->n++;
	return true;
}

/* ".b8", ".f32", ".u64": the bits are the digits. */
static size_t type_bytes(const struct token *token)
{
	if (token->len < 3 || token->start[0] != '.' || !strchr("bfsu", token->start[1]) ||
	    !isdigit((unsigned char)token->start[2]))
		return 0;
	return strtoul(token->start + 2, NULL, 10) / 8;
}

/* What follows ".global" up to ';' or '=': .align N .type name[count]. */
static bool read_variable(struct image *image, const char **at)
{
	struct token token, name = { 0 };
	size_t bytes = 0, count = 1;
	bool skip = false;
	while (token_next(at, &token) && !token_is(&token, ";") && !token_is(&token, "=")) {
		if (skip) {
			skip = false;
		} else if (token_is(&token, ".align")) {
			skip = true;
		} else if (type_bytes(&token)) {
			bytes = type_bytes(&token);
		} else if (token_is(&token, "[")) {
			if (token_next(at, &token) && isdigit((unsigned char)*token.start))
				count *= strtoul(token.start, NULL, 10);
		} else if (token.start[0] == '_' || token.start[0] == '$' ||
		           isalpha((unsigned char)token.start[0])) {
			name = token;
		}
	}
	return !name.len || !bytes || !count || image_add(image, &name, bytes * count);
}

static bool read_ptx(struct image *image, const char *at)
{
	struct token token;
	int depth = 0;
	bool ok = true;
	while (ok && token_next(&at, &token)) {
		if (token_is(&token, "{"))
			depth++;
		else if (token_is(&token, "}"))
			depth--;
		else if (depth == 0 && token_is(&token, ".entry"))
			ok = token_next(&at, &token) && image_add(image, &token, 0);
		else if (depth == 0 && (token_is(&token, ".global") || token_is(&token, ".const")))
			ok = read_variable(image, &at);
	}
	return ok;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* PTX is text whose first directive is .version; other text is taken for bad PTX. */
static CUresult classify(const void *data, bool *opaque)
{
	*opaque = strncmp(data, FATBIN_MAGIC, 4) == 0 || strncmp(data, ELF_MAGIC, 4) == 0;
	if (*opaque)
		return CUDA_SUCCESS;
	const char *start = skip_blank(data);
	if (strncmp(start, ".version", 8) == 0)
		return CUDA_SUCCESS;
	return *start == '.' || *start == '\0' ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
}

CUresult image_read(const void *data, struct image **image)
{
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (strncmp(data, FATBIN_WRAPPER_MAGIC, 4) == 0)
		data = ((const struct fatbin_wrapper *)data)->data;
	bool opaque;
	CUresult result = classify(data, &opaque);
	if (result != CUDA_SUCCESS)
		return result;
	*image = calloc(1, sizeof(**image));
	if (!*image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*image)->refs = 1;
	(*image)->opaque = opaque;
	if (opaque || read_ptx(*image, data))
		return CUDA_SUCCESS;
	image_put(*image);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

struct image *image_get(struct image *image)
{
	atomic_fetch_add(&image->refs, 1);
	return image;
}

void image_put(struct image *image)
{
	if (atomic_fetch_sub(&image->refs, 1) > 1)
		return;
	for (size_t i = 0; i < image->n; i++)
		free(image->symbol[i].name);
	free(image->symbol);
	free(image);
}

static const struct symbol *find(const struct image *image, const char *name)
{
	for (size_t i = 0; i < image->n; i++) {
		if (strcmp(image->symbol[i].name, name) == 0)
			return &image->symbol[i];
	}
	return NULL;
}

bool image_has_kernel(const struct image *image, const char *name)
{
	const struct symbol *symbol = find(image, name);
	return image->opaque || (symbol && symbol->bytes == 0);
}

size_t image_kernels(const struct image *image)
{
	size_t n = 0;
	for (size_t i = 0; i < image->n; i++)
		n += image->symbol[i].bytes == 0;
	return n;
}

const char *image_kernel(const struct image *image, size_t i)
{
	for (size_t j = 0; j < image->n; j++) {
		if (image->symbol[j].bytes == 0 && i-- == 0)
			return image->symbol[j].name;
	}
	return NULL;
}

size_t image_global_bytes(const struct image *image, const char *name)
{
	const struct symbol *symbol = find(image, name);
	return symbol ? symbol->bytes : 0;
}
