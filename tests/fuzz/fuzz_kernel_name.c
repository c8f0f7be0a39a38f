// SPDX-License-Identifier: MIT
/* Any bytes as the name of a kernel: it is read from the memory of the traced program. */
#include "plain_names.h"

#include "base/buf.h"
#include "base/text.h"
#include "cuda/kernel_name.h"

/* All that is made of a name for the eyes, and what a user's pattern is compared with. */
static void use(const char *shown, const char *mangled)
{
	static const char *const globs[] = { "gemm*", "*a*b*c*d*e*", "*[a-z]*[!0-9]*?*:" };
	struct buf out = { 0 };
	char *qualified = kernel_name_qualified(shown);
	size_t len;

	text_add_name(&out, shown, 60);
	CHECK(text_columns(out.data) <= 60);
	kernel_name_base(shown, &len);
	CHECK(len <= strlen(shown) && strlen(qualified) <= strlen(shown));
	for (size_t i = 0; i < sizeof(globs) / sizeof(*globs); i++)
		name_match_kernel(globs[i], shown, mangled);
	free(qualified);
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = text_of(data, size), *shown;

	if (kernel_name_plausible(name)) {
		shown = read_plain(plain_kernel_name, kernel_name_demangle, name);
		use(shown, name);
		free(shown);
	}
	free(name);
	return 0;
}
