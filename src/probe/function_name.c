// SPDX-License-Identifier: MIT
#include "probe/function_name.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "cuda/kernel_name.h"

static bool call_rust(const char *linked, buf_piece_fn *add, void *opaque)
{
	return rust_demangle_callback(linked, 0, add, opaque);
}

static char *demangle_rust(const char *linked)
{
	struct buf text = { 0 };

	if (buf_demangle(&text, TEXT_NAME_MAX, linked, call_rust) && text.len) {
		text_cut_bytes(text.data, TEXT_NAME_MAX);
		return text.data;
	}
	buf_free(&text);
	return NULL;
}

/* What compilers append when they split a function, or fit it to its callers. */
static const char *const suffixes[] = { ".cold",  ".constprop.", ".isra.",
	                                ".llvm.", ".lto_priv.",  ".part." };

/* It is the same function to the one who wrote it. */
char *function_name_whole(const char *linked)
{
	const char *end = linked + strlen(linked);

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		const char *at = strstr(linked, suffixes[i]);

		if (at && at > linked && at < end)
			end = at;
	}
	return xstrndup(linked, (size_t)(end - linked));
}

char *function_name_demangle(const char *linked)
{
	char *whole = function_name_whole(linked), *plain;

	/* Rust first: its old names are names of C++ as well, with "$LT$" and a hash in them. */
	plain = demangle_rust(whole);
	if (!plain)
		plain = kernel_name_demangle(whole);
	free(whole);
	return plain;
}
