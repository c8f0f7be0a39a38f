/* SPDX-License-Identifier: MIT */
/* For fuzzers of names: each is read aside, as cuscope does it, which has a limit of time; then, if
 * that was enough, here as well, where the fuzzer sees what it gets to. */
#ifndef CUSCOPE_TESTS_FUZZ_PLAIN_NAMES_H
#define CUSCOPE_TESTS_FUZZ_PLAIN_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "probe/helper.h"
#include "probe/plain_name.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct err err = { 0 };

	CHECK(helper_begin(&err) == 0);
	return 0;
}

/* Of just this size, for AddressSanitizer. */
static inline char *text_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* Each name is another user's, so that the time of all is not used up. */
static char *read_plain(char *aside(const char *name, uint64_t person), char *here(const char *),
                        const char *name)
{
	static uint64_t person;
	struct plain_name_ends before = plain_name_ends(), after;
	char *shown = aside(name, ++person), *again;

	CHECK(shown && (strlen(shown) <= TEXT_NAME_MAX || strlen(shown) <= strlen(name)));
	after = plain_name_ends();
	CHECK(after.crashed == before.crashed);
	if (after.late == before.late) {
		again = here(name);
		CHECK(strlen(name) > 65535 || !strcmp(again, shown));
		free(again);
	}
	return shown;
}

#endif
