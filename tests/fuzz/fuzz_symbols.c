// SPDX-License-Identifier: MIT
/*
 * What stacks read of untrusted programs: the functions of an ELF file at any place of it, its
 * build id, and a perf map, which is what other input is taken for; and the names found.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stack/function_name.h"
#include "stack/function_table.h"
#include "stack/perf_map.h"
#include "stack/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

/* The debug file that a build id leads to: the same bytes. */
static const uint8_t *debug_bytes;
static size_t debug_size;

static int find_debug(const uint8_t *id, size_t len)
{
	int fd = memfd_create("debug", MFD_CLOEXEC);

	CHECK(len > 0 && fd >= 0);
	for (size_t i = 0; i < len; i++)
		CHECK(id[i] <= 0xff); /* AddressSanitizer sees what is not there */
	CHECK(write(fd, debug_bytes, debug_size) == (ssize_t)debug_size);
	return fd;
}

static void use_name(const char *name)
{
	char *plain = function_name_demangle(name);

	CHECK(plain && strlen(plain) <= 65536 + strlen(name));
	place_is_wrapper(plain);
	free(plain);
}

static void use_table(int fd, size_t size)
{
	struct function_table *table = NULL;
	struct function_place place;
	struct err err = { 0 };
	size_t step = size / 64 + 1;
	int rc = function_table_open(fd, "input", find_debug, &table, &err);

	CHECK((rc == 0) == (table != NULL) && (rc < 0) == (err.text[0] != '\0'));
	if (!table)
		return;
	CHECK(function_table_count(table) <= FUNCTION_TABLE_MAX);
	for (size_t offset = 0; offset <= size; offset += step) {
		if (function_table_find(table, offset, &place))
			continue;
		CHECK(place.name[0] && place.index < function_table_count(table));
		use_name(place.name);
	}
	function_table_free(table);
}

static void use_map(int fd, const uint8_t *data, size_t size)
{
	struct perf_map *map = perf_map_open_file(fd);
	uint64_t address = 0, into;

	for (size_t i = 0; i + 8 <= size; i += size / 16 + 1) {
		const char *name;

		memcpy(&address, data + i, 8);
		name = perf_map_find(map, i % 2 ? address : address & 0xffff, &into);
		CHECK(!name || *name);
	}
	perf_map_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	debug_bytes = data;
	debug_size = size;
	use_table(fd, size);
	use_map(fd, data, size); /* closes it */
	return 0;
}
