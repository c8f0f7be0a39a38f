// SPDX-License-Identifier: MIT
/* Any bytes as a file of folded stacks: what is accepted is written again, and read back the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/folded.h"
#include "profile/profile_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_into(struct profile *profile, const void *data, size_t size)
{
	struct err err = { 0 };
	FILE *in = fmemopen((void *)data, size, "r");
	int rc = in ? profile_read_folded(profile, in, "it", &err) : 0;

	if (in)
		fclose(in);
	return rc;
}

static char *write_from(const struct profile *profile, size_t *size)
{
	const struct profile_info info = { 0 };
	struct err err = { 0 };
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (profile_write(profile, &info, PROFILE_FOLDED, out, "it", &err))
		abort();
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile_options options = { .bytes_most = 1 << 20 };
	struct profile *first = profile_new(&options), *second = profile_new(&options);

	if (size && !read_into(first, data, size)) {
		size_t bytes;
		char *text = write_from(first, &bytes);

		if (bytes && read_into(second, text, bytes))
			abort();
		free(text);
	}
	profile_free(first);
	profile_free(second);
	return 0;
}
