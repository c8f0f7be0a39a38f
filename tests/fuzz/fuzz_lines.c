// SPDX-License-Identifier: MIT
/* Any bytes as an answer of the process that reads debug information, and as the sections of a file
 * that name another: what is accepted makes sense, and is the same when it is written again. */
#include <stdlib.h>
#include <string.h>

#include "stack/lines/reader.h"
#include "stack/lines/debug_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_text(const char *text)
{
	require(!text || (*text && strlen(text) <= LINES_NAME_MAX));
	for (; text && *text; text++)
		require((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void check_answer(const void *data, size_t size)
{
	static struct lines_answer answer;
	struct buf texts = { 0 }, again = { 0 };

	if (lines_answer_read(data, size, &answer, &texts)) {
		require(answer.n <= LINES_PARTS_MAX && answer.status <= LINES_REFUSED);
		for (size_t i = 0; i < answer.n; i++) {
			check_text(answer.parts[i].function);
			check_text(answer.parts[i].file);
		}
		lines_answer_write(&answer, &again);
		require(size > LINES_ANSWER_BYTES ||
		        (again.len == size && !memcmp(again.data, data, size)));
	}
	buf_free(&texts);
	buf_free(&again);
}

static void check_links(const char *section, size_t size)
{
	size_t id_bytes;
	const uint8_t *id;
	const char *name;
	uint32_t crc;

	if (debug_link_read(section, size, &name, &crc))
		require(*name && !strchr(name, '/') && strlen(name) + 5 <= size &&
		        strcmp(name, "..") != 0);
	if (debug_alt_link_read(section, size, &name, &id, &id_bytes))
		require(*name && id_bytes >= 2 && id_bytes <= DEBUG_ID_MAX &&
		        (const char *)id + id_bytes == section + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + !size); /* of just this size, for AddressSanitizer */

	memcpy(copy, data, size);
	check_answer(copy, size);
	check_links(copy, size);
	free(copy);
	return 0;
}
