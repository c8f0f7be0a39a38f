// SPDX-License-Identifier: MIT
/* Any bytes as the name of a kernel: it is read from the memory of the traced program. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cuda/kernel_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), *shown; /* of just this size, for AddressSanitizer */
	struct buf out = { 0 };

	memcpy(name, data, size);
	name[size] = '\0';
	if (kernel_name_plausible(name)) {
		shown = kernel_name_demangle(name);
		if (!shown || (strlen(shown) > 65536 && strlen(shown) > size))
			abort();
		text_add_name(&out, shown, 60);
		if (text_columns(out.data) > 60)
			abort();
		free(shown);
	}
	buf_free(&out);
	free(name);
	return 0;
}
