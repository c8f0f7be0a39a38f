// SPDX-License-Identifier: MIT
#include "probe/function_name.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "cuda/kernel_name.h"

struct function_name_growing {
	struct buf text;
	jmp_buf too_long;
};

static void add_text(const char *text, size_t len, void *opaque)
{
	struct function_name_growing *out = opaque;

	buf_add(&out->text, text, len);
	/* The demangler holds nothing but its stack, and takes no answer. */
	if (out->text.len > TEXT_NAME_MAX)
		longjmp(out->too_long, 1);
}

static bool demangle_rust(struct function_name_growing *out, const char *linked)
{
	if (setjmp(out->too_long))
		text_cut_bytes(out->text.data, TEXT_NAME_MAX);
	else if (!rust_demangle_callback(linked, 0, add_text, out))
		return false;
	return out->text.len > 0;
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
	struct function_name_growing out = { 0 };

	/* Rust first: its old names are names of C++ as well, with "$LT$" and a hash in them. */
	if (demangle_rust(&out, whole)) {
		free(whole);
		return out.text.data;
	}
	buf_free(&out.text);
	plain = kernel_name_demangle(whole);
	free(whole);
	return plain;
}
